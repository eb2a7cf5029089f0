"""Errors that providers and gateways send instead of a reply, or inside one.

Each dialect's own forms are in its `Traits`; forms that several share are here. Sources: the error
pages of the providers' API references; what the dialects read as an error.
"""

from collections.abc import Mapping

from deltatape.dialects._json import as_object, get_str, shown
from deltatape.model.exchange import Headers
from deltatape.model.stream import Event

_FIELDS = ("message", "Message", "detail", "details", "errors", "error_description", "title")
"""Members with the message, in error answers by gateways and frameworks."""


def failure_message(frame: Mapping[str, object]) -> str | None:
    """Return the message in the body of an error status; None if there is none.

    Args:
        frame: the JSON object that is the body.
    """
    known = error_message(frame, "")
    if known is not None:
        return known
    error = next((value for key in _FIELDS if (value := frame.get(key))), None)
    if error is None or isinstance(error, str):
        return error
    first = as_object(error[0]) if isinstance(error, list) else as_object(error)
    return (get_str(first, "message") if first else None) or shown(error)


def may_fail(frame: Mapping[str, object], event: Event) -> bool:
    """Check quickly whether `frame` may be an error."""
    if "error" in frame or frame.get("object") == "error":
        return True
    return event.type == "error" or event.exception


def error_message(frame: Mapping[str, object], event_type: str) -> str | None:
    """Return the message of an error event or answer; None if `frame` is not an error.

    Known shapes: `{"error": {"message": ...}}`, `{"error": "..."}`, `{"object": "error", "message":
    ...}`, and whatever an SSE event of the type `error` carries.
    """
    error = frame.get("error")
    if error:
        inner = as_object(error)
        if inner is None:
            return error if isinstance(error, str) else shown(error)
        return get_str(inner, "message") or shown(error)
    if event_type == "error" or frame.get("object") == "error":
        return get_str(frame, "message") or shown(frame)
    return None


OVERLOADED = 529
"""Not a registered status; Anthropic's for an overloaded service."""
OPENAI_KINDS: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
"""By status; others are a `server_error`."""
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
_TOO_MANY_REQUESTS = 429


def openai_error(status: int, message: str) -> Mapping[str, object]:
    """Return an error document in OpenAI's form, which most others use."""
    kind = OPENAI_KINDS.get(status, "server_error")
    code = "rate_limit_exceeded" if status == _TOO_MANY_REQUESTS else None
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def google_error(status: int, message: str) -> Mapping[str, object]:
    """Return an error document in Google's form."""
    name = _GOOGLE.get(status, "INTERNAL")
    return {"error": {"code": status, "message": message, "status": name}}


def bare_error(status: int, message: str) -> Mapping[str, object]:
    """Return an error document with nothing but a message: Cohere's, Amazon's."""
    del status
    return {"message": message}


def amazon_error_type(status: int) -> str:
    """Return Amazon's name for an error."""
    return _AMAZON.get(status, "InternalServerException")


def amazon_error_headers(status: int) -> Headers:
    """Return the header in which Amazon names an error."""
    return ((b"x-amzn-ErrorType", amazon_error_type(status).encode()),)
