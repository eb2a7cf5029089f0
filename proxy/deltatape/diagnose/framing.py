r"""How a response body is framed: told by what it looks like, else by its media type.

Servers mislabel both ways: NDJSON comes as `application/json`, `text/plain` or `text/event-stream`,
event streams come as `application/json`, an error under the type of a stream is one pretty-printed
document. What a body looks like is asked of its beginning, in this order:

- an Amazon event stream begins with a prelude whose checksum is right;
- a server-sent event begins with a field or a comment; under `text/event-stream` it may also come
  behind something else;
- NDJSON is a line with a whole JSON value, and behind it a line that begins an object or array;
- an array of objects, or an empty one, is streamed element by element;
- what else begins like an object or an array is one document.

Only the whole body is looked at, so the answer is the same for any cutting of it.
"""

import re

from deltatape.model.stream import Format
from deltatape.wire.aws_eventstream import is_message
from deltatape.wire.json_scan import Verdict
from deltatape.wire.json_value import parse

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
    """The format of `body`, after content-coding.

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
    """Whether `body` looks like one that no content-coding was applied to."""
    return bool(_SSE_START.match(body) or _JSON_START.match(body) or is_message(body))


def _json_format(body: bytes, start: int, *, is_ndjson: bool) -> Format:
    """The format of a body with a bracket at `start`."""
    stop = body.find(b"\n", start)
    if stop >= 0 and _NEXT_VALUE.match(body, stop) and _is_value(body[start:stop]):
        return Format.NDJSON
    if _ARRAY_START.match(body, start):
        return Format.JSON_ARRAY
    if is_ndjson and not _is_document(body, start, stop):
        return Format.NDJSON
    return Format.JSON


def _is_document(body: bytes, start: int, stop: int) -> bool:
    """Whether one value, perhaps cut, takes more than the first line, which ends at `stop`."""
    if stop < 0 or _is_value(body[start:stop]):
        return False
    error = parse(body[start:].decode(errors="replace")).error
    return error is None or error.verdict is Verdict.PREFIX


def _is_value(line: bytes) -> bool:
    return parse(line.decode(errors="replace")).error is None


def _by_media_type(body: bytes, media: str) -> Format:
    """The format of a body that looks like nothing."""
    if media == _SSE_TYPE:
        return Format.SSE
    if media == _EVENTSTREAM_TYPE:
        return Format.EVENTSTREAM
    if media in _NDJSON_TYPES:
        return Format.NDJSON if not body.strip() or _OBJECT_LINE.search(body) else Format.OTHER
    is_json = media == "application/json" or media.endswith("+json")
    return Format.JSON if is_json and body.strip() else Format.OTHER
