"""The payloads that are HTTP heads: of requests, responses, informational responses, trailers.

Format: recordings/README.md, "Codes".
"""

from dataclasses import dataclass
from typing import ClassVar, Self

from deltatape.model.exchange import Framing, Headers, HeaderValue, Tap
from deltatape.model.tape_summary import TapeSummary
from deltatape.tape import fields
from deltatape.tape.fields import Fields


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
    """How long the tape was watched from which the exchange was copied; None: this tape's end
    tells."""

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
        """The inverse of `to_json`."""
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
        """The inverse of `to_json`."""
        read = Fields.read(value)
        return cls(
            status=read.number("status"),
            reason=fields.bytes_from_json(read.of.get("reason")),
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
        """The inverse of `to_json`."""
        read = Fields.read(value)
        return cls(
            status=read.number("status"),
            reason=fields.bytes_from_json(read.of.get("reason")),
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
        """The inverse of `to_json`."""
        return cls(headers=fields.headers_from_json(Fields.read(value).of.get("headers")))
