"""Anthropic's messages: reducer and request reader, shared by several dialects.

Shapes: https://docs.anthropic.com/en/docs/build-with-claude/streaming. A message is made of content
blocks, each with an index, a start, deltas and a stop; `message_delta` brings the stop reason and
`message_stop` ends the stream. Amazon carries the same events in messages of its own.

Reading continues after a stop reason and after an error event. Gateways send a second
`message_start` for a retry: with the same id it is ignored, with another id it replaces the message
before it; after `message_stop` it starts another message.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import ClassVar, NamedTuple

from deltatape.dialects._calls import CallDraft, CallEndCause
from deltatape.dialects._delta_fast_path import DeltaFastPath
from deltatape.dialects._json import (
    Element,
    Elements,
    Frame,
    JsonSource,
    MemberValue,
    WholeString,
    as_object,
    get_array,
    get_index,
    get_object,
    get_objects,
    get_str,
    objects_in,
)
from deltatape.dialects._reply import SENTINEL, ChoiceDraft, DialectPolicy, ReplyDraft
from deltatape.dialects._request import (
    content_text,
    make_message,
    objects_at,
    read_history,
    source_of,
    tool_specs,
)
from deltatape.model.reply import CallKind, Channel, Reply, Thought
from deltatape.model.request_summary import (
    NOTHING_ASKED,
    AnswerFormat,
    Message,
    RepeatedCall,
    RequestSummary,
)
from deltatape.model.stream import Event
from deltatape.wire.json_value import canonical, read_object

# Content blocks: finds the block of each delta and applies the delta.
#
# The documented key is the block's `index`, never "the current block": gateways interleave blocks,
# start to count at 1, leave out stops. What is decided here:
#
# - A delta without an index, or under one that never started, belongs to the last block that can
#   take it, else to a block that nothing opened, whose arguments belong to no call.
# - Texts are in the order in which their blocks started, also where deltas of several mix.
# - An index that starts again is the same call if it has the same id, else another block (T012).
#
# The input of a call is `{}` at its start, and then comes in deltas. Where a gateway sends all of
# it at the start, it counts only if no delta brings any (T014 if both say the same, T015 if not).


_TEXT = "text"
_THINKING = "thinking"
_JSON = "input_json_delta"
_SIGNATURE_DELTA = "signature_delta"
SIGNATURES = {_THINKING: "signature", "redacted_thinking": "data"}
"""By type of a thinking block, the field that a later request must repeat unchanged."""
_TEXT_DELTAS = {
    "text_delta": (_TEXT, Channel.TEXT),
    "thinking_delta": (_THINKING, Channel.REASONING),
}
"""By type of delta, the field with its text, and the channel of the text."""
_KINDS = {"tool_use": CallKind.FUNCTION, "mcp_tool_use": CallKind.MCP}
_USE = "tool_use"
"""How the types of all calls end, probably future ones, too."""


class ContentBlock:
    """A content block under construction."""

    __slots__ = (
        "call",
        "identifier",
        "kind",
        "signature",
        "start_arguments",
        "started",
        "stopped",
        "streamed",
    )

    def __init__(self, kind: str, identifier: str, event: Event, *, streamed: bool) -> None:
        self.kind = kind
        self.identifier = identifier
        self.started = event
        self.streamed = streamed
        """Whether it was streamed: a start, deltas and a stop."""
        self.stopped = False
        self.call: CallDraft | None = None
        self.start_arguments: str | None = None
        """The input that stood at the start of a streamed call, unless it was empty."""
        self.signature = ""
        """The signature of a thinking block."""


class Blocks:
    """Applies events to the blocks of the message `choice`."""

    def __init__(self, choice: ChoiceDraft, fast_path: DeltaFastPath) -> None:
        self._choice = choice
        self._fast_path = fast_path
        self._blocks: dict[int, ContentBlock] = {}
        self._all: list[ContentBlock] = []
        self._open: list[ContentBlock] = []
        """Blocks in the order of their start, stopped ones only below the last."""
        self._open_calls: list[ContentBlock] = []
        self._next = 0
        """The first index above all that were used."""

    def start(self, frame: Mapping[str, object], event: Event) -> None:
        """Handle `content_block_start`."""
        found = as_object(frame.get("content_block"))
        if found is None:
            self._choice.note_unexpected("content_block is not an object", frame, event)
            return
        index = self._index(frame, event)
        if index is None:
            index = self._next
        known = self._blocks.get(index)
        if known is not None and _is_same(known, found):
            if known.streamed:
                self._choice.note_unexpected(f"block {index} starts again", frame, event)
            known.streamed, known.stopped = True, False
            return
        block = self._begin(index, found, event, streamed=True)
        if block.call is not None and found.get("input") not in (None, "", {}):
            source = MemberValue(WholeString(event.data), "content_block")
            block.start_arguments = MemberValue(source, "input").text
        if known is not None and known.streamed:
            self._reused(index, block, frame, event)

    def delta(self, frame: Mapping[str, object], event: Event) -> None:
        """Handle `content_block_delta`; ignore unknown delta types."""
        delta = frame.get("delta")
        if not isinstance(delta, dict):
            self._choice.note_unexpected("delta is not an object", frame, event)
            return
        kind = delta.get("type")
        if kind == _JSON:
            self._add_input(delta, frame, event)
        elif isinstance(kind, str):
            text_delta = _TEXT_DELTAS.get(kind)
            if text_delta is None:
                if kind == _SIGNATURE_DELTA:
                    self._sign(frame, delta, event)
                return
            field, channel = text_delta
            text = delta.get(field)
            if isinstance(text, str):
                order = self._expect(frame, field, event)
                self._choice.add_text(channel, text, event, order)
                append = partial(self._choice.add_texts, channel, order=order)
                self._fast_path.learn(event, frame, append, field)
            elif text is not None:
                self._choice.note_unexpected(f"{field} is not a string", frame, event)

    def _sign(self, frame: Mapping[str, object], delta: Mapping[str, object], event: Event) -> None:
        """Take the signature of a thinking block: it comes whole, so a later one replaces it."""
        index = get_index(frame, "index")
        block = _newest(self._open) if index is None else self._blocks.get(index)
        if block is None:
            return
        signature = get_str(delta, "signature") or ""
        if block.signature not in ("", signature):
            self._choice.note_unexpected("a block has a second signature", frame, event)
        block.signature = signature

    def stop(self, frame: Mapping[str, object], event: Event) -> None:
        """Handle `content_block_stop`."""
        index = self._index(frame, event)
        block = _newest(self._open) if index is None else self._blocks.get(index)
        if block is None:
            self._choice.note_unexpected(
                f"a stop of block {index}, which did not start", frame, event
            )
            return
        if block.stopped:
            self._choice.note_unexpected(f"block {index} stops again", frame, event)
        block.stopped = True
        if block.call is not None:
            block.call.ended = event

    def add_document(self, content: Iterable[object], event: Event, source: JsonSource) -> None:
        """Handle whole blocks in an array at `source` of the data of `event`."""
        elements = Elements(source)
        for place, value in enumerate(content):
            found = as_object(value)
            if found is None:
                self._choice.note_unexpected("a content block is not an object", value, event)
                continue
            block = self._begin(place, found, event, streamed=False)
            block.stopped = True
            if block.call is not None:
                block.call.ended = event
                if found.get("input") is not None:
                    block.call.add(MemberValue(Element(elements, place), "input").text, event)

    def finish(self, *, terminated: bool) -> None:
        """Decide at the end what needed all events. Call once.

        Args:
            terminated: whether the message ended as it should: then all blocks should have, too.
        """
        for block in self._all:
            self._settle(block)
            if block.signature:
                self._choice.thoughts.append(Thought(signature=block.signature))
        for index, block in self._blocks.items():
            if terminated and not block.stopped:
                detail = f"block {index} has no content_block_stop"
                self._choice.note_unexpected(detail, detail, block.started)
        lowest = min(self._blocks, default=0)
        if lowest and self._blocks[lowest].streamed:
            detail = f"the lowest index of a content block is {lowest}"
            self._choice.notes.once("", "T013", detail, detail, self._blocks[lowest].started)

    def _begin(
        self, index: int, value: Mapping[str, object], event: Event, *, streamed: bool
    ) -> ContentBlock:
        kind = get_str(value, "type") or ""
        identifier = get_str(value, "id") or ""
        block = ContentBlock(kind, identifier, event, streamed=streamed)
        block.signature = get_str(value, SIGNATURES.get(kind, "")) or ""
        self._keep(index, block)
        if kind.endswith(_USE):
            block.call = self._choice.open(_KINDS.get(kind, CallKind.SERVER), event, index)
            block.call.identify(identifier, get_str(value, "name"))
            self._open_calls.append(block)
            return block
        for field, channel in _TEXT_DELTAS.values():
            if kind == field:
                self._choice.add_text(channel, get_str(value, field) or "", event, event.number)
        return block

    def _keep(self, index: int, block: ContentBlock) -> None:
        self._blocks[index] = block
        self._next = max(self._next, index + 1)
        self._all.append(block)
        self._open.append(block)

    def _reused(
        self, index: int, block: ContentBlock, frame: Mapping[str, object], event: Event
    ) -> None:
        detail = f"the index {index} is used for another block"
        if block.call is None:
            self._choice.note_unexpected(detail, frame, event)
        else:
            block.call.note("", "T012", detail, frame, event)

    def _index(self, frame: Mapping[str, object], event: Event) -> int | None:
        """Return the index in `frame`; note if it is missing, and return None."""
        value = frame.get("index")
        if type(value) is int and value >= 0:
            return value
        index = get_index(frame, "index")
        if index is None:
            detail = "an event of a content block has no index"
            self._choice.notes.once("", "T011", detail, frame, event)
        return index

    def _expect(self, frame: Mapping[str, object], kind: str, event: Event) -> int:
        """Note a text delta for a block that has another type or is not open; return its order."""
        index = frame.get("index")
        block = self._blocks.get(index) if type(index) is int else None
        if block is not None and block.kind == kind and not block.stopped:
            return block.started.number
        index = self._index(frame, event)
        found = None if index is None else self._blocks.get(index)
        if found is None:
            if index is not None:
                self._choice.note_unexpected(
                    f"a delta for block {index}, which did not start", frame, event
                )
            return self._all[-1].started.number if self._all else 0
        if found.kind != kind:
            self._choice.note_unexpected(
                f"a delta of {kind} for a block of {found.kind!r}", frame, event
            )
        elif found.stopped:
            self._choice.note_unexpected(f"a delta for block {index} after its stop", frame, event)
        return found.started.number

    def _add_input(
        self, delta: Mapping[str, object], frame: Mapping[str, object], event: Event
    ) -> None:
        index = frame.get("index")
        block = self._blocks.get(index) if type(index) is int else None
        call = block.call if block is not None and not block.stopped else None
        text = delta.get("partial_json")
        if call is None:
            call = self._find(frame, event)
        elif isinstance(text, str):
            self._fast_path.learn(event, frame, call.add_all, "partial_json")
        if isinstance(text, str):
            call.add(text, event)
        elif text is not None:
            call.note_unquoted(frame, event)
            source = MemberValue(WholeString(event.data), "delta")
            call.add(MemberValue(source, "partial_json").text, event)

    def _find(self, frame: Mapping[str, object], event: Event) -> CallDraft:
        """Return the call for a delta whose index belongs to no open block."""
        index = self._index(frame, event)
        block = None if index is None else self._blocks.get(index)
        if block is not None and block.call is not None:
            if block.stopped:
                detail = f"a delta for block {index} after its stop"
                block.call.note(detail, "S006", detail, frame, event)
            return block.call
        if index is not None:
            what = "did not start" if block is None else "is not a call"
            self._choice.note_unexpected(f"arguments for block {index}, which {what}", frame, event)
        last = _newest(self._open_calls)
        if last is None:
            last = ContentBlock(_USE, "", event, streamed=True)
            last.call = self._choice.open(CallKind.FUNCTION, event, index)
            self._keep(self._next if index is None or block is not None else index, last)
            self._open_calls.append(last)
        assert last.call
        return last.call

    def _settle(self, block: ContentBlock) -> None:
        call, arguments = block.call, block.start_arguments
        if call is None or arguments is None:
            return
        if not call.fragments:
            call.add(arguments, block.started)
            return
        if canonical(arguments) == canonical(call.raw):
            detail = "the whole arguments stand at the call's start and come again in deltas"
            call.note("start_arguments", "T014", detail, arguments, block.started)
        else:
            detail = "the arguments at the call's start are not those of the deltas, which count"
            call.note("start_arguments", "T015", detail, arguments, block.started)


def _newest(blocks: list[ContentBlock]) -> ContentBlock | None:
    """Return the last of `blocks` that is still open, dropping closed ones behind it."""
    while blocks and blocks[-1].stopped:
        blocks.pop()
    return blocks[-1] if blocks else None


def _is_same(block: ContentBlock, value: Mapping[str, object]) -> bool:
    """Check whether `value` starts `block` again: the same call, or text that is still open."""
    if get_str(value, "type") != block.kind:
        return False
    if block.call is None:
        return not block.stopped
    identifier = get_str(value, "id") or ""
    if identifier or block.identifier:
        return identifier == block.identifier
    return get_str(value, "name") == block.call.name and not block.stopped


TERMINATOR = "message_delta with a stop_reason, and message_stop"
_UNNAMED = "message"
"""The type of a server-sent event that has no event line."""
_FALLBACK = "fallback"
"""The block after which another model continues."""
POLICY = DialectPolicy(
    abnormal=frozenset({"max_tokens", "model_context_window_exceeded", "refusal", "pause_turn"}),
    tool_word=True,
    explicit_end=True,
    signs_text=True,
)
DELTA_KEYS = frozenset({"text", "thinking", "partial_json"})
"""See `Traits`."""
CLOSING_KEYS = frozenset({"stop_reason", "signature"})
"""See `Traits`."""
PING = ("ping", '{"type": "ping"}')
"""See `Traits`."""


# Distinguishes Anthropic's events and documents from those of other dialects.

MESSAGE_START = "message_start"
BLOCK_START = "content_block_start"
BLOCK_DELTA = "content_block_delta"
BLOCK_STOP = "content_block_stop"
MESSAGE_DELTA = "message_delta"
MESSAGE_STOP = "message_stop"
STREAMED = frozenset(
    {MESSAGE_START, BLOCK_START, BLOCK_DELTA, BLOCK_STOP, MESSAGE_DELTA, MESSAGE_STOP}
)
"""Types of the events of a stream; the type `ping` is not Anthropic's alone."""
_OPENAI_FIELDS = frozenset({"code", "param"})


