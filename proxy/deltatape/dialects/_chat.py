"""Chat completions, streamed or not: the reducer, shared by several dialects.

Shapes: https://platform.openai.com/docs/api-reference/chat/streaming. Deltas of tool calls are
keyed by `(choices[].index, tool_calls[].index)`; a stream ends with a `finish_reason` per choice
and `data: [DONE]`. The rest of this module is about those who do it differently.

Reading continues after a finish reason (usage and a second finish may follow) and after an error.
Only deltas after `[DONE]` are ignored, since every client has stopped there.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from deltatape.dialects._calls import CUMULATIVE_MINIMUM, CallDraft, CallEndCause, new_tuple
from deltatape.dialects._delta_fast_path import AppendTexts, DeltaFastPath
from deltatape.dialects._errors import may_fail
from deltatape.dialects._json import (
    Element,
    Elements,
    Frame,
    JsonSource,
    MemberValue,
    WholeString,
    as_array,
    as_object,
    get_array,
    get_index,
    get_object,
    get_objects,
    get_str,
    objects_in,
)
from deltatape.dialects._reply import SENTINEL, ChoiceDraft, DialectPolicy, ReplyDraft
from deltatape.dialects._request import content_text
from deltatape.model.reply import CallKind, Channel, Reply, Thought
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event
from deltatape.wire.json_value import read_object

# The calls of one choice: finds the call of each entry and applies the entry.
#
# The documented key is the entry's `index`. Providers leave it out, repeat it, restart it in every
# chunk; they repeat ids, change them, or never send any. Each entry is assigned as follows:
#
# - without index: by id, else the last call, unless the entry opens one (T011);
# - an index used for a second call: recognised by a new id or name, or by arguments that start
#   again although the call's arguments are complete (T012);
# - one id at two indexes: with another name, another call (T010). Else one call that moved (T020),
#   or, once its arguments are complete, a copy of it, of which the end shows whether it repeats the
#   call (T020, dropped) or is another one (T010).
#
# Arguments are judged only at the end.


# Reads one entry of `tool_calls` (or `function_call`) into plain values.
#
# Absent values have many spellings in the wild: a missing key, `null`, `""`, for ids the string
# `"null"`. They all come out as "" here. Arguments that are no string keep their exact source
# text.


_FUNCTION = CallKind.FUNCTION


class ChatDelta(NamedTuple):
    """The content of an entry; "" where it has none."""

    event: Event
    value: Mapping[str, object]
    wire_index: int | None
    """None if the entry has no usable index."""
    id: str
    name: str
    kind: CallKind
    text: str
    """The piece of the arguments."""
    unquoted: tuple[str, ...]
    """The path to arguments that are JSON instead of a string; usually empty."""
    unexpected: tuple[str, ...]
    """Parts with an unexpected type, one phrase each."""

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
    return new_tuple(
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
        name, unexpected = "", ("name is not a string",)
    arguments = body.get(field)
    if isinstance(arguments, str):
        return name, arguments, (), unexpected
    return name, "", () if arguments is None else (field,), unexpected


def _unexpected_shapes(value: Mapping[str, object], key: str, index: int | None) -> list[str]:
    unexpected = []
    if value.get(key) is not None and get_object(value, key) is None:
        unexpected.append(f"{key} is not an object")
    if value.get("id") is not None and get_str(value, "id") is None:
        unexpected.append("id is not a string")
    if value.get("index") is not None and index is None:
        unexpected.append("index is not a number")
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
        """Return the call whose arguments the only entry just extended; see the fast path.

        Such an entry continues the newest call of its index if that has an id. None if `entries`
        contains anything else.
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
        """Handle an entry of an answer that is not streamed: it is a call."""
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
        if owner.holds_object or _is_renamed(owner, entry):
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
        # The previous call is incomplete: an entry that cannot begin another call continues it.
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
            draft.note_unquoted(entry.value, entry.event)
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
            alike = copy.name in ("", original.name)
            if alike and (not one or copy.repeats(original)):
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
        if legacy is None:
            return
        others = (
            call for call in self._choice.calls if call is not legacy and call.name == legacy.name
        )
        twin = next(
            (call for call in others if not legacy.repaired.text or legacy.repeats(call)), None
        )
        if twin is not None:
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


def _is_renamed(slot: CallDraft, entry: ChatDelta) -> bool:
    return bool(entry.name and slot.name and entry.name != slot.name)


