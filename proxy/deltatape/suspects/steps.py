"""A delivered stream as clients see it: what each event asks them to do, in any dialect.

A `ClientCallDelta` is everything that concerns a call: that it begins, a fragment of its arguments,
their end, a snapshot of the whole. Absent and `null` members are None here and empty strings stay
empty: the difference is what some clients stumble over.

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
    """An event of its own says that the call begins; it may already bring arguments."""
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
    """Place in its event's list of calls."""
    index: int | None = None  # type: ignore[assignment]
    """The key by which the dialect tells calls apart."""
    id: str | None = None
    name: str | None = None
    text: str | None = None
    """Arguments."""
    item: str | None = None
    """A second id, which no client answers to."""
    kind: str = "function"
    """`function`, `custom`, `legacy`, or the item's type where it is none of the dialect's."""
    unquoted: bool = False
    """Whether the arguments are JSON where a string with JSON in it is promised."""
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
_NOTHING: Object = {}
_LONGEST = 9
"""Digits of an index that stands in a string."""


def member(holder: Object, key: str) -> Object:
    """Return the object at `key`; empty if there is none."""
    value = holder.get(key)
    return value if isinstance(value, dict) else _NOTHING


def objects(holder: Object, key: str) -> Sequence[tuple[int, Object]]:
    """Return the objects in the array at `key`, each with its index."""
    value = holder.get(key)
    found = value if isinstance(value, list) else ()
    return [(at, one) for at, one in enumerate(found) if isinstance(one, dict)]


def word(holder: Object, key: str) -> str | None:
    """Return the string at `key`."""
    value = holder.get(key)
    return value if isinstance(value, str) else None


def number(holder: Object, key: str) -> int | None:
    """Return the index at `key`, which some servers send as a string."""
    value = holder.get(key)
    if type(value) is int:
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _LONGEST:
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
        events: of the stream.
        choice: its index.
        indexed: whether the dialect promises an index per call; else calls are counted.
    """
    counter = None if indexed else _Counter()
    for event in events:
        if event.data.strip() == _SENTINEL:
            return
        chunk = read_object(event.data)
        if chunk is None:
            continue
        found = [
            one
            for at, one in objects(chunk, "choices")
            if (at if number(one, "index") is None else number(one, "index")) == choice
        ]
        if not found and not chunk.get("choices"):
            yield IncompleteDelta(event.number, "choices")
        for one in found:
            yield from _choice_steps(one, event.number, counter)


class _Counter:
    """Counts calls where entries need no index: each name starts one."""

    def __init__(self) -> None:
        self._last = -1

    def place(self, entry: ClientCallDelta) -> ClientCallDelta:
        if entry.name or self._last < 0:
            self._last += 1
        return entry._replace(index=self._last)


def _choice_steps(choice: Object, event: int, counter: _Counter | None) -> Iterator[Step]:
    delta = choice.get("delta")
    whole = isinstance(choice.get("message"), dict) and not isinstance(delta, dict)
    if not isinstance(delta, dict) and not whole:
        yield IncompleteDelta(event, "delta")
    reason = choice.get("finish_reason")
    body = member(choice, "message" if whole else "delta")
    for entry in _chat_entries(body, event, EntryPhase.WHOLE if whole else EntryPhase.DELTA):
        placed = entry if counter is None or whole else counter.place(entry)
        yield placed._replace(finished=bool(reason))
    if reason is not None:
        yield FinishDelta(event, str(reason))


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


# Responses. Which item an event is about is found out by all three names that it has.

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
    names = _Names()
    for event in events:
        frame = read_object(event.data)
        if frame is None:
            continue
        kind = word(frame, "type") or event.type
        stem, _, verb = kind.rpartition(".")
        if kind in _ITEM_EVENTS:
            yield from _item_steps(frame, event.number, _ITEM_EVENTS[kind], names)
        elif stem in _PART_EVENTS and verb in ("delta", "done"):
            yield _part_entry(frame, event.number, stem, verb, names)
        elif stem == "response" and verb in _ENDS:
            yield from _end_steps(member(frame, "response"), verb, event.number, names)
            return
        elif word(frame, "object") == "response":
            yield from _end_steps(frame, word(frame, "status") or "completed", event.number, names)
            return


class _Names:
    """Maps an item's identifiers (id, call id, output index) to its call."""

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


