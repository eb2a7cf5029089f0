"""Rebuilds a message, streamed or not.

Nothing stops the reading: not a stop reason, not an error event. A second `message_start` is what
gateways make of a retry: with the same id it says nothing, with another one the message before it
was given up, and nothing of it is part of the answer; after `message_stop` another message follows.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar

from deltatape.dialects._anthropic.blocks import Blocks
from deltatape.dialects._call_end import CallEndCause
from deltatape.dialects._choice import DialectPolicy
from deltatape.dialects._delta_fast_path import DeltaFastPath
from deltatape.dialects._json import Frame, get_array, get_object, get_str
from deltatape.dialects._reply import ReplyDraft
from deltatape.dialects._source_text import JsonSource, MemberValue, WholeString
from deltatape.model.reply import Reply
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event
from deltatape.wire.json_value import read_object

TERMINATOR = "message_delta with a stop_reason, and message_stop"
_SENTINEL = "[DONE]"
_UNNAMED = "message"
"""The type of a server-sent event that has no event line."""
_FALLBACK = "fallback"
"""The block behind which another model goes on."""
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


# What tells Anthropic's events and documents from those of others.

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
        """The blocks of messages that came to their end before another one began."""
        self._id: str | None = None
        """Of the message that has begun; None before the first."""
        self._usage: dict[str, object] = {}
        self._named = True

    def feed(self, event: Event, frame: Frame | None = None) -> None:
        frame = frame or read_object(event.data) or self._read_oddly(event)
        if frame is None:
            return
        kind = "error" if event.exception else frame.get("type")
        if not isinstance(kind, str):
            kind = self._kind(frame, event)
        taker = self._TAKERS.get(kind)
        if taker is None:
            return  # a ping, or an event that is newer than this
        if event.type == _UNNAMED and self._named and kind in STREAMED:
            self._named = False
            detail = "events have no event line; the first is a " + repr(kind)
            self._reply.notes.once("", "W008", detail, event.data[:200], event)
        taker(self, frame, event)

    def finish(self, *, cut: bool) -> Reply:
        del cut  # A stop reason or message_stop tells more about the calls than the transport does.
        terminated = self._reply.terminal is not None and self._reply.error is None
        for blocks in (*self._ended, self._blocks):
            blocks.finish(terminated=terminated)
        ending = CallEndCause.NORMAL if terminated else CallEndCause.CUT
        self._reply.id = self._id or None
        return self._reply.build(ending, terminated=terminated)

    def _read_oddly(self, event: Event) -> Mapping[str, object] | None:
        """Return the object in `event`, if it is not plainly an object with members."""
        return None if _says_nothing(event) else self._reply.read(event)

    def _kind(self, frame: Mapping[str, object], event: Event) -> str:
        """Return the type of `frame`, which does not name it."""
        if frame.get("error"):
            return "error"
        self._reply.note_unexpected("an object without a type", frame, event)
        return event.type if event.type in STREAMED else ""

    def _take_start(self, frame: Mapping[str, object], event: Event) -> None:
        message = get_object(frame, "message")
        if message is None:
            self._reply.note_unexpected("message is no object", frame, event)
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
            self._blocks.whole(content, event, MemberValue(source, "content"))
        self._take_reason(message, event)

    def _take_document(self, frame: Mapping[str, object], event: Event) -> None:
        self._take_message(frame, event, WholeString(event.data))
        self._reply.terminal = event

    def _take_block_start(self, frame: Mapping[str, object], event: Event) -> None:
        self._watch(frame, event)
        self._blocks.start(frame, event)
        block = get_object(frame, "content_block") or {}
        if block.get("type") == _FALLBACK:
            self._reply.model = get_str(get_object(block, "to") or {}, "model") or self._reply.model

    def _take_block_delta(self, frame: Mapping[str, object], event: Event) -> None:
        if self._id is None or self._reply.terminal is not None:
            self._watch(frame, event)
        self._blocks.delta(frame, event)

    def _take_block_stop(self, frame: Mapping[str, object], event: Event) -> None:
        self._blocks.stop(frame, event)

    def _watch(self, frame: Mapping[str, object], event: Event) -> None:
        """Note content after the end; clients take it nevertheless."""
        if self._id is None:
            self._id = ""
            self._reply.note_unexpected("content without message_start", frame, event)
        if self._reply.terminal is not None:
            self._reply.note_unexpected("content after message_stop", frame, event)

    def _take_delta(self, frame: Mapping[str, object], event: Event) -> None:
        delta = get_object(frame, "delta")
        if delta is None:
            self._reply.note_unexpected("delta is no object", frame, event)
        else:
            self._take_reason(delta, event)
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
            self._choice.note_unexpected("stop_reason is no word", holder, event)
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

    _TAKERS: ClassVar[Mapping[str, Callable[["MessageReducer", Frame, Event], None]]] = {
        MESSAGE_START: _take_start,
        BLOCK_START: _take_block_start,
        BLOCK_DELTA: _take_block_delta,
        BLOCK_STOP: _take_block_stop,
        MESSAGE_DELTA: _take_delta,
        MESSAGE_STOP: _take_stop,
        "message": _take_document,
        "error": _take_error,
    }


def _says_nothing(event: Event) -> bool:
    """Check whether `event` is another dialect's sentinel, or empty."""
    data = event.data.strip()
    return data == _SENTINEL or (not data and event.type == _UNNAMED)
