"""`at=`: where in an answer a fault strikes: at an event, a byte, a time, or in a phase of it.

Phases are those of D001: `before-first`, `in-text`, `in-arguments`, `after-call`, `before-end`.
`places` finds them in an answer.
"""

import enum
import re
from dataclasses import dataclass

from deltatape.errors import UsageError
from deltatape.rules.progress import Phase

_NUMBERED = re.compile(r"(event|byte):([0-9]{1,15})")
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m)")
_PHASES = {name: phase for phase in Phase for name in (phase.value, phase.partition("-")[2])}
"""Also by their last word: `text`, `arguments`."""
_UNITS = {"ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000}


class Kind(enum.Enum):
    """How a place is told."""

    MIDDLE = "middle"
    """The middle event; the middle byte where there are no events."""
    EVENT = "event"
    """In front of the event of this number, from 0."""
    BYTE = "byte"
    """Behind so many bytes of the plain body."""
    TIME = "time"
    """At the first byte that comes so many nanoseconds after the request."""
    PHASE = "phase"


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """A place in an answer, in the terms of the user."""

    kind: Kind = Kind.MIDDLE
    number: int = 0
    phase: Phase | None = None


MIDDLE = Where()


def parse_where(text: str) -> Where:
    """`event:N`, `byte:N`, a time such as `1.5s`, or a phase: `in-arguments`, or `arguments`.

    Raises:
        UsageError: none of these.
    """
    if text in _PHASES:
        return Where(kind=Kind.PHASE, phase=_PHASES[text])
    match = _NUMBERED.fullmatch(text)
    if match:
        return Where(kind=Kind(match[1]), number=int(match[2]))
    if _DURATION.fullmatch(text):
        return Where(kind=Kind.TIME, number=parse_duration(text))
    raise UsageError(
        f"at={text!r}: not a place; event:N, byte:N, a time such as 1.5s, or a phase is:"
        f" {', '.join(Phase)}"
    )


def parse_duration(text: str) -> int:
    """`500ms`, `1.5s` or `2m` in nanoseconds.

    Raises:
        UsageError: none of these.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r}: no duration; 500ms, 30s or 2m are")
    return round(float(match[1]) * _UNITS[match[2]])