def is_event(frame: Mapping[str, object]) -> bool:
    """Check whether `frame` is an event of a streamed message."""
    kind = frame.get("type")
    return isinstance(kind, str) and kind in STREAMED


def is_document(frame: Mapping[str, object]) -> bool:
    """Check whether `frame` is a message that is not streamed."""
    ours = frame.get("type") == "message" and "stop_reason" in frame
    return ours and isinstance(frame.get("content"), list)


def is_error(frame: Mapping[str, object]) -> bool:
    """Check whether `frame` is an error in Anthropic's form; others add numbers or codes."""
    error = get_object(frame, "error")
    if frame.get("type") != "error" or error is None or "sequence_number" in frame:
        return False
    return get_str(error, "type") is not None and _OPENAI_FIELDS.isdisjoint(error)


class MessageReducer:
    """Rebuilds a message. See `Reducer`."""

    def __init__(self, name: str, request: RequestSummary) -> None:
        self._reply = ReplyDraft(name, TERMINATOR, request, POLICY)
        self._choice = self._reply.choice()
        self.fast_path = DeltaFastPath()
        self._blocks = Blocks(self._choice, self.fast_path)
        self._ended: list[Blocks] = []
        """The blocks of earlier messages, which ended before another one began."""
        self._id: str | None = None
        """The id of the current message; None before the first."""
        self._usage: dict[str, object] = {}
        self._named = True

    def feed(self, event: Event, frame: Frame | None = None) -> None:
        frame = frame or read_object(event.data) or self._read_oddly(event)
        if frame is None:
            return
        kind = "error" if event.exception else frame.get("type")
        if not isinstance(kind, str):
            kind = self._kind(frame, event)
        handler = self._HANDLERS.get(kind)
        if handler is None:
            return  # a ping, or an event type that did not exist yet
        if event.type == _UNNAMED and self._named and kind in STREAMED:
            self._named = False
            detail = "events have no event line; the first is a " + repr(kind)
            self._reply.notes.once("", "W008", detail, event.data[:200], event)
        handler(self, frame, event)

    def finish(self, *, cut: bool) -> Reply:
        del cut  # A stop reason or message_stop tells more about the calls than the transport does.
        terminated = self._reply.terminal is not None and self._reply.error is None
        for blocks in (*self._ended, self._blocks):
            blocks.finish(terminated=terminated)
        ending = CallEndCause.NORMAL if terminated else CallEndCause.CUT
        self._reply.id = self._id or None
        return self._reply.build(ending, terminated=terminated)

    def _read_oddly(self, event: Event) -> Mapping[str, object] | None:
        """Return the object in `event`; None if it is empty or `[DONE]`, which gateways add."""
        data = event.data.strip()
        if data == SENTINEL or (not data and event.type == _UNNAMED):
            return None
        return self._reply.read(event)

    def _kind(self, frame: Mapping[str, object], event: Event) -> str:
        """Return the type of `frame`, which does not name it."""
        if frame.get("error"):
            return "error"
        self._reply.note_unexpected("an object without a type", frame, event)
        return event.type if event.type in STREAMED else ""

    def _take_start(self, frame: Mapping[str, object], event: Event) -> None:
        message = get_object(frame, "message")
        if message is None:
            self._reply.note_unexpected("message is not an object", frame, event)
            message = {}
        identifier = get_str(message, "id") or ""
        if self._id is not None:
            if self._reply.terminal is not None:
                self._follow(frame, event)
            elif identifier in ("", self._id) or not self._id:
                self._reply.note_unexpected("message_start comes again", frame, event)
                return
            else:
                self._restart(identifier, frame, event)
        self._id = identifier
        self._take_message(message, event, MemberValue(WholeString(event.data), "message"))

    def _follow(self, frame: Mapping[str, object], event: Event) -> None:
        """Start another message after a complete one."""
        self._reply.note_unexpected("another message follows message_stop", frame, event)
        self._ended.append(self._blocks)
        self._blocks = Blocks(self._choice, self.fast_path)
        self._reply.terminal = None

    def _restart(self, identifier: str, frame: Mapping[str, object], event: Event) -> None:
        """Start the message again: a retry follows what it replaces."""
        detail = (
            f"the message {identifier!r} begins inside the message {self._id!r}, of which nothing"
            " is part of the answer"
        )
        self._reply.note_unexpected(detail, frame, event)
        self._choice = self._reply.restart()
        self._blocks = Blocks(self._choice, self.fast_path)
        self._ended = []
        self._reply.model = self._reply.usage = None
        self._usage = {}

    def _take_message(
        self, message: Mapping[str, object], event: Event, source: JsonSource
    ) -> None:
        """Take a message's own members, and the blocks already in it."""
        self._reply.model = get_str(message, "model") or self._reply.model
        self._take_usage(message)
        content = get_array(message, "content")
        if content:
            self._blocks.add_document(content, event, MemberValue(source, "content"))
        self._take_reason(message, event)

    def _take_document(self, frame: Mapping[str, object], event: Event) -> None:
        self._take_message(frame, event, WholeString(event.data))
        self._reply.terminal = event

    def _take_block_start(self, frame: Mapping[str, object], event: Event) -> None:
        self._note_late_content(frame, event)
        self._blocks.start(frame, event)
        block = get_object(frame, "content_block") or {}
        if block.get("type") == _FALLBACK:
            self._reply.model = get_str(get_object(block, "to") or {}, "model") or self._reply.model

    def _take_block_delta(self, frame: Mapping[str, object], event: Event) -> None:
        if self._id is None or self._reply.terminal is not None:
            self._note_late_content(frame, event)
        self._blocks.delta(frame, event)

    def _take_block_stop(self, frame: Mapping[str, object], event: Event) -> None:
        self._blocks.stop(frame, event)

    def _note_late_content(self, frame: Mapping[str, object], event: Event) -> None:
        """Note content after the end; clients take it nevertheless."""
        if self._id is None:
            self._id = ""
            self._reply.note_unexpected("content without message_start", frame, event)
        if self._reply.terminal is not None:
            self._reply.note_unexpected("content after message_stop", frame, event)

    def _take_delta(self, frame: Mapping[str, object], event: Event) -> None:
        delta = get_object(frame, "delta")
        if delta is None:
            self._reply.note_unexpected("delta is not an object", frame, event)
        else:
            self._take_reason(delta, event)
        if get_object(frame, "usage") is None:
            # The SDKs read its members and fail: https://github.com/earendil-works/pi/issues/6567
            self._reply.note_unexpected("message_delta has no usage", frame, event)
        self._take_usage(frame)

    def _take_stop(self, frame: Mapping[str, object], event: Event) -> None:
        if self._reply.terminal is not None:
            self._reply.note_unexpected("message_stop comes again", frame, event)
            return
        self._reply.terminal = event

    def _take_error(self, frame: Mapping[str, object], event: Event) -> None:
        if not self._reply.take_error(frame, event):
            message = get_str(frame, "message") or "an error event without a message"
            self._reply.fail(message, frame, event)

    def _take_reason(self, holder: Mapping[str, object], event: Event) -> None:
        reason = holder.get("stop_reason")
        if reason is None:
            return
        if not isinstance(reason, str) or not reason:
            self._choice.note_unexpected("stop_reason is not a word", holder, event)
            return
        details = get_object(holder, "stop_details") or {}
        self._choice.finish(reason, event, get_str(details, "category"))

    def _take_usage(self, holder: Mapping[str, object]) -> None:
        """Update usage: later counts are totals and replace earlier ones."""
        usage = get_object(holder, "usage")
        if usage is None:
            return
        for key, value in usage.items():
            if value is not None or key not in self._usage:
                self._usage[key] = value
        self._reply.usage = self._usage

    _HANDLERS: ClassVar[Mapping[str, Callable[["MessageReducer", Frame, Event], None]]] = {
        MESSAGE_START: _take_start,
        BLOCK_START: _take_block_start,
        BLOCK_DELTA: _take_block_delta,
        BLOCK_STOP: _take_block_stop,
        MESSAGE_DELTA: _take_delta,
        MESSAGE_STOP: _take_stop,
        "message": _take_document,
        "error": _take_error,
    }


