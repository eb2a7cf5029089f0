"""A value of an axis that is a mistake: what it is, where it is met, how readily it explains."""

import enum
from typing import NamedTuple

from deltatape.model.suspect import Mistake

USUAL = 10
"""The cost of a mistake that is met in the wild."""


class Family(enum.Enum):
    """Dialects that their clients read alike."""

    CHAT = "chat"
    ITEMS = "items"
    """Responses."""
    BLOCKS = "blocks"
    """Anthropic, Bedrock, Cohere."""
    PARTS = "parts"
    """Gemini, Ollama: calls in one piece."""


ALL = frozenset(Family)
CHAT = frozenset({Family.CHAT})
ITEMS = frozenset({Family.ITEMS})
BLOCKS = frozenset({Family.BLOCKS})
PARTS = frozenset({Family.PARTS})
STREAMED = ALL - PARTS
KEYED = CHAT | BLOCKS


class Choice(NamedTuple):
    """A mistake, the dialects in which it can be seen, and its cost.

    A guard that only matters beside another mistake costs less than usual, a far-fetched one more.
    """

    mistake: Mistake
    families: frozenset[Family]
    cost: int


def mistake(
    axis: str, value: str, families: frozenset[Family], *, says: str, fix: str, cost: int = USUAL
) -> Choice:
    """The choice of `value` on `axis`. See `Mistake`."""
    return Choice(Mistake(axis=axis, value=value, says=says, fix=fix), families, cost)
