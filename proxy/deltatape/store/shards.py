"""Reads the tapes of a recording that several processes made as one tape.

Each process writes tapes of its own, and the requests of a conversation come to any of them. Their
times count from the same instant and their exchanges are numbered together, so that the tapes of a
folder are merged unchanged. Format: recordings/README.md, "Shards".
"""

import contextlib
import functools
import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO

from deltatape.errors import DeltatapeError, UsageError
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Finding
from deltatape.model.tape_summary import ClientChange, LogEntry
from deltatape.objects.urls import url_of
from deltatape.printable import count
from deltatape.store.listing import list_tapes
from deltatape.store.names import tapes_in
from deltatape.store.reader import Tape, open_tape


class ShardedTape(Tape):
    """All tapes of a recording, under the path of the one that was opened.

    Its exchanges say that they are on that one, since rules ask whether two are on the same tape;
    `on_its_tape` tells where a finding is.
    """

    def __init__(self, opened: Tape, others: Sequence[Tape], missing: Sequence[int]) -> None:
        super().__init__(opened.path, opened.header)
        self.shards = (opened, *others)
        self.missing = tuple(missing)
        """The processes without a main tape."""
        self._places: dict[int, str] = {}

    def open(self) -> BinaryIO:
        return self.shards[0].open()

    @property
    def size(self) -> int:
        return self.shards[0].size

    @property
    def recording(self) -> bool:
        return self.shards[0].recording

    @property
    def volatile(self) -> tuple[str, ...]:
        """See `Tape.volatile`; of all shards."""
        return tuple(dict.fromkeys(each for shard in self.shards for each in shard.volatile))

    @property
    def note(self) -> str:
        """What a user should know about it, in one line."""
        if self.missing:
            shard = self.header.shard
            assert shard is not None
            gone = ", ".join(map(str, self.missing))
            return (
                f"{self.path}: a shard of a recording by {shard.count} workers; those of worker"
                f" {gone} are not in its folder, so what the app did between requests is not judged"
            )
        others = [Path(each.path).name for each in self.shards[1:]]
        if not others:  # such as one that requests named, which came to one worker only
            return f"{self.path}: the only tape of its recording by that name"
        shown = ", ".join(others[:_SHOWN])
        more = f" and {count(len(others) - _SHOWN, 'other')}" if len(others) > _SHOWN else ""
        return f"{self.path}: read together with {shown}{more}, of the same recording"

    def exchanges(self) -> Iterator[Exchange]:
        for exchange in heapq.merge(*map(Tape.exchanges, self.shards), key=_ended_ns):
            yield self._moved(exchange)

    def _moved(self, exchange: Exchange) -> Exchange:
        self._places[exchange.number] = exchange.tape
        # Nobody knows whether an app was silent that may have gone on elsewhere.
        watch = None if self.missing else exchange.watch
        return replace(exchange, tape=self.path, watch=watch)

    def __len__(self) -> int:
        return sum(map(len, self.shards))

    def __getitem__(self, number: int) -> Exchange:
        for shard in self.shards:
            with contextlib.suppress(UsageError):
                return self._moved(shard[number])
        numbers = sorted(set().union(*(each.numbers() for each in self.shards)))
        has = f"it has {numbers[0]} to {numbers[-1]}" if numbers else "it has none"
        raise UsageError(f"{self.path}#{number}: no such exchange in the recording; {has}")

    @functools.cached_property
    def clients(self) -> tuple[ClientChange, ...]:
        """See `Tape.clients`; each process counts its connections from 1."""
        changes = (
            replace(change, connection=change.connection * len(self.shards) + place)
            for place, shard in enumerate(self.shards)
            for change in shard.clients
        )
        return tuple(sorted(changes, key=attrgetter("t_ns")))

    @functools.cached_property
    def logs(self) -> tuple[LogEntry, ...]:
        return tuple(heapq.merge(*(each.logs for each in self.shards), key=attrgetter("t_ns")))

    def place_of(self, number: int) -> str:
        """Return the path of the tape that an exchange is on which was read before."""
        return self._places.get(number, self.path)

    def on_its_tape(self, finding: Finding) -> Finding:
        """Return a finding on an exchange that was read before, with the tape that it is on."""
        against = finding.against
        if against is not None:
            against = replace(against, tape=self.place_of(against.exchange))
        return replace(finding, tape=self.place_of(finding.exchange), against=against)


_SHOWN = 3
"""How many other tapes of the recording a note names."""


def _ended_ns(exchange: Exchange) -> float:
    return math.inf if exchange.end is None else exchange.end.t_ns


def open_recording(path: str | Path) -> Tape:
    """Return the tape at `path`, as a `ShardedTape` with the others of its recording if it is one.

    Raises: see `open_tape`.
    """
    tape = open_tape(path)
    shard = tape.header.shard
    if shard is None:
        return tape
    every = {tape.header.id: (tape, shard)}  # a redacted copy has the id of its original
    for other in _beside(tape):
        if other.header.shard is not None and other.header.shard.recording == shard.recording:
            every.setdefault(other.header.id, (other, other.header.shard))
    main = {each.index for _, each in every.values() if each.name is None}
    missing = [index for index in range(1, shard.count + 1) if index not in main]
    own = [other for other, each in every.values() if each.name == shard.name]
    return ShardedTape(tape, own[1:], missing)


def _beside(tape: Tape) -> Iterator[Tape]:
    """Yield the other tapes of the folder that can be read."""
    folder = Path(tape.path).parent
    stored = url_of(folder) is not None
    for path in (each.path for each in list_tapes((folder,))) if stored else tapes_in(folder):
        with contextlib.suppress(DeltatapeError):
            if path != Path(tape.path) and not path.is_symlink():
                yield open_tape(path)


def recording_of(path: str | Path) -> tuple[Path, str, str | None] | None:
    """Return the same value for all shards of a recording; None if the tape is no shard.

    It consists of their folder, the id of the recording and the name that requests gave the tape.
    """
    with contextlib.suppress(DeltatapeError):
        shard = open_tape(path).header.shard
        return None if shard is None else (Path(path).parent, shard.recording, shard.name)
    return None
