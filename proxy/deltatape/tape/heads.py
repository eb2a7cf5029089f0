"""The payloads that are HTTP heads: of requests, responses, informational responses, trailers.

Format: recordings/README.md, "Codes".
"""

from dataclasses import dataclass
from typing import ClassVar, Self

from deltatape.model.exchange import Framing, Headers, HeaderValue, Tap
from deltatape.tape import fields
from deltatape.tape.fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHead:
    """The head of a request, as sent upstream."""

    code: ClassVar[str] = "request"
    id: str
    method: str
    target: tuple[HeaderValue, ...]
    upstream: str
    http: str
    headers: Headers
    tap: Tap = Tap.PROVIDER

    def to_json(self) -> object:
        """See `Payload.to_json`."""
        return {
            "id": self.id,
            "method": self.method,
            "target": fields.target_to_json(self.target),
            "upstream": self.upstream,
            "http": self.http,
            "headers": fields.headers_to_json(self.headers),
            **({} if self.tap is Tap.PROVIDER else {"tap": self.tap.value}),
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
        """See `Payload.to_json`."""
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
        """See `Payload.to_json`."""
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
        """See `Payload.to_json`."""
        return {"headers": fields.headers_to_json(self.headers)}

    @classmethod
    def from_json(cls, value: object) -> Self:
        """The inverse of `to_json`."""
        return cls(headers=fields.headers_from_json(Fields.read(value).of.get("headers")))
