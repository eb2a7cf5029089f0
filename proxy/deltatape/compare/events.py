"""Find what happened to each event on the way from left to right.

Strategy: events with the same content are aligned first; between them those with the same content
for another call, choice or item; between those, deltas that were cut elsewhere. Of the rest, events
of the same kind are pairs, one an altered form of the other, and others are missing on one side. An
event that is missing here and additional there was moved.

Each step sees only what the steps before left, so the cost stays that of `align`.
"""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from deltatape.compare.comparable_events import DELTAS, ComparableEvent, EventToken, identities
from deltatape.compare.values import ChangeKind, EventChange
from deltatape.match.difference import JsonDifference, compare
from deltatape.printable import excerpt

_ABSENT = "(absent)"
_DATA = "(data)"
_TYPE = "(event type)"
_SHOWN = 60


def changes_of(
    left: Sequence[ComparableEvent], right: Sequence[ComparableEvent]
) -> tuple[EventChange, ...]:
    """Return the changes of events, in the order of the left side.

    Neighbours that are equal, dropped, or inserted are one change; the others are one each.
    """
    found: list[EventChange] = []
    i = j = 0
    pairs = align([unit.key for unit in left], [unit.key for unit in right])
    for pair in (*pairs, (len(left), len(right))):
        found += _between(left[i : pair[0]], right[j : pair[1]])
        if pair[0] < len(left):
            found.append(_change(ChangeKind.EQUAL, left[pair[0] : pair[0] + 1], [right[pair[1]]]))
        i, j = pair[0] + 1, pair[1] + 1
    return tuple(_joined(_with_moves(found, left, right)))


def _between(
    left: Sequence[ComparableEvent], right: Sequence[ComparableEvent]
) -> Iterator[EventChange]:
    """Yield the changes in a part where no two events are equal."""
    i = j = 0
    pairs = align([unit.loose for unit in left], [unit.loose for unit in right])
    for pair in (*pairs, (len(left), len(right))):
        yield from _unequal_changes(left[i : pair[0]], right[j : pair[1]])
        if pair[0] < len(left):
            yield _altered(ChangeKind.REINDEXED, left[pair[0]], right[pair[1]])
        i, j = pair[0] + 1, pair[1] + 1


def _unequal_changes(
    left: Sequence[ComparableEvent], right: Sequence[ComparableEvent]
) -> Iterator[EventChange]:
    """Yield the changes of events that differ in more than their ids."""
    runs = RunMatcher(left, right)
    slots = _alike(left, right)
    i = j = 0
    while i < len(left) and j < len(right):
        run = runs.at(i, j)
        if run is not None and run != (i + 1, j + 1):
            yield _recut(left[i : run[0]], right[j : run[1]])
            i, j = run
        elif run is not None or slots.get(i) == j:
            yield _altered(ChangeKind.ALTERED, left[i], right[j])
            i, j = i + 1, j + 1
        elif slots.get(i, -1) < j:
            yield _change(ChangeKind.DROPPED, left[i : i + 1], ())
            i += 1
        else:
            yield _change(ChangeKind.INSERTED, (), right[j : j + 1])
            j += 1
    for unit in left[i:]:
        yield _change(ChangeKind.DROPPED, (unit,), ())
    for unit in right[j:]:
        yield _change(ChangeKind.INSERTED, (), (unit,))


def _alike(left: Sequence[ComparableEvent], right: Sequence[ComparableEvent]) -> dict[int, int]:
    """Pair altered events: of the same type, preferably with equal content."""
    return dict(_aligned(left, right, [_SAID, _SLOT, _SORT]))


_SAID, _SLOT, _SORT = (attrgetter(name) for name in ("said", "slot", "sort"))


def _aligned(
    left: Sequence[ComparableEvent],
    right: Sequence[ComparableEvent],
    keys: Sequence[Callable[[ComparableEvent], str]],
) -> Iterator[tuple[int, int]]:
    """Yield pairs with the same first key; between them those with the same next one."""
    if not keys:
        return
    i = j = 0
    pairs = align([keys[0](unit) for unit in left], [keys[0](unit) for unit in right])
    for pair in (*pairs, (len(left), len(right))):
        between = _aligned(left[i : pair[0]], right[j : pair[1]], keys[1:])
        yield from ((i + one, j + other) for one, other in between)
        if pair[0] < len(left):
            yield pair
        i, j = pair[0] + 1, pair[1] + 1


