"""The story of an exchange: promised, arrived, repeated, on one axis of time, and the verdict."""

import enum
from dataclasses import dataclass

from deltatape.model.asked import RepeatedCall
from deltatape.model.finding import Blame, Confidence, Finding
from deltatape.model.log import LogEntry
from deltatape.model.reply import NOT_OURS, CallKind, ToolCall
from deltatape.model.suspect import Suspect, Tried
from deltatape.model.watch import ClientChange


class Teller(enum.StrEnum):
    """Who says that something happened."""

    WIRE = "wire"
    """It came from upstream."""
    APP = "app"
    """It came from the application: a request, and what a request repeats."""
    RECORDER = "recorder"
    """The recorder noticed it: a silence, an ending, a remark."""
    LOG = "log"
    """The application printed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a tape tells beside its exchanges, in order."""

    logs: tuple[LogEntry, ...] = ()
    clients: tuple[ClientChange, ...] = ()


ALONE = Surroundings()
"""Nothing is told beside the exchanges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Something that happened; `event` is the first of the events it stands for.

    `what` is not escaped. `codes`: the findings that point here.
    """

    t_ns: int | None
    """None without times."""
    exchange: int
    event: int | None
    what: str
    source: Teller
    codes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What the request asked for; `known` False: it is not on the tape or cannot be read."""

    known: bool
    target: str
    model: str | None
    stream: bool
    tools: tuple[str, ...]
    tool_choice: str | None
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """What came. `text` and `reasoning` are counts of characters."""

    status: int | None
    dialect: str
    text: int
    reasoning: int
    refusal: str
    error: str | None
    calls: tuple[ToolCall, ...]
    """All of them: those of the application, those of the provider, those written into text."""
    finish_reason: str | None
    ending: str
    """How the transport ended, in words."""
    events: int
    reads: int
    bytes: int
    duration_ns: int | None
    """From the request to the end of the response; None without times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """A delivered call and what a later request made of it; `heard` None: it is not there."""

    index: int
    heard: RepeatedCall | None
    differs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """What a later request repeats of the reply."""

    exchange: int
    calls: tuple[Repeated, ...]
    extra: tuple[RepeatedCall, ...]
    results: tuple[tuple[str, str], ...]
    """Results that the request brings: call id and text."""

    def of(self, call: ToolCall) -> Repeated | None:
        """What became of a call; None of a provider's own, or one in text: it is not told."""
        told = call.kind is not CallKind.TEXT and call.kind not in NOT_OURS
        return self.calls[call.index] if told else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer. `blame` and `confidence` None: not provable from this tape.

    `code` names the finding that decided, if one did.
    """

    blame: Blame | None
    confidence: Confidence | None
    summary: str
    fix: str
    code: str | None
    healthy: bool = False
    """Whether nothing is wrong on the whole tape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """All of it. `findings` are those of the exchange, and those about what was repeated of it."""

    tape: str
    exchange: int
    timed: bool
    start_ns: int
    """When the request came, since `recorded_at`: the timeline counts from there."""
    came_from: str
    """Which upstream, when, and what it calls the request, as far as is known: for its provider."""
    promise: Promise
    arrival: Arrival
    repetition: Repetition | None
    timeline: tuple[Entry, ...]
    findings: tuple[Finding, ...]
    elsewhere: tuple[Finding, ...]
    """Those on the tape's other exchanges, in their order."""
    verdict: Verdict
    suspects: tuple[Suspect, ...] = ()
    """Client algorithms that would have done what the application did, best first."""
    tried: tuple[Tried, ...] = ()
    """What each known client makes of the response, where that was asked for."""
