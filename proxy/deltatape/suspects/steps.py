"""A delivered stream as clients see it: what each event asks them to do, in any dialect.

A `ClientCallDelta` is anything about a call: its start, a fragment of its arguments, their end, a
snapshot of the whole. Absent and `null` members are None and empty strings stay empty: some clients
confuse them.

Each family of dialects has a function that reads its events as steps.
"""

import binascii
import enum
import json
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from deltatape.model.reply import ToolCall
from deltatape.model.stream import Event
from deltatape.wire.json_value import read_object


class EntryPhase(enum.Enum):
    """The role of an entry in the life of a call."""

    START = "start"
    """A separate event that begins the call; it may already have arguments."""
    DELTA = "delta"
    """A fragment; in chat completions, the beginning as well."""
    DONE = "done"
    """The arguments are complete, and repeated."""
    CLOSE = "close"
    """The call is complete, and in some dialects repeated."""
    FINAL = "final"
    """The call as the last event lists it."""
    WHOLE = "whole"
    """A call in one piece."""


class ClientCallDelta(NamedTuple):
    """What an event adds to a call."""

    event: int
    phase: EntryPhase
    at: int = 0
    """Its place in the event's list of calls."""
    index: int | None = None  # type: ignore[assignment]
    """The key by which the dialect tells calls apart."""
    id: str | None = None
    name: str | None = None
    text: str | None = None
    """Arguments."""
    item: str | None = None
    """A second id, which no client answers to."""
    kind: str = "function"
    """`function`, `custom`, `legacy`, or an item type that the dialect does not define."""
    unquoted: bool = False
    """Whether the arguments are a JSON value, although the API promises a string of JSON."""
    finished: bool = False
    """Whether the same event has a finish reason."""


class FinishDelta(NamedTuple):
    """A finish reason, possibly empty."""

    event: int
    reason: str


class IncompleteDelta(NamedTuple):
    """An event without members that careless clients expect."""

    event: int
    what: str
    """`choices` (none, or an empty list) or `delta` (null)."""


class EmptyTextDelta(NamedTuple):
    """An event whose text is empty."""

    event: int


Step: TypeAlias = ClientCallDelta | FinishDelta | IncompleteDelta | EmptyTextDelta


# Members of events: the value if it has the type, else something empty.

Object = Mapping[str, object]
_NO_MEMBERS: Object = {}
_MOST_DIGITS = 9
"""Digits of an index that is sent as a string."""


def member(holder: Object, key: str) -> Object:
    """Return the object at `key`; empty if there is none."""
    value = holder.get(key)
    return value if isinstance(value, dict) else _NO_MEMBERS


def objects(holder: Object, key: str) -> Sequence[tuple[int, Object]]:
    """Return the objects in the array at `key`, each with its index."""
    value = holder.get(key)
    items = value if isinstance(value, list) else ()
    return [(at, item) for at, item in enumerate(items) if isinstance(item, dict)]


def word(holder: Object, key: str) -> str | None:
    """Return the string at `key`."""
    value = holder.get(key)
    return value if isinstance(value, str) else None


def number(holder: Object, key: str) -> int | None:
    """Return the index at `key`, which some servers send as a string."""
    value = holder.get(key)
    if type(value) is int:
        return value
    if (
        isinstance(value, str)
        and value.isascii()
        and value.isdigit()
        and len(value) <= _MOST_DIGITS
    ):
        return int(value)
    return None


