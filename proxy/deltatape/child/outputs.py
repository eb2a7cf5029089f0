r"""What stands in for our stdout and stderr in the child: a terminal for a terminal, else a pipe.

Where our two are one file (a terminal, or a pipe or file by `2>&1`), the child has one for both, so
that what it writes comes out in the order in which it wrote it: that of two pipes or terminals is
known only as far as they are read one by one. The price is that nobody can tell the two apart,
as nobody can without us.

The child's terminal has the settings and the size of the user's, but passes output unprocessed:
turning `\n` into `\r\n` is what the user's terminal does, once. It is not the child's controlling
terminal: `/dev/tty`, Ctrl-C and job control go on being the user's own terminal's.

A program that changes settings through its stdout (curses does) means the terminal it sees; such a
change is passed on to the user's terminal, so that keys arrive as it wants them.
"""

import contextlib
import os
import signal
import sys
import termios
from collections.abc import Iterator, Sequence

from deltatape.errors import UsageError
from deltatape.model.log import LogStream

_INPUT, _OUTPUT, _CONTROL, _LOCAL = range(4)
_FLAGS = (_INPUT, _LOCAL)
"""The settings that decide how keys arrive."""

_BOTH = ("stdout", "stderr")


class Output:
    """One stream of the child, or both in one, on the way to ours.

    Attributes:
        name: which.
        streams: `stdout`, `stderr` or both.
        sink: our own descriptor, where the bytes go.
        source: where we read them; -1 once closed.
        child: what the child writes to; -1 once closed.
    """

    def __init__(self, name: LogStream, sink: int) -> None:
        """Make the pair.

        Raises:
            UsageError: there is none to be had.
        """
        self.name = name
        self.streams = _BOTH if name is LogStream.BOTH else (name.value,)
        self.sink = sink
        self.is_terminal = os.isatty(sink)
        try:
            if self.is_terminal:
                self.source, self.child = os.openpty()
                self._resemble()
            else:
                self.source, self.child = os.pipe()
        except OSError as error:
            kind = "pseudo-terminal" if self.is_terminal else "pipe"
            raise UsageError(
                f"{self.shown}: no {kind} for the command's output: {error.strerror};"
                " --no-log runs it on your own"
            ) from None

    @property
    def shown(self) -> str:
        """What a person calls it."""
        return " and ".join(self.streams)

    def _resemble(self) -> None:
        attributes = termios.tcgetattr(self.sink)
        attributes[_OUTPUT] &= ~termios.OPOST
        termios.tcsetattr(self.child, termios.TCSANOW, attributes)
        self._seen = [attributes[flags] for flags in _FLAGS]
        self.resize()

    def resize(self) -> bool:
        """Take over the size of the user's terminal; whether it was another."""
        with contextlib.suppress(termios.error):  # it is gone; then nobody looks
            size = termios.tcgetwinsize(self.sink)
            if self.source >= 0 and size != termios.tcgetwinsize(self.source):
                termios.tcsetwinsize(self.source, size)
                return True
        return False

    def follow(self) -> None:
        """Pass on to the user's terminal what the child has changed of how keys arrive."""
        if not self.is_terminal or self.source < 0:
            return
        with contextlib.suppress(termios.error):
            now = [termios.tcgetattr(self.source)[flags] for flags in _FLAGS]
            if now == self._seen:
                return
            seen, self._seen = self._seen, now
            # From the background this would stop us instead.
            if os.tcgetpgrp(self.sink) != os.getpgrp():
                return
            attributes = termios.tcgetattr(self.sink)
            for flags, before, after in zip(_FLAGS, seen, now, strict=True):
                changed = before ^ after
                attributes[flags] = (attributes[flags] & ~changed) | (after & changed)
            termios.tcsetattr(self.sink, termios.TCSANOW, attributes)

    def close_source(self) -> None:
        """Read no more: what still writes to it fails, as it would have on ours."""
        if self.source >= 0:
            os.close(self.source)
            self.source = -1

    def close_child(self) -> None:
        """Our copy of the child's end."""
        if self.child >= 0:
            os.close(self.child)
            self.child = -1


@contextlib.contextmanager
def opened_outputs() -> Iterator[tuple[Output, ...]]:
    """One for each of our stdout and stderr that is open, or one for both where they are one file.

    At an exception all ends are closed.

    Raises:
        UsageError: see `Output`.
    """
    outputs: list[Output] = []
    try:
        for name, sink in _sinks():
            outputs.append(Output(name, sink))
        yield tuple(outputs)
    except BaseException:
        for output in outputs:
            output.close_child()
            output.close_source()
        raise


def _sinks() -> tuple[tuple[LogStream, int], ...]:
    # A program may be started without them; the numbers then belong to something else.
    ours = ((LogStream.STDOUT, sys.__stdout__, 1), (LogStream.STDERR, sys.__stderr__, 2))
    sinks = tuple((name, sink) for name, stream, sink in ours if stream is not None)
    if len(sinks) == len(ours) and _file(1) == _file(2):
        return ((LogStream.BOTH, 1),)
    return sinks


def _file(fd: int) -> tuple[int, int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino, status.st_rdev


def follow_size(outputs: Sequence[Output]) -> None:
    """For SIGWINCH: resize the child's terminals, and tell all who had the news too early.

    The system tells our whole process group at once, so the child may have asked for the size
    before its terminals had it. Telling it again ends with the first time that nothing changes.
    """
    resized = [output for output in outputs if output.is_terminal and output.resize()]
    if resized:
        os.killpg(os.getpgrp(), signal.SIGWINCH)
