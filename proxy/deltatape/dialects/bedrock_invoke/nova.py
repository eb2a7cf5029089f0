"""Amazon's Nova: the events of ConverseStream, each as an object with one member of its name.

Shapes: https://docs.aws.amazon.com/nova/latest/userguide/using-invoke-api.html. A block of text has
no start; the input of a call comes in pieces; `messageStop` brings the reason, `metadata` follows.
"""

from collections.abc import Callable, Mapping

from deltatape.dialects._calls import CallDraft
from deltatape.dialects._choice import Policy
from deltatape.dialects._json import as_object, get_array, get_index, get_object, get_str
from deltatape.dialects._judge import Ending
from deltatape.dialects._reply import ReplyDraft
from deltatape.dialects._source import Element, Elements, Member, Whole
from deltatape.model.asked import Asked
from deltatape.model.reply import CallKind, Channel, Reply
from deltatape.model.stream import Event

_TERMINATOR = "messageStop"
_POLICY = Policy(
    abnormal=frozenset(
        {
            "max_tokens",
            "content_filtered",
            "guardrail_intervened",
            "malformed_model_output",
            "malformed_tool_use",
            "model_context_window_exceeded",
        }
    ),
    explicit_end=True,
)
_EVENTS = frozenset(
    {"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop"}
)
Json = Mapping[str, object]


def is_nova(frame: Json) -> bool:
    """Whether `frame` is an event or a document of Nova's."""
    output = get_object(frame, "output")
    whole = output is not None and get_object(output, "message") is not None
    return whole or not _EVENTS.isdisjoint(frame)


class NovaReducer:
    """Rebuilds what Nova said. See `Reducer`."""

    def __init__(self, name: str, asked: Asked) -> None:
        self._reply = ReplyDraft(name, _TERMINATOR, asked, _POLICY)
        self._choice = self._reply.choice()
        self._calls: dict[int | None, CallDraft] = {}
        self._takers: dict[str, Callable[[Json, Event], None]] = {
            "contentBlockStart": self._take_start,
            "contentBlockDelta": self._take_delta,
            "contentBlockStop": self._take_stop,
            "messageStop": self._take_end,
            "metadata": self._take_usage,
        }

    def feed(self, event: Event) -> None:
        """See `Reducer.feed`."""
        frame = self._reply.read(event)
        if frame is None or self._reply.take_error(frame, event):
            return
        for key, value in frame.items():
            taker = self._takers.get(key)
            if taker is None:
                continue
            inner = as_object(value)
            if inner is None:
                self._reply.odd(f"{key} is no object", frame, event)
            else:
                taker(inner, event)
        if "output" in frame:
            self._take_document(frame, event)

    def finish(self, *, cut: bool) -> Reply:
        """See `Reducer.finish`."""
        del cut  # A stop reason tells more about the calls than the transport does.
        terminated = self._reply.terminal is not None and self._reply.error is None
        return self._reply.build(Ending.NORMAL if terminated else Ending.CUT, terminated=terminated)

    def _take_start(self, block: Json, event: Event) -> None:
        use = get_object(get_object(block, "start") or {}, "toolUse")
        if use is None:
            return
        index = get_index(block, "contentBlockIndex")
        call = self._open(use, index, event)
        if index in self._calls:
            detail = f"the index {index} is used for another block"
            call.note("", "T012", detail, block, event)
        self._calls[index] = call

    def _take_delta(self, block: Json, event: Event) -> None:
        delta = get_object(block, "delta")
        if delta is None:
            self._choice.odd("delta is no object", block, event)
            return
        self._choice.say(Channel.TEXT, get_str(delta, "text") or "", event)
        reasoning = _reasoning(delta)
        self._choice.say(Channel.REASONING, reasoning, event)
        use = get_object(delta, "toolUse")
        if use is None:
            return
        index = get_index(block, "contentBlockIndex")
        call = self._calls.get(index)
        if call is None:
            self._choice.odd(f"arguments for block {index}, which is no call", block, event)
            call = self._calls[index] = self._open(use, index, event)
        if isinstance(use.get("input"), str):
            call.add(str(use["input"]), event)
        elif use.get("input") is not None:
            path = ("contentBlockDelta", "delta", "toolUse", "input")
            detail = "the arguments are JSON instead of a string with JSON in it"
            call.note("bare", "T006", detail, block, event)
            call.add(_source(event, path).text, event)

    def _take_stop(self, block: Json, event: Event) -> None:
        call = self._calls.get(get_index(block, "contentBlockIndex"))
        if call is not None:
            call.ended = event

    def _take_end(self, stop: Json, event: Event) -> None:
        self._reply.terminal = event
        reason = get_str(stop, "stopReason")
        if reason:
            self._choice.finish(reason, event)

    def _take_usage(self, metadata: Json, event: Event) -> None:
        del event
        self._reply.usage = get_object(metadata, "usage") or self._reply.usage

    def _take_document(self, frame: Json, event: Event) -> None:
        message = get_object(get_object(frame, "output") or {}, "message") or {}
        elements = Elements(_source(event, ("output", "message", "content")))
        for place, value in enumerate(get_array(message, "content")):
            block = as_object(value)
            if block is None:
                self._choice.odd("a content block is no object", message, event)
                continue
            self._choice.say(Channel.TEXT, get_str(block, "text") or "", event)
            self._choice.say(Channel.REASONING, _reasoning(block), event)
            use = get_object(block, "toolUse")
            if use is None:
                continue
            call = self._open(use, place, event)
            call.ended = event
            if use.get("input") is not None:
                at = Member(Element(elements, place), "toolUse")
                call.add(Member(at, "input").text, event)
        self._take_end(frame, event)
        self._take_usage(frame, event)

    def _open(self, use: Json, index: int | None, event: Event) -> CallDraft:
        kind = CallKind.SERVER if use.get("type") == "server_tool_use" else CallKind.FUNCTION
        call = self._choice.open(kind, event, index)
        call.identify(get_str(use, "toolUseId"), get_str(use, "name"))
        return call


def _source(event: Event, path: tuple[str, ...]) -> Whole | Member:
    """The value, which exists if anybody asks, at `path` in the data of `event`."""
    source: Whole | Member = Whole(event.data)
    for key in path:
        source = Member(source, key)
    return source


def _reasoning(holder: Json) -> str:
    """The text of the thoughts in a delta or a block."""
    content = get_object(holder, "reasoningContent") or {}
    whole = get_object(content, "reasoningText") or content
    return get_str(whole, "text") or ""
