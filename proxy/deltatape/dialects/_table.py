"""Describe a dialect as a table: for each event type, the steps that read it.

Many dialects are no more than start, delta and end of a call, pieces of text, and a last event.
Such a one is a `DialectTable`: by type of event the steps (`_table_calls`, `_table_steps`) that
take it, each with the paths of what it needs. `TableReducer` looks the type up and lets its steps
fill a `TableDraft`, which knows which call a key stands for. What only one dialect does is a step
of its own.

Types that the table does not have are ignored, since providers add new ones; only an error is seen
in every event. All calls and texts belong to the one choice that such dialects have.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from deltatape.dialects._call_end import CallEndCause
from deltatape.dialects._calls import CallDraft
from deltatape.dialects._choice import ChoiceDraft, DialectPolicy
from deltatape.dialects._delta_fast_path import NO_FAST_PATH
from deltatape.dialects._json import EVIDENCE_LIMIT, Frame, get_index
from deltatape.dialects._reply import ReplyDraft
from deltatape.dialects._source_text import Element, Elements, JsonSource, MemberValue, WholeString
from deltatape.model.reply import CallKind, Channel, Reply
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event

_SENTINEL = "[DONE]"

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
    """Return where the value at `keys`, which exists, of the object at `source` stands."""
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
        document: what to do with an object that says no type: an answer that is not streamed.
        sentinel: whether `[DONE]` is a terminal signal, too; it is ignored else.
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
    """A reply under construction, and which calls the wire's keys stand for."""

    def __init__(self, table: DialectTable, request: RequestSummary) -> None:
        self.reply = ReplyDraft(table.name, table.terminator, request, table.policy)
        self.choice: ChoiceDraft = self.reply.choice()
        self.normal = False
        """Whether the terminal signal came and let the answer end as it should."""
        self.recited = False
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
        """Return a new call, which `key` stands for from now on."""
        index = key if isinstance(key, int) else None
        draft = self._last = self.choice.open(kind, event, index)
        if key is not None:
            self._calls[key] = draft
        return draft

    def element(self, keys: Path, place: int, event: Event) -> JsonSource:
        """Where the element number `place` of the array at `keys` stands in the data of `event`.

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

    def watch(self, frame: Frame, event: Event) -> None:
        """Notes that an event with content comes after the terminal one."""
        if self.reply.terminal is None:
            return
        if self._final:
            detail = "the answer goes on after the event that ended it"
            self.reply.notes.once("", "A004", detail, frame, event)
        else:
            self.reply.note_unexpected("content after the terminal event", frame, event)

    def pass_by(self, kind: str, frame: Frame, event: Event) -> None:
        """Notes that an event without content comes after the terminal one."""
        if self._final and self.reply.terminal is not None:
            detail = f"an event of the type {kind!r} after the one that ended the stream"
            self.reply.notes.once(kind, "A005", detail, frame, event)

    def end(self, event: Event, *, normal: bool) -> None:
        """Takes the terminal signal; the first one counts."""
        if self.reply.terminal is None:
            self.reply.terminal = event
            self.normal = normal
        elif self._final:
            detail = "a second event that ends the stream"
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
        if event.data.strip() == _SENTINEL:
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
        """Takes an event of no type, or of one that the table does not have."""
        if self._draft.reply.take_error(frame, event):
            return
        if kind is not None:
            self._draft.pass_by(kind, frame, event)
            return
        if not self._table.document:
            self._draft.reply.note_unexpected("an object that does not say its type", frame, event)
        for step in self._table.document:
            step.take(self._draft, frame, event)
