"""Responses as steps: which item an event is about is found out by all three names that it has."""

from collections.abc import Iterable, Iterator

from deltatape.model.stream import Event
from deltatape.suspects.members import Object, member, number, objects, word
from deltatape.suspects.steps import Entry, Finish, Phase, Step
from deltatape.wire.json_value import read_object

_FIELDS = {
    "function_call": "arguments",
    "function_tool_call": "arguments",
    "custom_tool_call": "input",
}
"""The types of the calls that a client runs, and where their arguments are."""
_PARTS = {
    "response.function_call_arguments": ("function_call", "arguments"),
    "response.custom_tool_call_input": ("custom_tool_call", "input"),
}
_ITEMS = {
    "response.output_item.added": Phase.START,
    "response.output_item.done": Phase.CLOSE,
}
_ENDS = frozenset({"completed", "incomplete", "failed", "cancelled"})
_KINDS = {"function_call": "function", "custom_tool_call": "custom"}


def responses_steps(events: Iterable[Event]) -> Iterator[Step]:
    """The steps of a response, up to its end."""
    names = _Names()
    for event in events:
        frame = read_object(event.data)
        if frame is None:
            continue
        kind = word(frame, "type") or event.type
        stem, _, verb = kind.rpartition(".")
        if kind in _ITEMS:
            yield from _item(frame, event.number, _ITEMS[kind], names)
        elif stem in _PARTS and verb in ("delta", "done"):
            yield _part(frame, event.number, stem, verb, names)
        elif stem == "response" and verb in _ENDS:
            yield from _end(member(frame, "response"), verb, event.number, names)
            return
        elif word(frame, "object") == "response":
            yield from _end(frame, word(frame, "status") or "completed", event.number, names)
            return


class _Names:
    """The calls by the names that their items have: id, call id, place in the output."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, object], int] = {}
        self._closed: set[int] = set()
        self.kinds: dict[int, str] = {}
        """The kinds of items by their number, where they are known."""
        self._count = 0

    def of_part(self, item: str | None, index: int | None) -> int:
        return self._find((("item", item), ("index", index)))

    def of_item(self, entry: Entry, output_index: int | None) -> int:
        keys = (("call", entry.id), ("item", entry.item), ("index", output_index))
        opened = entry.phase is Phase.START
        found = self._find(keys[:2] if opened and (entry.id or entry.item) else keys, keys)
        if entry.phase is Phase.CLOSE:
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


def _item(frame: Object, event: int, phase: Phase, names: _Names) -> Iterator[Entry]:
    entry = _read(member(frame, "item"), event, phase)
    if entry is not None:
        index = names.of_item(entry, number(frame, "output_index"))
        names.kinds[index] = entry.kind
        yield entry._replace(index=index)


def _read(item: Object, event: int, phase: Phase) -> Entry | None:
    """What `item` says, None if it is no call that a client runs."""
    kind = word(item, "type") or ""
    if kind not in _FIELDS:
        return None
    return Entry(
        event,
        phase,
        id=word(item, "call_id"),
        name=word(item, "name"),
        text=word(item, _FIELDS[kind]),
        item=word(item, "id"),
        kind=_KINDS.get(kind, kind),
    )


def _part(frame: Object, event: int, stem: str, verb: str, names: _Names) -> Entry:
    kind, field = _PARTS[stem]
    item = word(frame, "item_id")
    index = names.of_part(item, number(frame, "output_index"))
    return Entry(
        event,
        Phase.DELTA if verb == "delta" else Phase.DONE,
        index=index,
        id=word(frame, "call_id"),
        text=word(frame, "delta" if verb == "delta" else field),
        item=item,
        kind=names.kinds.get(index, _KINDS[kind]),
    )


def _end(response: Object, status: str, event: int, names: _Names) -> Iterator[Step]:
    for at, item in objects(response, "output"):
        entry = _read(item, event, Phase.FINAL)
        if entry is not None:
            yield entry._replace(at=at, index=names.of_item(entry, at))
    yield Finish(event, status)
