"""Harmless: a call of a chat completion that comes whole comes in two events.

Some servers send a call with its id, its name and all of its arguments in one event, others open it
first and send the arguments behind. A client that has met the first only may take an event for a
call.
"""

from deltatape.model.stream import Stream
from deltatape.mutate import Chance, Draft, Entry, chat_calls, echoed
from deltatape.vary._base import legal

_OPENING = (("id",), ("type",), ("function", "name"))


@legal("opened-first")
def opened_first(draft: Draft, _stream: Stream, _: Chance) -> None:
    """A call that came whole comes in two events: first it is opened, then its arguments come."""
    for call in chat_calls(draft):
        first = call.entries[0]
        if first.arguments.text and first.says("index") is not None:
            _opened_before(draft, first)


def _opened_before(draft: Draft, entry: Entry) -> None:
    """Puts an event in front that opens the call, and leaves the arguments where they are."""
    opening = echoed(entry.arguments)
    opening.write("")
    opening.unit.drop(("usage",))
    draft.add_before(entry.unit, opening.unit)
    for path in _OPENING:
        entry.drop(*path)


WHOLE_CALLS = (opened_first,)
