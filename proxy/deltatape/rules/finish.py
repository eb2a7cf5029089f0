"""What the providers' words for the end of a reply mean.

Each dialect has its own words; they do not contradict each other, so one table serves all.
"""

import enum


class Finish(enum.Enum):
    """The meaning of a finish reason."""

    TOOLS = enum.auto()
    """The reply ends with tool calls."""
    STOP = enum.auto()
    """The model was done."""
    LENGTH = enum.auto()
    """A limit of tokens cut it."""
    FILTER = enum.auto()
    """A filter cut it."""
    OTHER = enum.auto()
    """An error, a pause, a word not known here."""


_MEANINGS = {
    "tool_calls": Finish.TOOLS,
    "function_call": Finish.TOOLS,
    "tool_use": Finish.TOOLS,
    "tool_call": Finish.TOOLS,
    "tool-calls": Finish.TOOLS,
    "stop": Finish.STOP,
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "complete": Finish.STOP,
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "max_output_tokens": Finish.LENGTH,
    "model_length": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "content_filter": Finish.FILTER,
    "content-filter": Finish.FILTER,
    "content_filtered": Finish.FILTER,
    "guardrail_intervened": Finish.FILTER,
    "safety": Finish.FILTER,
    "recitation": Finish.FILTER,
}


def meaning(word: str | None) -> Finish:
    """What `word`, in any case, says about the end of a reply."""
    return _MEANINGS.get(word.lower(), Finish.OTHER) if word else Finish.OTHER


TOOL_WORD_DIALECTS = frozenset(
    {"openai-chat", "anthropic-messages", "mistral", "cohere", "bedrock-converse"}
)
"""Dialects that have a word of their own for replies with tool calls: where it is missing, clients
that wait for it stop. The others end such replies with the word for any normal end."""
