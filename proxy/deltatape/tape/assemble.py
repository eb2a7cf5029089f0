"""Assembles records to exchanges in one pass over a tape.

Strategy: an exchange under construction per number, closed by its `end`. Tapes are cut anywhere,
lose records to full disks, and are edited by hand, so no order is assumed: missing records stay
missing, of duplicate ones one counts, and records after an `end` are ignored.

Format: recordings/README.md, "Order" and "What a reader must bear".
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

from deltatape.model.exchange import (
    DeliveryProgress,
    End,
    Exchange,
    Framing,
    Headers,
    MaskedSpan,
    Note,
    Read,
    Request,
    RequestSent,
    ResponseHead,
    Tap,
)
from deltatape.model.tape_summary import TapeSummary
from deltatape.model.websocket import FramePiece
from deltatape.tape.payload import (
    BodyRead,
    Boundaries,
    ClientRecord,
    DeliveredSoFar,
    EndRecord,
    FrameRecord,
    Idle,
    Informational,
    LogLine,
    MaskedSpans,
    ParsedAs,
    RemarkRecord,
    RequestBodyPiece,
    RequestEnd,
    RequestHeadRecord,
    ResponseStart,
    SentUpstream,
    Stop,
    Trailers,
)
from deltatape.tape.record import Header, Payload, ReadRecord, Record, Unknown

NO_PART = (Unknown, ParsedAs, ClientRecord, LogLine, Stop)
"""Payloads that are of no exchange, whatever its number."""

_new = tuple.__new__
"""What the constructors of named tuples call; with them a read takes half as long again."""

Numbered = tuple[int, Record]
"""A record and its line, from 1."""


@dataclass(slots=True, kw_only=True)
class _Parts:
    """The parts of an exchange so far."""

    number: int
    head: RequestHeadRecord | None = None
    head_ns: int = 0
    head_line: int | None = None
    request_body: bytearray = field(default_factory=bytearray)
    request_masked: list[MaskedSpan] = field(default_factory=list)
    request_hidden: tuple[MaskedSpan, ...] = ()
    request_end_ns: int | None = None
    sent: RequestSent | None = None
    informational: list[ResponseHead] = field(default_factory=list)
    response: ResponseHead | None = None
    chunked: bool = False
    boundaries: tuple[int, ...] | None = None
    masked: tuple[MaskedSpan, ...] = ()
    hidden: tuple[MaskedSpan, ...] = ()
    reads: list[Read] = field(default_factory=list)
    frames: list[FramePiece] = field(default_factory=list)
    trailers: Headers = ()
    delivered: list[DeliveryProgress] = field(default_factory=list)
    idle_ns: list[int] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    end: End | None = None

    def add(self, payload: Payload, t_ns: int, line: int) -> bool:
        """Add a record; return whether the exchange has ended."""
        match payload:  # what every exchange has comes first
            case RequestHeadRecord() if self.head is None:
                self.head, self.head_ns, self.head_line = payload, t_ns, line
            case RequestBodyPiece(data=data):
                at = len(self.request_body)
                masked = self._masked_in(len(data))
                self.request_masked.extend(
                    (at + start, at + end, name) for start, end, name in masked
                )
                self.request_body += data
                self.request_hidden += self.hidden
                self.hidden = ()
            case RequestEnd() if self.request_end_ns is None:
                self.request_end_ns = t_ns
            case SentUpstream() if self.sent is None:
                self.sent = RequestSent(
                    t_ns=t_ns,
                    connect_ns=payload.connect_ns,
                    tls_ns=payload.tls_ns,
                    reused=payload.reused,
                )
            case ResponseStart() if self.response is None:
                self.response = _head(payload, payload.framing, t_ns, line)
                self.chunked = payload.framing is Framing.CHUNKED
            case EndRecord():
                self.end = End(
                    t_ns=t_ns,
                    reason=payload.reason,
                    bytes=payload.bytes,
                    sha256=payload.sha256,
                    detail=payload.detail,
                    recorder=payload.recorder,
                    line=line,
                    frames=payload.frames,
                )
            case Boundaries(ends=ends):
                self.boundaries = ends
            case BodyRead(data=data):
                self.add_read(data, t_ns, line)
            case FrameRecord():
                self.frames.append(
                    FramePiece(
                        t_ns,
                        payload.side,
                        payload.opcode,
                        payload.head,
                        payload.at,
                        payload.data,
                        payload.wire,
                        payload.more,
                        payload.raw,
                        line,
                        self._masked_in(len(payload.data)),
                    )
                )
            case MaskedSpans():
                self.masked = payload.spans or self.masked
                self.hidden += payload.decoded
            case Informational():
                self.informational.append(_head(payload, Framing.NONE, t_ns, line))
            case Trailers(headers=headers) if not self.trailers:
                self.trailers = headers
            case DeliveredSoFar():
                self.delivered.append(DeliveryProgress(t_ns=t_ns, bytes=payload.bytes))
            case Idle():
                self.idle_ns.append(t_ns)
            case RemarkRecord(text=text):
                self.notes.append(Note(t_ns=t_ns, text=text))
            case _:  # a second one of what comes once, or what says nothing about the exchange
                pass
        return self.end is not None

    def add_read(self, data: bytes, t_ns: int, line: int) -> None:
        """Add the bytes of a read."""
        boundaries = self.boundaries
        if boundaries is not None:
            self.boundaries = None
            if boundaries and boundaries[-1] > len(data):
                # The read that they were about may be missing, and this be another one.
                boundaries = tuple(end for end in boundaries if end <= len(data))
        elif self.chunked:
            boundaries = (len(data),)
        masked = self._masked_in(len(data)) if self.masked else ()
        self.reads.append(_new(Read, (t_ns, data, boundaries, line, masked, self.hidden)))
        self.hidden = ()

    def _masked_in(self, size: int) -> tuple[MaskedSpan, ...]:
        """Return what was masked in the latest piece, of `size` bytes."""
        masked, self.masked = self.masked, ()
        # The piece that a `masked` record was about may be missing, and this be another one.
        return tuple(span for span in masked if span[1] <= size)

    def exchange(
        self, tape: str, header: Header, stopped_ns: int | None, watch: TapeSummary | None
    ) -> Exchange:
        """Return what is known of the exchange so far."""
        if self.head is not None and self.head.watched is not None:
            watch = self.head.watched
            stopped_ns = watch.until_ns if watch.stop is not None else None
        exchange = Exchange(
            tape=tape,
            number=self.number,
            id=self.head.id if self.head else "",
            source=header.source,
            recorded_at=header.recorded_at,
            request=self._request(),
            sent=self.sent,
            informational=tuple(self.informational),
            response=self.response,
            reads=tuple(self.reads),
            trailers=self.trailers,
            delivered=tuple(self.delivered),
            idle_ns=tuple(self.idle_ns),
            notes=tuple(self.notes),
            end=self.end,
            stopped_ns=stopped_ns,
            open=self.end is None and watch is not None and watch.recording,
            watch=watch,
            tap=self.head.tap if self.head else Tap.PROVIDER,
        )
        return replace(exchange, frames=tuple(self.frames)) if self.frames else exchange

    def _request(self) -> Request:
        """Return the request; without a method when its record is not on the tape."""
        head = self.head
        return Request(
            method=head.method if head else "",
            target=head.target if head else (),
            upstream=head.upstream if head else "",
            http=head.http if head else "",
            headers=head.headers if head else (),
            body=bytes(self.request_body),
            t_ns=self.head_ns,
            t_end_ns=self.request_end_ns,
            line=self.head_line,
            masked=tuple(self.request_masked),
            hidden=self.request_hidden,
        )


def _head(
    payload: Informational | ResponseStart, framing: Framing, t_ns: int, line: int
) -> ResponseHead:
    return ResponseHead(
        status=payload.status,
        reason=payload.reason,
        http=payload.http,
        framing=framing,
        headers=payload.headers,
        t_ns=t_ns,
        line=line,
    )


class Assembler:
    """Assembles the exchanges of one tape, whose records may come in several parts.

    Args:
        tape: the tape's name as the user gave it.
        header: the tape's header.
        stopped_ns: when the recorder stopped, if known in advance.
        watch: how long the tape was watched, if known; exchanges without an end are open during
            that time. If it is not, a `stop` record tells the exchanges after it of `stopped_ns`.

    Attributes:
        own: the payload types of records about the tape itself.
    """

    def __init__(
        self,
        *,
        tape: str,
        header: Header,
        stopped_ns: int | None = None,
        watch: TapeSummary | None = None,
    ) -> None:
        self.own: set[type] = set()
        self._tape = tape
        self._header = header
        self._stopped_ns = stopped_ns
        self._watch = watch
        self._building: dict[int, _Parts] = {}
        self._ended: set[int] = set()

    def feed(self, records: Iterable[tuple[int, Record | ReadRecord]]) -> Iterator[Exchange]:
        """Yield the exchanges that end in `records`, which follow the previous ones directly."""
        building = self._building
        for line, (t_ns, number, content) in records:
            if number == 0:
                # One within a tape whose end is known is damage, which not every reader sees.
                if self._watch is None and isinstance(content, Stop):
                    self._stopped_ns = t_ns
                self.own.add(type(content))
                continue
            parts = building.get(number)
            if parts is None:
                if number in self._ended or isinstance(content, NO_PART):
                    continue
                parts = building[number] = _Parts(number=number, head_ns=t_ns)
            if isinstance(content, bytes):
                parts.add_read(content, t_ns, line)
            elif parts.add(content, t_ns, line):
                self._ended.add(number)
                yield self._exchange(building.pop(number))

    @property
    def open(self) -> Collection[int]:
        """The numbers of the exchanges without an end, as they began."""
        return self._building.keys()

    def exchange(self, number: int) -> Exchange:
        """Return what is known of an exchange without an end."""
        return self._exchange(self._building[number])

    def unfinished(self) -> Iterator[Exchange]:
        """Yield the exchanges without an end, as they began."""
        yield from map(self._exchange, self._building.values())

    def _exchange(self, parts: _Parts) -> Exchange:
        return parts.exchange(self._tape, self._header, self._stopped_ns, self._watch)


def assemble(
    records: Iterable[tuple[int, Record | ReadRecord]],
    *,
    tape: str,
    header: Header,
    stopped_ns: int | None = None,
    watch: TapeSummary | None = None,
    own: set[type] | None = None,
) -> Iterator[Exchange]:
    """Yield each exchange of `records` as it ends, then those without an end as they began.

    Args: see `Assembler`; `records` with their line numbers, in the order of the tape.
    """
    assembler = Assembler(tape=tape, header=header, stopped_ns=stopped_ns, watch=watch)
    if own is not None:
        assembler.own = own
    yield from assembler.feed(records)
    yield from assembler.unfinished()
