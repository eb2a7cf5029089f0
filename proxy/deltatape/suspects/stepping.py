"""What a client has after each event of a stream, or after each read.

Strategy. The client reads the stream once. After each step, only the call that the step went to is
looked at, and of its arguments only what was appended: the time is linear in the steps. What a
client does at the end of the stream (drop calls, repair arguments) is one more step.

Other than in the search, no runs of fragments are joined, however long the stream.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from deltatape.model.reply import Reply
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.stepping import BuildStep, CallChange, SteppedClient, StepUnit
from deltatape.model.suspect import Suspect
from deltatape.printable import count, excerpt
from deltatape.suspects.accumulate import Accumulator, ClientResult, find_tagged
from deltatape.suspects.call_slot import CallSlot, members_alone
from deltatape.suspects.client import CORRECT, ClientModel, client_of
from deltatape.suspects.documentation import preset_fix
from deltatape.suspects.mistakes import MISTAKES
from deltatape.suspects.presets import PRESETS
from deltatape.suspects.search import rows
from deltatape.suspects.simulation import ClientRunner
from deltatape.suspects.steps import ClientCallDelta, EntryPhase, Step

_PARTS = {
    EntryPhase.START: "the start",
    EntryPhase.DELTA: "a fragment",
    EntryPhase.DONE: "the end",
    EntryPhase.CLOSE: "the end",
    EntryPhase.FINAL: "the end",
    EntryPhase.WHOLE: "all",
}
_WHERE = {
    "single": ", the only one that it keeps",
    "current": ", the one that began last",
    "one": ", the only one that it has",
    "id": ", the one with this id",
    "position": ", the one at this position of the event",
    "name": ", the one with this name",
    "call-id": ", the one with this call id",
}
"""The call that a fragment goes to, by the key of the client."""
_KEEPING = ("emit", "arguments", "parse", "source", "absent", "value")
"""The axes on which a client keeps other arguments than the fragment's."""
_ENDING = ("emit", "source", "incomplete", "repeats", "parse", "written")
"""The axes on which a client changes at the end what it has."""
_NOTHING_YET, _OPENED = "{}", {EntryPhase.START}
"""The arguments in the event that opens a call, where others follow."""
_MOST_STEPS = 20_000
"""How many steps all presets together have, about."""
_SHOWN = 40
"""How much of a name, an id or a text is shown in a note, in characters."""


def step_suspects(runner: ClientRunner, suspects: Iterable[Suspect]) -> Iterator[SteppedClient]:
    """Yield suspects as they read the stream of `runner`."""
    for suspect in suspects:
        base = client_of(*((one.axis, one.value) for one in suspect.mistakes))
        # What the documentation leaves open is not among the mistakes.
        alike = (
            each
            for each in (base, *runner.variants(base))
            if runner.outcome(each).calls == suspect.made.calls
        )
        unit, steps = step_client(runner, next(alike, base))
        yield SteppedClient(
            name=suspect.name,
            says=suspect.says,
            fix=suspect.fix,
            exact=suspect.exact,
            unit=unit,
            steps=steps,
        )


