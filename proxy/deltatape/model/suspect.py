"""Suspects: client algorithms with known mistakes, and how well each explains what an app did."""

from dataclasses import dataclass

from deltatape.model.request_summary import RepeatedCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientMistake:
    """One difference between a client and the reference accumulator."""

    axis: str
    """The choice that it gets wrong: `key`, `name`, `emit`, `parse`, `framing`, ..."""
    value: str
    """What it chooses: `single`, `concatenate`, ..."""
    says: str
    """What it does, after "it": "keeps one call at a time"."""
    fix: str
    """The line to change, as an imperative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientReading:
    """The calls, text and errors that a client gets from a stream."""

    calls: tuple[RepeatedCall, ...]
    """The calls that it would execute and repeat, in order."""
    errors: tuple[str, ...] = ()
    """What it throws or logs, in the words of the parsers that clients use; any one of them."""
    text: str | None = None
    """The text that it would show; None: as the reference has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """What an application made of a reply, as far as it is known: calls, errors, or both."""

    calls: tuple[RepeatedCall, ...] | None = None
    """What its next request repeats, or () where it goes on without any call; None: unknown."""
    errors: tuple[str, ...] = ()
    """Texts of errors that it logged, put into its history, or that the user gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A client algorithm whose known mistakes reproduce what the application did."""

    name: str
    """Of the preset, `single-current-call`; else its mistakes: `key=single,emit=at-finish`."""
    says: str
    """What it does with this stream, one sentence after "it"."""
    fix: str
    """What to change, one or two sentences."""
    mistakes: tuple[ClientMistake, ...]
    """Fewer come first."""
    exact: bool
    """Whether it makes exactly what the application made; else only something like it."""
    made: ClientReading
    drop: bool = False
    """Whether all that it explains is that calls are missing: so would many programs."""
    source: str = ""
    """Where this algorithm was seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTrial:
    """What one client, a preset or a real SDK, makes of a stream."""

    name: str
    made: ClientReading
    differs: bool
    """Whether that is not what a correct client makes of it."""
    problem: str = ""
    """Why it could not be tried; then it made nothing."""
