"""The parts of an exchange to import: files, request, response, body; and `build`.

The user can describe the request and the response beside a body as JSON:

    request.json   {"method": "POST", "url": "https://...", "headers": {...}, "body": {...}}
    response.json  {"status": 200, "headers": {...}}

A request with other keys than these and neither `url` nor `method` is taken for the body itself,
which is what most people have at hand. Headers are an object or a list of pairs. Other keys are
ignored. What is no such JSON object is refused.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime  # noqa: TID251 - it reads no clock
from http import HTTPStatus
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from deltatape.diagnose.decode import format_of
from deltatape.diagnose.exchange_parts import Part
from deltatape.errors import UsageError
from deltatape.model.exchange import (
    Exchange,
    Framing,
    Headers,
    Note,
    Read,
    Request,
    ResponseHead,
    Source,
    header,
)
from deltatape.model.stream import Format
from deltatape.model.websocket import FramePiece, Side, whole_messages
from deltatape.wire.websocket import whole_message_head

PlainHeaders = tuple[tuple[bytes, bytes], ...]

_CODED = {b"gzip": b"\x1f\x8b", b"zstd": b"\x28\xb5\x2f\xfd"}
"""How bodies of a content-coding begin, where they begin with something certain."""
_SSE_LINE = re.compile(rb"^(?:data|event|id|retry)?:", re.MULTILINE)
_LONGEST_S = 1e8
"""Between the first request and another time of a file: three years."""
_SOCKET_SCHEME = re.compile(r"^ws(s?):")
UNKNOWN = "application/octet-stream"
"""The media type of a body of no known format."""
_MEDIA_TYPES: Mapping[Format, str] = {
    Format.SSE: "text/event-stream",
    Format.NDJSON: "application/x-ndjson",
    Format.JSON_ARRAY: "application/json",
    Format.EVENTSTREAM: "application/vnd.amazon.eventstream",
    Format.JSON: "application/json",
    Format.OTHER: UNKNOWN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSource:
    """The files or bytes to import.

    `files` are the contents by name: one entry for a file, several for a folder. `request` and
    `response` describe the rest of the exchange, if the user named files for them.
    """

    name: str
    """As the user gave it."""
    files: Mapping[str, bytes]
    request: bytes | None = None
    response: bytes | None = None
    request_name: str = "--request"
    """The name of the file that `request` is from, for messages; the same of `response`."""
    response_name: str = "--response"

    @property
    def only(self) -> bytes | None:
        """Return the content, if there is exactly one file."""
        return next(iter(self.files.values())) if len(self.files) == 1 else None


class Importer(Protocol):
    """Reads one kind of file or folder."""

    @property
    def name(self) -> str:
        """Return the kind, for messages: "a HAR"."""

    @property
    def accepts(self) -> str:
        """Return what users of this kind of file would look for, for messages."""

    @property
    def is_body(self) -> bool:
        """Return whether it is a single response, whose request the user may describe."""

    @property
    def holds(self) -> frozenset[Part]:
        """Return the parts of an exchange that such a file holds; see `IMPLIED`."""

    @property
    def remark(self) -> str:
        """Return what else there is to know, for docs/formats.md; "" for nothing."""

    def claims(self, source: ImportSource) -> bool:
        """Return whether to use this importer; earlier importers declined it."""

    def read(self, source: ImportSource) -> Sequence[Exchange]:
        """Return the exchanges in the order in which they began; one if `is_body`.

        Called only for what `claims` accepts. Their numbers are given later.

        Raises:
            UsageError: it is damaged.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRequest:
    """The known parts of a request."""

    method: str = "POST"
    url: str = ""
    http: str = "1.1"
    headers: PlainHeaders = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedResponse:
    """The known parts of a response without its body."""

    status: int = 200
    reason: bytes = b""
    http: str = "1.1"
    headers: PlainHeaders = ()


