"""Where a text that the app sent comes from: which fragment, and which character of the original.

Strategy. An app that joins fragments wrongly still joins whole fragments: those of one call, some
of them perhaps left out or doubled, or those of several calls as they arrived, none left out. If
the text is made of such a row of fragments, the last one perhaps cut, each character is attributed
to its fragment. Otherwise only what is also in the delivered text, in the same order, is.
Nothing is guessed: characters whose origin is unknown have none.

Work is bounded, since arguments may have megabytes and replies thousands of calls: what is too long
to be aligned differs as a whole between its common beginning and its common end, and once fragments
of other calls were looked at often, only those of the call itself are.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

_MOST_STEPS = 200_000
"""Comparisons after which a text counts as made of something else."""
_MOST_PAIRS = 400_000
"""Pairs of characters, or of words, that are compared to find a difference."""
_MOST_LOOKS = 2_000_000
"""Fragments of other calls that are looked at for all texts of a reply."""
_TELLING = 3
"""Characters of a text whose origin can be told: `{}` may come from anywhere."""
_WORD = re.compile(r"\w+|\W")


class DeliveredFragment(NamedTuple):
    """A fragment of a call's arguments."""

    call: int
    event: int
    text: str


class DeliveredFragments:
    """The fragments of a reply.

    Args:
        fragments: the fragments of all calls, in the order in which they arrived.
    """

    def __init__(self, fragments: Iterable[DeliveredFragment]) -> None:
        self.all = tuple(fragments)
        self._of: dict[int | None, list[DeliveredFragment]] = {}
        for each in self.all:
            self._of.setdefault(each.call, []).append(each)
        self._looks = 0

    def of(self, call: int | None) -> Sequence[DeliveredFragment]:
        """Return the events of one call."""
        return self._of.get(call, ())

    def rows_with_others(self, own: int | None) -> Iterator[Sequence[DeliveredFragment]]:
        """Yield all of them in the orders in which they may be joined, until that is too much."""
        mine = self.of(own)
        for at in range(3):
            self._looks += len(self.all)
            if self._looks > _MOST_LOOKS:
                return
            others = [each for each in self.all if each.call != own] if at else ()
            yield (self.all, [*mine, *others], [*others, *mine])[at]


class Segment(NamedTuple):
    """A part of the sent text, and the fragment that it comes from; None if that is unknown."""

    start: int
    end: int
    source: DeliveredFragment | None


class Edit(NamedTuple):
    """A step from the delivered text to the sent one; ranges are half-open, in characters."""

    op: str
    """`equal`, `insert` or `delete`."""
    delivered: tuple[int, int]
    sent: tuple[int, int]


def segments(
    sent: str, fragments: DeliveredFragments, own: int | None, *, alike: bool = False
) -> tuple[Segment, ...]:
    """Return the parts of `sent`, in order and without gaps, with the fragments they come from.

    Args:
        sent: the arguments that the app sent.
        fragments: the fragments of the reply.
        own: the call that the app means; None if there is none.
        alike: whether it says the same as that call, and so comes from no other one.
    """
    mine = fragments.of(own)
    twice = [each for each in mine for _ in range(2)]
    rows: tuple[Sequence[DeliveredFragment], ...] = (mine, twice, [*mine, *mine])
    for row in rows:
        found = _made_of(sent, row)
        if found is not None:
            return found
    if len(sent) >= _TELLING and not alike:
        for row in fragments.rows_with_others(own):
            found = _made_of(sent, row)
            if found is not None and _is_complete(found, row):
                return found
    return tuple(_common_parts(sent, mine))


def _is_complete(found: Sequence[Segment], row: Sequence[DeliveredFragment]) -> bool:
    """Check that nothing of the calls in `found` is left out between its first and last fragment.

    Otherwise fragments of two calls may fit by chance, as where an app filled in a default.
    """
    sources = [each.source for each in found if each.source]
    calls = {each.call for each in sources}
    rest = [each for each in row if each.call in calls and each.text]
    first = next(at for at, each in enumerate(rest) if each is sources[0])
    return rest[first : first + len(sources)] == sources


class _Step(NamedTuple):
    """A fragment in a row that makes up the text, and those before it."""

    start: int
    end: int
    source: DeliveredFragment
    before: "_Step | None"


