"""The payloads of records: one class per code, with its JSON form both ways.

`from_json` is the inverse of `to_json`, and raises `MalformedError` for other values.

Format: recordings/README.md, "Codes".
"""

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Self

from deltatape.model.exchange import EndReason, Framing, Headers, HeaderValue, MaskedSpan, Tap
from deltatape.model.tape_summary import LogStream, TapeSummary
from deltatape.model.websocket import FrameHead, FramePiece, FramesTotal, Side
from deltatape.tape import fields
from deltatape.tape.fields import MAX_INT, Fields, MalformedError, seen
from deltatape.tape.frames import TapedPiece
from deltatape.wire.websocket import is_wide


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHeadRecord:
    """The head of a request, as sent upstream: one line of a tape, before its body is known."""

    code: ClassVar[str] = "request"
    id: str
    method: str
    target: tuple[HeaderValue, ...]
    upstream: str
    http: str
    headers: Headers
    tap: Tap = Tap.PROVIDER
    watched: TapeSummary | None = None
    """How long the tape was recorded that the exchange was copied from; None: it was not copied."""

    def to_json(self) -> object:
        return {
            "id": self.id,
            "method": self.method,
            "target": fields.target_to_json(self.target),
            "upstream": self.upstream,
            "http": self.http,
            "headers": fields.headers_to_json(self.headers),
            **({} if self.tap is Tap.PROVIDER else {"tap": self.tap.value}),
            **({} if self.watched is None else {"watched": watch_to_json(self.watched)}),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        read = Fields.read(value)
        return cls(
            id=read.text("id"),
            method=read.text("method"),
            target=fields.target_from_json(read.of.get("target")),
            upstream=read.text("upstream"),
            http=read.text("http"),
            headers=fields.headers_from_json(read.of.get("headers")),
            tap=read.choice("tap", Tap) if "tap" in read.of else Tap.PROVIDER,
            watched=_watch_from_json(read.of["watched"]) if "watched" in read.of else None,
        )


def watch_to_json(watch: TapeSummary) -> object:
    """Return the JSON form of how long a tape was recorded, and why that ended."""
    return {
        "until_ns": watch.until_ns,
        **({} if watch.stop is None else {"reason": watch.stop}),
        **({} if watch.exit_code is None else {"code": watch.exit_code}),
    }


def _watch_from_json(value: object) -> TapeSummary:
    read = Fields.read(value)
    return TapeSummary(
        until_ns=read.number("until_ns"),
        stop=read.text("reason") if "reason" in read.of else None,
        exit_code=read.maybe_number("code"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Informational:
    """The head of an informational (1xx) response."""

    code: ClassVar[str] = "informational"
    status: int
    reason: bytes
    http: str
    headers: Headers

    def to_json(self) -> object:
        return {
            "status": self.status,
            "reason": fields.bytes_to_json(self.reason),
            "http": self.http,
            "headers": fields.headers_to_json(self.headers),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        read = Fields.read(value)
        return cls(
            status=read.number("status"),
            reason=fields.line_from_json(read.of.get("reason")),
            http=read.text("http"),
            headers=fields.headers_from_json(read.of.get("headers")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseStart:
    """The head of the response."""

    code: ClassVar[str] = "response"
    status: int
    reason: bytes
    http: str
    framing: Framing
    headers: Headers

    def to_json(self) -> object:
        return {
            "status": self.status,
            "reason": fields.bytes_to_json(self.reason),
            "http": self.http,
            "framing": self.framing.value,
            "headers": fields.headers_to_json(self.headers),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        read = Fields.read(value)
        return cls(
            status=read.number("status"),
            reason=fields.line_from_json(read.of.get("reason")),
            http=read.text("http"),
            framing=read.choice("framing", Framing),
            headers=fields.headers_from_json(read.of.get("headers")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trailers:
    """The fields after the last chunk."""

    code: ClassVar[str] = "trailers"
    headers: Headers

    def to_json(self) -> object:
        return {"headers": fields.headers_to_json(self.headers)}

    @classmethod
    def from_json(cls, value: object) -> Self:
        return cls(headers=fields.headers_from_json(Fields.read(value).of.get("headers")))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bytes:
    """Body bytes: the payload itself is their JSON form."""

    data: bytes

    def to_json(self) -> object:
        return fields.bytes_to_json(self.data)

    @classmethod
    def from_json(cls, value: object) -> Self:
        return cls(data=fields.bytes_from_json(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestBodyPiece(_Bytes):
    """A piece of the request's body."""

    code: ClassVar[str] = "request-body"


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyRead(_Bytes):
    """Response body bytes got by one read from the upstream socket."""

    code: ClassVar[str] = "read"


_OPCODES = range(16)
_RESERVED_BITS = range(8)
_MASK = re.compile("[0-9a-f]{8}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameRecord:
    """What one read brought of one frame of a WebSocket; see `FramePiece` for the fields."""

    code: ClassVar[str] = "frame"
    side: Side
    opcode: int = 0
    head: FrameHead | None = None
    at: int = 0
    data: bytes = b""
    wire: bytes | None = None
    more: bool = False
    raw: bool = False

    @classmethod
    def of(cls, side: Side, piece: FramePiece | TapedPiece) -> Self:
        """Return the record of a piece that `side` has sent."""
        return cls(
            side=side,
            opcode=piece.opcode,
            head=piece.head,
            at=piece.at,
            data=piece.data,
            wire=piece.wire,
            more=piece.more,
            raw=piece.raw,
        )

    def to_json(self) -> object:
        data = fields.bytes_to_json(self.data)
        if self.raw:
            return {"side": self.side.value, "raw": True, "data": data}
        return {
            "side": self.side.value,
            "opcode": self.opcode,
            **({"at": self.at} if self.head is None else self._head_to_json(self.head)),
            **({"more": True} if self.more else {}),
            "data": data,
            **({} if self.wire is None else {"wire": fields.bytes_to_json(self.wire)}),
        }

    def _head_to_json(self, head: FrameHead) -> Mapping[str, object]:
        size = len(self.data if self.wire is None else self.wire)
        return {
            **({} if head.fin else {"fin": False}),
            **({"rsv": head.rsv} if head.rsv else {}),
            **({"mask": head.mask.hex()} if head.mask else {}),
            **({} if head.length == size else {"length": head.length}),
            **({"wide": head.wide} if head.wide else {}),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        read = Fields.read(value)
        side, data = read.choice("side", Side), fields.bytes_from_json(read.of.get("data"))
        if "raw" in read.of and read.flag("raw"):
            return cls(side=side, data=data, raw=True)
        opcode = read.number("opcode")
        if opcode not in _OPCODES:
            raise MalformedError(f'"opcode" is {opcode}: 0 to 15 is expected')
        wire = fields.bytes_from_json(read.of["wire"]) if "wire" in read.of else None
        size = len(data if wire is None else wire)
        return cls(
            side=side,
            opcode=opcode,
            head=None if "at" in read.of else _head_from_json(read, opcode, size),
            at=read.number("at") if "at" in read.of else 0,
            data=data,
            wire=wire,
            more="more" in read.of and read.flag("more"),
        )


def _head_from_json(read: Fields, opcode: int, size: int) -> FrameHead:
    head = FrameHead(
        opcode=opcode,
        length=read.number("length") if "length" in read.of else size,
        fin="fin" not in read.of or read.flag("fin"),
        rsv=read.number("rsv") if "rsv" in read.of else 0,
        mask=_mask_from_json(read.of["mask"]) if "mask" in read.of else b"",
        wide=read.number("wide") if "wide" in read.of else 0,
    )
    if head.rsv not in _RESERVED_BITS:
        raise MalformedError(f'"rsv" is {head.rsv}: 0 to 7 is expected')
    if head.wide and not is_wide(head.length, head.wide):
        raise MalformedError(f'"wide" is {head.wide}: a length of {head.length} is not wider')
    return head


def _mask_from_json(value: object) -> bytes:
    if not isinstance(value, str) or not _MASK.fullmatch(value):
        raise MalformedError(f"{seen(value)} where a mask of 8 hex digits is expected")
    return bytes.fromhex(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Empty:
    """A payload without content."""

    def to_json(self) -> object:
        return {}

    @classmethod
    def from_json(cls, value: object) -> Self:
        Fields.read(value)
        return cls()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestEnd(_Empty):
    """The last byte of the request has been read."""

    code: ClassVar[str] = "request-end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle(_Empty):
    """The recorder is running."""

    code: ClassVar[str] = "idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class SentUpstream:
    """The request has left for upstream."""

    code: ClassVar[str] = "sent"
    connect_ns: int
    tls_ns: int
    reused: bool

    def to_json(self) -> object:
        return {"connect_ns": self.connect_ns, "tls_ns": self.tls_ns, "reused": self.reused}

    @classmethod
    def from_json(cls, value: object) -> Self:
        read = Fields.read(value)
        return cls(
            connect_ns=read.number("connect_ns"),
            tls_ns=read.number("tls_ns"),
            reused=read.flag("reused"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundaries:
    """The ends of HTTP chunks in the next read."""

    code: ClassVar[str] = "boundaries"
    ends: tuple[int, ...]

    def to_json(self) -> object:
        return list(self.ends)

    @classmethod
    def from_json(cls, value: object) -> Self:
        if not isinstance(value, list) or not all(
            type(end) is int and 0 <= end <= MAX_INT for end in value
        ):
            raise MalformedError(f"{seen(value)} where a list of offsets >= 0 is expected")
        if value != sorted(set(value)):
            raise MalformedError(f"{seen(value)} where ascending offsets are expected")
        return cls(ends=tuple(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedSpans:
    """Where credentials were overwritten in the piece of a body, or the log line, that follows."""

    code: ClassVar[str] = "masked"
    spans: tuple[MaskedSpan, ...]
    decoded: tuple[MaskedSpan, ...] = ()
    """The spans in the decoded whole body of credentials that end in this piece:
    they were not overwritten."""

    def to_json(self) -> object:
        value = {"spans": [list(span) for span in self.spans]}
        if self.decoded:
            value["decoded"] = [list(span) for span in self.decoded]
        return value

    @classmethod
    def from_json(cls, value: object) -> Self:
        of = Fields.read(value).of
        return cls(
            spans=fields.spans_from_json(of.get("spans")),
            decoded=fields.spans_from_json(of.get("decoded", [])),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A line that the recorded program printed, without its line feed."""

    code: ClassVar[str] = "log"
    stream: LogStream
    line: bytes

    def to_json(self) -> object:
        return {"stream": self.stream.value, "line": fields.bytes_to_json(self.line)}

    @classmethod
    def from_json(cls, value: object) -> Self:
        read = Fields.read(value)
        return cls(
            stream=read.choice("stream", LogStream),
            line=fields.bytes_from_json(read.of.get("line")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveredSoFar:
    """How much of the response body a slow client has taken."""

    code: ClassVar[str] = "delivered"
    bytes: int

    def to_json(self) -> object:
        return {"bytes": self.bytes}

    @classmethod
    def from_json(cls, value: object) -> Self:
        return cls(bytes=Fields.read(value).number("bytes"))


class ClientState(enum.StrEnum):
    """The change of a client connection."""

    OPENED = "opened"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRecord:
    """A client connection was opened or closed; `connection` counts them from 1."""

    code: ClassVar[str] = "client"
    connection: int
    state: ClientState

    def to_json(self) -> object:
        return {"connection": self.connection, "state": self.state.value}

    @classmethod
    def from_json(cls, value: object) -> Self:
        read = Fields.read(value)
        return cls(connection=read.number("connection"), state=read.choice("state", ClientState))


LOSS_NOTE = "the recorder lost records before this one: "
"""The beginning of a note in place of missing records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemarkRecord:
    """A note by the recorder."""

    code: ClassVar[str] = "note"
    text: str

    def to_json(self) -> object:
        return {"text": self.text}

    @classmethod
    def from_json(cls, value: object) -> Self:
        return cls(text=Fields.read(value).text("text"))


@dataclass(frozen=True, slots=True, kw_only=True)
class EndRecord:
    """How the exchange ended; `bytes` and `sha256` are of the response body as taped."""

    code: ClassVar[str] = "end"
    reason: EndReason
    bytes: int
    sha256: str
    detail: str = ""
    recorder: Mapping[str, object] = field(default_factory=dict)
    frames: FramesTotal | None = None

    def to_json(self) -> object:
        return {
            "reason": self.reason.value,
            "bytes": self.bytes,
            "sha256": self.sha256,
            **({"detail": self.detail} if self.detail else {}),
            **({"recorder": dict(self.recorder)} if self.recorder else {}),
            **({} if self.frames is None else {"frames": self.frames._asdict()}),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        read = Fields.read(value)
        return cls(
            reason=read.choice("reason", EndReason),
            bytes=read.number("bytes"),
            sha256=read.text("sha256"),
            detail=read.text("detail", ""),
            recorder=Fields.read(read.of.get("recorder", {})).of,
            frames=_total_from_json(read.of["frames"]) if "frames" in read.of else None,
        )


def _total_from_json(value: object) -> FramesTotal:
    read = Fields.read(value)
    return FramesTotal(
        records=read.number("records"), bytes=read.number("bytes"), sha256=read.text("sha256")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedAs:
    """What the recorder itself parsed from the ended exchange.

    `sha256` is the hash of the reply; `form` is the version of what it covers, which depends on
    `tool`.
    """

    code: ClassVar[str] = "parsed"
    tool: str
    dialect: str
    events: int
    calls: int
    finish: str
    form: int
    sha256: str

    def to_json(self) -> object:
        return {
            "tool": self.tool,
            "dialect": self.dialect,
            "events": self.events,
            "calls": self.calls,
            **({"finish": self.finish} if self.finish else {}),
            "form": self.form,
            "sha256": self.sha256,
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        read = Fields.read(value)
        return cls(
            tool=read.text("tool"),
            dialect=read.text("dialect"),
            events=read.number("events"),
            calls=read.number("calls"),
            finish=read.text("finish", ""),
            form=read.number("form"),
            sha256=read.text("sha256"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """The recorder stopped in good order; `exit_code`: of the child it ran, if any."""

    code: ClassVar[str] = "stop"
    reason: str
    exit_code: int | None

    def to_json(self) -> object:
        return {
            "reason": self.reason,
            **({} if self.exit_code is None else {"code": self.exit_code}),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        read = Fields.read(value)
        return cls(reason=read.text("reason"), exit_code=read.maybe_number("code"))
