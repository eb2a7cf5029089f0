"""Errors as each provider words them: answers with the status of an error, and error events.

Sources: the error pages of the providers' API references; what the dialects read as an error.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from deltatape.model.exchange import EndReason, Exchange, Framing, Headers, Read, ResponseHead
from deltatape.model.stream import Format
from deltatape.vary.message import message
from deltatape.vary.shape import refitted

OVERLOADED = 529
"""Not registered; Anthropic's word for a service that has too much to do."""
_OPENAI = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
_ANTHROPIC = {
    **_OPENAI,
    413: "request_too_large",
    504: "timeout_error",
    OVERLOADED: "overloaded_error",
}
_GOOGLE = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_AMAZON = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}
_REASONS = {OVERLOADED: "Overloaded"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An error of a provider: a status and what it says."""

    status: int
    headers: Headers = ()
    """Fields of the answer beside those of its body, such as `retry-after`."""
    html: bool = False
    """Whether a gateway answers, with a page."""

    @property
    def reason(self) -> str:
        """The reason phrase of the status."""
        if self.status in _REASONS:
            return _REASONS[self.status]
        known = {one.value: one.phrase for one in HTTPStatus}
        return known.get(self.status, "Error")

    @property
    def says(self) -> str:
        """The message."""
        return f"{self.reason} (a fault of deltatape)"


def answered(exchange: Exchange, dialect: str, failure: Failure) -> Exchange:
    """`exchange` with a failure as the whole answer, at the time of the recorded head."""
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


def _page(failure: Failure) -> tuple[bytes, bytes]:
    title = f"{failure.status} {failure.reason}"
    page = f"<html>\r\n<head><title>{title}</title></head>\r\n<body>{title}</body>\r\n</html>\r\n"
    return page.encode(), b"text/html"


def _document(dialect: str, failure: Failure) -> tuple[bytes, bytes]:
    make = _DOCUMENTS.get(dialect, _openai)
    return _dumped(make(failure)), b"application/json"


def _typed(dialect: str, failure: Failure) -> Headers:
    """The field in which Amazon names an error, which nothing else does there."""
    if not dialect.startswith("bedrock") or failure.html:
        return ()
    return ((b"x-amzn-ErrorType", _amazon(failure.status).encode()),)


def _dumped(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _openai(failure: Failure) -> dict[str, object]:
    kind = _OPENAI.get(failure.status, "server_error")
    code = "rate_limit_exceeded" if failure.status == HTTPStatus.TOO_MANY_REQUESTS else None
    return {"error": {"message": failure.says, "type": kind, "param": None, "code": code}}


def _anthropic(failure: Failure) -> dict[str, object]:
    kind = _ANTHROPIC.get(failure.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": failure.says}}


def _google(failure: Failure) -> dict[str, object]:
    status = _GOOGLE.get(failure.status, "INTERNAL")
    return {"error": {"code": failure.status, "message": failure.says, "status": status}}


def _mistral(failure: Failure) -> dict[str, object]:
    kind = _OPENAI.get(failure.status, "server_error")
    return {"object": "error", "message": failure.says, "type": kind, "param": None, "code": None}


def _ollama(failure: Failure) -> dict[str, object]:
    return {"error": failure.says}


def _message_only(failure: Failure) -> dict[str, object]:
    return {"message": failure.says}


def _amazon(status: int) -> str:
    return _AMAZON.get(status, "InternalServerException")


_DOCUMENTS: Mapping[str, Callable[[Failure], dict[str, object]]] = {
    "anthropic-messages": _anthropic,
    "gemini": _google,
    "gemini-interactions": _google,
    "mistral": _mistral,
    "ollama": _ollama,
    "cohere": _message_only,
    "bedrock-converse": _message_only,
    "bedrock-invoke": _message_only,
}
"""By dialect, what the body of such an answer is; else OpenAI's, which most others copy."""


def error_event(dialect: str, form: Format, failure: Failure) -> bytes:
    """An error in the middle of an answer, framed as that is.

    In a JSON array that is an element, without what separates it from others.
    """
    if form is Format.EVENTSTREAM:
        name = _amazon(failure.status)
        kind = name[0].lower() + name[1:]
        headers = {
            ":exception-type": kind,
            ":content-type": "application/json",
            ":message-type": "exception",
        }
        return message(headers, _dumped(_message_only(failure)))
    is_v1 = dialect == "cohere" and form is Format.NDJSON
    name, value = _of_cohere_v1(failure) if is_v1 else _event(dialect, failure)
    data = _dumped(value)
    if form is Format.SSE:
        line = f"event: {name}\n".encode() if name else b""
        return b"%bdata: %b\n\n" % (line, data)
    return data + b"\n" if form is Format.NDJSON else data


def _event(dialect: str, failure: Failure) -> tuple[str, dict[str, object]]:
    """The name and the data of an error event."""
    make = _EVENTS.get(dialect)
    if make is not None:
        return make(failure)
    named = "error" if dialect == "anthropic-messages" else ""
    return named, _DOCUMENTS.get(dialect, _openai)(failure)


def _of_responses(failure: Failure) -> tuple[str, dict[str, object]]:
    kind = _OPENAI.get(failure.status, "server_error")
    return "error", {"type": "error", "code": kind, "message": failure.says, "param": None}


def _of_cohere(failure: Failure) -> tuple[str, dict[str, object]]:
    delta = {"finish_reason": "ERROR", "error": failure.says}
    return "message-end", {"type": "message-end", "delta": delta}


def _of_cohere_v1(failure: Failure) -> tuple[str, dict[str, object]]:
    return "", {"event_type": "stream-error", "err": failure.says, "finish_reason": "ERROR"}


def _of_interactions(failure: Failure) -> tuple[str, dict[str, object]]:
    return "error", {"event_type": "error", **_google(failure)}


def _of_app(failure: Failure) -> tuple[str, dict[str, object]]:
    return "", {"type": "error", "content": failure.says}


def _of_sdk_ui(failure: Failure) -> tuple[str, dict[str, object]]:
    return "", {"type": "error", "errorText": failure.says}


_EVENTS: Mapping[str, Callable[[Failure], tuple[str, dict[str, object]]]] = {
    "openai-responses": _of_responses,
    "cohere": _of_cohere,
    "gemini-interactions": _of_interactions,
    "app-events": _of_app,
    "ai-sdk-ui": _of_sdk_ui,
}
"""By dialect, where an error event is another than the document of an answer."""
