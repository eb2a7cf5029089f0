"""Amazon's Converse, shared by all dialects that carry it.

The same events and the same requests come in two frames: those of ConverseStream, where the framing
names the type of an event, and those of Nova's own API, where an event is an object with one member
of the type's name. An answer that is not streamed is the same document in both.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias
from urllib.parse import unquote

from deltatape.dialects._anthropic import thinking_in
from deltatape.dialects._json import (
    Frame,
    JsonSource,
    MemberValue,
    get_array,
    get_object,
    get_objects,
    get_str,
)
from deltatape.dialects._reply import DialectPolicy
from deltatape.dialects._request import (
    content_text,
    make_message,
    objects_at,
    read_history,
    source_of,
    tool_spec,
)
from deltatape.dialects._table import (
    CallDelta,
    CallEnd,
    CallsByIndex,
    CallStart,
    CallWhole,
    DialectTable,
    ErrorStep,
    ExpectObject,
    FinishStep,
    NonTextStep,
    Path,
    SignatureStep,
    TableDraft,
    TableStep,
    TerminalStep,
    TextStep,
    UsageStep,
    ValueCondition,
    at,
    listed,
    path,
    text_at,
)
from deltatape.model.reply import Channel, Thought
from deltatape.model.request_summary import (
    NOTHING_ASKED,
    Message,
    RepeatedCall,
    RequestSummary,
    ToolSpec,
)
from deltatape.model.stream import Event

# The events of Converse as a table.
#
# Shapes: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
# and https://docs.aws.amazon.com/nova/latest/userguide/using-invoke-api.html. Blocks of content are
# keyed by `contentBlockIndex`; only some begin with an event, all end with one, and those of tools
# carry pieces of JSON. `messageStop` ends the answer; `metadata`, with the usage, comes after it.
# In a document the place of a block is its index.


STREAMED = frozenset(
    {
        "messageStart",
        "contentBlockStart",
        "contentBlockDelta",
        "contentBlockStop",
        "messageStop",
        "metadata",
    }
)
"""The types of events."""
_FAILURES = frozenset({"malformed_model_output", "malformed_tool_use"})
"""Reasons by which Amazon says that what the model made is of no use."""
_POLICY = DialectPolicy(
    abnormal=frozenset(
        {
            "max_tokens",
            "model_context_window_exceeded",
            "content_filtered",
            "guardrail_intervened",
        }
    )
    | _FAILURES,
    explicit_end=True,
    signs_text=True,
)
_ID = path("toolUseId")
_NAME = path("name")
_SERVER = ValueCondition(path("type"), ("server_tool_use",))
_CONTENT = path("output.message.content")
_CITED = path("citationsContent.content")
_TEXT = path("text")
_MEDIA = ("image", "video", "audio", "document")

_Finder: TypeAlias = Callable[[str, str], Path]
"""Finds a place in the data of an event, by the event's type and a member."""


def converse_table(name: str, *, members: bool = False) -> DialectTable:
    """Return the table of a dialect that carries Converse.

    Args:
        name: the dialect.
        members: whether an event is an object with a member of its type's name, and a document is
            recognised by its `output`; else both have types from outside, `message` for a document.
    """
    return DialectTable(
        name=name,
        terminator="messageStop",
        policy=_POLICY,
        type_keys=(),
        events=_MEMBERS if members else _BARE,
    )


def is_document(frame: Frame) -> bool:
    """Check whether `frame` holds a whole message, not a streamed one."""
    return isinstance(at(frame, ("output", "message")), dict)


def _events(find: _Finder) -> dict[str, tuple[TableStep, ...]]:
    """Return the steps of streamed events."""
    delta = "contentBlockDelta"
    return {
        "contentBlockStart": (
            CallStart(
                key=_index("contentBlockStart", find),
                entry=find("contentBlockStart", "start.toolUse"),
                id=_ID,
                name=_NAME,
                server=_SERVER,
                optional=True,
            ),
        ),
        delta: (
            ExpectObject(entry=find(delta, "delta"), what="delta"),
            TextStep(channel=Channel.TEXT, text=(find(delta, "delta.text"),)),
            CallDelta(
                key=_index(delta, find),
                entry=find(delta, "delta.toolUse"),
                fragment=path("input"),
                encoded=True,
                optional=True,
            ),
            TextStep(channel=Channel.REASONING, text=_thoughts(find(delta, "delta"))),
            SignatureStep(signature=_signatures(find(delta, "delta"))),
            NonTextStep(what=(find(delta, "delta.image"),)),
        ),
        "contentBlockStop": (CallEnd(key=_index("contentBlockStop", find), optional=True),),
        "messageStop": (
            FinishStep(reason=find("messageStop", "stopReason"), errors=_FAILURES),
            TerminalStep(),
        ),
        "metadata": (UsageStep(usage=find("metadata", "usage")),),
    }


