"""One output item under construction: its identity, its call, its texts.

An item has three names: its place (`output_index`), its `id`, which is internal to the API, and for
calls the `call_id`, which is the one that the client answers to. Gateways change or drop any of
them; `OutputItems` finds the item all the same, and here it is noted.

The arguments are what the source of the highest authority says (see `SourceRank`), except that an
empty text never wins over one that is not. Pieces that streamed are judged only where nothing else
came.
"""

import enum
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from deltatape.dialects._calls import CallDraft
from deltatape.dialects._choice import ChoiceDraft
from deltatape.dialects._delta_fast_path import TextDelta
from deltatape.dialects._json import as_object, get_array, get_str, shown
from deltatape.dialects._source_text import JsonSource, MemberValue
from deltatape.dialects.openai_responses.kinds import (
    NAMES,
    NOT_ON_THE_WIRE,
    ArgumentsForm,
    ItemShape,
    SourceRank,
    shape_of,
)
from deltatape.model.reply import CallKind, Channel, TextFragment
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event
from deltatape.wire.json_value import canonical, join_pairs

# The texts of one output item: streamed fragments, and the whole as sources give it.
#
# Strategy: pieces are kept by part. At the end the whole text of a channel, as `output_item.done`
# or else the final snapshot tells it, is compared with the joined pieces: if equal the pieces
# stay; if it goes on where they end, the rest is added; else it takes their place. An empty whole
# replaces nothing. Parts are compared together, since servers number them in different ways.


class TextGroup(enum.StrEnum):
    """The list of an item that a text belongs to."""

    SUMMARY = "summary"
    CONTENT = "content"


class WholeText(NamedTuple):
    """A whole text according to one source."""

    rank: SourceRank
    text: str
    event: Event


PARTS = {
    "output_text": (Channel.TEXT, "text"),
    "text": (Channel.TEXT, "text"),
    "refusal": (Channel.REFUSAL, "refusal"),
    "reasoning_text": (Channel.REASONING, "text"),
    "summary_text": (Channel.REASONING, "text"),
}
"""By type of a part: where its text goes, and the member it stands in."""

_Stream = tuple[TextGroup, Channel]
_new = tuple.__new__
"""What the constructor of a named tuple calls, in a third of the time: every delta makes one."""


def piece_of(channel: Channel, text: str, event: Event) -> TextFragment:
    """Return the text fragment of `event`."""
    return _new(TextFragment, (channel, text, event))


class ItemTexts:
    """The texts of one output item."""

    def __init__(self) -> None:
        self._parts: dict[_Stream, dict[int, list[TextFragment]]] = {}
        self._wholes: dict[_Stream, list[WholeText]] = {}

    def part(self, group: TextGroup, channel: Channel, index: int) -> list[TextFragment]:
        """Return the list of a part's fragments, to append to."""
        parts = self._parts.get((group, channel))
        if parts is None:
            parts = self._parts[group, channel] = {}
        pieces = parts.get(index)
        if pieces is None:
            pieces = parts[index] = []
        return pieces

    def end_part(self, group: TextGroup, index: int, whole: TextFragment) -> None:
        """Set a part's whole text; it counts only if nothing streamed."""
        pieces = self.part(group, whole.channel, index)
        if not pieces:
            pieces.append(whole)

    def take(self, item: Mapping[str, object], rank: SourceRank, event: Event) -> None:
        """Take the whole texts of an item."""
        for group in TextGroup:
            texts: dict[Channel, str] = {}
            for channel, text in _texts(item, group):
                texts[channel] = texts.get(channel, "") + text
            if group is TextGroup.CONTENT and item.get("type") == "message":
                texts.setdefault(Channel.TEXT, "")
            for channel, text in texts.items():
                self._wholes.setdefault((group, channel), []).append(WholeText(rank, text, event))

    def settle(self) -> tuple[list[TextFragment], list[WholeText]]:
        """Return the fragments that count, and whole texts that contradict them."""
        pieces: list[TextFragment] = []
        differing: list[WholeText] = []
        for stream in dict.fromkeys((*self._parts, *self._wholes)):
            parts = self._parts.get(stream, {})
            streamed = [piece for part in parts.values() for piece in part]
            settled, against = _settle(stream[1], streamed, self._wholes.get(stream, ()))
            pieces += settled
            differing += against
        return pieces, differing


def _texts(item: Mapping[str, object], group: TextGroup) -> Iterator[tuple[Channel, str]]:
    for part in map(as_object, get_array(item, group.value)):
        place = PARTS.get(get_str(part, "type") or "") if part is not None else None
        if part is not None and place is not None:
            yield place[0], get_str(part, place[1]) or ""