def step_presets(runner: ClientRunner, limit: int) -> Iterator[SteppedClient]:
    """Yield the presets that read the stream of `runner` wrongly, at most `limit`.

    Of a long stream, fewer: each of them has all of its steps.
    """
    limit = max(1, min(limit, _MOST_STEPS // (len(runner.steps) + 1)))
    presets = {preset.name: preset for preset in PRESETS}
    for row in islice((row for row in rows(runner) if row.differs), limit):
        preset = presets[row.name]
        unit, steps = step_client(runner, runner.clients_of(preset)[0])
        yield SteppedClient(
            name=row.name,
            says=row.says,
            fix=preset_fix(preset),
            exact=None,
            unit=unit,
            steps=steps,
        )


def step_client(
    runner: ClientRunner, client: ClientModel
) -> tuple[StepUnit, tuple[BuildStep, ...]]:
    """Return what `client` has after each event or read; the last step is the end.

    Reads are numbered as those of the stream.
    """
    stream, framing = runner.stream, runner.framing(client)
    if framing is None:
        trace = _Trace(client, stream.reply, None)
        steps: Iterable[Step] = runner.steps
    else:
        last = max(0, len(stream.reads) - 1)  # half a character may be left behind it
        trace = _Trace(client, stream.reply, [min(read, last) for read in framing.reads])
        steps = stream.steps(framing.events)
        for read, text in zip(framing.texts_at, framing.texts, strict=True):
            trace.at(min(read, last)).notes.append(f"cannot parse '{excerpt(text, _SHOWN)}'")
    if client.calls == CORRECT.calls:
        trace.read(steps)
    found = trace.end(runner, dies=framing is not None and framing.dies)
    return (StepUnit.EVENT if framing is None else StepUnit.READ), found


class _OpenChange:
    """What a step changes of a call, so far."""

    __slots__ = ("id", "kept", "length", "name", "pieces")

    def __init__(self, change: CallChange) -> None:
        self.id, self.name, self.kept = change.id, change.name, change.kept
        self.pieces = [change.added]
        self.length = change.kept + len(change.added)

    def then(self, change: CallChange) -> None:
        """Add what changes after it."""
        if change.kept != self.length:
            self.kept, self.pieces = 0, []
        self.id, self.name = change.id, change.name
        self.pieces.append(change.added)
        self.length = change.kept + len(change.added)


class _OpenStep:
    """A step to which more may be added."""

    __slots__ = ("_begun", "_changes", "_dropped", "errors", "notes")

    def __init__(self) -> None:
        self._begun: set[int] = set()
        self._changes: dict[int, _OpenChange] = {}
        self._dropped: list[int] = []
        self.errors: tuple[str, ...] = ()
        self.notes: list[str] = []

    @property
    def changes_calls(self) -> bool:
        return bool(self._changes or self._dropped)

    def begin(self, number: int, call: RepeatedCall) -> None:
        """Add a call that is new."""
        self._begun.add(number)
        self.change(CallChange(number, call.id, call.name, 0, call.arguments))

    def change(self, change: CallChange) -> None:
        before = self._changes.get(change.call)
        if before is None:
            self._changes[change.call] = _OpenChange(change)
        else:
            before.then(change)

    def drop(self, number: int) -> None:
        """Take away a call; one that began in this step is left out."""
        self._changes.pop(number, None)
        if number not in self._begun:
            self._dropped.append(number)

    def closed(self, at: int | None) -> BuildStep:
        changes = tuple(
            CallChange(call, each.id, each.name, each.kept, "".join(each.pieces))
            for call, each in sorted(self._changes.items())
        )
        notes = "; ".join(dict.fromkeys(self.notes))
        return BuildStep(at, changes, tuple(self._dropped), self.errors, notes)


class _ShownCall:
    """A call of the client as the steps so far have it."""

    __slots__ = (
        "_alone",
        "_front",
        "_members",
        "_pieces",
        "_seen",
        "_spreads",
        "id",
        "is_used",
        "length",
        "name",
        "number",
        "of",
    )

    def __init__(self, number: int, of: int | None, *, spreads: bool) -> None:
        self.number = number
        self.of = of
        """The reference's call whose fragment began it."""
        self.id: str | None = None
        self.name: str | None = None
        self.length = 0
        self.is_used = False
        self._spreads = spreads
        self._front = ""
        self._pieces: Sequence[str] = ()
        self._seen = 0
        self._members: dict[str, object] = {}
        self._alone: str | None = None

    @property
    def text(self) -> str:
        """The arguments."""
        if self._alone is not None:
            return self._alone
        return self._front + "".join(self._pieces[: self._seen])

    def follow(self, slot: CallSlot) -> CallChange:
        """Return what has changed in `slot` since the last time."""
        self.id, self.name = slot.identity
        if slot.is_parsed_alone:
            kept, added = self._follow_alone(slot.fragments)
        else:
            front, pieces = slot.pieces
            if front == _NOTHING_YET and slot.phases == _OPENED:
                front = ""
            kept, added = self._follow_pieces(front, pieces)
        self.length = kept + len(added)
        return CallChange(self.number, self.id, self.name, kept, added)

    def _follow_pieces(self, front: str, pieces: Sequence[str]) -> tuple[int, str]:
        if self._alone is None and pieces is self._pieces and front == self._front:
            added = "".join(pieces[self._seen :])
            self._seen = len(pieces)
            return self.length, added
        before, self._alone = self.text, None
        self._front, self._pieces, self._seen = front, pieces, len(pieces)
        return _changed(before, self.text)

    def _follow_alone(self, fragments: Sequence[str]) -> tuple[int, str]:
        before = self.text
        if fragments is not self._pieces:
            self._pieces, self._seen, self._members = fragments, 0, {}
        found: dict[str, object] = {}
        for fragment in fragments[self._seen :]:
            found.update(members_alone(fragment, spread=self._spreads))
        self._seen = len(fragments)
        if found or self._alone is None:
            self._members.update(found)
            self._alone = json.dumps(self._members, ensure_ascii=False)
        return _changed(before, self._alone)


def _changed(before: str, after: str) -> tuple[int, str]:
    """Return how much of a text is kept, all or nothing, and what is added to that."""
    if after.startswith(before):
        return len(before), after[len(before) :]
    return 0, after


class _Trace:
    """Follows a client through a stream.

    Args:
        client: the client that reads it.
        reply: the reply of the stream.
        reads: the numbers of the reads that complete the events that the client frames itself;
            None: it frames them as the standard says.
    """

    def __init__(self, client: ClientModel, reply: Reply, reads: Sequence[int] | None) -> None:
        self._client, self._reply, self._reads = client, reply, reads
        self._accumulator = Accumulator(client)
        self._shown: dict[CallSlot, _ShownCall] = {}
        self._steps: dict[int | None, _OpenStep] = {}
        self._next = 0
        self._begun: set[int] = set()
        """The reference's calls that began one of the client's."""
        self._carried: dict[tuple[int, str | None], set[int]] = {}
        """The reference's calls by events, and by events and what these bring of them."""
        for call in reply.tool_calls if reads is None else ():
            self._carried.setdefault((call.start_event, None), set()).add(call.index)
            for fragment in call.fragments:
                for text in (None, fragment.text):
                    self._carried.setdefault((fragment.event, text), set()).add(call.index)

    def at(self, place: int | None) -> _OpenStep:
        """Return the step of an event or read; None: of the end."""
        return self._steps.setdefault(place, _OpenStep())

    def read(self, steps: Iterable[Step]) -> None:
        """Have the client read the stream."""
        accumulator = self._accumulator
        was_used = False
        for step in accumulator.read(steps):
            place = step.event if self._reads is None else self._reads[step.event]
            if accumulator.thrown:
                self._throw(place)
                return
            if type(step) is ClientCallDelta:
                self._look_at(step, place)
                accumulator.touched, accumulator.refused = None, ""
            elif accumulator.used is not None and not was_used:
                was_used = True
                calls = count(len(accumulator.used), "call")
                self.at(place).notes.append(f"uses the {calls} that it has")
            if accumulator.stopped:
                self.at(place).notes.append(f"stops reading{self._because('stop')}")

    def end(self, runner: ClientRunner, *, dies: bool) -> tuple[BuildStep, ...]:
        """Return the steps, with the end of the stream.

        Args:
            runner: the runner of the client.
            dies: whether its own framing has stopped the client.
        """
        client, accumulator = self._client, self._accumulator
        found = [] if dies else accumulator.calls()
        had, last, step = len(self._shown), -1, self.at(None)
        for slot, call in found:
            shown = self._shown.get(slot)
            if shown is not None and shown.number > last:
                last = shown.number
                del self._shown[slot]
                kept, added = _changed(shown.text, call.arguments)
                if added or kept < shown.length or (shown.id, shown.name) != (call.id, call.name):
                    step.change(CallChange(last, call.id, call.name, kept, added))
            else:
                last = self._new_number()
                step.begin(last, call)
        for shown in self._shown.values():
            step.drop(shown.number)
        step.notes.append(self._ending(had, len(found), dies=dies))
        outcome = ClientResult(())
        if client.calls == CORRECT.calls:
            outcome = runner.with_rest(client, accumulator.result())
            if client.tags != CORRECT.tags and not dies:
                self._add_tagged()
        step.errors = runner.errors(client, outcome)
        places = sorted(place for place in self._steps if place is not None)
        return tuple(self._steps[place].closed(place) for place in (*places, None))

    def _new_number(self) -> int:
        self._next += 1
        return self._next - 1

    def _throw(self, place: int) -> None:
        step, thrown = self.at(place), self._accumulator.thrown
        for shown in self._shown.values():
            step.drop(shown.number)
        self._shown.clear()
        step.errors = thrown
        step.notes.append(f"throws '{thrown[0]}'")

    def _look_at(self, entry: ClientCallDelta, place: int) -> None:
        """Add what an entry changed."""
        slot, of = self._accumulator.touched, self._call_of(entry)
        if slot is None:
            if self._accumulator.refused and (entry.text or entry.id or entry.name):
                whose = "a call" if of is None else f"call {of}"
                why = self._because(self._accumulator.refused)
                self.at(place).notes.append(f"leaves out {_PARTS[entry.phase]} of {whose}{why}")
            return
        shown = self._shown.get(slot)
        if shown is None:
            self._begin(slot, of, place)
            return
        before = (shown.id, shown.name, shown.length)
        change = shown.follow(slot)
        if change.added or (change.id, change.name, change.kept) != before:
            self.at(place).change(change)
        notes = [*self._notes(entry, slot, shown, change, before)]
        if notes:
            self.at(place).notes += notes

    def _begin(self, slot: CallSlot, of: int | None, place: int) -> None:
        step = self.at(place)
        number = self._new_number()
        shown = _ShownCall(number, of, spreads=self._client.parse == "fragments-spread")
        self._shown[slot] = shown
        change = shown.follow(slot)
        call = RepeatedCall(id=change.id, name=change.name, arguments=change.added)
        step.begin(number, call)
        named = f", {excerpt(change.name, _SHOWN)}" if change.name else ""
        again = f" with a fragment of call {of}" if of in self._begun else ""
        step.notes.append(f"begins call {number}{named}{again}")
        if of is not None:
            self._begun.add(of)
        if len(self._shown) > len(self._accumulator.slots):
            left = {*self._accumulator.slots.values()}
            for each in [each for each in self._shown if each not in left]:
                gone = self._shown.pop(each).number
                step.drop(gone)
                step.notes.append(f"loses call {gone}")

    def _notes(
        self,
        entry: ClientCallDelta,
        slot: CallSlot,
        shown: _ShownCall,
        change: CallChange,
        before: tuple[str | None, str | None, int],
    ) -> Iterator[str]:
        """Yield what the client did with an entry of a call that it had.

        Args:
            entry: what it read.
            slot: the call that the entry went to.
            shown: the same as it is shown.
            change: what the entry changed of it.
            before: its id, its name, and the length of its arguments before that.
        """
        number, fragment = f"call {shown.number}", entry.phase is EntryPhase.DELTA
        said = change.added
        if change.kept < before[2]:
            yield f"replaces the arguments of {number}{self._because(*_KEEPING)}"
        elif said and fragment and said != entry.text:
            why = self._because(*_KEEPING)
            yield f"makes '{excerpt(said, _SHOWN)}' of a fragment of {number}{why}"
        elif said:
            of = self._call_of(entry)
            if of is None or shown.of in (None, of):
                yield f"appends to {number}"
            else:
                where = _WHERE.get(self._client.key, "")
                yield f"appends a fragment of call {of} to {number}{where}"
        elif fragment and entry.text:
            yield f"keeps nothing of a fragment{self._because(*_KEEPING)}"
        for what, old, new in (("id", before[0], change.id), ("name", before[1], change.name)):
            if old != new:
                why = self._because(what) if old else ""
                yield f"{number} gets {_value(what, new)}{why}"
        if slot.frozen and not shown.is_used:
            shown.is_used = True
            yield f"uses {number} now{self._because('emit')}"

    def _call_of(self, entry: ClientCallDelta) -> int | None:
        """Return the reference's call that an entry belongs to; None if unknown."""
        numbers = self._carried.get((entry.event, None), set())
        if len(numbers) > 1:
            numbers = self._carried.get((entry.event, entry.text or ""), set())
        return next(iter(numbers)) if len(numbers) == 1 else None

    def _add_tagged(self) -> None:
        """Add the calls that the client finds in the text, behind all others."""
        tagged = find_tagged(self._reply, self._client.tags)
        for event in tagged.damaged if self._reads is None else ():
            why = self._because("tags")
            self.at(event).notes.append(f"cannot parse the call in the text{why}")
        for event, one in tagged.found:
            number, call = self._new_number(), one.call
            step = self.at(event if self._reads is None else None)
            step.begin(number, RepeatedCall(id=call.id, name=call.name, arguments=call.arguments))
            step.notes.append(f"finds call {number} in the text")

    def _ending(self, had: int, used: int, *, dies: bool) -> str:
        """Describe what the client does at the end of the stream."""
        if self._client.calls != CORRECT.calls:
            return f"uses no call{self._because('calls')}"
        if self._accumulator.thrown or dies:
            return "has no call, since an error ended it"
        whole = f"uses {count(used, 'call')}"
        if used < had:
            whole = f"uses {used or 'none'} of its {had} calls" if had > 1 else "drops its call"
        return whole + (self._because(*_ENDING) if self.at(None).changes_calls else "")

    def _because(self, *axes: str) -> str:
        """Return the client's mistake on the first of `axes` on which it makes one."""
        values = ((axis, str(getattr(self._client, axis))) for axis in axes)
        found = next((MISTAKES[one].mistake for one in values if one in MISTAKES), None)
        return f": it {found.says}" if found else ""


def _value(what: str, value: str | None) -> str:
    return f"the {what} {excerpt(value, _SHOWN)}" if value else f"no {what}"