def text_of(value: object) -> str:
    """Return `value` as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# Chat completions, Mistral's included.

_SENTINEL = "[DONE]"


def chat_steps(events: Iterable[Event], choice: int, *, indexed: bool) -> Iterator[Step]:
    """Yield the steps of one choice, up to `[DONE]`.

    Args:
        events: the events of the stream.
        choice: its index.
        indexed: whether the dialect promises an index per call; else each name starts a call.
    """
    calls = 0
    for event in events:
        if event.data.strip() == _SENTINEL:
            return
        chunk = read_object(event.data)
        if chunk is None:
            continue
        found = [
            value
            for at, value in objects(chunk, "choices")
            if (at if number(value, "index") is None else number(value, "index")) == choice
        ]
        if not found and not chunk.get("choices"):
            yield IncompleteDelta(event.number, "choices")
        for value in found:
            delta, reason = value.get("delta"), value.get("finish_reason")
            in_fragments = isinstance(delta, dict)
            whole = not in_fragments and isinstance(value.get("message"), dict)
            if not in_fragments and not whole:
                yield IncompleteDelta(event.number, "delta")
            body = member(value, "message" if whole else "delta")
            phase = EntryPhase.WHOLE if whole else EntryPhase.DELTA
            for entry in _chat_entries(body, event.number, phase):
                if indexed or whole:
                    index = entry.index
                else:
                    calls += bool(entry.name) or calls == 0
                    index = calls - 1
                yield entry._replace(index=index, finished=bool(reason))
            if reason is not None:
                yield FinishDelta(event.number, str(reason))


def _chat_entries(body: Object, event: int, phase: EntryPhase) -> Iterator[ClientCallDelta]:
    for at, value in objects(body, "tool_calls"):
        custom = not member(value, "function") and bool(member(value, "custom"))
        kind, field = ("custom", "input") if custom else ("function", "arguments")
        identifier = word(value, "id")
        yield _function_entry(member(value, kind), field)._replace(
            event=event,
            phase=phase,
            at=at,
            index=number(value, "index"),
            id=None if identifier == "null" else identifier,
            kind=kind,
        )
    if isinstance(body.get("function_call"), dict):
        legacy = _function_entry(member(body, "function_call"), "arguments")
        yield legacy._replace(event=event, phase=phase, index=-1, kind="legacy")


def _function_entry(function: Object, field: str) -> ClientCallDelta:
    value = function.get(field)
    unquoted = value is not None and not isinstance(value, str)
    text = text_of(value) if unquoted else word(function, field)
    return ClientCallDelta(
        0, EntryPhase.DELTA, name=word(function, "name"), text=text, unquoted=unquoted
    )


# Responses. The item of an event is found by its id, call id or output index.

_FIELDS = {
    "function_call": "arguments",
    "function_tool_call": "arguments",
    "custom_tool_call": "input",
}
"""The types of the calls that a client runs, and where their arguments are."""
_PART_EVENTS = {
    "response.function_call_arguments": ("function_call", "arguments"),
    "response.custom_tool_call_input": ("custom_tool_call", "input"),
}
_ITEM_EVENTS = {
    "response.output_item.added": EntryPhase.START,
    "response.output_item.done": EntryPhase.CLOSE,
}
_ENDS = frozenset({"completed", "incomplete", "failed", "cancelled"})
_KINDS = {"function_call": "function", "custom_tool_call": "custom"}


def responses_steps(events: Iterable[Event]) -> Iterator[Step]:
    """Yield the steps of a response."""
    items = _ItemNumbers()
    for event in events:
        frame = read_object(event.data)
        if frame is None:
            continue
        kind = word(frame, "type") or event.type
        stem, _, verb = kind.rpartition(".")
        if kind in _ITEM_EVENTS:
            entry = _item_entry(member(frame, "item"), event.number, _ITEM_EVENTS[kind])
            if entry is not None:
                index = items.of_item(entry, number(frame, "output_index"))
                items.kinds[index] = entry.kind
                yield entry._replace(index=index)
        elif stem in _PART_EVENTS and verb in ("delta", "done"):
            yield _part_entry(frame, event.number, stem, verb, items)
        elif stem == "response" and verb in _ENDS:
            yield from _end_steps(member(frame, "response"), verb, event.number, items)
            return
        elif word(frame, "object") == "response":
            yield from _end_steps(frame, word(frame, "status") or "completed", event.number, items)
            return


class _ItemNumbers:
    """Numbers the items, which events name by id, call id or output index."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, object], int] = {}
        self._closed: set[int] = set()
        self.kinds: dict[int, str] = {}
        """The kinds of items by their number, where they are known."""
        self._count = 0

    def of_part(self, item: str | None, index: int | None) -> int:
        return self._find((("item", item), ("index", index)))

    def of_item(self, entry: ClientCallDelta, output_index: int | None) -> int:
        keys = (("call", entry.id), ("item", entry.item), ("index", output_index))
        opened = entry.phase is EntryPhase.START
        found = self._find(keys[:2] if opened and (entry.id or entry.item) else keys, keys)
        if entry.phase is EntryPhase.CLOSE:
            self._closed.add(found)
        return found

    def _find(
        self,
        keys: tuple[tuple[str, object], ...],
        learnt: tuple[tuple[str, object], ...] = (),
    ) -> int:
        found = next((self._known[key] for key in keys if key in self._known and key[1]), None)
        if found is None:
            place = next((key for key in keys if key[0] == "index"), None)
            at = self._known.get(place) if place is not None and place[1] is not None else None
            found = at if at is not None and at not in self._closed else None
        if found is None:
            found = self._count
            self._count += 1
        for key in learnt or keys:
            if key[1] is not None and key[1] != "":
                self._known[key] = found
        return found


