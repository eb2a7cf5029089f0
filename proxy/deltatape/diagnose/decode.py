"""Frame an exchange's response body as events.

Every event carries the time and the tape line of the read that completed it. Content-coding is
undone as the head says; `framing` names the format.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from operator import attrgetter

from deltatape.diagnose.websocket import read_socket
from deltatape.model.content_coding import DecodeFault, decoded
from deltatape.model.exchange import Exchange, Headers, Read, content_codings, header
from deltatape.model.stream import (
    Anomaly,
    AnomalyKind,
    Event,
    Format,
    Place,
    Span,
    Stream,
)
from deltatape.model.websocket import TEXT, Side
from deltatape.wire.aws_eventstream import EventStreamDecoder, is_message
from deltatape.wire.framer import Decoder
from deltatape.wire.json_array import JsonArrayDecoder
from deltatape.wire.json_scan import ScanState
from deltatape.wire.json_value import parse
from deltatape.wire.ndjson import NdjsonDecoder
from deltatape.wire.sse import SseDecoder

_DECODERS: Mapping[Format, Callable[[], Decoder]] = {
    Format.SSE: SseDecoder,
    Format.NDJSON: NdjsonDecoder,
    Format.JSON_ARRAY: JsonArrayDecoder,
    Format.EVENTSTREAM: EventStreamDecoder,
}
_BOM = "\ufeff"
_NO_READ = Read(t_ns=0, data=b"", boundaries=None, line=None)
_t_ns = attrgetter("t_ns")
_line = attrgetter("line")


def decode(exchange: Exchange) -> Stream:
    """Frame the response of `exchange`. Never fails: what cannot be framed has no events."""
    if exchange.upgraded:
        return _decode_socket(exchange)
    headers = exchange.response.headers if exchange.response else ()
    last = exchange.reads[-1] if exchange.reads else _NO_READ
    pieces, fault = _decode_reads(exchange, content_codings(headers))
    body = b"".join(pieces)
    anomalies: tuple[Anomaly, ...] = ()
    if fault is not None:
        place = _place(last, len(body), len(body))
        anomalies = (Anomaly(kind=fault.kind, detail=fault.detail, place=place, event=None),)
    form = format_of(body, media_type(headers))
    if form in _DECODERS:
        return _decode_stream(form, body, pieces, exchange.reads, anomalies)
    if form is Format.JSON:
        return _decode_json(body, last, anomalies)
    return _stream(Format.OTHER, body, anomalies=anomalies)


def _decode_socket(exchange: Exchange) -> Stream:
    """Return the texts of the server as events, and all that it sent but control frames."""
    body = bytearray()
    events: list[Event] = []
    for message in read_socket(exchange).sent(Side.SERVER):
        start = len(body)
        body += message.data
        if message.opcode == TEXT and message.complete:
            text = message.data.decode(errors="replace")
            place = (start, len(body), message.t_end_ns, message.line)
            events.append(Event(len(events), "message", text, "", None, *place))
    return _stream(Format.WEBSOCKET, bytes(body), events=tuple(events), anomalies=())


def media_type(headers: Headers) -> str:
    """Return the media type in `Content-Type`, in lower case, without parameters; "" if unknown."""
    value = header(headers, "content-type") or b""
    return value.partition(b";")[0].strip().lower().decode("ascii", "replace")


def _decode_reads(
    exchange: Exchange, codings: Sequence[str]
) -> tuple[Sequence[bytes], DecodeFault | None]:
    """Return what each read adds to the decoded body, and the decoder's fault."""
    plain = [read.data for read in exchange.reads]
    if not codings:
        return plain, None
    pieces, fault = decoded(plain, codings, exchange.hidden)
    if fault and not any(pieces) and not exchange.timed and is_plain(exchange.body):
        return plain, None  # an import: its content-coding was undone, its head left as it was
    return pieces, fault


def _decode_stream(
    form: Format,
    body: bytes,
    pieces: Sequence[bytes],
    reads: Sequence[Read],
    anomalies: tuple[Anomaly, ...],
) -> Stream:
    decoder = _DECODERS[form]()
    events: list[Event] = []
    if isinstance(decoder, SseDecoder) and reads:
        # Separate iterators and no object per read: there may be as many reads as events.
        ends = accumulate(map(len, pieces))
        arrivals = zip(ends, map(_t_ns, reads), map(_line, reads), strict=True)
        events = decoder.feed_reads(body, arrivals)
    else:
        for data, read in zip(pieces, reads, strict=True):
            events += decoder.feed(data, read.t_ns, read.line)
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


def _decode_json(body: bytes, last: Read, anomalies: tuple[Anomaly, ...]) -> Stream:
    found = list(anomalies)
    try:
        text = body.decode()
    except UnicodeDecodeError as problem:
        text = body.decode(errors="replace")
        where = _place(last, problem.start, problem.end)
        found.append(_anomaly(AnomalyKind.INVALID_UTF8, "bytes that are not UTF-8", where))
    if text.startswith(_BOM):
        text = text[1:]
        where = _place(last, 0, 3)
        found.append(_anomaly(AnomalyKind.BYTE_ORDER_MARK, "a byte order mark", where))
    event = Event(0, "message", text, "", None, 0, len(body), last.t_ns, last.line)
    return _stream(Format.JSON, body, events=(event,), anomalies=tuple(found))


