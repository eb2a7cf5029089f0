"""Message heads: found, validated by llhttp (httptools), and written field by field.

Order, case and repeats of the fields stay as they were on the wire. Strictness is llhttp's
default: bare LF, obs-fold, space before the colon, NUL, `Content-Length` beside
`Transfer-Encoding` and a repeated `Content-Length` are refused, because a proxy that reads them
differently from its peer can be made to smuggle requests (RFC 9112 section 11.2).
"""

import json
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus

import httptools

from deltatape.model.exchange import Framing

MAX_HEAD_BYTES = 256 * 1024
_SHORT_BYTES = 4096
_TLS_HANDSHAKE = b"\x16\x03"
_HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n"
_HTTP2 = (
    "this is HTTP/2 with prior knowledge, and deltatape speaks HTTP/1.1 here: switch HTTP/2 off in"
    " the client (httpx: http2=False; curl: --http1.1)"
)
_SETTINGS = b"\x00\x00\x00\x04\x00" + bytes(4)
_GOAWAY = 7
_HTTP_1_1_REQUIRED = 13
_BARE_CR = re.compile(rb"(?:\r?\n)*\r(?!\n)")
"""A CR before the request line that ends no empty line. llhttp skips it; other servers do not."""

_LENGTH = b"content-length"
# Most names are told from these by their length alone.
_CODING_LENGTH = len(b"transfer-encoding")
_CONNECTION_LENGTH = len(b"connection")
_LENGTH_FIELD = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: ([1-9][0-9]{0,6})\r\n")
"""How clients write it. What is written otherwise, or twice, is a part of the pattern."""

Fields = tuple[tuple[bytes, bytes], ...]

_WITHOUT_BODY = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)

HOP_BY_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"upgrade",
    )
)
"""Fields for one hop only (RFC 9110 section 7.6.1). `Transfer-Encoding` and `Trailer` are not
here: the body is passed on in the framing it came in."""

_Parser = httptools.HttpRequestParser | httptools.HttpResponseParser


class BadMessageError(Exception):
    """Invalid HTTP/1 as of RFC 9112."""


class Http2Error(BadMessageError):
    """A client speaks HTTP/2 with prior knowledge, and reads nothing but HTTP/2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedRequestHead:
    """A request head as parsed. `length` is None if the body is chunked, 0 if there is none.

    Unlike the tape's `Request`, it says how the body is framed, and has unmasked credentials.
    """

    method: str
    target: bytes
    http: str
    fields: Fields
    length: int | None
    keep_alive: bool
    pattern: bytes
    """The head as it came, with 1 for its `Content-Length` if that has 1 to 7 digits. Heads with
    the same pattern differ in that length alone, as those of an application's requests do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedResponseHead:
    """A response head as parsed. `length` counts for `LENGTH` framing.

    Unlike the tape's `ResponseHead`, it says how the body is framed, and has unmasked credentials.
    """

    status: int
    reason: bytes
    http: str
    fields: Fields
    framing: Framing
    length: int
    keep_alive: bool
    raw: bytes
    """The head as it was received."""

    @property
    def informational(self) -> bool:
        """Whether another head follows: 1xx except 101."""
        return self.status < HTTPStatus.OK and self.status != HTTPStatus.SWITCHING_PROTOCOLS


class _Collector:
    """The callbacks of httptools."""

    def __init__(self) -> None:
        self.target = b""
        self.reason = b""
        self.fields: list[tuple[bytes, bytes]] = []
        self.complete = False
        self.keep_alive = False
        self.parser: _Parser | None = None

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_status(self, status: bytes) -> None:
        self.reason += status

    def on_header(self, name: bytes, value: bytes) -> None:
        self.fields.append((name, value))

    def on_headers_complete(self) -> None:
        self.complete = True
        # Only here: when a body-less message is complete, llhttp has forgotten its flags.
        self.keep_alive = self.parser is not None and bool(self.parser.should_keep_alive())
        self.parser = None  # which refers to this: else both wait for the garbage collector


def find_head(buffer: bytes | bytearray) -> int:
    """Return the length of the head in `buffer`, blank line included; 0 if incomplete.

    Raises:
        BadMessageError: there is no end within `MAX_HEAD_BYTES`, the lines end with LF alone, or it
            is TLS.
        Http2Error: it is HTTP/2.
    """
    if buffer[:2] == _TLS_HANDSHAKE:
        raise BadMessageError(
            "this is TLS, and here HTTP is spoken without it: http://, not https://"
        )
    if buffer.startswith(_HTTP2_PREFACE):
        raise Http2Error(_HTTP2)
    end = buffer.find(b"\r\n\r\n")
    before = end + 1 if end >= 0 else len(buffer)
    if 0 <= buffer.find(b"\n\n") < before or 0 <= buffer.find(b"\n\r\n") < before:
        raise BadMessageError("lines end with LF alone; CRLF is accepted")
    if (end if end >= 0 else len(buffer)) > MAX_HEAD_BYTES:
        raise BadMessageError(f"no end of the head within {MAX_HEAD_BYTES} bytes")
    return end + 4 if end >= 0 else 0


