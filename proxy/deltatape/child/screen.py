"""What a command does to the terminal that it shares with our own lines.

The command's output is copied by one thread (`output`), our lines are printed by another one. So
that no line of ours is glued to an unfinished one of the command, both hold the lock while they
write, and what was written last decides whether a line break is needed.

A program that takes over the screen, such as an editor or an agent, redraws it as it knows it,
and a line of ours would stay in the middle. It has taken over where it reads keys one by one, or
shows the terminal's alternate screen. Where the command writes to the terminal itself (`--no-log`),
only the former is seen.
"""

import contextlib
import re
import sys
import termios
import threading
from collections.abc import Iterator

_LOCAL = 3
_WAIT_S = 0.05
"""How long the copying of output waits for a line of ours, which a stopped terminal may hold up."""
_ALTERNATE = re.compile(rb"\x1b\[\?(?:[0-9]+;)*(?:1049|1047|47)(?:;[0-9]+)*([hl])")
_LONGEST = 32
"""Bytes of a sequence that may have been cut by a read."""
_SETTINGS = re.compile(rb"(?:\x1b(?:\[[0-?]*[ -/]*[@-~]|[78=>]))+\Z")
"""What a program writes last to a terminal that moves nothing: colours off, the cursor shown."""
_LONGEST_SETTINGS = 64


class Screen:
    """The terminal or file that our stderr leads to, and a command's output there.

    All methods may be called from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_mid_line = False
        self._is_alternate = False
        self._tail = b""
        self._at_first = _reads_keys()

    @contextlib.contextmanager
    def held_by_command(self) -> Iterator[bool]:
        """Hold the screen for output of the command; yield False if a line of ours has it."""
        held = self._lock.acquire(timeout=_WAIT_S)
        try:
            yield held
        finally:
            if held:
                self._lock.release()

    @contextlib.contextmanager
    def held_by_us(self) -> Iterator[bool]:
        """Hold the screen for lines of ours; yield whether a line break has to come first."""
        with self._lock:
            is_mid_line, self._is_mid_line = self._is_mid_line, False
            yield is_mid_line

    def wrote(self, data: bytes, *, to_terminal: bool) -> None:
        """Note output of the command; while it holds the screen."""
        shown = data[-_LONGEST_SETTINGS:]
        if to_terminal:
            shown = _SETTINGS.sub(b"", shown)
            recent = self._tail + data
            for match in _ALTERNATE.finditer(recent):
                self._is_alternate = match[1] == b"h"
            self._tail = recent[-_LONGEST:]
        if shown:
            self._is_mid_line = not shown.endswith(b"\n")

    def echoed(self) -> None:
        """Note that the user's terminal echoed a key, such as `^C`."""
        if sys.__stderr__ is not None and sys.__stderr__.isatty():
            self._is_mid_line = True

    def is_taken(self) -> bool:
        """Check whether the command has taken over the terminal."""
        return self._is_alternate or (_reads_keys() and not self._at_first)


def _reads_keys() -> bool:
    """Return whether the terminal's reader gets keys one by one, not as lines."""
    stderr = sys.__stderr__
    if stderr is None:
        return False
    try:
        return not termios.tcgetattr(stderr.fileno())[_LOCAL] & termios.ICANON
    except (termios.error, OSError, ValueError):
        return False
