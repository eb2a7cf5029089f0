"""What became of each event on the way from left to right.

Strategy: events that say the same are aligned first; between them those that say the same for
another call, choice or item; between those, deltas that were cut in another way. Of what is left,
events of the same kind are pairs, of which one is an altered form of the other; the rest is
missing on one side. What is missing here and too much there has been moved.

Each step looks only at what the steps before left, so the cost stays that of `align`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from deltatape.compare.align import align
from deltatape.compare.runs import Runs
from deltatape.compare.units import Unit
from deltatape.compare.values import Change, Kind
from deltatape.compare.volatile import identities
from deltatape.match.difference import Difference, compare
from deltatape.rules.evidence import excerpt

_ABSENT = "(absent)"
_DATA = "(data)"
_TYPE = "(event type)"
_SHOWN = 60


def changes_of(left: Sequence[Unit], right: Sequence[Unit]) -> tuple[Change, ...]:
    """What became of the events, in the order of the left side.

    Neighbours that are equal, dropped, or inserted are one change; the others are one each.
    """
    found: list[Change] = []
    i = j = 0
    pairs = align([unit.key for unit in left], [unit.key for unit in right])
    for pair in (*pairs, (len(left), len(right))):
        found += _between(left[i : pair[0]], right[j : pair[1]])
        if pair[0] < len(left):
            found.append(_change(Kind.EQUAL, left[pair[0] : pair[0] + 1], [right[pair[1]]]))
        i, j = pair[0] + 1, pair[1] + 1
    return tuple(_joined(_with_moves(found, left, right)))


def _between(left: Sequence[Unit], right: Sequence[Unit]) -> Iterator[Change]:
    """What became of events of which none is equal."""
    i = j = 0
    pairs = align([unit.loose for unit in left], [unit.loose for unit in right])
    for pair in (*pairs, (len(left), len(right))):
        yield from _unlike(left[i : pair[0]], right[j : pair[1]])
        if pair[0] < len(left):
            yield _altered(Kind.REINDEXED, left[pair[0]], right[pair[1]])
        i, j = pair[0] + 1, pair[1] + 1


def _unlike(left: Sequence[Unit], right: Sequence[Unit]) -> Iterator[Change]:
    """What became of events that differ in more than in whom they are for."""
    runs = Runs(left, right)
    slots = _alike(left, right)
    i = j = 0
    while i < len(left) and j < len(right):
        run = runs.at(i, j)
        if run is not None and run != (i + 1, j + 1):
            yield _recut(left[i : run[0]], right[j : run[1]])
            i, j = run
        elif run is not None or slots.get(i) == j:
            yield _altered(Kind.ALTERED, left[i], right[j])
            i, j = i + 1, j + 1
        elif slots.get(i, -1) < j:
            yield _change(Kind.DROPPED, left[i : i + 1], ())
            i += 1
        else:
            yield _change(Kind.INSERTED, (), right[j : j + 1])
            j += 1
    for unit in left[i:]:
        yield _change(Kind.DROPPED, (unit,), ())
    for unit in right[j:]:
        yield _change(Kind.INSERTED, (), (unit,))


def _alike(left: Sequence[Unit], right: Sequence[Unit]) -> dict[int, int]:
    """Which events may be altered forms of which: those of one sort, best if they bring alike."""
    pairs = align([unit.slot for unit in left], [unit.slot for unit in right])
    found = dict(pairs)
    i = j = 0
    for pair in (*pairs, (len(left), len(right))):
        here, there = left[i : pair[0]], right[j : pair[1]]
        more = align([unit.sort for unit in here], [unit.sort for unit in there])
        found.update((i + one, j + other) for one, other in more)
        i, j = pair[0] + 1, pair[1] + 1
    return found


def _recut(left: Sequence[Unit], right: Sequence[Unit]) -> Change:
    """Events that bring together what others do."""
    kind = Kind.SPLIT if len(left) == 1 else Kind.RECUT
    return replace(
        _change(Kind.MERGED if len(right) == 1 else kind, left, right),
        differences=tuple(_renamed(left, right)),
    )


def _renamed(left: Sequence[Unit], right: Sequence[Unit]) -> Iterator[Difference]:
    """What events say otherwise of whom they are for."""
    here, there = (_identities(side) for side in (left, right))
    for path in dict.fromkeys((*here, *there)):
        if here.get(path) != there.get(path):
            yield Difference(
                path=path,
                recorded=excerpt(", ".join(here.get(path, ())) or _ABSENT, _SHOWN),
                received=excerpt(", ".join(there.get(path, ())) or _ABSENT, _SHOWN),
            )


def _identities(units: Sequence[Unit]) -> dict[str, dict[str, None]]:
    found: dict[str, dict[str, None]] = {}
    for unit in units:
        for path, value in identities(unit.forms.value if unit.forms else None):
            found.setdefault(path, {})[value] = None
    return found


def _change(kind: Kind, left: Sequence[Unit], right: Sequence[Unit]) -> Change:
    return Change(
        kind=kind,
        left=tuple(unit.event.number for unit in left),
        right=tuple(unit.event.number for unit in right),
    )


def _altered(kind: Kind, one: Unit, other: Unit) -> Change:
    return Change(
        kind=kind,
        left=(one.event.number,),
        right=(other.event.number,),
        differences=tuple(_differences(one, other)),
    )


def _differences(one: Unit, other: Unit) -> Iterator[Difference]:
    if one.forms is not None and other.forms is not None:
        yield from compare(one.forms.value, other.forms.value)
    elif one.event.data != other.event.data:
        (found,) = compare(one.event.data, other.event.data)
        yield Difference(path=_DATA, recorded=found.recorded, received=found.received)
    if one.event.type != other.event.type:
        (found,) = compare(one.event.type, other.event.type)
        yield Difference(path=_TYPE, recorded=found.recorded, received=found.received)


def _with_moves(
    changes: Sequence[Change], left: Sequence[Unit], right: Sequence[Unit]
) -> Iterator[Change]:
    """What is dropped here and inserted there, event for event, is one change: it was moved."""
    by_number = {unit.event.number: unit.key for unit in right}
    waiting: dict[str, list[int]] = {}
    for change in reversed(changes):  # so that the first is the last in its list
        if change.kind is Kind.INSERTED:
            waiting.setdefault(by_number[change.right[0]], []).append(change.right[0])
    keys = {unit.event.number: unit.key for unit in left}
    moved: dict[int, int] = {}
    for change in changes:
        if change.kind is Kind.DROPPED and waiting.get(keys[change.left[0]]):
            moved[change.left[0]] = waiting[keys[change.left[0]]].pop()
    gone = set(moved.values())
    for change in changes:
        if change.kind is Kind.DROPPED and change.left[0] in moved:
            yield Change(kind=Kind.MOVED, left=change.left, right=(moved[change.left[0]],))
        elif change.kind is not Kind.INSERTED or change.right[0] not in gone:
            yield change


def _joined(changes: Iterator[Change]) -> Iterator[Change]:
    """Neighbours of a kind that needs no telling apart as one."""
    plain = (Kind.EQUAL, Kind.DROPPED, Kind.INSERTED)
    for kind, group in groupby(changes, key=lambda change: change.kind):
        if kind not in plain:
            yield from group
            continue
        run = list(group)
        yield Change(
            kind=kind,
            left=tuple(number for change in run for number in change.left),
            right=tuple(number for change in run for number in change.right),
        )
