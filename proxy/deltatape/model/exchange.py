"""One request and its response, as the recorder saw them on the wire."""

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta  # noqa: TID251 - they read no clock
from functools import cached_property, lru_cache
from http import HTTPStatus
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple, Self, TypeAlias
from urllib.parse import urlsplit

from deltatape.model.content_coding import DecodedBody, decode_body, parse_codings
from deltatape.model.tape_summary import TapeSummary
from deltatape.model.websocket import FramePiece, FramesTotal


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedCredential:
    """A credential that was not written: its length in bytes and a keyed hash (8 hex digits)."""

    length: int
    hash: str


HeaderValue: TypeAlias = bytes | MaskedCredential
Headers: TypeAlias = tuple[tuple[bytes, HeaderValue], ...]
"""Header fields in wire order, names in wire case, repeats kept."""

MaskedSpan: TypeAlias = tuple[int, int, str]
"""Start and end of the asterisks that replace a credential, and the credential's hash."""

_data = attrgetter("data")
_CODING = b"content-encoding"
_SWITCHING_PROTOCOLS = HTTPStatus.SWITCHING_PROTOCOLS.value

BROKEN_CHUNKS = "broken chunk framing"
INVALID_HEAD = "the response head is not valid HTTP/1"
"""How the recorder's note begins after which reads are raw bytes, with any chunk framing."""
REPORTED = "no bytes of the wire, but messages as a program reported them"
"""In an importer's note: what that program changed cannot be told from what it saw."""
CUT_LAST_CHUNK = "the response ended within its last chunk"
"""How the recorder's note begins about a cut that some clients take for the end."""


class Source(enum.StrEnum):
    """What wrote the tape; this decides whether times and endings can be trusted."""

    GATEWAY = "gateway"
    MITM = "mitm"
    IMPORT = "import"
    """From a file: no times, no reads, no ending."""


class Tap(enum.StrEnum):
    """The side of the application on which an exchange was recorded."""

    PROVIDER = "provider"
    """Between the application and the provider."""
    APP = "app"
    """In front of the application's own endpoint: its users are the clients."""


class Framing(enum.StrEnum):
    """How HTTP delimits a response body (RFC 9112 section 6)."""

    CHUNKED = "chunked"
    LENGTH = "length"
    CLOSE = "close"
    """Ends with the connection."""
    NONE = "none"
    """HEAD, 204, 304: no body."""


class EndReason(enum.StrEnum):
    """How the transport ended. A missing terminal event is a finding, not an ending."""

    COMPLETE = "complete"
    UPSTREAM_CLOSED = "upstream_closed"
    UPSTREAM_RESET = "upstream_reset"
    CLIENT_CLOSED = "client_closed"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    STOPPED = "stopped"


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request as sent upstream.

    `target` is in parts because credential query values are masked; `target_bytes` shows them as
    asterisks of the same length. `t_end_ns` and `t_ns` are nanoseconds since `recorded_at`.

    What the request says is in `content`; `body` has the bytes that were sent.
    """

    method: str
    target: tuple[HeaderValue, ...]
    upstream: str
    """The upstream's URL: `https://api.openai.com`; its path, if any, begins the target, too."""
    http: str
    headers: Headers
    body: bytes
    """Before content-coding is undone."""
    t_ns: int
    t_end_ns: int | None
    """When the last byte of the request had been read; None if that never happened."""
    line: int | None
    masked: tuple[MaskedSpan, ...] = ()
    """The masked parts of `body`, ascending."""
    hidden: tuple[MaskedSpan, ...] = ()
    """Credentials in the decoded body, which `body` still has; `content` has asterisks there."""

    @cached_property
    def _decoded(self) -> DecodedBody:
        return decode_body(self.body, self.codings, self.hidden)

    @property
    def codings(self) -> tuple[str, ...]:
        """The content-codings of the body, in the order in which they were applied."""
        return content_codings(self.headers)

    @property
    def content(self) -> bytes:
        """The body, its content-coding undone; the body itself where that cannot be."""
        return self._decoded.data

    @property
    def content_masked(self) -> tuple[MaskedSpan, ...]:
        """The masked parts of `content`, ascending."""
        return self.masked if self.content is self.body else self.hidden

    @property
    def content_fault(self) -> str:
        """Why `content` is not, or not completely, decoded; "" if it is."""
        return self._decoded.fault.detail if self._decoded.fault else ""

    def with_content(self, content: bytes, masked: tuple[MaskedSpan, ...] = ()) -> Self:
        """Return the request with another body, which has no content-coding.

        Args:
            content: the body.
            masked: the masked parts of it, ascending.
        """
        headers = uncoded_headers(self.headers, len(content))
        return replace(self, headers=headers, body=content, masked=masked, hidden=())

    @property
    def target_bytes(self) -> bytes:
        """The request target, with masked values as asterisks."""
        return b"".join(p if isinstance(p, bytes) else b"*" * p.length for p in self.target)

    @property
    def path(self) -> str:
        """The path of the target, without query."""
        return self.target_bytes.decode("ascii", "replace").partition("?")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSent:
    """The request has left for upstream: `connect_ns` and `tls_ns` are 0 on a reused connection."""

    t_ns: int
    connect_ns: int
    tls_ns: int
    reused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseHead:
    """A response head, final or informational (1xx)."""

    status: int
    reason: bytes
    http: str
    framing: Framing
    headers: Headers
    t_ns: int
    line: int | None


