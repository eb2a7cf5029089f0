"""A stream as its clients see it: what each event asks them to do, in terms of no dialect.

An `Entry` is everything that concerns a call: that it begins, a piece of its arguments, their end,
a snapshot of the whole. Absent and `null` members are None here and empty strings stay empty: the
difference is what some clients stumble over.
"""

import enum
from typing import NamedTuple, TypeAlias


class Phase(enum.Enum):
    """What an entry is in the life of a call."""

    START = "start"
    """An event of its own says that the call begins; it may already bring arguments."""
    DELTA = "delta"
    """A piece; in chat completions, the beginning as well."""
    DONE = "done"
    """The arguments are whole, and repeated."""
    CLOSE = "close"
    """The call is whole, and in some dialects repeated."""
    FINAL = "final"
    """The call as the last event lists it."""
    WHOLE = "whole"
    """A call in one piece."""


class Entry(NamedTuple):
    """What an event says of a call."""

    event: int
    phase: Phase
    at: int = 0
    """Place in its event's list of calls."""
    index: int | None = None  # type: ignore[assignment]
    """The key by which the dialect tells calls apart."""
    id: str | None = None
    name: str | None = None
    text: str | None = None
    """Arguments."""
    item: str | None = None
    """A second id, which no client answers to."""
    kind: str = "function"
    """`function`, `custom`, `legacy`, or the item's type where it is none of the dialect's."""
    bare: bool = False
    """Whether the arguments are JSON where a string with JSON in it is promised."""
    finished: bool = False
    """Whether the same event has a finish reason."""


class Finish(NamedTuple):
    """A reason why the model stopped; it may be empty."""

    event: int
    reason: str


class Odd(NamedTuple):
    """An event without what most events have, so that careless clients throw."""

    event: int
    what: str
    """`choices` (none, or an empty list) or `delta` (null)."""


class Blank(NamedTuple):
    """An event whose text is empty."""

    event: int


Step: TypeAlias = Entry | Finish | Odd | Blank
