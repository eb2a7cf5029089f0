"""Errors that providers and gateways send in place of a reply, or in the middle of one."""

from collections.abc import Mapping

from deltatape.dialects._json import as_object, get_str, shown
from deltatape.model.stream import Event

_FIELDS = ("message", "Message", "detail", "details", "errors", "error_description", "title")
"""Where gateways and frameworks say what is wrong, in answers that are nothing but an error."""


def failure_message(frame: Mapping[str, object]) -> str | None:
    """What the body of an answer with the status of an error says; None if nothing does.

    Args:
        frame: the JSON object that is the body.
    """
    known = error_message(frame, "")
    if known is not None:
        return known
    said = next((value for key in _FIELDS if (value := frame.get(key))), None)
    if said is None or isinstance(said, str):
        return said
    first = as_object(said[0]) if isinstance(said, list) else as_object(said)
    return (get_str(first, "message") if first else None) or shown(said)


def may_fail(frame: Mapping[str, object], event: Event) -> bool:
    """Whether `frame`, which `event` carries, may be an error: nearly none is."""
    if "error" in frame or frame.get("object") == "error":
        return True
    return event.type == "error" or event.exception


def error_message(frame: Mapping[str, object], event_type: str) -> str | None:
    """The message of an error frame or error answer; None if `frame` is none.

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
