"""The registry of dialects, in the order of detection: the first that claims a response wins."""

from collections.abc import Sequence

from deltatape.dialects._base import Dialect, EventShape, Hints, Reducer, Traits, feed_all
from deltatape.dialects._delta_fast_path import NO_FAST_PATH
from deltatape.dialects._errors import (
    OVERLOADED,
    amazon_error_type,
    bare_error,
    error_message,
    failure_message,
    may_fail,
)
from deltatape.dialects._json import Frame, as_object
from deltatape.dialects.ai_sdk_ui import AISDKUI
from deltatape.dialects.anthropic_messages import AnthropicMessages
from deltatape.dialects.app_events import AppEvents
from deltatape.dialects.bedrock_converse import BedrockConverse
from deltatape.dialects.bedrock_invoke import BedrockInvoke
from deltatape.dialects.cohere import Cohere
from deltatape.dialects.gemini import Gemini
from deltatape.dialects.gemini_interactions import GeminiInteractions
from deltatape.dialects.mistral import Mistral
from deltatape.dialects.ollama import Ollama
from deltatape.dialects.openai_chat import OpenAIChat
from deltatape.dialects.openai_completions import OpenAICompletions
from deltatape.dialects.openai_responses import OpenAIRealtime, OpenAIResponses
from deltatape.model.app_names import CONTRACT, AppNames
from deltatape.model.reply import Choice, Reply
from deltatape.model.stream import Event
from deltatape.wire.json_value import parse, read_object

DIALECTS: tuple[Dialect, ...] = (
    BedrockInvoke(),
    BedrockConverse(),
    Ollama(),
    OpenAIChat(),
    Mistral(),
    OpenAICompletions(),
    OpenAIRealtime(),
    OpenAIResponses(),
    AnthropicMessages(),
    Gemini(),
    GeminiInteractions(),
    Cohere(),
    AISDKUI(),
    AppEvents(),
)
_TRAITS = {dialect.name: dialect.traits for dialect in DIALECTS}
_NO_TRAITS = Traits()


def dialects_for(names: AppNames) -> tuple[Dialect, ...]:
    """Return the dialects, with `names` as the event names of the application's own endpoint."""
    if names == CONTRACT:
        return DIALECTS
    own = AppEvents(names)
    return tuple(own if each.name == own.name else each for each in DIALECTS)


def detect(hints: Hints, among: Sequence[Dialect] = DIALECTS) -> Dialect | None:
    """Return the first dialect that claims a response; None if none does."""
    return next((dialect for dialect in among if dialect.claims(hints)), None)


def expect(path: str, among: Sequence[Dialect] = DIALECTS) -> Dialect | None:
    """Return the dialect that serves `path`, for responses that do not show their dialect."""
    return next((dialect for dialect in among if dialect.serves(path)), None)


def traits_of(name: str) -> Traits:
    """Return the traits of the dialect `name`; the defaults if the name is unknown."""
    return _TRAITS.get(name, _NO_TRAITS)


UNKNOWN = "unknown"
"""The dialect's name in the reply of an exchange that no dialect claims."""


class UnknownReducer:
    """Rebuilds the reply of no dialect: no text, no calls, at most an error. See `Reducer`."""

    fast_path = NO_FAST_PATH

    def __init__(self) -> None:
        self._error: str | None = None

    def feed(self, event: Event, frame: Frame | None = None) -> None:
        if self._error is not None:
            return
        frame = frame or read_object(event.data) or as_object(parse(event.data).value)
        if frame is not None and may_fail(frame, event):
            self._error = error_message(frame, event.type)

    def finish(self, *, cut: bool) -> Reply:
        empty = Choice(
            index=0, text="", reasoning="", refusal="", tool_calls=(), finish_reason_raw=None
        )
        return Reply(
            dialect=UNKNOWN,
            choices=(empty,),
            usage=None,
            model=None,
            error=self._error,
            terminated=not cut,
            terminator="the end of the body",
            observations=(),
        )


__all__ = [
    "DIALECTS",
    "OVERLOADED",
    "UNKNOWN",
    "Dialect",
    "EventShape",
    "Hints",
    "Reducer",
    "Traits",
    "UnknownReducer",
    "amazon_error_type",
    "bare_error",
    "detect",
    "dialects_for",
    "error_message",
    "expect",
    "failure_message",
    "feed_all",
    "traits_of",
]