def _recut(left: Sequence[ComparableEvent], right: Sequence[ComparableEvent]) -> EventChange:
    """Pair runs of events with the same joined content."""
    kind = ChangeKind.SPLIT if len(left) == 1 else ChangeKind.RECUT
    return replace(
        _change(ChangeKind.MERGED if len(right) == 1 else kind, left, right),
        differences=tuple(_renamed(left, right)),
    )


def _renamed(
    left: Sequence[ComparableEvent], right: Sequence[ComparableEvent]
) -> Iterator[JsonDifference]:
    """Yield the different ids of events."""
    here, there = (_identities(side) for side in (left, right))
    for path in dict.fromkeys((*here, *there)):
        if here.get(path) != there.get(path):
            yield JsonDifference(
                path=path,
                recorded=excerpt(", ".join(here.get(path, ())) or _ABSENT, _SHOWN),
                received=excerpt(", ".join(there.get(path, ())) or _ABSENT, _SHOWN),
            )


def _identities(units: Sequence[ComparableEvent]) -> dict[str, dict[str, None]]:
    found: dict[str, dict[str, None]] = {}
    for unit in units:
        for path, value in identities(unit.forms.value if unit.forms else None):
            found.setdefault(path, {})[value] = None
    return found


def _change(
    kind: ChangeKind, left: Sequence[ComparableEvent], right: Sequence[ComparableEvent]
) -> EventChange:
    return EventChange(
        kind=kind,
        left=tuple(unit.event.number for unit in left),
        right=tuple(unit.event.number for unit in right),
    )


def _altered(kind: ChangeKind, one: ComparableEvent, other: ComparableEvent) -> EventChange:
    return EventChange(
        kind=kind,
        left=(one.event.number,),
        right=(other.event.number,),
        differences=tuple(_differences(one, other)),
    )


def _differences(one: ComparableEvent, other: ComparableEvent) -> Iterator[JsonDifference]:
    if one.forms is not None and other.forms is not None:
        yield from compare(one.forms.value, other.forms.value)
    elif one.event.data != other.event.data:
        (found,) = compare(one.event.data, other.event.data)
        yield JsonDifference(path=_DATA, recorded=found.recorded, received=found.received)
    if one.event.type != other.event.type and not (one.names_type and other.names_type):
        (found,) = compare(one.event.type, other.event.type)
        yield JsonDifference(path=_TYPE, recorded=found.recorded, received=found.received)


def _with_moves(
    changes: Sequence[EventChange],
    left: Sequence[ComparableEvent],
    right: Sequence[ComparableEvent],
) -> Iterator[EventChange]:
    """Turn dropped events that are inserted elsewhere into moved ones."""
    by_number = {unit.event.number: unit.key for unit in right}
    waiting: dict[str, list[int]] = {}
    for change in reversed(changes):  # so that pop() takes the first one
        if change.kind is ChangeKind.INSERTED:
            waiting.setdefault(by_number[change.right[0]], []).append(change.right[0])
    keys = {unit.event.number: unit.key for unit in left}
    moved: dict[int, int] = {}
    for change in changes:
        if change.kind is ChangeKind.DROPPED and waiting.get(keys[change.left[0]]):
            moved[change.left[0]] = waiting[keys[change.left[0]]].pop()
    gone = set(moved.values())
    for change in changes:
        if change.kind is ChangeKind.DROPPED and change.left[0] in moved:
            yield EventChange(
                kind=ChangeKind.MOVED, left=change.left, right=(moved[change.left[0]],)
            )
        elif change.kind is not ChangeKind.INSERTED or change.right[0] not in gone:
            yield change


def _joined(changes: Iterator[EventChange]) -> Iterator[EventChange]:
    """Join neighbouring changes of the same kind."""
    plain = (ChangeKind.EQUAL, ChangeKind.DROPPED, ChangeKind.INSERTED)
    for kind, group in groupby(changes, key=lambda change: change.kind):
        if kind not in plain:
            yield from group
            continue
        run = list(group)
        yield EventChange(
            kind=kind,
            left=tuple(number for change in run for number in change.left),
            right=tuple(number for change in run for number in change.right),
        )


# Align two long sequences: a diff in nearly linear time.
#
# Strategy: common ends are cut off; values that occur exactly once on both sides become anchors
# (the longest ascending run of them, as in "patience diff" by Bram Cohen); what lies between is
# diffed by the greedy algorithm of Eugene W. Myers, "An O(ND) Difference Algorithm and Its
# Variations" (1986), which stops after `MAX_EDITS` edits, takes the furthest path found so far,
# and goes on from there. So the result is a good alignment, not always the longest, and the time is
# at most proportional to the length times `MAX_EDITS`.
#
# Invariant: pairs ascend on both sides, and paired values are equal.

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
    """Return places in `left` and `right` with equal values, ascending on both sides."""
    pairs: list[Pair] = []
    blocks = [_Block(0, len(left), 0, len(right), 0)]
    while blocks:
        block = _trimmed(blocks.pop(), left, right, pairs)
        if block.left == block.left_end or block.right == block.right_end:
            continue
        anchors = _anchors(block, left, right) if block.depth < _MAX_DEPTH else []
        if anchors:
            pairs += anchors
            blocks += _blocks_between(block, anchors)
        else:
            pairs += _greedy(block, left, right)
    return sorted(pairs)


