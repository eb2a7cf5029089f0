"""Findings about the events that an application streams to its page.

The blame is the upstream's here: in such streams that is the application, and who analyses says so.

The events of the AI SDK are specified; those of other applications are not, and what looks wrong by
the contract that most have may be right by their own (`is_own_contract`). There nothing is proven
but what no contract can mean, and what has another explanation is only possible.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from deltatape.model.finding import Blame, Confidence, Excluded, Finding, Severity, at_most
from deltatape.model.stream import Place
from deltatape.rules._base import MOST_ALIKE, Claim, Documented, RuleContext, finding

_OWN = "app-events"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """What is wrong with an event."""

    message: str
    event: int
    place: Place
    severity: Severity | None = None
    """None: the rule's own."""
    confidence: Confidence | None = None
    """In a contract of the application's own; None: possible."""
    excluded: tuple[Excluded, ...] = ()
    doubted: bool = False
    """Whether no specification speaks against an innocent explanation, either."""


def is_own_contract(context: RuleContext) -> bool:
    """Whether the events are the application's own invention, which nobody else specifies."""
    return context.reply.dialect == _OWN


def sure(context: RuleContext, own: Confidence | None = None) -> Confidence:
    """How sure a flaw is: by a specification as sure as the bytes, else `own`, or possible."""
    if not is_own_contract(context):
        return context.seen
    own = own or Confidence.POSSIBLE
    return max(own, context.seen, key=lambda each: each.rank)


def dies_in_call(context: RuleContext) -> bool:
    """Whether the stream ended behind a call, with neither a result nor an end.

    Where no call has a result, the page may run them all, and the body end with them.
    """
    events = context.stream.events
    last = events[-1].number if events else None
    starts = {call.start_event for _, call in context.calls()}
    reply = context.reply
    return last in starts and bool(reply.results) and not reply.terminated


def doubted(found: Finding, context: RuleContext) -> Finding:
    """`found`, but at most possible where the events are the application's own.

    Likely where the stream dies within a call: no contract ends there.
    """
    if not is_own_contract(context) or found.blame is None:
        return found
    dies = dies_in_call(context)
    confidence = sure(context, Confidence.LIKELY if dies else None)
    severity = at_most(found.severity, found.blame, confidence)
    return replace(
        found, confidence=confidence, severity=severity, excluded=DIES if dies else found.excluded
    )


DIES = (
    Excluded(
        "the contract ends with the body, or the page runs the tool",
        "earlier calls have results in this stream, which stops right behind this one",
    ),
)


def flawed(
    rule: Documented, context: RuleContext, flaws: Sequence[Flaw], hint: str
) -> Iterator[Finding]:
    """A finding per flaw, at most `MOST_ALIKE`, the last one with a count of the others."""
    for number, flaw in enumerate(flaws[:MOST_ALIKE], 1):
        left = len(flaws) - MOST_ALIKE if number == MOST_ALIKE else 0
        more = f" (and {left} more)" if left else ""
        event = context.event(flaw.event)
        yield finding(
            rule,
            context,
            Claim(
                message=f"{flaw.message}{more}",
                hint=hint,
                blame=Blame.UPSTREAM,
                confidence=Confidence.POSSIBLE if flaw.doubted else sure(context, flaw.confidence),
                severity=flaw.severity,
                event=flaw.event,
                place=flaw.place,
                evidence=event.data if event else "",
                excluded=flaw.excluded,
            ),
        )
