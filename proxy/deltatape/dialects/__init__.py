"""The registry of dialects, in the order of detection: the first that claims a response wins."""

from collections.abc import Sequence

from deltatape.dialects._base import Dialect, Hints, Reducer, feed_all
from deltatape.dialects._errors import (
    OVERLOADED,
    amazon_error_type,
    bare_error,
    error_message,
    failure_message,
)
from deltatape.dialects._traits import EventShape, Traits
from deltatape.dialects._unknown import UNKNOWN, UnknownReducer
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
from deltatape.dialects.openai_responses import OpenAIResponses
from deltatape.model.app_names import CONTRACT, AppNames

DIALECTS: tuple[Dialect, ...] = (
    BedrockInvoke(),
    BedrockConverse(),
    Ollama(),
    OpenAIChat(),
    Mistral(),
    OpenAICompletions(),
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
