"""The UI message stream of Vercel's AI SDK, which an application's endpoint sends to its page.

Shapes: https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol. Calls are keyed by `toolCallId`; their
fragments are what the model wrote, the whole input that follows is what the application made of it
and executes. Texts have ids and must be started. `finish` and `[DONE]` end it.

Not here: the line protocol of older versions (`0:"text"`), which is not an event stream.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from deltatape.dialects._base import Errors, EventShape, Hints, Traits
from deltatape.dialects._json import Frame, JsonSource, get_str
from deltatape.dialects._reply import DialectPolicy
from deltatape.dialects._request import content_text, exact, make_message, objects_at, read_history
from deltatape.dialects._table import (
    CallDelta,
    CallsById,
    CallStart,
    CallWhole,
    DialectTable,
    ErrorStep,
    FinishStep,
    Result,
    Strings,
    TableDraft,
    TableReducer,
    TerminalStep,
    ValueCondition,
    path,
    text_at,
)
from deltatape.model.reply import Channel
from deltatape.model.request_summary import NOTHING_ASKED, Message, RepeatedCall, RequestSummary
from deltatape.model.stream import Event, Format

_HEADER = "\nx-vercel-ai-ui-message-stream\n"


# Texts in parts, each with an id, that must be started before they go on: clients throw else.

_PART_ID = ("id",)
_DELTA = ("delta",)


@dataclass(frozen=True, slots=True)
class PartStart:
    """A text starts."""

    channel: Channel

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        del event
        draft.parts.add((self.channel, text_at(frame, _PART_ID)))


@dataclass(frozen=True, slots=True)
class PartDelta:
    """A text continues."""

    channel: Channel

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        draft.note_late_content(frame, event)
        if (self.channel, text_at(frame, _PART_ID)) not in draft.parts:
            draft.choice.note_unexpected(
                f"a piece of {self.channel} that never started", frame, event
            )
        text = text_at(frame, _DELTA)
        if text is None:
            draft.choice.note_unexpected(f"a piece of {self.channel} without a delta", frame, event)
        else:
            draft.choice.add_text(self.channel, text, event)


@dataclass(frozen=True, slots=True)
class PartEnd:
    """A text is complete."""

    channel: Channel

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        part = (self.channel, text_at(frame, _PART_ID))
        if part not in draft.parts:
            draft.choice.note_unexpected(
                f"the end of a {self.channel} that never started", frame, event
            )
        draft.parts.discard(part)


@dataclass(frozen=True, slots=True)
class StepEnd:
    """A step of the agent ends, and with it all its texts."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        del frame, event
        draft.parts.clear()


# The table of the stream.

_ABNORMAL = frozenset({"length", "content-filter", "error"})
_ID = path("toolCallId")
_ERRORS = (path("errorText"), path("error.message"), path("error"), path("message"))
"""The first is the protocol's; applications also send what their provider sent."""
_KEY = CallsById(_ID)
_NAME = path("toolName")
_SERVER = ValueCondition(path("providerExecuted"), (True,))
_RESULT = Result(id=(_ID,), preliminary=path("preliminary"))


def _whole(*, weak: bool) -> CallWhole:
    return CallWhole(
        key=_KEY,
        id=(_ID,),
        name=(_NAME,),
        arguments=(path("input"),),
        strings=Strings.TEXT if weak else Strings.FREE,
        server=_SERVER,
        weak=weak,
    )


