"""The request of an interaction: model, tools, tool choice, what is put in.

The input is a text, one content or step, or a list of contents, steps or turns; each becomes a
message. With `previous_interaction_id` the provider keeps the history, and only results are sent.

Source: https://ai.google.dev/api/interactions-api.
"""

from collections.abc import Iterator, Mapping

from deltatape.dialects._json import as_object, get_array, get_object, get_str
from deltatape.dialects._request import (
    RequestBody,
    content_text,
    exact,
    message_digest,
    read_body,
    tool_spec,
)
from deltatape.dialects._source import Element, Elements, Member, Source
from deltatape.model.asked import NOTHING_ASKED, Asked, Message, RepeatedCall

_CHOICES = {"any": "required", "validated": "auto"}
_USER = "user"
_MODEL = "model"


def read_request(body: bytes) -> Asked:
    """What `body` asks for; `NOTHING_ASKED` if it is no JSON object."""
    found = read_body(body)
    if found is None:
        return NOTHING_ASKED
    request = found.value
    tools = (tool_spec(tool) for tool in map(as_object, get_array(request, "tools")) if tool)
    return Asked(
        known=True,
        model=get_str(request, "model") or get_str(request, "agent"),
        stream=request.get("stream") is True,
        tools=tuple(tool for tool in tools if tool is not None),
        tool_choice=_tool_choice(get_object(request, "generation_config") or {}),
        history=tuple(_history(found)),
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


def _history(request: RequestBody) -> Iterator[Message]:
    value = request.value
    system = value.get("system_instruction")
    if isinstance(system, str):
        yield _said("system", system, system)
    given = value.get("input")
    place = Member(request.source, "input")
    if isinstance(given, str):
        yield _said(_USER, given, given)
    elif isinstance(given, dict):
        yield _message(given, _USER, place)
    elements = Elements(place)
    for index, each in enumerate(get_array(value, "input")):
        if isinstance(each, dict):
            yield from _messages(each, Element(elements, index))


def _messages(entry: Mapping[str, object], source: Source) -> Iterator[Message]:
    """The messages of an entry: one, or those of a turn's contents that are no text."""
    role = get_str(entry, "role")
    contents = get_array(entry, "content")
    if role is None or all(_kind(each) == "text" for each in contents):
        yield _message(entry, role or _USER, source)
        return
    elements = Elements(Member(source, "content"))
    for place, each in enumerate(contents):
        if isinstance(each, dict):
            yield _message(each, role, Element(elements, place))


def _kind(value: object) -> str:
    return get_str(as_object(value) or {}, "type") or ""


def _message(entry: Mapping[str, object], role: str, source: Source) -> Message:
    kind = _kind(entry)
    if kind in ("function_result", "tool_result"):
        return Message(
            role="tool",
            text=_result(entry, source),
            calls=(),
            call_id=get_str(entry, "call_id") or get_str(entry, "name") or "",
            digest=message_digest(entry),
        )
    if kind == "function_call":
        call = RepeatedCall(
            id=get_str(entry, "id"),
            name=get_str(entry, "name"),
            arguments=exact(entry, "arguments", source),
        )
        digest = message_digest(entry)
        return Message(role=_MODEL, text="", calls=(call,), call_id=None, digest=digest)
    if kind in ("model_output", "thought") or kind.endswith(("_call", "_result")):
        role = _MODEL
    visible = "" if kind == "thought" else content_text(entry.get("content"))
    return _said(role, visible or get_str(entry, "text") or "", entry)


def _result(entry: Mapping[str, object], source: Source) -> str:
    value = entry.get("result")
    return content_text(value) or exact(entry, "result", source)


def _said(role: str, text: str, value: object) -> Message:
    digest = message_digest({"role": role, "said": value})
    return Message(role=role, text=text, calls=(), call_id=None, digest=digest)
