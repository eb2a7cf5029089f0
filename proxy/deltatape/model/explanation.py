"""The explanation of an exchange: what was requested, arrived and repeated, and the verdict."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from deltatape.model.attempts import Attempts
from deltatape.model.finding import Blame, Confidence, Finding
from deltatape.model.reply import NOT_OURS, CallKind, TextCall, ToolCall
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.suspect import ClientTrial, Suspect


class EventSource(enum.StrEnum):
    """Where an entry of the timeline comes from."""

    WIRE = "wire"
    """It came from upstream."""
    APP = "app"
    """It came from the application: a request, and what a request repeats."""
    RECORDER = "recorder"
    """The recorder noticed it: a silence, an ending, a remark."""
    LOG = "log"
    """The application printed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """One line of the timeline; `event` is the first of the events that it summarises.

    `what` is not escaped. `codes`: the findings that point here.
    """

    t_ns: int | None
    """None without times."""
    exchange: int
    event: int | None
    what: str
    source: EventSource
    codes: tuple[str, ...] = ()


class AxisPhase(NamedTuple):
    """A part of an exchange."""

    name: str
    """`sending`: the request is on its way upstream; else one of `SilencePhase`."""
    start_ns: int
    end_ns: int


class DeadZone(NamedTuple):
    """A time without progress: keep-alives are none."""

    phase: str
    """One of `SilencePhase`; `unanswered`: the app did not answer the reply's calls."""
    start_ns: int
    end_ns: int
    event: int | None
    """The last event before it that contributed something; None if none did."""
    code: str | None
    """The code of the finding about it, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAxis:
    """When the parts of an exchange happened, in nanoseconds since its tape began.

    None where that is unknown; without times, everything is.
    """

    request_ns: int | None = None
    """The request came."""
    sent_ns: int | None = None
    """It had been sent upstream."""
    head_ns: int | None = None
    """The head of the response came."""
    first_event_ns: int | None = None
    """The first event was complete."""
    end_ns: int | None = None
    """The exchange ended."""
    phases: tuple[AxisPhase, ...] = ()
    """In order, without gaps; on a WebSocket the phases of each response."""
    dead_zones: tuple[DeadZone, ...] = ()
    """In order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPromise:
    """The request in brief; `known` is False if it is not on the tape or cannot be read."""

    known: bool
    target: str
    model: str | None
    stream: bool
    tools: tuple[str, ...]
    tool_choice: str | None
    messages: int


class CallPlace(NamedTuple):
    """A call of a reply, with its events and its place in the text."""

    list: str
    """`calls`, `server_calls` or `text_calls`, as in `show --calls --format json`."""
    choice: int
    call: ToolCall
    numbers: Sequence[int]
    """The numbers of the events within the reply: on a WebSocket, each reply counts anew."""
    written: TextCall | None = None
    """The call in the text, if it is written there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """The response in brief. `text` and `reasoning` count characters."""

    status: int | None
    dialect: str
    text: int
    reasoning: int
    refusal: str
    error: str | None
    calls: tuple[ToolCall, ...]
    """Calls for the app, calls that the provider runs, and text calls."""
    places: tuple[CallPlace, ...]
    """The calls of all choices, with their places."""
    finish_reason: str | None
    ending: str
    """How the transport ended, in words."""
    events: int
    reads: int
    bytes: int
    duration_ns: int | None
    """From the request to the end of the response; None without times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedCallPair:
    """A delivered call and its repetition; `repetition` is None if the later request lacks it."""

    index: int
    delivered: RepeatedCall
    repetition: RepeatedCall | None
    differs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyRepetition:
    """A later request's repetition of the reply."""

    exchange: int
    calls: tuple[RepeatedCallPair, ...]
    extra: tuple[RepeatedCall, ...]
    results: tuple[tuple[str, str], ...]
    """Results that the request brings: call id and text."""
    places: tuple[CallPlace, ...]
    """The delivered calls with their places, in the order of `calls`."""

    def of(self, call: ToolCall) -> RepeatedCallPair | None:
        """Return the repetition of a call; None for calls that requests do not repeat."""
        told = call.kind is not CallKind.TEXT and call.kind not in NOT_OURS
        return self.calls[call.index] if told else None


class VerdictKind(enum.StrEnum):
    """The kinds of verdicts. `VOCABULARY` defines each."""

    HEALTHY = "healthy"
    BLAMED = "blamed"
    NOBODY = "nobody"
    UNPROVABLE = "unprovable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One row of the vocabulary of verdicts."""

    kind: VerdictKind
    confidence: Confidence | None
    """None if the verdict blames no side."""
    shown: str
    """The verdict as shown; `PARTY` is replaced by one of `PARTIES`."""
    means: str
    then: str
    """What to do next."""


