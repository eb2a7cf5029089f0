"""Reads tapes: lazily, in constant memory, trusting no byte.

Strategy: a `Tape` holds a path and a header; every method reads the file once. How the tape ends
(`stop`, a torn line) is read from its end first, so that the first exchanges already know it. Where
one exchange is wanted, blocks of the file without any of its lines are not split into lines. A
sealed tape is read by the same methods, as the file that it was before (`sealed`).

A torn last line is the trace of a crash, not an error. Any other damage is a `TapeFormatError` that
names file and line.
"""

import fcntl
import functools
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from io import BytesIO
from itertools import compress
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias

from deltatape.errors import TapeFormatError, UsageError, did_you_mean
from deltatape.model.exchange import Exchange
from deltatape.model.tape_summary import ClientChange, LogEntry, TapeSummary
from deltatape.objects.urls import url_of
from deltatape.tape.assemble import NO_PART, Assembler, Numbered, assemble
from deltatape.tape.decode import CODES, decode_header, decode_lines, decode_record
from deltatape.tape.fields import MalformedError
from deltatape.tape.payload import ClientRecord, ClientState, LogLine, ParsedAs, Stop
from deltatape.tape.record import Header, ReadRecord, Record
from deltatape.tape.sealed import ZSTD

MAX_LINE = 16 << 20
"""The longest line that is read: a record holds at most 1 MiB, each byte of it at most 6 long."""

_BLOCK = 1 << 16
_LARGE = 16 << 20
"""How many bytes of a tape can be searched line by line without delay."""

_Batch: TypeAlias = tuple[Sequence[int], Sequence[bytes]]
"""Lines, each with its line feed if it has one, and before them their numbers."""

_CODES_OF_EXCHANGES = frozenset(CODES) - {
    kind.code for kind in (ParsedAs, ClientRecord, LogLine, Stop)
}
_LONGEST_START = 64
"""Bytes of a line within which its code ends, as recorders write it."""
_START = re.compile(rb'\[[0-9]+,([0-9]{1,19}),"([a-z-]+)",')
"""The start of every line as we write it; lines with another start are parsed in full."""
_REQUEST = re.compile(rb'\n(\[[0-9]+,([0-9]{1,19}),"request",)')
"""The start of an exchange, as recorders write it."""
_OTHERS = rb'\n(?!\Z|\[[0-9]+,(?!%d,)[0-9]{1,19},"[a-z-]+",)'
"""The start of a line that is not known to be of another exchange than a certain one."""


class Place(NamedTuple):
    """Where whole lines begin in a tape."""

    at: int
    """In bytes."""
    line: int
    """The number of the first line, from 1."""


class FoundExchange(NamedTuple):
    """An exchange and its place on its tape."""

    exchange: Exchange
    places: Sequence[Place]
    """The blocks of the file that were read to find it, from the first on."""
    start: int
    """The index in `places` of the block with its first record."""
    end: int
    """The index in `places` of the block with its last record."""


