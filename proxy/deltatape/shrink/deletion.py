"""The fewest items with which something still holds, found with few questions.

Strategy: from the end, leave out as many items at once as can be. A block that cannot go as a whole
is bisected, so that an item that is needed costs about two logarithms of the distance to the next
one; a row of items that are all needed costs one question each. The size of the next block follows
from the last gap. Rounds are made until one leaves nothing out, since what was needed may not be
any more.

Where leaving out less can fail and leaving out more hold, the result depends on the order of the
questions, which depends on the answers alone: same answers, same result.

Source: adaptive deletion and `find_integer` of D. MacIver, "Improving Hypothesis's shrinker"; for
what it improves on: Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input"
(2002).
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def fewest(items: Sequence[T], holds: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """Those of `items`, in order, of which none can be left out alone; `holds(items)` is given.

    Args:
        items: any number, also none.
        holds: whether some of them, in order, are enough; never asked for all of them.
    """
    while True:
        kept = _round(items, holds)
        if len(kept) == len(items):
            return kept
        items = kept


def patient(holds: Callable[[Sequence[T]], bool], most: int) -> Callable[[Sequence[T]], bool]:
    """`holds` until it has said no `most` times in a row; from then on no, without asking."""
    refused = 0

    def asked(kept: Sequence[T]) -> bool:
        nonlocal refused
        if refused == most:
            return False
        found = holds(kept)
        refused = 0 if found else refused + 1
        return found

    return asked


def largest(limit: int, holds: Callable[[int], bool], guess: int) -> int:
    """A number up to `limit` that holds while the next one does not; 0 holds.

    Args:
        limit: the largest that makes sense.
        holds: asked for numbers of 1 to `limit`.
        guess: asked first; found doubled as long as it holds.
    """
    found, above = 0, limit + 1
    step = min(max(guess, 1), limit)
    while step < above:
        if holds(step):
            found, step = step, min(2 * step, limit)
            if found == limit:
                return limit
        else:
            above = step
    while above - found > 1:
        middle = (found + above) // 2
        if holds(middle):
            found = middle
        else:
            above = middle
    return found


def _round(items: Sequence[T], holds: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    kept = items
    end = guess = len(items)
    while end > 0:

        def without(size: int, kept: Sequence[T] = kept, end: int = end) -> bool:
            return holds([*kept[: end - size], *kept[end:]])

        size = largest(end, without, guess)
        kept = [*kept[: end - size], *kept[end:]]
        guess = max(1, 2 * size)
        end -= size + 1  # the next one is needed
    return kept
