"""OpenAI Chat Completions, and the many servers that are compatible with it, more or less.

Shapes: https://platform.openai.com/docs/api-reference/chat/streaming. Deltas of tool calls are
keyed by `(choices[].index, tool_calls[].index)`; a stream ends with a `finish_reason` per choice
and `data: [DONE]`. The rest of this package is about those who do it differently.
"""

from typing import ClassVar

from deltatape.dialects._base import Hints
from deltatape.dialects.openai_chat.reducer import ChatReducer
from deltatape.dialects.openai_chat.request import read_request
from deltatape.model.asked import Asked


class OpenAIChat:
    """The dialect. See `Dialect`."""

    name: ClassVar[str] = "openai-chat"

    def claims(self, hints: Hints) -> bool:
        """See `Dialect.claims`."""
        return any("choices" in one or _object_type(one) for one in hints.first)

    def serves(self, path: str) -> bool:
        """See `Dialect.serves`."""
        return path.rstrip("/").endswith("/chat/completions")

    def read_request(self, body: bytes, path: str) -> Asked:
        """See `Dialect.read_request`."""
        del path
        return read_request(body)

    def reducer(self, asked: Asked) -> ChatReducer:
        """See `Dialect.reducer`."""
        return ChatReducer(self.name, asked)


def _object_type(first: object) -> bool:
    return isinstance(first, dict) and str(first.get("object")).startswith("chat.completion")
