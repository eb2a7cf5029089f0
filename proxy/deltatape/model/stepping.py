"""The state of a reply's calls after each event, for the reference and for suspects."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from deltatape.model.request_summary import RepeatedCall


class StepUnit(enum.StrEnum):
    """The unit in which a client reads, where its mistakes depend on it."""

    EVENT = "event"
    READ = "read"
    """It frames or decodes wrongly, so that what it takes for events are others."""


class CallChange(NamedTuple):
    """A call after a step: its first `kept` characters of arguments are those before it.

    They are either all of them, or none.
    """

    call: int
    """The client's own number of the call, never reused; calls are in this order."""
    id: str | None
    name: str | None
    kept: int
    added: str


class BuildStep(NamedTuple):
    """What one event or read changed."""

    at: int | None
    """The number of the event or read; None: the end of the stream."""
    changes: tuple[CallChange, ...]
    """By number."""
    dropped: tuple[int, ...]
    """The calls that the client has no longer."""
    errors: tuple[str, ...]
    """The errors that it throws or logs, as several parsers word them; at the end, all of them."""
    note: str
    """What the client did, as a sentence without a subject; several are separated by `; `."""
    text_length: int | None = None
    """Characters of the text so far; None: not asked of clients."""
    t_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SteppedClient:
    """A client that reads a stream; its last step is the end of the stream."""

    name: str
    says: str
    """How it handles this stream, as a clause after "it"."""
    fix: str
    exact: bool | None
    """Whether it made exactly what the application did; None: that is not in question."""
    unit: StepUnit
    steps: tuple[BuildStep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepping:
    """An answer after each event, built by a correct client and by wrong ones."""

    tape: str
    exchange: int
    stream: int
    """The exchange whose response is read: the same, or the provider's behind the app's page."""
    choice: int
    """The place of the answer in the response."""
    start_ns: int
    """When the request of `stream` came."""
    reference: tuple[BuildStep, ...]
    suspects: tuple[SteppedClient, ...]


def built_calls(steps: Iterable[BuildStep]) -> tuple[RepeatedCall, ...]:
    """Return the calls that a client has after `steps`."""
    identities: dict[int, tuple[str | None, str | None]] = {}
    pieces: dict[int, list[str]] = {}
    for step in steps:
        for change in step.changes:
            identities[change.call] = (change.id, change.name)
            if not change.kept:
                pieces[change.call] = []
            pieces[change.call].append(change.added)
        for call in step.dropped:
            del identities[call], pieces[call]
    return tuple(
        RepeatedCall(id=identifier, name=name, arguments="".join(pieces[call]))
        for call, (identifier, name) in sorted(identities.items())
    )