def _item_steps(
    frame: Object, event: int, phase: EntryPhase, names: _Names
) -> Iterator[ClientCallDelta]:
    entry = _item_entry(member(frame, "item"), event, phase)
    if entry is not None:
        index = names.of_item(entry, number(frame, "output_index"))
        names.kinds[index] = entry.kind
        yield entry._replace(index=index)


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


def _part_entry(frame: Object, event: int, stem: str, verb: str, names: _Names) -> ClientCallDelta:
    kind, field = _PART_EVENTS[stem]
    item = word(frame, "item_id")
    index = names.of_part(item, number(frame, "output_index"))
    return ClientCallDelta(
        event,
        EntryPhase.DELTA if verb == "delta" else EntryPhase.DONE,
        index=index,
        id=word(frame, "call_id"),
        text=word(frame, "delta" if verb == "delta" else field),
        item=item,
        kind=names.kinds.get(index, _KINDS[kind]),
    )


def _end_steps(response: Object, status: str, event: int, names: _Names) -> Iterator[Step]:
    for at, item in objects(response, "output"):
        entry = _item_entry(item, event, EntryPhase.FINAL)
        if entry is not None:
            yield entry._replace(at=at, index=names.of_item(entry, at))
    yield FinishDelta(event, status)


# Dialects that begin, fill and end blocks: Anthropic's, Converse, Cohere's.

_TOOL = "tool_use"


def block_steps(events: Iterable[Event]) -> Iterator[Step]:
    """Yield the steps of a message; Bedrock wraps its events."""
    calls: set[int | None] = set()
    for event in events:
        frame = _carried(read_object(event.data) or {})
        reader = _BLOCK_EVENTS.get(word(frame, "type") or "")
        steps = reader(frame, event.number) if reader else _converse_steps(frame, event)
        for step in steps:
            if isinstance(step, ClientCallDelta):
                if step.phase is EntryPhase.START:
                    calls.add(step.index)
                elif step.phase is not EntryPhase.WHOLE and step.index not in calls:
                    continue  # of a text, or of a tool that the provider runs
            yield step


def _carried(frame: Object) -> Object:
    """Return the event inside a Bedrock message; `frame` itself if it wraps none."""
    encoded = word(frame, "bytes")
    if encoded is None:
        return frame
    try:
        return read_object(b64decode(encoded, validate=True).decode(errors="replace")) or {}
    except (binascii.Error, ValueError):
        return {}


def _block_start(frame: Object, event: int) -> Iterator[Step]:
    block = member(frame, "content_block")
    if block.get("type") == _TOOL:
        yield _tool_entry(block, event, EntryPhase.START)._replace(index=number(frame, "index"))


def _tool_entry(block: Object, event: int, phase: EntryPhase) -> ClientCallDelta:
    given = block.get("input")
    return ClientCallDelta(
        event,
        phase,
        id=word(block, "id"),
        name=word(block, "name"),
        text=given if given is None or isinstance(given, str) else text_of(given),
    )


def _block_delta(frame: Object, event: int) -> Iterator[Step]:
    delta = member(frame, "delta")
    if delta.get("type") == "input_json_delta":
        index = number(frame, "index")
        yield ClientCallDelta(
            event, EntryPhase.DELTA, index=index, text=word(delta, "partial_json")
        )


def _block_stop(frame: Object, event: int) -> Iterator[Step]:
    yield ClientCallDelta(event, EntryPhase.CLOSE, index=number(frame, "index"))


def _message_delta(frame: Object, event: int) -> Iterator[Step]:
    reason = word(member(frame, "delta"), "stop_reason")
    if reason is not None:
        yield FinishDelta(event, reason)


def _message(frame: Object, event: int) -> Iterator[Step]:
    for at, block in objects(frame, "content"):
        if block.get("type") == _TOOL:
            yield _tool_entry(block, event, EntryPhase.WHOLE)._replace(at=at)
    reason = word(frame, "stop_reason")
    if reason is not None:
        yield FinishDelta(event, reason)


def _message_start(frame: Object, event: int) -> Iterator[Step]:
    yield from _message(member(frame, "message"), event)


