"""The events of Converse as a table.

Shapes: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html and
https://docs.aws.amazon.com/nova/latest/userguide/using-invoke-api.html. Blocks of content are keyed
by `contentBlockIndex`; only some begin with an event, all end with one, and those of tools carry
pieces of JSON. `messageStop` ends the answer; `metadata`, with the usage, comes after it. In a
document the place of a block is its index.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from deltatape.dialects._choice import DialectPolicy
from deltatape.dialects._json import Frame
from deltatape.dialects._table import (
    CallsByIndex,
    DialectTable,
    Path,
    TableDraft,
    TableStep,
    at,
    listed,
    path,
    text_at,
)
from deltatape.dialects._table_calls import CallDelta, CallEnd, CallStart, CallWhole, ValueCondition
from deltatape.dialects._table_steps import (
    ErrorStep,
    ExpectObject,
    FinishStep,
    NonTextStep,
    SignatureStep,
    TerminalStep,
    TextStep,
    UsageStep,
)
from deltatape.model.reply import Channel
from deltatape.model.stream import Event

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
"""Where in the data of an event of a type something stands."""


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
class _SayBlocks:
    """The text of a document's blocks, in order; citations are lists of parts."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        for _, block in listed(at(frame, _CONTENT)):
            for _, part in (*listed(block), *listed(at(block, _CITED))):
                draft.choice.say(Channel.TEXT, text_at(part, _TEXT) or "", event)


_DOCUMENT: tuple[TableStep, ...] = (
    ErrorStep(message=(path("message"), path("Message")), optional=True),
    ExpectObject(entry=_CONTENT, what="a content block", each=True),
    TextStep(channel=Channel.REASONING, each=_CONTENT, text=_thoughts(())),
    SignatureStep(each=_CONTENT, signature=_signatures(())),
    _SayBlocks(),
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
