"""What is traffic of an LLM, and what a file is that is none.

A capture holds all that a program or a page loaded. An exchange counts as traffic of an LLM if its
response or its path shows a dialect, if its request asks a model, or if it streams events after a
POST, since applications call their events as they like. All else is left out, so that nothing is
read as a healthy answer that is none.
"""

import re
from collections.abc import Mapping

from deltatape.diagnose.decode import decode, media_type
from deltatape.diagnose.rebuild import analyse_all, dialect_of, rebuild
from deltatape.dialects import dialects_for, expect
from deltatape.model.app_names import AppNames
from deltatape.model.exchange import Exchange
from deltatape.model.stream import AnomalyKind, Format, Stream
from deltatape.printable import excerpt
from deltatape.wire.json_scan import ScanState
from deltatape.wire.json_value import parse, read_object

_HTTP_ERROR = 400
_PROMPTS = ("messages", "contents")
_NO_BODY = frozenset({"OPTIONS", "HEAD", "CONNECT"})

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "a gzip file; unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a zstd file; unpack it first"),
    (b"BZh", "a bzip2 file; unpack it first"),
    (b"\xfd7zXZ\0", "an xz file; unpack it first"),
    (b"PK\x03\x04", "a ZIP archive; unpack it first"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"RIFF", "an image, a sound or a video (RIFF)"),
    (b"%PDF-", "a PDF document"),
    (b"\x7fELF", "a program (ELF)"),
    (b"MZ", "a program (Windows)"),
    (b"\xcf\xfa\xed\xfe", "a program (macOS)"),
    (b"\xca\xfe\xba\xbe", "a program (macOS or Java)"),
    (b"\0asm", "a program (WebAssembly)"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\xd4\xc3\xb2\xa1", "captured packets (pcap)"),
    (b"\xa1\xb2\xc3\xd4", "captured packets (pcap)"),
    (b"\x0a\x0d\x0d\x0a", "captured packets (pcapng)"),
)
"""Files that are known by how they begin."""
_BINARY_SHARE = 10
"""A file with one control character among this many bytes is binary."""
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MARKUP = re.compile(r"\ufeff?\s*<(?:!--|(!doctype html|html|head|body)\b|[!?/a-z])", re.IGNORECASE)
_SHOWN = 60
_KEYS = 5
_LOOKED_AT = 4096


def is_traffic(exchange: Exchange, app: AppNames) -> bool:
    """Check whether an exchange of a capture is traffic of an LLM."""
    if exchange.request.method in _NO_BODY:
        return False
    if exchange.upgraded:
        return _asks_on_socket(exchange, app)
    stream = decode(exchange)
    if dialect_of(exchange, stream, dialects_for(app)) is not None or asks_model(exchange):
        return True
    return exchange.request.method == "POST" and _is_event_stream(stream)


def _asks_on_socket(exchange: Exchange, app: AppNames) -> bool:
    """Check for a response of a model among the messages, or for the path of one."""
    (analysis,) = analyse_all([exchange], app)
    known = [each for each in dialects_for(app) if Format.WEBSOCKET in each.traits.formats]
    return bool(analysis.turns) or expect(exchange.request.path, known) is not None


def is_answer(exchange: Exchange, app: AppNames) -> bool:
    """Check the same for a response with little other data; errors count, too."""
    response = exchange.response
    if response is not None and response.status >= _HTTP_ERROR:
        return True
    return is_traffic(exchange, app) or rebuild(exchange, app).error is not None


def asks_model(exchange: Exchange) -> bool:
    """Check whether the request's body is a conversation, or a prompt for a model."""
    asked = parse(exchange.request.content.decode(errors="replace")).value
    if not isinstance(asked, dict):
        return False
    return {"model", "prompt"} <= asked.keys() or any(
        isinstance(asked.get(key), list) for key in _PROMPTS
    )


def _is_event_stream(stream: Stream) -> bool:
    """Check for events; a text with lines that look like fields, as YAML has them, has none."""
    if stream.format not in (Format.SSE, Format.EVENTSTREAM):
        return False
    if any(read_object(event.data) for event in stream.events):
        return True
    strange = sum(one.kind is AnomalyKind.UNKNOWN_FIELD for one in stream.anomalies)
    found = len(stream.events) + len(stream.comments) + (stream.pending is not None)
    return found > strange


def kind_of(exchange: Exchange) -> str:
    """Return a word for what an exchange is, other than traffic of an LLM: its media type."""
    if exchange.upgraded:
        return "WebSocket"
    headers = exchange.response.headers if exchange.response else ()
    return media_type(headers) or "no media type"


def describe(data: bytes) -> str:
    """Say what a file is that is no capture, from its bytes alone."""
    if not data.strip():
        return "only white space" if data else "empty"
    for start, name in _MAGIC:
        if data.startswith(start):
            return name
    controls = len(_CONTROL.findall(data[:_LOOKED_AT]))
    if controls * _BINARY_SHARE > min(len(data), _LOOKED_AT) or b"\0" in data[:_LOOKED_AT]:
        return f"binary data that begins with {data[:8].hex(' ')}"
    text = data.decode(errors="replace")
    markup = _MARKUP.match(text)
    if markup is not None:
        return "an HTML page" if markup[1] else "an XML or HTML document"
    if text.removeprefix("\ufeff").lstrip().startswith(("{", "[")):
        return _describe_json(text.removeprefix("\ufeff"))
    return f"text that begins with {_first_line(text)}"


def _first_line(text: str) -> str:
    return f"'{excerpt(text.lstrip().partition(chr(10))[0].rstrip(), _SHOWN)}'"


def _describe_json(text: str) -> str:
    found = parse(text)
    if found.error is None:
        return _describe_value(found.value)
    first = read_object(text.partition("\n")[0])
    if first is not None:
        return f"lines of JSON, the first with {_keys(first)}"
    if found.error.verdict is ScanState.PREFIX:
        return f"JSON that is torn: it ends within a value, after {len(text)} characters"
    line = text.count("\n", 0, found.error.offset) + 1
    return f"text that begins like JSON, and is none from line {line} on"


def _describe_value(value: object) -> str:
    if isinstance(value, dict):
        return f"JSON, an object with {_keys(value)}"
    return "JSON, an array" if isinstance(value, list) else "JSON"


def _keys(value: Mapping[str, object]) -> str:
    if not value:
        return "no members"
    names = ", ".join(f"'{excerpt(key, _SHOWN)}'" for key in list(value)[:_KEYS])
    return f"{names}, ..." if len(value) > _KEYS else names
