"""Describe a dialect as a table: for each event type, the steps that read it.

Many dialects consist of start, delta and end of a call, fragments of text, and a last event. Such a
dialect is a `DialectTable`: it maps event types to steps (`CallStart`, `TextStep` ...), each with
the paths of the values it reads. `TableReducer` looks the type up and lets its steps fill a
`TableDraft`, which maps keys to calls. What only one dialect does is a step of its own.

Types that the table does not have are ignored, since providers add new ones; only an error is seen
in every event. All calls and texts belong to the one choice that such dialects have.
"""

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from deltatape.dialects._calls import CallDraft, CallEndCause
from deltatape.dialects._delta_fast_path import NO_FAST_PATH
from deltatape.dialects._json import (
    EVIDENCE_LIMIT,
    Element,
    Elements,
    Frame,
    JsonSource,
    MemberValue,
    WholeString,
    as_array,
    as_object,
    get_index,
    shown,
)
from deltatape.dialects._reply import SENTINEL, ChoiceDraft, DialectPolicy, ReplyDraft
from deltatape.model.reply import CallKind, Channel, Reply, Thought, ToolResult
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event
from deltatape.wire.json_value import parse

Path: TypeAlias = tuple[str, ...]
"""The keys that lead to a value inside an object."""


def path(text: str) -> Path:
    """Return `a.b` as a path; the empty text leads nowhere: to the object itself."""
    return tuple(text.split(".")) if text else ()


def at(value: object, keys: Path) -> object:
    """Return the value at the path `keys` in `value`; None if it is missing."""
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def text_at(value: object, keys: Path) -> str | None:
    """Return the string at the path `keys` in `value`; None if it is missing or not a string."""
    found = at(value, keys)
    return found if isinstance(found, str) else None


def first_text(frame: Frame, paths: tuple[Path, ...]) -> str | None:
    """Return the first string at one of `paths` that is not empty; None if there is none."""
    return next((text for keys in paths if (text := text_at(frame, keys))), None)


def listed(value: object) -> Iterator[tuple[int, Frame]]:
    """Yield the objects that `value` is, or is a list of, each with its place."""
    values = value if isinstance(value, list) else [value]
    for place, one in enumerate(values):
        if isinstance(one, dict):
            yield place, one


def source_at(source: JsonSource, keys: Path) -> JsonSource:
    """Return the position of the value at `keys`, which exists, of the object at `source`."""
    for key in keys:
        source = MemberValue(source, key)
    return source


class CallsByIndex(NamedTuple):
    """Tool calls are identified by an index in each of their events."""

    path: Path

    def of(self, frame: Frame) -> int | None:
        """Return the number in `frame`; None if there is none."""
        holder = at(frame, self.path[:-1])
        return get_index(holder, self.path[-1]) if isinstance(holder, dict) else None


class CallsById(NamedTuple):
    """Tool calls are identified by their id, which is in each of their events."""

    path: Path

    def of(self, frame: Frame) -> str | None:
        """Return the id in `frame`; None if there is none."""
        return text_at(frame, self.path) or None


Key: TypeAlias = CallsByIndex | CallsById