class Read(NamedTuple):
    """Body bytes of one read from the upstream socket: transfer-coding removed, at least 1 byte.

    `boundaries` are the offsets in `data` at which HTTP chunks end (0: the previous read's last
    chunk ended just before this one); None when the body is not chunked.
    """

    t_ns: int
    data: bytes
    boundaries: tuple[int, ...] | None
    line: int | None
    masked: tuple[MaskedSpan, ...] = ()
    """The masked parts of `data`, ascending."""
    hidden: tuple[MaskedSpan, ...] = ()
    """Credentials in the decoded body that end in this read; `data` still has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryProgress:
    """How many bytes of the response body a slow client has taken so far."""

    t_ns: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A note by the recorder about this exchange."""

    t_ns: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How the exchange ended. `recorder` says what taping lost; empty if nothing."""

    t_ns: int
    reason: EndReason
    bytes: int
    sha256: str
    detail: str
    recorder: Mapping[str, object]
    line: int | None
    frames: FramesTotal | None = None
    """The frames, on a WebSocket."""


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One request and its response. Times are nanoseconds since `recorded_at`."""

    tape: str
    """The file's name as the user gave it; "" when built from a body."""
    number: int
    """Place in the tape, from 1."""
    id: str
    source: Source
    recorded_at: str
    request: Request
    sent: RequestSent | None = None
    informational: tuple[ResponseHead, ...] = ()
    response: ResponseHead | None = None
    reads: tuple[Read, ...] = ()
    frames: tuple[FramePiece, ...] = ()
    """Frames of both sides, in order, once the connection has become a WebSocket."""
    trailers: Headers = ()
    delivered: tuple[DeliveryProgress, ...] = ()
    idle_ns: tuple[int, ...] = ()
    """When the recorder noted that it was still watching a silent exchange."""
    notes: tuple[Note, ...] = ()
    end: End | None = None
    """None if it is still in progress (`open`), or if the recorder crashed before it ended."""
    stopped_ns: int | None = None
    """When the recorder stopped normally; None if unknown."""
    open: bool = False
    """Whether it was in progress, and being recorded, when the tape was read."""
    tap: Tap = Tap.PROVIDER
    watch: TapeSummary | None = None
    """How long its tape was watched; None if unknown, as while it is being recorded."""

    @classmethod
    def from_body(
        cls,
        body: bytes,
        *,
        content_type: str,
        url: str,
        request: bytes | Mapping[str, object] | None = None,
        status: int = 200,
    ) -> Self:
        """An exchange from a response body that was not taped: no times, no reads, no ending.

        Args:
            body: the whole response body, content-coding undone.
            content_type: the response's media type, such as `text/event-stream`.
            url: where the request went; its path names the dialect when the body does not.
            request: the request's JSON body as bytes or as a mapping; None if unknown.
            status: the response's status code.
        """
        return cls(
            tape="",
            number=1,
            id="",
            source=Source.IMPORT,
            recorded_at="",
            request=_untaped_request(url, request),
            response=ResponseHead(
                status=status,
                reason=b"",
                http="1.1",
                framing=Framing.CLOSE,
                headers=((b"content-type", content_type.encode()),),
                t_ns=0,
                line=None,
            ),
            reads=(Read(t_ns=0, data=body, boundaries=None, line=None),) if body else (),
        )

    @property
    def timed(self) -> bool:
        """Whether times and read boundaries were measured on a connection."""
        return self.source is not Source.IMPORT

    @property
    def has_times(self) -> bool:
        """Whether its times say something: they were measured, or an imported file has some."""
        return (
            self.timed
            or any(read.t_ns for read in self.reads)
            or any(piece.t_ns for piece in self.frames)
        )

    @property
    def reported(self) -> bool:
        """Whether it was made of messages that a program reported, such as a log or a trace."""
        return not self.timed and any(REPORTED in note.text for note in self.notes)

    @property
    def body(self) -> bytes:
        """The response body after transfer-coding, before content-coding."""
        return b"".join(read.data for read in self.reads)

    @property
    def content(self) -> bytes:
        """The response body, its content-coding undone; the body itself where that cannot be."""
        headers = self.response.headers if self.response else ()
        return decode_body(self.body, content_codings(headers), self.hidden).data

    @cached_property
    def body_size(self) -> int:
        """How many bytes `body` has."""
        return sum(map(len, map(_data, self.reads)))

    @property
    def upgraded(self) -> bool:
        """Whether the connection became a WebSocket: then its messages are what was answered."""
        return bool(self.frames) or (
            self.response is not None and self.response.status == _SWITCHING_PROTOCOLS
        )

    @property
    def hidden(self) -> tuple[MaskedSpan, ...]:
        """Credentials in the decoded response body, which no report may show."""
        return tuple(span for read in self.reads for span in read.hidden)

    @property
    def masked(self) -> bool:
        """Whether a credential in the request's or the response's body was overwritten."""
        return bool(self.request.masked) or any(read.masked for read in self.reads)

    @property
    def cut(self) -> bool:
        """Whether the transport is known to have ended before the response was complete."""
        if self.end is None:
            return self.timed and not self.open
        return self.end.reason is not EndReason.COMPLETE


