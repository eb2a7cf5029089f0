"""`deltatape watch`: exchanges as they come and end, while they are recorded."""

import contextlib
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import sleep  # noqa: TID251 - it reads no clock
from typing import TYPE_CHECKING

import click

from deltatape.cli.options import TapeArgument
from deltatape.cli.terminal import say, width, write
from deltatape.clock import SystemClock, parse_rfc3339
from deltatape.errors import DeltatapeError
from deltatape.model.exchange import Exchange
from deltatape.model.exchange_row import ExchangeRow
from deltatape.model.finding import Severity
from deltatape.render.lines import DIM, STYLES, Line, StyledText, line, plain, styled
from deltatape.render.watching import RunningExchange, ended_line, running_lines
from deltatape.settings.defaults import current_rules
from deltatape.store.listing import Unreadable, list_tapes, locate_whole, recorded_folders
from deltatape.store.names import without_suffix
from deltatape.store.reader import open_tape
from deltatape.store.shards import recording_of
from deltatape.store.tail import Holds, TapeTail
from deltatape.tape.assemble import Assembler
from deltatape.why.exchange_index import ExchangeIndexer

if TYPE_CHECKING:
    from rich.live import Live

_PAUSE_S = 0.25
"""How long to pause before tapes are read on."""
_SCAN = 4
"""After how many rounds folders are searched for new tapes."""
_LATEST = 10
"""How many exchanges are shown of those that had ended before."""
_FIRST_FRAMES = 20
"""The frames of a WebSocket in which its first request is."""
_NS = 1_000_000_000