# Reads the request for a message: model, tools, tool choice, history.
#
# Shapes: https://docs.anthropic.com/en/api/messages. One user message carries the results of
# several calls: each becomes a message of its own. The system prompt is outside of the messages
# and comes out as the first of them.
#
# Digests ignore what clients change from turn to turn without changing the meaning: cache marks,
# and whether a single text is put in an array.


_CACHE = "cache_control"
_PROVIDER_TOOLS = "mcp_toolset"
"""Tools that the provider runs itself."""
_TOOL_CHOICES = {"auto": "auto", "none": "none", "any": "required"}
_PATH = ("messages",)
_ONE_CALL = "disable_parallel_tool_use"


class _Entry(NamedTuple):
    """The parsed form of an entry of `messages`."""

    messages: tuple[Message, ...]
    tools: tuple[object, ...]
    """The tools that its blocks define."""


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
        history=(
            *_system(request),
            *(message for entry in found.entries for message in entry.messages),
        ),
        tools_elsewhere=any(map(_is_toolset, tools)),
        answer=_answer(request),
        thinking=thinking_in(request),
        one_call=(get_object(request, "tool_choice") or {}).get(_ONE_CALL) is True,
    )


def _entry(message: Mapping[str, object], source: JsonSource) -> tuple[_Entry]:
    return (_Entry(tuple(_messages(message, source)), tuple(_added_tools(message))),)