def _opens_anew(slot: CallDraft, entry: ChatDelta) -> bool:
    """Check whether `entry`, at the index of `slot` without a known id, opens another call.

    Runs for every entry, so the expensive test (are the arguments complete?) comes last.
    """
    renamed = _is_renamed(slot, entry)
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


# The name of a call whose name comes in pieces, late, repeatedly, or changed.

_NAME_LIMIT = 1000
"""A name of this many characters is not extended: no tool has such a long name."""


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


# Reads one choice of a chat completion into a `ChoiceDraft`: text, calls, finish reason.


_PARTS = {"text": Channel.TEXT, "refusal": Channel.REFUSAL, "thinking": Channel.REASONING}
"""By field of a typed part, the channel of its text."""
_TEXT, _REASONING, _REFUSAL = Channel.TEXT, Channel.REASONING, Channel.REFUSAL
"""Module names: every delta uses one, and an enum's member is slow to look up."""
_TEXTS = {
    "content": _TEXT,
    "refusal": _REFUSAL,
    "reasoning_content": _REASONING,
    "reasoning": _REASONING,
}
"""By text member of a delta, the channel of the text."""
_CONTENT_MEMBERS = (*_TEXTS, "audio", "images", "tool_calls", "function_call")
"""All members of a delta that may have content."""
_ASIDES = frozenset({"refusal", "audio", "images", "reasoning_content", "reasoning"})
"""Members that few deltas have."""
_FINISHED_DELTAS = 3
"""Deltas after a finish reason from which on its repetition counts: "finish on every chunk"."""


# Finds the source text of arguments that are JSON instead of a string.
#
# Such arguments are rare, so an event's text is parsed for them only on demand. A hostile event has
# thousands of them, so the result is kept until the next event.

DELTA = "delta"
MESSAGE = "message"
BodyPlace: TypeAlias = tuple[int, str]
"""The place of a body in an event: its choice's index in `choices`, and `DELTA` or `MESSAGE`."""


class JsonSources:
    """Finds the source text of values in one stream's events. The values must exist."""

    def __init__(self) -> None:
        self._event: Event | None = None
        self._choices = Elements(WholeString(""))
        self._place: BodyPlace | None = None
        self._calls = self._choices

    def body(self, event: Event, place: BodyPlace) -> JsonSource:
        """Return the source of a delta or a message."""
        if event is not self._event:
            self._event = event
            self._choices = Elements(MemberValue(WholeString(event.data), "choices"))
            self._place = None
        choice, key = place
        return MemberValue(Element(self._choices, choice), key)

    def call(self, event: Event, place: BodyPlace, position: int) -> JsonSource:
        """Return the source of element `position` of `tool_calls` of a delta or message."""
        body = self.body(event, place)
        if place != self._place:
            self._place = place
            self._calls = Elements(MemberValue(body, "tool_calls"))
        return Element(self._calls, position)