def build(
    name: str,
    request: ImportedRequest,
    response: ImportedResponse | None,
    body: bytes,
    notes: Iterable[str] = (),
) -> Exchange:
    """Build an exchange of these parts: no times, one read, no ending.

    A response header that contradicts the body, because the body was decoded or edited before it
    was saved, is left out; a missing media type is inferred from the body. Notes report both.

    Args:
        name: the name of the file, as the user gave it.
        request: what is known of it.
        response: its head; None if the file does not have the response.
        body: the body of the response; empty if there is no response.
        notes: what was done before.
    """
    head, more = (None, []) if response is None else _head(response, body)
    ends = (len(body),) if head is not None and head.framing is Framing.CHUNKED else None
    upstream, target = _split(request.url)
    return Exchange(
        tape=name,
        number=1,
        id="",
        source=Source.IMPORT,
        recorded_at="",
        request=Request(
            method=request.method,
            target=(target.encode("utf-8", "surrogateescape"),),
            upstream=upstream,
            http=request.http,
            headers=request.headers,
            body=request.body,
            t_ns=0,
            t_end_ns=0,
            line=None,
        ),
        response=head,
        reads=(Read(t_ns=0, data=body, boundaries=ends, line=None),) if body else (),
        notes=tuple(Note(t_ns=0, text=text) for text in (*notes, *more)),
    )


class ImportedMessage(NamedTuple):
    """A message of a WebSocket, or what a side closed it with."""

    t_ns: int
    side: Side
    opcode: int
    data: bytes


def build_socket(
    name: str,
    request: ImportedRequest,
    response: ImportedResponse,
    messages: Iterable[ImportedMessage],
    *,
    program: str,
    asked_ns: int,
    answered_ns: int,
    notes: Iterable[str] = (),
) -> Exchange:
    """Build an exchange whose connection became a WebSocket, each message one frame.

    Times are nanoseconds since the first request of the file; one that decreases is taken for the
    one before it.

    Args:
        name: the name of the file, as the user gave it.
        request: what is known of the handshake.
        response: the head of its answer. Over HTTP/2 that has another status, which is noted.
        messages: in their order.
        program: which wrote the file.
        asked_ns: when the request began.
        answered_ns: when the response came.
        notes: what was done before.
    """
    told = [*notes, whole_messages(program)]
    if response.status != HTTPStatus.SWITCHING_PROTOCOLS:
        told.append(f"a WebSocket whose handshake had the status {response.status}; here it is 101")
    url = _SOCKET_SCHEME.sub(r"http\1:", request.url)  # as a recorder has it
    asked = build(name, replace(request, url=url), None, b"", told)
    last_ns = answered_ns = max(asked_ns, answered_ns)
    frames = []
    for t_ns, side, opcode, data in messages:
        last_ns = max(last_ns, t_ns)
        frames.append(
            FramePiece(last_ns, side, opcode, whole_message_head(side, opcode, len(data)), 0, data)
        )
    return replace(
        asked,
        request=replace(asked.request, t_ns=asked_ns, t_end_ns=asked_ns),
        response=ResponseHead(
            status=HTTPStatus.SWITCHING_PROTOCOLS.value,
            reason=response.reason,
            http=response.http,
            framing=Framing.NONE,
            headers=response.headers,
            t_ns=answered_ns,
            line=None,
        ),
        frames=tuple(frames),
    )


def seconds_of(value: object) -> float:
    """Return an instant as RFC 3339 writes it, in seconds since 1970; 0 if it is none."""
    try:
        return datetime.fromisoformat(value if isinstance(value, str) else "").timestamp()
    except (ValueError, OverflowError):
        return 0


def elapsed_ns(begun: float, time: object) -> int:
    """Return how long after `begun` a time was, both in seconds; 0 if that is not known."""
    if not isinstance(time, int | float):
        return 0
    seconds = time - begun
    return round(seconds * 1e9) if 0 < seconds < _LONGEST_S else 0


def _head(response: ImportedResponse, body: bytes) -> tuple[ResponseHead, list[str]]:
    """Return the head that fits the body, and notes on what was changed."""
    headers, dropped = _fitting(response.headers, body)
    added = []
    if header(response.headers, "content-type") is None:
        media_type = sniff(body)
        headers += ((b"content-type", media_type.encode()),)
        added.append(f"media type {media_type} told by the body")
    head = ResponseHead(
        status=response.status,
        reason=response.reason,
        http=response.http,
        framing=_framing(headers),
        headers=headers,
        t_ns=0,
        line=None,
    )
    return head, [*added, *dropped]


def sniff(body: bytes) -> str:
    """Infer the media type of a response body from its bytes alone."""
    form = format_of(body, "")
    if form is Format.OTHER and _SSE_LINE.search(body):
        form = Format.SSE  # behind something else
    return media_type_of(form)


def media_type_of(form: Format) -> str:
    """Return the media type of bodies in a format that an import can have."""
    return _MEDIA_TYPES[form]


