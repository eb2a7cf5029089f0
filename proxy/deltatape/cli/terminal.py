"""Output for people: escaped, styled only on a terminal, apart from results."""

import contextlib
import os
import queue
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import TextIO

from deltatape.errors import UsageError
from deltatape.printable import escape
from deltatape.render.lines import WIDTH, Line, emphasised, hanging, plain, styled

_MAX_UNSAID = 1000
_LAST_WORDS_S = 2.0
_NARROWEST, _WIDEST = 60, 140
"""Columns of a page: text in fewer cannot be read, text in more is not read."""
_UNBROKEN = 10_000
_HANGING = 4
"""Columns by which the rest of a line that is too long is indented."""


class TerminalWriter:
    """Prints lines from a thread, so that a stopped terminal (Ctrl-S) stops no stream."""

    def __init__(self) -> None:
        self._lines: queue.Queue[str | None] = queue.Queue(_MAX_UNSAID)
        self._unsaid = 0
        self._thread = threading.Thread(target=self._speak, daemon=True)
        self._thread.start()

    def put(self, line: str) -> None:
        """Print a line soon; count it instead if too many are waiting."""
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self._unsaid += 1

    def close(self) -> None:
        """Print what is left, if that takes only a moment."""
        with contextlib.suppress(queue.Full):
            self._lines.put_nowait(None)
        self._thread.join(_LAST_WORDS_S)

    def _speak(self) -> None:
        while (line := self._lines.get()) is not None:
            _write_line(line)
            if self._unsaid and self._lines.empty():
                _write_line(f"({self._unsaid} lines were left out: nobody took them)")
                self._unsaid = 0


_ASIDE: list[TerminalWriter] = []


@contextlib.contextmanager
def aside() -> Iterator[None]:
    """Make `say` return at once, whatever the terminal does."""
    voice = TerminalWriter()
    _ASIDE.append(voice)
    try:
        yield
    finally:
        _ASIDE.remove(voice)
        voice.close()


def say(line: str) -> None:
    """Print one line on stderr, control characters escaped.

    A terminal that is gone takes nothing with it: streams go on, results come out.
    """
    if _ASIDE:
        _ASIDE[-1].put(line)
    else:
        _write_line(line)


def _write_line(line: str) -> None:
    with contextlib.suppress(OSError):
        if sys.stderr.isatty():
            _write_wrapped(line)
        else:
            sys.stderr.write(f"{escape(line)}\n")
        sys.stderr.flush()


def _write_wrapped(line: str) -> None:
    """Wrap `line` for the terminal at blanks, and colour it."""
    indent = len(line) - len(line.lstrip()) + _HANGING
    lines = [
        emphasised("".join(segment.text for segment in each))
        for each in hanging(line, width(sys.stderr), indent)
    ]
    if os.environ.get("NO_COLOR"):
        sys.stderr.write(plain(lines))
        return
    from rich.console import Console  # noqa: PLC0415 - what goes to no terminal does not wait for it

    console = Console(file=sys.stderr, highlight=False, markup=False, emoji=False)
    console.print(styled(lines), soft_wrap=True)


def width(stream: TextIO | None = None) -> int:
    """Return the page width: of the terminal, or COLUMNS, or 100.

    Args:
        stream: what leads to the terminal; None: stdout.
    """
    columns = shutil.get_terminal_size((WIDTH, 24)).columns
    if stream is not None and not os.environ.get("COLUMNS"):
        with contextlib.suppress(OSError):
            columns = os.get_terminal_size(stream.fileno()).columns
    return max(_NARROWEST, min(columns, _WIDEST))


def list_width() -> int:
    """Return the width for one-line lists; a pipe takes whole lines unless COLUMNS is set."""
    return width() if sys.stdout.isatty() or os.environ.get("COLUMNS") else _UNBROKEN


def show(lines: Sequence[Line]) -> None:
    """Print lines on stdout, with styles only on a terminal and without NO_COLOR."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        write(plain(lines))
        return
    from rich.console import Console  # noqa: PLC0415 - what goes to no terminal does not wait for it

    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    if lines:
        console.print(styled(lines), soft_wrap=True)


def write(text: str) -> None:
    """Print a document for programs on stdout."""
    with _results() as stdout:
        stdout.write(text)


def write_bytes(data: bytes) -> None:
    """Write raw bytes to stdout."""
    with _results() as stdout:
        stdout.buffer.write(data)


@contextlib.contextmanager
def _results() -> Iterator[TextIO]:
    """Yield stdout and flush it; a reader that leaves early, such as `head`, is not an error."""
    try:
        yield sys.stdout
        sys.stdout.flush()
    except OSError as error:
        # What is still buffered must not fail once more when Python exits.
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - a device, not a path of ours
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise UsageError(f"standard output: {error.strerror}") from None
