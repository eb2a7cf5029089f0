"""The recorded request that a request comes nearest to, so that a miss can say what is different.

Strategy: how much two bodies have in common from the front and from the back is told cheaply, also
of thousands of long ones; those with the most are compared value by value, with the first of all,
which is the one that was expected next.
"""

import heapq
from collections.abc import Sequence
from difflib import SequenceMatcher

_COMPARED = 8


def likely(body: bytes, others: Sequence[tuple[int, bytes]]) -> tuple[int, ...]:
    """The positions worth a closer look, ascending: at most nine.

    Args:
        body: of the request.
        others: positions and bodies of recorded ones, >= 1, in order.
    """
    best = heapq.nlargest(_COMPARED, others, key=lambda other: _in_common(body, other[1]))
    return tuple(sorted({others[0][0], *(position for position, _ in best)}))


def closest(wanted: str, known: Sequence[str]) -> str:
    """Which of `known`, >= 1, is spelled most alike, the first of equals."""
    matcher = SequenceMatcher(b=wanted, autojunk=False)

    def alike(other: str) -> float:
        matcher.set_seq1(other)
        return matcher.ratio()

    return max(known, key=alike)


def _in_common(one: bytes, other: bytes) -> int:
    """Bytes in common at the front and at the back."""
    front = _common_prefix(one, other)
    back = _common_prefix(one[front:][::-1], other[front:][::-1])
    return front + back


def _common_prefix(one: bytes, other: bytes) -> int:
    same, end = 0, min(len(one), len(other))
    while same < end:
        middle = (same + end + 1) // 2
        if one.startswith(other[same:middle], same):
            same = middle
        else:
            end = middle - 1
    return same
