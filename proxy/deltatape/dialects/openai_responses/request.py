"""Reads the request of a response: model, tools, tool choice, repeated items.

Shapes: https://platform.openai.com/docs/api-reference/responses/create. Every item becomes a
message of its own; what the model said, its reasoning included, has the role `assistant`.

With `previous_response_id` the history is with the provider, and a request brings new items only.
With `item_reference` an item is named by an id that no client answers to: it does not show what the
application made of a call, so that the whole reply is left unjudged.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from deltatape.dialects._json import (
    JsonSource,
    as_object,
    get_array,
    get_object,
    get_objects,
    get_str,
    objects_in,
)
from deltatape.dialects._request import (
    content_text,
    exact,
    make_message,
    read_history,
    tool_spec,
    tool_specs,
)
from deltatape.dialects.openai_responses.items import REASONING, shape_of, tool_name
from deltatape.model.reply import CallKind, Thought
from deltatape.model.request_summary import (
    NOTHING_ASKED,
    AnswerFormat,
    Message,
    RepeatedCall,
    RequestSummary,
    ToolSpec,
)

_MODEL = "assistant"
_REFERENCE = "item_reference"
_OUTPUT = "_output"
_APPROVAL = "mcp_approval_response"
_TOOL = "tool"
_NO_CALLS = frozenset({"reasoning", "program", "compaction", "mcp_list_tools"})
"""Items of the model or the provider that are no calls."""
_ANSWER_ID = {_APPROVAL: "approval_request_id", "local_shell_call_output": "id"}
_CLIENTS = frozenset({CallKind.FUNCTION, CallKind.CUSTOM})
_PATH = ("input",)
_CUSTOM = shape_of({"type": "custom_tool_call"}, NOTHING_ASKED)

Object = Mapping[str, object]


def read_request(body: bytes) -> RequestSummary:
    """Parse `body`; return `NOTHING_ASKED` if it is not a JSON object."""
    read = read_history(body, _PATH, _entry)
    if read is None:
        return NOTHING_ASKED
    request = read.body.value
    store = request.get("store")
    asked = RequestSummary(
        known=True,
        model=get_str(request, "model"),
        stream=request.get("stream") is True,
        tools=(
            *_specs(get_array(request, "tools")),
            *(tool for entry in read.entries for tool in entry.tools),
        ),
        tool_choice=_tool_choice(request.get("tool_choice")),
        history=(),
        tools_elsewhere=_has_tools_elsewhere(request),
        previous=_previous(request),
        instructions=bool(get_str(request, "instructions")),
        answer=_answer(request),
        store=store if isinstance(store, bool) else None,
        one_call=request.get("parallel_tool_calls") is False,
    )
    history = [*_opening(request), *_items(read.entries, asked)]
    return replace(asked, history=tuple(_without_references(history)))


def _answer(request: Object) -> AnswerFormat | None:
    asked = get_object(get_object(request, "text") or {}, "format") or {}
    if asked.get("type") not in ("json_object", "json_schema"):
        return None
    return AnswerFormat(schema=get_object(asked, "schema"), promised=asked.get("strict") is True)


def _previous(request: Object) -> str | None:
    """Return the reply or conversation that the request continues."""
    stored = get_object(request, "conversation") or {}
    found = (
        get_str(request, "previous_response_id"),
        get_str(request, "conversation"),
        get_str(stored, "id"),
    )
    return next(filter(None, found), None)


class _Entry(NamedTuple):
    """An item of the input."""

    message: Message
    tools: tuple[ToolSpec, ...]
    """The tools that the item defines."""
    custom: bool
    """Whether it is a custom call, which may be one of the provider's: that depends on the tools
    of the request."""


def _entry(item: Object, source: JsonSource) -> tuple[_Entry]:
    custom = get_str(item, "type") == "custom_tool_call"
    return (_Entry(_item(item, source), tuple(_specs(get_array(item, "tools"))), custom),)


def _has_tools_elsewhere(request: Object) -> bool:
    """Check whether a stored prompt or a search in omitted history may add tools.

    What was found by a search for tools is in the history from then on.
    """
    if request.get("prompt") is not None:
        return True
    kinds = {get_str(tool, "type") for tool in get_objects(request, "tools")}
    earlier = request.get("previous_response_id") or request.get("conversation")
    return bool(earlier) and "tool_search" in kinds


def _specs(tools: Sequence[object]) -> Iterator[ToolSpec]:
    for tool in objects_in(tools):
        inner = get_array(tool, "tools")
        named = tool_spec(get_object(tool, "function") or tool)
        if inner:
            yield from tool_specs(inner)
        elif named is not None:
            yield named
        elif get_str(tool, "type"):
            name = get_str(tool, "server_label") or tool_name(get_str(tool, "type") or "")
            yield ToolSpec(name=name, parameters=None)


def _tool_choice(value: object) -> str | None:
    if isinstance(value, str):
        return value
    choice = as_object(value)
    if choice is None:
        return None
    kind = get_str(choice, "type") or ""
    if kind == "allowed_tools":
        return get_str(choice, "mode")
    return get_str(choice, "name") or get_str(choice, "server_label") or tool_name(kind) or None


def _opening(request: Object) -> Iterator[Message]:
    """Yield the instructions, and an input that is plain text."""
    for key, role in (("instructions", "system"), ("input", "user")):
        text = get_str(request, key)
        if text is not None:
            yield make_message(role, text, {"role": role, "content": text})


def _items(entries: Sequence[_Entry], asked: RequestSummary) -> Iterator[Message]:
    for message, _, custom in entries:
        item = {"type": "custom_tool_call", "name": message.calls[0].name} if custom else {}
        if custom and shape_of(item, asked) != _CUSTOM:
            yield replace(message, calls=())
        else:
            yield message


def _item(item: Object, source: JsonSource) -> Message:
    kind = get_str(item, "type") or "message"
    shape = shape_of(item, NOTHING_ASKED)
    if shape is not None:
        message = make_message(_MODEL, "", item)
        if shape.kind not in _CLIENTS:
            # A result may refer to the call by either identifier.
            owned = (get_str(item, "call_id"), get_str(item, "id"))
            return replace(message, owns=tuple(filter(None, owned)))
        arguments = exact(item, shape.field, source)
        name = shape.name or get_str(item, "name")
        call = RepeatedCall(id=get_str(item, "call_id"), name=name, arguments=arguments)
        return replace(message, calls=(call,))
    if kind.endswith(_OUTPUT) or kind == _APPROVAL:
        answered = get_str(item, _ANSWER_ID.get(kind, "call_id"))
        # What the provider answered itself, a search for tools for one, answers no call of ours.
        role = _MODEL if answered is None else _TOOL
        return make_message(role, content_text(item.get("output")), item, call_id=answered)
    if kind == "message":
        role = get_str(item, "role") or ""
        return make_message(role, content_text(item.get("content")), item)
    thoughts = []
    if kind == REASONING:
        signature = get_str(item, "encrypted_content") or ""
        thoughts.append(Thought(signature=signature, id=get_str(item, "id")))
    return make_message(_MODEL if kind in _NO_CALLS else kind, "", item, thoughts=thoughts)


def _without_references(history: Sequence[Message]) -> Iterator[Message]:
    """Remove replies that are repeated by reference."""
    run: list[Message] = []
    for message in history:
        if message.role in (_MODEL, _REFERENCE):
            run.append(message)
            continue
        yield from _run(run)
        run = []
        yield message
    yield from _run(run)


def _run(run: Sequence[Message]) -> Iterator[Message]:
    role = _REFERENCE if any(one.role == _REFERENCE for one in run) else _MODEL
    return (one if one.role == role else replace(one, role=role) for one in run)
