"""The output items of a response: their calls and texts, and how events refer to them.

An item has three names: its place (`output_index`), its `id`, which is internal to the API, and for
calls the `call_id`, which is the one that the client answers to. The documented key is
`output_index`. Gateways count it wrongly, and change or drop the other two; so all three are
compared, and differences are noted:

- an event about a part (a delta) belongs to the item with its `item_id`, if exactly one has it,
  else to the newest one at its `output_index` that can have such a part; without an
  `output_index`, to the newest one that is not done;
- a whole item is the one with which it shares most: the `call_id` counts more than the `id`, and
  that more than the place. An item that is done is matched again only by its own id or `call_id`.

Of items that share a name only the latest are compared: no healthy response has more.

The arguments are those of the most authoritative source (see `SourceRank`), except that an empty
text never replaces a non-empty one. Streamed fragments count only if no other source came.
"""

import enum
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from deltatape.dialects._calls import CallDraft, new_tuple
from deltatape.dialects._delta_fast_path import TextDelta
from deltatape.dialects._json import (
    Element,
    Elements,
    Frame,
    JsonSource,
    MemberValue,
    WholeString,
    as_array,
    as_object,
    get_index,
    get_object,
    get_objects,
    get_str,
    shown,
)
from deltatape.dialects._reply import ChoiceDraft
from deltatape.model.reply import CallKind, Channel, TextFragment, Thought
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event
from deltatape.wire.json_value import canonical, join_pairs

# Decides which output items are tool calls, who runs them, and where their arguments are.
#
# The client runs the calls that it must send an output for: functions and custom tools, which it
# defined, and of the tools that the provider defined (BUILT_IN) `computer`, `local_shell`,
# `apply_patch`, `shell` unless its environment is one of the provider's containers, and
# `tool_search` if its execution is `client`. The provider runs everything else and answers it in
# the same response.
#
# Source: https://platform.openai.com/docs/guides/tools (and the page of each tool), and
# https://docs.x.ai/docs/guides/tools/overview for `x_search`.


NOT_ON_THE_WIRE = "function_tool_call"
"""A type that wrappers of the API use for `function_call`, and some servers send."""


class ArgumentsForm(enum.Enum):
    """The form of a call's arguments."""

    TEXT = "text"
    """A string: JSON, or the input of a custom tool."""
    VALUE = "value"
    """A JSON object."""
    FREE = "free"
    """A string or value that is not a JSON object: code, a list of queries, nothing."""


class ItemShape(NamedTuple):
    """The meaning of an item type."""

    kind: CallKind
    name: str
    """The tool; "" where the item names it."""
    field: str
    """The member with the arguments; "" if there is none."""
    form: ArgumentsForm


_FUNCTION = ItemShape(CallKind.FUNCTION, "", "arguments", ArgumentsForm.TEXT)
_SHAPES = {
    "function_call": _FUNCTION,
    NOT_ON_THE_WIRE: _FUNCTION,
    "custom_tool_call": ItemShape(CallKind.CUSTOM, "", "input", ArgumentsForm.TEXT),
    "mcp_call": ItemShape(CallKind.MCP, "", "arguments", ArgumentsForm.TEXT),
    "mcp_approval_request": ItemShape(CallKind.MCP, "", "arguments", ArgumentsForm.TEXT),
    "computer_call": ItemShape(CallKind.BUILT_IN, "computer", "action", ArgumentsForm.VALUE),
    "local_shell_call": ItemShape(CallKind.BUILT_IN, "local_shell", "action", ArgumentsForm.VALUE),
    "shell_call": ItemShape(CallKind.BUILT_IN, "shell", "action", ArgumentsForm.VALUE),
    "apply_patch_call": ItemShape(
        CallKind.BUILT_IN, "apply_patch", "operation", ArgumentsForm.VALUE
    ),
    "tool_search_call": ItemShape(CallKind.SERVER, "tool_search", "arguments", ArgumentsForm.VALUE),
    "web_search_call": ItemShape(CallKind.SERVER, "web_search", "action", ArgumentsForm.VALUE),
    "file_search_call": ItemShape(CallKind.SERVER, "file_search", "queries", ArgumentsForm.FREE),
    "code_interpreter_call": ItemShape(
        CallKind.SERVER, "code_interpreter", "code", ArgumentsForm.FREE
    ),
    "image_generation_call": ItemShape(CallKind.SERVER, "image_generation", "", ArgumentsForm.FREE),
    "program": ItemShape(CallKind.SERVER, "program", "code", ArgumentsForm.FREE),
}
_SUFFIX = "_call"
_SEARCH_ON_X = "x_search"
_BUILT_IN = {"computer_use_preview": "computer", "web_search_preview": "web_search"}