def _stream(
    form: Format, body: bytes, *, events: tuple[Event, ...] = (), anomalies: tuple[Anomaly, ...]
) -> Stream:
    return Stream(
        format=form, body=body, events=events, comments=(), anomalies=anomalies, pending=None
    )


def _anomaly(kind: AnomalyKind, detail: str, place: Place) -> Anomaly:
    return Anomaly(kind=kind, detail=detail, place=place, event=0)


def _place(last: Read, start: int, end: int) -> Place:
    """Return the place of data that only the end of the body completes."""
    return Place(span=Span(start, end), t_ns=last.t_ns, line=last.line)


# How a response body is framed: told by what it looks like, else by its media type.
#
# Servers mislabel both ways: NDJSON comes as `application/json`, `text/plain` or
# `text/event-stream`, event streams come as `application/json`, an error under the type of a stream
# is one pretty-printed document. What a body looks like is asked of its beginning, in this order:
#
# - an Amazon event stream begins with a prelude whose checksum is right;
# - a server-sent event begins with a field or a comment; under `text/event-stream` it may also come
#   behind something else;
# - NDJSON is a line with a whole JSON value, and behind it a line that begins an object or array;
# - an array of objects, or an empty one, is streamed element by element;
# - what else begins like an object or an array is one document.
#
# Uses only the whole body, so that the result does not depend on the reads.

_SSE_START = re.compile(rb"(?:\xef\xbb\xbf)?[\r\n]*(?::|(?:data|event|id|retry)[:\r\n])")
_DATA_LINE = re.compile(rb"[\r\n]data:")
_JSON_START = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*(?=[\[{])")
_ARRAY_START = re.compile(rb"\[[ \t\r\n]*(?:[\]{]|\Z)")
_NEXT_VALUE = re.compile(rb"\n[ \t\r\n]*[\[{]")
_OBJECT_LINE = re.compile(rb"\n[ \t]*\{[ \t]*[\"}]")
_SSE_TYPE = "text/event-stream"
_EVENTSTREAM_TYPE = "application/vnd.amazon.eventstream"
_NDJSON_TYPES = frozenset(
    {
        "application/json-lines",
        "application/jsonl",
        "application/jsonlines",
        "application/ndjson",
        "application/stream+json",
        "application/x-json-stream",
        "application/x-jsonl",
        "application/x-jsonlines",
        "application/x-ndjson",
        "text/jsonl",
        "text/ndjson",
        "text/x-ndjson",
    }
)


def format_of(body: bytes, media: str) -> Format:
    """Return the format of `body`, after content-coding.

    Args:
        body: all of it, or what arrived before a cut.
        media: its media type in lower case, without parameters; "" if unknown.
    """
    if is_message(body):
        return Format.EVENTSTREAM
    if _SSE_START.match(body) or (media == _SSE_TYPE and _DATA_LINE.search(body)):
        return Format.SSE
    start = _JSON_START.match(body)
    if start is not None:
        return _json_format(body, start.end(), is_ndjson=media in _NDJSON_TYPES)
    return _by_media_type(body, media)


def is_plain(body: bytes) -> bool:
    """Return whether `body` looks uncoded."""
    return bool(_SSE_START.match(body) or _JSON_START.match(body) or is_message(body))


def _json_format(body: bytes, start: int, *, is_ndjson: bool) -> Format:
    """Return the format of a body with a bracket at `start`."""
    stop = body.find(b"\n", start)
    if stop >= 0 and _NEXT_VALUE.match(body, stop) and _is_value(body[start:stop]):
        return Format.NDJSON
    if _ARRAY_START.match(body, start):
        return Format.JSON_ARRAY
    if is_ndjson and not _is_document(body, start, stop):
        return Format.NDJSON
    return Format.JSON


def _is_document(body: bytes, start: int, stop: int) -> bool:
    """Return whether one value, perhaps cut, goes beyond the first line, which ends at `stop`."""
    if stop < 0 or _is_value(body[start:stop]):
        return False
    error = parse(body[start:].decode(errors="replace")).error
    return error is None or error.verdict is ScanState.PREFIX


def _is_value(line: bytes) -> bool:
    return parse(line.decode(errors="replace")).error is None


def _by_media_type(body: bytes, media: str) -> Format:
    """Return the format of a body that has no recognisable form."""
    if media == _SSE_TYPE:
        return Format.SSE
    if media == _EVENTSTREAM_TYPE:
        return Format.EVENTSTREAM
    if media in _NDJSON_TYPES:
        return Format.NDJSON if not body.strip() or _OBJECT_LINE.search(body) else Format.OTHER
    is_json = media == "application/json" or media.endswith("+json")
    return Format.JSON if is_json and body.strip() else Format.OTHER