def event_text(data: str, event: str = "", ident: str = "") -> str:
    """Return a server-sent event, its type left out where that is the default."""
    lines = [f"id: {ident}"] if ident else []
    lines += [f"event: {event}"] if event not in {"", "message"} else []
    lines += [f"data: {line}" for line in re.split("\r\n|\r|\n", data)]
    return "\n".join(lines) + "\n\n"


def _split(url: str) -> tuple[str, str]:
    """Return base URL and target."""
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets that hold no address
        return "", url
    target = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
    return (f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""), target


def _fitting(headers: PlainHeaders, body: bytes) -> tuple[PlainHeaders, list[str]]:
    kept, dropped = [], []
    for name, value in headers:
        coding = _CODED.get(value.strip().lower())
        undone = name.lower() == b"content-encoding" and coding and not body.startswith(coding)
        edited = name.lower() == b"content-length" and value.strip() != b"%d" % len(body)
        if undone or edited:
            shown = f"{name.decode('latin-1')}: {value.decode('latin-1')}"
            dropped.append(f"left out {shown!a}: it contradicts the body of {len(body)} bytes")
        else:
            kept.append((name, value))
    return tuple(kept), dropped


def _framing(headers: Headers) -> Framing:
    coding = header(headers, "transfer-encoding") or b""
    if coding.strip().lower().endswith(b"chunked"):
        return Framing.CHUNKED
    return Framing.CLOSE if header(headers, "content-length") is None else Framing.LENGTH


def read_request(name: str, data: bytes | None) -> ImportedRequest:
    """Return the request in `data`, from the file `name`.

    Raises:
        UsageError: it is not a JSON object, or describes a request with an invalid part.
    """
    if data is None:
        return ImportedRequest()
    value = _json(data)
    if not isinstance(value, dict) or not value:
        raise UsageError(
            f'{name}: the request must be a JSON object, {{"method": "POST", "url": "...",'
            ' "headers": {...}, "body": {...}}, or its body, a JSON object, too'
        )
    if not {"url", "method"} & value.keys() and not value.keys() <= {"headers", "body"}:
        return ImportedRequest(body=data)
    return ImportedRequest(
        method=_text(name, "method", value.get("method") or "POST"),
        url=_text(name, "url", value.get("url") or ""),
        headers=_headers(name, value.get("headers")),
        body=_body(value.get("body")),
    )


def read_response(name: str, data: bytes | None) -> ImportedResponse:
    """Return the response in `data`, from the file `name`.

    Raises:
        UsageError: it is not a JSON object with a status or headers, or has an invalid part.
    """
    if data is None:
        return ImportedResponse()
    value = _json(data)
    if not isinstance(value, dict) or not {"status", "headers"} & value.keys():
        raise UsageError(
            f'{name}: the response must be a JSON object, {{"status": 200, "headers": {{...}}}}'
        )
    status = value.get("status", 200)
    if type(status) is not int or not 100 <= status <= 999:  # noqa: PLR2004 - RFC 9110, 15
        raise UsageError(f'{name}: "status" is {ascii(status)[:60]}; use 100 to 999')
    return ImportedResponse(status=status, headers=_headers(name, value.get("headers")))


def _json(data: bytes) -> object:
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value


def _body(value: object) -> bytes:
    if value is None:
        return b""
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    return json.dumps(value).encode()


def _text(name: str, key: str, value: object) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise UsageError(f'{name}: "{key}" is {ascii(value)[:60]}; use printable text')
    return value


def _headers(name: str, value: object) -> PlainHeaders:
    if value is None:
        return ()
    pairs = list(value.items()) if isinstance(value, dict) else value
    if not isinstance(pairs, list):
        raise UsageError(f'{name}: "headers" is {ascii(value)[:60]}; use an object')
    return tuple(field for pair in pairs for field in _fields(name, pair))


def field_lines(value: str) -> list[str]:
    """Return the values of a field, at least one: browsers join those of repeated fields by LF."""
    return re.split("[\r\n]+", value.replace("\0", ""))


def _fields(name: str, pair: object) -> Iterator[tuple[bytes, bytes]]:
    """Yield the fields of one name: some tools list repeated values."""
    match pair:
        case (str() as key, str() | list() as value) | [str() as key, str() | list() as value]:
            for text in value if isinstance(value, list) else [value]:
                for line in field_lines(_text(name, key, text)):
                    yield field_lines(key)[0].encode("utf-8", "replace"), line.encode()
        case _:
            raise UsageError(f"{name}: header {ascii(pair)[:60]}; use a name and a text")