class TableStep(Protocol):
    """One action for events of a type, such as: append text, start a call, end the reply."""

    def take(self, draft: "TableDraft", frame: Frame, event: Event) -> None:
        """Update `draft` from `frame`, the JSON object in `event`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DialectTable:
    """The table of a dialect. `TableReducer` rebuilds replies by it.

    Attributes:
        name: its name.
        terminator: its terminal signal, in words.
        policy: what it promises of its calls.
        type_keys: where an event says what it is, the first string counts; none where the framing
            says so.
        events: what to do with events, by their type.
        document: steps for an object without a type: an answer that is not streamed.
        sentinel: whether `[DONE]` is a terminal signal, too; otherwise it is ignored.
        final: whether clients stop at the terminal event, so that nothing may follow it but
            `[DONE]`: the code A004 for more of the answer, A005 for anything else.
        due: finish reasons by which every call must have its result; None where none is given.
    """

    name: str
    terminator: str
    policy: DialectPolicy
    type_keys: tuple[str, ...]
    events: Mapping[str, Sequence[TableStep]]
    document: Sequence[TableStep] = ()
    sentinel: bool = False
    final: bool = False
    due: frozenset[str | None] = frozenset()

    def type_of(self, frame: Frame) -> str | None:
        """Return the type that `frame` itself says; None if it says none."""
        for key in self.type_keys:
            kind = frame.get(key)
            if isinstance(kind, str):
                return kind
        return None


class TableDraft:
    """A reply under construction, and the call that each of the wire's keys means."""

    def __init__(self, table: DialectTable, request: RequestSummary) -> None:
        self.reply = ReplyDraft(table.name, table.terminator, request, table.policy)
        self.choice: ChoiceDraft = self.reply.choice()
        self.normal = False
        """Whether the terminal signal came and let the answer end as it should."""
        self.has_whole_text = False
        """Whether a whole text came, after its pieces or in their place."""
        self.parts: set[tuple[Channel, str | None]] = set()
        """Texts that have begun and not ended, where they have ids."""
        self._calls: dict[int | str, CallDraft] = {}
        self._last: CallDraft | None = None
        self._final = table.final
        self._elements: tuple[Event, Path, Elements] | None = None

    def find(self, key: int | str | None) -> CallDraft | None:
        """Return the call of `key`; without a key the call that was opened last."""
        return self._last if key is None else self._calls.get(key)

    def open(self, key: int | str | None, kind: CallKind, event: Event) -> CallDraft:
        """Return a new call, which `key` means from now on."""
        index = key if isinstance(key, int) else None
        draft = self._last = self.choice.open(kind, event, index)
        if key is not None:
            self._calls[key] = draft
        return draft

    def element(self, keys: Path, place: int, event: Event) -> JsonSource:
        """Return the position of element `place` of the array at `keys` in the data of `event`.

        The last array is kept: its elements are requested one after the other.
        """
        last = self._elements
        if last is None or last[0] is not event or last[1] != keys:
            last = self._elements = (
                event,
                keys,
                Elements(source_at(WholeString(event.data), keys)),
            )
        return Element(last[2], place)

    def note_late_content(self, frame: Frame, event: Event) -> None:
        """Note `frame` if it comes after the terminal event: it has content."""
        if self.reply.terminal is None:
            return
        if self._final:
            detail = "the answer goes on after the event that ended it"
            self.reply.notes.once("", "A004", detail, frame, event)
        else:
            self.reply.note_unexpected("content after the terminal event", frame, event)

    def note_late_event(self, kind: str, frame: Frame, event: Event) -> None:
        """Note an event without content that comes after the terminal one."""
        if self._final and self.reply.terminal is not None:
            detail = f"an event of the type {kind!r} after the one that ended the stream"
            self.reply.notes.once(kind, "A005", detail, frame, event)

    def end(self, event: Event, *, normal: bool) -> None:
        """Record the terminal signal; the first one counts."""
        if self.reply.terminal is None:
            self.reply.terminal = event
            self.normal = normal
        elif self._final:
            detail = "a second event ends the stream"
            self.reply.notes.once("", "A005", detail, event.data[:EVIDENCE_LIMIT], event)


