"""Mistral: chat completions whose calls usually come whole, with content in typed parts.

Shapes: https://docs.mistral.ai/api/#tag/chat. Calls need no index, an absent id may be the string
"null", names are repeated as "", reasoning is a part of `content`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from deltatape.dialects._base import Errors, EventShape, Hints, Traits
from deltatape.dialects._chat import (
    CLOSING_KEYS,
    DELTA_KEYS,
    POLICY,
    ChatReducer,
    is_mistral,
)
from deltatape.dialects._chat_request import read_request
from deltatape.dialects._errors import OPENAI_KINDS
from deltatape.model.request_summary import RequestSummary

_POLICY = replace(POLICY, indexes=False, abnormal=POLICY.abnormal | {"model_length"})


def _error(status: int, message: str) -> Mapping[str, object]:
    kind = OPENAI_KINDS.get(status, "server_error")
    return {"object": "error", "message": message, "type": kind, "param": None, "code": None}


class Mistral:
    """The dialect. See `Dialect`."""

    name: ClassVar[str] = "mistral"
    traits: ClassVar[Traits] = Traits(
        provider="mistral",
        shape=EventShape.CHAT,
        policy=_POLICY,
        errors=Errors(document=_error),
        delta_keys=DELTA_KEYS,
        closing_keys=CLOSING_KEYS,
    )

    def claims(self, hints: Hints) -> bool:
        return "choices" in hints.members and any(map(is_mistral, hints.first))

    def serves(self, path: str) -> bool:
        """See `Dialect.serves`: its path is OpenAI's, too."""
        del path
        return False

    def read_request(self, body: bytes, path: str) -> RequestSummary:
        """See `Dialect.read_request`. What others call `required` is `any` here."""
        del path
        request = read_request(body)
        return replace(request, tool_choice="required") if request.tool_choice == "any" else request

    def reducer(self, request: RequestSummary) -> ChatReducer:
        return ChatReducer(self.name, request, _POLICY)
