"""Audit a tape as a file: damage, contradictions and secrets are problems, the rest is facts.

One pass over the lines; a damaged line is a problem and does not end the pass. The format allows
for a recorder that crashed, lost records to a full disk or is still recording: these are facts, not
problems. A secret is reported by kind and place, never by its value.

Format: recordings/README.md, "Order" and "What a reader must bear".
"""

import enum
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from deltatape.model.exchange import Framing, Source
from deltatape.printable import count
from deltatape.redact.payload_strings import redact_payload
from deltatape.redact.plan import LeakedSecret, RedactionPlanner
from deltatape.tape.decode import CODES, decode_header, decode_lines, decode_record
from deltatape.tape.encode import header_line, is_data_record, payload_record
from deltatape.tape.fields import MalformedError, seen
from deltatape.tape.mask import Masker
from deltatape.tape.payload import (
    LOSS_NOTE,
    BodyRead,
    Boundaries,
    EndRecord,
    FrameRecord,
    MaskedSpans,
    ParsedAs,
    RemarkRecord,
    RequestBodyPiece,
    RequestHeadRecord,
    ResponseStart,
    Stop,
)
from deltatape.tape.record import Header, Payload, ReadRecord, Record, Unknown

_UNUSUAL = Record(0, 0, Unknown(code="", value=None))
"""In place of a line that is not as recorders write it, until that is decoded."""


class ProblemKind(enum.StrEnum):
    """The kinds of problems that `fsck` reports."""

    DAMAGE = "damage"
    ORDER = "order"
    SECRET = "secret"  # noqa: S105 - a kind of problem
    PARSED = "parsed"
    """deltatape now parses the exchange differently than when it was recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TapeProblem:
    """Something that has to be fixed. `exchange` 0 is the tape itself."""

    kind: ProblemKind
    line: int
    exchange: int
    message: str
    span: tuple[int, int] | None = None
    """Where in the body of the exchange, for secrets in bodies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """A tape's problems in the order of its lines, and facts."""

    problems: tuple[TapeProblem, ...]
    facts: tuple[str, ...]

    def with_problems(self, problems: Iterable[TapeProblem]) -> "AuditReport":
        """Return the same report with further problems."""
        every = sorted((*self.problems, *problems), key=lambda problem: problem.line)
        return AuditReport(problems=tuple(every), facts=self.facts)


# Check that the records of a tape are in the order that the format requires, and add up.
#
# A small state per exchange. Each fault is kept with its line; whether it is a defect or the trace
# of a loss that the recorder reported is decided when the exchange's `end` is known.
#
# Format: recordings/README.md, "Order", "Boundaries" and "Endings".

