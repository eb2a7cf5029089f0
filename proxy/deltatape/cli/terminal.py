"""Output for people: escaped, styled only on a terminal, apart from results."""

import contextlib
import os
import queue
import shutil
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from time import sleep  # noqa: TID251 - it reads no clock
from typing import TYPE_CHECKING, Self, TextIO

from deltatape.child.screen import Screen
from deltatape.errors import UsageError
from deltatape.printable import escape
from deltatape.render.lines import WIDTH, Line, emphasised, hanging, plain, styled

if TYPE_CHECKING:
    from rich.progress import Progress

_MAX_WAITING = 1000
"""Lines that wait for the terminal."""
_PRINTED_AT_ONCE = 1000
"""Lines printed at once: a result of any length is made while it is printed."""
_CLOSE_S = 2.0
_GAP_S = 0.01
"""How long to rest after printing: lines that come in quick succession are printed together, since
each time that the thread wakes, streams wait for the interpreter's lock."""
_TAKEN_S = 0.2
"""How often to look whether a command has given the screen back."""
_NARROWEST, _WIDEST = 60, 140
"""Columns of a page: text in fewer cannot be read, text in more is not read."""
_UNLIMITED = 10_000
_HANGING = 4
"""Columns by which the rest of a line that is too long is indented."""


class TerminalWriter:
    """Prints lines from a thread, so that a stopped terminal (Ctrl-S) stops no stream."""

    def __init__(self, screen: Screen | None = None) -> None:
        """Args: screen: is shared with a command: lines wait while that has taken it over."""
        self._screen = screen or Screen()
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._dropped = 0
        self._thread = threading.Thread(target=self._write_all, daemon=True)
        self._thread.start()

    def put(self, line: str) -> None:
        """Print a line soon; count it instead if too many are waiting."""
        if self._lines.qsize() < _MAX_WAITING:
            self._lines.put(line)
        else:
            self._dropped += 1

    def close(self) -> None:
        """Print what is left, if that takes only a moment."""
        self._lines.put(None)
        self._thread.join(_CLOSE_S)

    def _write_all(self) -> None:
        lines: list[str] = []
        goes_on = True
        while goes_on:
            goes_on = self._take(lines)
            if goes_on and self._screen.is_taken():
                continue
            if lines:
                with self._screen.held_by_us() as is_mid_line:
                    _write_lines(["", *lines] if is_mid_line else lines)
            lines = []
            if self._dropped and self._lines.empty():
                _write_lines([f"({self._dropped} lines left out: the terminal was blocked)"])
                self._dropped = 0
            if goes_on:
                sleep(_GAP_S)

    def _take(self, lines: list[str]) -> bool:
        """Add the lines that are there to those that wait; return whether more can come.

        Without any, wait for the first one; with some, for a moment, until the screen may be free.
        """
        with contextlib.suppress(queue.Empty):
            line = self._lines.get(timeout=_TAKEN_S if lines else None)
            while line is not None:
                if len(lines) < _MAX_WAITING:
                    lines.append(line)
                else:
                    self._dropped += 1
                line = self._lines.get_nowait()
            return False
        return True


_WRITERS: list[TerminalWriter] = []


@contextlib.contextmanager
def aside(screen: Screen | None = None) -> Iterator[None]:
    """Make `say` return at once, whatever the terminal does.

    Args:
        screen: a command's screen: its lines and screens are left whole.
    """
    writer = TerminalWriter(screen)
    _WRITERS.append(writer)
    try:
        yield
    finally:
        _WRITERS.remove(writer)
        writer.close()


def say(line: str) -> None:
    """Print one line on stderr, control characters escaped.

    A terminal that is gone is ignored: streams and results continue.
    """
    if _WRITERS:
        _WRITERS[-1].put(line)
    else:
        _write_lines([line])


def _write_lines(lines: Sequence[str]) -> None:
    with contextlib.suppress(OSError):
        if sys.stderr.isatty():
            for line in lines:
                _write_wrapped(line)
        else:
            sys.stderr.write("".join(f"{escape(line)}\n" for line in lines))
        sys.stderr.flush()


def _write_wrapped(line: str) -> None:
    """Wrap `line` for the terminal at blanks, and colour it."""
    indent = len(line) - len(line.lstrip()) + _HANGING
    lines = [
        emphasised("".join(segment.text for segment in segments))
        for segments in hanging(line, width(sys.stderr), indent)
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
    return width() if sys.stdout.isatty() or os.environ.get("COLUMNS") else _UNLIMITED


def show(lines: Iterable[Line]) -> None:
    """Print lines on stdout, with styles only on a terminal and without NO_COLOR."""
    source = iter(lines)
    batches = iter(lambda: [*islice(source, _PRINTED_AT_ONCE)], [])
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        for batch in batches:
            write(plain(batch))
        return
    from rich.console import Console  # noqa: PLC0415 - what goes to no terminal does not wait for it

    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    for batch in batches:
        console.print(styled(batch), soft_wrap=True)


def write(text: str) -> bool:
    """Print a document for programs on stdout; return False if nobody reads it any more."""
    with _results() as stdout:
        stdout.write(text)
        stdout.flush()
        return True
    return False


def write_bytes(data: bytes) -> None:
    """Write raw bytes to stdout."""
    with _results() as stdout:
        stdout.buffer.write(data)


def read_stdin(limit: int = -1) -> bytes:
    """Read standard input to its end, or to a number of bytes.

    Raises:
        UsageError: it cannot be read, or is closed.
    """
    try:
        return sys.stdin.buffer.read(limit)
    except OSError as error:
        raise UsageError(f"standard input: {error.strerror}") from None


@contextlib.contextmanager
def _results() -> Iterator[TextIO]:
    """Yield stdout and flush it; a reader that leaves early, such as `head`, is not an error."""
    try:
        yield sys.stdout
        sys.stdout.flush()
    except OSError as error:
        leave_stdout()
        if not isinstance(error, BrokenPipeError):
            raise UsageError(f"standard output: {error.strerror}") from None


def leave_stdout() -> None:
    """Lead stdout nowhere: what is still buffered must not fail once more when Python exits."""
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - a device, not a path of ours
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


class Bar:
    """A progress bar on stderr, removed at the end; silent without a terminal or for a single step.

    It shares the terminal with other output: `aside` takes it away and brings it back.

    Args:
        what: is counted, such as "tapes".
        total: how many steps there are.
    """

    def __init__(self, what: str, total: int) -> None:
        self._progress = _progress(what) if total > 1 and sys.stderr.isatty() else None
        if self._progress is not None:
            self._task = self._progress.add_task(what, total=total, note="")

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    @property
    def shown(self) -> bool:
        """Whether there is a terminal for it, and something to show."""
        return self._progress is not None

    def step(self, note: str = "") -> None:
        """Count one step; show a few words beside the bar."""
        if self._progress is not None:
            self._progress.update(self._task, advance=1, note=note)

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Hide the bar while others print."""
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()


def _progress(what: str) -> "Progress":
    # Where there is no terminal, loading these would take a moment for nothing.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[note]}"),
    )
    return Progress(*columns, console=Console(file=sys.stderr), transient=True)