class TableReducer:
    """Rebuilds a reply of a dialect that is a table. See `Reducer`."""

    fast_path = NO_FAST_PATH

    def __init__(self, table: DialectTable, request: RequestSummary) -> None:
        self._table = table
        self._events = table.events
        self._typed = bool(table.type_keys)
        self._draft = TableDraft(table, request)

    def feed(self, event: Event, frame: Frame | None = None) -> None:
        if event.data.strip() == SENTINEL:
            if self._table.sentinel and self._draft.reply.terminal is None:
                self._draft.end(event, normal=self._draft.reply.error is None)
            return
        frame = frame or self._draft.reply.read(event)
        if frame is None:
            return
        kind = self._table.type_of(frame) if self._typed else event.type
        steps = None if kind is None else self._events.get(kind)
        if steps is None:
            self._take_other(kind, frame, event)
            return
        for step in steps:
            step.take(self._draft, frame, event)

    def finish(self, *, cut: bool) -> Reply:
        del cut  # The terminal signal tells more about the calls than the transport does.
        draft = self._draft
        ending = (
            CallEndCause.NORMAL if draft.normal and draft.reply.error is None else CallEndCause.CUT
        )
        policy, reason = self._table.policy, draft.choice.finish_reason
        if ending is CallEndCause.NORMAL and policy.explicit_end and reason not in policy.abnormal:
            for call in draft.choice.calls:
                if call.ended is None:
                    detail = f"nothing says that the call of {call.name!r} is whole"
                    call.note("end", "S006", detail, detail, call.latest)
        draft.reply.results_due = reason in self._table.due
        return draft.reply.build(ending, terminated=draft.reply.terminal is not None)

    def _take_other(self, kind: str | None, frame: Frame, event: Event) -> None:
        """Handle an event without a type, or of a type that is not in the table."""
        if self._draft.reply.take_error(frame, event):
            return
        if kind is not None:
            self._draft.note_late_event(kind, frame, event)
            return
        if not self._table.document:
            self._draft.reply.note_unexpected("an object that does not say its type", frame, event)
        for step in self._table.document:
            step.take(self._draft, frame, event)


# Table steps for calls: a call starts, continues, ends, or arrives whole.
#
# A whole call has more authority than pieces that came before it (T015 where they disagree). A
# list is tolerated where a dialect has one call. Pieces of arguments are strings; anything else
# counts as its exact source.


@dataclass(frozen=True, slots=True)
class ValueCondition:
    """A condition: one of some values is at a path."""

    path: Path
    values: tuple[object, ...]

    def holds(self, frame: Frame) -> bool:
        """Check whether `frame` meets it."""
        return at(frame, self.path) in self.values


