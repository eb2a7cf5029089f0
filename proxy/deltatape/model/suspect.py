"""Suspects: client algorithms with known mistakes, and how well each explains what an app did."""

from dataclasses import dataclass

from deltatape.model.request_summary import RepeatedCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientMistake:
    """One difference between a client and the reference accumulator."""

    axis: str
    """The choice that it gets wrong: `key`, `name`, `emit`, `parse`, `framing`, ..."""
    value: str
    """The wrong choice: `single`, `concatenate`, ..."""
    says: str
    """The mistake, as a clause after "it": "keeps one call at a time"."""
    fix: str
    """The line to change, as an imperative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientReading:
    """The calls, text and errors that a client gets from a stream."""

    calls: tuple[RepeatedCall, ...]
    """The calls that it would execute and repeat, in order."""
    errors: tuple[str, ...] = ()
    """The errors that it throws or logs, as several parsers word them: any one counts."""
    text: str | None = None
    """The text that it would show; None if it equals the reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """How an application handled a reply, as far as known: calls, errors, or both."""

    calls: tuple[RepeatedCall, ...] | None = None
    """The calls that its next request repeats, () if it has none; None if unknown."""
    errors: tuple[str, ...] = ()
    """Errors that it logged, put into its history, or that the user quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A client algorithm whose known mistakes reproduce what the application did."""

    name: str
    """The preset's name, `single-current-call`; else the mistakes: `key=single,emit=at-finish`."""
    says: str
    """How it handles this stream, as a clause after "it"."""
    fix: str
    """The fix, in one or two sentences."""
    mistakes: tuple[ClientMistake, ...]
    """Suspects with fewer mistakes come first."""
    exact: bool
    """Whether its result equals the application's exactly, not only roughly."""
    made: ClientReading
    drop: bool = False
    """Whether it only explains that calls are missing, as many programs would."""
    source: str = ""
    """Where this algorithm was seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTrial:
    """The result of one client, a preset or a real SDK, for a stream."""

    name: str
    made: ClientReading
    differs: bool
    """Whether it differs from the result of a correct client."""
    problem: str = ""
    """Why it could not be tried; then there is no result."""
