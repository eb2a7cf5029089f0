"""What the providers' words for the end of a reply mean.

Each dialect has its own words; they do not contradict each other, so one table serves all.
"""

import enum

from deltatape.model.reply import Choice, Piece, ToolCall


class Finish(enum.StrEnum):
    """The meaning of a finish reason."""

    TOOLS = enum.auto()
    """The reply ends with tool calls."""
    STOP = enum.auto()
    """The model was done."""
    LENGTH = enum.auto()
    """A limit of tokens cut it."""
    FILTER = enum.auto()
    """A filter cut it."""
    PAUSE = enum.auto()
    """The provider goes on as soon as it is asked to."""
    OTHER = enum.auto()
    """An error, a word not known here."""


_OTHER = Finish.OTHER
_MEANINGS = {
    "tool_calls": Finish.TOOLS,
    "function_call": Finish.TOOLS,
    "tool_use": Finish.TOOLS,
    "tool_call": Finish.TOOLS,
    "tool-calls": Finish.TOOLS,
    "requires_action": Finish.TOOLS,
    "stop": Finish.STOP,
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "stop_criteria_met": Finish.STOP,
    "finish": Finish.STOP,
    "endoftext": Finish.STOP,
    "complete": Finish.STOP,
    "completed": Finish.STOP,
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "max_output_tokens": Finish.LENGTH,
    "model_length": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "incomplete": Finish.LENGTH,
    "continuation": Finish.LENGTH,
    "requires_continuation": Finish.LENGTH,
    "budget_exceeded": Finish.LENGTH,
    "content_filter": Finish.FILTER,
    "content-filter": Finish.FILTER,
    "content_filtered": Finish.FILTER,
    "error_toxic": Finish.FILTER,
    "guardrail_intervened": Finish.FILTER,
    "safety": Finish.FILTER,
    "recitation": Finish.FILTER,
    "language": Finish.FILTER,
    "blocklist": Finish.FILTER,
    "prohibited_content": Finish.FILTER,
    "spii": Finish.FILTER,
    "image_safety": Finish.FILTER,
    "image_prohibited_content": Finish.FILTER,
    "image_recitation": Finish.FILTER,
    "model_armor": Finish.FILTER,
    "escalation": Finish.FILTER,
    "refusal": Finish.FILTER,
    "pause_turn": Finish.PAUSE,
    "compaction": Finish.PAUSE,
}


def meaning(word: str | None) -> Finish:
    """What `word`, in any case, says about the end of a reply."""
    return _MEANINGS.get(word.lower(), _OTHER) if word else _OTHER


def finish_of(choice: Choice) -> Finish:
    """Why a reply ended: the provider's detail tells more than its finish reason."""
    by_detail = meaning(choice.finish_detail)
    return meaning(choice.finish_reason_raw) if by_detail is _OTHER else by_detail


def is_late(choice: Choice) -> bool:
    """Whether an event after the finish reason brings a call or text: as below, but quicker."""
    end = choice.finish_event
    if end is None:
        return False
    if choice.pieces and choice.pieces[-1].carrier.number > end:
        return True
    return any(_last_event(call) > end for call in choice.tool_calls)


def late_calls(choice: Choice) -> tuple[ToolCall, ...]:
    """The calls of which an event after the finish reason brings at least a part."""
    end = choice.finish_event
    if end is None:
        return ()
    return tuple([call for call in choice.tool_calls if _last_event(call) > end])


def late_text(choice: Choice) -> Piece | None:
    """The last piece of text, if it comes after the finish reason."""
    end, last = choice.finish_event, choice.pieces[-1] if choice.pieces else None
    return last if last is not None and end is not None and last.event > end else None


def _last_event(call: ToolCall) -> int:
    return max(call.start_event, call.fragments[-1].event if call.fragments else 0)