def _untaped_request(url: str, body: bytes | Mapping[str, object] | None) -> Request:
    """Return a POST to `url` with an unknown rest."""
    parts = urlsplit(url)
    target = parts._replace(scheme="", netloc="", fragment="").geturl().encode() or b"/"
    if body is None:
        body = b""
    return Request(
        method="POST",
        target=(target,),
        upstream=f"{parts.scheme}://{parts.netloc}" if parts.netloc else "",
        http="1.1",
        headers=(),
        body=body if isinstance(body, bytes) else json.dumps(body).encode(),
        t_ns=0,
        t_end_ns=0,
        line=None,
    )


def header(headers: Headers, name: str) -> bytes | None:
    """Return the value of the first field called `name` (any case); None if absent or masked."""
    wanted = name.lower().encode()
    for key, value in headers:
        if key.lower() == wanted:
            return value if isinstance(value, bytes) else None
    return None


def uncoded_headers(headers: Headers, length: int) -> Headers:
    """Return the headers of a body of `length` bytes that has no content-coding any more."""
    return tuple(
        (name, b"%d" % length if name.lower() == b"content-length" else value)
        for name, value in headers
        if name.lower() != _CODING
    )


def content_codings(headers: Headers) -> tuple[str, ...]:
    """Return the content-codings that a head names, in the order in which they were applied."""
    fields = [
        value for name, value in headers if name.lower() == _CODING and isinstance(value, bytes)
    ]
    return parse_codings(b",".join(fields)) if fields else ()


_US_NS = 1_000


@lru_cache(maxsize=64)
def _moment(recorded_at: str) -> datetime:
    return datetime.fromisoformat(recorded_at).astimezone(UTC)


def wall_time(recorded_at: str, t_ns: int) -> datetime | None:
    """Return a time of a tape in UTC, to microseconds; None where its header has no time.

    Args:
        recorded_at: the header's; untrusted.
        t_ns: nanoseconds since then.
    """
    try:
        return _moment(recorded_at) + timedelta(microseconds=t_ns // _US_NS)
    except (ValueError, OverflowError):
        return None


_IDLE_NS = 5_000_000_000
"""How often a recorder writes `idle` while an exchange is silent."""


def watched(exchange: Exchange) -> Exchange:
    """Return `exchange` with the `idle` records that a recorder writes during silences."""
    response, end = exchange.response, exchange.end
    marks = [exchange.request.t_ns, *(read.t_ns for read in exchange.reads)]
    marks += (piece.t_ns for piece in exchange.frames)
    marks += [each.t_ns for each in (response, end) if each is not None]
    idle = (
        t_ns
        for sooner, later in pairwise(sorted(marks))
        for t_ns in range(sooner + _IDLE_NS, later, _IDLE_NS)
    )
    return replace(exchange, idle_ns=tuple(idle))
