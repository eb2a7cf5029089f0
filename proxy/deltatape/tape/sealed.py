"""The format of sealed tapes, without files and compression: the index as bytes, and back.

A sealed tape has the lines of a tape, its *journal*, grouped by conversation in frames of zstd.
After them, an index has the place of each exchange and the order of the lines. `store.sealed`
reads it, `store.packing` writes it. The index is untrusted input, like the rest of a tape.

Format: docs/sealed.md.
"""

import json
import struct
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, NamedTuple

from deltatape.model.exchange import EndReason
from deltatape.model.exchange_row import ExchangeRow, Mark, ShownFinding, WorstFinding
from deltatape.model.finding import Blame, Confidence, Severity
from deltatape.model.token_usage import TokenCount
from deltatape.tape.fields import MAX_INT, Fields, MalformedError, seen

ZSTD = b"\x28\xb5\x2f\xfd"
"""The first bytes of a frame of zstd, and so of every sealed tape."""
VERSION = 1
FRAME_BYTES = 64 << 20
"""The most bytes of lines in a frame, and so in memory when one exchange is read."""
CHUNK_BYTES = 16 << 20
"""The most uncompressed bytes of a part of the index."""
TABLE_BYTES = 64 << 20
"""The most uncompressed bytes of the table."""

_SKIPPABLE = 0x184D2A5D
_SKIPPED = struct.Struct("<II")
_TRAILER = struct.Struct("<QII8s")
_MAGIC = b"TAPESEAL"
TRAILER_BYTES = _SKIPPED.size + _TRAILER.size


class Stored(NamedTuple):
    """A frame of zstd in the file."""

    at: int
    length: int
    size: int
    """Bytes of its content, uncompressed."""


class Part(NamedTuple):
    """Consecutive lines of one exchange in a frame."""

    frame: int
    """Counted from 0."""
    at: int
    """In the frame, without compression."""
    size: int


class EntryChunk(NamedTuple):
    """The place of the entries of some exchanges."""

    stored: Stored
    first: int
    """The lowest number of an exchange in it."""
    last: int
    """The highest number of an exchange in it."""
    exchanges: int
    """How many there are."""


class OrderChunk(NamedTuple):
    """Where a sealed tape stores the order of the lines of one section of its journal."""

    stored: Stored
    at: int
    """The offset of the section in the journal."""
    line: int
    """The number of its first line."""


class Run(NamedTuple):
    """Consecutive lines of one exchange in the journal."""

    at: int
    """In the journal."""
    line: int
    """The number of the first line."""
    lines: int
    size: int
    exchange: int
    """0: lines of the tape itself, or of no exchange on the tape."""
    frame: int
    offset: int
    """In the frame, without compression."""


def add_part(parts: list[Part], part: Part) -> None:
    """Append a part of an exchange; merge it with the last one if it follows that directly."""
    if parts and (parts[-1].frame, parts[-1].at + parts[-1].size) == (part.frame, part.at):
        part = Part(part.frame, parts[-1].at, parts[-1].size + part.size)
        parts.pop()
    parts.append(part)


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedSummary:
    """The values that a list of tapes shows of a sealed one."""

    apps: tuple[str, ...]
    models: tuple[str, ...]
    findings: int
    worst: Mapping[str, object] | None
    """The finding that decides the verdict, as documents show it, without its tape."""

    def to_json(self) -> object:
        return {
            "apps": self.apps,
            "models": self.models,
            "findings": self.findings,
            "worst": self.worst,
        }

    @classmethod
    def from_json(cls, value: object) -> "SealedSummary":
        """The inverse of `to_json`.

        Raises:
            MalformedError: it is no summary.
        """
        read = Fields.read(value)
        worst = read.of.get("worst")
        if worst is not None:
            try:
                worst_finding(Fields.read(worst).of)
            except (ValueError, KeyError, TypeError) as error:
                raise MalformedError(f'"worst" is {seen(worst)}: {error!r}') from error
        return cls(
            apps=_texts(read, "apps"),
            models=_texts(read, "models"),
            findings=read.number("findings"),
            worst=None if worst is None else Fields.read(worst).of,
        )


