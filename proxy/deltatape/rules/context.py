"""The input of a rule (`RuleContext`) and its output (`Claim`).

A rule is stateless and pure: values of the model in, claims out. It never sees a dialect, so that a
rule on empty arguments holds for every provider.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from deltatape.model.exchange import Exchange
from deltatape.model.finding import Blame, ComparedPlace, Confidence, Excluded, Severity
from deltatape.model.reply import Choice, Observation, Reply, ToolCall
from deltatape.model.request_summary import RequestSummary
from deltatape.model.rule_settings import Settings
from deltatape.model.stream import Event, Place, Stream
from deltatape.printable import excerpt
from deltatape.rules.event_contribution import EventContribution, brought

MOST_ALIKE = 20
"""Findings of one rule about what a dialect noticed in one exchange."""
NS = 1_000_000_000
"""Nanoseconds per second."""
_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleContext:
    """The input of a rule: one exchange and what was derived from it."""

    exchange: Exchange
    stream: Stream
    request: RequestSummary
    reply: Reply
    settings: Settings
    _brought: list[Mapping[int, tuple[EventContribution, ...]]] = field(
        default_factory=list, init=False, compare=False, repr=False
    )
    """The cached result of `brought`: for a long stream it takes as long as a rule."""

    @property
    def seen(self) -> Confidence:
        """Grade that these bytes came from upstream: proven if a recorder took them."""
        return Confidence.PROVEN if self.exchange.timed else Confidence.LIKELY

    @property
    def recognised(self) -> bool:
        """Return whether the response is of a dialect that deltatape reads."""
        return self.reply.dialect != _UNKNOWN

    @property
    def successful(self) -> bool:
        """Return whether the response has a 2xx status."""
        head = self.exchange.response
        return head is not None and head.status // 100 == 2  # noqa: PLR2004 - the class 2xx

    def observed(self, code: str) -> Sequence[Observation]:
        """Return the dialect's observations with `code`, in wire order."""
        every = self.reply.observations
        return [each for each in every if each.code == code] if every else ()

    def calls(self) -> Iterator[tuple[Choice, ToolCall]]:
        """Yield each call with its choice, in the order of the reply."""
        return ((choice, call) for choice in self.reply.choices for call in choice.tool_calls)

    @property
    def brought(self) -> Mapping[int, tuple[EventContribution, ...]]:
        """Map event numbers to contributions."""
        if not self._brought:
            self._brought.append(brought(self.reply, self.stream, known=self.recognised))
        return self._brought[0]

    def event(self, number: int | None) -> Event | None:
        """Return the event with this number, if there is one."""
        if number is None or not 0 <= number < len(self.stream.events):
            return None
        return self.stream.events[number]

    @property
    def last(self) -> Event | None:
        """Return the last event, if there is one."""
        return self.stream.events[-1] if self.stream.events else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The output of a rule; its code, name and place are added by `Rule.findings`.

    Texts are escaped and shortened by `Rule.findings`.
    """

    message: str
    hint: str
    blame: Blame | None
    confidence: Confidence
    severity: Severity | None = None
    """None: the rule's own."""
    event: int | None = None
    place: Place | None = None
    """None: in a conversation, at the request; else none."""
    at: Event | None = None
    """The event it is about, in place of `event` and `place`."""
    printed_ns: int | None = None
    """When the application printed it, for a finding about a log line instead of a request."""
    evidence: str = ""
    against: ComparedPlace | None = None
    excluded: tuple[Excluded, ...] = ()


def about_call(context: RuleContext, call: ToolCall, claim: Claim) -> Claim:
    """Return `claim` with the arguments of `call` as its evidence.

    It is placed where the claim says, else at the last event of the call.
    """
    last = call.fragments[-1] if call.fragments else None
    event = last.event if last else call.start_event
    carrier = context.event(event)
    evidence = claim.evidence or call.arguments_raw or (carrier.data if carrier else "")
    if claim.at is not None or claim.event is not None:
        return replace(claim, evidence=evidence)
    place = last.place if last else call.start
    return replace(claim, event=event, place=place, evidence=evidence)


def observed(context: RuleContext, code: str, hint: str) -> Sequence[Claim]:
    """Turn the dialect's observations with `code` into claims that blame upstream.

    A frequent defect is reported `MOST_ALIKE` times, the last time with a count.
    """
    every = context.observed(code)
    if not every:
        return ()
    return [
        Claim(
            message=f"{_subject(context, seen)}{seen.detail}{and_more(number, len(every))}",
            hint=hint,
            blame=Blame.UPSTREAM,
            confidence=context.seen,
            event=seen.event,
            place=seen.place,
            evidence=seen.evidence,
        )
        for number, seen in enumerate(every[:MOST_ALIKE], 1)
    ]


def and_more(number: int, of: int) -> str:
    """Return the end of a message that says how many more of a kind there are."""
    left = of - MOST_ALIKE if number == MOST_ALIKE else 0
    return f" (and {left} more)" if left else ""


def _subject(context: RuleContext, seen: Observation) -> str:
    """Return the start of a message that names the observed call; "" if there is none."""
    for choice, call in context.calls():
        if choice.index == seen.choice and call.index == seen.call:
            return f"{label(call)}: "
    return ""


def label(call: ToolCall) -> str:
    """Return the name of a call in messages: `call 0 (get_weather)`."""
    return f"call {call.index} ({excerpt(call.name, 60)})" if call.name else f"call {call.index}"
