"""Table steps for calls: a call starts, continues, ends, or arrives whole.

A whole call has more authority than pieces that came before it (T015 where they disagree). A list
is tolerated where a dialect has one call. Pieces of arguments are strings; anything else counts as
its exact source.
"""

import enum
from dataclasses import dataclass

from deltatape.dialects._calls import CallDraft
from deltatape.dialects._json import Frame, as_object
from deltatape.dialects._source_text import JsonSource, WholeString
from deltatape.dialects._table import (
    CallsByIndex,
    Key,
    Path,
    TableDraft,
    at,
    first_text,
    listed,
    source_at,
    text_at,
)
from deltatape.model.reply import CallKind
from deltatape.model.stream import Event
from deltatape.wire.json_value import parse


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
        draft.watch(entry, event)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDelta:
    """A fragment of a call's arguments. Paths as in `CallStart`."""

    key: Key
    entry: Path = ()
    fragment: Path
    name: Path | None = None
    """Where dialects name a call that no event starts."""
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
        draft.watch(entry, event)
        call = draft.find(key)
        if call is None:
            call = self._open(draft, key, entry, event)
        elif key is None:
            _note_missing(self.key, call, entry, event)
        if name:
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
    """From an element of `entry` to the call; elements without it are no calls."""
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
        draft.watch(entry, event)
        call = self._call(draft, entry, event, place)
        name = first_text(entry, self.name)
        if name and call.name and name != call.name:
            detail = f"the name {call.name!r} changes to {name!r}"
            call.note("name", "T015", detail, entry, event)
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
    detail = "the arguments are JSON instead of a string with JSON in it"
    call.note("bare", "T006", detail, entry, event)
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
