"""Gemini's Interactions API: an answer as steps that start, grow and stop.

Shapes: https://ai.google.dev/gemini-api/docs/interactions/streaming. Every event names itself in
`event_type`; steps are told apart by `index`. An older form of the same has `content.*` events
for steps. Function calls have ids and stream their arguments as text; the status of the
interaction, at its completion, is the reason to finish.
"""

from collections.abc import Mapping
from typing import ClassVar

from deltatape.dialects._base import Hints
from deltatape.dialects._json import get_str
from deltatape.dialects.gemini_interactions.reducer import InteractionsReducer
from deltatape.dialects.gemini_interactions.request import read_request
from deltatape.model.asked import Asked

_MARKS = frozenset({"event_type", "object"})
_FAMILIES = ("interaction.", "step.", "content.")


class GeminiInteractions:
    """The dialect. See `Dialect`."""

    name: ClassVar[str] = "gemini-interactions"

    def claims(self, hints: Hints) -> bool:
        """See `Dialect.claims`."""
        if hints.members.isdisjoint(_MARKS):
            return False
        return any(map(_is_interaction, hints.first))

    def serves(self, path: str) -> bool:
        """See `Dialect.serves`: of an interaction that exists, too, which can be streamed again."""
        parts = path.rstrip("/").split("/")
        return "interactions" in parts[-2:]

    def read_request(self, body: bytes, path: str) -> Asked:
        """See `Dialect.read_request`."""
        del path
        return read_request(body)

    def reducer(self, asked: Asked) -> InteractionsReducer:
        """See `Dialect.reducer`."""
        return InteractionsReducer(self.name, asked)


def _is_interaction(value: Mapping[str, object]) -> bool:
    kind = get_str(value, "event_type") or ""
    return kind.startswith(_FAMILIES) or value.get("object") == "interaction"
