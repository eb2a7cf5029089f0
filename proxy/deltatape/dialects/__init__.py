"""The dialects, in the order in which they are asked whether an exchange is theirs."""

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
    """The dialects, for an application that calls the events of its own endpoint so."""
    if names == CONTRACT:
        return DIALECTS
    own = AppEvents(names)
    return tuple(own if each.name == own.name else each for each in DIALECTS)


def detect(hints: Hints, among: Sequence[Dialect] = DIALECTS) -> Dialect | None:
    """The dialect that claims a response, if one does."""
    return next((dialect for dialect in among if dialect.claims(hints)), None)


def expect(path: str, among: Sequence[Dialect] = DIALECTS) -> Dialect | None:
    """The dialect in which requests to `path` are answered, if its response does not tell."""
    return next((dialect for dialect in among if dialect.serves(path)), None)


def traits_of(name: str) -> Traits:
    """What is true of the dialect called `name`; the defaults if there is none."""
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
