"""What a page that uses the AI SDK sends to its application: UI messages, which consist of parts.

Shapes: https://ai-sdk.dev/docs/reference/ai-sdk-core/ui-message. A tool's call and its result are
one part, which grows: `tool-NAME`, or `dynamic-tool` with a `toolName`. Tools and model are the
application's business and not in there.
"""

from collections.abc import Iterator, Mapping
from itertools import chain

from deltatape.dialects._json import get_str
from deltatape.dialects._request import content_text, exact, objects_at, said
from deltatape.dialects._shared import read_history
from deltatape.dialects._source import Source
from deltatape.model.asked import NOTHING_ASKED, Asked, Message, RepeatedCall

_PATH = ("messages",)
_TOOL = "tool-"
_DYNAMIC = "dynamic-tool"
_ANSWERED = frozenset({"output-available", "output-error", "output-denied"})
_RESULT_KEYS = ("toolCallId", "state", "output", "errorText")


def read_request(body: bytes) -> Asked:
    """What `body` asks for; `NOTHING_ASKED` if it is no JSON object."""
    found = read_history(body, _PATH, _entry)
    if found is None:
        return NOTHING_ASKED
    return Asked(
        known=True,
        model=None,
        stream=True,
        tools=(),
        tool_choice=None,
        history=tuple(chain.from_iterable(found.entries)),
    )


def _entry(message: Mapping[str, object], source: Source) -> tuple[Message, ...]:
    return tuple(_messages(message, source))


def _messages(message: Mapping[str, object], source: Source) -> Iterator[Message]:
    """A message, and the results of the tools that it called."""
    parts = list(objects_at(message, "parts", source))
    tools = [(part, name, where) for part, where in parts if (name := _tool_name(part)) is not None]
    text = [part for part, _ in parts if part.get("type") == "text"]
    role = get_str(message, "role") or ""
    calls = [
        RepeatedCall(
            id=get_str(part, "toolCallId"), name=name, arguments=exact(part, "input", where)
        )
        for part, name, where in tools
    ]
    told = [[call.id, call.name, call.arguments] for call in calls]
    visible = content_text(text) or get_str(message, "content") or ""
    yield said(role, visible, [role, text, message.get("content"), told], calls=calls)
    for part, _, _ in tools:
        if get_str(part, "state") in _ANSWERED:
            yield _result(part)


def _tool_name(part: Mapping[str, object]) -> str | None:
    """The tool that `part` calls; None if it calls none, or the provider ran it."""
    kind = get_str(part, "type") or ""
    if part.get("providerExecuted") is True:
        return None
    if kind == _DYNAMIC:
        return get_str(part, "toolName") or ""
    return kind.removeprefix(_TOOL) if kind.startswith(_TOOL) else None


def _result(part: Mapping[str, object]) -> Message:
    output = part.get("output")
    text = get_str(part, "errorText") or (output if isinstance(output, str) else "")
    digested = {key: part.get(key) for key in _RESULT_KEYS}
    return said("tool", text, digested, call_id=get_str(part, "toolCallId"))
