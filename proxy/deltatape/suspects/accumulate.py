"""The client that all suspects vary: turns steps into calls as its axes say.

One pass, linear in the steps. An error that the client would throw ends the pass and drops every
call that was not used before. Calls in the text are searched separately, in its fragments.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate as running_sums
from itertools import islice
from typing import NamedTuple

from deltatape.model.reply import Channel, Reply, TextCall
from deltatape.model.request_summary import RepeatedCall
from deltatape.suspects.call_slot import CallSlot
from deltatape.suspects.client import ClientModel
from deltatape.suspects.steps import ClientCallDelta, EntryPhase, FinishDelta, IncompleteDelta, Step

_TOOL_WORDS = frozenset({"tool_calls", "function_call", "tool_use", "TOOL_CALL", "tool-calls"})
_WITHOUT_KEY = frozenset({"single", "current", "one", "none"})
"""Clients that cannot tell which call an event ends."""
_PICKY = frozenset({"call-id", "delta-item-id", "item-id", "strict", "list"})
"""Clients that skip entries without the key that they look for."""
_WRAPPED = "function_tool_call"
_OPENERS = (EntryPhase.START, EntryPhase.WHOLE)
_REPEATS = (EntryPhase.DONE, EntryPhase.CLOSE, EntryPhase.FINAL)
_NO_CHOICES = {
    "choices": (
        "list index out of range",
        "Cannot read properties of undefined (reading 'delta')",
        "Cannot read properties of undefined (reading '0')",
        "KeyError: 'choices'",
        "index out of range [0] with length 0",
    ),
    "delta": (
        "'NoneType' object has no attribute 'get'",
        "'NoneType' object has no attribute 'content'",
        "'NoneType' object has no attribute 'tool_calls'",
        "Cannot read properties of null (reading 'tool_calls')",
        "Cannot read properties of null (reading 'content')",
        "Cannot read properties of undefined (reading 'tool_calls')",
        "Cannot read properties of undefined (reading 'content')",
    ),
}
_NO_INDEX = (
    "KeyError: 'index'",
    "list indices must be integers or slices, not NoneType",
)
_NO_PLACE = (
    "list index out of range",
    "IndexError: list index out of range",
    "Cannot read properties of undefined (reading 'type')",
    "Cannot read properties of undefined (reading 'function')",
    "Cannot read properties of undefined (reading 'arguments')",
    "Cannot set properties of undefined (setting 'arguments')",
    "index out of range [1] with length 0",
    "list assignment index out of range",
)
_NO_TEXT = (
    'can only concatenate str (not "dict") to str',
    "unsupported operand type(s) for +=: 'NoneType' and 'dict'",
    "cannot unmarshal object into Go struct field",
    "invalid type: map, expected a string",
)


class ClientResult(NamedTuple):
    """The calls and errors that a client ends up with."""

    calls: tuple[RepeatedCall, ...]
    thrown: tuple[str, ...] = ()
    """Exceptions other than a JSON parser's, as several languages word them: any one counts."""
    texts: tuple[str, ...] = ()
    """The texts that it passes to a JSON parser."""


def accumulate(steps: Iterable[Step], client: ClientModel) -> ClientResult:
    """Run `client` on `steps`."""
    accumulator = Accumulator(client)
    for _ in accumulator.read(steps):
        pass
    return accumulator.result()


