"""What a rule reports."""

import enum
from dataclasses import dataclass

from deltatape.model.stream import Span


class Severity(enum.StrEnum):
    """How bad it is: an error breaks a correct client or proves a broken one."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Severity).index(self)


class Blame(enum.StrEnum):
    """Whose fault it was."""

    MODEL = "model"
    PROVIDER = "provider"
    GATEWAY = "gateway"
    TRANSPORT = "transport"
    APP = "app"
    UPSTREAM = "upstream"
    """Model, provider or gateway: not separable with one tap."""


class Confidence(enum.StrEnum):
    """How far the tape carries the claim."""

    PROVEN = "proven"
    LIKELY = "likely"
    POSSIBLE = "possible"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A defect with its evidence. `blame` None: not provable from this tape."""

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
