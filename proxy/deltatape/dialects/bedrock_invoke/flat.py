"""Models whose objects have a fragment of text and, at the end, a finish reason: one table.

Shapes: https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters.html. Streamed and
whole answers have the same members; complete ones may hold them in an array of results. Calls,
where a model has any, come whole.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from deltatape.dialects._call_end import CallEndCause
from deltatape.dialects._choice import ChoiceDraft, DialectPolicy
from deltatape.dialects._delta_fast_path import NO_FAST_PATH
from deltatape.dialects._json import (
    Frame,
    as_array,
    as_object,
    get_array,
    get_index,
    get_object,
    get_str,
)
from deltatape.dialects._reply import ReplyDraft
from deltatape.dialects._request import exact
from deltatape.dialects._source_text import Element, Elements, JsonSource, MemberValue, WholeString
from deltatape.dialects._table import at
from deltatape.model.reply import CallKind, Channel, Reply
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event

_TERMINATOR = "a finish reason"
_POLICY = DialectPolicy(
    abnormal=frozenset(
        {"length", "LENGTH", "max_tokens", "MAX_TOKENS", "CONTENT_FILTERED", "ERROR", "ERROR_TOXIC"}
    ),
    ids=False,
)
Json = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """Where a family of models puts text and finish reason; `index` separates several answers."""

    mark: str
    """The member that only objects of this family have."""
    results: str | None = None
    """The member with the array of results, if there is one."""
    text: tuple[str, ...]
    """The path of the text, in the object or in a result."""
    reason: tuple[str, ...]
    """The path of the finish reason."""
    calls: tuple[str, ...] = ("tool_calls",)
    """The path of the array of calls."""
    own: bool = False
    """Whether nobody but Amazon has such objects."""


_SHAPES = (
    # Titan
    ModelShape(mark="outputText", text=("outputText",), reason=("completionReason",), own=True),
    ModelShape(
        mark="inputTextTokenCount",
        results="results",
        text=("outputText",),
        reason=("completionReason",),
        own=True,
    ),
    # Llama
    ModelShape(mark="generation", text=("generation",), reason=("stop_reason",), own=True),
    # Mistral
    ModelShape(
        mark="outputs", results="outputs", text=("text",), reason=("stop_reason",), own=True
    ),
    # Claude, before there were messages
    ModelShape(mark="completion", text=("completion",), reason=("stop_reason",)),
    # Jurassic
    ModelShape(
        mark="completions",
        results="completions",
        text=("data", "text"),
        reason=("finishReason", "reason"),
        own=True,
    ),
    # Command, whole and streamed
    ModelShape(
        mark="generations", results="generations", text=("text",), reason=("finish_reason",)
    ),
    ModelShape(mark="is_finished", text=("text",), reason=("finish_reason",)),
    # Pegasus
    ModelShape(mark="finishReason", text=("message",), reason=("finishReason",)),
)
_MESSAGE = ModelShape(
    mark="choices",
    results="choices",
    text=("message", "content"),
    reason=("stop_reason",),
    calls=("message", "tool_calls"),
)
"""Mistral's chat: whole messages, also in a stream, and a reason of another name than elsewhere."""
_TEXTS = ModelShape(mark="choices", results="choices", text=("text",), reason=("stop_reason",))
"""DeepSeek."""
_COMPLETION = ModelShape(
    mark="choices", results="choices", text=("text",), reason=("finish_reason",)
)
"""Imported models, asked in the older way of OpenAI's."""


def shape_of(frame: Json) -> ModelShape | None:
    """Return the shape of the family of `frame`; None if it has none."""
    for shape in _SHAPES:
        if shape.mark in frame:
            return shape
    choices = [one for one in map(as_object, get_array(frame, "choices")) if one is not None]
    if not any("stop_reason" in choice for choice in choices):
        return _COMPLETION if any("text" in choice for choice in choices) else None
    return _MESSAGE if any("message" in choice for choice in choices) else _TEXTS


def is_own(frame: Json) -> bool:
    """Check whether `frame` is a document in a shape that only Bedrock has."""
    shape = shape_of(frame)
    if shape is None or not shape.own:
        return False
    results = [frame] if shape.results is None else get_array(frame, shape.results)
    return any(
        isinstance(at(one, shape.text), str) and at(one, shape.reason) is not None
        for one in results
    )


class FlatReducer:
    """Rebuilds the reply of such a model. See `Reducer`.

    Args:
        name: the dialect.
        request: what the reply answers.
        shape: where the model keeps what it says; None if nobody knows.
    """

    fast_path = NO_FAST_PATH

    def __init__(self, name: str, request: RequestSummary, shape: ModelShape | None) -> None:
        self._reply = ReplyDraft(name, _TERMINATOR, request, _POLICY)
        self._shape = shape

    def feed(self, event: Event, frame: Frame | None = None) -> None:
        frame = frame or self._reply.read(event)
        if frame is None or self._reply.take_error(frame, event):
            return
        shape = self._shape
        if shape is None:
            message = get_str(frame, "message")
            if message is not None:  # an error answer of Amazon's has this and nothing else
                self._reply.fail(message, frame, event)
            return
        if shape.results is None:
            choice = self._reply.choice(get_index(frame, "index") or 0)
            self._take(shape, choice, frame, event, WholeString(event.data))
            return
        elements = Elements(MemberValue(WholeString(event.data), shape.results))
        for place, value in enumerate(get_array(frame, shape.results)):
            result = as_object(value)
            if result is None:
                self._reply.note_unexpected("a result is no object", frame, event)
                continue
            index = get_index(result, "index")
            choice = self._reply.choice(place if index is None else index)
            self._take(shape, choice, result, event, Element(elements, place))

    def finish(self, *, cut: bool) -> Reply:
        del cut  # Without a finish reason, nothing has ended as it should.
        reasons = [choice.finish_reason for choice in self._reply.choices]
        terminated = bool(reasons) and None not in reasons and self._reply.error is None
        return self._reply.build(CallEndCause.CUT, terminated=terminated)

    def _take(
        self, shape: ModelShape, choice: ChoiceDraft, result: Json, event: Event, source: JsonSource
    ) -> None:
        text = at(result, shape.text)
        if isinstance(text, str):
            choice.say(Channel.TEXT, text, event)
        elif text is not None:
            choice.note_unexpected("the text is no string", result, event)
        for key in shape.calls[:-1]:
            source = MemberValue(source, key)
        self._take_calls(
            choice, at(result, shape.calls), event, MemberValue(source, shape.calls[-1])
        )
        reason = at(result, shape.reason)
        if isinstance(reason, str) and reason:
            choice.finish(reason, event)
            self._reply.terminal = event

    def _take_calls(
        self, choice: ChoiceDraft, calls: object, event: Event, source: JsonSource
    ) -> None:
        elements = Elements(source)
        for place, value in enumerate(as_array(calls) or ()):
            entry = as_object(value)
            if entry is None:
                choice.note_unexpected("a call is no object", calls, event)
                continue
            inner, whole = get_object(entry, "function"), Element(elements, place)
            holder, where = (
                (entry, whole) if inner is None else (inner, MemberValue(whole, "function"))
            )
            call = choice.open(CallKind.FUNCTION, event, place)
            call.identify(get_str(entry, "id"), get_str(holder, "name"))
            field = "parameters" if "parameters" in holder else "arguments"
            call.add(exact(holder, field, where), event)
