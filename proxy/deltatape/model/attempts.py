"""Attempts: equal requests, each sent after the previous one failed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One of several equal requests, each after the previous one failed."""

    exchange: int
    line: int | None
    """The tape line of its request."""
    end_line: int | None
    """The tape line of its end."""
    t_ns: int | None
    """When it came; None without times."""
    outcome: str
    """`status 429`, `the stream broke off`; `answered`."""
    pause_ns: int | None
    """The time since the previous attempt ended; None for the first, and without times."""
    changed: str
    """How it differs from the previous attempt: `without streaming`; "" if it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """Two or more attempts of the same request, in order."""

    tries: tuple[Attempt, ...]
    answered: bool
    """Whether the last one got an answer."""
    pending: bool = False
    """Whether the last one was still going on when the tape was read."""
    exit_code: int | None = None
    """The app's exit code after the last attempt, if that failed and no request followed."""
