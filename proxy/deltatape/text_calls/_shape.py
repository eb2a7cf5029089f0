"""Types of the notations of tool calls."""

from collections.abc import Callable
from dataclasses import dataclass

from deltatape.text_calls._source import TextSource


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCall:
    """A tool call in a model's text, by its place there; `TextCall` has its place on the wire."""

    family: str
    """Whose notation it is: `hermes`, `kimi-k2`."""
    name: str
    """The tool; "" where the text ends before its name does."""
    arguments: str
    """As written where the notation has JSON; else an object made of the written parameters. Only
    as far as they came if the call is not complete; "" if there are none."""
    id: str | None
    """Where the notation has one."""
    start: int
    end: int
    """The characters of the call, its tags included; of a shared wrapper, the adjacent part."""
    closed: bool
    """Whether its closing tag came or, in a notation without one, the end of its arguments."""
    junk: str = ""
    """What stands between its whole JSON and its closing tag and belongs to neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCall:
    """A call as the reader of one notation returns it: it knows neither start nor family."""

    name: str
    arguments: str
    end: int
    closed: bool
    id: str | None = None
    junk: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallBlock:
    """Calls that follow each other, with all that is around them."""

    items: tuple[FoundCall, ...]
    """>= 1, in order; each starts where the one before it ends."""
    end: int
    start: int | None = None
    """Where it starts, if that is before the opener."""


Reader = Callable[[TextSource, int], CallBlock | None]
"""Takes a source and where an opener stands; None if what follows is not a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotationFamily:
    """A notation of tool calls."""

    name: str
    openers: tuple[str, ...]
    """Literal beginnings, one of which stands in every call of the family."""
    read: Reader
