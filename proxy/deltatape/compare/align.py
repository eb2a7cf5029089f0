"""Which places of two long sequences belong together: a diff in nearly linear time.

Strategy: common ends are cut off; values that stand exactly once on both sides become anchors (the
longest ascending run of them, as in "patience diff" by Bram Cohen); what lies between is diffed by
the greedy algorithm of Eugene W. Myers, "An O(ND) Difference Algorithm and Its Variations" (1986),
which stops after `MAX_EDITS` edits, takes the furthest way it has found, and goes on from there.
So the result is a good alignment, not always the longest, and the time grows with the length times
`MAX_EDITS` at most, whatever is compared.

Invariant: pairs ascend on both sides, and paired values are equal.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

MAX_EDITS = 128
_MAX_DEPTH = 12
"""How often anchors are looked for between anchors."""

Pair: TypeAlias = tuple[int, int]


class _Block(NamedTuple):
    """A part of both sequences, half-open."""

    left: int
    left_end: int
    right: int
    right_end: int
    depth: int


def align(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[Pair]:
    """Places in `left` and `right` that hold the same value, ascending on both sides."""
    pairs: list[Pair] = []
    blocks = [_Block(0, len(left), 0, len(right), 0)]
    while blocks:
        block = _trimmed(blocks.pop(), left, right, pairs)
        if block.left == block.left_end or block.right == block.right_end:
            continue
        anchors = _anchors(block, left, right) if block.depth < _MAX_DEPTH else []
        if anchors:
            pairs += anchors
            blocks += _between(block, anchors)
        else:
            pairs += _greedy(block, left, right)
    return sorted(pairs)


def _trimmed(
    block: _Block, left: Sequence[Hashable], right: Sequence[Hashable], pairs: list[Pair]
) -> _Block:
    """`block` without what is common at its ends, which goes to `pairs`."""
    i, i_end, j, j_end, depth = block
    while i < i_end and j < j_end and left[i] == right[j]:
        pairs.append((i, j))
        i, j = i + 1, j + 1
    while i < i_end and j < j_end and left[i_end - 1] == right[j_end - 1]:
        i_end, j_end = i_end - 1, j_end - 1
        pairs.append((i_end, j_end))
    return _Block(i, i_end, j, j_end, depth)


def _anchors(block: _Block, left: Sequence[Hashable], right: Sequence[Hashable]) -> list[Pair]:
    """What stands once on both sides, as far as it is in the same order."""
    here = Counter(left[block.left : block.left_end])
    there = Counter(right[block.right : block.right_end])
    place = {right[j]: j for j in range(block.right, block.right_end) if there[right[j]] == 1}
    once = [
        (i, place[left[i]])
        for i in range(block.left, block.left_end)
        if here[left[i]] == 1 and left[i] in place
    ]
    return _ascending(once)


def _ascending(pairs: Sequence[Pair]) -> list[Pair]:
    """The longest run of `pairs`, whose left sides ascend, in which the right ones do, too."""
    ends: list[int] = []  # the least right side in which a run of this length ends
    tails: list[int] = []  # and the pair that is its end
    before: list[int] = []
    for at, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        before.append(tails[length - 1] if length else -1)
        ends[length : length + 1] = [j]
        tails[length : length + 1] = [at]
    found: list[Pair] = []
    at = tails[-1] if tails else -1
    while at >= 0:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _between(block: _Block, anchors: Sequence[Pair]) -> Iterator[_Block]:
    i, j = block.left, block.right
    for anchor_i, anchor_j in (*anchors, (block.left_end, block.right_end)):
        yield _Block(i, anchor_i, j, anchor_j, block.depth + 1)
        i, j = anchor_i + 1, anchor_j + 1


def _greedy(block: _Block, left: Sequence[Hashable], right: Sequence[Hashable]) -> list[Pair]:
    pairs: list[Pair] = []
    i, j = block.left, block.right
    while i < block.left_end and j < block.right_end:
        way = _furthest(_Block(i, block.left_end, j, block.right_end, 0), left, right)
        pairs += way[:-1]
        i, j = way[-1]
    return pairs


def _furthest(block: _Block, left: Sequence[Hashable], right: Sequence[Hashable]) -> list[Pair]:
    """The pairs on the way that gets furthest with `MAX_EDITS` edits; last where it ends."""
    i0, j0 = block.left, block.right
    width, height = block.left_end - i0, block.right_end - j0
    reached = {1: 0}
    trace: list[dict[int, int]] = []
    best = (0, 0, 0, 0)  # how far, how near the middle, after how many edits, on which diagonal
    for edits in range(min(MAX_EDITS, width + height) + 1):
        trace.append(dict(reached))
        for diagonal in range(-edits, edits + 1, 2):
            x = _step(reached, diagonal, edits)
            y = x - diagonal
            while x < width and y < height and left[i0 + x] == right[j0 + y]:
                x, y = x + 1, y + 1
            reached[diagonal] = x
            # Ways may leave the grid, where nothing is equal; none of them comes back.
            if x <= width and y <= height:
                best = max(best, (x + y, -abs(diagonal), edits, diagonal))
            if x == width and y == height:
                return _back(trace, edits, diagonal, (x, y), (i0, j0))
    far, _, edits, diagonal = best
    x = (far + diagonal) // 2
    return _back(trace, edits, diagonal, (x, x - diagonal), (i0, j0))


def _step(reached: dict[int, int], diagonal: int, edits: int) -> int:
    """Where an edit more leads on this diagonal: from above, or from the left."""
    down, across = reached.get(diagonal + 1, -1), reached.get(diagonal - 1, -1)
    if diagonal == -edits or (diagonal != edits and across < down):
        return down
    return across + 1


def _back(
    trace: Sequence[dict[int, int]], edits: int, diagonal: int, end: Pair, origin: Pair
) -> list[Pair]:
    """The pairs on the way to `end`, ascending, and `end` itself, as places in the sequences."""
    i0, j0 = origin
    x, y = end
    found = [(i0 + x, j0 + y)]
    while True:
        reached = trace[edits]
        start = _step(reached, diagonal, edits)
        while x > start:
            x, y = x - 1, y - 1
            found.append((i0 + x, j0 + y))
        if not edits:
            return found[::-1]
        down, across = reached.get(diagonal + 1, -1), reached.get(diagonal - 1, -1)
        came_down = diagonal == -edits or (diagonal != edits and across < down)
        diagonal += 1 if came_down else -1
        x = x if came_down else x - 1
        y = x - diagonal
        edits -= 1