def _item_entry(item: Object, event: int, phase: EntryPhase) -> ClientCallDelta | None:
    """Return what `item` adds; None if it is not a call that clients run."""
    kind = word(item, "type") or ""
    if kind not in _FIELDS:
        return None
    return ClientCallDelta(
        event,
        phase,
        id=word(item, "call_id"),
        name=word(item, "name"),
        text=word(item, _FIELDS[kind]),
        item=word(item, "id"),
        kind=_KINDS.get(kind, kind),
    )


def _part_entry(
    frame: Object, event: int, stem: str, verb: str, items: _ItemNumbers
) -> ClientCallDelta:
    kind, field = _PART_EVENTS[stem]
    item = word(frame, "item_id")
    index = items.of_part(item, number(frame, "output_index"))
    return ClientCallDelta(
        event,
        EntryPhase.DELTA if verb == "delta" else EntryPhase.DONE,
        index=index,
        id=word(frame, "call_id"),
        text=word(frame, "delta" if verb == "delta" else field),
        item=item,
        kind=items.kinds.get(index, _KINDS[kind]),
    )


def _end_steps(response: Object, status: str, event: int, items: _ItemNumbers) -> Iterator[Step]:
    for at, item in objects(response, "output"):
        entry = _item_entry(item, event, EntryPhase.FINAL)
        if entry is not None:
            yield entry._replace(at=at, index=items.of_item(entry, at))
    yield FinishDelta(event, status)


# Dialects that begin, fill and end blocks: Anthropic's, Converse, Cohere's.

_TOOL = "tool_use"


def block_steps(events: Iterable[Event]) -> Iterator[Step]:
    """Yield the steps of a message; Bedrock wraps its events."""
    calls: set[int | None] = set()
    for event in events:
        for step in _block_steps(_unwrapped(read_object(event.data) or {}), event):
            if isinstance(step, ClientCallDelta):
                if step.phase is EntryPhase.START:
                    calls.add(step.index)
                elif step.phase is not EntryPhase.WHOLE and step.index not in calls:
                    continue  # the end of a text, or of a tool that the provider runs
            yield step


def _unwrapped(frame: Object) -> Object:
    """Return the event inside a Bedrock message; `frame` itself if it wraps none."""
    encoded = word(frame, "bytes")
    if encoded is None:
        return frame
    try:
        return read_object(b64decode(encoded, validate=True).decode(errors="replace")) or {}
    except (binascii.Error, ValueError):
        return {}


def _block_steps(frame: Object, event: Event) -> Iterator[Step]:
    """Yield the steps of an event, told by the types of Anthropic's and Cohere's APIs."""
    index, delta = number(frame, "index"), member(frame, "delta")
    match frame.get("type"):
        case "content_block_delta":
            if delta.get("type") == "input_json_delta":
                text = word(delta, "partial_json")
                yield ClientCallDelta(event.number, EntryPhase.DELTA, index=index, text=text)
        case "content_block_start":
            block = member(frame, "content_block")
            if block.get("type") == _TOOL:
                yield _tool_entry(block, event.number, EntryPhase.START)._replace(index=index)
        case "content_block_stop" | "tool-call-end":
            yield ClientCallDelta(event.number, EntryPhase.CLOSE, index=index)
        case "message_delta":
            yield from _stop_reason(delta, event.number)
        case "message" | "message_start" as kind:
            message = frame if kind == "message" else member(frame, "message")
            for at, block in objects(message, "content"):
                if block.get("type") == _TOOL:
                    yield _tool_entry(block, event.number, EntryPhase.WHOLE)._replace(at=at)
            yield from _stop_reason(message, event.number)
        case "tool-call-start" | "tool-call-delta" as kind:
            call = member(member(delta, "message"), "tool_calls")
            function = member(call, "function")
            yield ClientCallDelta(
                event.number,
                EntryPhase.START if kind == "tool-call-start" else EntryPhase.DELTA,
                index=index,
                id=word(call, "id"),
                name=word(function, "name"),
                text=word(function, "arguments"),
            )
        case "message-end":
            yield FinishDelta(event.number, word(delta, "finish_reason") or "")
        case _:
            yield from _converse_steps(frame, event)


