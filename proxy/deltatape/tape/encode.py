r"""Values to the text of a tape line.

Strategy: a line is concatenated from strings that the interpreter quotes in C, since dumping a list
per record costs three times as much. Characters that a terminal or an editor might interpret
(controls, separators, bidirectional controls, U+FEFF) are escaped as `\uXXXX`; all others stay
readable.

Invariants: every result is one line of valid UTF-8; bytes come back exactly; nothing raises.

Format: recordings/README.md, "Records".
"""

import base64
import functools
import json
import re
from json.encoder import encode_basestring

from deltatape.model.exchange import EndReason, Framing, Headers, Tap
from deltatape.tape import fields
from deltatape.tape.payload import (
    ClientState,
    RequestEnd,
    RequestHeadRecord,
    ResponseStart,
    SentUpstream,
)
from deltatape.tape.record import Header, Payload

_UNREADABLE = re.compile(
    "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""Characters that JSON does not escape, but that must not occur in a line."""

_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


@functools.lru_cache(maxsize=64)
def _code(code: str) -> str:
    return json_text(code)


def _escape(match: re.Match[str]) -> str:
    r"""Return `\uXXXX`; lone surrogates have no UTF-8 form and become U+FFFD."""
    code = ord(match.group())
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else f"\\u{code:04x}"  # noqa: PLR2004


def json_text(value: object) -> str:
    """Any JSON value as canonical text: no spaces, keys in their order, unreadable escaped."""
    text = encode_basestring(value) if isinstance(value, str) else _JSON.encode(value)
    if text.isascii() and "\x7f" not in text:
        return text
    # Outside of strings JSON is ASCII, so escaping in the finished text is safe.
    return _UNREADABLE.sub(_escape, text)


def json_bytes(data: bytes) -> str:
    """Return `data` as JSON: a string if and only if it is UTF-8, else `{"b64":...}`."""
    try:
        quoted = encode_basestring(data.decode())
    except UnicodeDecodeError:
        return f'{{"b64":"{base64.b64encode(data).decode()}"}}'
    if quoted.isascii() and "\x7f" not in quoted:
        return quoted
    return _UNREADABLE.sub(_escape, quoted)


def field_text(field: fields.Field) -> str:
    """Return a header field as JSON."""
    name, value = field
    text = json_bytes(value) if isinstance(value, bytes) else json_text(fields.value_to_json(value))
    return f"[{json_bytes(name)},{text}]"


_FIELD_TEXTS = fields.FieldMemory(field_text)


def payload_record(t_ns: int, exchange: int, payload: Payload) -> bytes:
    """Return the line of any record."""
    match payload:
        case RequestHeadRecord(watched=None):
            return request_record(
                t_ns,
                exchange,
                id_text=json_text(payload.id),
                line_text=f'"method":{json_text(payload.method)}'
                f',"target":{json_text(fields.target_to_json(payload.target))}'
                f',"upstream":{json_text(payload.upstream)}',
                http=payload.http,
                headers_text=_headers_text(payload.headers),
                tap=payload.tap,
            )
        case ResponseStart():
            return response_record(
                t_ns,
                exchange,
                status=payload.status,
                reason_text=json_bytes(payload.reason),
                http=payload.http,
                framing=payload.framing,
                headers_text=_headers_text(payload.headers),
            )
        case RequestEnd():
            return request_end_record(t_ns, exchange)
        case SentUpstream():
            return sent_record(
                t_ns, exchange, payload.connect_ns, payload.tls_ns, reused=payload.reused
            )
        case _:
            return json_record(t_ns, exchange, payload.code, payload.to_json())


def _headers_text(headers: Headers) -> str:
    return f"[{','.join([_FIELD_TEXTS[field] for field in headers])}]"


def json_record(t_ns: int, exchange: int, code: str, value: object) -> bytes:
    """Return the line of a record whose payload has the JSON form `value`."""
    return f"[{t_ns},{exchange},{_code(code)},{json_text(value)}]\n".encode()


# Records that every exchange has, without a payload of their class in between. Arguments called
# `..._text` are JSON.


def request_record(
    t_ns: int,
    exchange: int,
    *,
    id_text: str,
    line_text: str,
    http: str,
    headers_text: str,
    tap: Tap,
) -> bytes:
    """Return the line of a `RequestHeadRecord`; `line_text` are method, target and upstream."""
    more = "" if tap is Tap.PROVIDER else f',"tap":"{tap.value}"'
    return (
        f'[{t_ns},{exchange},"request",{{"id":{id_text},{line_text},"http":{_code(http)},'
        f'"headers":{headers_text}{more}}}]\n'
    ).encode()


def client_record(t_ns: int, connection: int, state: ClientState) -> bytes:
    """Return the line of a `ClientRecord`."""
    return f'[{t_ns},0,"client",{{"connection":{connection},"state":"{state}"}}]\n'.encode()


def request_end_record(t_ns: int, exchange: int) -> bytes:
    """Return the line of a `RequestEnd`."""
    return f'[{t_ns},{exchange},"request-end",{{}}]\n'.encode()


def sent_record(t_ns: int, exchange: int, connect_ns: int, tls_ns: int, *, reused: bool) -> bytes:
    """Return the line of a `SentUpstream`."""
    return (
        f'[{t_ns},{exchange},"sent",{{"connect_ns":{connect_ns},"tls_ns":{tls_ns},'
        f'"reused":{"true" if reused else "false"}}}]\n'
    ).encode()


def response_record(
    t_ns: int,
    exchange: int,
    *,
    status: int,
    reason_text: str,
    http: str,
    framing: Framing,
    headers_text: str,
) -> bytes:
    """Return the line of a `ResponseStart`."""
    return (
        f'[{t_ns},{exchange},"response",{{"status":{status},"reason":{reason_text},'
        f'"http":{_code(http)},"framing":"{framing}","headers":{headers_text}}}]\n'
    ).encode()


def end_record(t_ns: int, exchange: int, reason: EndReason, total: int, sha256: str) -> bytes:
    """Return the line of an `EndRecord` without a detail and without losses."""
    return (
        f'[{t_ns},{exchange},"end",{{"reason":"{reason}","bytes":{total},"sha256":"{sha256}"}}]\n'
    ).encode()


def boundaries_record(t_ns: int, exchange: int, ends: tuple[int, ...]) -> bytes:
    """Return the line of a `Boundaries`."""
    return f'[{t_ns},{exchange},"boundaries",[{",".join(map(str, ends))}]]\n'.encode()


_LONG = 2000
_SPELLINGS = (b"\\u", b"\\/", b"\x7f", b"\xc2", b"\xd8\x9c", b"\xe2\x80", b"\xe2\x81", b"\xef\xbb")
"""Where a text may be written in more than one way: escapes, and beginnings of `_UNREADABLE`."""


def is_data_record(line: bytes, t_ns: int, middle: str, data: bytes) -> bool:
    """Return whether `data_record` makes this line, from which `data` was read."""
    # In a long text, it is quicker to look for these than to encode it.
    if (
        len(line) > _LONG
        and line.startswith(f'[{t_ns}{middle}"'.encode())
        and line.endswith(b'"]\n')
        and not any(mark in line for mark in _SPELLINGS)
    ):
        return True
    return line == data_record(t_ns, middle, data)


_LARGE = 16 << 10
"""From here on, it pays to look for each character that is escaped, instead of at each there is."""
_ESCAPES = tuple(
    (char.encode(), json_text(char)[1:-1].encode())
    for char in ("\\", '"', *map(chr, range(0x20)), "\x7f")
)
"""The ASCII characters that are escaped; the backslash first, since all others become one."""
_ESCAPED = b"".join(char for char, _ in _ESCAPES)
_SAMPLES = 256
_DENSE = 8
"""If one in this many characters is escaped, it does not pay: JSON of short strings."""
_RARE_LEADS = (b"\xc2", b"\xd8", b"\xe2", b"\xef")
"""The first bytes of all other `_UNREADABLE` in UTF-8."""


def _escaped(data: bytes) -> bytes | None:
    """Return a large text as a JSON string, without the quotation marks.

    None if `json_bytes` has to make it, or does so as quickly: of data that is no text, has rare
    characters, or many to escape.
    """
    samples = data[:: len(data) // _SAMPLES]
    plain = samples.translate(None, _ESCAPED)
    if (len(samples) - len(plain)) * _DENSE > len(samples):
        return None
    if not data.isascii():
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return None
        if any(lead in data for lead in _RARE_LEADS) and _UNREADABLE.search(text):
            return None
    for char, escape in _ESCAPES:
        if char in data:  # to find that it is nowhere takes a microsecond, and most are
            data = data.replace(char, escape)
    return data


def data_record(t_ns: int, middle: str, data: bytes) -> bytes:
    """Return a line whose payload is `data`; `middle` is `,EXCHANGE,"CODE",`.

    The hot path: one per read.
    """
    if len(data) >= _LARGE:
        escaped = _escaped(data)
        if escaped is not None:
            return b"".join((f'[{t_ns}{middle}"'.encode(), escaped, b'"]\n'))
    if data.isascii() and b"\x7f" not in data:  # as most bodies are
        return f"[{t_ns}{middle}{encode_basestring(data.decode())}]\n".encode()
    return f"[{t_ns}{middle}{json_bytes(data)}]\n".encode()


def log_record(t_ns: int, stream: str, line: bytes) -> bytes:
    """Return the line of a `LogLine`: one per line that a program prints."""
    return f'[{t_ns},0,"log",{{"stream":"{stream}","line":{json_bytes(line)}}}]\n'.encode()


def header_line(header: Header) -> bytes:
    """Return the first line of a tape."""
    return f"{json_text(header.to_json())}\n".encode()
