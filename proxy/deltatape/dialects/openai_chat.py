"""OpenAI Chat Completions, and the many servers that are more or less compatible with it."""

from typing import ClassVar

from deltatape.dialects._base import EventShape, Hints, Traits
from deltatape.dialects._chat import (
    CLOSING_KEYS,
    DELTA_KEYS,
    MARKS,
    POLICY,
    ChatReducer,
    is_chat,
    is_completion,
    is_mistral,
)
from deltatape.dialects._chat_request import read_request
from deltatape.model.request_summary import RequestSummary


class OpenAIChat:
    """The dialect. See `Dialect`."""

    name: ClassVar[str] = "openai-chat"
    traits: ClassVar[Traits] = Traits(
        provider="openai",
        shape=EventShape.CHAT,
        policy=POLICY,
        delta_keys=DELTA_KEYS,
        closing_keys=CLOSING_KEYS,
        late_usage=True,
    )

    def claims(self, hints: Hints) -> bool:
        if hints.members.isdisjoint(MARKS):
            return False
        if not any(map(is_chat, hints.first)):
            return False
        return not any(is_mistral(one) or is_completion(one) for one in hints.first)

    def serves(self, path: str) -> bool:
        return path.rstrip("/").endswith("/chat/completions")

    def read_request(self, body: bytes, path: str) -> RequestSummary:
        del path
        return read_request(body)

    def reducer(self, request: RequestSummary) -> ChatReducer:
        return ChatReducer(self.name, request)
