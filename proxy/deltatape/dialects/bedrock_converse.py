"""Bedrock's Converse: one dialect for the models of many providers, in Amazon's event stream.

Shapes: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html. The
framing names the type of an event, errors are exceptions of the framing; see `_converse` for what
the events say. The path names the model and whether the answer is streamed.
"""

from typing import ClassVar

from deltatape.dialects._base import Errors, EventShape, Hints, Traits
from deltatape.dialects._converse import (
    STREAMED,
    converse_table,
    is_document,
    read_conversation,
    read_path,
)
from deltatape.dialects._errors import amazon_error_headers, bare_error
from deltatape.dialects._table import TableReducer
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Format

_WHOLE = "converse"
_STREAM = "converse-stream"
_TABLE = converse_table("bedrock-converse")


class BedrockConverse:
    """The dialect. See `Dialect`."""

    name: ClassVar[str] = _TABLE.name
    traits: ClassVar[Traits] = Traits(
        provider="bedrock",
        shape=EventShape.CONVERSE,
        formats=frozenset({Format.EVENTSTREAM, Format.JSON}),
        policy=_TABLE.policy,
        errors=Errors(document=bare_error, headers=amazon_error_headers),
        delta_keys=frozenset({"text", "input"}),
    )

    def claims(self, hints: Hints) -> bool:
        if hints.format is Format.EVENTSTREAM:
            return not STREAMED.isdisjoint(hints.types)
        if "stopReason" not in hints.members:
            return False
        return any("stopReason" in one and is_document(one) for one in hints.first)

    def serves(self, path: str) -> bool:
        return read_path(path).action in (_WHOLE, _STREAM)

    def read_request(self, body: bytes, path: str) -> RequestSummary:
        model, action = read_path(path)
        return read_conversation(body, model=model, stream=action == _STREAM)

    def reducer(self, request: RequestSummary) -> TableReducer:
        return TableReducer(_TABLE, request)
