"""The request of a chat completion: model, tools, tool choice, history.

Shapes: https://platform.openai.com/docs/api-reference/chat/create, with the predecessors that
compatible servers still take (`functions`, `function_call`).
"""

import hashlib
import json
from collections.abc import Mapping

from deltatape.dialects._json import as_array, as_object, get_array, get_object, get_str
from deltatape.dialects._source import Element, Elements, Member, Source, Whole
from deltatape.model.asked import NOTHING_ASKED, Asked, Message, RepeatedCall, ToolSpec
from deltatape.wire.json_value import parse


def read_request(body: bytes) -> Asked:
    """What `body` asks for; `NOTHING_ASKED` if it is no JSON object."""
    text = body.decode(errors="replace")
    request = as_object(parse(text).value)
    if request is None:
        return NOTHING_ASKED
    messages = get_array(request, "messages")
    elements = Elements(Member(Whole(text), "messages"))
    return Asked(
        known=True,
        model=get_str(request, "model"),
        stream=request.get("stream") is True,
        tools=_tools(request),
        tool_choice=_tool_choice(request),
        history=tuple(
            _message(message, Element(elements, position))
            for position, message in enumerate(map(as_object, messages))
            if message is not None
        ),
    )


def content_text(content: object) -> str:
    """The visible text of a message's content: a string, or the text parts of an array."""
    if isinstance(content, str):
        return content
    parts = (as_object(part) for part in as_array(content) or ())
    return "".join(get_str(part, "text") or "" for part in parts if part is not None)


def _tools(request: Mapping[str, object]) -> tuple[ToolSpec, ...]:
    tools = [entry for entry in map(as_object, get_array(request, "tools")) if entry]
    specs = [get_object(one, "function") or get_object(one, "custom") or one for one in tools]
    specs += [entry for entry in map(as_object, get_array(request, "functions")) if entry]
    found = (_tool(spec) for spec in specs)
    return tuple(tool for tool in found if tool is not None)


def _tool(spec: Mapping[str, object]) -> ToolSpec | None:
    name = get_str(spec, "name")
    return None if name is None else ToolSpec(name=name, parameters=get_object(spec, "parameters"))


def _tool_choice(request: Mapping[str, object]) -> str | None:
    choice = request.get("tool_choice")
    if choice is None:
        choice = request.get("function_call")
    if isinstance(choice, str):
        return choice
    forced = as_object(choice)
    if forced is None:
        return None
    allowed = get_object(forced, "allowed_tools")
    if allowed is not None:
        return get_str(allowed, "mode")
    named = get_object(forced, "function") or get_object(forced, "custom") or forced
    return get_str(named, "name")


def _message(message: Mapping[str, object], source: Source) -> Message:
    whole = json.dumps(message, sort_keys=True, separators=(",", ":"))
    elements = Elements(Member(source, "tool_calls"))
    calls = [
        _repeated(entry, Element(elements, place))
        for place, entry in enumerate(map(as_object, get_array(message, "tool_calls")))
        if entry is not None
    ]
    legacy = get_object(message, "function_call")
    if legacy is not None:
        arguments = _source(legacy, "arguments", Member(source, "function_call"))
        calls.append(RepeatedCall(id=None, name=get_str(legacy, "name"), arguments=arguments))
    return Message(
        role=get_str(message, "role") or "",
        text=content_text(message.get("content")),
        calls=tuple(calls),
        call_id=get_str(message, "tool_call_id"),
        digest=hashlib.sha256(whole.encode()).hexdigest(),
    )


def _repeated(entry: Mapping[str, object], source: Source) -> RepeatedCall:
    key, field = ("custom", "input") if get_object(entry, "custom") else ("function", "arguments")
    holder = get_object(entry, key) or {}
    return RepeatedCall(
        id=get_str(entry, "id"),
        name=get_str(holder, "name"),
        arguments=_source(holder, field, Member(source, key)),
    )


def _source(holder: Mapping[str, object], field: str, source: Source) -> str:
    """The arguments as the application wrote them: a string's text, else the exact source."""
    value = holder.get(field)
    if value is None:
        return ""
    return value if isinstance(value, str) else Member(source, field).text