def _settle(
    channel: Channel, streamed: list[TextFragment], wholes: Sequence[WholeText]
) -> tuple[list[TextFragment], list[WholeText]]:
    best = max(
        (whole for whole in wholes if whole.text), default=None, key=lambda whole: whole.rank
    )
    if not streamed:
        return ([piece_of(channel, best.text, best.event)] if best else []), []
    joined = join_pairs("".join([piece.text for piece in streamed]))
    against = [whole for whole in wholes if whole.text != joined]
    if best is None or best.text == joined:
        return streamed, against
    if best.text.startswith(joined):
        return [*streamed, piece_of(channel, best.text[len(joined) :], best.event)], against
    return [piece_of(channel, best.text, best.event)], against


_INTERNAL = frozenset({CallKind.SERVER, CallKind.MCP})
"""Kinds of calls that have no `call_id`, or none that a client answers to."""

_APPROVAL = "mcp_approval_request"
"""A question for the user, which is an answer although it has no text."""


class ItemDraft:
    """One output item under construction.

    Args:
        kind: its type.
        index: its place in the output; None if the wire did not say.
        choice: what its call belongs to.
        request: what the response answers.
    """

    def __init__(
        self, kind: str, index: int | None, choice: ChoiceDraft, request: RequestSummary
    ) -> None:
        self.kind = kind
        self.index = index
        self.ids: dict[str, None] = {}
        """Every different `id`, in order."""
        self.call: CallDraft | None = None
        self.texts = ItemTexts()
        self.announced = False
        """Whether `response.output_item.added` came."""
        self.done = False
        """Whether `response.output_item.done` came."""
        self.listed = False
        """Whether the final response lists it."""
        self.encrypted = ""
        """Its reasoning, as only the provider can read it."""
        self._choice = choice
        self._request = request
        self._shape: ItemShape | None = None
        self._whole_arguments: dict[SourceRank, tuple[str, Event]] = {}
        self._incomplete = False
        self._late = False
        self._answer_to: str | None = None
        """The id of the call that the provider keeps."""

    @property
    def call_ids(self) -> Mapping[str, None]:
        """The call's ids, in order; empty if it has none or is not a call."""
        return self.call.ids if self.call else {}

    def take(
        self, item: Mapping[str, object], rank: SourceRank, event: Event, source: JsonSource
    ) -> None:
        """Apply `item`, at `source` in the data of `event`."""
        self.kind = get_str(item, "type") or self.kind
        self._choice.media |= self.kind == _APPROVAL
        self._take_shape(item, event)
        if rank is SourceRank.ITEM_DONE:
            self.done = True
        if get_str(item, "status"):
            self._incomplete = item["status"] == "incomplete"
        if rank is SourceRank.ITEM_DONE or (rank is SourceRank.SNAPSHOT and not self.encrypted):
            self.encrypted = get_str(item, "encrypted_content") or ""
        if rank is not SourceRank.ADDED:
            self.texts.take(item, rank, event)
        if self.call is not None:
            self._take_names(self.call, item, rank, event)
            self._take_arguments(self.call, item, rank, event, source)
            self._take_end(self.call, item, rank, event)
        identifier = get_str(item, "id")
        if identifier:
            self.ids[identifier] = None

    def open_call(self, shape: ItemShape, event: Event) -> CallDraft:
        """Return the call of this item, opened if necessary."""
        self._shape = shape
        if self.call is None:
            self.call = self._choice.open(shape.kind, event, self.index)
            self.call.name = shape.name
        self.call.kind = shape.kind
        self.call.free_text = shape.form is ArgumentsForm.FREE
        return self.call

    def add_arguments(self, deltas: Sequence[TextDelta]) -> None:
        """Append fragments of the arguments; ignored if it is not a call."""
        if self.call is not None:
            self.call.add_all(deltas)

    def end_arguments(self, text: str, name: str | None, event: Event) -> None:
        """Set the whole arguments and the name from an event."""
        self._whole_arguments[SourceRank.PART_DONE] = (text, event)
        if self.call is not None:
            self.call.name = self.call.name or name or ""

    def note_other_id(self, identifier: str | None, event: Event, what: str) -> None:
        """Compare the id that `event` gives the item with the known ones."""
        if self.call is None or not self.ids or identifier in self.ids:
            return
        first = next(iter(self.ids))
        change = f"is {identifier!r}" if identifier else "is missing"
        detail = f"the item's id was {first!r} and {change} at {what}"
        self.call.note("item", "T010", detail, event.data, event)
        if identifier:
            self.ids[identifier] = None

    def settle(self, *, resumed: bool) -> list[TextFragment]:
        """Settle the arguments; return the fragments of the texts. Call once, at the end.

        Args:
            resumed: whether the stream began in the middle, so that pieces may be missing.
        """
        partial = resumed and not self.announced
        if self.call is not None:
            if self._answer_to is not None:
                self.call.ids = {self._answer_to: None, **self.call.ids}
            self._settle_call(self.call, partial=partial)
        pieces, differing = self.texts.settle()
        for whole in differing:
            self._note_text(whole, partial=partial)
        return pieces

    def _take_shape(self, item: Mapping[str, object], event: Event) -> None:
        shape = shape_of(item, self._request)
        if shape is None:
            return
        call = self.open_call(shape, event)
        call.announced = True
        if self.kind == NOT_ON_THE_WIRE:
            phrase = f"the API knows no item of the type {NOT_ON_THE_WIRE!r}"
            call.note(phrase, "S006", phrase, item, event)

    def _take_names(
        self, call: CallDraft, item: Mapping[str, object], rank: SourceRank, event: Event
    ) -> None:
        """Set id and name; the last source counts, since the provider keeps that."""
        if rank is not SourceRank.SNAPSHOT:
            self.note_other_id(get_str(item, "id"), event, NAMES[rank])
        identifier = get_str(item, "call_id")
        if call.kind in _INTERNAL:
            identifier = identifier or get_str(item, "id")
        if identifier and identifier not in call.ids:
            if call.ids:
                detail = f"the call_id {call.first_id!r} changes to {identifier!r}"
                call.note("call", "T010", detail, item, event)
            call.ids[identifier] = None
            if rank is not SourceRank.SNAPSHOT or not self.done:
                self._answer_to = identifier
        if self._shape and not self._shape.name:
            self._take_name(call, item, rank, event)

    def _take_name(
        self, call: CallDraft, item: Mapping[str, object], rank: SourceRank, event: Event
    ) -> None:
        name = get_str(item, "name")
        if not name or name == call.name:
            self._late |= rank is SourceRank.ADDED and not call.name
            return
        if call.name:
            detail = f"the name was {call.name!r} and is {name!r} at {NAMES[rank]}"
            call.note("name", "T015", detail, item, event)
        elif self._late:
            detail = f"the name {name!r} comes only at {NAMES[rank]}"
            call.note("name", "T021", detail, item, event)
        if not call.name or rank is not SourceRank.SNAPSHOT or not self.done:
            call.name = name

    def _take_arguments(
        self,
        call: CallDraft,
        item: Mapping[str, object],
        rank: SourceRank,
        event: Event,
        source: JsonSource,
    ) -> None:
        shape = self._shape
        value = item.get(shape.field) if shape else None
        if shape is None or value is None:
            return
        if isinstance(value, str):
            self._whole_arguments[rank] = (value, event)
            return
        if shape.form is ArgumentsForm.TEXT:
            detail = f"{shape.field} is JSON instead of a string with JSON in it"
            call.note("bare", "T006", detail, item, event)
        if rank is not SourceRank.SNAPSHOT or SourceRank.ITEM_DONE not in self._whole_arguments:
            self._whole_arguments[rank] = (MemberValue(source, shape.field).text, event)

    def _take_end(
        self, call: CallDraft, item: Mapping[str, object], rank: SourceRank, event: Event
    ) -> None:
        """Set whether the call is complete: `done` is also sent for items that a limit cut."""
        whole = rank is SourceRank.ITEM_DONE and not self._incomplete
        if whole or (rank is SourceRank.SNAPSHOT and item.get("status") == "completed"):
            call.ended = call.ended or event
            call.whole = True

    def _settle_call(self, call: CallDraft, *, partial: bool) -> None:
        streamed, raw = bool(call.fragments), call.raw
        added = self._whole_arguments.pop(SourceRank.ADDED, None)
        ranks = sorted(self._whole_arguments, reverse=True)
        sources = [self._whole_arguments[rank] for rank in ranks]
        best = next((one for one in sources if one[0]), sources[0] if sources else None)
        if best is None and not streamed:
            best = added
        if best is None:
            if call.free_text:
                call.settle(raw)
            return
        text, event = best
        self._compare(call, raw if streamed and not partial else text)
        if not streamed:
            call.add(text, event)
        cut = self._incomplete and raw.startswith(text)
        call.settle(raw if cut or (streamed and not text) else text)

    def _compare(self, call: CallDraft, other: str) -> None:
        """Note a source that contradicts `other`."""
        for rank in sorted(self._whole_arguments, reverse=True):
            text, event = self._whole_arguments[rank]
            cut = self._incomplete and (other.startswith(text) or text.startswith(other))
            if text == other or cut or _same_json(text, other, call):
                continue
            detail = f"the arguments are {shown(text)} at {NAMES[rank]}, and {shown(other)} before"
            call.note("sources", "T015", detail, text, event)

    def _note_text(self, whole: WholeText, *, partial: bool) -> None:
        if partial or self._incomplete:
            return
        detail = f"the text at {NAMES[whole.rank]} is not that of the deltas"
        self._choice.notes.once("text", "T015", detail, whole.text, whole.event)


def _same_json(text: str, other: str, call: CallDraft) -> bool:
    """Check whether two texts are the same JSON: a gateway may rewrite it."""
    if call.kind is CallKind.CUSTOM or call.free_text:
        return False
    value = canonical(text)
    return value is not None and value == canonical(other)
