"""Reads the request of a chat completion: model, tools, tool choice, history.

Shapes: https://platform.openai.com/docs/api-reference/chat/create, with the predecessors that
compatible servers still take (`functions`, `function_call`).
"""

from collections.abc import Mapping
from dataclasses import replace

from deltatape.dialects._chat import signature_of
from deltatape.dialects._json import (
    JsonSource,
    MemberValue,
    as_object,
    get_object,
    get_objects,
    get_str,
)
from deltatape.dialects._request import (
    content_text,
    exact,
    make_message,
    objects_at,
    read_history,
    tool_specs,
)
from deltatape.model.reply import Thought
from deltatape.model.request_summary import (
    NOTHING_ASKED,
    AnswerFormat,
    Message,
    RepeatedCall,
    RequestSummary,
    ToolSpec,
)

_PATH = ("messages",)


def read_request(body: bytes, *, streams: bool = False, nameless: bool = False) -> RequestSummary:
    """Parse `body`; return `NOTHING_ASKED` if it is not a JSON object.

    Args:
        body: the request's body.
        streams: whether a request that does not say so asks for a stream.
        nameless: whether calls have no ids: results then name the function.
    """
    found = read_history(body, _PATH, _nameless if nameless else _message)
    if found is None:
        return NOTHING_ASKED
    request = found.body.value
    return RequestSummary(
        known=True,
        model=get_str(request, "model"),
        stream=request.get("stream", streams) is True,
        tools=_tools(request),
        tool_choice=_tool_choice(request),
        history=found.entries,
        answer=_answer(request),
        one_call=request.get("parallel_tool_calls") is False,
    )


def _tools(request: Mapping[str, object]) -> tuple[ToolSpec, ...]:
    specs = [
        get_object(tool, "function") or get_object(tool, "custom") or tool
        for tool in get_objects(request, "tools")
    ]
    return tool_specs([*specs, *get_objects(request, "functions")])


def _answer(request: Mapping[str, object]) -> AnswerFormat | None:
    """Return the format of the answer. Some servers take a schema with the type `json_object`."""
    if request.get("stop"):
        return None
    asked = get_object(request, "response_format") or {}
    inner = get_object(asked, "json_schema") or {}
    strict = inner.get("strict") is True
    schema = get_object(inner, "schema") or get_object(asked, "schema")
    if asked.get("type") in ("json_object", "json_schema"):
        return AnswerFormat(schema=schema, promised=strict)
    return _ollama_answer(request)


def _ollama_answer(request: Mapping[str, object]) -> AnswerFormat | None:
    """Return Ollama's `format`: the word `json` or a schema, both enforced by a grammar."""
    schema = get_object(request, "format")
    stops = (get_object(request, "options") or {}).get("stop")
    if stops or (schema is None and request.get("format") != "json"):
        return None
    return AnswerFormat(schema=schema, promised=True)


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


def _nameless(message: Mapping[str, object], source: JsonSource) -> tuple[Message]:
    """Like `_message`, where results name the function instead of the call."""
    (read,) = _message(message, source)
    if read.call_id is not None or message.get("role") != "tool":
        return (read,)
    return (replace(read, call_id=get_str(message, "tool_name") or get_str(message, "name")),)


def _message(message: Mapping[str, object], source: JsonSource) -> tuple[Message]:
    entries = list(objects_at(message, "tool_calls", source))
    calls = [_repeated(entry, where) for entry, where in entries]
    signatures = (signature_of(entry) for entry, _ in entries)
    legacy = get_object(message, "function_call")
    if legacy is not None:
        arguments = exact(legacy, "arguments", MemberValue(source, "function_call"))
        calls.append(RepeatedCall(id=None, name=get_str(legacy, "name"), arguments=arguments))
    read = make_message(
        get_str(message, "role") or "",
        content_text(message.get("content")),
        message,
        calls=calls,
        call_id=get_str(message, "tool_call_id"),
        thoughts=[Thought(signature=signature) for signature in signatures if signature],
    )
    return (read,)


def _repeated(entry: Mapping[str, object], source: JsonSource) -> RepeatedCall:
    key, field = ("custom", "input") if get_object(entry, "custom") else ("function", "arguments")
    holder = get_object(entry, key) or {}
    return RepeatedCall(
        id=get_str(entry, "id"),
        name=get_str(holder, "name"),
        arguments=exact(holder, field, MemberValue(source, key)),
    )
