"""Anthropic's messages, also as Vertex and other gateways forward them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from deltatape.dialects._anthropic import (
    CLOSING_KEYS,
    DELTA_KEYS,
    PING,
    POLICY,
    STREAMED,
    MessageReducer,
    is_document,
    is_error,
    read_request,
)
from deltatape.dialects._base import Errors, EventShape, Hints, Traits
from deltatape.dialects._errors import OPENAI_KINDS, OVERLOADED
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Format

_PATHS = ("/v1/messages", "/anthropic/messages")
_OTHERS = frozenset({"message", "error"})
"""Types of what is not streamed; others have such, too."""
_VERTEX = "/publishers/anthropic/models/"

_ERRORS = {
    **OPENAI_KINDS,
    413: "request_too_large",
    504: "timeout_error",
    OVERLOADED: "overloaded_error",
}


def _error(status: int, message: str) -> Mapping[str, object]:
    kind = _ERRORS.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}}


def _error_event(status: int, message: str, form: Format) -> tuple[str, Mapping[str, object]]:
    del form
    return "error", _error(status, message)


class AnthropicMessages:
    """The dialect. See `Dialect`."""

    name: ClassVar[str] = "anthropic-messages"
    traits: ClassVar[Traits] = Traits(
        provider="anthropic",
        shape=EventShape.MESSAGES,
        policy=POLICY,
        errors=Errors(document=_error, event=_error_event),
        delta_keys=DELTA_KEYS,
        closing_keys=CLOSING_KEYS,
        whole_types=("stop",),
        ping=PING,
        named_events=True,
    )

    def claims(self, hints: Hints) -> bool:
        if "\nx-amzn-bedrock-" in hints.headers:
            return False  # the same document, but in answer to another kind of request
        if not STREAMED.isdisjoint(hints.kinds):
            return True
        if _OTHERS.isdisjoint(hints.kinds):
            return False
        return any(is_document(one) or is_error(one) for one in hints.first)

    def serves(self, path: str) -> bool:
        bare = path.rstrip("/")
        return bare.endswith(_PATHS) or (_VERTEX in bare and bare.endswith("awPredict"))

    def read_request(self, body: bytes, path: str) -> RequestSummary:
        """See `Dialect.read_request`: at Vertex, the path names the model."""
        request = read_request(body)
        model = path.partition(_VERTEX)[2].rpartition(":")[0]
        return replace(request, model=model) if model and request.known else request

    def reducer(self, request: RequestSummary) -> MessageReducer:
        return MessageReducer(self.name, request)
