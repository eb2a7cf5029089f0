"""The requests of both versions.

Version 2 is a chat completion with words of its own for `tool_choice`. Version 1 has the last
message beside the history, parameters that are not JSON Schema, and results that repeat their call
in place of an id: the name of the function identifies them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain

from deltatape.dialects._chat.request import read_request as read_chat
from deltatape.dialects._json import as_object, get_array, get_object, get_str
from deltatape.dialects._request import exact, objects_at, said
from deltatape.dialects._request_bodies import read_history
from deltatape.dialects._source_text import JsonSource
from deltatape.model.request_summary import (
    NOTHING_ASKED,
    Message,
    RepeatedCall,
    RequestSummary,
    ToolSpec,
)

_PATH = ("chat_history",)
_ROLES = {"USER": "user", "CHATBOT": "assistant", "SYSTEM": "system", "TOOL": "tool"}
_CHOICES = {"REQUIRED": "required", "NONE": "none"}
_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}


def read_request(body: bytes) -> RequestSummary:
    """Parse `body`; return `NOTHING_ASKED` if it is not a JSON object."""
    found = read_history(body, _PATH, _turn)
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
    for tool in map(as_object, get_array(request, "tools")):
        name = None if tool is None else get_str(tool, "name")
        if tool is not None and name is not None:
            yield ToolSpec(name=name, parameters=_schema(tool))


def _schema(tool: Mapping[str, object]) -> Mapping[str, object]:
    """Return the JSON Schema of `parameter_definitions`; only types that are plain words."""
    properties: dict[str, object] = {}
    required = []
    for name, definition in (get_object(tool, "parameter_definitions") or {}).items():
        told = as_object(definition) or {}
        kind = _TYPES.get(get_str(told, "type") or "")
        properties[name] = {"type": kind} if kind else {}
        if told.get("required") is True:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def _turn(entry: Mapping[str, object], source: JsonSource) -> tuple[Message, ...]:
    return tuple(_entry(entry, source))


def _history(
    request: Mapping[str, object], turns: Iterable[tuple[Message, ...]]
) -> Iterator[Message]:
    preamble = get_str(request, "preamble")
    if preamble:
        yield _said("SYSTEM", preamble)
    yield from chain.from_iterable(turns)
    question = get_str(request, "message")
    if question:
        yield _said("USER", question)
    yield from _results(request)


def _said(role: str, text: str) -> Message:
    """Return a message outside the history, in the form it will have there."""
    return said(_ROLES[role], text, {"role": role, "message": text})


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
    yield said(_ROLES.get(role.upper(), role), text, entry, calls=calls)


def _results(holder: Mapping[str, object]) -> Iterator[Message]:
    for result in map(as_object, get_array(holder, "tool_results")):
        if result is not None:
            name = get_str(get_object(result, "call") or {}, "name")
            yield said("tool", "", result, call_id=name)
