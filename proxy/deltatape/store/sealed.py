"""Reads sealed tapes: any exchange by range, or the whole tape in its own order.

Strategy: a sealed tape has the lines of its journal in another order, and an index with both
orders. `JournalFile` is a virtual file with the journal: it decompresses frames while it is read,
and all code that reads tapes reads it. What the index answers alone (one exchange, the list of
exchanges, the application's output) reads nothing else.

Memory holds a few parts of the index, and `_HELD_BYTES` of frames. No byte is trusted: the size of
a frame's content is limited and known before decompression, and it has a checksum.

Format: docs/sealed.md.
"""

import contextlib
import functools
import hashlib
import io
import os
import weakref
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

import zstandard

from deltatape.errors import TapeFormatError, UsageError
from deltatape.model.exchange_row import ExchangeRow
from deltatape.objects.urls import url_of
from deltatape.store.reader import FoundExchange, Place, Tape, open_regular_file
from deltatape.tape.decode import decode_header, decode_lines, decode_record
from deltatape.tape.fields import MalformedError
from deltatape.tape.record import Header, ReadRecord, Record
from deltatape.tape.sealed import (
    TABLE_BYTES,
    TRAILER_BYTES,
    ZSTD,
    Entry,
    EntryChunk,
    OrderChunk,
    Part,
    Run,
    Stored,
    Table,
    add_part,
    read_entries,
    read_order,
    read_rows,
    read_trailer,
)

_HELD_BYTES = 128 << 20
"""The most bytes of decompressed frames to hold; at least one frame is held."""
_HELD_CHUNKS = 8
_BLOCK = 1 << 16
_MAX_WINDOW = 1 << 27
_HEADER_BYTES = 1 << 16
_COPIED = 1 << 20
_DAMAGED = "sealed, and damaged: "
T = TypeVar("T")


