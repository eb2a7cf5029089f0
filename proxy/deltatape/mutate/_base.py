"""Mutators: defects that were seen in practice, as changes of a healthy exchange."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from deltatape.dialects import DIALECTS, EventShape, Traits
from deltatape.model.exchange import EndReason, Exchange
from deltatape.mutate._draft import MutableExchange

CHAT = (EventShape.CHAT,)
RESPONSES = (EventShape.ITEMS,)
MESSAGES = (EventShape.MESSAGES,)
CONVERSE = (EventShape.CONVERSE,)
GEMINI = (EventShape.CANDIDATES,)
SDK_UI = (EventShape.PARTS,)
APP_EVENTS = (EventShape.APP,)


_T = TypeVar("_T")


class MutationChoices(Protocol):
    """Makes the choices of a mutator."""

    def choose(self, number: int) -> int:
        """Return one of 0 to `number` - 1; `number` >= 1."""


Change: TypeAlias = Callable[[MutableExchange, MutationChoices], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutator:
    """A defect, as a change of a healthy exchange."""

    name: str
    """In words with dashes: `index-missing`."""
    row: int
    """Its number in the table of defects (docs/defects.md)."""
    suits: Callable[[Traits], bool]
    """Whether it can change the streams of a dialect."""
    summary: str
    """One sentence: what the wire shows then."""
    change: Change

    @property
    def dialects(self) -> tuple[str, ...]:
        """Return the names of the dialects whose streams it can change."""
        return tuple(dialect.name for dialect in DIALECTS if self.suits(dialect.traits))

    def mutate(self, exchange: Exchange, chance: MutationChoices) -> Exchange | None:
        """Return `exchange` with the defect, all other bytes unchanged; None if it has no place.

        Args:
            exchange: healthy; any other may be changed too, or not.
            chance: chooses where there is a choice.
        """
        draft = MutableExchange.of(exchange)
        if draft is None:
            return None
        self.change(draft, chance)
        return draft.result()


def mutator(
    name: str,
    row: int,
    shapes: tuple[EventShape, ...],
    also: Callable[[Traits], bool] = lambda _: True,
) -> Callable[[Change], Mutator]:
    """Make a mutator of a function, whose docstring becomes the summary.

    Args:
        name: see `Mutator`.
        row: see `Mutator`.
        shapes: the shapes of the events that it can change.
        also: what must be true of a dialect besides.
    """

    def decorate(change: Change) -> Mutator:
        return Mutator(
            name=name,
            row=row,
            suits=lambda traits: traits.shape in shapes and also(traits),
            summary=change.__doc__ or "",
            change=change,
        )

    return decorate


_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15


class SeededChoices:
    """Choices that follow from a seed alone, on every machine and version.

    Source: SplitMix64, Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014).
    """

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def choose(self, number: int) -> int:
        self._state = (self._state + _STEP) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return (mixed ^ (mixed >> 31)) % number


def choose_one(found: Sequence[_T], chance: MutationChoices) -> _T | None:
    """Return one of `found`; None if it is empty, without making a choice."""
    return found[chance.choose(len(found))] if found else None


_CUT_REASONS = (None, EndReason.UPSTREAM_CLOSED, EndReason.UPSTREAM_RESET)
"""How a body that is cut ends: regularly, which only servers do, or broken."""


def cut_before(draft: MutableExchange, place: int, chance: MutationChoices) -> None:
    """End the body before the unit number `place`, which is not the first."""
    draft.cut_after(draft.units[place - 1], reason=choose_one(_CUT_REASONS, chance))
