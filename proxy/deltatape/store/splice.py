"""Joins several tapes, or some of their exchanges.

Strategy: two passes. The first (`survey`) decodes every line and finds duplicates; the second
merges the lines of all tapes by their shifted times, keeping each tape's order, and writes them.
Memory holds a few numbers per exchange and never an exchange. As with redacted copies the file is
written under a hidden name and gets its own when it is complete and synced.

Wall-clock times stay: the new tape counts from the earliest `recorded_at`, and the times of other
tapes are shifted by the difference. Imports have no times; theirs stay 0, in the order of the
arguments.

Of the tape itself (exchange 0) everything is carried for tapes that are copied whole, with the
connections of clients renumbered. Where several tapes end, the last one's `stop` is the new tape's,
and the other ends become notes. For single exchanges none of it is copied, since a tape does not
show which log line belongs to which exchange; a tape that ends with one gets the `stop` of this
splice.

Format: recordings/README.md.
"""

import contextlib
import hashlib
import heapq
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from deltatape import __version__
from deltatape.clock import Clock, parse_rfc3339
from deltatape.errors import TapeFormatError, UsageError
from deltatape.model.exchange import Source
from deltatape.model.tape_summary import TapeSummary
from deltatape.store.names import ulid
from deltatape.store.reader import Tape
from deltatape.store.rewrite import PRIVATE, as_named, complete_lines, stamp, write_new
from deltatape.tape.decode import decode_record
from deltatape.tape.encode import header_line, json_text, payload_record
from deltatape.tape.fields import MAX_INT, MalformedError
from deltatape.tape.payload import (
    ClientRecord,
    MaskedSpans,
    RemarkRecord,
    RequestHeadRecord,
    Stop,
    watch_to_json,
)
from deltatape.tape.record import Header, Record

SPLICED = "spliced"
"""Why a tape ends that was made of single exchanges."""
_QUIET = frozenset({SPLICED, "imported"})
"""Reasons to stop that no recorder had: not worth a note."""


# Records moved to another tape: other time and number, else the same bytes.
#
# Only the first two elements of a line are written anew. What follows is kept unchanged, so that
# a record keeps its bytes whatever its code, known or not. Where a payload has to change, its other
# keys stay, also unknown ones.

_FRONT = re.compile(rb"[ \t\r]*\[[ \t\r]*(-?[0-9]+)[ \t\r]*,[ \t\r]*(-?[0-9]+)[ \t\r]*,[ \t\r]*")
_CODE = re.compile(rb'"([a-z-]+)"')


class SplitLine(NamedTuple):
    """A record's line, split: `rest` follows time and number, with the line feed."""

    t_ns: int
    exchange: int
    rest: bytes

    @property
    def code(self) -> str:
        """The code; "" if it is not spelled as recorders spell it."""
        match = _CODE.match(self.rest)
        return match[1].decode() if match else ""

    def line(self, t_ns: int, exchange: int) -> bytes:
        """Return the same record at another time, under another number."""
        return b"[%d,%d,%b" % (t_ns, exchange, self.rest)

    @property
    def payload(self) -> Mapping[str, object]:
        """The payload of a record whose payload is an object."""
        value: Mapping[str, object] = json.loads(b"[" + self.rest)[1]
        return value

    def with_payload(self, payload: Mapping[str, object]) -> "SplitLine":
        """Return the record with another payload, its code spelled as recorders do."""
        code = json.loads(b"[" + self.rest)[0]
        return self._replace(rest=f"{json_text(code)},{json_text(payload)}]\n".encode())


def split_line(line: bytes) -> SplitLine:
    """Split a record's line, with or without its line feed.

    Args:
        line: what `decode_record` accepts.

    Raises:
        MalformedError: the line is no record.
    """
    match = _FRONT.match(line)
    if match is None:
        raise MalformedError("no record: [t, exchange, code, payload] is expected")
    rest = line[match.end() :]
    return SplitLine(int(match[1]), int(match[2]), rest if rest.endswith(b"\n") else rest + b"\n")


# What is on tapes that are to become one: the first of two passes over each.
#
# Strategy: every line is decoded, so that damage shows before anything is written; of an exchange
# only its id, where it begins and a hash of its lines are kept. The hash is over the lines as they
# are but for number and time, the latter counted from the exchange's first record: two copies of an
# exchange on different tapes have the same.