class RangeReader(Protocol):
    """Bytes that are read by range: of a file, or of an object in a store."""

    def size(self) -> int:
        """Return how many bytes there are."""

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes from `offset` on; fewer than `length` only at the end."""


class FileRanges:
    """A file, read by range. It stays open, so it can be renamed or deleted meanwhile.

    Raises:
        UsageError: there is no such file, or it cannot be opened.
    """

    def __init__(self, path: str | Path) -> None:
        with open_regular_file(os.fspath(path)) as file:
            self._fd = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._fd)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def read(self, offset: int, length: int) -> bytes:
        return os.pread(self._fd, length, offset)


class _Cache(OrderedDict[int, T]):
    """The values used last, up to a total size."""

    def __init__(self, most: int, size_of: Callable[[T], int]) -> None:
        super().__init__()
        self._most = most
        self._size_of = size_of
        self._held = 0

    def get_or(self, key: int, make: Callable[[], T]) -> T:
        """Return the value held for a key, or make it and hold it."""
        if key in self:
            self.move_to_end(key)
            return self[key]
        made = make()
        self._held += self._size_of(made)
        while self and self._held > self._most:
            self._held -= self._size_of(self.popitem(last=False)[1])
        self[key] = made
        return made


class SealedFile:
    """The frames and the index of a sealed tape.

    Attributes:
        table: what it holds, and where.

    Args:
        name: the name of the tape, as the user gave it.
        ranges: its bytes.

    Raises:
        TapeFormatError: it is not a sealed tape, or damaged; all methods raise this, too.
    """

    def __init__(self, name: str, ranges: RangeReader) -> None:
        self.name = name
        self._ranges = ranges
        self._frames: _Cache[bytes] = _Cache(_HELD_BYTES, len)
        self._runs: _Cache[list[Run]] = _Cache(_HELD_CHUNKS, lambda _: 1)
        self._entries: _Cache[list[Entry]] = _Cache(_HELD_CHUNKS, lambda _: 1)
        size = ranges.size()
        with self._damage("its end"):
            end = self._read(max(0, size - TRAILER_BYTES), min(size, TRAILER_BYTES))
            at, length = read_trailer(end)
            if at + length > size:
                raise MalformedError("its index is said to be beyond its end")
        with self._damage("the table of its index"):
            self.table = Table.from_json(self._decompressed(at, length, TABLE_BYTES), size)

    @contextlib.contextmanager
    def _damage(self, what: str) -> Iterator[None]:
        try:
            yield
        except (MalformedError, zstandard.ZstdError) as error:
            raise TapeFormatError(self.name, 0, f"{_DAMAGED}{what}: {error}") from error
        except OSError as error:
            raise UsageError(f"{self.name}: {error.strerror or error}") from error

    def _read(self, at: int, length: int) -> bytes:
        data = self._ranges.read(at, length)
        if len(data) != length:
            raise MalformedError(f"{len(data)} bytes at {at} where {length} are expected")
        return data

    def _decompressed(self, at: int, length: int, most: int) -> bytes:
        """Decompress a frame whose head states a content of at most `most` bytes."""
        data = self._read(at, length)
        if not data.startswith(ZSTD):
            raise MalformedError(f"no frame of zstd at byte {at}")
        parameters = zstandard.get_frame_parameters(data)
        if parameters.content_size > most:  # also if it is not said
            raise MalformedError(f"the frame at byte {at} holds more than {most} bytes")
        decoder = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
        return decoder.decompress(data, allow_extra_data=False)

    def _stored(self, stored: Stored) -> bytes:
        data = self._decompressed(stored.at, stored.length, stored.size)
        if len(data) != stored.size:
            raise MalformedError(
                f"the frame at byte {stored.at} holds {len(data)} bytes, not {stored.size}"
            )
        return data

    def frame(self, number: int) -> bytes:
        """Return the lines in a frame."""
        with self._damage(f"frame {number}"):
            return self._frames.get_or(number, lambda: self._stored(self.table.frames[number]))

    def runs(self, chunk: int) -> list[Run]:
        """Return the runs of a section of the journal."""
        found = self.table.order[chunk]
        return self._runs.get_or(chunk, lambda: self._runs_of(chunk, found))

    def _runs_of(self, chunk: int, found: OrderChunk) -> list[Run]:
        table = self.table
        with self._damage("the order of its lines"):
            runs = read_order(self._stored(found.stored), found, table)
            following = table.order[chunk + 1 :][:1]
            end = (
                (following[0].at, following[0].line) if following else (table.size, table.lines + 1)
            )
            if not runs or (runs[-1].at + runs[-1].size, runs[-1].line + runs[-1].lines) != end:
                raise MalformedError("a section of it does not end where the next one begins")
        return runs

    def chunk_at(self, at: int) -> int:
        """Return the index of the chunk of the order that covers a byte of the journal."""
        return bisect_right(self.table.order, at, key=attrgetter("at")) - 1

    def entries(self) -> Iterator[Entry]:
        """Yield the entries of all exchanges, by number."""
        for chunk in self.table.entries:
            yield from self._entries_of(chunk)

    def entry(self, number: int) -> Entry | None:
        """Return the entry of an exchange, if it is on the tape."""
        place = bisect_right(self.table.entries, number, key=attrgetter("first")) - 1
        if place < 0:
            return None
        entries = self._entries.get_or(
            place, lambda: [*self._entries_of(self.table.entries[place])]
        )
        return next((each for each in entries if each.exchange == number), None)

    def _entries_of(self, chunk: EntryChunk) -> Iterator[Entry]:
        with self._damage("its index"):
            yield from read_entries(self._stored(chunk.stored), self.table)

    def rows(self, rules: str) -> Iterator[ExchangeRow] | None:
        """Return the rows of all exchanges, by number; None if other rules made them."""
        return self._rows() if self.table.rules == rules else None

    def _rows(self) -> Iterator[ExchangeRow]:
        for chunk in self.table.entries:
            with self._damage("its index"):
                yield from read_rows(self._stored(chunk.stored), self.name)

    def part(self, part: Part) -> bytes:
        """Return the lines of a part."""
        return self.frame(part.frame)[part.at : part.at + part.size]


class PositionedFile(io.RawIOBase):
    """A read-only file; a subclass reads at `_at` and moves it on, by `readinto`.

    Args:
        size: of the file.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}
        self._at = max(0, base[whence] + offset)
        return self._at