_TABLE = DialectTable(
    name="ai-sdk-ui",
    terminator="finish and [DONE]",
    policy=DialectPolicy(abnormal=_ABNORMAL, explicit_end=True, app=True),
    type_keys=("type",),
    sentinel=True,
    due=frozenset({"stop"}),
    events={
        "text-start": (PartStart(Channel.TEXT),),
        "text-delta": (PartDelta(Channel.TEXT),),
        "text-end": (PartEnd(Channel.TEXT),),
        "reasoning-start": (PartStart(Channel.REASONING),),
        "reasoning-delta": (PartDelta(Channel.REASONING),),
        "reasoning-end": (PartEnd(Channel.REASONING),),
        "tool-input-start": (CallStart(key=_KEY, id=_ID, name=_NAME, server=_SERVER),),
        "tool-input-delta": (CallDelta(key=_KEY, fragment=path("inputTextDelta")),),
        "tool-input-available": (_whole(weak=False),),
        "tool-input-error": (_whole(weak=True), _RESULT),
        "tool-output-available": (_RESULT,),
        "tool-output-error": (_RESULT,),
        "tool-output-denied": (_RESULT,),
        "finish-step": (StepEnd(),),
        "error": (ErrorStep(message=_ERRORS),),
        "finish": (FinishStep(reason=path("finishReason")), TerminalStep()),
        "abort": (TerminalStep(normal=False),),
    },
)


def _error_event(status: int, message: str, form: Format) -> tuple[str, Mapping[str, object]]:
    del status, form
    return "", {"type": "error", "errorText": message}


class AISDKUI:
    """The dialect. See `Dialect`."""

    name: ClassVar[str] = _TABLE.name
    traits: ClassVar[Traits] = Traits(
        shape=EventShape.PARTS,
        formats=frozenset({Format.SSE}),
        policy=_TABLE.policy,
        errors=Errors(event=_error_event),
        delta_keys=frozenset({"delta", "inputTextDelta"}),
        whole_types=("end", "available"),
        strict=True,
    )

    def claims(self, hints: Hints) -> bool:
        return _HEADER in hints.headers or (bool(hints.kinds) and any(map(_is_ours, hints.first)))

    def serves(self, path: str) -> bool:
        """See `Dialect.serves`: an application's paths are its own."""
        del path
        return False

    def read_request(self, body: bytes, path: str) -> RequestSummary:
        del path
        return read_request(body)

    def reducer(self, request: RequestSummary) -> TableReducer:
        return TableReducer(_TABLE, request)


def _is_ours(one: Frame) -> bool:
    """Check whether `one` is an event that no other dialect has."""
    kind = get_str(one, "type") or ""
    if kind.startswith("tool-input-"):
        return "toolCallId" in one
    if kind in ("text-start", "reasoning-start"):
        return "id" in one
    return kind in ("start-step", "finish-step") or (kind == "start" and "messageId" in one)


# What a page that uses the AI SDK sends to its application: UI messages, which consist of parts.
#
# Shapes: https://ai-sdk.dev/docs/reference/ai-sdk-core/ui-message. A tool's call and its result are
# one part, which grows: `tool-NAME`, or `dynamic-tool` with a `toolName`. Tools and model are the
# application's business and not in there.

_PATH = ("messages",)
_TOOL = "tool-"
_DYNAMIC = "dynamic-tool"
_ANSWERED = frozenset({"output-available", "output-error", "output-denied"})
_RESULT_KEYS = ("toolCallId", "state", "output", "errorText")


def read_request(body: bytes) -> RequestSummary:
    """Parse `body`; return `NOTHING_ASKED` if it is not a JSON object."""
    found = read_history(body, _PATH, _messages)
    if found is None:
        return NOTHING_ASKED
    return RequestSummary(
        known=True,
        model=None,
        stream=True,
        tools=(),
        tool_choice=None,
        history=found.entries,
    )


def _messages(message: Mapping[str, object], source: JsonSource) -> Iterator[Message]:
    """Yield a message, and the results of the tools that it called."""
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
    call_facts = [[call.id, call.name, call.arguments] for call in calls]
    visible = content_text(text) or get_str(message, "content") or ""
    yield make_message(role, visible, [role, text, message.get("content"), call_facts], calls=calls)
    for part, _, _ in tools:
        if get_str(part, "state") in _ANSWERED:
            yield _result(part)


def _tool_name(part: Mapping[str, object]) -> str | None:
    """Return the tool that `part` calls; None if none, or if the provider ran it."""
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
    return make_message("tool", text, digested, call_id=get_str(part, "toolCallId"))