class Accumulator:
    """A client that reads: its calls after each step."""

    def __init__(self, client: ClientModel) -> None:
        self._client = client
        self.slots: dict[object, CallSlot] = {}
        """The calls that it has, in the order in which they began."""
        self.touched: CallSlot | None = None
        """The call that the last entry went to; the reader resets it to None."""
        self.refused = ""
        """The axis on which the last entry was left out, likewise."""
        self.used: list[CallSlot] | None = None
        """The calls that it used when a finish reason came."""
        self.stopped = False
        self.thrown: tuple[str, ...] = ()
        self._finishes: list[str] = []
        self._keys: dict[str, Callable[[ClientCallDelta], object]] = {
            "index": self._by_index,
            "strict": self._by_strict_index,
            "list": self._by_position,
            "id": lambda entry: entry.id or entry.item,
            "position": lambda entry: entry.at,
            "name": lambda entry: entry.name,
            "call-id": self._by_call_id,
            "delta-item-id": lambda entry: entry.item if entry.phase is EntryPhase.DELTA else None,
            "item-id": self._by_item_id,
            "single": self._current,
            "current": self._current,
            "one": lambda _: 0,
            "none": lambda _: object(),
        }

    def read(self, steps: Iterable[Step]) -> Iterator[Step]:
        """Yield each step when the client has read it, up to the last one that it reads."""
        for step in steps:
            if type(step) is ClientCallDelta:
                self._add(step)
            elif type(step) is FinishDelta:
                self._finish(step)
            elif type(step) is IncompleteDelta:
                if self._client.guard == "unguarded":
                    self.thrown = _NO_CHOICES[step.what]
            else:
                self.stopped = self._client.stop == "blank"
            yield step
            if self.stopped or self.thrown:
                break

    def result(self) -> ClientResult:
        """Return what it ends up with."""
        if self.thrown:
            return ClientResult((), self.thrown)
        slots = self._used_slots()
        calls = [call for _, call in self._repeated(slots)]
        texts = [text for slot in slots for text in slot.parsed_texts]
        return ClientResult(tuple(calls), (), tuple(dict.fromkeys(texts)))

    def calls(self) -> list[tuple[CallSlot, RepeatedCall]]:
        """Return the calls that it ends up with, each with its state."""
        return [] if self.thrown else self._repeated(self._used_slots())

    def _add(self, entry: ClientCallDelta) -> None:
        client = self._client
        if client.stop == "finish-before" and entry.finished:
            self.stopped, self.refused = True, "stop"
            return
        refused = self._refusal(entry)
        if refused:
            self.refused = refused
            return
        if client.value == "raise" and entry.unquoted:
            self.thrown = _NO_TEXT
            return
        if entry.phase in _REPEATS and client.key in _WITHOUT_KEY:
            if self.slots and client.key != "none":
                self.touched = self.slots[next(reversed(self.slots))]
                self.touched.add(ClientCallDelta(entry.event, entry.phase), opening=False)
            return
        key = self._keys[client.key](entry)
        if key is None and client.key in _PICKY:
            self.refused = "key"
            return
        slot = self.slots.get(key)
        opening = slot is None
        if slot is None or (entry.phase is EntryPhase.WHOLE and client.key != "one"):
            self.slots.pop(key, None)
            slot = self.slots[key] = CallSlot(client)
        slot.add(entry, opening=opening)
        self.touched = slot
        self.stopped = client.stop == "first-entry"

    def _refusal(self, entry: ClientCallDelta) -> str:
        """Return the axis on which the client leaves out `entry`; "" if it reads it."""
        client = self._client
        if client.entries == "first" and entry.at:
            return "entries"
        if client.entries == "with-arguments" and not entry.text:
            return "entries"
        if client.whole == "nameless-dropped" and entry.phase is EntryPhase.DELTA:
            return "whole"
        if client.whole == "overwrite" and entry.phase in _OPENERS and not entry.at:
            self.slots.clear()
        if (
            (client.kinds == "no-legacy" and entry.kind == "legacy")
            or (client.kinds == "no-custom" and entry.kind == "custom")
            or (client.kinds == "wrapped" and entry.kind != _WRAPPED)
            or (client.kinds == "documented" and entry.kind == _WRAPPED)
        ):
            return "kinds"
        return ""

    def _by_index(self, entry: ClientCallDelta) -> object:
        if entry.phase is EntryPhase.WHOLE:
            return object()
        return 0 if entry.index is None else entry.index

    def _by_strict_index(self, entry: ClientCallDelta) -> object:
        if entry.index is None:
            self.thrown = _NO_INDEX
        return entry.index

    def _by_position(self, entry: ClientCallDelta) -> object:
        if entry.index is None:
            self.thrown = _NO_INDEX
        elif entry.index > len(self.slots):
            self.thrown = _NO_PLACE
            return None
        return entry.index

    def _by_call_id(self, entry: ClientCallDelta) -> object:
        """Return one common key: deltas have no call id."""
        return (entry.id or "") if entry.phase is EntryPhase.DELTA else None

    def _by_item_id(self, entry: ClientCallDelta) -> object:
        known = entry.item in self.slots
        named = entry.phase in (EntryPhase.START, EntryPhase.CLOSE)
        return entry.item if known or named else None

    def _current(self, entry: ClientCallDelta) -> object:
        begins = entry.phase in _OPENERS or bool(entry.id)
        if begins and self._client.key == "single":
            self.slots.clear()
        return object() if begins or not self.slots else next(reversed(self.slots))

    def _finish(self, step: FinishDelta) -> None:
        self._finishes.append(step.reason)
        emit = self._client.emit
        says_so = emit == "on-finish" or (emit == "on-tool-calls" and step.reason in _TOOL_WORDS)
        if says_so and step.reason and self.used is None:
            self.used = [*self.slots.values()]
        stop = self._client.stop
        self.stopped = stop == "finish" or (stop == "finish-before" and bool(step.reason))

    def _used_slots(self) -> list[CallSlot]:
        """Return the calls that the client uses at the end."""
        slots = [*self.slots.values()]
        emit, source = self._client.emit, self._client.source
        if emit in ("on-finish", "on-tool-calls"):
            slots = self.used or []
        elif emit == "last-tool-calls" and _TOOL_WORDS.isdisjoint(self._finishes[-1:]):
            slots = []
        elif emit == "when-parses":
            slots = [slot for slot in slots if slot.frozen]
        needed = _NEEDED.get(emit) or _NEEDED.get(source)
        found = [slot for slot in slots if needed is None or slot.phases & needed]
        return [slot for slot in found if not slot.is_dropped]

    def _repeated(self, slots: Iterable[CallSlot]) -> list[tuple[CallSlot, RepeatedCall]]:
        """Return the calls of `slots` that the client runs and repeats, each with its slot."""
        client = self._client
        found = [(slot, slot.call()) for slot in slots]
        if client.incomplete == "dropped":
            found = [(slot, call) for slot, call in found if call.id and call.name]
        if client.repeats == "dropped":
            once = {(call.name, call.arguments): (slot, call) for slot, call in reversed(found)}
            found = [*once.values()]
            found.reverse()
        return found