class JournalFile(PositionedFile):
    """The journal of a sealed tape as a read-only file; see `SealedTape.open`."""

    def __init__(self, sealed: SealedFile) -> None:
        super().__init__(sealed.table.size)
        self._sealed = sealed
        self._runs: Sequence[Run] = ()
        self._run = 0
        """The index in `_runs` of the last run read: the next read usually continues there."""

    def readinto(self, buffer: object, /) -> int:
        room = memoryview(buffer).cast("B")  # type: ignore[arg-type]  # as the class demands
        filled = 0
        while filled < len(room) and self._at < self._size:
            data, start, size = self._here()
            size = min(size, len(room) - filled)
            room[filled : filled + size] = memoryview(data)[start : start + size]
            filled += size
            self._at += size
        return filled

    def _here(self) -> tuple[bytes, int, int]:
        """Return the current frame, the offset in it, and the number of bytes from there."""
        sealed, at = self._sealed, self._at
        header = sealed.table.frames[0].size
        if at < header:
            return sealed.frame(0), at, header - at
        run = self._run_at(at)
        into = at - run.at
        return sealed.frame(run.frame), run.offset + into, run.size - into

    def _run_at(self, at: int) -> Run:
        runs = self._runs
        for place in (self._run, self._run + 1):
            if place < len(runs) and runs[place].at <= at < runs[place].at + runs[place].size:
                self._run = place
                return runs[place]
        self._runs = self._sealed.runs(self._sealed.chunk_at(at))
        self._run = bisect_right(self._runs, at, key=attrgetter("at")) - 1
        return self._runs[self._run]


class SealedTape(Tape):
    """A sealed tape. Use `open_tape`, or `open_sealed` for an object in a store."""

    is_sealed = True

    def __init__(self, sealed: SealedFile, header: Header) -> None:
        super().__init__(sealed.name, header)
        self.sealed = sealed

    def open(self) -> BinaryIO:
        """Return the journal: the tape before it was sealed."""
        return io.BufferedReader(JournalFile(self.sealed), _BLOCK)

    @property
    def size(self) -> int:
        return self.sealed.table.size

    @property
    def torn(self) -> int:
        return self.sealed.table.torn

    @functools.cached_property
    def recording(self) -> bool:
        """False: only finished tapes are sealed."""
        return False

    def __len__(self) -> int:
        return self.sealed.table.exchanges

    def numbers(self) -> set[int]:
        return {entry.exchange for entry in self.sealed.entries()}

    def find(self, number: int) -> FoundExchange:
        entry = None if self.sealed.table.damaged else self.sealed.entry(number)
        if entry is None:
            return super().find(number)  # says what is damaged, or which there are
        order = self.sealed.table.order
        first, last = self.sealed.chunk_at(entry.begin), self.sealed.chunk_at(entry.end - 1)
        runs = (run for chunk in range(first, last + 1) for run in self.sealed.runs(chunk))
        exchange = next(self._assembled(self._records_in(runs, number)), None)
        if exchange is None:
            problem = f"{_DAMAGED}exchange {number} has no records"
            raise TapeFormatError(self.path, 0, problem)
        return FoundExchange(exchange, [Place(each.at, each.line) for each in order], first, last)

    def _records_in(
        self, runs: Iterable[Run], number: int
    ) -> Iterator[tuple[int, Record | ReadRecord]]:
        """Yield the records of one exchange in a part of the journal."""
        for run in runs:
            if run.exchange == number:
                data = self.sealed.part(Part(run.frame, run.offset, run.size))
                lines = enumerate(BytesIO(data).readlines(), run.line)
                yield from decode_lines(lines, self._record)

    def _own_records(self) -> Iterator[tuple[int, Record | ReadRecord]]:
        try:
            yield from [*self._rest()]
        except MalformedError:
            yield from super()._own_records()  # says in which line

    def _rest(self) -> Iterator[tuple[int, Record | ReadRecord]]:
        """Yield the records of the tape itself (exchange 0), without line numbers."""
        for part in self.sealed.table.rest:
            for line in BytesIO(self.sealed.part(part)).readlines():
                if line.endswith(b"\n") or not self.torn:
                    record = decode_record(line)
                    if record.exchange == 0:
                        yield 0, record