VOCABULARY: tuple[Term, ...] = (
    Term(
        kind=VerdictKind.HEALTHY,
        confidence=None,
        shown="healthy",
        means="What was taped arrived complete, and the later requests on the tape repeat it as"
        " delivered. Failed attempts that were answered later are listed in a note.",
        then="Nothing. If users see something else, the app loses it after it has read it.",
    ),
    Term(
        kind=VerdictKind.BLAMED,
        confidence=Confidence.PROVEN,
        shown="PARTY, proven",
        means="No correct program of anybody else could have produced these bytes. The finding"
        " lists the innocent explanations that were tried, and why each fails.",
        then="Do what the fix says.",
    ),
    Term(
        kind=VerdictKind.BLAMED,
        confidence=Confidence.LIKELY,
        shown="PARTY, likely",
        means="A correct program could have done this, but something on the tape speaks"
        " against it.",
        then="Check what the finding names, then do what the fix says.",
    ),
    Term(
        kind=VerdictKind.NOBODY,
        confidence=None,
        shown="nobody's fault",
        means="What ended the answer is certain, and no program's mistake: a limit of tokens or a"
        " content filter, a refusal of the model, or a client that left, as it does when its user"
        " presses stop.",
        then="Change the request or the limit if the outcome is not wanted.",
    ),
    Term(
        kind=VerdictKind.UNPROVABLE,
        confidence=None,
        shown="not provable",
        means="The tape does not show the cause, or not whose fault it was. What is only possible"
        " stands below the verdict, and accuses nobody.",
        then="Tape what the fix names, and ask again.",
    ),
)
"""Every verdict says one of these. docs/verdicts.md has them as a table."""

PARTIES: Mapping[Blame, str] = {
    Blame.MODEL: "the model produced it; the bytes came through unharmed",
    Blame.PROVIDER: "the provider's server or its parser spoiled it",
    Blame.GATEWAY: "a gateway between the app and the provider spoiled it",
    Blame.UPSTREAM: "model, provider or gateway: one recording cannot separate them",
    Blame.TRANSPORT: "the connection was cut or reset",
    Blame.APP: "the application that was taped, its SDK or its framework",
    Blame.TOOL_SERVER: "an MCP server that the application asked",
}
"""Whom a verdict can blame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The conclusion on an exchange, in the words of `VOCABULARY`.

    `blame` and `confidence` are None unless somebody is blamed, and then at least likely. `code`
    names the finding that decided, if one did.
    """

    kind: VerdictKind
    blame: Blame | None = None
    confidence: Confidence | None = None
    summary: str
    fix: str
    code: str | None = None
    possible: tuple[Finding, ...] = ()
    """Findings whose innocent explanation the tape does not exclude; shown below the verdict."""

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong."""
        return self.kind is VerdictKind.HEALTHY

    @property
    def term(self) -> Term:
        """Its row of the vocabulary."""
        return next(
            each
            for each in VOCABULARY
            if each.kind is self.kind and each.confidence is self.confidence
        )

    @property
    def shown(self) -> str:
        """The verdict as shown: `app, proven`; `not provable`."""
        return self.term.shown.replace("PARTY", self.blame or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Everything that `why` shows. `findings` are about the exchange and its repetition."""

    tape: str
    exchange: int
    timed: bool
    """Whether it was recorded; else it was imported."""
    has_times: bool
    """Whether its times say something: see `Exchange.has_times`."""
    start_ns: int
    """When the request came, since `recorded_at`: the timeline counts from there."""
    came_from: str
    """The upstream, time and request id, if known: for a report to the provider."""
    promise: RequestPromise
    arrival: Arrival
    repetition: ReplyRepetition | None
    timeline: tuple[TimelineEntry, ...]
    axis: TimeAxis
    findings: tuple[Finding, ...]
    elsewhere: tuple[Finding, ...]
    """The findings on the tape's other exchanges, in their order."""
    verdict: Verdict
    attempts: Attempts | None = None
    """The attempts at this request, this exchange included; None: it was sent once."""
    suspects: tuple[Suspect, ...] = ()
    """Client algorithms that would have done what the application did, best first."""
    suspected: tuple[int, int | None] | None = None
    """The exchange whose response they read, and on a WebSocket the tape line of its request: the
    provider's side if this is the app's own page. None if no client's mistake is in question."""
    tried: tuple[ClientTrial, ...] = ()
    """What each known client reads from the response, if requested."""
    has_log: bool = False
    """Whether what the application printed is on the tape."""
