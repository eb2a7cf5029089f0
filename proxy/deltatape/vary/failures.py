"""Errors in each dialect: answers with an error status, and error events."""

import json
from dataclasses import dataclass
from http import HTTPStatus

from deltatape.dialects import OVERLOADED, amazon_error_type, bare_error, traits_of
from deltatape.model.exchange import EndReason, Exchange, Framing, Headers, Read, ResponseHead
from deltatape.model.stream import Format
from deltatape.vary.shape import refitted
from deltatape.wire.aws_eventstream import encode_headers, encode_message

_REASONS = {OVERLOADED: "Overloaded"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFailure:
    """An error of a provider: its status and its message."""

    status: int
    headers: Headers = ()
    """Additional header fields, such as `retry-after`."""
    html: bool = False
    """Whether the answer is an HTML page by a gateway."""

    @property
    def reason(self) -> str:
        """Return the reason phrase of the status."""
        if self.status in _REASONS:
            return _REASONS[self.status]
        known = {one.value: one.phrase for one in HTTPStatus}
        return known.get(self.status, "Error")

    @property
    def says(self) -> str:
        """Return the message."""
        return f"{self.reason} (a fault of deltatape)"


def answered(exchange: Exchange, dialect: str, failure: ProviderFailure) -> Exchange:
    """Return `exchange` with a failure as the whole answer, at the time of the recorded head."""
    head = exchange.response
    t_ns = head.t_ns if head else exchange.request.t_end_ns or exchange.request.t_ns
    body, media = _page(failure) if failure.html else _document(dialect, failure)
    headers: Headers = (
        (b"content-type", media),
        (b"content-length", b"%d" % len(body)),
        *_typed(dialect, failure),
        *failure.headers,
    )
    response = ResponseHead(
        status=failure.status,
        reason=failure.reason.encode(),
        http="1.1",
        framing=Framing.LENGTH,
        headers=headers,
        t_ns=t_ns,
        line=None,
    )
    bare = Exchange(
        tape=exchange.tape,
        number=exchange.number,
        id=exchange.id,
        source=exchange.source,
        recorded_at=exchange.recorded_at,
        request=exchange.request,
        sent=exchange.sent,
        response=response,
        notes=exchange.notes,
        stopped_ns=exchange.stopped_ns,
        tap=exchange.tap,
        watch=exchange.watch,
    )
    read = Read(t_ns=t_ns, data=body, boundaries=None, line=None)
    return refitted(bare, (read,), reason=EndReason.COMPLETE, t_ns=t_ns)


def _page(failure: ProviderFailure) -> tuple[bytes, bytes]:
    title = f"{failure.status} {failure.reason}"
    page = f"<html>\r\n<head><title>{title}</title></head>\r\n<body>{title}</body>\r\n</html>\r\n"
    return page.encode(), b"text/html"


def _document(dialect: str, failure: ProviderFailure) -> tuple[bytes, bytes]:
    document = traits_of(dialect).errors.document
    return _dumped(document(failure.status, failure.says)), b"application/json"


def _typed(dialect: str, failure: ProviderFailure) -> Headers:
    headers = traits_of(dialect).errors.headers
    return () if headers is None or failure.html else headers(failure.status)


def _dumped(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def error_event(dialect: str, form: Format, failure: ProviderFailure) -> bytes:
    """Return an error event, framed as the answer is.

    In a JSON array it is an element, without separators.
    """
    if form is Format.EVENTSTREAM:
        name = amazon_error_type(failure.status)
        kind = name[0].lower() + name[1:]
        headers = {
            ":exception-type": kind,
            ":content-type": "application/json",
            ":message-type": "exception",
        }
        document = bare_error(failure.status, failure.says)
        return encode_message(encode_headers(headers), _dumped(document))
    errors = traits_of(dialect).errors
    if errors.event is None:
        name, value = "", errors.document(failure.status, failure.says)
    else:
        name, value = errors.event(failure.status, failure.says, form)
    data = _dumped(value)
    if form is Format.SSE:
        line = f"event: {name}\n".encode() if name else b""
        return b"%bdata: %b\n\n" % (line, data)
    return data + b"\n" if form is Format.NDJSON else data