def open_sealed(name: str, ranges: RangeReader) -> SealedTape:
    """Open a sealed tape that is read by range; reads only its table and header.

    Raises:
        TapeFormatError: it is no sealed tape, or damaged.
        UsageError: it cannot be read.
    """
    sealed = SealedFile(name, ranges)
    try:
        header = decode_header(sealed.frame(0)[:_HEADER_BYTES])
    except MalformedError as error:
        raise TapeFormatError(name, 1, f"no tape: {error}") from error
    return SealedTape(sealed, header)


def verify(tape: SealedTape) -> None:
    """Check a whole sealed tape: its lines, and the places of them in the index.

    Raises:
        TapeFormatError: it does not yield the journal that was sealed.
    """
    table = tape.sealed.table
    with tape.open() as journal:
        digest = digest_of(journal)
    if digest != table.sha256:
        problem = "its lines are not those that were sealed: another sha256"
        raise TapeFormatError(tape.path, 0, f"{_DAMAGED}{problem}")
    found: dict[int, tuple[int, int, list[Part]]] = {}
    for chunk in range(len(table.order)):
        for run in tape.sealed.runs(chunk):
            begin, _, parts = found.get(run.exchange, (run.at, 0, []))
            add_part(parts, Part(run.frame, run.offset, run.size))
            found[run.exchange] = (begin, run.at + run.size, parts)
    rest = found.pop(0, (0, 0, []))[2]
    same = rest == [*table.rest] and len(found) == table.exchanges
    entries = 0
    for entry in tape.sealed.entries():
        entries += 1
        same &= found.get(entry.exchange) == (entry.begin, entry.end, [*entry.parts])
    if not same or entries != len(found):
        problem = "its index says of exchanges that they are where they are not"
        raise TapeFormatError(tape.path, 0, f"{_DAMAGED}{problem}")


def digest_of(journal: BinaryIO) -> str:
    """Return the SHA-256 of a file, read to its end."""
    digest = hashlib.sha256()
    while data := journal.read(_COPIED):
        digest.update(data)
    return digest.hexdigest()


def is_sealed(path: Path) -> bool:
    """Check whether a file ends as sealed tapes do.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        if file.read(len(ZSTD)) != ZSTD:
            return False
        file.seek(-min(TRAILER_BYTES, file.seek(0, os.SEEK_END)), os.SEEK_END)
        try:
            read_trailer(file.read())
        except MalformedError:
            return False
    return True


def sealed_rows(path: str | Path, rules: str) -> Iterator[ExchangeRow] | None:
    """Return the rows in the index of a sealed tape, by number.

    None: the tape is not sealed, or its rows were made by other rules (see `rule_set`).

    Raises:
        TapeFormatError: the tape is damaged; also while they are read.
        UsageError: there is no such file, or it cannot be opened.
    """
    name = os.fspath(path)
    if (url := url_of(name)) is not None:
        from deltatape.objects.urls import open_object  # noqa: PLC0415 - few are in a store

        ranges = open_object(url)
        sealed = ranges.read(0, len(ZSTD)) == ZSTD
        return SealedFile(url, ranges).rows(rules) if sealed else None
    with open_regular_file(name) as file:
        if file.read(len(ZSTD)) != ZSTD:
            return None
    return SealedFile(name, FileRanges(name)).rows(rules)