def _tool_entry(block: Object, event: int, phase: EntryPhase) -> ClientCallDelta:
    arguments = block.get("input")
    return ClientCallDelta(
        event,
        phase,
        id=word(block, "id"),
        name=word(block, "name"),
        text=arguments if arguments is None or isinstance(arguments, str) else text_of(arguments),
    )


def _stop_reason(holder: Object, event: int) -> Iterator[FinishDelta]:
    reason = word(holder, "stop_reason")
    if reason is not None:
        yield FinishDelta(event, reason)


_CONVERSE_EVENTS = frozenset(
    {"contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop"}
)


def _converse_steps(frame: Object, event: Event) -> Iterator[Step]:
    """Yield the steps of a Converse event, whose type is the event's or the frame's only key."""
    kind = event.type
    if kind not in _CONVERSE_EVENTS:
        kind = next((key for key in frame if key in _CONVERSE_EVENTS), "")
        frame = member(frame, kind)
    index = number(frame, "contentBlockIndex")
    if kind == "contentBlockStart":
        use = member(member(frame, "start"), "toolUse")
        if use and use.get("type") != "server_tool_use":
            identifier, name = word(use, "toolUseId"), word(use, "name")
            yield ClientCallDelta(
                event.number, EntryPhase.START, index=index, id=identifier, name=name
            )
    elif kind == "contentBlockDelta":
        use = member(member(frame, "delta"), "toolUse")
        if use:
            text = word(use, "input")
            yield ClientCallDelta(event.number, EntryPhase.DELTA, index=index, text=text)
    elif kind == "contentBlockStop":
        yield ClientCallDelta(event.number, EntryPhase.CLOSE, index=index)
    elif kind == "messageStop":
        yield FinishDelta(event.number, word(frame, "stopReason") or "")


# Dialects whose calls come in one piece: Gemini and Ollama.


def gemini_steps(events: Iterable[Event], calls: Sequence[ToolCall]) -> Iterator[Step]:
    """Yield the steps of the first candidate.

    Gemini can also stream arguments by their JSON paths. Their result is taken from the reply; here
    it matters that they come in parts without a name.

    Args:
        events: the events of the stream.
        calls: the calls of the reply; they have the joined arguments.
    """
    arguments_at = {call.start_event: call.arguments for call in calls}
    count, unsent = 0, ""
    for event in events:
        outer: Object = read_object(event.data) or {}
        frame = member(outer, "response") or outer
        for _, candidate in objects(frame, "candidates")[:1]:
            for at, part in objects(member(candidate, "content"), "parts"):
                if not isinstance(part.get("functionCall"), dict):
                    continue
                call = member(part, "functionCall")
                identifier, name = word(call, "id"), word(call, "name")
                if name or not count:
                    count += 1
                    streamed = call.get("willContinue") is True or "partialArgs" in call
                    unsent = arguments_at.get(event.number, "") if streamed else ""
                    phase = EntryPhase.START if streamed else EntryPhase.WHOLE
                    arguments = call.get("args")
                    text = "{}" if arguments is None else text_of(arguments)
                else:
                    # The first part without a name gets the arguments of all such parts.
                    phase, identifier, name = EntryPhase.DELTA, None, None
                    text, unsent = unsent, ""
                yield ClientCallDelta(
                    event.number,
                    phase,
                    at=at,
                    index=count - 1,
                    id=identifier,
                    name=name,
                    text=text,
                )
            reason = candidate.get("finishReason")
            if reason is not None:
                yield FinishDelta(event.number, str(reason))


def ollama_steps(events: Iterable[Event]) -> Iterator[Step]:
    """Yield the steps of an answer."""
    for event in events:
        line = read_object(event.data) or {}
        message = member(line, "message")
        for at, entry in objects(message, "tool_calls"):
            function = member(entry, "function")
            arguments = function.get("arguments")
            text = arguments if isinstance(arguments, str) else text_of(arguments or {})
            identifier, name = word(entry, "id"), word(function, "name")
            yield ClientCallDelta(
                event.number, EntryPhase.WHOLE, at=at, id=identifier, name=name, text=text
            )
        if message and not message.get("content"):
            yield EmptyTextDelta(event.number)
        if line.get("done") is True:
            yield FinishDelta(event.number, word(line, "done_reason") or "stop")
