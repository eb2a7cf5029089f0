"""What a rule is, what it sees, and how it makes a finding.

A rule is stateless and pure: values of the model in, findings out. It never sees a dialect, so
that a rule on empty arguments holds for every provider. Its docstring is its documentation.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from deltatape.model.asked import Asked
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Blame, Confidence, Excluded, Finding, Severity, at_most
from deltatape.model.reply import Choice, Observation, Reply, ToolCall
from deltatape.model.stream import Event, Place, Stream
from deltatape.rules.brought import Brought, brought
from deltatape.rules.evidence import excerpt
from deltatape.rules.settings import Settings

MAX_MESSAGE = 600
"""Longest message of a finding, in characters."""
MOST_ALIKE = 20
"""Findings of one rule about what a dialect noticed in one exchange."""
_UNKNOWN = "unknown"
NS = 1_000_000_000
"""Nanoseconds per second."""


class Documented(Protocol):
    """What every rule has, whatever it looks at.

    The docstring has the sections What it does, Why is this bad, Example, Fix, References.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity]
    """The severity of the usual case; a finding may be milder or graver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleContext:
    """All that a rule may look at: one exchange and what was made of it."""

    exchange: Exchange
    stream: Stream
    asked: Asked
    reply: Reply
    settings: Settings

    @property
    def seen(self) -> Confidence:
        """How sure it is that these bytes came from upstream: proven if a recorder took them."""
        return Confidence.PROVEN if self.exchange.timed else Confidence.LIKELY

    @property
    def recognised(self) -> bool:
        """Whether the response is of a dialect that deltatape reads."""
        return self.reply.dialect != _UNKNOWN

    @property
    def successful(self) -> bool:
        """Whether the response has a 2xx status."""
        head = self.exchange.response
        return head is not None and head.status // 100 == 2  # noqa: PLR2004 - the class 2xx

    def observed(self, code: str) -> Iterator[Observation]:
        """What the dialect noticed under `code`, in wire order."""
        return (each for each in self.reply.observations if each.code == code)

    def calls(self) -> Iterator[tuple[Choice, ToolCall]]:
        """Every call with its choice, in the order of the reply."""
        return ((choice, call) for choice in self.reply.choices for call in choice.tool_calls)

    @property
    def brought(self) -> Mapping[int, tuple[Brought, ...]]:
        """By event number what the events brought; to be asked once by a rule, not per event."""
        return brought(self.reply, self.stream, known=self.recognised)

    def event(self, number: int | None) -> Event | None:
        """The event with this number, if there is one."""
        if number is None or not 0 <= number < len(self.stream.events):
            return None
        return self.stream.events[number]


class Rule(Documented, Protocol):
    """A rule about one exchange."""

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """Every defect of its kind in the exchange, in wire order. Never raises on wire data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A finding without what the rule and the exchange already say. `evidence` is not yet escaped.

    `severity` None: the rule's own.
    """

    message: str
    hint: str
    blame: Blame | None
    confidence: Confidence
    severity: Severity | None = None
    event: int | None = None
    place: Place | None = None
    evidence: str = ""
    excluded: tuple[Excluded, ...] = ()


def escaped(excluded: tuple[Excluded, ...]) -> tuple[Excluded, ...]:
    """The same, fit to be shown."""
    return tuple(Excluded(excerpt(each.explanation), excerpt(each.because)) for each in excluded)


def finding(rule: Documented, context: RuleContext, claim: Claim) -> Finding:
    """The finding that `rule` makes of `claim` about this exchange."""
    place = claim.place
    return Finding(
        code=rule.code,
        name=rule.name,
        severity=at_most(claim.severity or rule.severity, claim.blame, claim.confidence),
        blame=claim.blame,
        confidence=claim.confidence,
        message=excerpt(claim.message, MAX_MESSAGE),
        hint=claim.hint,
        tape=context.exchange.tape,
        line=place.line if place else None,
        exchange=context.exchange.number,
        event=claim.event,
        span=place.span if place else None,
        t_ns=place.t_ns if place and context.exchange.timed else None,
        evidence=excerpt(claim.evidence),
        excluded=escaped(claim.excluded),
    )


def about_call(rule: Documented, context: RuleContext, call: ToolCall, claim: Claim) -> Finding:
    """As `finding`, about `call`; its arguments are the evidence.

    It is placed where the claim says, else at the last event of the call.
    """
    last = call.fragments[-1] if call.fragments else None
    event = last.event if last else call.start_event
    carrier = context.event(event)
    evidence = claim.evidence or call.arguments_raw or (carrier.data if carrier else "")
    place = last.place if last else call.start
    if claim.event is not None:
        event, place = claim.event, claim.place or place
    return finding(rule, context, replace(claim, event=event, place=place, evidence=evidence))


def reported(rule: Documented, context: RuleContext, hint: str) -> Iterator[Finding]:
    """The findings that the dialect's observations amount to: upstream sent it that way.

    A defect that is everywhere is reported `MOST_ALIKE` times, the last one with a count.
    """
    every = tuple(context.observed(rule.code))
    for place, seen in enumerate(every[:MOST_ALIKE], 1):
        left = len(every) - MOST_ALIKE if place == MOST_ALIKE else 0
        more = f" (and {left} more)" if left else ""
        yield finding(
            rule,
            context,
            Claim(
                message=f"{_subject(context, seen)}{seen.detail}{more}",
                hint=hint,
                blame=Blame.UPSTREAM,
                confidence=context.seen,
                event=seen.event,
                place=seen.place,
                evidence=seen.evidence,
            ),
        )


def _subject(context: RuleContext, seen: Observation) -> str:
    """The call that an observation is about, as the beginning of a message; "" if about none."""
    for choice, call in context.calls():
        if choice.index == seen.choice and call.index == seen.call:
            return f"{label(call)}: "
    return ""


def label(call: ToolCall) -> str:
    """How a message names a call: `call 0 (get_weather)`."""
    return f"call {call.index} ({excerpt(call.name, 60)})" if call.name else f"call {call.index}"
