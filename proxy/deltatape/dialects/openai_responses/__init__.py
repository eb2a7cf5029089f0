"""OpenAI Responses, and the servers that speak it: Azure, xAI, OpenRouter, DeepSeek, LM Studio.

Shapes: https://platform.openai.com/docs/api-reference/responses-streaming. A response consists of
output items, each added, filled by deltas and done, and ends with an event that lists them all. The
same arguments come up to five times, so that clients differ in which copy they use: the item that
is done counts most, the added one least, since its arguments are still empty.
"""

from collections.abc import Mapping
from typing import ClassVar

from deltatape.dialects._base import Errors, EventShape, Hints, Traits
from deltatape.dialects._errors import OPENAI_KINDS
from deltatape.dialects.openai_responses.realtime import REALTIME, is_realtime
from deltatape.dialects.openai_responses.reducer import POLICY, ResponsesReducer
from deltatape.dialects.openai_responses.request import read_request
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Format

_PREFIX = "response."
_REALTIME = ("session.", "input_audio_buffer.")
"""Types of another protocol whose other events are called `response.` as well."""
_FORMATS = frozenset({Format.SSE, Format.JSON, Format.WEBSOCKET})
_MARKS = frozenset({"type", "output"})


def _error_event(status: int, message: str, form: Format) -> tuple[str, Mapping[str, object]]:
    del form
    kind = OPENAI_KINDS.get(status, "server_error")
    return "error", {"type": "error", "code": kind, "message": message, "param": None}


class OpenAIRealtime:
    """The dialect of sessions on a WebSocket: see `realtime`, and `Dialect`."""

    name: ClassVar[str] = "openai-realtime"
    traits: ClassVar[Traits] = Traits(
        provider="openai",
        formats=frozenset({Format.WEBSOCKET}),
        policy=POLICY,
        delta_keys=frozenset({"delta", "text", "transcript", "arguments"}),
        whole_types=("done",),
    )

    def claims(self, hints: Hints) -> bool:
        return hints.format is Format.WEBSOCKET and any(map(is_realtime, hints.first))

    def serves(self, path: str) -> bool:
        return path.rstrip("/").endswith("/realtime")

    def read_request(self, body: bytes, path: str) -> RequestSummary:
        del path
        return read_request(body)

    def reducer(self, request: RequestSummary) -> ResponsesReducer:
        return ResponsesReducer(self.name, request, REALTIME)


class OpenAIResponses:
    """The dialect. See `Dialect`."""

    name: ClassVar[str] = "openai-responses"
    traits: ClassVar[Traits] = Traits(
        provider="openai",
        shape=EventShape.ITEMS,
        formats=_FORMATS,
        policy=POLICY,
        errors=Errors(event=_error_event),
        delta_keys=frozenset({"delta", "text", "refusal", "arguments", "input"}),
        whole_types=("done", "completed"),
    )

    def claims(self, hints: Hints) -> bool:
        if hints.format not in _FORMATS:
            return False
        if any(kind.startswith(_REALTIME) for kind in hints.kinds):
            return False
        if hints.format is Format.WEBSOCKET and any(map(is_realtime, hints.first)):
            return False
        for kind in hints.types:
            if kind.startswith(_PREFIX):
                return True
        return not hints.members.isdisjoint(_MARKS) and any(map(_is_ours, hints.first))

    def serves(self, path: str) -> bool:
        """See `Dialect.serves`: creating a response, and getting one by its id."""
        return "responses" in path.rstrip("/").split("/")[-2:]

    def read_request(self, body: bytes, path: str) -> RequestSummary:
        del path
        return read_request(body)

    def reducer(self, request: RequestSummary) -> ResponsesReducer:
        return ResponsesReducer(self.name, request)


def _is_ours(first: Mapping[str, object]) -> bool:
    kind = first.get("type")
    if kind == "error":
        return "sequence_number" in first
    if isinstance(kind, str):
        return kind.startswith(_PREFIX)
    return first.get("object") == "response" and "output" in first


__all__ = ["OpenAIRealtime", "OpenAIResponses"]
