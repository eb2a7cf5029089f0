"""The indexing process: follows tapes, and keeps a row of every exchange in the index.

It reports changes to the server as lines of JSON, at most four times a second. Tapes that are being
recorded come first: they are followed as they grow. All others are read once, the newest first, in
slices; their size and time are stored, so that the next process does not read them again.

A tape that crashes the process three times, by its size or by a defect of a rule, is skipped from
then on, so that the others are shown.
"""

import json
import os
import select
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TypeAlias

from deltatape.clock import SystemClock
from deltatape.diagnose.rebuild import batches, body_bytes
from deltatape.errors import DeltatapeError, TapeFormatError
from deltatape.inspector.index import IndexWriter, Row, TapeState
from deltatape.inspector.yielding import yielding
from deltatape.live.messages import Begin
from deltatape.model.exchange import Exchange, header
from deltatape.model.exchange_row import ExchangeRow
from deltatape.model.rule_settings import Settings
from deltatape.model.tape_summary import LogEntry
from deltatape.render.exchange_rows import row_object
from deltatape.render.json_document import hidden_object
from deltatape.store.listing import ListedTape, list_tapes
from deltatape.store.reader import Tape, open_tape
from deltatape.store.rule_set import rule_set
from deltatape.store.sealed import SealedTape
from deltatape.store.shards import ShardedTape, open_recording, recording_of
from deltatape.store.tail import Holds, TapeTail
from deltatape.tape.assemble import Assembler
from deltatape.why.exchange_index import ExchangeIndexer
from deltatape.why.overview import app_of

TELL_NS = 250_000_000
"""The shortest interval of reports to the server, and of looks at tapes that grow."""
_FEW_RUNNING = 50
"""With this many exchanges in progress reports come half as often as `TELL_NS` allows, and with
twice as many a third as often."""
SCAN_NS = 1_000_000_000
"""The shortest interval of searches of the folders."""
_SLICE_NS = 100_000_000
"""How long other tapes are read before tapes that grow get their turn again."""
_RUNNING_SHARE = 0.02
"""The share of the time in which exchanges in progress may be analysed."""
_RUNNING_NS = 50_000_000
"""The most of this time that is saved up."""
_RUNNING_DEBT_NS = 20_000_000
"""The most that an analysis which took longer uses up in advance."""
_MOST_RUNNING = 500
MAX_STARTS = 3
"""After this many starts without an end, a tape is left out."""
_TOGETHER = 1000
"""How many rows of a sealed tape are taken at a time."""
_SELDOM = 20
"""How long to wait before folders are looked through, or a tape is read again: so many times as
long as that took."""
_ID = "utf-8", "backslashreplace"
"""How a name that is no Unicode becomes an id, which pages can send back."""