def _converse_steps(frame: Object, event: Event) -> Iterator[Step]:
    """Yield the steps of a Converse event."""
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
            yield ClientCallDelta(
                event.number, EntryPhase.DELTA, index=index, text=word(use, "input")
            )
    elif kind == "contentBlockStop":
        yield ClientCallDelta(event.number, EntryPhase.CLOSE, index=index)
    elif kind == "messageStop":
        yield FinishDelta(event.number, word(frame, "stopReason") or "")


def _cohere_start(frame: Object, event: int) -> Iterator[Step]:
    yield _cohere_entry(frame, event, EntryPhase.START)


def _cohere_delta(frame: Object, event: int) -> Iterator[Step]:
    yield _cohere_entry(frame, event, EntryPhase.DELTA)


def _cohere_entry(frame: Object, event: int, phase: EntryPhase) -> ClientCallDelta:
    call = member(member(member(frame, "delta"), "message"), "tool_calls")
    function = member(call, "function")
    return ClientCallDelta(
        event,
        phase,
        index=number(frame, "index"),
        id=word(call, "id"),
        name=word(function, "name"),
        text=word(function, "arguments"),
    )


def _cohere_end(frame: Object, event: int) -> Iterator[Step]:
    yield FinishDelta(event, word(member(frame, "delta"), "finish_reason") or "")


_BLOCK_EVENTS = {
    "content_block_start": _block_start,
    "content_block_delta": _block_delta,
    "content_block_stop": _block_stop,
    "message_delta": _message_delta,
    "message_start": _message_start,
    "message": _message,
    "tool-call-start": _cohere_start,
    "tool-call-delta": _cohere_delta,
    "tool-call-end": _block_stop,
    "message-end": _cohere_end,
}
_CONVERSE_EVENTS = frozenset(
    {"contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop"}
)


# Dialects whose calls come in one piece: Gemini and Ollama.


def gemini_steps(events: Iterable[Event], calls: Sequence[ToolCall]) -> Iterator[Step]:
    """Yield the steps of the first candidate.

    Gemini can also stream arguments by their JSON paths. What they amount to is the reference's;
    here it counts that they come in parts without a name.

    Args:
        events: of the stream.
        calls: of the reply; what streamed arguments amount to.
    """
    opened = {call.start_event: call.arguments for call in calls}
    nameless = _Nameless()
    for event in events:
        outer: Object = read_object(event.data) or {}
        frame = member(outer, "response") or outer
        for _, candidate in objects(frame, "candidates")[:1]:
            for at, part in objects(member(candidate, "content"), "parts"):
                if isinstance(part.get("functionCall"), dict):
                    call = member(part, "functionCall")
                    yield nameless.read(call, event.number, at, opened)
            reason = candidate.get("finishReason")
            if reason is not None:
                yield FinishDelta(event.number, str(reason))


class _Nameless:
    """Gives the first nameless part of a call the arguments of all its parts."""

    def __init__(self) -> None:
        self._count = -1
        self._owed: str | None = None

    def read(self, call: Object, event: int, at: int, opened: dict[int, str]) -> ClientCallDelta:
        name, identifier = word(call, "name"), word(call, "id")
        if name or self._count < 0:
            self._count += 1
            streamed = call.get("willContinue") is True or "partialArgs" in call
            self._owed = opened.get(event) if streamed else None
            given = call.get("args")
            text = "{}" if given is None else text_of(given)
            phase = EntryPhase.START if streamed else EntryPhase.WHOLE
            return ClientCallDelta(
                event, phase, at=at, index=self._count, id=identifier, name=name, text=text
            )
        owed, self._owed = self._owed, None
        return ClientCallDelta(event, EntryPhase.DELTA, at=at, index=self._count, text=owed or "")


def ollama_steps(events: Iterable[Event]) -> Iterator[Step]:
    """Yield the steps of an answer."""
    for event in events:
        line = read_object(event.data) or {}
        message = member(line, "message")
        for at, entry in objects(message, "tool_calls"):
            function = member(entry, "function")
            given = function.get("arguments")
            text = given if isinstance(given, str) else text_of(given or {})
            identifier, name = word(entry, "id"), word(function, "name")
            yield ClientCallDelta(
                event.number, EntryPhase.WHOLE, at=at, id=identifier, name=name, text=text
            )
        if message and not message.get("content"):
            yield EmptyTextDelta(event.number)
        if line.get("done") is True:
            yield FinishDelta(event.number, word(line, "done_reason") or "stop")