_NEEDED = {
    "at-close": {EntryPhase.CLOSE, EntryPhase.WHOLE},
    "added": {EntryPhase.START, EntryPhase.WHOLE},
    "item-done": {EntryPhase.CLOSE},
    "completed": {EntryPhase.FINAL},
    "deltas": {EntryPhase.START, EntryPhase.DELTA},
    "arguments-done": {EntryPhase.DONE},
}
"""The only fields in which some clients look for calls."""


# Text calls as found by parsers that do not wait for a whole tag. Their result depends on how the
# text was split into fragments; the reference is what `text_calls` finds in the whole text.

_MOST = 50
"""The most repetitions of one call to report."""


class _TaggedJson(NamedTuple):
    """The JSON of a call in the text, and its closing tag."""

    start: int
    text: str
    closer: str


class TagResult(NamedTuple):
    """What such a parser finds in the text, and passes to a JSON parser."""

    found: tuple[tuple[int, TextCall], ...]
    """The calls, each after the event with which it is found."""
    texts: tuple[str, ...]
    damaged: tuple[int, ...] = ()
    """The last event of each call whose text is damaged."""


def tag_outcome(reply: Reply, how: str) -> ClientResult:
    """Return the calls that such a parser finds in the text of `reply`."""
    tagged = find_tagged(reply, how)
    calls = tuple(
        RepeatedCall(id=one.call.id, name=one.call.name, arguments=one.call.arguments)
        for _, one in tagged.found
    )
    return ClientResult(calls, (), tagged.texts)


def find_tagged(reply: Reply, how: str) -> TagResult:
    """Find the calls that such a parser finds in the text of `reply`, and when it does."""
    found = [one for one in reply.text_calls if one.channel is Channel.TEXT]
    fragments = [one for one in reply.choices[0].pieces if one.channel is Channel.TEXT]
    cuts = [*running_sums(len(fragment.text) for fragment in fragments)]
    texts: dict[str, None] = {}
    spoilt: tuple[int, ...] = ()
    if how == "reasoning":
        found = [*reply.text_calls]
    elif how == "first-call":
        found = found[:1]
    elif how == "per-chunk":
        found = [one for one in found if not any(one.start < cut < one.end for cut in cuts)]
    elif how == "rescan":
        again = (
            (fragment.event, one)
            for fragment, end in zip(fragments, cuts, strict=True)
            for one in found
            if one.end <= end
        )
        return TagResult(tuple(islice(again, _MOST)), ())
    elif how in ("flush-early", "braces"):
        damaged = [_damaged_texts(_tagged_json(reply.text, one), cuts, how) for one in found]
        texts = dict.fromkeys(text for each in damaged for text in each)
        pairs = [*zip(found, damaged, strict=True)]
        spoilt = tuple(_last_event(one) for one, each in pairs if each)
        found = [one for one, each in pairs if not each]
    return TagResult(tuple((_last_event(one), one) for one in found), tuple(texts), spoilt)


def _last_event(one: TextCall) -> int:
    """Return the event with which a call in the text is whole."""
    pieces = one.call.fragments
    return pieces[-1].event if pieces else one.call.start_event


def bodies(reply: Reply) -> list[str]:
    """Return the objects between call tags in the text."""
    found = (
        _tagged_json(reply.text, one) for one in reply.text_calls if one.channel is Channel.TEXT
    )
    return [body.text for body in found if body is not None]


def _tagged_json(text: str, one: TextCall) -> _TaggedJson | None:
    raw = text[one.start : one.end]
    start, end = raw.find("{"), raw.rfind("}") + 1
    if start < 0 or end <= start:
        return None
    end = max(end, raw.rfind("</"))
    return _TaggedJson(one.start + start, raw[start:end].rstrip(), raw[end:].strip())


def _damaged_texts(body: _TaggedJson | None, cuts: Sequence[int], how: str) -> list[str]:
    """Return the texts parsed in place of `body`; empty if it is parsed correctly."""
    if body is None:
        return []
    if how == "braces":
        end = _balanced_end(body.text)
        return [] if end == len(body.text) else [body.text[:end]]
    end = body.start + len(body.text)
    if not any(body.start < cut < end + max(1, len(body.closer)) for cut in cuts):
        return []
    inside = [cut - body.start for cut in cuts if body.start < cut < end]
    # The parser held back a possible closing tag; it follows the text already passed on.
    tails = [body.closer[at:] for at in range(1, len(body.closer))]
    return [*(body.text[:cut] for cut in inside), *(body.text + tail for tail in tails)]


def _balanced_end(text: str) -> int:
    """Return where braces balance if those in strings are counted; the length if nowhere."""
    depth = 0
    for at, sign in enumerate(text, 1):
        depth += (sign == "{") - (sign == "}")
        if depth == 0:
            return at
    return len(text)