class Tape:
    """A tape. Use `open_tape`.

    Iterating gives its exchanges, `tape[3]` is the exchange number 3 (x.tape#3), `len` counts.

    Attributes:
        position: how many bytes `exchanges` has read so far.
    """

    is_sealed = False

    def __init__(self, path: str, header: Header) -> None:
        self.path = path
        self.header = header
        self.position = 0

    def open(self) -> BinaryIO:
        """Open the lines for reading, from the header on.

        Raises:
            UsageError: there is no such file any more, or it cannot be opened.
        """
        return open_regular_file(self.path)

    @property
    def size(self) -> int:
        """The size of all lines, in bytes."""
        return Path(self.path).stat().st_size

    @property
    def volatile(self) -> tuple[str, ...]:
        """Return what may differ in requests of a replay: see `match.volatile`."""
        return self.header.volatile

    def __iter__(self) -> Iterator[Exchange]:
        return self.exchanges()

    def __len__(self) -> int:
        """Return how many exchanges are on the tape, unfinished ones included."""
        return len(self.numbers())

    def __getitem__(self, number: int) -> Exchange:
        """Return the exchange with this number, counted from 1, without keeping others in memory.

        Raises:
            UsageError: the tape has no such exchange.
            TapeFormatError: the tape is damaged before the end of that exchange.
        """
        return self.find(number).exchange

    def find(self, number: int) -> FoundExchange:
        """Return the exchange with this number, and its place; see `__getitem__`.

        On a large tape, lines that are probably before it are not looked at first, nor is damage
        among them.
        """
        for start in dict.fromkeys((self._place_before(number), 0)):
            found = self._found(number, start)
            if found is not None and (found.exchange.request.line or not start):
                return found
        numbers = self.numbers()
        has = f"it has {min(numbers)} to {max(numbers)}" if numbers else "it has none"
        raise UsageError(f"{self.path}#{number}: no such exchange on the tape; {has}")

    def _found(self, number: int, start: int) -> FoundExchange | None:
        """Look for an exchange from the line on that begins at byte `start`."""
        places: list[Place] = []
        blocks: list[int] = []

        def records() -> Iterator[tuple[int, Record | ReadRecord]]:
            for place, data in line_blocks(self):
                places.append(place)
                if place.at + len(data) > start:
                    for numbered in self._records_of(number, place, data):
                        blocks.append(len(places) - 1)
                        yield numbered

        for exchange in self._assembled(records()):
            return FoundExchange(exchange, places, blocks[0], blocks[-1])
        return None

    def _place_before(self, number: int) -> int:
        """Return a byte that an exchange begins at or after; 0 if that is not clear.

        Recorders number exchanges in the order of their requests, so that half of what is left can
        be excluded each time.
        """
        low, high = 0, self.size
        if high <= _LARGE:
            return 0
        with self.open() as file:
            while high - low > _BLOCK:
                middle = (low + high) // 2
                request = _next_request(file, middle, high)
                if request is None or request[1] > number:
                    high = middle
                else:
                    low = request[0]
        return low

    def records_in(
        self, only: AbstractSet[int], place: Place, data: bytes
    ) -> Iterator[tuple[int, Record | ReadRecord]]:
        """Yield the records of some exchanges in a block, each with the number of its line.

        Args:
            only: the numbers of the exchanges; 0 is the tape itself.
            place: the place of the block.
            data: the block; see `line_blocks`.
        """
        for batch in _batches(self.path, place, data):
            lines = zip(*_lines_of_exchanges(only, *batch), strict=True)
            for numbered in decode_lines(lines, self._record):
                if numbered[1][1] in only:
                    yield numbered

    def records(self) -> Iterator[Numbered]:
        """Every record with its line number, in order.

        Raises:
            TapeFormatError: the tape is damaged; raised at the damaged place.
        """
        for number, line in lines_of(self):
            for record in self._record(number, line):
                yield number, record

    def exchanges(self) -> Iterator[Exchange]:
        """Yield each exchange as it ends, then the unfinished ones; only open ones are in memory.

        After all of them were read, `logs` and `clients` need no second pass if the tape has none.

        Raises:
            TapeFormatError: the tape is damaged; raised at the damaged place.
        """
        own: set[type] = set()
        yield from self._assembled(self._every_record(), own)
        if LogLine not in own and not self.recording:
            self.logs = ()
        if ClientRecord not in own and not self.recording:
            self.clients = ()

    def latest(self, size: int) -> Iterator[Exchange]:
        """Yield the exchanges that began and ended in the last `size` bytes, as they ended.

        Raises:
            TapeFormatError: the tape is damaged there.
        """
        assembler = Assembler(tape=self.path, header=self.header)
        for place, data in line_blocks(self, _place_before_end(self, size)):
            for batch in _batches(self.path, place, data):
                records = decode_lines(zip(*batch, strict=True), self._record)
                yield from (each for each in assembler.feed(records) if each.request.line)

    @functools.cached_property
    def clients(self) -> tuple[ClientChange, ...]:
        """When clients connected and left, up to the first call.

        Raises:
            TapeFormatError: the tape is damaged.
        """
        return tuple(changes_of(self._own_records()))

    @functools.cached_property
    def logs(self) -> tuple[LogEntry, ...]:
        """The program's output up to the first call; reads the whole tape.

        Raises:
            TapeFormatError: the tape is damaged.
        """
        return tuple(entries_of(self._own_records()))

    @functools.cached_property
    def recording(self) -> bool:
        """Whether a recorder was still writing this tape at the first call."""
        with open_regular_file(self.path) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            except OSError:  # a file system without locks
                return False
        return False

    @property
    def stopped(self) -> bool:
        """Whether the recorder ended the tape in good order."""
        return self.stopped_ns is not None

    @property
    def stopped_ns(self) -> int | None:
        """When the recorder stopped, if the tape's last whole record says so."""
        return self.watch.until_ns if self.watch.stop is not None else None

    @property
    def torn(self) -> int:
        """The size of an incomplete record at the end; 0 if there is none."""
        return self._ending[1]

    @functools.cached_property
    def watch(self) -> TapeSummary:
        """How long the recorder is known to have run, and why it stopped.

        While it is being recorded, this is as of the first call.
        """
        recording = self.recording  # asked first: what ends meanwhile must not look like a crash
        last, _ = self._ending
        stop = last.payload if last and last.exchange == 0 else None
        ended = stop if isinstance(stop, Stop) else None
        return TapeSummary(
            until_ns=last.t_ns if last else 0,
            stop=ended.reason if ended else None,
            exit_code=ended.exit_code if ended else None,
            recording=recording,
        )

    @functools.cached_property
    def _ending(self) -> tuple[Record | None, int]:
        """Return the last complete record, and the size of an incomplete one after it."""
        with self.open() as file:
            last, rest = _last_lines(file)
        torn = len(rest)
        if rest and _try_record(rest) is not None:
            last, torn = rest, 0
        return _try_record(last), torn

    def numbers(self) -> set[int]:
        """Return the numbers of the exchanges that are on the tape; reads all of it."""
        numbers = set()
        for number, line in lines_of(self):
            start = _START.match(line)
            if start is not None and line.endswith(b"\n"):  # a torn line is no record
                numbers.add(int(start[1]) if start[2].decode() in _CODES_OF_EXCHANGES else 0)
            else:
                numbers.update(
                    record.exchange
                    for record in self._record(number, line)
                    if not isinstance(record.payload, NO_PART)
                )
        return numbers - {0}

    def _assembled(
        self, records: Iterable[tuple[int, Record | ReadRecord]], own: set[type] | None = None
    ) -> Iterator[Exchange]:
        return assemble(
            records,
            tape=self.path,
            header=self.header,
            stopped_ns=self.stopped_ns,
            watch=self.watch,
            own=own,
        )

    def _every_record(self) -> Iterator[tuple[int, Record | ReadRecord]]:
        for place, data in line_blocks(self):
            self.position = place.at + len(data)
            for batch in _batches(self.path, place, data):
                yield from decode_lines(zip(*batch, strict=True), self._record)

    def _own_records(self) -> Iterator[tuple[int, Record | ReadRecord]]:
        for place, data in line_blocks(self):
            yield from self._records_of(0, place, data)

    def _records_of(
        self, number: int, place: Place, data: bytes
    ) -> Iterator[tuple[int, Record | ReadRecord]]:
        """Yield the records of one exchange in a block; most blocks have none."""
        if re.search(_OTHERS % number, b"\n" + data):
            yield from self.records_in({number}, place, data)

    def _record(self, number: int, line: bytes) -> Iterator[Record]:
        """Yield the record of a line, unless it is incomplete."""
        try:
            record = decode_record(line)
        except MalformedError as error:
            if line.endswith(b"\n"):
                raise TapeFormatError(self.path, number, str(error)) from error
            return
        yield record