def _index(kind: str, find: _Finder) -> CallsByIndex:
    return CallsByIndex(find(kind, "contentBlockIndex"))


def _thoughts(holder: Path) -> tuple[Path, ...]:
    """Return the paths of reasoning text, in fragments and in whole blocks."""
    content = (*holder, "reasoningContent")
    return (*content, "text"), (*content, "reasoningText", "text")


def _signatures(holder: Path) -> tuple[Path, ...]:
    """Return the paths of reasoning signatures, or of encrypted reasoning."""
    content = (*holder, "reasoningContent")
    places = ("signature",), ("reasoningText", "signature"), ("redactedContent",)
    return tuple((*content, *place) for place in places)


def _outside(kind: str, keys: str) -> Path:
    """Return a path in an event whose type is outside its data."""
    del kind
    return path(keys)


def _inside(kind: str, keys: str) -> Path:
    """Return a path in an event whose type is the name of its only member."""
    return (kind, *path(keys))


@dataclass(frozen=True, slots=True)
class _BlockTexts:
    """The text of a document's blocks, in order; citations are lists of parts."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        for _, block in listed(at(frame, _CONTENT)):
            for _, part in (*listed(block), *listed(at(block, _CITED))):
                draft.choice.add_text(Channel.TEXT, text_at(part, _TEXT) or "", event)


_DOCUMENT: tuple[TableStep, ...] = (
    ErrorStep(message=(path("message"), path("Message")), optional=True),
    ExpectObject(entry=_CONTENT, what="a content block", each=True),
    TextStep(channel=Channel.REASONING, each=_CONTENT, text=_thoughts(())),
    SignatureStep(each=_CONTENT, signature=_signatures(())),
    _BlockTexts(),
    NonTextStep(each=_CONTENT, what=tuple(map(path, _MEDIA))),
    CallWhole(
        entry=_CONTENT,
        each=path("toolUse"),
        id=(_ID,),
        name=(_NAME,),
        arguments=(path("input"),),
        ordered=True,
        server=_SERVER,
    ),
    UsageStep(usage=path("usage")),
    FinishStep(reason=path("stopReason"), errors=_FAILURES),
    TerminalStep(proof=path("stopReason")),
)
_BARE: Mapping[str, Sequence[TableStep]] = {**_events(_outside), "message": _DOCUMENT}
_MEMBERS: Mapping[str, Sequence[TableStep]] = {**_events(_inside), "output": _DOCUMENT}


# Reads the request of Converse: history in blocks, tools as `toolSpec`.
#
# Shapes: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html. One
# user message carries the results of several calls: each becomes a message of its own. Calls that
# the provider runs itself, and their results, are the assistant's; they are no calls.


_PATH = ("messages",)
_SERVER_TOOL = "server_tool_use"


def read_conversation(body: bytes, *, model: str | None, stream: bool) -> RequestSummary:
    """Parse `body`; return `NOTHING_ASKED` if it is not a JSON object.

    Model and stream are in the path.
    """
    found = read_history(body, _PATH, _messages)
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
        history=(*_system(request), *found.entries),
        thinking=thinking_in(get_object(request, "additionalModelRequestFields") or {}),
    )


def _tools(config: Mapping[str, object]) -> Iterator[ToolSpec]:
    for tool in get_objects(config, "tools"):
        spec = get_object(tool, "toolSpec") or {}
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
        yield make_message("system", content_text(system), {"role": "system", "content": system})


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
            yield make_message("tool", text, result, call_id=get_str(result, "toolUseId"))
            continue
        rest.append(block)
        thoughts += _signed_thoughts(block)
        if use is not None and use.get("type") != _SERVER_TOOL:
            call_id, name = get_str(use, "toolUseId"), get_str(use, "name")
            arguments = source_of(use, "input", MemberValue(where, "toolUse"))
            calls.append(RepeatedCall(id=call_id, name=name, arguments=arguments))
    if rest or not answers:
        digested = {"role": role, "content": rest}
        yield make_message(role, content_text(rest), digested, calls=calls, thoughts=thoughts)


def _signed_thoughts(block: Mapping[str, object]) -> Iterator[Thought]:
    content = get_object(block, "reasoningContent")
    if content is not None:
        text = get_object(content, "reasoningText") or {}
        signature = get_str(text, "signature") or get_str(content, "redactedContent") or ""
        yield Thought(signature=signature, text=get_str(text, "text") or "")


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
