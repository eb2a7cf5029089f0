"""The request of Converse: the model in the path, history in blocks, tools as `toolSpec`.

Shapes: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
"""

from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from deltatape.dialects._json import as_object, get_array, get_object, get_str
from deltatape.dialects._request import content_text, exact, message_digest, read_body, tool_spec
from deltatape.dialects._source import Element, Elements, Member, Source
from deltatape.model.asked import NOTHING_ASKED, Asked, Message, RepeatedCall, ToolSpec

_SERVER = "server_tool_use"


def read_request(body: bytes, path: str) -> Asked:
    """What `body` asks for; `NOTHING_ASKED` if it is no JSON object.

    Args:
        body: the request's body.
        path: `/model/MODEL/converse` or `/model/MODEL/converse-stream`.
    """
    found = read_body(body)
    if found is None:
        return NOTHING_ASKED
    request, source = found
    tools = get_object(request, "toolConfig") or {}
    return Asked(
        known=True,
        model=_model(path),
        stream=path.rstrip("/").endswith("/converse-stream"),
        tools=tuple(_tools(tools)),
        tool_choice=_tool_choice(tools),
        history=tuple(_history(request, source)),
    )


def _model(path: str) -> str | None:
    """The model that `path` names, which may be an ARN with slashes, escaped or not."""
    _, _, rest = path.partition("/model/")
    return unquote(rest.rpartition("/converse")[0]) or None


def _tools(config: Mapping[str, object]) -> Iterator[ToolSpec]:
    for tool in map(as_object, get_array(config, "tools")):
        spec = get_object(tool or {}, "toolSpec")
        if spec is not None:
            schema = get_object(spec, "inputSchema") or {}
            found = tool_spec({"name": spec.get("name"), "parameters": schema.get("json")})
            if found is not None:
                yield found


def _tool_choice(config: Mapping[str, object]) -> str | None:
    choice = get_object(config, "toolChoice")
    if choice is None:
        return None
    if "any" in choice:
        return "required"
    forced = get_object(choice, "tool")
    return "auto" if forced is None else get_str(forced, "name")


def _history(request: Mapping[str, object], source: Source) -> Iterator[Message]:
    system = get_array(request, "system")
    if system:
        yield Message(
            role="system",
            text=content_text(system),
            calls=(),
            call_id=None,
            digest=message_digest(system),
        )
    elements = Elements(Member(source, "messages"))
    for place, message in enumerate(map(as_object, get_array(request, "messages"))):
        if message is not None:
            yield from _messages(message, Element(elements, place))


def _messages(message: Mapping[str, object], source: Source) -> Iterator[Message]:
    """Each result of a tool in `message`, and then what else is in it.

    Calls that the provider runs itself, and their results, are the assistant's; they are no calls.
    """
    role = get_str(message, "role") or ""
    elements = Elements(Member(source, "content"))
    rest: list[Mapping[str, object]] = []
    calls = []
    for place, block in enumerate(map(as_object, get_array(message, "content"))):
        if block is None:
            continue
        result, use = get_object(block, "toolResult"), get_object(block, "toolUse")
        if result is not None and role != "assistant":
            yield _result(result)
            continue
        rest.append(block)
        if use is not None and use.get("type") != _SERVER:
            calls.append(_repeated(use, Member(Element(elements, place), "toolUse")))
    if rest:
        yield Message(
            role=role,
            text=content_text(rest),
            calls=tuple(calls),
            call_id=None,
            digest=message_digest({"role": role, "content": rest}),
        )


def _result(result: Mapping[str, object]) -> Message:
    return Message(
        role="tool",
        text=content_text(result.get("content")),
        calls=(),
        call_id=get_str(result, "toolUseId"),
        digest=message_digest(result),
    )


def _repeated(use: Mapping[str, object], source: Source) -> RepeatedCall:
    return RepeatedCall(
        id=get_str(use, "toolUseId"),
        name=get_str(use, "name"),
        arguments=exact(use, "input", source),
    )
