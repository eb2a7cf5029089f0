"""What each event of a stream contributes: text, a call, arguments, an end, or nothing.

A keep-alive, a role without text or an empty delta show that the connection is alive, not that the
answer grows. Contributions come from the rebuilt reply, which knows the event of each of its parts;
in an unknown dialect every event that is not empty contributes something.
"""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from deltatape.model.reply import Choice, Reply, ToolCall
from deltatape.model.stream import Stream

_ERROR = "S005"
"""The code under which a dialect notes an error in place of an answer."""


class ContributionKind(enum.StrEnum):
    """The kind of an event's contribution."""

    TEXT = "text"
    REASONING = "reasoning"
    REFUSAL = "refusal"
    OPEN = "open"
    """It opened a call."""
    ARGUMENTS = "arguments"
    RESULT = "result"
    """The result of a call, in streams of applications."""
    FINISH = "finish"
    """A reason to finish, or an error."""
    END = "end"
    """The terminal signal."""
    UNKNOWN = "unknown"
    """Data of a stream without a known dialect."""


ENDS = frozenset({ContributionKind.FINISH, ContributionKind.END})
"""After these an answer only waits for its end."""


@dataclass(frozen=True, slots=True)
class EventContribution:
    """One contribution of an event; `call` if it belongs to a call."""

    what: ContributionKind
    text: str
    call: ToolCall | None = None


def brought(
    reply: Reply, stream: Stream, *, known: bool
) -> Mapping[int, tuple[EventContribution, ...]]:
    """Map event numbers to contributions; events without any are missing.

    Args:
        reply: the rebuilt reply of the stream.
        stream: the events.
        known: whether a dialect could read them.
    """
    if not known:
        return {
            event.number: (EventContribution(ContributionKind.UNKNOWN, event.data),)
            for event in stream.events
            if event.data.strip()
        }
    found: dict[int, list[EventContribution]] = {}
    for event, thing in _contributions(reply):
        found.setdefault(event, []).append(thing)
    return {event: tuple(things) for event, things in found.items()}


def _contributions(reply: Reply) -> Iterator[tuple[int, EventContribution]]:
    for choice in reply.choices:
        for piece in choice.pieces:
            yield piece.event, EventContribution(ContributionKind(piece.channel.value), piece.text)
        yield from _of_calls(choice)
        for event, reason in choice.finishes:
            yield event, EventContribution(ContributionKind.FINISH, reason)
    for result in reply.results:
        yield (
            result.event,
            EventContribution(ContributionKind.RESULT, result.name or result.call_id or ""),
        )
    for seen in reply.observations:
        if seen.code == _ERROR and seen.event is not None:
            yield seen.event, EventContribution(ContributionKind.FINISH, "error")
    if reply.terminal_event is not None:
        yield reply.terminal_event, EventContribution(ContributionKind.END, reply.terminator)


def _of_calls(choice: Choice) -> Iterator[tuple[int, EventContribution]]:
    for call in (*choice.tool_calls, *choice.server_calls):
        yield call.start_event, EventContribution(ContributionKind.OPEN, call.name or "", call)
        for fragment in call.fragments:
            yield fragment.event, EventContribution(ContributionKind.ARGUMENTS, fragment.text, call)
