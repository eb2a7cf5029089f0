"""The error text of a JSON parser, and what it says."""

import enum
from typing import NamedTuple


class Means(enum.StrEnum):
    """What a parser's complaint says about the text that it was given."""

    NOTHING = "nothing"
    """It was empty."""
    CUT = "cut"
    """It ended too early, or was empty."""
    GLUED = "glued"
    """Something stands after a complete value."""
    SPOILT = "spoilt"
    """It is no JSON."""
    REFUSED = "refused"
    """It is JSON, and not what the tool wants."""
    DROPPED = "dropped"
    """A call without id, name or arguments was left out."""


class ParserError(NamedTuple):
    """A parser's error text."""

    parser: str
    """Whose text it is."""
    means: Means
    text: str
    """From where it begins, escaped, at most 200 characters."""
    about_call: bool
    """Whether the text around it speaks of a tool call or its arguments."""