def open_tape(path: str | Path) -> Tape:
    """Return the tape at `path`, or at the URL of a store; only its header is read now.

    Raises:
        UsageError: there is no such file, or it cannot be opened.
        TapeFormatError: it is no tape, or of a version that this deltatape does not read.
    """
    name = os.fspath(path)
    if (url := url_of(name)) is not None:
        from deltatape.store.stored import open_stored  # noqa: PLC0415 - few are in a store

        return open_stored(url)
    with open_regular_file(name) as file:
        line = file.readline(_BLOCK)
    if line.startswith(ZSTD):
        from deltatape.store.sealed import FileRanges, open_sealed  # noqa: PLC0415 - few are sealed

        return open_sealed(name, FileRanges(name))
    return Tape(name, read_header(name, line))


def read_header(name: str, line: bytes) -> Header:
    """Return the header of a tape by its first line.

    Raises:
        TapeFormatError: it is none.
    """
    if not line:
        raise TapeFormatError(name, 0, "empty; a tape starts with a header line")
    try:
        return decode_header(line)
    except MalformedError as error:
        what = "no tape" if line.endswith(b"\n") else "no tape, or one cut off in its header"
        raise TapeFormatError(name, 1, f"{what}: {error}") from error


def open_regular_file(name: str) -> BinaryIO:
    """Open a tape for reading.

    Raises:
        UsageError: there is no such file, it is a folder or a special file, or cannot be opened.
    """
    path = Path(name)
    try:
        # Opening a named pipe would wait for a writer.
        if not stat.S_ISREG(path.stat().st_mode):
            kind = "a folder" if path.is_dir() else "no regular file"
            raise UsageError(f"{name}: is {kind}; name a tape")
        return path.open("rb")
    except FileNotFoundError as error:
        near = did_you_mean(path.name, _names_beside(path))
        raise UsageError(f"{name}: {error.strerror}; name a tape.{near}".rstrip(".")) from error
    except PermissionError as error:
        raise UsageError(f"{name}: {error.strerror}") from error
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}; name a tape") from error
    except ValueError as error:  # a NUL in the name
        raise UsageError(f"{name!a}: {error}; name a tape") from error


