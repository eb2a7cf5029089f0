"""What tells Anthropic's events and documents from those of others."""

from collections.abc import Mapping

from deltatape.dialects._json import get_object, get_str

MESSAGE_START = "message_start"
BLOCK_START = "content_block_start"
BLOCK_DELTA = "content_block_delta"
BLOCK_STOP = "content_block_stop"
MESSAGE_DELTA = "message_delta"
MESSAGE_STOP = "message_stop"

STREAMED = frozenset(
    {MESSAGE_START, BLOCK_START, BLOCK_DELTA, BLOCK_STOP, MESSAGE_DELTA, MESSAGE_STOP}
)
"""Types of the events of a stream; the type `ping` is not Anthropic's alone."""

_OPENAI_FIELDS = frozenset({"code", "param"})


def is_event(frame: Mapping[str, object]) -> bool:
    """Whether `frame` is an event of a streamed message."""
    kind = frame.get("type")
    return isinstance(kind, str) and kind in STREAMED


def is_document(frame: Mapping[str, object]) -> bool:
    """Whether `frame` is a message that is not streamed."""
    ours = frame.get("type") == "message" and "stop_reason" in frame
    return ours and isinstance(frame.get("content"), list)


def is_error(frame: Mapping[str, object]) -> bool:
    """Whether `frame` is an error as Anthropic sends it: others number theirs or add codes."""
    error = get_object(frame, "error")
    if frame.get("type") != "error" or error is None or "sequence_number" in frame:
        return False
    return get_str(error, "type") is not None and _OPENAI_FIELDS.isdisjoint(error)
