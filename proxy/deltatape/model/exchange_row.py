"""An exchange as a row of a list: what tells it apart from others, and what is wrong with it.

Rows are what overviews show of tapes with any number of exchanges: they hold nothing of the bodies.
"""

import enum
from dataclasses import dataclass

from deltatape.model.exchange import EndReason
from deltatape.model.finding import Blame, Confidence, Severity
from deltatape.model.token_usage import TokenCount


class Mark(enum.StrEnum):
    """What a row's exchange is in its conversation; drawn there."""

    RETRY = "retry"
    """It asks again what an earlier exchange asked that had failed."""
    LOOP = "loop"
    """It repeats calls that the conversation has, or forces the model to."""
    UNANSWERED = "unanswered"
    """Its calls were delivered, and no later request answers them."""
    LOST_CALL = "lost-call"
    """A call of its reply is missing in the request that continues from it."""
    ORPHAN_RESULT = "orphan-result"
    """Its request has a result of a call that it does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstFinding:
    """The finding on which a verdict about the exchange rests; without one, the gravest."""

    code: str
    name: str
    severity: Severity
    blame: Blame | None
    confidence: Confidence


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFinding:
    """A finding that a request shows, and that counts for the reply that it is about."""

    finding: WorstFinding
    exchange: int
    """The exchange of that reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRow:
    """An exchange in a list. `tape` and `exchange` name it; a later row of the same replaces it."""

    tape: str
    exchange: int
    at: str | None
    """When the request came, as RFC 3339 in UTC; None without times."""
    t_ns: int | None
    """The same since the tape began."""
    provider: str | None
    """The provider whose API is at the upstream's host, or else that host; None: unknown."""
    model: str | None
    dialect: str
    method: str
    target: str
    """Credentials are replaced by asterisks."""
    status: int | None
    """The response's status; None: there is no response."""
    duration_ns: int | None
    """From the request to the end; None: it has not ended, or without times."""
    first_event_ns: int | None
    """From the request to the first event of the response; None without events or times."""
    tokens: TokenCount | None
    """None: the reply states none."""
    calls: int
    """How many calls the application is to run."""
    called: tuple[str, ...] = ()
    """The first of them: names and arguments, escaped and shortened."""
    finish: str | None
    """The provider's own finish reason."""
    ending: EndReason | None
    """How the transport ended; None: it has not, or the tape does not say."""
    open: bool
    """Whether it was in progress, and being recorded, when the tape was read."""
    findings: int
    """How many; those about its reply from later requests included."""
    codes: tuple[str, ...]
    """The codes of these findings, each once, in their order."""
    worst: WorstFinding | None
    """One of these, or their cause in an earlier exchange; None: there are none."""
    shows: tuple[ShownFinding, ...] = ()
    """What its request shows about earlier replies, by code and reply; not among its findings."""
    dead_zones: int
    """How many silences its findings report."""
    dead_ns: int
    """How long these are together."""
    thread: int
    """The number of the first exchange of its conversation; its own where it begins one."""
    before: int | None
    """The number of the exchange that its request continues or repeats."""
    marks: tuple[Mark, ...]
    """In the order of `Mark`."""
