"""The output items of a response, and how events refer to them.

The documented key is `output_index`. Gateways count it wrongly, and change or drop the other two
names that an item has; so all three are looked at:

- an event about a part (a delta) belongs to the item with its `item_id`, if exactly one has it,
  else to the newest one at its `output_index` that can have such a part; without an
  `output_index`, to the newest one that is not done;
- a whole item is the one with which it shares most: the `call_id` counts more than the `id`, and
  that more than the place. An item that is done is taken again only by a name of its own.

Of the items that share a name only the latest are looked at: no healthy response has more.
"""

from collections.abc import Iterator, Mapping, Sequence

from deltatape.dialects._calls import CallDraft
from deltatape.dialects._choice import ChoiceDraft
from deltatape.dialects._json import Frame, as_array, as_object, get_index, get_str
from deltatape.dialects._source_text import Element, Elements, JsonSource, MemberValue, WholeString
from deltatape.dialects.openai_responses.item import ItemDraft
from deltatape.dialects.openai_responses.kinds import SourceRank, shape_of
from deltatape.model.reply import CallKind, Thought
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event

REASONING = "reasoning"
"""The type of items that hold thoughts."""
_LATEST = 16
_INTERNAL = frozenset({CallKind.SERVER, CallKind.MCP})


class OutputItems:
    """The output items of one response. `resumed`: the stream began in the middle."""

    def __init__(self, choice: ChoiceDraft, request: RequestSummary) -> None:
        self.resumed = False
        self._choice = choice
        self._request = request
        self._all: list[ItemDraft] = []
        self._by_index: dict[int, list[ItemDraft]] = {}
        self._by_id: dict[str, list[ItemDraft]] = {}
        self._by_call: dict[str, list[ItemDraft]] = {}
        self._key: tuple[object, ...] = ()
        self._latest: ItemDraft | None = None

    def __bool__(self) -> bool:
        return bool(self._all)

    def with_part(self, frame: Frame, kind: str, event: Event, *, call: bool) -> ItemDraft:
        """Return the item of an event about a part.

        Args:
            frame: the event's JSON.
            kind: what to open if there is no such item.
            event: what carried it.
            call: whether it is a part of a call.
        """
        key = (frame.get("output_index"), frame.get("item_id"), kind)
        latest = self._latest
        if latest is None or key != self._key:
            found = self._find(frame, kind, event, call=call)
            latest = self._latest = found or self._open_for(frame, kind, event)
            self._key = key
        return latest

    def _find(self, frame: Frame, kind: str, event: Event, *, call: bool) -> ItemDraft | None:
        """Find the item of an event about a part."""
        index, identifier = get_index(frame, "output_index"), get_str(frame, "item_id")
        named = _fitting(self._by_id.get(identifier or "", ()), call=call)
        exact = [one for one in named if one.index == index]
        if exact:
            return exact[-1]
        if len(named) == 1:
            detail = "an event has the item_id of one item and the output_index of another"
            self._choice.note_unexpected(detail, frame, event)
            return named[0]
        here = _fitting(self._at(index), call=call)
        here = [one for one in here if not one.done or (one.kind == kind and index is not None)]
        if not here:
            return None
        found = next((one for one in reversed(here) if not one.done), here[-1])
        if identifier:
            found.note_other_id(identifier, event, get_str(frame, "type") or event.type)
            self._enter(found, identifier, None)
        return found

    def _open_for(self, frame: Frame, kind: str, event: Event) -> ItemDraft:
        """Open an item about which only this event of a part is known."""
        self._note_unannounced(frame, event)
        found = self._open(kind, get_index(frame, "output_index"))
        shape = shape_of({"type": kind}, self._request)
        if shape is not None:
            found.open_call(shape, event)
        identifier = get_str(frame, "item_id")
        if identifier:
            found.ids[identifier] = None
        self._enter(found, identifier, None)
        return found

    def announce(self, frame: Frame, event: Event) -> None:
        """Handle `response.output_item.added`."""
        item = self._item(frame, event)
        if item is None:
            return
        index = get_index(frame, "output_index")
        again = self._match(item, index)
        if again is not None and again.index == index and self._is_named(again, item):
            self._choice.note_unexpected("an output item is added twice", frame, event)
        else:
            again = self._open(get_str(item, "type") or "", index)
        again.announced = True
        again.take(item, SourceRank.ADDED, event, MemberValue(WholeString(event.data), "item"))
        self._note_place(again, frame, event)
        self._enter_item(again, item)

    def end(self, frame: Frame, event: Event) -> None:
        """Handle `response.output_item.done`."""
        item = self._item(frame, event)
        if item is None:
            return
        index = get_index(frame, "output_index")
        found = self._match(item, index)
        if found is None:
            found = self._open(get_str(item, "type") or "", index)
            self._note_unannounced(frame, event)
        elif found.done:
            self._choice.note_unexpected("an output item is done twice", frame, event)
        elif not found.announced:
            self._note_unannounced(frame, event)
        self._latest = None
        found.take(item, SourceRank.ITEM_DONE, event, MemberValue(WholeString(event.data), "item"))
        self._enter_item(found, item)

    def list(self, output: object, event: Event, source: JsonSource, *, streamed: bool) -> int:
        """Take the output of a final or unstreamed response; return the number of items.

        Args:
            output: the array.
            event: what carried it.
            source: where it stands.
            streamed: whether events about its items should have come before.
        """
        entries = as_array(output) or ()
        elements = Elements(source)
        unlisted = self._by_kind()
        self._latest = None
        for place, item in enumerate(map(as_object, entries)):
            if item is None:
                self._choice.note_unexpected("an output item is no object", output, event)
                continue
            found = self._match(item, place, listing=True)
            if found is None and shape_of(item, self._request) is None:
                rest = unlisted.get(get_str(item, "type") or "", ())
                found = next((one for one in rest if not one.listed), None)
            if found is None:
                found = self._open(get_str(item, "type") or "", place)
                if streamed and not self.resumed and shape_of(item, self._request) is not None:
                    phrase = "a call is in the final response and was never streamed"
                    self._choice.note_unexpected(phrase, item, event)
            found.listed = True
            found.take(item, SourceRank.SNAPSHOT, event, Element(elements, place))
            self._enter_item(found, item)
        return len(entries)

    def note_unfinished(self, event: Event, *, listed: bool) -> None:
        """Note items without an end of their own, although the response is complete.

        Args:
            event: what says that the response is complete.
            listed: whether it lists items, so that calls may be missing there.
        """
        for item in self._all:
            if not item.done and item.announced:
                phrase = "an output item has no response.output_item.done"
                self._choice.note_unexpected(phrase, event.data, event)
            call = item.call
            if listed and not item.listed and call is not None and call.kind not in _INTERNAL:
                detail = "the final response does not list the call"
                call.note("listed", "T015", detail, event.data, event)

    def settle(self) -> None:
        """Settle arguments and texts of all items. Call once, at the end."""
        for item in self._all:
            self._choice.add_fragments(item.settle(resumed=self.resumed))
            if item.kind == REASONING:
                identifier = next(iter(item.ids), None)
                thought = Thought(signature=item.encrypted, id=identifier)
                self._choice.thoughts.append(thought)
        self._drop_copies()

    def _drop_copies(self) -> None:
        """Drop calls that repeat an earlier one with its id, unless a final response lists them."""
        first: dict[str, CallDraft] = {}
        copies = set()
        for item in self._all:
            call = item.call
            if call is None or not call.first_id:
                continue
            twin = first.setdefault(call.first_id, call)
            if twin is call or item.listed or twin.name != call.name or not twin.repeats(call):
                continue
            detail = f"the call {call.first_id!r} is sent again"
            twin.note("copy", "T020", detail, call.raw, call.opened)
            copies.add(id(call))
        self._choice.calls = [call for call in self._choice.calls if id(call) not in copies]

    def _item(self, frame: Frame, event: Event) -> Frame | None:
        item = as_object(frame.get("item"))
        if item is None:
            self._choice.note_unexpected("an event about an output item has none", frame, event)
        return item

    def _match(self, item: Frame, index: int | None, *, listing: bool = False) -> ItemDraft | None:
        """Return the known item that `item` is. `listing`: find each only once."""
        kind, best, most = get_str(item, "type"), None, 0
        call_id, identifier = get_str(item, "call_id") or "", get_str(item, "id") or ""
        near: list[ItemDraft] = []
        for group in (
            self._by_call.get(call_id, ()),
            self._by_id.get(identifier, ()),
            self._at(index),
        ):
            near += group[-_LATEST:]
        for one in near:
            likeness = (
                4 * (call_id in one.call_ids) + 2 * (identifier in one.ids) + (one.index == index)
            )
            by_place = likeness <= 1
            if one.listed or (by_place and _contradicts(one, kind, call_id, listing=listing)):
                continue
            if likeness > most:
                best, most = one, likeness
        return best

    def _at(self, index: int | None) -> Sequence[ItemDraft]:
        """Return the items at that index; any may match if the stream gives no index."""
        return self._all if index is None else self._by_index.get(index, ())

    def _by_kind(self) -> Mapping[str, Iterator[ItemDraft]]:
        groups: dict[str, list[ItemDraft]] = {}
        for item in self._all:
            groups.setdefault(item.kind, []).append(item)
        return {kind: iter(group) for kind, group in groups.items()}

    def _is_named(self, known: ItemDraft, item: Frame) -> bool:
        """Check whether they share more than the index."""
        return get_str(item, "id") in known.ids or get_str(item, "call_id") in known.call_ids

    def _open(self, kind: str, index: int | None) -> ItemDraft:
        item = ItemDraft(kind, index, self._choice, self._request)
        self._all.append(item)
        self._latest = None
        return item

    def _enter_item(self, found: ItemDraft, item: Frame) -> None:
        self._enter(found, get_str(item, "id"), get_str(item, "call_id"))

    def _enter(self, item: ItemDraft, identifier: str | None, call_id: str | None) -> None:
        for key, known in ((identifier, self._by_id), (call_id, self._by_call)):
            if key and item not in known.setdefault(key, [])[-_LATEST:]:
                known[key].append(item)
        if item.index is not None:
            here = self._by_index.setdefault(item.index, [])
            if item not in here[-_LATEST:]:
                here.append(item)

    def _note_place(self, item: ItemDraft, frame: Frame, event: Event) -> None:
        if item.index is None:
            self._choice.note_unexpected("an output item has no output_index", frame, event)
        elif any(one is not item for one in self._by_index.get(item.index, ())):
            detail = f"the output_index {item.index} is used for another item"
            notes = self._choice.notes if item.call is None else item.call.notes
            notes.once("", "T012", detail, frame, event)

    def _note_unannounced(self, frame: Frame, event: Event) -> None:
        if not self.resumed:
            phrase = "an output item has no response.output_item.added"
            self._choice.note_unexpected(phrase, frame, event)


def _fitting(group: Sequence[ItemDraft], *, call: bool) -> list[ItemDraft]:
    """Return the items of `group` that are calls, or are not, the latest last."""
    return [one for one in group[-_LATEST:] if (one.call is not None) is call]


def _contradicts(known: ItemDraft, kind: str | None, call_id: str, *, listing: bool) -> bool:
    """Check whether an item of that type contradicts the one at its index."""
    other = bool(call_id and known.call_ids)
    return known.kind != kind or (known.done and not listing) or (other and known.done)