@dataclass(frozen=True, slots=True, kw_only=True)
class SpliceSource:
    """A tape to copy, whole or in part."""

    tape: Tape
    numbers: frozenset[int] | None = None
    """The exchanges to copy; None: the whole tape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplicedExchange:
    """An exchange to copy; number 0 is the tape itself: logs, clients, notes."""

    tape: str
    number: int
    id: str
    """"" if its `request` is missing; the tape's id for number 0."""
    lines: bytes
    """A hash of all its lines, `watched` left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpliceSurvey:
    """A tape, and the parts of it to copy."""

    source: SpliceSource
    exchanges: tuple[SplicedExchange, ...]
    last_ns: int
    """The time of the latest record that is taken, as the tape counts."""
    watch: TapeSummary
    """How long the tape was watched, as it counts itself."""
    stamp: tuple[int, int, int]
    """Identifies the file's content: it must not change before it is copied."""


@dataclass(slots=True)
class _ExchangeDigest:
    """The id of an exchange and the hash of its lines so far."""

    first_ns: int
    id: str = ""
    hash: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    def add(self, record: Record, parts: SplitLine) -> None:
        """Add a record and its split line."""
        if isinstance(record.payload, RequestHeadRecord) and record.exchange:
            self.id = self.id or record.payload.id
            if record.payload.watched is not None:
                parts = parts.with_payload(
                    {k: v for k, v in parts.payload.items() if k != "watched"}
                )
        self.hash.update(b"%d," % (parts.t_ns - self.first_ns) + parts.rest)


def survey(source: SpliceSource) -> SpliceSurvey:
    """Decide what to copy of a tape.

    Raises:
        UsageError: it is being recorded, or lacks a requested exchange.
        TapeFormatError: it is damaged.
    """
    tape, numbers = source.tape, source.numbers
    if tape.recording:
        raise UsageError(f"{tape.path}: is still being recorded; stop its recorder first")
    before = stamp(tape)
    digests: dict[int, _ExchangeDigest] = {}
    last_ns = 0
    for at, line in islice(complete_lines(tape), 1, None):
        try:
            record, parts = decode_record(line), split_line(line)
        except MalformedError as error:
            raise TapeFormatError(tape.path, at, str(error)) from error
        number = record.exchange
        if numbers is None or number in numbers:
            last_ns = max(last_ns, record.t_ns)
            if number not in digests:
                digests[number] = _ExchangeDigest(record.t_ns, id="" if number else tape.header.id)
            digests[number].add(record, parts)
    for number in sorted(numbers or ()):
        if number not in digests:
            tape[number]  # says which there are
    return SpliceSurvey(
        source=source,
        exchanges=tuple(
            SplicedExchange(tape=tape.path, number=number, id=digest.id, lines=digest.hash.digest())
            for number, digest in digests.items()
        ),
        last_ns=last_ns,
        watch=tape.watch,
        stamp=before,
    )


def lines_to_copy(source: SpliceSource, without: frozenset[int]) -> Iterator[SplitLine]:
    """Yield the records to copy, in order, without `stop`.

    Args:
        source: the tape, which has been surveyed.
        without: exchanges to leave out.

    Raises:
        TapeFormatError: the tape was changed since the survey.
    """
    for number, line in islice(complete_lines(source.tape), 1, None):
        try:
            parts = split_line(line)
        except ValueError as error:  # the file was changed meanwhile
            raise TapeFormatError(source.tape.path, number, str(error)) from error
        exchange = parts.exchange
        if exchange in without or (source.numbers is not None and exchange not in source.numbers):
            continue
        if exchange or parts.code != Stop.code:
            yield parts


def find_duplicates(
    surveys: Sequence[SpliceSurvey],
) -> Iterator[tuple[SplicedExchange, SplicedExchange]]:
    """Yield pairs of equal exchanges, including copies of whole tapes.

    Raises:
        UsageError: two have the same id and are not equal.
    """
    known: dict[str, SplicedExchange] = {}
    for exchange in (exchange for tape in surveys for exchange in tape.exchanges if exchange.id):
        first = known.setdefault(exchange.id, exchange)
        if first is exchange:
            continue
        if first.lines != exchange.lines:
            what = "exchange" if exchange.number else "tape"
            raise UsageError(
                f"{_name(first)} and {_name(exchange)} are the same {what} ({exchange.id}) with"
                " different content; name only one of them"
            )
        yield first, exchange


def _name(exchange: SplicedExchange) -> str:
    return f"{exchange.tape}#{exchange.number}" if exchange.number else exchange.tape


@dataclass(frozen=True, slots=True, kw_only=True)
class SplicedTape:
    """The joined tape."""

    path: Path
    exchanges: int
    duplicates: tuple[tuple[SplicedExchange, SplicedExchange], ...]
    """Equal exchanges: the one that was copied, and the one that was left out."""