def shape_of(item: Mapping[str, object], request: RequestSummary) -> ItemShape | None:
    """Return the shape of `item` as a call; None if it is not one.

    An unknown type that ends in `_call` is taken for a tool that the provider runs: such types
    appear all the time, while those that a client has to run are documented first.
    """
    kind = get_str(item, "type") or ""
    shape = _SHAPES.get(kind)
    if shape is None:
        known = kind.endswith(_SUFFIX)
        name = kind.removesuffix(_SUFFIX)
        return ItemShape(CallKind.SERVER, name, "", ArgumentsForm.FREE) if known else None
    if kind == "shell_call" and _is_hosted(item):
        return shape._replace(kind=CallKind.SERVER)
    if kind == "tool_search_call" and item.get("execution") == "client":
        return shape._replace(kind=CallKind.BUILT_IN)
    if kind == "computer_call" and item.get("action") is None and "actions" in item:
        return shape._replace(field="actions", form=ArgumentsForm.FREE)
    if kind == "custom_tool_call" and _is_search_on_x(item, request):
        return shape._replace(kind=CallKind.SERVER, form=ArgumentsForm.FREE)
    return shape


def tool_name(kind: str) -> str:
    """Return the name for calls of a built-in tool, by its type in requests."""
    return _BUILT_IN.get(kind, kind)


def _is_hosted(item: Mapping[str, object]) -> bool:
    return get_str(get_object(item, "environment") or {}, "type") == "container_reference"


def _is_search_on_x(item: Mapping[str, object], request: RequestSummary) -> bool:
    """Check whether a custom call is one of the unnamed tools behind `x_search`."""
    return request.tool(_SEARCH_ON_X) is not None and request.tool(get_str(item, "name")) is None


# Which source of a value wins when several contradict each other.


class SourceRank(enum.IntEnum):
    """Sources of a value, in the order of their authority.

    Pieces that streamed count more than `ADDED`, which is sent before anything is known and is
    mostly empty, and less than all others.
    """

    ADDED = 0
    PART_DONE = 1
    SNAPSHOT = 2
    ITEM_DONE = 3


NAMES = {
    SourceRank.ADDED: "response.output_item.added",
    SourceRank.PART_DONE: "the event that ends the pieces",
    SourceRank.SNAPSHOT: "the final response",
    SourceRank.ITEM_DONE: "response.output_item.done",
}
"""The sources, as findings name them."""


# The texts of one output item: streamed fragments, and the whole text from later events.
#
# Strategy: fragments are kept by part. At the end the whole text of a channel, from
# `output_item.done` or else the final snapshot, is compared with the joined fragments: if equal,
# they stay; if it only continues them, the rest is added; else it replaces them, unless it is
# empty. Parts are compared together, since servers number them in different ways.


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
    "audio": (Channel.TEXT, "transcript"),
    "output_audio": (Channel.TEXT, "transcript"),
    "refusal": (Channel.REFUSAL, "refusal"),
    "reasoning_text": (Channel.REASONING, "text"),
    "summary_text": (Channel.REASONING, "text"),
}
"""By type of a part: the channel of its text, and the member that holds it."""

_Stream = tuple[TextGroup, Channel]


def piece_of(channel: Channel, text: str, event: Event) -> TextFragment:
    """Return the text fragment of `event`."""
    return new_tuple(TextFragment, (channel, text, event))


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
        """Store the complete texts of an item."""
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
            streamed = [piece for index in sorted(parts) for piece in parts[index]]
            settled, against = _settle(stream[1], streamed, self._wholes.get(stream, ()))
            pieces += settled
            differing += against
        return pieces, differing


def _texts(item: Mapping[str, object], group: TextGroup) -> Iterator[tuple[Channel, str]]:
    for part in get_objects(item, group.value):
        place = PARTS.get(get_str(part, "type") or "")
        if place is not None:
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
"""Kinds of calls without a `call_id`, or with one that clients do not answer."""