_ONCE = frozenset(("request", "request-end", "sent", "response", "trailers", "end"))
_OF_RESPONSE = frozenset(("boundaries", "read", "frame", "trailers"))
_OF_TAPE = frozenset(("client", "log", "stop"))
_OF_ANY = frozenset(("masked", "note", "idle"))
_OF_EXCHANGE = frozenset(CODES) - _OF_TAPE - _OF_ANY
_INSTANT_LOOKS = "an instant such as 2026-11-21T20:36:01.000000000Z is expected"
_INSTANT = re.compile(
    "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    "T([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)\\.[0-9]{9}Z"
)


class OrderFault(NamedTuple):
    """Something that is out of order."""

    line: int
    message: str


@dataclass(slots=True, kw_only=True)
class ExchangeOrder:
    """The records of an exchange so far."""

    seen: set[str] = field(default_factory=set)
    faults: list[OrderFault] = field(default_factory=list)
    ending: EndRecord | None = None
    loss_noted: bool = False
    line: int = 0
    """The line of its first record."""
    _last_ns: int = 0
    _framing: Framing | None = None
    _boundaries: tuple[int, tuple[int, ...]] | None = None
    _masked: tuple[int, int] | None = None
    _bytes: int = 0
    _hash: "hashlib._Hash" = field(default_factory=hashlib.sha256)
    _frames: int = 0
    _frame_bytes: int = 0
    _frame_hash: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    @property
    def lost(self) -> bool:
        """Whether the recorder lost records of this exchange.

        Its `end` tells, or a note; where neither reached the disk, the missing head does.
        """
        if self.ending is None:
            return self.loss_noted or "request" not in self.seen
        return self.loss_noted or bool(self.ending.recorder)

    def check_read(self, line: int, t_ns: int, data: bytes) -> None:
        """Check the next record of the exchange, a read: the bulk of a tape."""
        if (
            self.ending is None
            and t_ns >= self._last_ns
            and self.seen
            and self._masked is None
            and self._boundaries is None
            and data
        ):
            self._last_ns = t_ns
            self._bytes += len(data)
            self._hash.update(data)
            self.seen.add(BodyRead.code)
        else:
            self.check(line, Record(t_ns, 0, BodyRead(data=data)))

    def check(self, line: int, record: Record) -> None:
        """Check the next record of the exchange."""
        payload = record.payload
        self.line = self.line or line
        if isinstance(payload, Unknown | ParsedAs):
            return
        self.faults += (OrderFault(line, message) for message in self._out_of_order(record))
        self._last_ns = max(self._last_ns, record.t_ns)
        if self.ending is None:
            self.faults += (OrderFault(line, message) for message in self._content(line, payload))
        self.seen.add(payload.code)

    def _out_of_order(self, record: Record) -> Iterator[str]:
        code = record.payload.code
        if self.ending is not None:
            yield f"`{code}` after the `end` of its exchange; readers ignore it"
            return
        if record.t_ns < self._last_ns:
            yield f"its time, {record.t_ns} ns, is earlier than that of the previous record"
        if not self.seen and code != "request":
            yield f"`{code}` before the `request` of its exchange"
        if code in _ONCE & self.seen:
            yield f"a second `{code}` of its exchange"
        if code == "request-body" and "request-end" in self.seen:
            yield "`request-body` after `request-end`"
        if code == "informational" and "response" in self.seen:
            yield "`informational` after `response`"
        if code == "trailers" and "response" not in self.seen:
            yield "`trailers` without a `response` before it"
        if code == "response" and self.seen & _OF_RESPONSE:
            yield "`response` after a `read` of its exchange"

    def _content(self, line: int, payload: Payload) -> Iterator[str]:
        match payload:
            case ResponseStart(framing=framing):
                self._framing = framing
            case MaskedSpans(spans=spans) if spans:
                self._masked = (line, spans[-1][1])
            case RequestBodyPiece(data=data):
                yield from self._piece(len(data))
            case Boundaries(ends=ends):
                if self._boundaries is not None:
                    yield f"the `boundaries` in line {self._boundaries[0]} have no `read`"
                if self._framing is not None and self._framing is not Framing.CHUNKED:
                    yield f"`boundaries` in a response whose framing is {self._framing}"
                self._boundaries = (line, ends)
            case BodyRead(data=data):
                yield from self._piece(len(data))
                yield from self._read(data)
            case FrameRecord(data=data):
                yield from self._piece(len(data), empty=True)
                self._frames += 1
                self._frame_bytes += len(data)
                self._frame_hash.update(data)
            case RemarkRecord(text=text):
                self.loss_noted |= text.startswith(LOSS_NOTE)
            case EndRecord():
                yield from self._end(payload)
            case _:
                pass

    def _piece(self, size: int, *, empty: bool = False) -> Iterator[str]:
        if not size and not empty:
            yield "a piece of a body without any byte"
        masked, self._masked = self._masked, None
        if masked is not None and masked[1] > size:
            yield f"{size} bytes, but the `masked` in line {masked[0]} reaches to byte {masked[1]}"

    def _read(self, data: bytes) -> Iterator[str]:
        boundaries, self._boundaries = self._boundaries, None
        if boundaries is not None and boundaries[1] and boundaries[1][-1] > len(data):
            yield (
                f"a read of {len(data)} bytes, but the `boundaries` in line {boundaries[0]} reach "
                f"to byte {boundaries[1][-1]}"
            )
        self._bytes += len(data)
        self._hash.update(data)

    def _end(self, ending: EndRecord) -> Iterator[str]:
        self.ending = ending
        if self._boundaries is not None:
            yield f"the `boundaries` in line {self._boundaries[0]} have no `read`"
        if ending.bytes != self._bytes:
            yield f"`end` counts {ending.bytes} bytes, but the reads have {self._bytes}"
        elif ending.sha256 != self._hash.hexdigest():
            yield "`end.sha256` does not match the reads: the body was changed after recording"
        frames, here = ending.frames, (self._frames, self._frame_bytes)
        if (frames[:2] if frames is not None else (0, 0)) != here:
            told = "none" if frames is None else f"{frames.records} with {frames.bytes} bytes"
            yield f"`end` counts {told} of `frame`, but there are {here[0]} with {here[1]} bytes"
        elif frames is not None and frames.sha256 != self._frame_hash.hexdigest():
            yield "`end.frames.sha256` does not match: messages were changed after recording"


@dataclass(slots=True, kw_only=True)
class Auditor:
    """Check the lines of a tape, in order, and make the report.

    Args:
        header: the first line, which a reader has accepted.
    """

    header: bytes
    _planner: RedactionPlanner = field(default_factory=lambda: RedactionPlanner(Masker(b"")))
    _exchanges: dict[int, ExchangeOrder] = field(default_factory=dict)
    _problems: list[TapeProblem] = field(default_factory=list)
    _facts: list[str] = field(default_factory=list)
    _noncanonical: list[int] = field(default_factory=list)
    """Numbers of lines that are not as recorders write them."""
    _requested: int = 0
    _stopped: int = 0

    def records(
        self, lines: Iterable[tuple[int, bytes]]
    ) -> Iterator[tuple[int, bytes, Record | ReadRecord | None]]:
        """Check lines and yield each with its number and its record; None if it is none.

        Args:
            lines: with their numbers, from 2, and their line feeds, but for a truncated one.
        """
        current = b""

        def remembered() -> Iterator[tuple[int, bytes]]:
            nonlocal current
            for numbered in lines:
                current = numbered[1]
                yield numbered

        for number, record in decode_lines(remembered(), lambda *_: (_UNUSUAL,)):
            known = self._decoded(number, current) if record is _UNUSUAL else record
            if known is not None:
                self._check(number, current, known)
            yield number, current, known

    def _decoded(self, number: int, line: bytes) -> Record | None:
        """Return the record of an unusual or invalid line."""
        try:
            return decode_record(line)
        except MalformedError as error:
            if line.endswith(b"\n"):
                self._problem(ProblemKind.DAMAGE, number, 0, str(error))
            else:
                self._facts.append(f"the last record is truncated: {len(line)} bytes, left out")
            return None

    def _check(self, number: int, line: bytes, record: Record | ReadRecord) -> None:
        t_ns, exchange, content = record
        if isinstance(content, bytes):
            if exchange and not self._stopped and exchange in self._exchanges:
                if not is_data_record(line, t_ns, f',{exchange},"{BodyRead.code}",', content):
                    self._noncanonical.append(number)
                self._planner.add_read(number, exchange, content)
                self._exchanges[exchange].check_read(number, t_ns, content)
                return
            content = BodyRead(data=content)
        record = Record(t_ns, exchange, content)
        if isinstance(content, RequestBodyPiece):
            middle = f',{exchange},"{RequestBodyPiece.code}",'
            if not is_data_record(line, t_ns, middle, content.data):
                self._noncanonical.append(number)
            self._planner.add(number, record)
        else:
            if line != payload_record(t_ns, exchange, content):
                self._noncanonical.append(number)
            self._planner.add(number, record)
        self._check_order(number, record)

    def damaged(self, number: int, message: str) -> None:
        """Report that line `number` is unreadable."""
        self._problem(ProblemKind.DAMAGE, number, 0, message)

    def report(self, *, recording: bool) -> AuditReport:
        """Return the report after the last line.

        Args:
            recording: whether a recorder is still writing the tape.
        """
        header = decode_header(self.header)
        if not _INSTANT.fullmatch(header.recorded_at):
            message = f'the header\'s "recorded_at" is {seen(header.recorded_at)}: {_INSTANT_LOOKS}'
            self._problem(ProblemKind.ORDER, 1, 0, message)
        if self.header != header_line(header):
            self._noncanonical.insert(0, 1)
        for hit in redact_payload(json.loads(self.header), Masker(b"")).hits:
            # No recorder writes a secret there, so no command removes it: a person has to look.
            message = f"the header's {hit.where} contains what looks like a secret: {hit.kind}"
            self._problem(ProblemKind.SECRET, 1, 0, message)
        for exchange, order in sorted(self._exchanges.items()):
            self._report_faults(exchange, order, header)
        if recording:
            self._facts.append("the tape is still being recorded")
        elif not self._stopped:
            self._facts.append("no `stop`: the recorder was killed or crashed")
        plan = self._planner.finish()
        self._problems += map(_leak_problem, plan.leaks)
        for sums in plan.sums:
            if sums.masked:
                message = (
                    f"{count(len(sums.masked), 'checksum')} in the response body from before bytes"
                    " were masked; deltatape redact recomputes them"
                )
                self._problem(ProblemKind.DAMAGE, sums.line, sums.exchange, message)
        self._facts += (
            f"#{body.exchange}, line {body.line}: the {body.where} could not be searched "
            f"completely: {body.detail}"
            for body in plan.opaque
        )
        # Checksums that arrived wrong: the tape itself is sound.
        self._facts += (
            f"#{sums.exchange}, line {sums.line}: {count(len(sums.wrong), 'message')} in the"
            f" response body arrived with a wrong checksum, the first at byte {sums.wrong[0]}"
            for sums in plan.sums
            if sums.wrong
        )
        if self._noncanonical:
            lines = count(len(self._noncanonical), "line")
            self._facts.append(
                f"{lines} not in canonical form, the first is line {self._noncanonical[0]}"
            )
        problems = sorted(self._problems, key=lambda problem: problem.line)
        return AuditReport(problems=tuple(problems), facts=tuple(self._facts))

    def _problem(self, kind: ProblemKind, line: int, exchange: int, message: str) -> None:
        problem = TapeProblem(kind=kind, line=line, exchange=exchange, message=message)
        self._problems.append(problem)

    def _check_order(self, number: int, record: Record) -> None:
        if self._stopped:
            message = f"`{record.payload.code}` after the `stop` in line {self._stopped}"
            self._problem(ProblemKind.ORDER, number, record.exchange, message)
        code = record.payload.code
        if code in (_OF_TAPE if record.exchange else _OF_EXCHANGE):
            where = "an exchange; it belongs to the tape" if record.exchange else "exchange 0"
            message = f"`{code}` of {where}; readers ignore it"
            self._problem(ProblemKind.ORDER, number, record.exchange, message)
        elif record.exchange:
            order = self._exchanges.get(record.exchange)
            if order is None:
                order = self._exchanges[record.exchange] = ExchangeOrder()
            order.check(number, record)
        elif isinstance(record.payload, Stop):
            self._stopped = self._stopped or number
        if isinstance(record.payload, RequestHeadRecord):
            if record.exchange < self._requested:
                message = f"request {record.exchange} after request {self._requested}"
                self._problem(ProblemKind.ORDER, number, record.exchange, message)
            self._requested = max(self._requested, record.exchange)

    def _report_faults(self, exchange: int, order: ExchangeOrder, header: Header) -> None:
        """Decide whether faults are defects or the trace of a loss that the recorder reported."""
        ending = order.ending
        if ending is None and header.source is not Source.IMPORT:
            self._facts.append(f"#{exchange} has no `end`: the tape ends before the exchange did")
        if order.lost and header.source is not Source.IMPORT:
            recorder = ending.recorder if ending is not None else {}
            lost = recorder.get("lost_records")
            records = count(lost, "record") if isinstance(lost, int) else "some records"
            error = recorder.get("error", "unknown")
            self._facts.append(f"#{exchange} lost {records} ({error})")
            self._facts += (
                f"#{exchange}, line {line}: {message}" for line, message in order.faults
            )
            return
        for line, message in order.faults:
            self._problem(ProblemKind.ORDER, line, exchange, message)


def _leak_problem(leak: LeakedSecret) -> TapeProblem:
    article = "an" if leak.kind[0] in "AEIOu" else "a"
    certainty = article if leak.certain else f"what looks like {article}"
    hidden = " (under its content-coding)" if leak.coded else ""
    return TapeProblem(
        kind=ProblemKind.SECRET,
        line=leak.line,
        exchange=leak.exchange,
        message=f"{leak.where}{hidden} contains {certainty} {leak.kind}",
        span=leak.span,
    )