class ChatChoice:
    """Reads the `choices[i]` objects of one index, streamed (`delta`) or whole (`message`)."""

    def __init__(self, draft: ChoiceDraft, request: RequestSummary, sources: JsonSources) -> None:
        self._draft = draft
        self._calls = ChoiceCalls(draft, request)
        self._sources = sources
        self._deltas = 0
        self._deltas_after_finish = 0
        self._finish_repeated: Event | None = None

    def take(self, choice: Mapping[str, object], event: Event, place: int) -> None:
        """Take a choice object, element `place` of `choices` in the data of `event`.

        The delta comes before the finish reason of the same object: it is part of the answer.
        """
        delta = choice.get(DELTA)
        if isinstance(delta, dict):
            has_content = self._take_body(delta, event, (place, DELTA))
            self._deltas += has_content
        else:
            has_content = self._take_message(choice, event, place)
        if has_content and self._draft.finish_reason is not None:
            self._deltas_after_finish += 1
        reason = choice.get("finish_reason")
        if reason is not None:
            self._take_finish(reason, event)

    def only_text_member(self, choice: Mapping[str, object]) -> tuple[str, AppendTexts] | None:
        """Return the only member with text, and a function that appends more such text.

        Args:
            choice: what was taken last.
        """
        delta = choice.get(DELTA)
        if self._draft.finish_reason is not None or not isinstance(delta, dict):
            return None
        keys = [key for key in _CONTENT_MEMBERS if delta.get(key)]
        if len(keys) != 1:
            return None
        value, channel = delta[keys[0]], _TEXTS.get(keys[0])
        if channel is not None:
            append = partial(self._draft.add_texts, channel)
            return (keys[0], append) if isinstance(value, str) else None
        call = self._calls.continued(value) if keys[0] == "tool_calls" else None
        return None if call is None else ("arguments", call.add_all)

    def finish(self) -> None:
        """Decide at the end what needed all events. Call once, after the last object."""
        if self._finish_repeated and self._deltas_after_finish >= _FINISHED_DELTAS:
            detail = f"the finish reason {self._draft.finish_reason!r} comes again and again"
            self._draft.notes.once("again", "S004", detail, detail, self._finish_repeated)
            self._draft.finishes_often = True
        self._calls.finish()

    def _take_message(self, choice: Mapping[str, object], event: Event, place: int) -> bool:
        """Take a choice object without a delta; return whether it contains anything."""
        self._object(choice, DELTA, event)
        if MESSAGE not in choice:
            return False
        message = self._object(choice, MESSAGE, event) or {}
        if self._deltas:
            detail = "a whole message follows deltas; it is not part of the answer"
            self._draft.notes.once("message", "S006", detail, message, event)
        else:
            self._take_body(message, event, (place, MESSAGE))
        return False

    def _object(
        self, holder: Mapping[str, object], key: str, event: Event
    ) -> Mapping[str, object] | None:
        found = as_object(holder.get(key))
        if found is None and holder.get(key) is not None:
            self._draft.note_unexpected(f"{key} is not an object", holder, event)
        return found

    def _take_body(self, body: Mapping[str, object], event: Event, place: BodyPlace) -> bool:
        """Take the delta or the message at `place`; return whether it contains anything."""
        content = body.get("content")
        has_content = content is not None and self._take_content(content, event)
        if not _ASIDES.isdisjoint(body):
            has_content |= self._take_asides(body, event)
        entries = body.get("tool_calls")
        if entries is not None:
            has_content |= self._take_calls(entries, event, place)
        if "function_call" in body:
            has_content |= self._take_legacy(body, event, place)
        return has_content

    def _take_asides(self, body: Mapping[str, object], event: Event) -> bool:
        has_content = False
        refusal = body.get("refusal")
        if isinstance(refusal, str):
            has_content = self._add_text(_REFUSAL, refusal, event)
        if body.get("audio") or body.get("images"):
            self._draft.media = True
        # Two names for the same text; gateways that send both send it twice.
        reasoning = get_str(body, "reasoning_content") or get_str(body, "reasoning")
        return self._add_text(_REASONING, reasoning, event) if reasoning else has_content

    def _add_text(self, channel: Channel, text: str, event: Event) -> bool:
        self._draft.add_text(channel, text, event)
        return text != ""

    def _take_content(self, content: object, event: Event) -> bool:
        """Take text or typed parts: `text`, `refusal`, and `thinking` with text or parts."""
        if isinstance(content, str):
            self._draft.add_text(_TEXT, content, event)
            return content != ""
        parts = as_array(content)
        if parts is None:
            self._draft.note_unexpected(
                "content is neither text nor a list of parts", content, event
            )
            return False
        has_content = False
        for value in parts:
            part = as_object(value)
            if part is None:
                self._draft.note_unexpected("a part of content is not an object", content, event)
                continue
            for field, channel in _PARTS.items():
                has_content |= self._add_text(channel, content_text(part.get(field)), event)
        return has_content

    def _take_calls(self, value: object, event: Event, place: BodyPlace) -> bool:
        entries = as_array(value)
        if entries is None:
            self._draft.note_unexpected("tool_calls is not a list", value, event)
            return False
        take = self._calls.take_delta if place[1] == DELTA else self._calls.take_whole
        for position, one in enumerate(entries):
            found = as_object(one)
            if found is None:
                self._draft.note_unexpected("an entry of tool_calls is not an object", value, event)
                continue
            entry = read_entry(found, event)
            if entry.unquoted:
                entry = entry.read_unquoted(self._sources.call(event, place, position))
            take(entry)
            signature = signature_of(found)
            if signature:
                self._draft.thoughts.append(Thought(signature=signature))
        return bool(entries)

    def _take_legacy(self, body: Mapping[str, object], event: Event, place: BodyPlace) -> bool:
        value = self._object(body, "function_call", event)
        if value is None:
            return False
        entry = read_legacy(value, event)
        if entry.unquoted:
            entry = entry.read_unquoted(
                MemberValue(self._sources.body(event, place), "function_call")
            )
        self._calls.take_delta(entry)
        return True

    def _take_finish(self, reason: object, event: Event) -> None:
        if not isinstance(reason, str) or not reason:
            phrase = 'finish_reason is ""' if reason == "" else "finish_reason is not a string"
            self._draft.note_unexpected(phrase, {"finish_reason": reason}, event)
            return
        if reason == self._draft.finish_reason and self._finish_repeated is None:
            self._finish_repeated = event
        self._draft.finish(reason, event)