def _trimmed(
    block: _Block, left: Sequence[Hashable], right: Sequence[Hashable], pairs: list[Pair]
) -> _Block:
    """Return `block` without its common ends, which go to `pairs`."""
    i, i_end, j, j_end, depth = block
    while i < i_end and j < j_end and left[i] == right[j]:
        pairs.append((i, j))
        i, j = i + 1, j + 1
    while i < i_end and j < j_end and left[i_end - 1] == right[j_end - 1]:
        i_end, j_end = i_end - 1, j_end - 1
        pairs.append((i_end, j_end))
    return _Block(i, i_end, j, j_end, depth)


def _anchors(block: _Block, left: Sequence[Hashable], right: Sequence[Hashable]) -> list[Pair]:
    """Return pairs of values that occur once on each side and are in the same order on both."""
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
    """Return the longest subsequence of `pairs` that ascends on both sides."""
    ends: list[int] = []  # by length - 1: the least right place at which such a run ends
    tails: list[int] = []  # and the index of its last pair
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


def _blocks_between(block: _Block, anchors: Sequence[Pair]) -> Iterator[_Block]:
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
    """Return the pairs on the path that gets furthest with `MAX_EDITS` edits, and its end."""
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
            # Paths may leave the grid: nothing is equal there, and none returns.
            if x <= width and y <= height:
                best = max(best, (x + y, -abs(diagonal), edits, diagonal))
            if x == width and y == height:
                return _traced_back(trace, edits, diagonal, (x, y), (i0, j0))
    far, _, edits, diagonal = best
    x = (far + diagonal) // 2
    return _traced_back(trace, edits, diagonal, (x, x - diagonal), (i0, j0))


def _step(reached: dict[int, int], diagonal: int, edits: int) -> int:
    """Return where one more edit leads on this diagonal: from above, or from the left."""
    down, across = reached.get(diagonal + 1, -1), reached.get(diagonal - 1, -1)
    if diagonal == -edits or (diagonal != edits and across < down):
        return down
    return across + 1


def _traced_back(
    trace: Sequence[dict[int, int]], edits: int, diagonal: int, end: Pair, origin: Pair
) -> list[Pair]:
    """Return the pairs on the path to `end`, ascending, and `end` itself."""
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


# Find deltas that were split differently: runs of events with the same content on both sides.
#
# Strategy: one reader per side walks through the content of its events, character by character, as
# long as both are equal, and takes the next event when the current one is used up. A run ends where
# both are used up at the same time. Failed attempts are bounded.

_EFFORT = 20
"""How many events failed attempts may read, per event of the sequences."""


@dataclass(slots=True)
class _Reader:
    """Reads what one side still contributes."""

    units: Sequence[ComparableEvent]
    next: int
    left: deque[EventToken] = field(default_factory=deque)
    read: int = 0
    """Characters of the first token that have been read."""

    def load(self) -> bool:
        """Load the next event that contributes something; return whether there is one."""
        if self.next >= len(self.units):
            return False
        tokens = self.units[self.next].tokens
        self.left.extend(each for each in tokens if each.text or each.what not in DELTAS)
        self.next += 1
        return bool(self.left)

    @property
    def rest(self) -> int:
        """Return how many characters of the first token are left."""
        return len(self.left[0].text) - self.read

    def take(self, size: int) -> None:
        """Skip `size` characters."""
        self.read += size
        if not self.rest:
            self.left.popleft()
            self.read = 0


class RunMatcher:
    """Finds runs in a part of both sides.

    Args:
        left: the events of that part.
        right: the events of the other side.
    """

    def __init__(self, left: Sequence[ComparableEvent], right: Sequence[ComparableEvent]) -> None:
        self._left = left
        self._right = right
        self._effort = _EFFORT * (len(left) + len(right))

    def at(self, i: int, j: int) -> tuple[int, int] | None:
        """Return where the shortest run from these places ends on both sides; None if none does.

        Runs of one event on each side contribute the same; they differ in something else.
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
    """Read on in both until one ends or they differ; return whether they agree so far."""
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