def open_lines(name: str) -> BinaryIO:
    """Open the lines of a tape for reading, also where it has no header yet.

    Raises: see `open_tape`.
    """
    file = open_regular_file(name)
    # Past the buffer, which would keep what follows as it is now: a tail reads it later.
    if os.pread(file.fileno(), len(ZSTD), 0) == ZSTD:
        file.close()
        return open_tape(name).open()
    return file


def _names_beside(path: Path) -> list[str]:
    try:
        return os.listdir(path.parent)  # noqa: PTH208 - the names alone
    except OSError:
        return []


def changes_of(records: Iterable[tuple[int, Record | ReadRecord]]) -> Iterator[ClientChange]:
    """Yield when clients connected and left, as `records` tell."""
    for _, (t_ns, _, content) in records:
        if isinstance(content, ClientRecord):
            opened = content.state is ClientState.OPENED
            yield ClientChange(t_ns=t_ns, connection=content.connection, opened=opened)


def entries_of(records: Iterable[tuple[int, Record | ReadRecord]]) -> Iterator[LogEntry]:
    """Yield the lines that the program printed, as `records` tell."""
    for _, (t_ns, _, content) in records:
        if isinstance(content, LogLine):
            yield LogEntry(t_ns=t_ns, stream=content.stream, line=content.line)


def lines_of(tape: Tape) -> Iterator[tuple[int, bytes]]:
    """Yield the lines after the header, with their numbers."""
    for place, data in line_blocks(tape):
        for batch in _batches(tape.path, place, data):
            yield from zip(*batch, strict=True)


