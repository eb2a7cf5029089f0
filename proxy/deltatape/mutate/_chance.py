"""Where mutators get their choices from: numbers that follow from a seed and nothing else.

Source: SplitMix64, Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014).
"""

from typing import Protocol

_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15


class Chance(Protocol):
    """Makes the choices of a mutator."""

    def choose(self, number: int) -> int:
        """One of 0 to `number` - 1; `number` >= 1."""


class Seeded:
    """Choices that are the same for the same seed, on every machine and version."""

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def choose(self, number: int) -> int:
        """See `Chance.choose`."""
        self._state = (self._state + _STEP) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return (mixed ^ (mixed >> 31)) % number