_Key: TypeAlias = object
"""What tapes that are read as one have in common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """The tapes to show."""

    folders: Sequence[Path] = ()
    """All tapes in them and below."""
    only: Path | None = None
    """This one instead."""

    def tapes(self) -> dict[str, ListedTape]:
        """Return the tapes by their ids: their paths from the folder, or from where it lies."""
        if self.only is not None:
            with suppress(OSError):  # gone
                status = self.only.stat()
                size, modified_ns = status.st_size, status.st_mtime_ns
                tape = ListedTape(path=self.only, size=size, modified_ns=modified_ns)
                return {_id(self.only.name): tape}
            return {}
        found: dict[str, ListedTape] = {}
        for folder in self.folders:
            alone = len(self.folders) == 1
            for tape in list_tapes((folder,)):
                within = tape.path.relative_to(folder)
                found.setdefault(_id(within if alone else Path(folder.name, within)), tape)
        return found


def _id(path: Path | str) -> str:
    return os.fsencode(path).decode(*_ID)


@dataclass(slots=True, eq=False)
class _Unit:
    """Tapes that are read as one: a single one, unless several processes recorded them."""

    tapes: dict[str, TapeState] = field(default_factory=dict)
    """By their ids."""
    waits: bool = False
    """Whether to read it."""
    again_ns: int = 0
    """When it may be read again: one that grows without a recorder is not read all the time."""


@dataclass(slots=True, eq=False)
class _Follower:
    """A tape that is being recorded."""

    unit: _Unit
    state: TapeState
    tail: TapeTail
    indexer: ExchangeIndexer
    assembler: Assembler | None = None
    reading: Iterator[Sequence[Exchange]] | None = None
    """What has not been read of the part that is there."""
    caught_up: bool = False
    running: dict[int, Row] = field(default_factory=dict)
    """The rows of exchanges in progress, by number; the oldest first."""
    grown: set[int] = field(default_factory=set)
    """Exchanges in progress of which records have come since then."""
    apps: dict[str, None] = field(default_factory=dict)
    damage: list[DeltatapeError] = field(default_factory=list)
    """Why it cannot be read on."""


class Indexing:
    """Keeps an index of tapes.

    Args:
        library: which tapes.
        index: where it is.
        settings: the settings of the rules.
        clock: the machine's.
    """

    def __init__(
        self, library: Library, index: Path, settings: Settings, clock: SystemClock
    ) -> None:
        self._library = library
        self._settings = settings
        self._clock = clock
        self._writer = IndexWriter(index, rule_set(settings))
        self._units: dict[_Key, _Unit] = {}
        self._unit_of: dict[str, _Unit] = {}
        self._followed: dict[str, _Follower] = {}
        self._waiting: list[_Unit] = []
        self._reading: Iterator[None] | None = None
        self._read_now: Sequence[Tape] = ()
        """What that reads."""
        self._scan_ns = 0
        self._running_ns = clock.now_ns()
        self._spare_ns = _RUNNING_NS
        """How long exchanges in progress may be analysed now; negative: some took longer."""
        self._known = self._writer.tapes()
        self._told: object = None
        """What was last reported to the server."""

    def close(self) -> None:
        for each in self._followed.values():
            each.tail.close()
        self._writer.close()

    # Which tapes there are.

    def scan(self) -> None:
        """Look through the folders, if it is time to."""
        now_ns = self._clock.now_ns()
        if now_ns < self._scan_ns:
            return
        found = self._library.tapes()
        gone = [state for name, state in self._known.items() if name not in found]
        if gone:
            with self._writer.changing():
                for state in gone:
                    self._forget(state)
        news = [
            state
            for name, listed in found.items()
            if (state := self._seen(name, listed)) != self._known.get(name)
            or name not in self._unit_of
        ]
        if any(state.id not in self._known for state in news):
            with self._writer.changing():
                for state in news:
                    if state.id not in self._known:
                        key = self._writer.put_tape(state)
                        self._known[state.id] = state._replace(key=key)
        for state in news:
            self._take(state._replace(key=self._known[state.id].key))
        if news:
            self._waiting.sort(key=_newest_ns)
        end_ns = self._clock.now_ns()
        self._scan_ns = end_ns + max(SCAN_NS, _SELDOM * (end_ns - now_ns))

    def _seen(self, name: str, listed: ListedTape) -> TapeState:
        """Return what a tape is now; not indexed, unless it is what it was."""
        known = self._known.get(name)
        inode = 0
        with suppress(OSError):
            inode = listed.path.stat().st_ino
        path, size, modified_ns = str(listed.path), listed.size, listed.modified_ns
        if known is None:
            return TapeState(*(0, name, path, size, modified_ns, inode), *(False, False, 0, None))
        present = known._replace(path=path, bytes=size, modified_ns=modified_ns, inode=inode)
        if present == known:
            return known
        same = present.inode == known.inode
        return present._replace(indexed=False, starts=0, recording=known.recording and same)

    def _forget(self, state: TapeState) -> None:
        self._writer.drop_tape(state.key)
        del self._known[state.id]
        unit = self._unit_of.pop(state.id, None)
        if unit is not None:
            del unit.tapes[state.id]
        follower = self._followed.pop(state.id, None)
        if follower is not None:
            follower.tail.close()

    def _take(self, state: TapeState) -> None:
        """Take a tape that is new, has changed, or was indexed by a process before."""
        self._known[state.id] = state
        unit = self._unit_of.get(state.id)
        if unit is None:
            unit = self._units.setdefault(recording_of(state.path) or state.id, _Unit())
            self._unit_of[state.id] = unit
        unit.tapes[state.id] = state
        follower = self._followed.get(state.id)
        if follower is not None:
            if follower.state.inode == state.inode:
                follower.state = state._replace(recording=True)
                with self._writer.changing():
                    self._put(follower.state)
                return
            self._followed.pop(state.id).tail.close()  # another file by that name
        if not state.indexed or state.recording:
            self._wait(unit)

    def _wait(self, unit: _Unit) -> None:
        if not unit.waits:
            unit.waits = True
            self._waiting.append(unit)

    # What there is to do.

    @property
    def busy(self) -> bool:
        """Whether there is something to read at once."""
        now_ns = self._clock.now_ns()
        behind = any(each.reading is not None for each in self._followed.values())
        return (
            self._reading is not None
            or behind
            or any(unit.again_ns <= now_ns for unit in self._waiting)
        )

    def work(self) -> None:
        """Read what has been recorded, then other tapes for a moment."""
        until_ns = self._clock.now_ns() + _SLICE_NS
        for follower in tuple(self._followed.values()):
            self._follow(follower, until_ns)
        while self._clock.now_ns() < until_ns:
            if self._reading is None:
                unit = self._next()
                if unit is None:
                    return
                self._reading = self._begin(unit)
            if next(self._reading, self) is self:
                self._reading = None

    def _next(self) -> _Unit | None:
        """Take the unit with the newest tape of those that may be read now."""
        now_ns = self._clock.now_ns()
        for place in reversed(range(len(self._waiting))):
            if self._waiting[place].again_ns <= now_ns:
                unit = self._waiting.pop(place)
                unit.waits = False
                return unit
        return None

    def _begin(self, unit: _Unit) -> Iterator[None]:
        """Begin to follow the tapes of a unit that are recorded now; read it if none is."""
        recorded = [state for state in unit.tapes.values() if _is_recorded(state)]
        for state in recorded:
            if state.id not in self._followed:
                self._begin_following(unit, state)
        return iter(()) if recorded or not unit.tapes else self._read(unit)

    # Tapes that are complete.

    def _read(self, unit: _Unit) -> Iterator[None]:
        """Read all of a unit, batch by batch."""
        began_ns = self._clock.now_ns()
        states = tuple(unit.tapes.values())
        starts = max(state.starts for state in states) + 1
        with self._writer.changing():
            for state in states:
                self._writer.drop_rows(state.key)
                self._put(state._replace(indexed=False, recording=False, starts=starts))
        problem = None
        apps: dict[str, dict[str, None]] = {state.id: {} for state in states}
        if starts > MAX_STARTS:
            problem = (
                f"left out: the index could not read it {MAX_STARTS} times; deltatape check"
                " says more"
            )
        else:
            try:
                for rows in self._rows(unit, apps):
                    if not rows:  # they come once what follows them is known
                        yield
                        continue
                    with self._writer.changing():
                        for state in states:
                            if state.id not in self._known:  # deleted meanwhile
                                continue
                            own = [row for row in rows if row["tape"] == state.id]
                            self._writer.put_rows(state.key, own)
                    yield
            except (DeltatapeError, OSError) as error:
                problem = _problem(error, states[0])
        with self._writer.changing():
            for state in states:
                if state.id in self._known:
                    done = state._replace(indexed=True, starts=0, recording=False, problem=problem)
                    self._put(done)
                    self._writer.put_apps(state.key, apps[state.id])
        self._read_now = ()
        took_ns = self._clock.now_ns() - began_ns
        unit.again_ns = self._clock.now_ns() + max(SCAN_NS, _SELDOM * took_ns)

    def _rows(self, unit: _Unit, apps: Mapping[str, dict[str, None]]) -> Iterator[list[Row]]:
        """Yield the rows of a unit in batches; of several for an exchange, the last one counts."""
        names = {state.path: state.id for state in unit.tapes.values()}
        first = next(iter(unit.tapes.values()))
        tape = open_recording(first.path)
        alone = isinstance(tape, ShardedTape) and bool(tape.missing)
        self._read_now = tape.shards if isinstance(tape, ShardedTape) else (tape,)
        if isinstance(tape, SealedTape) and tape.sealed.table.summary is not None:
            known = tape.sealed.rows(rule_set(self._settings))
            if known is not None:
                apps[first.id].update(dict.fromkeys(tape.sealed.table.summary.apps))
                while some := [*islice(known, _TOGETHER)]:
                    yield [_object(row, first.id) for row in some]
                return
        indexer = ExchangeIndexer(self._settings, alone=alone)

        def place(number: int) -> str:
            path = tape.place_of(number) if isinstance(tape, ShardedTape) else tape.path
            return names.get(path, first.id)

        def named(rows: Iterable[ExchangeRow]) -> list[Row]:
            return [_object(row, place(row.exchange)) for row in rows]

        damage: list[DeltatapeError] = []
        for batch in batches(_before_damage(tape.exchanges(), damage), body_bytes):
            for exchange in batch:
                _note_app(exchange, apps[place(exchange.number)])
            yield named(indexer.add_all(batch))
        yield named(indexer.end(() if damage else _logs(tape)))
        if damage:
            raise damage[0]

    def _put(self, state: TapeState) -> None:
        """Write what is known of a tape now."""
        self._writer.put_tape(state)
        self._known[state.id] = state
        self._unit_of[state.id].tapes[state.id] = state

    # Tapes that are being recorded.

    def _begin_following(self, unit: _Unit, state: TapeState) -> None:
        try:
            # What is long, as most requests of agents are, must be seen while it is answered.
            tail = TapeTail(state.path, holds=Holds.READS)
        except DeltatapeError:  # gone: the next scan says so
            return
        with self._writer.changing():
            self._writer.drop_rows(state.key)
            state = state._replace(recording=True, indexed=False, starts=0, problem=None)
            self._put(state)
        alone = recording_of(state.path) is not None  # what others record is not known yet
        indexer = ExchangeIndexer(self._settings, live=True, alone=alone)
        self._followed[state.id] = _Follower(unit, state, tail, indexer)

    def _follow(self, follower: _Follower, until_ns: int) -> None:
        """Read on while there is time; end with the recorder."""
        # Asked before reading begins, not within it: what is written until the end is to be read.
        begins = follower.reading is None
        over = begins and follower.caught_up and not _is_recorded(follower.state)
        done = self._read_on(follower, until_ns)
        follower.caught_up = follower.caught_up or done
        if done and follower.damage:
            self._end_following(follower, _problem(follower.damage[0], follower.state))
            follower.unit.again_ns = self._clock.now_ns() + _SELDOM * SCAN_NS
        elif done and over:
            self._end_following(follower, None)

    def _read_on(self, follower: _Follower, until_ns: int) -> bool:
        """Index the exchanges that have ended; return whether that was all."""
        while follower.reading is not None or self._clock.now_ns() < until_ns:
            if follower.reading is None:
                ended = _before_damage(_ended(follower), follower.damage)
                follower.reading = batches(ended, body_bytes)
            batch = next(follower.reading, None)
            if batch is None:
                follower.reading = None
                return True
            for exchange in batch:
                _note_app(exchange, follower.apps)
                follower.running.pop(exchange.number, None)
                follower.grown.discard(exchange.number)
            self._write(follower, follower.indexer.add_all(batch))
            if self._clock.now_ns() >= until_ns:
                return False
        return False

    def _write(self, follower: _Follower, rows: Iterable[ExchangeRow]) -> None:
        named = [_object(row, follower.state.id) for row in rows]
        with self._writer.changing():
            self._writer.put_rows(follower.state.key, named)
            self._writer.put_apps(follower.state.key, follower.apps)

    def _end_following(self, follower: _Follower, problem: str | None) -> None:
        """Index what remains open, and judge what was never answered."""
        state = follower.state
        with suppress(OSError):  # what it is now, so that it is not read anew
            status = os.stat(state.path)  # noqa: PTH116 - shorter
            state = state._replace(bytes=status.st_size, modified_ns=status.st_mtime_ns)
        del self._followed[state.id]
        follower.tail.close()
        if len(follower.unit.tapes) > 1:  # now all of them can be read as one
            self._put(state._replace(recording=False))
            if not any(each in self._followed for each in follower.unit.tapes):
                self._wait(follower.unit)
            return
        assembler = follower.assembler
        if assembler is not None:
            left = [_in_progress(follower, assembler, each) for each in (*assembler.open,)]
            if follower.damage and problem is None:
                problem = _problem(follower.damage[0], state)
            self._write(follower, follower.indexer.add_all(left))
            watch = None
            logs: Iterable[LogEntry] = ()
            if not problem:
                with suppress(DeltatapeError):  # gone
                    tape = open_tape(state.path)
                    watch, logs = tape.watch, _logs(tape)
            self._write(follower, follower.indexer.end(logs, watch))
        with self._writer.changing():
            self._put(state._replace(recording=False, indexed=True, problem=problem))

    def running(self) -> list[Row]:
        """Return rows of the exchanges in progress; some can be slightly outdated."""
        now_ns = self._clock.now_ns()
        spare_ns = self._spare_ns + int((now_ns - self._running_ns) * _RUNNING_SHARE)
        until_ns = now_ns + min(spare_ns, _RUNNING_NS)
        for follower in self._followed.values():
            if follower.assembler is not None and follower.caught_up:
                self._look_at_running(follower, follower.assembler, until_ns)
        self._running_ns = self._clock.now_ns()
        self._spare_ns = max(until_ns - self._running_ns, -_RUNNING_DEBT_NS)
        rows = [row for each in self._followed.values() for row in each.running.values()]
        return sorted(rows, key=lambda row: str(row["at"]), reverse=True)[:_MOST_RUNNING]

    def _look_at_running(self, follower: _Follower, assembler: Assembler, until_ns: int) -> None:
        """Make rows of exchanges in progress that have grown, while there is time."""
        known = follower.running
        for number in [each for each in known if each not in assembler.open]:
            del known[number]
        # Those without a row, then those whose row is oldest.
        for number in (*(each for each in assembler.open if each not in known), *tuple(known)):
            if self._clock.now_ns() >= until_ns:
                return
            if number in follower.grown or follower.tail.is_waiting(number):
                follower.grown.discard(number)
                exchange = _in_progress(follower, assembler, number)
                if exchange.request.line:
                    known.pop(number, None)
                    row = replace(follower.indexer.running(exchange), open=True)
                    known[number] = _object(row, follower.state.id)

    @property
    def in_progress(self) -> int:
        """How many exchanges in progress have a row."""
        return sum(len(each.running) for each in self._followed.values())

    def news(self) -> dict[str, object] | None:
        """Return the news for the server; None if there is none."""
        reading = sum(tape.position for tape in self._read_now)
        running = self.running()
        told = (self._writer.revision, reading, running)
        if told == self._told:
            return None
        self._told = told
        known = self._known.values()
        caught_up = {each.state.id for each in self._followed.values() if each.caught_up}
        done = [state for state in known if state.indexed or state.id in caught_up]
        return {
            "revision": self._writer.revision,
            "indexed": {
                "done": len(done),
                "of": len(known),
                "bytes": {
                    "done": sum(state.bytes for state in done) + reading,
                    "of": sum(state.bytes for state in known),
                },
            },
            "running": running,
        }


def _problem(error: Exception, state: TapeState) -> str:
    """Return why a tape cannot be read, without its name."""
    if isinstance(error, TapeFormatError):
        return f"line {error.line}: {error.problem}" if error.line else error.problem
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error).removeprefix(f"{state.path}: ")  # moved away meanwhile, or not ours to read


def _newest_ns(unit: _Unit) -> int:
    return max((state.modified_ns for state in unit.tapes.values()), default=0)


def _is_recorded(state: TapeState) -> bool:
    """Check whether a recorder is writing a tape now."""
    with suppress(DeltatapeError):
        return open_tape(state.path).recording
    return False


def _ended(follower: _Follower) -> Iterator[Exchange]:
    """Yield each exchange whose end has come onto the tape."""
    for numbered in follower.tail.read():
        if follower.assembler is None:
            assert follower.tail.header is not None  # it precedes any record
            follower.assembler = Assembler(tape=follower.tail.path, header=follower.tail.header)
        follower.grown.add(numbered[1][1])
        yield from follower.assembler.feed((numbered,))


def _in_progress(follower: _Follower, assembler: Assembler, number: int) -> Exchange:
    """Return what is known of an exchange that has no end."""
    released = assembler.feed(follower.tail.release(number))
    for _ in _before_damage(released, follower.damage):
        raise AssertionError("an end does not wait")  # pragma: no cover
    return assembler.exchange(number)


def _object(row: ExchangeRow, tape: str) -> Row:
    """Return a row as pages get it: with the id of its tape, and without secrets."""
    return {**hidden_object(row_object(row)), "tape": tape}


def _before_damage(
    exchanges: Iterable[Exchange], damage: list[DeltatapeError]
) -> Iterator[Exchange]:
    """Yield exchanges up to a damage, which is put aside: those before it count."""
    try:
        yield from exchanges
    except DeltatapeError as error:
        damage.append(error)


def _note_app(exchange: Exchange, apps: dict[str, None]) -> None:
    name = app_of(header(exchange.request.headers, "user-agent") or b"")
    if name:
        apps[name] = None


def _logs(tape: Tape) -> Iterator[LogEntry]:
    """Yield the app's output; reads the tape only when iterated."""
    yield from tape.logs