class Strings(enum.Enum):
    """The meaning of a string where whole arguments are expected."""

    TEXT = enum.auto()
    """The arguments' text."""
    VALUE = enum.auto()
    """A JSON string, where an object should be."""
    FREE = enum.auto()
    """The free text of a custom tool, unless it holds an object: then that is encoded twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStart:
    """A call starts. Paths are relative to `entry`, except the key's, relative to the event."""

    key: Key
    entry: Path = ()
    id: Path
    name: Path
    fragment: Path | None = None
    """First pieces of the arguments."""
    server: ValueCondition | None = None
    """When the provider runs the call itself."""
    optional: bool = False
    """Whether the event may begin something else than a call."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        found = at(frame, self.entry)
        key = self.key.of(frame)
        whole: JsonSource = _Lazy(event, self.entry)
        for place, entry in listed(found):
            call = self._start(draft, _moved(key, place), entry, event)
            call.identify(text_at(entry, self.id), text_at(entry, self.name))
            is_list = isinstance(found, list)
            source = draft.element(self.entry, place, event) if is_list else whole
            self._begin(call, entry, source, event)
        if not self.optional and as_object(found) is None and not isinstance(found, list):
            draft.reply.note_unexpected("the start of a call without the call", frame, event)

    def _begin(self, call: CallDraft, entry: Frame, source: JsonSource, event: Event) -> None:
        """Take the first fragment of the arguments."""
        value = None if self.fragment is None else at(entry, self.fragment)
        if self.fragment is None or value is None:
            return
        if isinstance(value, str):
            call.add(value, event)
        else:
            _add_bare(call, entry, source_at(source, self.fragment), event)

    def _start(
        self, draft: TableDraft, key: int | str | None, entry: Frame, event: Event
    ) -> CallDraft:
        draft.note_late_content(entry, event)
        known = None if key is None else draft.find(key)
        identifier = text_at(entry, self.id)
        if known is not None and (not identifier or not known.ids or identifier in known.ids):
            known.note("again", "S006", "the call starts a second time", entry, event)
            return known
        kind = CallKind.SERVER if self.server and self.server.holds(entry) else CallKind.FUNCTION
        call = draft.open(key, kind, event)
        call.announced = True
        if known is not None:
            call.note("", "T012", f"the index {key} is used for another call", entry, event)
        if key is None:
            _note_missing(self.key, call, entry, event)
        return call


def _note_renamed(call: CallDraft, name: str | None, entry: Frame, event: Event) -> None:
    if name and call.name and name != call.name:
        call.note("name", "T015", f"the name {call.name!r} changes to {name!r}", entry, event)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDelta:
    """A fragment of a call's arguments. Paths as in `CallStart`."""

    key: Key
    entry: Path = ()
    fragment: Path
    name: Path | None = None
    """The name of the call, in dialects without an event that starts calls."""
    encoded: bool = False
    """Whether a piece is never JSON itself, but a string with JSON in it (else T006)."""
    optional: bool = False
    """Whether the event may continue something else than a call."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        found = at(frame, self.entry)
        key = self.key.of(frame)
        if isinstance(found, dict):
            self._add(draft, key, found, _Lazy(event, self.entry), event)
        elif isinstance(found, list):
            for place, entry in listed(found):
                source = draft.element(self.entry, place, event)
                self._add(draft, _moved(key, place), entry, source, event)
        elif not self.optional:
            draft.reply.note_unexpected("a piece of a call without the call", frame, event)

    def _add(
        self,
        draft: TableDraft,
        key: int | str | None,
        entry: Frame,
        source: JsonSource,
        event: Event,
    ) -> None:
        value = at(entry, self.fragment)
        name = None if self.name is None else text_at(entry, self.name)
        if value is None and name is None:
            return
        draft.note_late_content(entry, event)
        call = draft.find(key)
        if call is None:
            call = self._open(draft, key, entry, event)
        elif key is None:
            _note_missing(self.key, call, entry, event)
        if name:
            _note_renamed(call, name, entry, event)
            call.identify(None, name)
        if value is not None:
            self._append(call, value, entry, source, event)

    def _append(
        self, call: CallDraft, value: object, entry: Frame, source: JsonSource, event: Event
    ) -> None:
        if call.ended is not None:
            call.note("ended", "S006", "arguments after the end of the call", entry, event)
        if isinstance(value, str):
            call.add(value, event)
            return
        where = source_at(source, self.fragment)
        if self.encoded:
            _add_bare(call, entry, where, event)
        else:
            call.add(where.text, event)

    def _open(
        self, draft: TableDraft, key: int | str | None, entry: Frame, event: Event
    ) -> CallDraft:
        call = draft.open(key, CallKind.FUNCTION, event)
        call.identify(key if isinstance(key, str) else None, None)
        if self.name is None:
            call.note("start", "S006", "arguments of a call that never started", entry, event)
        return call


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnd:
    """A call is complete."""

    key: Key
    optional: bool = False
    """Whether the event may end something else than a call."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        key = self.key.of(frame)
        call = draft.find(key)
        if call is not None:
            call.ended = call.ended or event
        elif not self.optional:
            draft.reply.note_unexpected("the end of a call that never started", frame, event)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallWhole:
    """A whole call. Paths as in `CallStart`.

    `key` is None where every such event is a call of its own.
    """

    key: Key | None = None
    entry: Path = ()
    id: tuple[Path, ...]
    """The first that is a string counts, here and below."""
    name: tuple[Path, ...]
    arguments: tuple[Path, ...]
    strings: Strings = Strings.VALUE
    server: ValueCondition | None = None
    each: Path = ()
    """From an element of `entry` to the call; elements without it are not calls."""
    ordered: bool = False
    """Whether the place in the list is the key."""
    weak: bool = False
    """Whether pieces that came before have more authority."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        found = at(frame, self.entry)
        if isinstance(found, list):
            for place, entry in listed(found):
                self._take(draft, entry, draft.element(self.entry, place, event), event, place)
        elif isinstance(found, dict):
            self._take(draft, found, _Lazy(event, self.entry), event, 0)

    def _take(
        self, draft: TableDraft, element: Frame, source: JsonSource, event: Event, place: int
    ) -> None:
        entry = as_object(at(element, self.each))
        if entry is None:
            return
        draft.note_late_content(entry, event)
        call = self._call(draft, entry, event, place)
        name = first_text(entry, self.name)
        _note_renamed(call, name, entry, event)
        call.identify(first_text(entry, self.id), name)
        self._settle(call, entry, source_at(source, self.each), event)
        call.ended = event

    def _call(self, draft: TableDraft, entry: Frame, event: Event, place: int) -> CallDraft:
        key: int | str | None = place if self.ordered else None
        if self.key is not None:
            key = self.key.of(entry)
        server = self.server is not None and self.server.holds(entry)
        kind = CallKind.SERVER if server else CallKind.FUNCTION
        call = None if key is None else draft.find(key)
        if call is None:
            call = draft.open(key, kind, event)
        elif server:
            call.kind = kind
        call.announced = True
        return call

    def _settle(self, call: CallDraft, entry: Frame, source: JsonSource, event: Event) -> None:
        where = next((keys for keys in self.arguments if at(entry, keys) is not None), None)
        if where is None or (self.weak and call.fragments):
            return
        text = self._text(call, at(entry, where), source_at(source, where))
        if not call.fragments:
            call.add(text, event)
            return
        # Once: a stream of many complete calls must not read the pieces again for each of them.
        if call.ended is None and text != call.raw and not _same_json(text, call.raw):
            detail = f"the pieces of the arguments differ from the whole {text:.80}"
            call.note("arguments", "T015", detail, call.raw, event)
        call.settle(text)

    def _text(self, call: CallDraft, value: object, source: JsonSource) -> str:
        if not isinstance(value, str) or self.strings is Strings.VALUE:
            return source.text
        if self.strings is Strings.FREE:
            if isinstance(parse(value).value, dict):
                return source.text
            call.kind = CallKind.CUSTOM
        return value


class _Lazy:
    """The source of the value at `keys` in the data of `event`. See `JsonSource`."""

    __slots__ = ("_event", "_keys")

    def __init__(self, event: Event, keys: Path) -> None:
        self._event = event
        self._keys = keys

    @property
    def text(self) -> str:
        return source_at(WholeString(self._event.data), self._keys).text


def _moved(key: int | str | None, place: int) -> int | str | None:
    """Return the key of list element `place` where a list shares one key."""
    return key + place if isinstance(key, int) else key


def _add_bare(call: CallDraft, entry: Frame, source: JsonSource, event: Event) -> None:
    """Append a fragment at `source` that should be a string (T006)."""
    call.note_unquoted(entry, event)
    call.add(source.text, event)


def _note_missing(key: Key, call: CallDraft, entry: Frame, event: Event) -> None:
    if isinstance(key, CallsByIndex):
        call.note("", "T011", "an event of a call has no index", entry, event)
    else:
        call.note("key", "S006", "an event of a call does not say which one", entry, event)


def _same_json(one: str, other: str) -> bool:
    """Check whether both texts are JSON of the same value; `1` equals `1.0`."""
    left, right = parse(one), parse(other)
    return left.error is None and right.error is None and left.value == right.value


# Table steps for anything but calls: text, endings, errors, usage.


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectObject:
    """Requires an object."""

    entry: Path
    what: str
    """Its name in messages."""
    each: bool = False
    """Whether it is every element of an array, which may be missing."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        found = at(frame, self.entry)
        values = (as_array(found) or ()) if self.each else (found,)
        for value in values:
            if not isinstance(value, dict):
                draft.reply.note_unexpected(f"{self.what} is not an object", frame, event)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextStep:
    """A fragment of text."""

    channel: Channel
    text: tuple[Path, ...]
    """The first that is a string counts, here and below."""
    each: Path | None = None
    """The array in whose elements the text is; None where it is in the event itself."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        if self.each is not None:
            for _, part in listed(at(frame, self.each)):
                draft.choice.add_text(self.channel, first_text(part, self.text) or "", event)
            return
        for keys in self.text:
            text = at(frame, keys)
            if isinstance(text, str):
                draft.note_late_content(frame, event)
                draft.choice.add_text(self.channel, text, event)
                return


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeTextStep:
    """The whole text again: counts only if no fragment of it came."""

    text: tuple[Path, ...]

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        texts = [text for keys in self.text if (text := text_at(frame, keys)) is not None]
        text = first_text(frame, self.text)
        if draft.reply.repeated_text is None:
            draft.reply.repeated_text = text or (texts[0] if texts else None)
        if text and not draft.has_whole_text:
            draft.has_whole_text = True
            if not draft.choice.text(Channel.TEXT):
                draft.choice.add_text(Channel.TEXT, text, event)


@dataclass(frozen=True, slots=True, kw_only=True)
class NonTextStep:
    """Content that is not text: an image, audio."""

    what: tuple[Path, ...]
    """It exists if there is anything at one of these paths."""
    each: Path | None = None
    """The array in whose elements it is; None where it is in the event itself."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        del event
        holders = [frame] if self.each is None else [one for _, one in listed(at(frame, self.each))]
        if any(at(one, keys) is not None for one in holders for keys in self.what):
            draft.choice.media = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureStep:
    """The signature of reasoning."""

    signature: tuple[Path, ...]
    """The first that is a string counts."""
    each: Path | None = None
    """The array in whose elements it is; None where it is in the event itself."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        del event
        holders = [frame] if self.each is None else [one for _, one in listed(at(frame, self.each))]
        found = (first_text(one, self.signature) for one in holders)
        draft.choice.thoughts += [Thought(signature=text) for text in found if text]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishStep:
    """The finish reason."""

    reason: Path
    errors: frozenset[str] = frozenset()
    """Reasons that are errors."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        reason = at(frame, self.reason)
        if not isinstance(reason, str):
            if reason is not None:
                draft.reply.note_unexpected("the finish reason is not a string", frame, event)
            return
        draft.choice.finish(reason, event)
        if reason in self.errors and draft.reply.error is None:
            draft.reply.fail(f"{self.reason[-1]} is {reason!r}", frame, event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A tool result."""

    id: tuple[Path, ...]
    name: tuple[Path, ...] = ()
    preliminary: Path | None = None
    """A flag that marks a preliminary result, which a later one replaces."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        draft.note_late_content(frame, event)
        if self.preliminary is None or at(frame, self.preliminary) is not True:
            call_id, name = first_text(frame, self.id), first_text(frame, self.name)
            draft.reply.results.append(ToolResult(call_id, name, event.number, event.place))


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalStep:
    """The terminal event."""

    normal: bool = True
    """Whether the reply is complete."""
    proof: Path = ()
    """A member without which it is not the terminal event."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        if not self.proof or at(frame, self.proof) is not None:
            draft.end(event, normal=self.normal)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorStep:
    """An error in place of the rest of the answer."""

    message: tuple[Path, ...]
    optional: bool = False
    """Whether the event is an error only if it has a message."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        message = first_text(frame, self.message)
        if message or not self.optional:
            draft.reply.fail(message or shown(frame), frame, event)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageStep:
    """Usage and model."""

    usage: Path | None = None
    model: Path | None = None

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        del event
        usage = as_object(at(frame, self.usage)) if self.usage else None
        if usage is not None:
            draft.reply.usage = usage
        if self.model:
            draft.reply.model = draft.reply.model or text_at(frame, self.model) or None
