"""Deltas that were cut in another way: several events of one side that bring what others do.

Strategy: two readers go over the things that the events of both sides bring, as long as these are
equal character by character, each taking its next event when it has nothing left; where both have
nothing left at the same time, a run ends. The work that attempts may cost is bounded.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from deltatape.compare.units import DELTAS, Token, Unit

_EFFORT = 20
"""How many events attempts that fail may look at, for each event that there is."""


@dataclass(slots=True)
class _Reader:
    """What one side has still to bring."""

    units: Sequence[Unit]
    next: int
    left: deque[Token] = field(default_factory=deque)
    read: int = 0
    """Characters of the first token that have been read."""

    def load(self) -> bool:
        """Take the next event; whether there is one that brings something."""
        if self.next >= len(self.units):
            return False
        tokens = self.units[self.next].tokens
        self.left.extend(each for each in tokens if each.text or each.what not in DELTAS)
        self.next += 1
        return bool(self.left)

    @property
    def rest(self) -> int:
        """How many characters of the first token are left."""
        return len(self.left[0].text) - self.read

    def take(self, size: int) -> None:
        """So many characters have been read."""
        self.read += size
        if not self.rest:
            self.left.popleft()
            self.read = 0


class Runs:
    """Looks for runs in a part of both sides.

    Args:
        left: the events of that part.
        right: those of the other side.
    """

    def __init__(self, left: Sequence[Unit], right: Sequence[Unit]) -> None:
        self._left = left
        self._right = right
        self._effort = _EFFORT * (len(left) + len(right))

    def at(self, i: int, j: int) -> tuple[int, int] | None:
        """Where the shortest run that begins at these places ends on both sides; None: none does.

        A run of one event on each side brings the same; what differs is nothing that is brought.
        """
        one, other = _Reader(self._left, i), _Reader(self._right, j)
        if not one.load() or not other.load():
            return None
        while _agree(one, other):
            if not one.left and not other.left:
                return one.next, other.next
            if self._effort <= 0 or not (other if one.left else one).load():
                break
            self._effort -= 1
        return None


def _agree(one: _Reader, other: _Reader) -> bool:
    """Read what both have; whether it is the same."""
    while one.left and other.left:
        a, b = one.left[0], other.left[0]
        if (a.what, a.owner) != (b.what, b.owner):
            return False
        if a.what not in DELTAS:
            if a.text != b.text:
                return False
            one.left.popleft()
            other.left.popleft()
            continue
        size = min(one.rest, other.rest)
        if a.text[one.read : one.read + size] != b.text[other.read : other.read + size]:
            return False
        one.take(size)
        other.take(size)
    return True
