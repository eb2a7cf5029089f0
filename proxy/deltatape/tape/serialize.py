"""Writes exchanges as tape lines: the inverse of `assemble`.

Strategy: the records of one exchange are sorted as the format demands, with ascending times; the
exchanges of a tape are merged by time, as a recorder would have written them. Masked values stay
masked, nothing else is masked.

Invariant: the exchanges of a tape that is written so are read back equal but for line numbers,
names and numbers.

Format: recordings/README.md, "Codes" and "Order".
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

from deltatape.model.exchange import Exchange, MaskedSpan, Read
from deltatape.tape.encode import data_record, header_line, payload_record
from deltatape.tape.payload import (
    BodyRead,
    Boundaries,
    DeliveredSoFar,
    EndRecord,
    FrameRecord,
    Idle,
    Informational,
    MaskedSpans,
    RemarkRecord,
    RequestBodyPiece,
    RequestEnd,
    RequestHeadRecord,
    ResponseStart,
    SentUpstream,
    Stop,
    Trailers,
)
from deltatape.tape.record import Header, Payload
from deltatape.tape.tap import PIECE


class _Timed(NamedTuple):
    """A record to write; of equal times, the lowest rank comes first."""

    t_ns: int
    rank: int
    payloads: tuple[Payload, ...]
    """Records that stay together."""


def tape_lines(header: Header, exchanges: Sequence[Exchange], stop: Stop) -> Iterator[bytes]:
    """Yield the lines of a whole tape.

    Args:
        header: its first line.
        exchanges: in the order in which they are numbered, from 1.
        stop: says why it ends, at the time of its last record.
    """
    yield header_line(header)
    last_ns = 0
    streams = (exchange_lines(exchange, at) for at, exchange in enumerate(exchanges, 1))
    for t_ns, line in heapq.merge(*streams, key=itemgetter(0)):
        last_ns = t_ns
        yield line
    yield payload_record(last_ns, 0, stop)


def exchange_lines(exchange: Exchange, number: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of one exchange under `number`, each with its time, which never decreases."""
    for t_ns, _, payloads in _in_order(exchange):
        for payload in payloads:
            if isinstance(payload, BodyRead | RequestBodyPiece):
                middle = f',{number},"{payload.code}",'
                yield t_ns, data_record(t_ns, middle, payload.data)
            else:
                yield t_ns, payload_record(t_ns, number, payload)


def _in_order(exchange: Exchange) -> list[_Timed]:
    main = [*_request(exchange), *_response(exchange)]
    times = accumulate((group.t_ns for group in main), max)
    timed = [group._replace(t_ns=t_ns) for group, t_ns in zip(main, times, strict=True)]
    found = sorted([*timed, *_side_records(exchange)], key=itemgetter(0, 1))
    if exchange.end is not None:
        end = exchange.end
        ending = EndRecord(
            reason=end.reason,
            bytes=end.bytes,
            sha256=end.sha256,
            detail=end.detail,
            recorder=end.recorder,
            frames=end.frames,
        )
        found.append(_Timed(max(end.t_ns, found[-1].t_ns), 0, (ending,)))
    return found


def _request(exchange: Exchange) -> Iterator[_Timed]:
    request = exchange.request
    head = RequestHeadRecord(
        id=exchange.id,
        method=request.method,
        target=request.target,
        upstream=request.upstream,
        http=request.http,
        headers=request.headers,
        tap=exchange.tap,
        # Without an end record, `idle` records tell how long it was watched.
        watched=exchange.watch if exchange.end is None else None,
    )
    yield _Timed(request.t_ns, 0, (head,))
    for payloads in request_body(request.body, request.masked, request.hidden):
        yield _Timed(request.t_ns, 1, payloads)
    if request.t_end_ns is not None:
        yield _Timed(request.t_end_ns, 2, (RequestEnd(),))


def request_body(
    body: bytes, masked: tuple[MaskedSpan, ...], hidden: tuple[MaskedSpan, ...] = ()
) -> Iterator[tuple[Payload, ...]]:
    """Yield the payloads of the records of a request's body, piece by piece.

    Args: see `Request`.
    """
    for start, piece, spans in _pieces(body, masked):
        yield (*_spans(spans, () if start else hidden), RequestBodyPiece(data=piece))


def _response(exchange: Exchange) -> Iterator[_Timed]:
    for early in exchange.informational:
        payload = Informational(
            status=early.status, reason=early.reason, http=early.http, headers=early.headers
        )
        yield _Timed(early.t_ns, 4, (payload,))
    head = exchange.response
    if head is not None:
        start = ResponseStart(
            status=head.status,
            reason=head.reason,
            http=head.http,
            framing=head.framing,
            headers=head.headers,
        )
        yield _Timed(head.t_ns, 5, (start,))
    for read in exchange.reads:
        yield from _read(read)
    for piece in exchange.frames:
        frame = FrameRecord.of(piece.side, piece)
        yield _Timed(piece.t_ns, 7, (*_spans(piece.masked, ()), frame))
    if exchange.trailers:
        last_ns = exchange.reads[-1].t_ns if exchange.reads else 0
        yield _Timed(last_ns, 8, (Trailers(headers=exchange.trailers),))


def _read(read: Read) -> Iterator[_Timed]:
    for start, data, masked in _pieces(read.data, read.masked):
        payloads: list[Payload] = [*_spans(masked, () if start else read.hidden)]
        if read.boundaries is not None:
            lowest = start + 1 if start else 0
            within = (end for end in read.boundaries if lowest <= end <= start + len(data))
            ends = tuple(end - start for end in within)
            if ends != (len(data),):
                payloads.append(Boundaries(ends=ends))
        yield _Timed(read.t_ns, 7, (*payloads, BodyRead(data=data)))


def _pieces(
    body: bytes, masked: tuple[MaskedSpan, ...]
) -> Iterator[tuple[int, bytes, tuple[MaskedSpan, ...]]]:
    """Yield the pieces of a body that fit into a record, with their offsets and masked spans."""
    for start in range(0, len(body), PIECE):
        end = min(start + PIECE, len(body))
        spans = (
            (max(first, start) - start, min(last, end) - start, hash_)
            for first, last, hash_ in masked
        )
        yield start, body[start:end], tuple(span for span in spans if span[0] < span[1])


def _spans(masked: tuple[MaskedSpan, ...], hidden: tuple[MaskedSpan, ...]) -> Iterable[MaskedSpans]:
    return (MaskedSpans(spans=masked, decoded=hidden),) if masked or hidden else ()


def _side_records(exchange: Exchange) -> Iterator[_Timed]:
    """Yield the records that may be anywhere after the request's head."""
    sent = exchange.sent
    if sent is not None:
        payload = SentUpstream(connect_ns=sent.connect_ns, tls_ns=sent.tls_ns, reused=sent.reused)
        yield _Timed(max(sent.t_ns, exchange.request.t_ns), 3, (payload,))
    floor = exchange.request.t_ns
    for note in exchange.notes:
        yield _Timed(max(note.t_ns, floor), 6, (RemarkRecord(text=note.text),))
    for progress in exchange.delivered:
        yield _Timed(max(progress.t_ns, floor), 9, (DeliveredSoFar(bytes=progress.bytes),))
    for idle_ns in exchange.idle_ns:
        yield _Timed(max(idle_ns, floor), 9, (Idle(),))
