"""Traits of a dialect for other layers: how its streams are written, mutated and read by clients.

A dialect's `reducer` reads; its `Traits` are for who writes a stream of it (`mutate`, `vary`), for
who reads one as clients do (`suspects`), and for who sends a request once more (`record`).
"""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from deltatape.dialects._choice import DialectPolicy
from deltatape.dialects._errors import openai_error
from deltatape.model.exchange import Headers
from deltatape.model.stream import Format

ErrorDocument: TypeAlias = Callable[[int, str], Mapping[str, object]]
"""Makes the body of an answer from the status of an error and its message."""
ErrorEvent: TypeAlias = Callable[[int, str, Format], tuple[str, Mapping[str, object]]]
"""Makes the name ("" for none) and the data of an event from the status of an error, its message,
and the format of the stream that it breaks off."""


class EventShape(enum.Enum):
    """The form of a dialect's events; one implementation per form can read and change them."""

    CHAT = "chat"
    """Deltas of choices, calls as entries of `tool_calls`."""
    ITEMS = "items"
    """Output items that are added, filled and done."""
    MESSAGES = "messages"
    """Content blocks that start, grow and stop, each event with a type."""
    CONVERSE = "converse"
    """Content blocks whose events are named by the framing."""
    COHERE = "cohere"
    """Calls that start, grow and end beside text."""
    CANDIDATES = "candidates"
    """Whole responses with a part of the content each, calls in one piece."""
    LINES = "lines"
    """A message per line, calls in one piece."""
    PARTS = "parts"
    """Parts of a page's message, each with an id."""
    APP = "app"
    """An application's own events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """How a dialect writes errors."""

    document: ErrorDocument = openai_error
    """In place of an answer."""
    event: ErrorEvent | None = None
    """In the middle of an answer; None: an event without a name that carries the document."""
    headers: Callable[[int], Headers] | None = None
    """Fields of an answer with the status of an error that nothing else has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """Facts about a dialect besides how it is read. The defaults fit an unknown dialect."""

    provider: str = ""
    """Whose key a request needs if the host does not say: a name of `providers.PROVIDERS`."""
    shape: EventShape | None = None
    """None: nobody but its reducer knows its events."""
    formats: frozenset[Format] = frozenset({Format.SSE, Format.JSON})
    """How its answers are framed."""
    policy: DialectPolicy = field(default_factory=DialectPolicy)
    """What it promises of its calls."""
    shared_paths: tuple[str, ...] = ()
    """Ends of paths that it serves and that applications use for endpoints of their own, too."""
    errors: Errors = field(default_factory=Errors)

    # What may stand in a stream.
    delta_keys: frozenset[str] = frozenset()
    """Members whose value is a piece of a text or of arguments, of any length."""
    closing_keys: frozenset[str] = frozenset()
    """Members beside a piece that tell of all that came, such as a finish reason."""
    running_keys: frozenset[str] = frozenset()
    """Objects beside a piece that belong to no piece: the counts so far."""
    whole_types: tuple[str, ...] = ()
    """Ends of the types of events that repeat what pieces said."""
    ping: tuple[str, str] | None = None
    """Type and data of an event that says nothing and may come at any time."""
    named_events: bool = False
    """Whether clients tell the events by the framing's name of them, not by their data alone."""
    late_usage: bool = False
    """Whether the usage may come in an event of its own, without choices, after the finish reason,
    if the request wants it."""
    strict: bool = False
    """Whether its clients refuse members that they do not know."""
