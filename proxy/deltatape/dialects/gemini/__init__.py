"""Gemini's generateContent and streamGenerateContent, of the Gemini API, Vertex AI and Cloud Code.

Shapes: https://ai.google.dev/api/generate-content. A stream is server-sent events or one JSON
array; every event is a whole response with a part of the content. There is no index of calls and no
sentinel: a call is a part, and a `finishReason` ends a candidate. Cloud Code wraps everything:
`{"response": {...}}`.
"""

from collections.abc import Mapping
from typing import ClassVar

from deltatape.dialects._base import Errors, EventShape, Hints, Traits
from deltatape.dialects._errors import google_error
from deltatape.dialects._json import as_array, as_object, get_object, objects_in
from deltatape.dialects.gemini.reducer import POLICY, GeminiReducer
from deltatape.dialects.gemini.request import method_of, read_request
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Format

_OBJECTS = ("usageMetadata", "promptFeedback")
_MARKS = frozenset({*_OBJECTS, "candidates", "response"})
_CANDIDATE = frozenset({"content", "finishReason", "index", "safetyRatings", "groundingMetadata"})


class Gemini:
    """The dialect. See `Dialect`."""

    name: ClassVar[str] = "gemini"
    traits: ClassVar[Traits] = Traits(
        provider="gemini",
        shape=EventShape.CANDIDATES,
        formats=frozenset({Format.SSE, Format.JSON_ARRAY, Format.JSON}),
        policy=POLICY,
        errors=Errors(document=google_error),
        delta_keys=frozenset({"text"}),
        closing_keys=frozenset({"finishReason", "thoughtSignature"}),
        running_keys=frozenset({"usageMetadata"}),
    )

    def claims(self, hints: Hints) -> bool:
        if hints.members.isdisjoint(_MARKS):
            return False
        return any(_is_response(get_object(one, "response") or one) for one in hints.first)

    def serves(self, path: str) -> bool:
        return method_of(path) in ("streamGenerateContent", "generateContent")

    def read_request(self, body: bytes, path: str) -> RequestSummary:
        return read_request(body, path)

    def reducer(self, request: RequestSummary) -> GeminiReducer:
        return GeminiReducer(self.name, request)


def _is_response(value: Mapping[str, object]) -> bool:
    if any(as_object(value.get(key)) is not None for key in _OBJECTS):
        return True
    candidates = as_array(value.get("candidates"))
    if not candidates:
        return candidates is not None
    return any(not found or not _CANDIDATE.isdisjoint(found) for found in objects_in(candidates))
