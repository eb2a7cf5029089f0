"""What each event of a reply brings, in full: the timeline's words, event by event. Pure."""

from collections.abc import Sequence

from deltatape.diagnose.rebuild import Analysis
from deltatape.model.stream import Event
from deltatape.rules.brought import Brought, What
from deltatape.why.kinds import identity, label, terminal, things_of


def news(analysis: Analysis) -> tuple[str, ...]:
    """For each event of the stream what it brings, such as `text: 'Hel'`; not escaped."""
    things = things_of(analysis)
    return tuple(_of_event(event, things.get(event.number, ())) for event in analysis.stream.events)


def _of_event(event: Event, things: Sequence[Brought]) -> str:
    if not things:
        return f"nothing new: {event.data}"
    told = [_tell(thing) for thing in things if thing.what not in (What.END, What.UNKNOWN)]
    if any(thing.what is What.END for thing in things):
        told.append(terminal(event))
    return "; ".join(told) or event.data


def _tell(thing: Brought) -> str:
    call = thing.call
    if call is None:
        is_end = thing.what is What.FINISH
        return f"ends: {thing.text}" if is_end else f"{thing.what}: '{thing.text}'"
    if thing.what is What.OPEN:
        return f"{label(call)} opens: {identity(call)}"
    return f"{label(call)} arguments: '{thing.text}'"