def parse_request(raw: bytes) -> ParsedRequestHead:
    """Parse a request head. Short heads are cached by their pattern: clients repeat them.

    Raises:
        BadMessageError: not a valid head of HTTP/1.0 or HTTP/1.1.
    """
    return _short_request(raw) if len(raw) <= _SHORT_BYTES else _parse_request(raw)


@lru_cache(maxsize=128)
def _short_request(raw: bytes) -> ParsedRequestHead:
    found = _LENGTH_FIELD.search(raw)
    if found is None:
        return _parse_request(raw)
    start, end = found.span(1)
    return _with_length(_pattern_request(b"%b1%b" % (raw[:start], raw[end:])), found[1])


def _with_length(head: ParsedRequestHead, digits: bytes) -> ParsedRequestHead:
    """Return `head`, whose body has a length of 1, with another length."""
    if digits == b"1":
        return head
    return ParsedRequestHead(
        method=head.method,
        target=head.target,
        http=head.http,
        fields=tuple(
            [each if each[0].lower() != _LENGTH else (each[0], digits) for each in head.fields]
        ),
        length=int(digits),
        keep_alive=head.keep_alive,
        pattern=head.pattern,
    )


def _parse_request(raw: bytes) -> ParsedRequestHead:
    if _BARE_CR.match(raw):
        raise BadMessageError("a CR without LF before the request line")
    found = _Collector()
    parser = httptools.HttpRequestParser(found)
    _feed(parser, found, raw)
    http = _version(parser)
    hosts = sum(name.lower() == b"host" for name, _ in found.fields)
    if hosts > 1 or (http == "1.1" and not hosts):
        # RFC 9112 section 3.2: peers that pick different ones can be played against each other.
        raise BadMessageError(f"{hosts} Host fields; exactly one is accepted")
    chunked = field(found.fields, b"transfer-encoding") is not None
    return ParsedRequestHead(
        method=parser.get_method().decode("ascii"),
        target=found.target,
        http=http,
        fields=tuple(found.fields),
        length=None if chunked else int(field(found.fields, b"content-length") or b"0"),
        keep_alive=found.keep_alive,
        pattern=raw,
    )


_pattern_request = lru_cache(maxsize=128)(_parse_request)


def parse_response(raw: bytes, *, method: str) -> ParsedResponseHead:
    """Parse a response head; `method` is the request's (HEAD has no body).

    Raises:
        BadMessageError: not a valid head of HTTP/1.0 or HTTP/1.1.
    """
    found = _Collector()
    parser = httptools.HttpResponseParser(found)
    _feed(parser, found, raw)
    http = _version(parser)
    status = parser.get_status_code()
    if status < HTTPStatus.CONTINUE:
        raise BadMessageError(f"status {status:03}; 100 and above are accepted")
    # Several fields are one list (RFC 9110 section 5.3), of which the last coding counts.
    codings = [
        value
        for name, value in found.fields
        if len(name) == _CODING_LENGTH and name.lower() == b"transfer-encoding"
    ]
    coding = b",".join(codings).lower()
    length = field(found.fields, b"content-length")
    if method == "HEAD" or status < HTTPStatus.OK or status in _WITHOUT_BODY:
        framing = Framing.NONE
    elif coding.split(b",")[-1].strip() == b"chunked":
        framing = Framing.CHUNKED
    elif length is not None and not coding:
        framing = Framing.LENGTH
    else:
        framing = Framing.CLOSE
    return ParsedResponseHead(
        status=status,
        reason=found.reason,
        http=http,
        fields=tuple(found.fields),
        framing=framing,
        length=int(length or b"0") if framing is Framing.LENGTH else 0,
        keep_alive=found.keep_alive and framing is not Framing.CLOSE,
        raw=raw,
    )


def _feed(parser: _Parser, found: _Collector, raw: bytes) -> None:
    found.parser = parser
    try:
        parser.feed_data(raw)
    except httptools.HttpParserUpgrade:
        pass  # CONNECT or an Upgrade: the head itself is complete
    except httptools.HttpParserError as error:
        raise BadMessageError(str(error) or type(error).__name__) from None
    if not found.complete:
        raise BadMessageError("the head ends before its blank line")


def _version(parser: _Parser) -> str:
    http: str = parser.get_http_version()
    if http not in ("1.0", "1.1"):
        raise BadMessageError(f"HTTP version {http}; 1.0 and 1.1 are accepted")
    return http