def _texts(read: Fields, name: str) -> tuple[str, ...]:
    value = read.of.get(name)
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    raise MalformedError(f'"{name}" is {seen(value)}: a list of strings is expected')


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The table of a sealed tape: its contents and their places."""

    tool: str
    """The program that sealed it."""
    rules: str
    """The version of the rules that made the rows of its entries; "" if it has no rows."""
    damaged: bool
    """Whether the journal has a line that is no record, or ends in one without line feed. Then what
    an exchange is shows only when all lines are read."""
    size: int
    """Bytes of the journal."""
    lines: int
    torn: int
    """The number of bytes after its last record."""
    sha256: str
    exchanges: int
    frames: tuple[Stored, ...]
    """The first one holds the header line."""
    entries: tuple[EntryChunk, ...]
    """In the order of the numbers of their exchanges."""
    order: tuple[OrderChunk, ...]
    rest: tuple[Part, ...]
    """The lines that belong to no exchange, in order."""
    summary: SealedSummary | None = None
    """By the same rules as the rows; None where there are no rows."""

    def to_json(self) -> bytes:
        """Return the table as JSON."""
        table = {
            "sealed": VERSION,
            "tool": self.tool,
            "rules": self.rules,
            "damaged": self.damaged,
            "journal": {
                "bytes": self.size,
                "lines": self.lines,
                "torn": self.torn,
                "sha256": self.sha256,
            },
            "exchanges": self.exchanges,
            "frames": self.frames,
            "entries": [[*each.stored, *each[1:]] for each in self.entries],
            "order": [[*each.stored, *each[1:]] for each in self.order],
            "rest": self.rest,
            **({} if self.summary is None else {"summary": self.summary.to_json()}),
        }
        return json.dumps(table, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, data: bytes, size: int) -> "Table":
        """The inverse of `to_json`; keys that are not known are ignored.

        Args:
            data: what was read.
            size: the size of the file, into which the table points.

        Raises:
            MalformedError: it is no table, or points elsewhere.
        """
        read = Fields.read(_value(data))
        if read.of.get("sealed") != VERSION:
            version = seen(read.of.get("sealed"))
            raise MalformedError(f"version {version} of sealed tapes; this deltatape reads 1")
        journal = Fields.read(read.of.get("journal"))
        frames = tuple(map(Stored._make, _numbers(read, "frames", 3)))
        entries = [
            EntryChunk(Stored(*each[:3]), *each[3:]) for each in _numbers(read, "entries", 6)
        ]
        order = [OrderChunk(Stored(*each[:3]), *each[3:]) for each in _numbers(read, "order", 5)]
        found = cls(
            tool=read.text("tool", ""),
            rules=read.text("rules", ""),
            damaged=read.flag("damaged"),
            size=journal.number("bytes"),
            lines=journal.number("lines"),
            torn=max(0, journal.maybe_number("torn") or 0),
            sha256=journal.text("sha256"),
            exchanges=read.number("exchanges"),
            frames=frames,
            entries=tuple(entries),
            order=tuple(order),
            rest=tuple(map(Part._make, _numbers(read, "rest", 3))),
            summary=SealedSummary.from_json(read.of["summary"]) if "summary" in read.of else None,
        )
        found._check(size)
        return found

    def _check(self, size: int) -> None:
        """Raise for a place outside of the file, or a size beyond the limits."""
        for kind, most, every in (
            ("frames", FRAME_BYTES, self.frames),
            ("entries", CHUNK_BYTES, [each.stored for each in self.entries]),
            ("order", CHUNK_BYTES, [each.stored for each in self.order]),
        ):
            for each in every:
                if each.at + each.length > size:
                    raise MalformedError(f'"{kind}" has {seen(each)}, beyond the end of the file')
                if each.size > most:
                    raise MalformedError(f'"{kind}" has {seen(each)}: at most {most} are expected')
        if not self.frames:
            raise MalformedError("it has no frame: the first one holds the header line")
        if self.size != sum(each.size for each in self.frames):
            raise MalformedError("its frames hold another number of bytes than its journal")
        header = self.frames[0].size
        places = [(each.at, each.line) for each in self.order]
        if places and places[0] != (header, 2):
            raise MalformedError('"order" does not begin after the header line')
        if not places and self.size > header:
            raise MalformedError('"order" is missing')
        ends = (*places, (self.size, self.lines + 1))
        if any(one[0] >= other[0] or one[1] >= other[1] for one, other in pairwise(ends)):
            raise MalformedError('"order" does not ascend')
        numbers = [*chain.from_iterable((each.first, each.last) for each in self.entries)]
        if numbers != sorted(numbers):
            raise MalformedError('"entries" do not ascend')
        for part in self.rest:
            self.check_part(part)

    def check_part(self, part: Part) -> None:
        """Check that a part lies in its frame.

        Raises:
            MalformedError: it does not.
        """
        if part.frame >= len(self.frames) or part.at + part.size > self.frames[part.frame].size:
            raise MalformedError(f"{seen(part)} is not within a frame")


def _value(data: bytes) -> object:
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"no JSON in its index: {error}") from error
    return value


def _numbers(read: Fields, name: str, parts: int) -> list[list[int]]:
    """Return lists of `parts` integers each."""
    value = read.of.get(name)
    if not isinstance(value, list):
        raise MalformedError(f'"{name}" is {seen(value)}: a list is expected')
    for each in value:
        _check_numbers(each, name, parts)
    return value


def _check_numbers(value: object, name: str, parts: int | None = None) -> list[int]:
    if (
        isinstance(value, list)
        and (parts is None or len(value) == parts)
        and all(type(number) is int and 0 <= number <= MAX_INT for number in value)
    ):
        return value
    of = "" if parts is None else f"{parts} "
    raise MalformedError(f'"{name}" has {seen(value)}: {of}integers from 0 are expected')


# The end of the file: parts of the index in frames that programs for zstd skip, and a trailer of
# fixed size that says where the table is.


def skippable(data: bytes) -> bytes:
    """Return a skippable frame of zstd with `data`."""
    return _SKIPPED.pack(_SKIPPABLE, len(data)) + data


SKIPPABLE_HEAD = _SKIPPED.size
"""The bytes of a skippable frame before its content."""


def trailer(at: int, length: int) -> bytes:
    """Return the trailer of a file whose table is at `at`."""
    return skippable(_TRAILER.pack(at, length, VERSION, _MAGIC))


def read_trailer(data: bytes) -> tuple[int, int]:
    """Return the offset of the table, and its compressed length.

    Args:
        data: the last `TRAILER_BYTES` of the file.

    Raises:
        MalformedError: they are not a trailer.
    """
    if len(data) == TRAILER_BYTES and data.endswith(_MAGIC):
        head = _SKIPPED.unpack_from(data)
        at, length, version, _ = _TRAILER.unpack_from(data, _SKIPPED.size)
        if version != VERSION:
            raise MalformedError(f"version {version} of sealed tapes; this deltatape reads 1")
        if head == (_SKIPPABLE, _TRAILER.size):
            return at, length
    raise MalformedError(
        "compressed, but no sealed tape: the index at its end is missing. If it was cut off,"
        " `zstd -dc` gives what is left of its lines; of a compressed tape it gives the tape"
    )


# The entries of exchanges, a line each.


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An exchange in the index."""

    exchange: int
    id: str
    """"" if its request is missing."""
    t_ns: int
    """The time of its first record."""
    begin: int
    """The offset of its first line in the journal."""
    end: int
    """The offset of the end of its last line."""
    parts: tuple[Part, ...]
    row: Mapping[str, object] | None
    """The row with the keys of the document `exchanges`, without `tape`; None: there is none."""

    def to_line(self) -> bytes:
        """Return the entry as a line."""
        entry = {
            "exchange": self.exchange,
            "id": self.id,
            "t_ns": self.t_ns,
            "journal": [self.begin, self.end],
            "parts": self.parts,
            **({} if self.row is None else {"row": self.row}),
        }
        return json.dumps(entry, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_json(cls, value: object, table: Table) -> "Entry":
        """Read an entry of a sealed tape.

        Raises:
            MalformedError: it is none, or points out of the frames.
        """
        read = Fields.read(value)
        begin, end = _check_numbers(read.of.get("journal"), "journal", 2)
        parts = tuple(map(Part._make, _numbers(read, "parts", 3)))
        for part in parts:
            table.check_part(part)
        row = read.of.get("row")
        return cls(
            exchange=read.number("exchange"),
            id=read.text("id"),
            t_ns=read.number("t_ns"),
            begin=begin,
            end=end,
            parts=parts,
            row=None if row is None else Fields.read(row).of,
        )


def read_entries(data: bytes, table: Table) -> Iterator[Entry]:
    """Yield the entries of a chunk.

    Raises:
        MalformedError: one is damaged.
    """
    for line in data.splitlines():
        yield Entry.from_json(_value(line), table)


def read_rows(data: bytes, tape: str) -> Iterator[ExchangeRow]:
    """Yield the rows of a chunk of entries.

    Args:
        data: the chunk.
        tape: the name of the tape in the rows.

    Raises:
        MalformedError: an entry has no row, or a damaged one.
    """
    try:
        # One value is read quicker than many.
        for entry in json.loads(b"[%b]" % data.rstrip(b"\n").replace(b"\n", b",")):
            yield _row(tape, entry["exchange"], entry["row"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise MalformedError(f"a row of its index is damaged: {error!r}") from error


def _row(tape: str, exchange: int, row: Mapping[str, object]) -> ExchangeRow:
    found: dict[str, Any] = {**row, "tape": tape, "exchange": exchange}
    for name, kind in _ROW_TYPES.items():
        if not isinstance(found[name], kind):
            raise MalformedError(f'"{name}" is {seen(found[name])}')
    tokens, ending = found["tokens"], found["ending"]
    found["tokens"] = tokens and TokenCount(input=tokens["input"], output=tokens["output"])
    found["ending"] = ending and EndReason(ending)
    found["called"] = tuple(found["called"])
    found["codes"] = tuple(found["codes"])
    found["marks"] = tuple(map(Mark, found["marks"]))
    found["worst"] = found["worst"] and worst_finding(found["worst"])
    found["shows"] = tuple(
        ShownFinding(finding=worst_finding(each), exchange=each["exchange"])
        for each in found["shows"]
    )
    return ExchangeRow(**{name: found[name] for name in _ROW_TYPES})


# The order of the lines in the journal.
#
# A chunk lists where exchanges go on in its section, and for each run of lines which of these it is
# from: its bytes follow those of the run before it from the same place.


def write_order(runs: Sequence[Run]) -> bytes:
    """Return a chunk of the order for a section of the journal."""
    places: dict[tuple[int, int, int], int] = {}
    following: dict[tuple[int, int], tuple[int, int]] = {}
    listed: list[list[int]] = []
    numbers: list[int] = []
    for run in runs:
        expected, place = following.get((run.exchange, run.frame), (-1, 0))
        if expected != run.offset:
            place = places.setdefault((run.exchange, run.frame, run.offset), len(listed))
            listed.append([run.exchange, run.frame, run.offset])
        following[run.exchange, run.frame] = (run.offset + run.size, place)
        numbers += (place, run.lines, run.size)
    return json.dumps({"places": listed, "runs": numbers}, separators=(",", ":")).encode()


def read_order(data: bytes, chunk: OrderChunk, table: Table) -> list[Run]:
    """Return the runs of a section of the journal.

    Raises:
        MalformedError: it is damaged, or refers to a place outside of the frames.
    """
    read = Fields.read(_value(data))
    places = [(each[0], each[1], each[2]) for each in _numbers(read, "places", 3)]
    numbers = _check_numbers(read.of.get("runs"), "runs")
    offsets = [offset for _, _, offset in places]
    sizes = [each.size for each in table.frames]
    at, line = chunk.at, chunk.line
    found = []
    if len(numbers) % 3:
        raise MalformedError('"runs" has no three integers for each run')
    values = iter(numbers)
    for place, lines, size in zip(values, values, values, strict=True):
        if place >= len(places) or not lines or not size:
            raise MalformedError(f'"runs" has {[place, lines, size]}, which is no run')
        exchange, frame, _ = places[place]
        offset = offsets[place]
        if frame >= len(sizes) or offset + size > sizes[frame]:
            raise MalformedError(f"a run of exchange {exchange} is not within a frame")
        found.append(Run(at, line, lines, size, exchange, frame, offset))
        offsets[place] = offset + size
        at += size
        line += lines
    return found


# Which lines are of which exchange, and which exchanges share a frame.


class Spans:
    """Collects the lines of a journal as runs of the same exchange, in a few numbers each.

    Args:
        most: the most bytes of a run of several lines.
    """

    def __init__(self, begin: int, most: int) -> None:
        self._most = most
        self.exchange = array("Q")
        self.lines = array("Q")
        self.sizes = array("Q")
        self.at = array("Q")
        self._next = begin

    def __len__(self) -> int:
        return len(self.exchange)

    @property
    def end(self) -> int:
        """Where the last line ends."""
        return self._next

    def add(self, exchange: int, size: int) -> None:
        """Add a line."""
        last = len(self.exchange) - 1
        if last >= 0 and self.exchange[last] == exchange and self.sizes[last] + size <= self._most:
            self.lines[last] += 1
            self.sizes[last] += size
        else:
            self.exchange.append(exchange)
            self.lines.append(1)
            self.sizes.append(size)
            self.at.append(self._next)
        self._next += size


def plan_frames(
    conversations: Iterable[Sequence[Sequence[int]]],
    sizes: Sequence[int],
    *,
    shared: int,
    most: int = FRAME_BYTES,
) -> Iterator[list[int]]:
    """Yield the runs of each frame.

    A conversation has frames of its own, cut between exchanges where possible, unless it is small:
    a few small ones share a frame.

    Args:
        conversations: their exchanges, each as the numbers of its runs.
        sizes: the sizes of all runs, in bytes.
        shared: smaller conversations share frames of about so many bytes.
        most: the most bytes of a frame with several runs.
    """
    together: list[int] = []
    held = 0
    for conversation in conversations:
        each = [sum([sizes[run] for run in exchange]) for exchange in conversation]
        if sum(each) < shared:
            together += chain.from_iterable(conversation)
            held += sum(each)
            if held >= shared:
                yield together
                together, held = [], 0
            continue
        frame: list[int] = []
        room = most
        for exchange, size in zip(conversation, each, strict=True):
            room = room if size <= room else 0
            for run in exchange:
                if frame and sizes[run] > room:
                    yield frame
                    frame, room = [], most
                frame.append(run)
                room -= sizes[run]
        yield frame
    if together:
        yield together


def worst_finding(value: Mapping[str, Any]) -> WorstFinding:
    """Return a finding as rows have it, from an object with its keys.

    Raises:
        ValueError, KeyError: it is none.
    """
    return WorstFinding(
        code=value["code"],
        name=value["name"],
        severity=Severity(value["severity"]),
        blame=value["blame"] and Blame(value["blame"]),
        confidence=Confidence(value["confidence"]),
    )


_TEXT, _MAYBE_TEXT, _MAYBE_INT = str, (str, type(None)), (int, type(None))
_ROW_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "tape": _TEXT,
    "exchange": int,
    "at": _MAYBE_TEXT,
    "t_ns": _MAYBE_INT,
    "provider": _MAYBE_TEXT,
    "model": _MAYBE_TEXT,
    "dialect": _TEXT,
    "method": _TEXT,
    "target": _TEXT,
    "status": _MAYBE_INT,
    "duration_ns": _MAYBE_INT,
    "first_event_ns": _MAYBE_INT,
    "tokens": (dict, type(None)),
    "calls": int,
    "called": list,
    "finish": _MAYBE_TEXT,
    "ending": _MAYBE_TEXT,
    "open": bool,
    "findings": int,
    "codes": list,
    "shows": list,
    "worst": (dict, type(None)),
    "dead_zones": int,
    "dead_ns": int,
    "thread": int,
    "before": _MAYBE_INT,
    "marks": list,
}
