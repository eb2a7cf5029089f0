"""Amazon Bedrock's InvokeModel: each model's own format, wrapped by Amazon.

Shapes: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModelWithResponseStream.html
and, by model, https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters.html. A stream
consists of binary messages of the type `chunk`, each with one JSON object of the model as base64;
what is not streamed is the model's document. The path names the model and whether it streams.
"""

import binascii
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from deltatape.dialects import _anthropic as anthropic
from deltatape.dialects import _chat as chat
from deltatape.dialects import _chat_request as chat_request
from deltatape.dialects._base import Errors, EventShape, Hints, Reducer, Traits
from deltatape.dialects._calls import CallEndCause
from deltatape.dialects._cohere_v1 import is_v1, v1_table
from deltatape.dialects._converse import (
    STREAMED,
    converse_table,
    is_document,
    read_conversation,
    read_path,
)
from deltatape.dialects._delta_fast_path import NO_FAST_PATH
from deltatape.dialects._errors import amazon_error_headers, bare_error
from deltatape.dialects._json import (
    Element,
    Elements,
    Frame,
    JsonSource,
    MemberValue,
    WholeString,
    as_array,
    as_object,
    get_array,
    get_index,
    get_object,
    get_objects,
    get_str,
)
from deltatape.dialects._reply import ChoiceDraft, DialectPolicy, ReplyDraft
from deltatape.dialects._request import exact, make_message, read_body
from deltatape.dialects._table import TableReducer, at
from deltatape.model.reply import CallKind, Channel, Reply
from deltatape.model.request_summary import NOTHING_ASKED, RequestSummary
from deltatape.model.stream import Event, Format
from deltatape.wire.json_value import parse

# Models whose objects have a fragment of text and, at the end, a finish reason: one table.
#
# Shapes: https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters.html. Streamed and
# whole answers have the same members; complete ones may hold them in an array of results. Calls,
# where a model has any, come whole.


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
    """Whether only Amazon has such objects."""


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
    choices = list(get_objects(frame, "choices"))
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
        isinstance(at(result, shape.text), str) and at(result, shape.reason) is not None
        for result in results
    )


class FlatReducer:
    """Rebuilds the reply of such a model. See `Reducer`.

    Args:
        name: the dialect.
        request: what the reply answers.
        shape: where the model puts its text; None if unknown.
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
                self._reply.note_unexpected("a result is not an object", frame, event)
                continue
            index = get_index(result, "index")
            choice = self._reply.choice(place if index is None else index)
            self._take(shape, choice, result, event, Element(elements, place))

    def finish(self, *, cut: bool) -> Reply:
        del cut  # Without a finish reason, nothing has ended as it should.
        terminated = self._reply.finished and self._reply.error is None
        return self._reply.build(CallEndCause.CUT, terminated=terminated)

    def _take(
        self, shape: ModelShape, choice: ChoiceDraft, result: Json, event: Event, source: JsonSource
    ) -> None:
        text = at(result, shape.text)
        if isinstance(text, str):
            choice.add_text(Channel.TEXT, text, event)
        elif text is not None:
            choice.note_unexpected("the text is not a string", result, event)
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
                choice.note_unexpected("a call is not an object", calls, event)
                continue
            inner, whole = get_object(entry, "function"), Element(elements, place)
            holder, where = (
                (entry, whole) if inner is None else (inner, MemberValue(whole, "function"))
            )
            call = choice.open(CallKind.FUNCTION, event, place)
            call.identify(get_str(entry, "id"), get_str(holder, "name"))
            field = "parameters" if "parameters" in holder else "arguments"
            call.add(exact(holder, field, where), event)


# Amazon's Nova: Converse events as objects with one member named after the type.
#
# Shapes: https://docs.aws.amazon.com/nova/latest/userguide/using-invoke-api.html; see `_converse`.


_MARKS = STREAMED - {"metadata"}
"""Members that only Nova's events have."""


def is_nova(frame: Frame) -> bool:
    """Check whether `frame` is an event or a document of Nova."""
    return is_document(frame) or not _MARKS.isdisjoint(frame)


class NovaReducer(TableReducer):
    """Rebuilds the reply of Nova. See `Reducer`."""

    def __init__(self, name: str, request: RequestSummary) -> None:
        super().__init__(converse_table(name, members=True), request)

    def feed(self, event: Event, frame: Frame | None = None) -> None:
        draft = self._draft
        frame = frame or draft.reply.read(event)
        if frame is None or draft.reply.take_error(frame, event):
            return
        for kind, inner in frame.items():
            steps = self._events.get(kind)
            if steps is None:
                continue
            if not isinstance(inner, dict):
                draft.reply.note_unexpected(f"{kind} is not an object", frame, event)
                continue
            for step in steps:
                step.take(draft, frame, event)


# Requests: their bodies are in the model's own format.


