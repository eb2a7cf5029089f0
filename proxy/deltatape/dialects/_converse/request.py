"""Reads the request of Converse: history in blocks, tools as `toolSpec`.

Shapes: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html. One user
message carries the results of several calls: each becomes a message of its own. Calls that the
provider runs itself, and their results, are the assistant's; they are no calls.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import NamedTuple
from urllib.parse import unquote

from deltatape.dialects._anthropic.request import thinking_in
from deltatape.dialects._json import as_object, get_array, get_object, get_str
from deltatape.dialects._request import (
    content_text,
    objects_at,
    said,
    source_of,
    tool_spec,
)
from deltatape.dialects._request_bodies import read_history
from deltatape.dialects._source_text import JsonSource, MemberValue
from deltatape.model.reply import Thought
from deltatape.model.request_summary import (
    NOTHING_ASKED,
    Message,
    RepeatedCall,
    RequestSummary,
    ToolSpec,
)

_PATH = ("messages",)
_SERVER = "server_tool_use"


def read_conversation(body: bytes, *, model: str | None, stream: bool) -> RequestSummary:
    """Parse `body`; return `NOTHING_ASKED` if it is not a JSON object.

    Model and stream stand in the path.
    """
    found = read_history(body, _PATH, _entry)
    if found is None:
        return NOTHING_ASKED
    request = found.body.value
    tools = get_object(request, "toolConfig") or {}
    return RequestSummary(
        known=True,
        model=model,
        stream=stream,
        tools=tuple(_tools(tools)),
        tool_choice=_tool_choice(get_object(tools, "toolChoice") or {}),
        history=(*_system(request), *chain.from_iterable(found.entries)),
        thinking=thinking_in(get_object(request, "additionalModelRequestFields") or {}),
    )


def _tools(config: Mapping[str, object]) -> Iterator[ToolSpec]:
    for tool in map(as_object, get_array(config, "tools")):
        spec = get_object(tool or {}, "toolSpec") or {}
        schema = get_object(spec, "inputSchema") or {}
        found = tool_spec({"name": spec.get("name"), "parameters": schema.get("json")})
        if found is not None:
            yield found


def _tool_choice(choice: Mapping[str, object]) -> str | None:
    named = get_object(choice, "tool")
    if named is not None:
        return get_str(named, "name")
    return "required" if "any" in choice else "auto" if "auto" in choice else None


def _system(request: Mapping[str, object]) -> Iterator[Message]:
    system = get_array(request, "system")
    if system:
        yield said("system", content_text(system), {"role": "system", "content": system})


def _entry(message: Mapping[str, object], source: JsonSource) -> tuple[Message, ...]:
    return tuple(_messages(message, source))


def _messages(message: Mapping[str, object], source: JsonSource) -> Iterator[Message]:
    """Yield each tool result in `message`, and then the rest of the message."""
    role = get_str(message, "role") or ""
    rest: list[Mapping[str, object]] = []
    calls = []
    thoughts: list[Thought] = []
    answers = False
    for block, where in objects_at(message, "content", source):
        result, use = get_object(block, "toolResult"), get_object(block, "toolUse")
        if result is not None and role != "assistant":
            answers = True
            text = content_text(result.get("content"))
            yield said("tool", text, result, call_id=get_str(result, "toolUseId"))
            continue
        rest.append(block)
        thoughts += _thoughts(block)
        if use is not None and use.get("type") != _SERVER:
            calls.append(_repeated(use, MemberValue(where, "toolUse")))
    if rest or not answers:
        digested = {"role": role, "content": rest}
        yield said(role, content_text(rest), digested, calls=calls, thoughts=thoughts)


def _thoughts(block: Mapping[str, object]) -> Iterator[Thought]:
    content = get_object(block, "reasoningContent")
    if content is not None:
        text = get_object(content, "reasoningText") or {}
        signature = get_str(text, "signature") or get_str(content, "redactedContent") or ""
        yield Thought(signature=signature, text=get_str(text, "text") or "")


def _repeated(use: Mapping[str, object], source: JsonSource) -> RepeatedCall:
    return RepeatedCall(
        id=get_str(use, "toolUseId"),
        name=get_str(use, "name"),
        arguments=source_of(use, "input", source),
    )


# The paths of Amazon Bedrock: model and action, `/model/MODEL/ACTION`, perhaps behind a prefix.
#
# Source:
# https://docs.aws.amazon.com/bedrock/latest/APIReference/API_Operations_Amazon_Bedrock_Runtime.html.


class BedrockPath(NamedTuple):
    """The parts of a request path."""

    model: str | None
    """None if it names none. May be an ARN with slashes, escaped or not."""
    action: str
    """Its last part."""


def read_path(path: str) -> BedrockPath:
    """Parse `path`, without query."""
    head, _, action = path.rstrip("/").rpartition("/")
    return BedrockPath(model=unquote(head.partition("/model/")[2]) or None, action=action)
