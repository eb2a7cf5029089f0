"""The request to a model on Bedrock: its path, and a body in the language of the model."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import unquote

from deltatape.dialects._anthropic import request as messages
from deltatape.dialects._chat import request as chat
from deltatape.dialects._json import as_object, get_array, get_object, get_str
from deltatape.dialects._request import content_text, message_digest, read_body, tool_spec
from deltatape.dialects._source import Element, Elements, Member, Source
from deltatape.model.asked import NOTHING_ASKED, Asked, Message, RepeatedCall, ToolSpec

_MODEL = "/model/"
_WHOLE = "invoke"
_STREAMED = "invoke-with-response-stream"
_NOVA = ("toolConfig", "inferenceConfig", "schemaVersion")
_PROMPTS = ("prompt", "inputText", "message")
Json = Mapping[str, object]


class InvokePath(NamedTuple):
    """What the path of a request says."""

    model: str
    stream: bool


def read_path(path: str) -> InvokePath | None:
    """The model, and whether its answer is streamed; None if the path is none of InvokeModel."""
    head, _, action = path.rstrip("/").rpartition("/")
    model = head.partition(_MODEL)[2]
    if not model or action not in (_WHOLE, _STREAMED):
        return None
    return InvokePath(model=unquote(model), stream=action == _STREAMED)


def read_request(body: bytes, path: str) -> Asked:
    """What `body` asks of the model that `path` names; `NOTHING_ASKED` if it is no JSON object."""
    asked = _read(body)
    target = read_path(path)
    if not asked.known or target is None:
        return asked
    return replace(asked, model=target.model, stream=target.stream)


def _read(body: bytes) -> Asked:
    found = read_body(body)
    if found is None:
        return NOTHING_ASKED
    request, source = found
    if "anthropic_version" in request:
        return messages.read_request(body)
    if any(key in request for key in _NOVA):
        return _read_nova(request, source)
    asked = chat.read_request(body)
    prompt = next((text for key in _PROMPTS if (text := get_str(request, key))), None)
    if asked.history or prompt is None:
        return asked
    digest = message_digest({"role": "user", "content": prompt})
    message = Message(role="user", text=prompt, calls=(), call_id=None, digest=digest)
    return replace(asked, history=(message,))


def _read_nova(request: Json, source: Source) -> Asked:
    config = get_object(request, "toolConfig") or {}
    return Asked(
        known=True,
        model=None,
        stream=False,
        tools=tuple(_nova_tools(config)),
        tool_choice=_nova_choice(get_object(config, "toolChoice") or {}),
        history=tuple(_nova_history(request, source)),
    )


def _nova_tools(config: Json) -> Iterator[ToolSpec]:
    for tool in map(as_object, get_array(config, "tools")):
        spec = get_object(tool or {}, "toolSpec") or {}
        schema = get_object(get_object(spec, "inputSchema") or {}, "json")
        found = tool_spec({"name": spec.get("name"), "parameters": schema})
        if found is not None:
            yield found


def _nova_choice(choice: Json) -> str | None:
    named = get_object(choice, "tool")
    if named is not None:
        return get_str(named, "name")
    return "required" if "any" in choice else "auto" if "auto" in choice else None


def _nova_history(request: Json, source: Source) -> Iterator[Message]:
    system = get_array(request, "system")
    if system:
        yield _message("system", system)
    elements = Elements(Member(source, "messages"))
    for place, message in enumerate(map(as_object, get_array(request, "messages"))):
        if message is not None:
            yield from _nova_messages(message, Element(elements, place))


def _nova_messages(message: Json, source: Source) -> Iterator[Message]:
    """The results in a message, each on its own, and then the rest of it, if there is any."""
    blocks = [block for block in map(as_object, get_array(message, "content")) if block]
    results = [found for block in blocks if (found := get_object(block, "toolResult"))]
    for result in results:
        yield Message(
            role="tool",
            text=content_text(result.get("content")),
            calls=(),
            call_id=get_str(result, "toolUseId"),
            digest=message_digest(result),
        )
    rest = [block for block in blocks if not get_object(block, "toolResult")]
    if rest or not results:
        calls = tuple(_nova_calls(message, source))
        yield replace(_message(get_str(message, "role") or "", rest), calls=calls)


def _nova_calls(message: Json, source: Source) -> Iterator[RepeatedCall]:
    elements = Elements(Member(source, "content"))
    for place, block in enumerate(map(as_object, get_array(message, "content"))):
        use = get_object(block or {}, "toolUse")
        if use is not None:
            given = use.get("input") is not None
            at = Member(Member(Element(elements, place), "toolUse"), "input")
            yield RepeatedCall(
                id=get_str(use, "toolUseId"),
                name=get_str(use, "name"),
                arguments=at.text if given else "",
            )


def _message(role: str, blocks: object) -> Message:
    digest = message_digest({"role": role, "content": blocks})
    return Message(role=role, text=content_text(blocks), calls=(), call_id=None, digest=digest)
