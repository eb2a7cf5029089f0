"""Describes the events of a reply, one by one or in runs of one kind."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from deltatape.diagnose.rebuild import Analysis
from deltatape.dialects import UNKNOWN
from deltatape.model.reply import NOT_OURS, ToolCall
from deltatape.model.stream import Event
from deltatape.printable import count
from deltatape.rules.event_contribution import ContributionKind, EventContribution, brought

_SHOWN = 60
_RUNS = frozenset(
    {
        ContributionKind.TEXT,
        ContributionKind.REASONING,
        ContributionKind.REFUSAL,
        ContributionKind.ARGUMENTS,
    }
)
"""What comes in many events, which are told as one."""


@dataclass(frozen=True, slots=True)
class EventKind:
    """What events of one run have in common."""

    name: str
    detail: str = ""


_NOTHING = EventKind("nothing new")
_ARGUMENTS = EventKind("arguments")


def things_of(analysis: Analysis) -> Mapping[int, tuple[EventContribution, ...]]:
    """Map event numbers to what each event contributed."""
    reply = analysis.reply
    return brought(reply, analysis.stream, known=reply.dialect != UNKNOWN)


def label(call: ToolCall) -> str:
    """Return a call's label: `call 0`, `server call 1`."""
    return f"server call {call.index}" if call.kind in NOT_OURS else f"call {call.index}"


def identity(call: ToolCall) -> str:
    """Return a call's name and id: `get (c1)`."""
    return f"{call.name or 'no name'} ({call.id or 'no id'})"


def terminal(event: Event) -> str:
    """Describe the terminal signal: a sentinel as it is, a JSON event by its type."""
    is_json = event.data.lstrip().startswith("{")
    return "the terminal event" if is_json else event.data


class Kinds:
    """Describes the events of one reply."""

    def __init__(self, analysis: Analysis) -> None:
        self._things = things_of(analysis)

    def of_all(self, events: Sequence[Event]) -> Iterator[tuple[EventKind, Event]]:
        """Yield each event with its kind; an empty event inside a run joins the run."""
        before = _NOTHING
        for event in events:
            kind = self._of(event)
            if kind == _NOTHING and before.name in _RUNS:
                kind = before
            yield kind, event
            before = kind

    def _of(self, event: Event) -> EventKind:
        things = self._things.get(event.number, ())
        opened = next((one.call for one in things if one.what is ContributionKind.OPEN), None)
        if opened:
            size = sum(len(one.text) for one in things if one.what is ContributionKind.ARGUMENTS)
            shown = f", with {size} characters of arguments" if size else ""
            return EventKind("open", f"{label(opened)} opens: {identity(opened)}{shown}")
        by_what = {one.what: one for one in things}
        for what in (
            ContributionKind.ARGUMENTS,
            ContributionKind.FINISH,
            ContributionKind.END,
            ContributionKind.UNKNOWN,
        ):
            if what in by_what:
                return _kind(by_what[what], event)
        return EventKind(next(iter(by_what))) if by_what else _NOTHING

    def tell(self, kind: EventKind, run: Sequence[Event]) -> str:
        """Describe a run of events of one kind."""
        if kind.detail:
            return kind.detail
        events = count(len(run), "event")
        if kind == _NOTHING:
            return f"{events} without content"
        if kind != _ARGUMENTS:
            return f"{kind.name}: {events}"
        things = (one for event in run for one in self._things.get(event.number, ()))
        calls = {label(one.call): None for one in things if one.call}
        mixed = ", interleaved" if len(calls) > 1 else ""
        return f"{' and '.join(sorted(calls))} arguments{mixed}: {events}"


def _kind(thing: EventContribution, event: Event) -> EventKind:
    if thing.what is ContributionKind.FINISH:
        return EventKind("finish", f"ends: {thing.text[:_SHOWN]}")
    if thing.what is ContributionKind.END:
        return EventKind("sentinel", terminal(event)[:_SHOWN])
    if thing.what is ContributionKind.UNKNOWN:
        return EventKind("data")
    return _ARGUMENTS


def news(analysis: Analysis) -> tuple[str, ...]:
    """Describe what each event adds, such as `text: 'Hel'`; not escaped."""
    things = things_of(analysis)
    return tuple(_of_event(event, things.get(event.number, ())) for event in analysis.stream.events)


def _of_event(event: Event, things: Sequence[EventContribution]) -> str:
    if not things:
        return f"nothing new: {event.data}"
    told = [
        _tell(thing)
        for thing in things
        if thing.what not in (ContributionKind.END, ContributionKind.UNKNOWN)
    ]
    if any(thing.what is ContributionKind.END for thing in things):
        told.append(terminal(event))
    return "; ".join(told) or event.data


def _tell(thing: EventContribution) -> str:
    call = thing.call
    if call is None:
        is_end = thing.what is ContributionKind.FINISH
        return f"ends: {thing.text}" if is_end else f"{thing.what}: '{thing.text}'"
    if thing.what is ContributionKind.OPEN:
        return f"{label(call)} opens: {identity(call)}"
    return f"{label(call)} arguments: '{thing.text}'"