_WHOLE = "invoke"
_STREAMED = "invoke-with-response-stream"
_NOVA = ("toolConfig", "inferenceConfig", "schemaVersion")
_PROMPTS = ("prompt", "inputText", "message")


def _read_body(body: bytes) -> RequestSummary:
    found = read_body(body)
    if found is None:
        return NOTHING_ASKED
    request = found.value
    if "anthropic_version" in request:
        return anthropic.read_request(body)
    if any(key in request for key in _NOVA):
        return read_conversation(body, model=None, stream=False)
    asked = chat_request.read_request(body)
    prompt = next((text for key in _PROMPTS if (text := get_str(request, key))), None)
    if asked.history or prompt is None:
        return asked
    message = make_message("user", prompt, {"role": "user", "content": prompt})
    return replace(asked, history=(message,))


# Unwraps a model's events from Amazon's messages and passes them to that model's reducer.
#
# Which language it is shows in the first object that has the mark of one; what comes before waits
# for it. To the reducer of the language, an event is what the model sent: its text is the decoded
# one, its number and place are those of the message that carried it.
#
# Amazon adds members of its own to the model's objects: metrics of the whole call, and what a
# guardrail did.


CHUNK = "chunk"
"""The type of the messages that carry the model's words."""
_AMAZON = "amazon-bedrock-"
_METRICS = "amazon-bedrock-invocationMetrics"
_GUARDRAIL = "amazon-bedrock-guardrailAction"
_INTERVENED = "INTERVENED"


class InvokeReducer:
    """Rebuilds the reply of a model on Bedrock. See `Reducer`.

    Events are unwrapped one by one, so the inner reducer's fast path is not used.
    """

    fast_path = NO_FAST_PATH

    def __init__(self, name: str, request: RequestSummary) -> None:
        self._name = name
        self._request = request
        self._inner: Reducer | None = None
        self._waiting: list[Event] = []
        self._metrics: Mapping[str, object] | None = None
        self._intervened = False

    def feed(self, event: Event, frame: Frame | None = None) -> None:
        del frame  # Mostly another one is inside.
        if not event.exception:
            event = _carried(event)
            if _AMAZON in event.data:
                self._take_amazons(event)
        if self._inner is None:
            self._waiting.append(event)
            self._choose(event)
        else:
            self._inner.feed(event)

    def finish(self, *, cut: bool) -> Reply:
        if self._inner is None:
            self._start(FlatReducer(self._name, self._request, None))
        assert self._inner
        reply = self._inner.finish(cut=cut)
        if self._intervened:
            first, *others = reply.choices
            first = replace(first, finish_detail=first.finish_detail or "guardrail_intervened")
            reply = replace(reply, choices=(first, *others))
        return replace(reply, usage=reply.usage or self._metrics)

    def _choose(self, event: Event) -> None:
        """Detect the format of `event`."""
        frame = None if event.exception else as_object(parse(event.data).value)
        if frame is None:
            return
        if anthropic.is_event(frame) or anthropic.is_document(frame):
            self._start(anthropic.MessageReducer(self._name, self._request))
        elif is_nova(frame):
            self._start(NovaReducer(self._name, self._request))
        elif is_v1(frame):
            self._start(TableReducer(v1_table(self._name), self._request))
        elif (shape := shape_of(frame)) is not None:
            self._start(FlatReducer(self._name, self._request, shape))
        elif chat.is_chat(frame):
            self._start(chat.ChatReducer(self._name, self._request))

    def _start(self, inner: Reducer) -> None:
        self._inner = inner
        for event in self._waiting:
            inner.feed(event)
        self._waiting = []

    def _take_amazons(self, event: Event) -> None:
        frame = as_object(parse(event.data).value) or {}
        self._metrics = get_object(frame, _METRICS) or self._metrics
        self._intervened |= frame.get(_GUARDRAIL) == _INTERVENED


def _carried(event: Event) -> Event:
    """Return the wrapped event; `event` itself if it wraps none."""
    outer = as_object(parse(event.data).value) if event.type == CHUNK else None
    encoded = None if outer is None else get_str(outer, "bytes")
    if encoded is None:
        return event
    try:
        text = b64decode(encoded, validate=True).decode(errors="replace")
    except (binascii.Error, ValueError):
        text = encoded  # no JSON, and noted as such
    return event._replace(type=CHUNK, data=text, id="", retry=None, exception=False)


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
        model, action = read_path(path)
        return model is not None and action in (_WHOLE, _STREAMED)

    def read_request(self, body: bytes, path: str) -> RequestSummary:
        """See `Dialect.read_request`: the path names the model and whether it streams."""
        request = _read_body(body)
        if not request.known or not self.serves(path):
            return request
        model, action = read_path(path)
        return replace(request, model=model, stream=action == _STREAMED)

    def reducer(self, request: RequestSummary) -> InvokeReducer:
        return InvokeReducer(self.name, request)