def line_blocks(tape: Tape, start: Place | None = None) -> Iterator[tuple[Place, bytes]]:
    """Yield the tape from `start` on, or after the header, in blocks of whole lines.

    The last one may end within a line.

    Raises:
        TapeFormatError: a line is too long.
    """
    with tape.open() as file:
        at, line = start or (len(file.readline(MAX_LINE)), 2)
        file.seek(at)
        rest = b""
        # A line that is longer than a block is read in steps that double, so that joins stay cheap.
        while len(data := rest + file.read(max(_BLOCK, len(rest)))) > len(rest):
            end = data.rfind(b"\n") + 1
            data, rest = data[:end], data[end:]
            if data:
                yield Place(at, line), data
            at += len(data)
            line += len(BytesIO(data).readlines())  # six times quicker than to count the line feeds
            if len(rest) > MAX_LINE:
                raise _too_long(tape.path, line)
        if rest:
            yield Place(at, line), rest


def _next_request(file: BinaryIO, at: int, end: int) -> tuple[int, int] | None:
    """Return where the next exchange begins between two bytes, and its number."""
    file.seek(at)
    data = b""
    while at < end and (block := file.read(min(_BLOCK, end - at))):
        data = data[-_LONGEST_START:] + block
        request = _REQUEST.search(data)
        at += len(block)
        if request is not None:
            return at - len(data) + request.start(1), int(request[2])
    return None


def _place_before_end(tape: Tape, size: int) -> Place | None:
    """Return the first line within the last `size` bytes; None: all lines are."""
    with tape.open() as file:
        at, line = file.seek(0, os.SEEK_END) - size, 1
        file.seek(0)
        if at <= 0:
            return None
        while (left := at - file.tell()) > 0:
            line += file.read(min(_BLOCK, left)).count(b"\n")
        file.readline(MAX_LINE)
        return Place(file.tell(), line + 1)


def _batches(name: str, place: Place, data: bytes) -> Iterator[_Batch]:
    """Yield the lines of a block, up to one that is too long.

    Raises:
        TapeFormatError: a line is too long.
    """
    lines = BytesIO(data).readlines()
    good = len(lines)
    if max(map(len, lines)) > MAX_LINE:
        good = next(at for at, line in enumerate(lines) if len(line) > MAX_LINE)
    yield range(place.line, place.line + good), lines[:good]
    if good < len(lines):
        raise _too_long(name, place.line + good)


def _too_long(name: str, line: int) -> TapeFormatError:
    problem = f"longer than {MAX_LINE} bytes, the most that a line may have"
    return TapeFormatError(name, line, problem)


def _lines_of_exchanges(
    only: AbstractSet[int], numbers: Sequence[int], lines: Sequence[bytes]
) -> _Batch:
    """Return the lines of some exchanges, and lines that must be decoded to know."""
    spelled = {b"%d" % number for number in only}
    starts = map(_START.match, lines)
    matching = [start is None or start[1] in spelled for start in starts]
    return tuple(compress(numbers, matching)), tuple(compress(lines, matching))


def _last_lines(file: BinaryIO) -> tuple[bytes, bytes]:
    """Return the last line with a line feed, and the bytes after it."""
    at = file.seek(0, os.SEEK_END)
    tail = b""
    while at and tail.count(b"\n") < 2 and len(tail) < 2 * MAX_LINE:  # noqa: PLR2004
        step = min(max(_BLOCK, len(tail)), at)  # doubles, so that the joins stay cheap
        at -= step
        file.seek(at)
        tail = file.read(step) + tail
    whole, feed, rest = tail.rpartition(b"\n")
    if not (feed or at):  # the header alone
        return b"", b""
    return whole.rpartition(b"\n")[2], rest


def _try_record(line: bytes) -> Record | None:
    try:
        return decode_record(line)
    except MalformedError:
        return None