def _added_tools(message: Mapping[str, object]) -> Iterator[object]:
    """Yield the tools that blocks of `message` define."""
    for block in get_objects(message, "content"):
        if block.get("type") == "tool_addition":
            yield (get_object(block, "tool") or {}).get("definition")


def _is_toolset(tool: object) -> bool:
    """Return whether `tool` represents tools of the application that the request does not name."""
    entry = as_object(tool)
    if entry is None or get_str(entry, "name") is not None:
        return False
    return get_str(entry, "type") not in (None, _PROVIDER_TOOLS)


def thinking_in(request: Mapping[str, object]) -> bool | None:
    """Return whether `request` turns thinking on or off; None if it leaves that to the model."""
    kind = get_str(get_object(request, "thinking") or {}, "type")
    return {"enabled": True, "disabled": False}.get(kind or "")


def _answer(request: Mapping[str, object]) -> AnswerFormat | None:
    config = get_object(request, "output_config") or {}
    asked = get_object(config, "format") or get_object(request, "output_format") or {}
    if asked.get("type") != "json_schema":
        return None
    return AnswerFormat(schema=get_object(asked, "schema"), promised=True)


def _tool_choice(request: Mapping[str, object]) -> str | None:
    choice = get_object(request, "tool_choice") or {}
    kind = get_str(choice, "type")
    return get_str(choice, "name") if kind == "tool" else _TOOL_CHOICES.get(kind or "")


def _system(request: Mapping[str, object]) -> Iterator[Message]:
    system = request.get("system")
    if system:
        yield _message("system", _blocks(system))


def _messages(message: Mapping[str, object], source: JsonSource) -> Iterator[Message]:
    """Yield each tool result in a message, and then the rest of the message."""
    role, content = get_str(message, "role") or "", message.get("content")
    blocks = _blocks(content)
    results = [block for block in objects_in(blocks) if _is_result(block)]
    for block in results:
        inner = block.get("content")
        digested = {**block, "content": _blocks(inner)}
        call_id = get_str(block, "tool_use_id")
        yield make_message("tool", content_text(inner), digested, call_id=call_id)
    rest = [block for block in blocks if not _is_result(block)]
    if rest or not results:
        calls = [
            RepeatedCall(
                id=get_str(block, "id"),
                name=get_str(block, "name"),
                arguments=source_of(block, "input", where),
            )
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
    for block in objects_in(blocks):
        field = SIGNATURES.get(get_str(block, "type") or "")
        if field is not None:
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


def _is_result(block: object) -> bool:
    """Check whether `block` is the result of a call that the application ran."""
    return isinstance(block, dict) and block.get("type") == "tool_result"
