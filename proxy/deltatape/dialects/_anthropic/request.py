"""Reads the request for a message: model, tools, tool choice, history.

Shapes: https://docs.anthropic.com/en/api/messages. One user message carries the results of several
calls: each becomes a message of its own. The system prompt stands outside of the messages and comes
out as the first of them.

Digests ignore what clients change from turn to turn without changing what is said: marks for the
cache, and whether a lone text stands in an array.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from deltatape.dialects._anthropic.reducer import SIGNATURES
from deltatape.dialects._json import as_object, get_array, get_object, get_str
from deltatape.dialects._request import (
    content_text,
    make_message,
    objects_at,
    read_history,
    source_of,
    tool_specs,
)
from deltatape.dialects._source_text import JsonSource
from deltatape.model.reply import Thought
from deltatape.model.request_summary import (
    NOTHING_ASKED,
    AnswerFormat,
    Message,
    RepeatedCall,
    RequestSummary,
)

_CACHE = "cache_control"
_SERVERS_OWN = "mcp_toolset"
"""Tools that the provider runs itself."""
_CHOICES = {"auto": "auto", "none": "none", "any": "required"}
_THINKING = {"enabled": True, "disabled": False}
_PATH = ("messages",)
_ONE_CALL = "disable_parallel_tool_use"


class _Entry(NamedTuple):
    """The parsed form of an entry of `messages`."""

    messages: tuple[Message, ...]
    tools: tuple[object, ...]
    """Those that it defines."""


def read_request(body: bytes) -> RequestSummary:
    """Parse `body`; return `NOTHING_ASKED` if it is not a JSON object."""
    found = read_history(body, _PATH, _entry)
    if found is None:
        return NOTHING_ASKED
    request = found.body.value
    added = (tool for entry in found.entries for tool in entry.tools)
    tools = [*get_array(request, "tools"), *added]
    return RequestSummary(
        known=True,
        model=get_str(request, "model"),
        stream=request.get("stream") is True,
        tools=tool_specs(tools, "input_schema"),
        tool_choice=_tool_choice(request),
        history=(*_system(request), *(one for entry in found.entries for one in entry.messages)),
        tools_elsewhere=any(map(_is_toolset, tools)),
        answer=_answer(request),
        thinking=thinking_in(request),
        one_call=(get_object(request, "tool_choice") or {}).get(_ONE_CALL) is True,
    )


def _entry(message: Mapping[str, object], source: JsonSource) -> tuple[_Entry]:
    return (_Entry(tuple(_messages(message, source)), tuple(_added_tools(message))),)


def _added_tools(message: Mapping[str, object]) -> Iterator[object]:
    """Yield the tools that blocks of `message` define."""
    for block in map(as_object, get_array(message, "content")):
        if block is not None and block.get("type") == "tool_addition":
            yield (get_object(block, "tool") or {}).get("definition")


def _is_toolset(tool: object) -> bool:
    """Check whether `tool` stands for tools of the application that the request does not name."""
    entry = as_object(tool)
    if entry is None or get_str(entry, "name") is not None:
        return False
    return get_str(entry, "type") not in (None, _SERVERS_OWN)


def thinking_in(request: Mapping[str, object]) -> bool | None:
    """Return whether `request` turns thinking on or off; None if it leaves that to the model."""
    kind = get_str(get_object(request, "thinking") or {}, "type")
    return _THINKING.get(kind or "")


def _answer(request: Mapping[str, object]) -> AnswerFormat | None:
    config = get_object(request, "output_config") or {}
    asked = get_object(config, "format") or get_object(request, "output_format") or {}
    if asked.get("type") != "json_schema":
        return None
    return AnswerFormat(schema=get_object(asked, "schema"), promised=True)


def _tool_choice(request: Mapping[str, object]) -> str | None:
    choice = get_object(request, "tool_choice") or {}
    kind = get_str(choice, "type")
    return get_str(choice, "name") if kind == "tool" else _CHOICES.get(kind or "")


def _system(request: Mapping[str, object]) -> Iterator[Message]:
    system = request.get("system")
    if system:
        yield _message("system", _blocks(system))


def _messages(message: Mapping[str, object], source: JsonSource) -> Iterator[Message]:
    """Yield each tool result in a message, and then the rest of the message."""
    role, content = get_str(message, "role") or "", message.get("content")
    blocks = _blocks(content)
    results = [block for block in map(as_object, blocks) if _is_result(block)]
    for block in filter(None, results):
        inner = block.get("content")
        digested = {**block, "content": _blocks(inner)}
        call_id = get_str(block, "tool_use_id")
        yield make_message("tool", content_text(inner), digested, call_id=call_id)
    rest = [block for block in blocks if not _is_result(as_object(block))]
    if rest or not results:
        calls = [
            _repeated(block, where)
            for block, where in objects_at(message, "content", source)
            if block.get("type") == "tool_use"
        ]
        yield _message(role, rest, calls)


def _message(role: str, blocks: list[object], calls: Iterable[RepeatedCall] = ()) -> Message:
    digested = {"role": role, "content": blocks}
    return make_message(
        role, content_text(blocks), digested, calls=calls, thoughts=_thoughts(blocks)
    )


def _thoughts(blocks: Iterable[object]) -> Iterator[Thought]:
    for block in map(as_object, blocks):
        field = SIGNATURES.get(get_str(block or {}, "type") or "")
        if block is not None and field is not None:
            text = get_str(block, "thinking") or ""
            yield Thought(signature=get_str(block, field) or "", text=text)


def _blocks(content: object) -> list[object]:
    """Return the content as blocks, without cache marks."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    blocks = content if isinstance(content, list) else []
    return [
        {key: value for key, value in block.items() if key != _CACHE}
        if isinstance(block, dict)
        else block
        for block in blocks
    ]


def _is_result(block: Mapping[str, object] | None) -> bool:
    """Check whether `block` is the result of a call that the application ran."""
    return block is not None and block.get("type") == "tool_result"


def _repeated(block: Mapping[str, object], source: JsonSource) -> RepeatedCall:
    return RepeatedCall(
        id=get_str(block, "id"),
        name=get_str(block, "name"),
        arguments=source_of(block, "input", source),
    )
