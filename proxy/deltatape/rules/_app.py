"""Findings about the events that an application streams to its page.

The blame is the upstream's here: in such streams that is the application, and who analyses says so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deltatape.model.finding import Blame, Finding, Severity
from deltatape.model.stream import Place
from deltatape.rules._base import MOST_ALIKE, Claim, Documented, RuleContext, finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """What is wrong with an event."""

    message: str
    event: int
    place: Place
    severity: Severity | None = None
    """None: the rule's own."""


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
                confidence=context.seen,
                severity=flaw.severity,
                event=flaw.event,
                place=flaw.place,
                evidence=event.data if event else "",
            ),
        )