def library_of(begin: Mapping[str, object]) -> Library:
    """Return the library that the server names."""
    folders, only = begin["folders"], begin["only"]
    assert isinstance(folders, list)
    return Library(folders=[Path(each) for each in folders], only=Path(str(only)) if only else None)


_NICENESS = 10
"""Where there are few cores, streams that are recorded come first, and documents."""


def serve(begin: Mapping[str, object], source: BinaryIO, out: BinaryIO) -> None:
    """Index, and report to the server, until the server ends."""
    settings = begin["settings"]
    assert isinstance(settings, Mapping)
    clock = SystemClock()
    indexing = Indexing(
        library_of(begin), Path(str(begin["index"])), Begin(settings=settings).rules(), clock
    )
    next_ns = 0
    listed = False
    while True:
        wait_s = 0.0 if indexing.busy else TELL_NS / 1e9
        if select.select([source], [], [], wait_s)[0]:
            indexing.close()
            return
        with yielding():
            indexing.scan()
            if listed:
                indexing.work()
            if clock.now_ns() >= next_ns:
                news = indexing.news()
                if news is not None:
                    out.write(json.dumps(news, separators=(",", ":")).encode() + b"\n")
                    out.flush()
                next_ns = clock.now_ns() + int(TELL_NS * (1 + indexing.in_progress / _FEW_RUNNING))
        if not listed:
            listed = True
            os.nice(_NICENESS)  # not before: all of a page waits for the list
