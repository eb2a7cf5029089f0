"""Cohere: chat version 2 (server-sent events) and version 1 (a JSON object per line).

Shapes: https://docs.cohere.com/v2/docs/streaming, https://docs.cohere.com/v1/docs/streaming. In
version 2 calls are keyed by `index`, `tool_calls` of an event is an object, and text before the
calls is a plan, kept as reasoning. In version 1 calls have no ids, and the list that comes after
their pieces has more authority.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

from deltatape.dialects._base import Errors, EventShape, Hints, Traits
from deltatape.dialects._chat_request import read_request as read_chat
from deltatape.dialects._cohere_v1 import ABNORMAL, ERRORS, is_v1, v1_table
from deltatape.dialects._delta_fast_path import NO_FAST_PATH
from deltatape.dialects._errors import bare_error
from deltatape.dialects._json import (
    Frame,
    JsonSource,
    as_object,
    get_object,
    get_objects,
    get_str,
)
from deltatape.dialects._reply import DialectPolicy
from deltatape.dialects._request import exact, make_message, objects_at, read_history
from deltatape.dialects._table import (
    CallDelta,
    CallEnd,
    CallsByIndex,
    CallStart,
    CallWhole,
    DialectTable,
    ErrorStep,
    FinishStep,
    Strings,
    TableReducer,
    TerminalStep,
    TextStep,
    UsageStep,
    path,
)
from deltatape.model.reply import Channel, Reply
from deltatape.model.request_summary import (
    NOTHING_ASKED,
    Message,
    RepeatedCall,
    RequestSummary,
    ToolSpec,
)
from deltatape.model.stream import Event, Format
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
"""Each event of version 1 has one of these members; so have answers that are not streamed."""
_NAME = "cohere"
_INDEX = CallsByIndex(path("index"))
_CALL = path("delta.message.tool_calls")
_TEXT = path("delta.message.content.text")
_THINKING = path("delta.message.content.thinking")
_CONTENT = (
    TextStep(channel=Channel.TEXT, text=(_TEXT,)),
    TextStep(channel=Channel.REASONING, text=(_THINKING,)),
)
_ARGUMENTS = path("function.arguments")
V2 = DialectTable(
    name=_NAME,
    terminator="message-end",
    policy=DialectPolicy(abnormal=ABNORMAL, tool_word=True, explicit_end=True),
    type_keys=("type",),
    events={
        "content-start": _CONTENT,
        "content-delta": _CONTENT,
        "tool-plan-delta": (
            TextStep(channel=Channel.REASONING, text=(path("delta.message.tool_plan"),)),
        ),
        "tool-call-start": (
            CallStart(
                key=_INDEX,
                entry=_CALL,
                id=path("id"),
                name=path("function.name"),
                fragment=_ARGUMENTS,
            ),
        ),
        "tool-call-delta": (CallDelta(key=_INDEX, entry=_CALL, fragment=_ARGUMENTS, encoded=True),),
        "tool-call-end": (CallEnd(key=_INDEX),),
        "message-end": (
            UsageStep(usage=path("delta.usage")),
            ErrorStep(message=(path("delta.error"),), optional=True),
            FinishStep(reason=path("delta.finish_reason"), errors=ERRORS),
            TerminalStep(),
        ),
    },
    document=(
        ErrorStep(message=(path("message"),), optional=True),
        TextStep(channel=Channel.REASONING, text=(path("message.tool_plan"),)),
        TextStep(channel=Channel.REASONING, each=path("message.content"), text=(path("thinking"),)),
        TextStep(channel=Channel.TEXT, each=path("message.content"), text=(path("text"),)),
        CallWhole(
            entry=path("message.tool_calls"),
            id=(path("id"),),
            name=(path("function.name"),),
            arguments=(_ARGUMENTS,),
            strings=Strings.TEXT,
        ),
        UsageStep(usage=path("usage")),
        FinishStep(reason=path("finish_reason"), errors=ERRORS),
        TerminalStep(proof=path("finish_reason")),
    ),
)
"""Version 2."""
V1 = v1_table(_NAME)
"""Version 1: its events are those of `_cohere_v1`."""


def _error_event(status: int, message: str, form: Format) -> tuple[str, Mapping[str, object]]:
    del status
    if form is Format.NDJSON:
        return "", {"event_type": "stream-error", "err": message, "finish_reason": "ERROR"}
    delta = {"finish_reason": "ERROR", "error": message}
    return "message-end", {"type": "message-end", "delta": delta}


class Cohere:
    """The dialect. See `Dialect`."""

    name: ClassVar[str] = _NAME
    traits: ClassVar[Traits] = Traits(
        provider="cohere",
        shape=EventShape.COHERE,
        formats=frozenset({Format.SSE, Format.NDJSON, Format.JSON}),
        policy=V2.policy,
        errors=Errors(document=bare_error, event=_error_event),
        delta_keys=frozenset({"text", "thinking", "tool_plan", "arguments"}),
        closing_keys=frozenset({"finish_reason"}),
        whole_types=("end",),
    )

    def claims(self, hints: Hints) -> bool:
        if _TYPES.isdisjoint(hints.kinds) and hints.members.isdisjoint(_OTHER_MARKS):
            return False
        return any(is_v1(one) or _is_v2(one) for one in hints.first)

    def serves(self, path: str) -> bool:
        return path.rstrip("/").endswith(("/v2/chat", "/v1/chat"))

    def read_request(self, body: bytes, path: str) -> RequestSummary:
        del path
        return read_request(body)

    def reducer(self, request: RequestSummary) -> "CohereReducer":
        return CohereReducer(request)


class CohereReducer:
    """Rebuilds a reply of the version of its first event. See `Reducer`."""

    fast_path = NO_FAST_PATH

    def __init__(self, request: RequestSummary) -> None:
        self._request = request
        self._inner: TableReducer | None = None

    def feed(self, event: Event, frame: Frame | None = None) -> None:
        if self._inner is None:
            first = frame or as_object(parse(event.data).value)
            old = first is not None and is_v1(first)
            self._inner = TableReducer(V1 if old else V2, self._request)
        self._inner.feed(event, frame)

    def finish(self, *, cut: bool) -> Reply:
        inner = self._inner or TableReducer(V2, self._request)
        return inner.finish(cut=cut)


def _is_v2(one: Mapping[str, object]) -> bool:
    """Check whether `one` is an event or a document of version 2."""
    kind = get_str(one, "type")
    if kind is not None:
        return kind in _TYPES
    return get_object(one, "message") is not None and "finish_reason" in one


# The requests of both versions.
#
# Version 2 is a chat completion with words of its own for `tool_choice`. Version 1 has the last
# message beside the history, parameters that are not JSON Schema, and results that repeat their
# call in place of an id: the name of the function identifies them.


_PATH = ("chat_history",)
_ROLES = {"USER": "user", "CHATBOT": "assistant", "SYSTEM": "system", "TOOL": "tool"}
_CHOICES = {"REQUIRED": "required", "NONE": "none"}
_JSON_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}


def read_request(body: bytes) -> RequestSummary:
    """Parse `body`; return `NOTHING_ASKED` if it is not a JSON object."""
    found = read_history(body, _PATH, _entry)
    if found is None:
        return NOTHING_ASKED
    request = found.body.value
    choice = get_str(request, "tool_choice")
    choice = _CHOICES.get(choice or "", choice)
    if "messages" in request:
        return replace(read_chat(body), tool_choice=choice)
    return RequestSummary(
        known=True,
        model=get_str(request, "model"),
        stream=request.get("stream") is True,
        tools=tuple(_tools(request)),
        tool_choice=choice,
        history=tuple(_history(request, found.entries)),
    )


def _tools(request: Mapping[str, object]) -> Iterator[ToolSpec]:
    for tool in get_objects(request, "tools"):
        name = get_str(tool, "name")
        if name is not None:
            yield ToolSpec(name=name, parameters=_schema(tool))


def _schema(tool: Mapping[str, object]) -> Mapping[str, object]:
    """Return the JSON Schema of `parameter_definitions`; only types that are plain words."""
    properties: dict[str, object] = {}
    required = []
    for name, value in (get_object(tool, "parameter_definitions") or {}).items():
        definition = as_object(value) or {}
        kind = _JSON_TYPES.get(get_str(definition, "type") or "")
        properties[name] = {"type": kind} if kind else {}
        if definition.get("required") is True:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def _history(request: Mapping[str, object], turns: Iterable[Message]) -> Iterator[Message]:
    preamble = get_str(request, "preamble")
    if preamble:
        yield _outside_message("SYSTEM", preamble)
    yield from turns
    question = get_str(request, "message")
    if question:
        yield _outside_message("USER", question)
    yield from _results(request)


def _outside_message(role: str, text: str) -> Message:
    """Return a message outside the history, in the form it will have there."""
    return make_message(_ROLES[role], text, {"role": role, "message": text})


def _entry(entry: Mapping[str, object], source: JsonSource) -> Iterator[Message]:
    results = tuple(_results(entry))
    yield from results
    if results:
        return
    role = get_str(entry, "role") or ""
    calls = [
        RepeatedCall(
            id=None, name=get_str(call, "name"), arguments=exact(call, "parameters", where)
        )
        for call, where in objects_at(entry, "tool_calls", source)
    ]
    text = get_str(entry, "message") or ""
    yield make_message(_ROLES.get(role.upper(), role), text, entry, calls=calls)


def _results(holder: Mapping[str, object]) -> Iterator[Message]:
    for result in get_objects(holder, "tool_results"):
        name = get_str(get_object(result, "call") or {}, "name")
        yield make_message("tool", "", result, call_id=name)
