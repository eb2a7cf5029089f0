"""Reads the request of an interaction: model, tools, tool choice, input.

The input is a text, one content or step, or a list of contents, steps or turns; each becomes a
message. With `previous_interaction_id` the provider keeps the history, and only results are sent.

Source: https://ai.google.dev/api/interactions-api.
"""

from collections.abc import Iterator, Mapping
from itertools import chain

from deltatape.dialects._json import as_object, get_array, get_object, get_str
from deltatape.dialects._request import (
    JsonRequestBody,
    content_text,
    exact,
    objects_at,
    said,
    tool_specs,
)
from deltatape.dialects._request_bodies import read_history
from deltatape.dialects._source_text import JsonSource, MemberValue
from deltatape.model.request_summary import NOTHING_ASKED, Message, RepeatedCall, RequestSummary

_CHOICES = {"any": "required", "validated": "auto"}
_USER = "user"
_MODEL = "model"
_PATH = ("input",)


def read_request(body: bytes) -> RequestSummary:
    """Parse `body`; return `NOTHING_ASKED` if it is not a JSON object."""
    found = read_history(body, _PATH, _entry)
    if found is None:
        return NOTHING_ASKED
    request = found.body.value
    return RequestSummary(
        known=True,
        model=get_str(request, "model") or get_str(request, "agent"),
        stream=request.get("stream") is True,
        tools=tool_specs(get_array(request, "tools")),
        tool_choice=_tool_choice(get_object(request, "generation_config") or {}),
        history=(*_opening(found.body), *chain.from_iterable(found.entries)),
        previous=get_str(request, "previous_interaction_id"),
    )


def _tool_choice(config: Mapping[str, object]) -> str | None:
    choice = config.get("tool_choice")
    allowed = get_object(as_object(choice) or {}, "allowed_tools")
    if allowed is not None:
        names = get_array(allowed, "tools")
        choice = get_str(allowed, "mode")
        if choice == "any" and len(names) == 1 and isinstance(names[0], str):
            return names[0]
    return _CHOICES.get(choice, choice) if isinstance(choice, str) else None


def _opening(request: JsonRequestBody) -> Iterator[Message]:
    value = request.value
    system = value.get("system_instruction")
    if isinstance(system, str):
        yield _said("system", system, system)
    given = value.get("input")
    if isinstance(given, str):
        yield _said(_USER, given, given)
    elif isinstance(given, dict):
        yield _message(given, _USER, MemberValue(request.source, "input"))


def _entry(entry: Mapping[str, object], source: JsonSource) -> tuple[Message, ...]:
    return tuple(_messages(entry, source))


def _messages(entry: Mapping[str, object], source: JsonSource) -> Iterator[Message]:
    """Yield the messages of an entry."""
    role = get_str(entry, "role")
    contents = get_array(entry, "content")
    if role is None or all(_kind(each) == "text" for each in contents):
        yield _message(entry, role or _USER, source)
        return
    for each, where in objects_at(entry, "content", source):
        yield _message(each, role, where)


def _kind(value: object) -> str:
    return get_str(as_object(value) or {}, "type") or ""


def _message(entry: Mapping[str, object], role: str, source: JsonSource) -> Message:
    kind = _kind(entry)
    if kind in ("function_result", "tool_result"):
        call_id = get_str(entry, "call_id") or get_str(entry, "name") or ""
        return said("tool", _result(entry, source), entry, call_id=call_id)
    if kind == "function_call":
        call = RepeatedCall(
            id=get_str(entry, "id"),
            name=get_str(entry, "name"),
            arguments=exact(entry, "arguments", source),
        )
        return said(_MODEL, "", entry, calls=(call,))
    if kind in ("model_output", "thought") or kind.endswith(("_call", "_result")):
        role = _MODEL
    visible = "" if kind == "thought" else content_text(entry.get("content"))
    return _said(role, visible or get_str(entry, "text") or "", entry)


def _result(entry: Mapping[str, object], source: JsonSource) -> str:
    value = entry.get("result")
    return content_text(value) or exact(entry, "result", source)


def _said(role: str, text: str, value: object) -> Message:
    return said(role, text, {"role": role, "said": value})
