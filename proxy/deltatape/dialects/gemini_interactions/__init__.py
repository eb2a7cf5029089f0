"""Gemini's Interactions API: an answer as steps that start, grow and stop.

Shapes: https://ai.google.dev/gemini-api/docs/interactions/streaming. Every event names itself in
`event_type`; steps are distinguished by `index`. An older form of the same has `content.*` events
for steps. Function calls have ids and stream their arguments as text; the status of the
interaction, at its completion, is the reason to finish.
"""

from collections.abc import Mapping
from typing import ClassVar

from deltatape.dialects._base import Hints
from deltatape.dialects._errors import google_error
from deltatape.dialects._json import get_str
from deltatape.dialects._traits import Errors, Traits
from deltatape.dialects.gemini_interactions.reducer import POLICY, InteractionsReducer
from deltatape.dialects.gemini_interactions.request import read_request
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Format

_MARKS = frozenset({"event_type", "object"})
_FAMILIES = ("interaction.", "step.", "content.")


def _error_event(status: int, message: str, form: Format) -> tuple[str, Mapping[str, object]]:
    del form
    return "error", {"event_type": "error", **google_error(status, message)}


class GeminiInteractions:
    """The dialect. See `Dialect`."""

    name: ClassVar[str] = "gemini-interactions"
    traits: ClassVar[Traits] = Traits(
        provider="gemini",
        policy=POLICY,
        errors=Errors(document=google_error, event=_error_event),
        delta_keys=frozenset({"text", "arguments"}),
        closing_keys=frozenset({"signature"}),
        whole_types=("stop", "completed"),
    )

    def claims(self, hints: Hints) -> bool:
        if hints.members.isdisjoint(_MARKS):
            return False
        return any(map(_is_interaction, hints.first))

    def serves(self, path: str) -> bool:
        """See `Dialect.serves`: of an interaction that exists, too, which can be streamed again."""
        parts = path.rstrip("/").split("/")
        return "interactions" in parts[-2:]

    def read_request(self, body: bytes, path: str) -> RequestSummary:
        del path
        return read_request(body)

    def reducer(self, request: RequestSummary) -> InteractionsReducer:
        return InteractionsReducer(self.name, request)


def _is_interaction(value: Mapping[str, object]) -> bool:
    kind = get_str(value, "event_type") or ""
    return kind.startswith(_FAMILIES) or value.get("object") == "interaction"
