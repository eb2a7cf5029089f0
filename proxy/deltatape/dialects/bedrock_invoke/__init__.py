"""Amazon Bedrock's InvokeModel: each model's own format, wrapped by Amazon.

Shapes: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModelWithResponseStream.html
and, by model, https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters.html. A stream
consists of binary messages of the type `chunk`, each with one JSON object of the model as base64;
what is not streamed is the model's document. The path names the model and whether it streams.
"""

from typing import ClassVar

from deltatape.dialects._anthropic import reducer as anthropic
from deltatape.dialects._base import Hints
from deltatape.dialects._chat import shape as chat
from deltatape.dialects._errors import amazon_error_headers, bare_error
from deltatape.dialects._traits import Errors, EventShape, Traits
from deltatape.dialects.bedrock_invoke.flat import is_own
from deltatape.dialects.bedrock_invoke.reducer import CHUNK, InvokeReducer
from deltatape.dialects.bedrock_invoke.request import read_request, serves
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Format


class BedrockInvoke:
    """The dialect. See `Dialect`."""

    name: ClassVar[str] = "bedrock-invoke"
    traits: ClassVar[Traits] = Traits(
        provider="bedrock",
        shape=EventShape.MESSAGES,
        formats=frozenset({Format.EVENTSTREAM, Format.JSON}),
        errors=Errors(document=bare_error, headers=amazon_error_headers),
        delta_keys=anthropic.DELTA_KEYS | chat.DELTA_KEYS,
        closing_keys=anthropic.CLOSING_KEYS | chat.CLOSING_KEYS,
        whole_types=("stop", "end"),
        ping=anthropic.PING,
    )

    def claims(self, hints: Hints) -> bool:
        """See `Dialect.claims`: documents are known by their head, some by their shape."""
        if hints.format is Format.EVENTSTREAM:
            return CHUNK in hints.types
        if "\nx-amzn-bedrock-" in hints.headers:
            return bool(hints.first)
        return hints.format is Format.JSON and any(map(is_own, hints.first))

    def serves(self, path: str) -> bool:
        return serves(path)

    def read_request(self, body: bytes, path: str) -> RequestSummary:
        return read_request(body, path)

    def reducer(self, request: RequestSummary) -> InvokeReducer:
        return InvokeReducer(self.name, request)
