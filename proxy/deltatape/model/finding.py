"""Findings: what a rule reports."""

import enum
from dataclasses import dataclass

from deltatape.model.stream import Span


class Severity(enum.StrEnum):
    """An error breaks a correct client, or proves a broken one."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return _WORST_FIRST.index(self)


_WORST_FIRST = tuple(Severity)


class Blame(enum.StrEnum):
    """The side at fault."""

    MODEL = "model"
    PROVIDER = "provider"
    GATEWAY = "gateway"
    TRANSPORT = "transport"
    APP = "app"
    TOOL_SERVER = "tool-server"
    """An MCP server that the application asks."""
    UPSTREAM = "upstream"
    """Model, provider or gateway: not separable with one recording."""


class Confidence(enum.StrEnum):
    """How sure a claim is."""

    PROVEN = "proven"
    """No correct program could have produced these bytes; the finding names the innocent
    explanations that were tried, and why each fails."""
    LIKELY = "likely"
    """An innocent explanation exists, and something on the tape speaks against it."""
    POSSIBLE = "possible"
    """Nothing on the tape speaks against an innocent explanation: never an error, never the
    headline of a verdict."""

    @property
    def rank(self) -> int:
        """0 for the surest."""
        return _SUREST_FIRST.index(self)


_SUREST_FIRST = tuple(Confidence)


def weaker(one: Confidence, other: Confidence) -> Confidence:
    """Return the less sure of the two."""
    return max(one, other, key=lambda each: each.rank)


def at_most(severity: Severity, blame: Blame | None, confidence: Confidence) -> Severity:
    """Return `severity`, lowered if the blame is only possible."""
    doubtful = blame is not None and confidence is Confidence.POSSIBLE
    return Severity.WARNING if doubtful and severity is Severity.ERROR else severity


@dataclass(frozen=True, slots=True)
class Excluded:
    """An innocent explanation that was tried, and why it fails. Not escaped yet."""

    explanation: str
    """What a correct program could have done: `the app dropped the call on purpose`."""
    because: str
    """What on the tape speaks against that: `the request carries a result for it`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPlace:
    """The other place of a comparison, such as the delivered call that a request changes.

    A finding about what an application made of a reply lies at the request that shows it; this is
    the reply, as the wire delivered it.
    """

    tape: str
    exchange: int
    line: int | None
    """The tape line of the record that completes it."""
    span: Span | None
    """Bytes of that exchange's response body, after content-coding."""
    request_span: Span | None
    """Bytes of the finding's own request body that say otherwise."""
    evidence: str
    """What is there, escaped, <= 200 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A defect with its evidence. `blame` is None if the tape does not prove whose fault it is."""

    code: str
    name: str
    severity: Severity
    blame: Blame | None
    confidence: Confidence
    message: str
    hint: str
    tape: str
    line: int | None
    """The tape line of the record that completes the evidence."""
    exchange: int
    event: int | None
    span: Span | None
    t_ns: int | None
    evidence: str
    """What the wire said, escaped, <= 200 characters."""
    against: ComparedPlace | None = None
    """Where the wire says otherwise, if the finding is a comparison."""
    excluded: tuple[Excluded, ...] = ()
    """The innocent explanations that were tried; escaped."""
