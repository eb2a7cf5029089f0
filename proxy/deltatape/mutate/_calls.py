"""Find the tool calls of a draft, with every place of their arguments.

The shape of the events decides, not the dialect's name: entries of `choices[].delta.tool_calls`
(chat), items and their deltas by `item_id` or `output_index` (Responses), blocks by index (Messages
and Converse).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from deltatape.model.exchange import Exchange
from deltatape.mutate._draft import MutableEvent, MutableExchange
from deltatape.wire.json_edit import Path, at, listed
from deltatape.wire.json_value import parse


class ArgumentsPiece(NamedTuple):
    """A string on the wire with (a piece of) a call's arguments."""

    unit: MutableEvent
    path: Path

    @property
    def text(self) -> str:
        """Return its text; "" if it is not a string."""
        found = at(self.unit.value, *self.path)
        return found if isinstance(found, str) else ""

    def write(self, text: str) -> None:
        """Replace its text."""
        self.unit.put_text(self.path, text)


@dataclass(slots=True, kw_only=True)
class CallSite:
    """A call: where it is opened, and where its arguments are."""

    name: str
    opened: MutableEvent
    pieces: list[ArgumentsPiece] = field(default_factory=list)
    """Their concatenation is the arguments."""
    copies: list[ArgumentsPiece] = field(default_factory=list)
    """Each repeats all of the arguments."""

    @property
    def text(self) -> str:
        """Return the arguments."""
        return "".join(piece.text for piece in self.pieces)

    def splice(self, start: int, end: int, text: str) -> None:
        """Replace `[start, end)` of the arguments; the pieces keep their boundaries."""
        new = self.text[:start] + text + self.text[end:]
        ends = list(accumulate(len(piece.text) for piece in self.pieces))
        filled = [place for place, piece in enumerate(self.pieces) if piece.text]
        last_filled = filled[-1] if filled else 0
        holder = next((place for place, stop in enumerate(ends) if start < stop), last_filled)
        for place, (piece, stop) in enumerate(zip(self.pieces, ends, strict=True)):
            was = piece.text
            begin = stop - len(was)
            first = min(max(start - begin, 0), len(was))
            last = min(max(end - begin, 0), len(was))
            now = was[:first] + (text if place == holder else "") + was[last:]
            if now != was:
                piece.write(now)
        self.repeat(new)

    def spread(self, text: str) -> None:
        """Spread `text` over the pieces, in about equal parts."""
        number = len(self.pieces)
        for place, piece in enumerate(self.pieces):
            piece.write(text[place * len(text) // number : (place + 1) * len(text) // number])
        self.repeat(text)

    def repeat(self, text: str) -> None:
        """Write `text` into the copies."""
        for copy in self.copies:
            copy.write(text)


class ChatCallEntry(NamedTuple):
    """An element of `tool_calls` in a chat completion's delta."""

    unit: MutableEvent
    path: Path
    choice: int
    """Place of its choice in the event."""

    def get(self, *path: str) -> object:
        """Return the value at `path`."""
        return at(self.unit.value, *self.path, *path)

    def put(self, path: Path, source: str) -> None:
        """Set the value at `path`."""
        self.unit.put((*self.path, *path), source)

    def put_text(self, path: Path, text: str) -> None:
        """Set the value at `path` to a string."""
        self.unit.put_text((*self.path, *path), text)

    def drop(self, *path: str) -> None:
        """Remove the value at `path`."""
        self.unit.drop((*self.path, *path))

    def remove(self) -> None:
        """Remove the entry, and its event if nothing else is in it.

        If several entries of an event are to be removed, the last comes first.
        """
        unit, path = self.unit, self.path
        unit.drop(path)
        if listed(unit.value, *path[:-1]):
            return
        unit.drop(path[:-1])
        choice = ("choices", self.choice)
        delta = at(unit.value, *choice, "delta")
        has_content = isinstance(delta, dict) and any(delta.values())
        finished = at(unit.value, *choice, "finish_reason") or at(unit.value, "usage")
        if not has_content and not finished:
            unit.removed = True

    @property
    def arguments(self) -> ArgumentsPiece:
        """Return the place of its arguments."""
        return ArgumentsPiece(self.unit, (*self.path, "function", "arguments"))


@dataclass(slots=True, kw_only=True)
class ChatCall(CallSite):
    """A call of a chat completion: its entries, >= 1, the first opens it."""

    entries: list[ChatCallEntry]
    id: str
    choice: str
    """The index of its choice on the wire."""

    @property
    def later(self) -> list[ChatCallEntry]:
        """Return the entries after the first."""
        return self.entries[1:]

    def remove_later(self) -> None:
        """Remove all entries but the first."""
        for entry in reversed(self.later):
            entry.remove()

    def merge(self) -> None:
        """Send the whole call, arguments included, in its first entry."""
        if self.later:
            self.entries[0].put_text(("function", "arguments"), self.text)
        self.remove_later()


def entries(draft: MutableExchange) -> Iterator[ChatCallEntry]:
    """Yield all entries, in wire order."""
    for unit in draft.units:
        for choice, value in enumerate(listed(unit.value, "choices")):
            for place, entry in enumerate(listed(value, "delta", "tool_calls")):
                if isinstance(entry, dict):
                    path = ("choices", choice, "delta", "tool_calls", place)
                    yield ChatCallEntry(unit, path, choice)


def chat_calls(draft: MutableExchange) -> list[ChatCall]:
    """Return the calls of a chat completion, in order of opening."""
    found: list[ChatCall] = []
    open_: dict[tuple[str, str], ChatCall] = {}
    for entry in entries(draft):
        index, id_, name = entry.get("index"), entry.get("id"), entry.get("function", "name")
        choice = str(at(entry.unit.value, "choices", entry.choice, "index"))
        key = (choice, str(index))
        call = open_.get(key)
        is_new = isinstance(id_, str) and id_ != "" and (call is None or id_ != call.id)
        if call is None or is_new:
            call = ChatCall(
                name=name if isinstance(name, str) else "",
                opened=entry.unit,
                entries=[],
                id=id_ if isinstance(id_, str) else "",
                choice=choice,
            )
            open_[key] = call
            found.append(call)
        call.entries.append(entry)
        if isinstance(entry.get("function", "arguments"), str):
            call.pieces.append(entry.arguments)
    return found


_DELTA = "response.function_call_arguments.delta"
_DONE = "response.function_call_arguments.done"
_ITEM = ("response.output_item.added", "response.output_item.done")


def response_calls(draft: MutableExchange) -> list[CallSite]:
    """Return the opened calls of a Responses stream, in order of opening."""
    found: dict[object, CallSite] = {}
    for unit in draft.units:
        kind, item = at(unit.value, "type"), at(unit.value, "item")
        key = str(at(unit.value, "output_index"))
        if kind in _ITEM and at(item, "type") == "function_call":
            call = found.setdefault(key, CallSite(name=str(at(item, "name")), opened=unit))
            if kind == "response.output_item.done":
                call.copies.append(ArgumentsPiece(unit, ("item", "arguments")))
        elif kind == _DELTA and key in found:
            found[key].pieces.append(ArgumentsPiece(unit, ("delta",)))
        elif kind == _DONE and key in found:
            found[key].copies.append(ArgumentsPiece(unit, ("arguments",)))
        for place, item in enumerate(listed(unit.value, "response", "output")):
            if at(item, "type") == "function_call" and str(place) in found:
                path = ("response", "output", place, "arguments")
                found[str(place)].copies.append(ArgumentsPiece(unit, path))
    return list(found.values())


def message_calls(draft: MutableExchange) -> list[CallSite]:
    """Return the calls of a Messages stream, in order of opening."""
    found: dict[object, CallSite] = {}
    for unit in draft.units:
        key = str(at(unit.value, "index"))
        block = at(unit.value, "content_block")
        if at(block, "type") == "tool_use":
            found[key] = CallSite(name=str(at(block, "name")), opened=unit)
        elif at(unit.value, "delta", "type") == "input_json_delta" and key in found:
            found[key].pieces.append(ArgumentsPiece(unit, ("delta", "partial_json")))
    return list(found.values())


def converse_calls(draft: MutableExchange) -> list[CallSite]:
    """Return the calls of a Converse stream, in order of opening."""
    found: dict[object, CallSite] = {}
    for unit in draft.units:
        key = str(at(unit.value, "contentBlockIndex"))
        opened = at(unit.value, "start", "toolUse")
        if opened is not None:
            found.pop(key, None)
            if at(opened, "type") is None:  # others are the provider's to run
                found[key] = CallSite(name=str(at(opened, "name")), opened=unit)
        elif at(unit.value, "delta", "toolUse") is not None and key in found:
            found[key].pieces.append(ArgumentsPiece(unit, ("delta", "toolUse", "input")))
    return list(found.values())


def calls(draft: MutableExchange) -> list[CallSite]:
    """Return the calls of any dialect that streams arguments in pieces."""
    return [
        *chat_calls(draft),
        *response_calls(draft),
        *message_calls(draft),
        *converse_calls(draft),
    ]


def echoed(piece: ArgumentsPiece) -> ArgumentsPiece:
    """Return the same piece in a new event without other content."""
    unit, path = piece.unit.like(), piece.path
    if path[-2:] != ("function", "arguments"):
        return ArgumentsPiece(unit, path)
    *choice, _, _, _ = entry = path[:-2]
    unit.put((*choice, "delta"), f'{{"tool_calls":[{unit.source(entry)}]}}')
    if at(unit.value, *choice, "finish_reason") is not None:
        unit.put((*choice, "finish_reason"), "null")
    return ArgumentsPiece(unit, (*choice, "delta", "tool_calls", 0, *path[-2:]))


_SCHEMAS = (("parameters",), ("input_schema",), ("inputSchema", "json"))


def needs(exchange: Exchange, name: str) -> bool | None:
    """Return whether the request's tool `name` has required parameters; None if unknown."""
    request = parse(exchange.request.content.decode(errors="replace")).value
    for declared in (*listed(request, "tools"), *listed(request, "toolConfig", "tools")):
        tool = at(declared, "function") or at(declared, "toolSpec") or declared
        if at(tool, "name") == name:
            for path in _SCHEMAS:
                if isinstance(at(tool, *path), dict):
                    return bool(listed(tool, *path, "required"))
    return None