# Distinguishes chat completions, Mistral's and the older completions.


_MISTRAL_ID = re.compile(r"[0-9a-f]{32}\Z")
"""Most other providers' ids have a prefix or dashes."""
_OLD_MISTRAL_ID = re.compile(r"cmpl-[0-9a-f]{32}\Z")
"""Mistral's ids until 2024. Other servers have such ids, too, but not these model names."""
_MISTRAL_MODEL = re.compile(r"(?:open-)?(?:codestral|mi[sx]tral)-")
_NOT_MISTRAL = ("matched_stop", "system_fingerprint")
"""Members of other servers with ids like Mistral's: SGLang and its derivatives, SiliconFlow."""
MARKS = frozenset({"object", "choices"})
"""Every chunk, of chat or of the older completions, has one of these members."""
DELTA_KEYS = frozenset(
    {
        *("content", "text", "refusal", "reasoning", "reasoning_content", "thinking"),
        *("arguments", "input"),
    }
)
"""See `Traits`."""
CLOSING_KEYS = frozenset({"finish_reason", "signature"})
"""See `Traits`."""
_BODIES = frozenset({"delta", "message"})
_CHOICE = frozenset({"delta", "message", "finish_reason", "index", "content_filter_results"})


def is_completion(chunk: Mapping[str, object]) -> bool:
    """Check whether `chunk` is an older completion: text without a delta or a message."""
    if chunk.get("object") == "text_completion":
        return True
    for choice in get_array(chunk, "choices"):
        if isinstance(choice, dict) and "text" in choice and _BODIES.isdisjoint(choice):
            return True
    return False


def is_chat(chunk: Mapping[str, object]) -> bool:
    """Check whether `chunk` is a chat completion of any provider."""
    named = str(chunk.get("object")).startswith("chat.completion")
    return (named or _has_choices(chunk)) and not is_completion(chunk)


def _has_choices(chunk: Mapping[str, object]) -> bool:
    """Check whether `choices` is empty or a model's: polls have choices, too."""
    choices = as_array(chunk.get("choices"))
    if not choices:
        return choices is not None
    return any(not _CHOICE.isdisjoint(choice) for choice in objects_in(choices))


def is_mistral(chunk: Mapping[str, object]) -> bool:
    """Return whether `chunk` is of a chat completion by Mistral."""
    if not _has_mistral_id(chunk):
        return False
    choices = list(get_objects(chunk, "choices"))
    others = any(key in holder for holder in (chunk, *choices) for key in _NOT_MISTRAL)
    # Those others may leave their members out where there is no choice.
    return is_chat(chunk) and bool(choices) and not others


def _has_mistral_id(chunk: Mapping[str, object]) -> bool:
    identifier, model = get_str(chunk, "id") or "", get_str(chunk, "model") or ""
    if _MISTRAL_ID.match(identifier):
        return True
    return bool(_OLD_MISTRAL_ID.match(identifier) and _MISTRAL_MODEL.match(model))


TERMINATOR = "finish_reason and [DONE]"
POLICY = DialectPolicy(abnormal=frozenset({"length", "content_filter", "error"}), tool_word=True)


