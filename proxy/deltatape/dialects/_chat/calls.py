"""The calls of one choice: finds the call of each entry and applies the entry.

The documented key is the entry's `index`. Providers leave it out, repeat it, restart it in every
chunk; they repeat ids, change them, or never send any. What is decided here, entry by entry:

- without index: by id, else the last call, unless the entry opens one (T011);
- an index used for a second call: recognised by a new id or name, or by arguments that start again
  although the call's arguments are complete (T012);
- one id at two indexes: one call that moved (T020), or, once its arguments are complete, a copy of
  it, of which the end shows whether it repeats the call (T020, dropped) or is another one (T010).

Arguments are judged only at the end.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from deltatape.dialects._calls import CUMULATIVE_MINIMUM, CallDraft
from deltatape.dialects._choice import ChoiceDraft
from deltatape.dialects._json import as_object, get_index, get_object, get_str
from deltatape.dialects._source_text import JsonSource, MemberValue
from deltatape.model.reply import CallKind
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event

# Reads one entry of `tool_calls` (or `function_call`) into plain values.
#
# Absent values have many spellings in the wild: a missing key, `null`, `""`, for ids the string
# `"null"`. They all come out as "" here. Arguments that are no string keep their exact source
# text.


_FUNCTION = CallKind.FUNCTION
_new = tuple.__new__
"""What the constructor of a named tuple calls, in a third of the time: every delta makes one."""


class ChatDelta(NamedTuple):
    """The content of an entry; "" where it has none."""

    event: Event
    value: Mapping[str, object]
    wire_index: int | None
    """None where the entry has no usable index."""
    id: str
    name: str
    kind: CallKind
    text: str
    """The piece of the arguments."""
    unquoted: tuple[str, ...]
    """The keys that lead to arguments that came as JSON instead of a string; mostly none."""
    unexpected: tuple[str, ...]
    """What has an unexpected shape, one phrase each."""

    @property
    def says_nothing(self) -> bool:
        """Whether the entry neither names nor extends a call."""
        return not (self.text or self.id or self.name)

    def read_unquoted(self, source: JsonSource) -> "ChatDelta":
        """Return the entry at `source` with the exact source of arguments that are not a string."""
        for key in self.unquoted:
            source = MemberValue(source, key)
        return self._replace(text=source.text)


def read_entry(value: Mapping[str, object], event: Event) -> ChatDelta:
    """Read the entry `value` of `tool_calls` in the data of `event`.

    See `ChatDelta.read_unquoted`: only such entries need their position.
    """
    kind, key, field = _FUNCTION, "function", "arguments"
    body = get_object(value, key)
    if not body and get_object(value, "custom"):
        kind, key, field = CallKind.CUSTOM, "custom", "input"
        body = get_object(value, key)
    name, text, unquoted, unexpected = _NO_BODY if body is None else _read_body(body, field)
    index = get_index(value, "index")
    identifier = value.get("id")
    if body is None or index is None or not (identifier is None or isinstance(identifier, str)):
        unexpected = (*_unexpected_shapes(value, key, index), *unexpected)
        identifier = get_str(value, "id")
    if identifier is None or identifier == "null":
        identifier = ""
    if unquoted:
        unquoted = (key, *unquoted)
    return _new(
        ChatDelta, (event, value, index, identifier, name, kind, text, unquoted, unexpected)
    )


def signature_of(value: Mapping[str, object]) -> str:
    """Return the thought signature that Gemini's compatible endpoint adds to a call; or "".

    See https://ai.google.dev/gemini-api/docs/thought-signatures.
    """
    extra = value.get("extra_content")
    google = get_object(extra, "google") if isinstance(extra, Mapping) else None
    return (get_str(google, "thought_signature") or "") if google else ""


def read_legacy(value: Mapping[str, object], event: Event) -> ChatDelta:
    """Read the `function_call` object `value` in the data of `event`. See `read_entry`."""
    name, text, unquoted, unexpected = _read_body(value, "arguments")
    return ChatDelta(event, value, None, "", name, CallKind.LEGACY, text, unquoted, unexpected)


_Body: TypeAlias = tuple[str, str, tuple[str, ...], tuple[str, ...]]
"""Name and text, and then `unquoted` and `unexpected` as in `ChatDelta`."""
_NO_BODY: _Body = ("", "", (), ())


def _read_body(body: Mapping[str, object], field: str) -> _Body:
    """Read `body`, whose arguments are in `field`."""
    unexpected: tuple[str, ...] = ()
    name = body.get("name")
    if name is None:
        name = ""
    elif not isinstance(name, str):
        name, unexpected = "", ("name is no string",)
    arguments = body.get(field)
    if isinstance(arguments, str):
        return name, arguments, (), unexpected
    return name, "", () if arguments is None else (field,), unexpected


def _unexpected_shapes(value: Mapping[str, object], key: str, index: int | None) -> list[str]:
    unexpected = []
    if value.get(key) is not None and get_object(value, key) is None:
        unexpected.append(f"{key} is no object")
    if value.get("id") is not None and get_str(value, "id") is None:
        unexpected.append("id is no string")
    if value.get("index") is not None and index is None:
        unexpected.append("index is no number")
    return unexpected


_LEGACY, _CUSTOM = CallKind.LEGACY, CallKind.CUSTOM
"""Plain names: every delta is compared with them."""


class ChoiceCalls:
    """Applies entries to the calls of `choice`."""

    def __init__(self, choice: ChoiceDraft, request: RequestSummary) -> None:
        self._choice = choice
        self._request = request
        self._newest: dict[int, CallDraft] = {}
        self._by_id: dict[str, CallDraft] = {}
        self._last: CallDraft | None = None
        self._legacy: CallDraft | None = None
        self._copies: list[tuple[CallDraft, CallDraft]] = []
        self._streamed = False

    def take_delta(self, entry: ChatDelta) -> None:
        """Handle an entry of a streamed delta."""
        self._streamed = True
        if entry.says_nothing:
            return
        draft = self._find(entry)
        opening = draft is None
        if draft is None:
            draft = self._open(entry)
        promised = self._choice.policy.indexes and entry.kind is not _LEGACY
        if entry.wire_index is None and promised:
            draft.note("", "T011", "an entry of tool_calls has no index", entry.value, entry.event)
        self._merge(draft, entry, opening=opening)

    def continued(self, entries: object) -> CallDraft | None:
        """Return the call that the only entry just extended by arguments and nothing else.

        Whatever they are, such an entry goes on with the newest call of its index if that has an
        id. None where there is more, or less, to `entries`.
        """
        entry = as_object(entries[0]) if isinstance(entries, list) and len(entries) == 1 else None
        if entry is None or entry.get("id"):
            return None
        function, index = get_object(entry, "function") or {}, entry.get("index")
        if function.get("name") or not get_str(function, "arguments"):
            return None
        found = self._newest.get(index) if type(index) is int else None
        return found if found is not None and found.ids else None

    def take_whole(self, entry: ChatDelta) -> None:
        """Handle an entry of an answer that is not streamed: a call of its own."""
        if not entry.says_nothing:
            self._merge(self._open(entry), entry, opening=True)

    def finish(self) -> None:
        """Drop repeated calls. Call once, after the last entry."""
        self._drop_copies()
        self._drop_legacy()
        self._note_indexes()

    def _find(self, entry: ChatDelta) -> CallDraft | None:
        """Return the call that `entry` continues; None if it opens one."""
        if entry.kind is _LEGACY:
            return self._legacy
        owner = self._by_id.get(entry.id)
        if entry.wire_index is None:
            return self._find_unindexed(owner, entry)
        current = self._newest.get(entry.wire_index)
        if current is not None and entry.id in current.ids:
            return current
        if owner is not None:
            return self._find_moved(owner, entry, entry.wire_index)
        if current is None or _opens_anew(current, entry):
            return None
        return current

    def _find_moved(self, owner: CallDraft, entry: ChatDelta, index: int) -> CallDraft | None:
        """Return the call for an entry with the id of `owner`, not the newest at its index."""
        if owner.wire_index == index:
            return owner
        if owner.holds_object:
            return None
        detail = f"the call {entry.id!r} of index {owner.wire_index} continues at {index}"
        owner.note("", "T020", detail, entry.value, entry.event)
        self._newest[index] = owner
        return owner

    def _find_unindexed(self, owner: CallDraft | None, entry: ChatDelta) -> CallDraft | None:
        if owner is not None:
            again = owner.holds_object and entry.name and _starts_object(entry)
            return None if again else owner
        last = self._last
        if last is None or not (entry.id or entry.name):
            return last
        renamed = entry.name and last.name not in ("", entry.name)
        if renamed or not last.begun or not entry.text:
            return None
        # The call before is not complete: what cannot be the beginning of another one continues it.
        return None if _starts_object(entry) and not _repeats(last, entry) else last

    def _open(self, entry: ChatDelta) -> CallDraft:
        draft = self._choice.open(entry.kind, entry.event, entry.wire_index)
        if entry.kind is _LEGACY:
            self._legacy = draft
            return draft
        self._last = draft
        original = self._by_id.get(entry.id)
        if original is not None:
            self._copies.append((draft, original))
        if entry.wire_index is not None:
            if self._streamed and entry.wire_index in self._newest:
                detail = f"the index {entry.wire_index} is used for another call"
                draft.note("", "T012", detail, entry.value, entry.event)
            self._newest[entry.wire_index] = draft
        return draft

    def _merge(self, draft: CallDraft, entry: ChatDelta, *, opening: bool) -> None:
        for phrase in entry.unexpected:
            draft.note(phrase, "S006", f"in a tool call, {phrase}", entry.value, entry.event)
        if entry.kind is _CUSTOM and not draft.fragments:
            draft.kind = CallKind.CUSTOM
        self._merge_id(draft, entry)
        if entry.name:
            if opening:
                draft.name = entry.name
            else:
                self._merge_name(draft, entry)
        if entry.unquoted:
            detail = "the arguments are JSON instead of a string with JSON in it"
            draft.note("bare", "T006", detail, entry.value, entry.event)
        draft.add(entry.text, entry.event)

    def _merge_id(self, draft: CallDraft, entry: ChatDelta) -> None:
        if not entry.id:
            return
        if entry.id in draft.ids and entry.wire_index in (None, draft.wire_index):
            detail = f"the id {entry.id!r} is repeated on a continuation"
            draft.note("repeated", "T010", detail, entry.value, entry.event)
        elif draft.ids and entry.id not in draft.ids:
            detail = f"the id {draft.first_id!r} changes to {entry.id!r}"
            draft.note("changed", "T010", detail, entry.value, entry.event)
        if entry.id not in draft.ids:
            draft.ids[entry.id] = None
            self._by_id.setdefault(entry.id, draft)

    def _merge_name(self, draft: CallDraft, entry: ChatDelta) -> None:
        naming = merge_name(
            draft.name, entry.name, begun=bool(draft.fragments), request=self._request
        )
        draft.name = naming.name
        draft.note("name", naming.code, naming.detail, entry.value, entry.event)

    def _drop_copies(self) -> None:
        dropped: set[int] = set()
        for copy, original in self._copies:
            one = copy.repaired.text
            if not one or copy.repeats(original):
                detail = f"the call {original.first_id!r} is sent again"
                original.note("copy", "T020", detail, one, copy.opened)
                dropped.add(id(copy))
            else:
                detail = f"the id {original.first_id!r} is used for another call"
                copy.note("shared", "T010", detail, one, copy.opened)
        kept = [draft for draft in self._choice.calls if id(draft) not in dropped]
        self._choice.calls = kept

    def _drop_legacy(self) -> None:
        legacy = self._legacy
        twin = next(
            (
                one
                for one in self._choice.calls
                if one is not legacy and legacy and one.name == legacy.name
            ),
            None,
        )
        if legacy is not None and twin is not None:
            detail = f"function_call repeats the call of {legacy.name!r} in tool_calls"
            twin.note("legacy", "T020", detail, legacy.raw, legacy.opened)
            self._choice.calls.remove(legacy)

    def _note_indexes(self) -> None:
        """Note if indexes do not start at 0, since clients then misplace calls."""
        indexed = [draft for draft in self._choice.calls if draft.wire_index is not None]
        if not self._streamed or not indexed:
            return
        first = min(indexed, key=lambda draft: draft.wire_index or 0)
        if first.wire_index:
            detail = f"the lowest index of a tool call is {first.wire_index}"
            first.note("", "T013", detail, detail, first.opened)


def _starts_object(entry: ChatDelta) -> bool:
    return entry.text.lstrip().startswith("{")


def _repeats(slot: CallDraft, entry: ChatDelta) -> bool:
    """Check whether `entry` repeats the last fragment of `slot`: cumulative arguments."""
    last = slot.fragments[-1].text
    longer = CUMULATIVE_MINIMUM <= len(last) < len(entry.text)
    return longer and entry.text.startswith(last)


def _opens_anew(slot: CallDraft, entry: ChatDelta) -> bool:
    """Check whether `entry`, at the index of `slot` without a known id, opens another call.

    Asked of every entry: what the arguments amount to so far is looked at last.
    """
    renamed = bool(entry.name and slot.name and entry.name != slot.name)
    if entry.id and slot.ids:
        return renamed or _is_whole(slot)
    if not _starts_object(entry):
        return False
    if renamed or entry.id:
        return _is_whole(slot)
    # A whole object again, with nothing to tell two calls apart. `{}` may have leaked in front; on
    # a call with an id the end judges what follows; the same text without a name is a repeat.
    if slot.ids or not slot.holds_object:
        return False
    return bool(entry.name) or entry.text.strip() != slot.value


def _is_whole(slot: CallDraft) -> bool:
    return slot.holds_object or slot.holds_empty_object


# Which name a call has when the wire gives it in pieces, late, again, or differently.

_NAME_LIMIT = 1000
"""Characters from which on a name is not continued: no name of a tool is that long."""


class NameReading(NamedTuple):
    """A name, with code and detail of its defect; "" if it has none."""

    name: str
    code: str
    detail: str


def merge_name(old: str, new: str, *, begun: bool, request: RequestSummary) -> NameReading:
    """Merge the name `old` of a call with the name `new` of a later entry.

    Args:
        old: "" if the call has no name yet.
        new: never empty.
        begun: whether argument bytes have arrived: then a name is final.
        request: the offered tools decide whether two pieces are one name.
    """
    if not old:
        return NameReading(new, "T021", f"the name {new!r} comes later than the call")
    if new == old:
        return NameReading(old, "T009", f"the name {new!r} is sent again")
    if begun or len(old) > _NAME_LIMIT:
        return NameReading(old, "T021", f"the name {old!r} changes to {new!r} when it is final")
    if request.tool(old + new) is None and (request.tool(new) is not None or new.startswith(old)):
        return NameReading(new, "T021", f"the name {old!r} is replaced by {new!r}")
    return NameReading(old + new, "T021", f"the name comes in pieces: {old!r} and {new!r}")