_APPROVAL = "mcp_approval_request"
"""A question for the user: it counts as an answer, although it has no text."""


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
        """Set id and name; the last source wins, since the provider stores that one."""
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
        """Set whether the call is complete. An item that a limit cut gets a `done`, too."""
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


# Finds the item that an event refers to.


REASONING = "reasoning"
"""The type of items that hold thoughts."""
_LATEST = 16


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
        exact = [item for item in named if item.index == index]
        if exact:
            return exact[-1]
        if len(named) == 1:
            detail = "an event has the item_id of one item and the output_index of another"
            self._choice.note_unexpected(detail, frame, event)
            return named[0]
        here = _fitting(self._at(index), call=call)
        here = [item for item in here if not item.done or (item.kind == kind and index is not None)]
        if not here:
            return None
        found = next((item for item in reversed(here) if not item.done), here[-1])
        if identifier:
            found.note_other_id(identifier, event, get_str(frame, "type") or event.type)
            self._enter(found, identifier, None)
        return found

    def _open_for(self, frame: Frame, kind: str, event: Event) -> ItemDraft:
        """Open an item whose first event is this one, about a part."""
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
        named = again is not None and (
            get_str(item, "id") in again.ids or get_str(item, "call_id") in again.call_ids
        )
        if again is not None and again.index == index and named:
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
            source: its position.
            streamed: whether events about its items should have come before.
        """
        entries = as_array(output) or ()
        elements = Elements(source)
        unlisted = self._by_kind()
        self._latest = None
        for place, item in enumerate(map(as_object, entries)):
            if item is None:
                self._choice.note_unexpected("an output item is not an object", output, event)
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
        """Note items that never ended, although the response is complete.

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
        """Settle arguments and texts of all items, in their order. Call once, at the end."""
        items = self._in_order()
        places = {id(item.call): place for place, item in enumerate(items)}
        self._choice.calls.sort(key=lambda call: places[id(call)])
        for item in items:
            self._choice.add_fragments(item.settle(resumed=self.resumed))
            if item.kind == REASONING:
                identifier = next(iter(item.ids), None)
                thought = Thought(signature=item.encrypted, id=identifier)
                self._choice.thoughts.append(thought)
        self._drop_copies()

    def _in_order(self) -> Sequence[ItemDraft]:
        """Return the items by index, or as they came where indexes are missing or repeated."""
        indexes = [item.index for item in self._all if item.index is not None]
        if len(frozenset(indexes)) < len(self._all):
            return self._all
        return sorted(self._all, key=lambda item: item.index or 0)

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
        """Return the known item that `item` repeats. `listing`: match each known item only once."""
        kind, best, most = get_str(item, "type"), None, 0
        call_id, identifier = get_str(item, "call_id") or "", get_str(item, "id") or ""
        near: list[ItemDraft] = []
        for group in (
            self._by_call.get(call_id, ()),
            self._by_id.get(identifier, ()),
            self._at(index),
        ):
            near += group[-_LATEST:]
        for known in near:
            likeness = (
                4 * (call_id in known.call_ids)
                + 2 * (identifier in known.ids)
                + (known.index == index)
            )
            by_place = likeness <= 1
            if known.listed or (by_place and _contradicts(known, kind, call_id, listing=listing)):
                continue
            if likeness > most:
                best, most = known, likeness
        return best

    def _at(self, index: int | None) -> Sequence[ItemDraft]:
        """Return the items at that index; any may match if the stream gives no index."""
        return self._all if index is None else self._by_index.get(index, ())

    def _by_kind(self) -> Mapping[str, Iterator[ItemDraft]]:
        groups: dict[str, list[ItemDraft]] = {}
        for item in self._all:
            groups.setdefault(item.kind, []).append(item)
        return {kind: iter(group) for kind, group in groups.items()}

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
    return [item for item in group[-_LATEST:] if (item.call is not None) is call]


def _contradicts(known: ItemDraft, kind: str | None, call_id: str, *, listing: bool) -> bool:
    """Check whether an item of that type contradicts the one at its index."""
    other = bool(call_id and known.call_ids)
    return known.kind != kind or (known.done and not listing) or (other and known.done)