def field(fields: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes | None:
    """Return the value of the first field `name` (lower case)."""
    length = len(name)
    for key, value in fields:
        if len(key) == length and key.lower() == name:
            return value
    return None


def expects_continue(head: ParsedRequestHead) -> bool:
    """Check whether a client waits for 100 before it sends its body.

    HTTP/1.0 clients do not, whatever their fields say (RFC 9110 section 10.1.1).
    """
    expected = field(head.fields, b"expect")
    return head.http == "1.1" and expected is not None and expected.lower() == b"100-continue"


def end_to_end(fields: Fields) -> Fields:
    """Return `fields` without hop-by-hop fields, including those that `Connection` lists."""
    listed = _tokens(fields, b"connection")
    drop = (HOP_BY_HOP | listed) - {b"transfer-encoding", b"content-length", b"host"}
    return tuple((name, value) for name, value in fields if name.lower() not in drop)


def _tokens(fields: Fields, name: bytes) -> set[bytes]:
    """Return the elements of a list, in lower case."""
    values = (value for key, value in fields if key.lower() == name)
    return {token.strip().lower() for value in values for token in value.split(b",")}


_WEBSOCKET, _UPGRADE = b"websocket", b"upgrade"
_ASKING = frozenset((b"keep-alive", _UPGRADE))
"""What browsers list in `Connection` when they ask for a WebSocket."""


def asks_for_websocket(head: ParsedRequestHead) -> bool:
    """Check whether a request is the handshake of a WebSocket (RFC 6455 section 4.1)."""
    return (
        head.method == "GET"
        and head.http == "1.1"
        and head.length == 0
        and _WEBSOCKET in _tokens(head.fields, b"upgrade")
        and _UPGRADE in _tokens(head.fields, b"connection")
    )


def handshake_fields(fields: Fields) -> Fields:
    """Return the fields of a WebSocket's handshake to forward: `end_to_end`, and its own two.

    Those two stay as they are unless they name something else, too.
    """
    others = {name.lower() for name, _ in end_to_end(fields)}
    found: list[tuple[bytes, bytes]] = []
    for name, value in fields:
        key, tokens = name.lower(), _tokens(((b"", value),), b"")
        if key == b"connection" and _UPGRADE in tokens:
            found.append((name, value if tokens <= _ASKING else b"Upgrade"))
        elif key == b"upgrade" and _WEBSOCKET in tokens:
            found.append((name, value if tokens == {_WEBSOCKET} else _WEBSOCKET))
        elif key in others:
            found.append((name, value))
    return tuple(found)


def ends_connection(http: str, framing: Framing, fields: Fields) -> bool:
    """Check whether a response says that its connection ends with it (RFC 9112 section 9.3)."""
    if framing is Framing.CLOSE:
        return True
    options = {
        option.strip().lower()
        for name, value in fields
        if len(name) == _CONNECTION_LENGTH and name.lower() == b"connection"
        for option in value.split(b",")
    }
    return b"close" in options or (http == "1.0" and b"keep-alive" not in options)


def with_close(fields: Fields) -> Fields:
    """Return the fields of a response, changed to say that its connection ends with it."""
    others = (each for each in fields if each[0].lower() != b"connection")
    return (*others, (b"Connection", b"close"))


def write_request(method: str, target: bytes, fields: Fields) -> bytes:
    """Return an HTTP/1.1 request head."""
    return b"%b %b HTTP/1.1\r\n%b\r\n" % (method.encode("ascii"), target, write_fields(fields))


def write_response(status: int, reason: bytes, fields: Fields, *, http: str = "1.1") -> bytes:
    """Return a response head, HTTP/1.1 or `http`."""
    line = b"HTTP/%b %d %b" % (http.encode("ascii"), status, reason)
    return b"%b\r\n%b\r\n" % (line, write_fields(fields))


def write_fields(fields: Fields) -> bytes:
    """Return field lines, each with CRLF."""
    return b"".join(b"%b: %b\r\n" % pair for pair in fields)


# Our own answers: small JSON errors that say what is wrong and what to do.

REASONS: Mapping[int, bytes] = {
    400: b"Bad Request",
    403: b"Forbidden",
    404: b"Not Found",
    405: b"Method Not Allowed",
    502: b"Bad Gateway",
    504: b"Gateway Timeout",
}


def http2_refusal(message: str) -> bytes:
    """Return frames of HTTP/2 that end a connection, with `message` as their debug data.

    Source: RFC 9113 sections 6.8 (GOAWAY) and 7 (HTTP_1_1_REQUIRED); a server begins with SETTINGS.
    """
    data = struct.pack(">LL", 0, _HTTP_1_1_REQUIRED) + message.encode()
    head = struct.pack(">L", len(data))[1:] + struct.pack(">BBL", _GOAWAY, 0, 0)
    return _SETTINGS + head + data


def error_answer(
    status: int,
    code: str,
    message: str,
    *,
    detail: Mapping[str, object] | None = None,
    fields: Fields = (),
    head_only: bool = False,
) -> bytes:
    """Return a response whose JSON body has the form that LLM SDKs show to users.

    `{"error": {"message": ..., "type": "deltatape", "code": ..., **detail}}`; the connection is
    closed after it. `head_only` for an answer to HEAD.
    """
    error = {"message": message, "type": "deltatape", "code": code, **(detail or {})}
    body = json.dumps({"error": error}, ensure_ascii=False, indent=1).encode() + b"\n"
    head = write_response(
        status,
        REASONS[status],
        (
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
            (b"x-deltatape-error", code.encode()),
            *fields,
        ),
    )
    return head if head_only else head + body