def _made_of(sent: str, row: Sequence[DeliveredFragment]) -> tuple[Segment, ...] | None:
    """Return `sent` as fragments in the order of `row`; None if it is something else.

    Of several ways, the one that leaves out the fewest between the first and the last.
    """
    if not sent:
        return ()
    if sent == "".join(each.text for each in row):
        return _whole(row)
    # By position in `sent`: the steps to it, and how many of the row were left out, less the place.
    reached: dict[int, tuple[int, _Step | None]] = {0: (0, None)}
    starting: dict[str, list[int]] = {sent[0]: [0]}
    best: tuple[tuple[bool, int], _Step] | None = None
    work = 0
    for place, fragment in enumerate(row):
        text = fragment.text
        positions = starting.get(text[:1], ())
        work += 1 + len(positions)
        if work > _MOST_STEPS:
            return None
        for at in sorted(positions, reverse=True):  # so that no fragment follows itself
            less, before = reached[at]
            less = less - 1 if before else -place
            end = min(at + len(text), len(sent))
            if not text.startswith(sent[at:end]):
                continue
            step = _Step(at, end, fragment, before)
            if end == len(sent):
                rank = (at + len(text) > end, less + place)
                best = min((rank, step), best or (rank, step), key=lambda each: each[0])
            elif end not in reached:
                reached[end] = (less, step)
                starting.setdefault(sent[end], []).append(end)
            elif less < reached[end][0]:
                reached[end] = (less, step)
    return _segments_of(best[1]) if best else None


def _whole(row: Sequence[DeliveredFragment]) -> tuple[Segment, ...]:
    ends = [0]
    for each in row:
        ends.append(ends[-1] + len(each.text))
    pairs = zip(ends, ends[1:], row, strict=False)
    return tuple(Segment(start, end, each) for start, end, each in pairs if end > start)


def _segments_of(last: _Step) -> tuple[Segment, ...]:
    found = []
    step: _Step | None = last
    while step is not None:
        found.append(Segment(step.start, step.end, step.source))
        step = step.before
    return tuple(reversed(found))


def _common_parts(sent: str, mine: Sequence[DeliveredFragment]) -> Iterator[Segment]:
    """Yield the parts of `sent`: text that is also in the call's own fragments has a source."""
    places = _whole(mine)
    at = first = 0
    for edit in edits("".join(each.text for each in mine), sent):
        (start, end), (begin, _) = edit.delivered, edit.sent
        if edit.op != "equal" or end - start < _TELLING:
            continue
        if begin > at:
            yield Segment(at, begin, None)
        at = begin + end - start
        while places[first].end <= start:
            first += 1
        for place in range(first, len(places)):
            low, high = max(places[place].start, start), min(places[place].end, end)
            if low >= high:
                break
            yield Segment(begin + low - start, begin + high - start, places[place].source)
    if at < len(sent):
        yield Segment(at, len(sent), None)


def edits(delivered: str, sent: str) -> tuple[Edit, ...]:
    """Return how the sent text differs from the delivered one, in order and without gaps.

    Character by character; long texts word by word; longer ones as a whole, but for what is equal
    at the beginning and at the end.
    """
    front = common_start(delivered, sent)
    back = common_start(delivered[front:][::-1], sent[front:][::-1])
    ends = len(delivered) - back, len(sent) - back
    found = []
    if front:
        found.append(Edit("equal", (0, front), (0, front)))
    found += _changes(delivered[front : ends[0]], sent[front : ends[1]], front)
    if back:
        found.append(Edit("equal", (ends[0], len(delivered)), (ends[1], len(sent))))
    return tuple(found)


def common_start(one: str, other: str) -> int:
    """Count the characters that are equal at the start."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _changes(one: str, other: str, offset: int) -> Iterator[Edit]:
    """Yield the edits between two texts that begin at `offset` on both sides."""
    left, right = _comparable(one, other)
    starts, others = _starts(left, offset), _starts(right, offset)
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    for op, i, j, k, m in matcher.get_opcodes():
        (start, end), (begin, finish) = (starts[i], starts[j]), (others[k], others[m])
        if op == "equal":
            yield Edit(op, (start, end), (begin, finish))
        else:
            if end > start:
                yield Edit("delete", (start, end), (begin, begin))
            if finish > begin:
                yield Edit("insert", (end, end), (begin, finish))


def _comparable(one: str, other: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return two texts in parts that are few enough to be compared each with each."""
    if len(one) * len(other) <= _MOST_PAIRS:
        return one, other
    if len(one) + len(other) <= _MOST_PAIRS:
        left, right = _WORD.findall(one), _WORD.findall(other)
        if len(left) * len(right) <= _MOST_PAIRS:
            return left, right
    return [one], [other]


def _starts(parts: Sequence[str], offset: int) -> list[int]:
    """Return where each part begins, and where the last one ends."""
    found = [offset]
    for each in parts:
        found.append(found[-1] + len(each))
    return found
