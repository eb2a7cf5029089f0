"""An exchange's response body as framed events.

The body is decoded read by read, so that every event carries the time and the tape line of the read
that completed it. Content-coding is undone as the head says; `framing` tells the format.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from deltatape.diagnose.framing import format_of, is_plain
from deltatape.model.exchange import Exchange, Headers, header
from deltatape.model.stream import (
    Anomaly,
    AnomalyKind,
    Event,
    Format,
    Place,
    Span,
    Stream,
)
from deltatape.wire.aws_eventstream import EventStreamDecoder
from deltatape.wire.content_coding import ContentDecoder, parse_codings
from deltatape.wire.framer import Decoder
from deltatape.wire.json_array import JsonArrayDecoder
from deltatape.wire.ndjson import NdjsonDecoder
from deltatape.wire.sse import SseDecoder

_DECODERS: Mapping[Format, Callable[[], Decoder]] = {
    Format.SSE: SseDecoder,
    Format.NDJSON: NdjsonDecoder,
    Format.JSON_ARRAY: JsonArrayDecoder,
    Format.EVENTSTREAM: EventStreamDecoder,
}
_BOM = "\ufeff"


class _Piece(NamedTuple):
    """Decoded bytes and the read that completed them."""

    data: bytes
    t_ns: int
    line: int | None


def decode(exchange: Exchange) -> Stream:
    """The response of `exchange`, framed. Never fails: what cannot be framed has no events."""
    headers = exchange.response.headers if exchange.response else ()
    decoder = ContentDecoder(parse_codings(header(headers, "content-encoding")))
    pieces = [_Piece(decoder.feed(read.data), read.t_ns, read.line) for read in exchange.reads]
    decoder.end()
    body = b"".join(piece.data for piece in pieces)
    fault = decoder.fault
    if fault is not None and not body and _is_plain(exchange):
        pieces = [_Piece(read.data, read.t_ns, read.line) for read in exchange.reads]
        body, fault = exchange.body, None
    anomalies: tuple[Anomaly, ...] = ()
    if fault is not None:
        place = _end_place(body, pieces)
        anomalies = (Anomaly(kind=fault.kind, detail=fault.detail, place=place, event=None),)
    form = format_of(body, media_type(headers))
    if form in _DECODERS:
        return _decode_stream(form, body, pieces, anomalies)
    if form is Format.JSON:
        return _decode_json(body, pieces, anomalies)
    return _stream(Format.OTHER, body, anomalies=anomalies)


def media_type(headers: Headers) -> str:
    """The media type in `Content-Type`, in lower case and without parameters; "" if unknown."""
    value = header(headers, "content-type") or b""
    return value.partition(b";")[0].strip().lower().decode("ascii", "replace")


def _is_plain(exchange: Exchange) -> bool:
    """Whether an imported body has lost its content-coding while the head still names it."""
    return not exchange.timed and is_plain(exchange.body)


def _decode_stream(
    form: Format, body: bytes, pieces: Sequence[_Piece], anomalies: tuple[Anomaly, ...]
) -> Stream:
    decoder = _DECODERS[form]()
    events: list[Event] = []
    for piece in pieces:
        events += decoder.feed(piece.data, piece.t_ns, piece.line)
    pending = decoder.end()
    if decoder.tail is not None:
        events.append(decoder.tail)
    return Stream(
        format=form,
        body=body,
        events=tuple(events),
        comments=tuple(decoder.comments),
        anomalies=(*anomalies, *decoder.anomalies),
        pending=pending,
    )


def _decode_json(body: bytes, pieces: Sequence[_Piece], anomalies: tuple[Anomaly, ...]) -> Stream:
    last = pieces[-1]

    def place(start: int, end: int) -> Place:
        return Place(span=Span(start, end), t_ns=last.t_ns, line=last.line)

    found = list(anomalies)
    try:
        text = body.decode()
    except UnicodeDecodeError as problem:
        text = body.decode(errors="replace")
        where = place(problem.start, problem.end)
        found.append(_anomaly(AnomalyKind.INVALID_UTF8, "bytes that are not UTF-8", where))
    if text.startswith(_BOM):
        text = text[1:]
        found.append(_anomaly(AnomalyKind.BYTE_ORDER_MARK, "a byte order mark", place(0, 3)))
    event = Event(number=0, type="message", data=text, id="", retry=None, place=place(0, len(body)))
    return _stream(Format.JSON, body, events=(event,), anomalies=tuple(found))


def _stream(
    form: Format, body: bytes, *, events: tuple[Event, ...] = (), anomalies: tuple[Anomaly, ...]
) -> Stream:
    return Stream(
        format=form, body=body, events=events, comments=(), anomalies=anomalies, pending=None
    )


def _anomaly(kind: AnomalyKind, detail: str, place: Place) -> Anomaly:
    return Anomaly(kind=kind, detail=detail, place=place, event=0)


def _end_place(body: bytes, pieces: Sequence[_Piece]) -> Place:
    last = pieces[-1] if pieces else _Piece(b"", 0, None)
    return Place(span=Span(len(body), len(body)), t_ns=last.t_ns, line=last.line)
