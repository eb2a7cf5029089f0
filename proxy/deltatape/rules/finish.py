"""The meanings of the providers' finish reasons.

Each dialect has its own words; they do not contradict each other, so one table serves all.
"""

import enum

from deltatape.model.reply import Choice, TextFragment, ToolCall


class FinishMeaning(enum.StrEnum):
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
    """The provider continues as soon as it is asked to."""
    OTHER = enum.auto()
    """An error, a word not known here."""


CUT_HINTS = {
    FinishMeaning.LENGTH: "raise the output token limit or ask for less",
    FinishMeaning.FILTER: "change what the request asks for",
}
"""What to do about a cut reply, by what cut it."""

_OTHER = FinishMeaning.OTHER
_MEANINGS = {
    "tool_calls": FinishMeaning.TOOLS,
    "function_call": FinishMeaning.TOOLS,
    "tool_use": FinishMeaning.TOOLS,
    "tool_call": FinishMeaning.TOOLS,
    "tool-calls": FinishMeaning.TOOLS,
    "requires_action": FinishMeaning.TOOLS,
    "stop": FinishMeaning.STOP,
    "end_turn": FinishMeaning.STOP,
    "stop_sequence": FinishMeaning.STOP,
    "stop_criteria_met": FinishMeaning.STOP,
    "finish": FinishMeaning.STOP,
    "endoftext": FinishMeaning.STOP,
    "complete": FinishMeaning.STOP,
    "completed": FinishMeaning.STOP,
    "length": FinishMeaning.LENGTH,
    "max_tokens": FinishMeaning.LENGTH,
    "max_output_tokens": FinishMeaning.LENGTH,
    "model_length": FinishMeaning.LENGTH,
    "model_context_window_exceeded": FinishMeaning.LENGTH,
    "incomplete": FinishMeaning.LENGTH,
    "continuation": FinishMeaning.LENGTH,
    "requires_continuation": FinishMeaning.LENGTH,
    "budget_exceeded": FinishMeaning.LENGTH,
    "content_filter": FinishMeaning.FILTER,
    "content-filter": FinishMeaning.FILTER,
    "content_filtered": FinishMeaning.FILTER,
    "error_toxic": FinishMeaning.FILTER,
    "guardrail_intervened": FinishMeaning.FILTER,
    "safety": FinishMeaning.FILTER,
    "recitation": FinishMeaning.FILTER,
    "language": FinishMeaning.FILTER,
    "blocklist": FinishMeaning.FILTER,
    "prohibited_content": FinishMeaning.FILTER,
    "spii": FinishMeaning.FILTER,
    "image_safety": FinishMeaning.FILTER,
    "image_prohibited_content": FinishMeaning.FILTER,
    "image_recitation": FinishMeaning.FILTER,
    "model_armor": FinishMeaning.FILTER,
    "escalation": FinishMeaning.FILTER,
    "refusal": FinishMeaning.FILTER,
    "pause_turn": FinishMeaning.PAUSE,
    "compaction": FinishMeaning.PAUSE,
}


def meaning(word: str | None) -> FinishMeaning:
    """Return what `word`, in any case, says about the end of a reply."""
    return _MEANINGS.get(word.lower(), _OTHER) if word else _OTHER


def finish_of(choice: Choice) -> FinishMeaning:
    """Return why a reply ended; the provider's detail is more precise than its finish reason."""
    by_detail = meaning(choice.finish_detail)
    return meaning(choice.finish_reason_raw) if by_detail is _OTHER else by_detail


def late_calls(choice: Choice) -> tuple[ToolCall, ...]:
    """Return the calls with a part after the finish reason."""
    end = choice.finish_event
    if end is None:
        return ()
    return tuple([call for call in choice.tool_calls if _last_event(call) > end])


def late_text(choice: Choice) -> TextFragment | None:
    """Return the last piece of text if it comes after the finish reason."""
    end, last = choice.finish_event, choice.pieces[-1] if choice.pieces else None
    return last if last is not None and end is not None and last.event > end else None


def _last_event(call: ToolCall) -> int:
    return max(call.start_event, call.fragments[-1].event if call.fragments else 0)
