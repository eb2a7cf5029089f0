"""Errors that providers and gateways send in place of a reply, or in the middle of one."""

from collections.abc import Mapping

from deltatape.dialects._json import as_object, get_str, shown


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