class ChatReducer:
    """Rebuilds a chat completion. See `Reducer`."""

    def __init__(self, name: str, request: RequestSummary, policy: DialectPolicy = POLICY) -> None:
        self._request = request
        self._reply = ReplyDraft(name, TERMINATOR, request, policy)
        self._choices: dict[int, ChatChoice] = {}
        self._sources = JsonSources()
        self.fast_path = DeltaFastPath()
        self._done = False
        self._id = ""

    def feed(self, event: Event, frame: Frame | None = None) -> None:
        reply = self._reply
        chunk = frame or read_object(event.data) or self._read_oddly(event)
        if chunk is None:
            return
        if may_fail(chunk, event):
            reply.take_error(chunk, event)
        if chunk.get("id") != self._id:
            self._take_id(chunk, event)
        usage = chunk.get("usage")
        if isinstance(usage, dict):
            reply.usage = usage
        if not reply.model:
            reply.model = get_str(chunk, "model") or None
        self._take_choices(chunk, event)

    def _read_oddly(self, event: Event) -> Mapping[str, object] | None:
        """Return the object in `event`, if it is not plainly an object with members."""
        if event.data.strip() != SENTINEL:
            return self._reply.read(event)
        if not self._reply.terminal:
            self._reply.terminal = event
            self._done = self._reply.error is None
        return None

    def _take_id(self, chunk: Mapping[str, object], event: Event) -> None:
        """Note if an event has another id than the events before it; empty ids are ignored."""
        found = chunk.get("id")
        if not isinstance(found, str) or not found:
            return
        if self._id:
            self._reply.note_unexpected("the id of the answer changes", found, event)
        self._id = found

    def finish(self, *, cut: bool) -> Reply:
        del cut  # A finish reason or [DONE] tells more about the calls than the transport does.
        for choice in self._choices.values():
            choice.finish()
        reasons = [draft.finish_reason for draft in self._reply.choices]
        finished = bool(reasons) and not {None, "error"}.intersection(reasons)
        ending = CallEndCause.NORMAL if self._done else CallEndCause.CUT
        self._reply.id = self._id or None
        return self._reply.build(ending, terminated=self._done or finished)

    def _take_choices(self, chunk: Mapping[str, object], event: Event) -> None:
        choices = chunk.get("choices")
        if not isinstance(choices, list):
            self._take_none(chunk, event)
            return
        if self._reply.terminal and choices:
            self._note_late(choices, chunk, event)
            return
        for place, choice in enumerate(choices):
            if not isinstance(choice, dict):
                self._reply.note_unexpected("a choice is not an object", chunk, event)
                continue
            index = choice.get("index")
            found = self._choices.get(index) if type(index) is int else None
            if found is None:
                if index is None and "delta" in choice:
                    self._reply.note_unexpected("a choice has no index", chunk, event)
                found = self._choice(choice, place)
            found.take(choice, event, place)
            if "error" in choice or choice.get("finish_reason") == "error":
                self._take_failure(choice, event)
            elif len(choices) == 1 and self.fast_path.learns and not may_fail(chunk, event):
                self._learn(chunk, choice, event, found)

    def _note_late(self, choices: Sequence[object], chunk: Frame, event: Event) -> None:
        """Note content after `[DONE]`."""
        deltas = [(as_object(choice) or {}).get("delta") for choice in choices]
        if any((as_object(delta) or {}).get("tool_calls") for delta in deltas):
            detail = "a call comes after [DONE]; it is not part of the answer"
            self._reply.notes.once("late", "S010", detail, chunk, event)
        else:
            self._reply.note_unexpected(
                "choices after [DONE]; they are not part of the answer", chunk, event
            )

    def _learn(self, chunk: Frame, choice: Frame, event: Event, found: ChatChoice) -> None:
        """Prepare the fast path if a chunk did nothing but add text."""
        learned = found.only_text_member(choice)
        if learned is not None:
            key, append = learned
            self.fast_path.learn(event, chunk, append, key)

    def _take_none(self, chunk: Mapping[str, object], event: Event) -> None:
        if chunk.get("choices") is not None:
            self._reply.note_unexpected("choices is not a list", chunk, event)
        elif self._reply.error is None and "usage" not in chunk:
            self._reply.note_unexpected("an object without choices", chunk, event)

    def _choice(self, choice: Mapping[str, object], place: int) -> ChatChoice:
        """Return the choice of an element of `choices`."""
        index = get_index(choice, "index")
        if index is None:
            index = place
        found = self._choices.get(index)
        if found is None:
            found = ChatChoice(self._reply.choice(index), self._request, self._sources)
            self._choices[index] = found
        return found

    def _take_failure(self, choice: Mapping[str, object], event: Event) -> None:
        if self._reply.error is None and choice.get("error"):
            self._reply.take_error(choice, event)
        if self._reply.error is None and choice.get("finish_reason") == "error":
            self._reply.take_error({"error": "finish_reason is 'error'"}, event)