@click.command("watch")
@click.argument("what", cls=TapeArgument, default="", metavar="[TAPE | FOLDER]")
def command(*, what: str) -> int:
    """Watch exchanges while they are recorded: one line each, with a timeline of what came when.

    Follows the tapes in .deltatape, or in FOLDER, that are being recorded, and those that begin
    later; Ctrl-C ends it. On a terminal, exchanges in progress stand below, those that have been
    silent longest first. Follows TAPE until its recorder ends.
    """
    watch = _Watch(locate_whole(what) if what else None)
    say(f"watching {watch.where}; Ctrl-C ends it")
    with _ended_by_signals(), contextlib.suppress(KeyboardInterrupt), _screen() as screen:
        while True:
            if not screen.show([*watch.read()], watch.running()) or not watch.goes_on:
                break
            sleep(_PAUSE_S)
    return 0


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Treat a request to end like Ctrl-C, so that the terminal is left as it was."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _FollowedTape:
    """A tape, read on as it grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = without_suffix(path.name)
        self.over = False
        """Whether nothing more will come."""
        self.is_new = True
        self._tail = TapeTail(path, holds=Holds.NONE)
        # What others record of a conversation is not known yet.
        alone = recording_of(path) is not None
        self._indexer = ExchangeIndexer(current_rules(), live=True, alone=alone)
        self._assembler: Assembler | None = None
        self._told: dict[int, object] = {}
        """What was last said about exchanges, by number."""
        self._rows: dict[tuple[int, bool], ExchangeRow] = {}
        """Rows of exchanges in progress; the key says whether their response has begun."""

    def read(self) -> Iterator[tuple[ExchangeRow, Exchange | None]]:
        """Yield what has ended, and what has become known of what had; the last time at its end.

        Raises:
            DeltatapeError: it cannot be read any further.
        """
        goes_on = open_tape(self.path).recording  # asked first: what is written then is read
        for numbered in self._tail.read():
            if self._assembler is None:
                assert self._tail.header is not None  # it precedes any record
                self._assembler = Assembler(tape=str(self.path), header=self._tail.header)
            for exchange in self._assembler.feed((numbered,)):
                yield from self._new(self._indexer.add(exchange), (exchange,))
        if not goes_on:
            self.over = True
            left = (*self._assembler.unfinished(),) if self._assembler else ()
            yield from self._new(self._indexer.add_all(left), left)
            tape = open_tape(self.path)
            yield from self._new(self._indexer.end(tape.logs, tape.watch))

    def _new(
        self, rows: Iterable[ExchangeRow], ended: Sequence[Exchange] = ()
    ) -> Iterator[tuple[ExchangeRow, Exchange | None]]:
        own = {exchange.number: exchange for exchange in ended}
        for row in rows:
            told = (row.worst, row.codes, row.marks)
            if self._told.get(row.exchange) != told:
                self._told[row.exchange] = told
                for begun in (False, True):
                    self._rows.pop((row.exchange, begun), None)
                yield row, own.get(row.exchange)

    def running(self, wall_ns: int) -> Iterator[tuple[ExchangeRow, Exchange, int]]:
        """Yield the exchanges in progress, with the time on the tape."""
        if self._assembler is None or self._tail.header is None:
            return
        now_ns = wall_ns - parse_rfc3339(self._tail.header.recorded_at)
        for exchange in self._assembler.unfinished():
            if not exchange.request.line:
                continue  # when the tape began, it was in progress
            key = exchange.number, exchange.response is not None
            row = self._rows.get(key)
            if row is None:  # what is shown of it is in its request, which is whole by the response
                begun = replace(exchange, reads=(), frames=exchange.frames[:_FIRST_FRAMES])
                row = self._rows[key] = self._indexer.running(begun)
            yield row, exchange, now_ns

    def close(self) -> None:
        self._tail.close()


class _Watch:
    """The tapes of a folder, or one tape.

    Raises:
        DeltatapeError: there is no such tape or folder.
    """

    def __init__(self, what: Path | None) -> None:
        self._only = what if what is not None and not what.is_dir() else None
        self._folders = recorded_folders() if what is None else (what,)
        self._followed: dict[Path, _FollowedTape] = {}
        self._seen: set[tuple[Path, int]] = set()
        """Tapes with their last change that were not being recorded then."""
        self._unreadable: set[Unreadable] = set()
        """Folders that were reported."""
        self._problems: list[Line] = []
        """What is to be shown about them."""
        self._looks = 0
        self._clock = SystemClock()
        if self._only is not None:
            open_tape(self._only)  # raises unless it is one
            self._followed[self._only] = _FollowedTape(self._only)
        else:
            self._look(following_new=False)

    @property
    def where(self) -> str:
        return str(self._only or self._folders[0])

    @property
    def goes_on(self) -> bool:
        """Whether anything can still come."""
        return self._only is None or bool(self._followed)

    def read(self) -> Iterator[Line]:
        """Yield the lines that are new."""
        self._looks += 1
        if self._only is None and self._looks % _SCAN == 0:
            self._look(following_new=True)
        yield from self._problems
        self._problems = []
        for tape in tuple(self._followed.values()):
            yield from self._read(tape)

    def _look(self, *, following_new: bool) -> None:
        """Follow the tapes that are being recorded, and those that were not there before."""
        paths = {path for path, _ in self._seen}
        for tape in list_tapes(self._folders, self._report_once):
            key = tape.path, tape.modified_ns
            if tape.path in self._followed or key in self._seen:
                continue
            with contextlib.suppress(DeltatapeError):  # its first line is not complete yet
                if open_tape(tape.path).recording or (following_new and tape.path not in paths):
                    self._followed[tape.path] = _FollowedTape(tape.path)
                self._seen.add(key)

    def _report_once(self, folder: Unreadable) -> None:
        if folder not in self._unreadable:
            self._unreadable.add(folder)
            self._problems.append(_problem_line(folder.problem))

    def _read(self, tape: _FollowedTape) -> Iterator[Line]:
        name = "" if self._only is not None else tape.name
        lines: list[Line] = []
        try:
            lines += (ended_line(*each, name, width()) for each in tape.read())
        except (DeltatapeError, OSError) as problem:
            lines.append(_problem_line(str(problem)))
            tape.over = True
        if tape.is_new and len(lines) > _LATEST:
            yield line(StyledText(f"{tape.name}: {len(lines) - _LATEST} earlier ones", DIM))
            lines = lines[-_LATEST:]
        tape.is_new = False
        yield from lines
        if tape.over:
            tape.close()
            del self._followed[tape.path]

    def running(self) -> list[RunningExchange]:
        """Return the exchanges in progress."""
        wall_ns = self._clock.wall_ns()
        return [
            RunningExchange("" if self._only is not None else tape.name, *each)
            for tape in self._followed.values()
            for each in tape.running(wall_ns)
        ]


def _problem_line(problem: str) -> Line:
    return line(StyledText(problem, STYLES[Severity.ERROR]))


class _Screen:
    """Where lines are shown: a pipe takes them as they come, a terminal has others below."""

    def __init__(self, live: "Live | None") -> None:
        self._live = live
        self._below: list[Line] = []

    def show(self, lines: Sequence[Line], running: Sequence[RunningExchange]) -> bool:
        """Print lines, and exchanges in progress if they can change; False: stdout is closed."""
        if self._live is None:
            return not lines or write(plain(lines))
        most = max(1, self._live.console.height - 3)
        below = running_lines(running, int(current_rules().stall_s * _NS), most, width())
        if below != self._below:
            self._below = below
            self._live.update(styled(below), refresh=not lines)
        if lines:  # draws what is below anew
            self._live.console.print(styled(lines), soft_wrap=True)
        return True


@contextlib.contextmanager
def _screen() -> Iterator[_Screen]:
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        yield _Screen(None)
        return
    from rich.console import Console  # noqa: PLC0415 - what goes to no terminal does not wait for it
    from rich.live import Live  # noqa: PLC0415

    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield _Screen(live)
