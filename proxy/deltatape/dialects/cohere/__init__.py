"""Cohere: chat version 2 (server-sent events) and version 1 (a JSON object per line).

Shapes: https://docs.cohere.com/v2/docs/streaming, https://docs.cohere.com/v1/docs/streaming. In
version 2 calls are keyed by `index`, `tool_calls` of an event is an object, and what the model says
before its calls is a plan, kept as reasoning. In version 1 calls have no ids, and the list that
comes after their pieces has more authority.
"""

from collections.abc import Mapping
from typing import ClassVar

from deltatape.dialects._alike import NEVER_ALIKE
from deltatape.dialects._base import Hints
from deltatape.dialects._cohere_v1 import is_v1
from deltatape.dialects._json import Frame, as_object, get_object, get_str
from deltatape.dialects._table import TableReducer
from deltatape.dialects.cohere.request import read_request
from deltatape.dialects.cohere.tables import V1, V2
from deltatape.model.asked import Asked
from deltatape.model.reply import Reply
from deltatape.model.stream import Event
from deltatape.wire.json_value import parse

_TYPES = frozenset(
    {
        "message-start",
        "content-start",
        "content-delta",
        "tool-plan-delta",
        "tool-call-start",
        "tool-call-end",
        "message-end",
    }
)
_OTHER_MARKS = frozenset({"event_type", "generation_id", "finish_reason"})
"""Members of which an event of version 1 has one, and the answers that are not streamed."""


class Cohere:
    """The dialect. See `Dialect`."""

    name: ClassVar[str] = "cohere"

    def claims(self, hints: Hints) -> bool:
        """See `Dialect.claims`."""
        if _TYPES.isdisjoint(hints.kinds) and hints.members.isdisjoint(_OTHER_MARKS):
            return False
        return any(is_v1(one) or _is_v2(one) for one in hints.first)

    def serves(self, path: str) -> bool:
        """See `Dialect.serves`."""
        return path.rstrip("/").endswith(("/v2/chat", "/v1/chat"))

    def read_request(self, body: bytes, path: str) -> Asked:
        """See `Dialect.read_request`."""
        del path
        return read_request(body)

    def reducer(self, asked: Asked) -> "CohereReducer":
        """See `Dialect.reducer`."""
        return CohereReducer(asked)


class CohereReducer:
    """Rebuilds a reply of the version that its first event is of. See `Reducer`."""

    alike = NEVER_ALIKE

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._inner: TableReducer | None = None

    def feed(self, event: Event, frame: Frame | None = None) -> None:
        """See `Reducer.feed`."""
        if self._inner is None:
            first = frame or as_object(parse(event.data).value)
            old = first is not None and is_v1(first)
            self._inner = TableReducer(V1 if old else V2, self._asked)
        self._inner.feed(event, frame)

    def finish(self, *, cut: bool) -> Reply:
        """See `Reducer.finish`."""
        inner = self._inner or TableReducer(V2, self._asked)
        return inner.finish(cut=cut)


def _is_v2(one: Mapping[str, object]) -> bool:
    """Whether `one` is an event of version 2, or its answer that is not streamed."""
    kind = get_str(one, "type")
    if kind is not None:
        return kind in _TYPES
    return get_object(one, "message") is not None and "finish_reason" in one