class _LineGroup(NamedTuple):
    """Lines that stay together, and their place on the new tape."""

    order_ns: int
    lines: tuple[tuple[int, SplitLine], ...]
    """Each with its new time."""


def splice(sources: Sequence[SpliceSource], output: Path, clock: Clock) -> SplicedTape:
    """Write `output` from several tapes.

    Args:
        sources: at least one; no tape twice.
        output: the file to make.
        clock: for the id of the new tape.

    Raises:
        UsageError: `output` is there already or cannot be written; tapes do not fit together.
        TapeFormatError: a tape is damaged.
    """
    if os.path.lexists(output):
        raise UsageError(f"-o {output}: exists already; a tape is never overwritten")
    source = _source([one.tape.header.source for one in sources])
    surveys = [survey(one) for one in sources]
    duplicates = tuple(find_duplicates(surveys))
    header = Header(
        id=ulid(clock),
        tool=f"deltatape {__version__}",
        recorded_at=min((one.tape.header.recorded_at for one in sources), key=parse_rfc3339),
        source=source,
        volatile=tuple(dict.fromkeys(each for one in sources for each in one.tape.volatile)),
    )
    merger = _Merger(
        header=header,
        surveys=surveys,
        offsets=_offsets(header, surveys),
        left_out=_left_out(duplicates),
    )
    part = output.parent / f".{output.name}.{os.urandom(4).hex()}.part"
    try:
        write_new(part, PRIVATE, merger.lines())
        for one in surveys:
            if stamp(one.source.tape) != one.stamp:
                raise UsageError(
                    f"{one.source.tape.path}: was changed while it was read; try again"
                )
        latest = max(one.stamp[2] for one in surveys)
        os.utime(part, ns=(latest, latest))  # what counts is when it was recorded
        as_named(part, output)
    except OSError as error:
        raise UsageError(f"-o {output}: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):  # as a rule it is not there any more
            part.unlink()
    return SplicedTape(path=output, exchanges=len(merger.numbers), duplicates=duplicates)


def _source(sources: Sequence[Source]) -> Source:
    """Return the new tape's source; of two kinds of recorders the less precise one."""
    if len({*sources}) == 1:
        return sources[0]
    if Source.IMPORT in sources:
        raise UsageError(
            "imports have neither times nor endings, so they cannot be on one tape with exchanges"
            " that were recorded; splice imports with imports"
        )
    return Source.MITM


def _offsets(header: Header, surveys: Sequence[SpliceSurvey]) -> list[int]:
    """Return the time offset of each tape."""
    if header.source is Source.IMPORT or len(surveys) == 1:
        return [0] * len(surveys)
    offsets = []
    for one in surveys:
        tape = one.source.tape
        wall_ns = parse_rfc3339(tape.header.recorded_at)
        if not wall_ns:
            raise UsageError(
                f"{tape.path}: its recorded_at, {tape.header.recorded_at!a}, is no time such as"
                " 2026-11-21T20:36:01.000000000Z, so nobody knows where its records belong"
            )
        offsets.append(wall_ns - parse_rfc3339(header.recorded_at))
        if max(one.last_ns, one.watch.until_ns) + offsets[-1] > MAX_INT:
            raise UsageError(f"{tape.path}: is too many years younger than the others")
    return offsets


def _left_out(
    duplicates: Iterable[tuple[SplicedExchange, SplicedExchange]],
) -> dict[str, frozenset[int]]:
    """Return the exchanges of each tape that another one already provided."""
    found: dict[str, set[int]] = {}
    for _, other in duplicates:
        found.setdefault(other.tape, set()).add(other.number)
    return {tape: frozenset(numbers) for tape, numbers in found.items()}


@dataclass(slots=True, kw_only=True)
class _Merger:
    """Writes the lines of the new tape."""

    header: Header
    surveys: Sequence[SpliceSurvey]
    offsets: Sequence[int]
    """The time by which the records of each tape are moved."""
    left_out: dict[str, frozenset[int]]
    """By tape, exchanges that another tape already provides."""
    numbers: dict[tuple[int, int], int] = field(default_factory=dict)
    """New numbers of exchanges, by place of the tape and old number."""
    connections: dict[tuple[int, int], int] = field(default_factory=dict)
    """The same for connections of clients."""
    last_ns: int = 0
    """The time of the last line so far."""

    def lines(self) -> Iterator[bytes]:
        """Yield all lines, from the header to the `stop`, if any."""
        yield header_line(self.header)
        streams = [self._of_tape(place) for place in range(len(self.surveys))]
        for place, moved in heapq.merge(*streams, key=lambda pair: pair[1].order_ns):
            for t_ns, parts in moved.lines:
                self.last_ns = max(self.last_ns, t_ns)
                yield self._renumbered(place, parts, t_ns)
        stop = self._stop()
        if stop is not None:
            yield payload_record(max(self.last_ns, *self._ends), 0, stop)

    def _of_tape(self, place: int) -> Iterator[tuple[int, _LineGroup]]:
        """Yield the groups of lines of one tape; its end becomes a note."""
        one, moved = self.surveys[place], self.offsets[place]
        order_ns = moved
        without = self.left_out.get(one.source.tape.path, frozenset())
        for group in _kept_together(lines_to_copy(one.source, without)):
            order_ns = max(order_ns, *(parts.t_ns + moved for parts in group))
            lines = tuple((parts.t_ns + moved, parts) for parts in group)
            yield place, _LineGroup(order_ns, lines)
        note = self._end_note(place)
        if note:
            t_ns = one.last_ns + moved
            parts = split_line(payload_record(t_ns, 0, RemarkRecord(text=note)))
            yield place, _LineGroup(t_ns, ((t_ns, parts),))

    def _renumbered(self, place: int, parts: SplitLine, t_ns: int) -> bytes:
        if parts.exchange:
            if parts.code == RequestHeadRecord.code:
                parts = self._watched(place, parts)
            key = (place, parts.exchange)
            return parts.line(t_ns, self.numbers.setdefault(key, len(self.numbers) + 1))
        if parts.code == ClientRecord.code:
            payload = parts.payload
            key = (place, int(str(payload["connection"])))
            number = self.connections.setdefault(key, len(self.connections) + 1)
            if number != key[1]:
                parts = parts.with_payload({**payload, "connection": number})
        return parts.line(t_ns, 0)

    def _watched(self, place: int, parts: SplitLine) -> SplitLine:
        """Return a request that keeps how long its own tape was recorded."""
        one, moved = self.surveys[place], self.offsets[place]
        if self.header.source is Source.IMPORT:
            return parts
        payload = parts.payload
        known = payload.get("watched")
        if isinstance(known, dict):
            watched: object = {**known, "until_ns": known["until_ns"] + moved}
        elif place == self._last and one.source.numbers is None:
            return parts
        else:
            watched = watch_to_json(replace(one.watch, until_ns=one.watch.until_ns + moved))
        return parts.with_payload({**payload, "watched": watched})

    @property
    def _last(self) -> int:
        """Return the tape that ends last; of equal ones the later."""
        ends = self._ends
        return max(range(len(ends)), key=lambda at: (ends[at], not self._is_copy(at), at))

    def _is_copy(self, place: int) -> bool:
        return 0 in self.left_out.get(self.surveys[place].source.tape.path, ())

    @property
    def _ends(self) -> list[int]:
        """Return when each tape ends on the new one."""
        return [one.last_ns + moved for one, moved in zip(self.surveys, self.offsets, strict=True)]

    def _stop(self) -> Stop | None:
        one = self.surveys[self._last]
        if one.source.numbers is not None:
            return Stop(reason=SPLICED, exit_code=None)
        watch = one.watch
        return None if watch.stop is None else Stop(reason=watch.stop, exit_code=watch.exit_code)

    def _end_note(self, place: int) -> str:
        """Return the note where a whole tape ends and the new one continues."""
        one = self.surveys[place]
        if place == self._last or one.source.numbers is not None or self._is_copy(place):
            return ""
        name = Path(one.source.tape.path).name
        if one.watch.stop is None:
            return f"{name} breaks off here: its recorder did not stop in good order"
        if one.watch.stop in _QUIET:
            return ""
        code = "" if one.watch.exit_code is None else f", exit code {one.watch.exit_code}"
        return f"{name} ends here: {one.watch.stop}{code}"


def _kept_together(lines: Iterable[SplitLine]) -> Iterator[tuple[SplitLine, ...]]:
    """Yield lines, with a `masked` record and its log line together.

    Otherwise records of other tapes, which are of exchange 0, too, could come in between.
    """
    waiting: tuple[SplitLine, ...] = ()
    for parts in lines:
        if parts.exchange:
            yield (parts,)
        elif parts.code == MaskedSpans.code:
            waiting = (*waiting, parts)
        else:
            yield (*waiting, parts)
            waiting = ()
    if waiting:
        yield waiting
