"""Two exchanges compared: events where both speak one dialect, else what the events bring."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from deltatape.compare.calls import Cause, call_changes, reply_differences
from deltatape.compare.content import arguments_part, call_part, content_changes
from deltatape.compare.events import changes_of
from deltatape.compare.framing import framing_of
from deltatape.compare.units import Unit, units_of
from deltatape.compare.values import Change, Comparison, Damage, Framed, Kind
from deltatape.compare.volatile import VOLATILE, Ignoring
from deltatape.diagnose.rebuild import Analysis
from deltatape.model.reply import ToolCall
from deltatape.model.stream import Format


def compare_exchanges(
    left: Analysis, right: Analysis, ignore: Collection[str] = VOLATILE
) -> Comparison:
    """What became of the response of `left` on the way to `right`.

    Args:
        left: the side nearer to the provider, or the one that is thought right.
        right: the other.
        ignore: fields of events that are not compared, as paths; see `VOLATILE`.
    """
    by_event = _is_comparable(left, right)
    changes: tuple[Change, ...]
    framing: tuple[Framed, ...] = ()
    volatile: tuple[tuple[str, int], ...] = ()
    if by_event:
        ignoring = Ignoring(ignore)
        units = [units_of(side, ignoring) for side in (left, right)]
        changes = changes_of(*units)
        framing = framing_of(left, right, changes, units)
        volatile = _volatile(changes, units)
        cause = _by_events(changes)
    else:
        changes = content_changes(left.reply, right.reply)
        cause = _by_calls(changes)
    return Comparison(
        left=left,
        right=right,
        by_event=by_event,
        changes=changes,
        framing=framing,
        volatile=volatile,
        reply=reply_differences(left.reply, right.reply, alike=by_event),
        calls=call_changes(left.reply, right.reply, cause, alike=by_event),
    )


def first_damage(hops: Iterable[Comparison]) -> int | None:
    """The place of the first of `hops`, in the order from the provider, that damaged a call."""
    return next((place for place, hop in enumerate(hops) if hop.damaged), None)


def _is_comparable(left: Analysis, right: Analysis) -> bool:
    """Whether events of the one can equal events of the other."""
    documents = [side.stream.format is Format.JSON for side in (left, right)]
    empty = not left.stream.events or not right.stream.events
    return left.reply.dialect == right.reply.dialect and (documents[0] == documents[1] or empty)


def _volatile(
    changes: Iterable[Change], units: Sequence[Sequence[Unit]]
) -> tuple[tuple[str, int], ...]:
    """What was ignored and differs between equal events, the most frequent first."""
    ours, theirs = ({unit.event.number: unit for unit in side} for side in units)
    found: Counter[str] = Counter()
    for change in changes:
        if change.kind is Kind.EQUAL:
            for i, j in zip(change.left, change.right, strict=True):
                found.update(_differing(_ignored(ours[i]), _ignored(theirs[j])))
    return tuple(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def _ignored(unit: Unit) -> Mapping[str, str]:
    return unit.forms.ignored if unit.forms else {}


def _differing(one: Mapping[str, str], other: Mapping[str, str]) -> Iterable[str]:
    return (path for path in {*one, *other} if one.get(path) != other.get(path))


def _by_events(changes: Sequence[Change]) -> Cause:
    """Finds the first change of an event that brings something of a call; else the first at all."""
    unlike = [change for change in changes if change.kind is not Kind.EQUAL]

    def cause(_: Damage, one: ToolCall | None, other: ToolCall | None) -> Change | None:
        ours, theirs = _events_of(one), _events_of(other)
        touching = (
            change
            for change in unlike
            if not (ours.isdisjoint(change.left) and theirs.isdisjoint(change.right))
        )
        return next(touching, unlike[0] if unlike else None)

    return cause


def _events_of(call: ToolCall | None) -> set[int]:
    if call is None:
        return set()
    return {call.start_event, *(fragment.event for fragment in call.fragments)}


def _by_calls(changes: Sequence[Change]) -> Cause:
    """Finds the first change that was told for a call."""
    unlike = [change for change in changes if change.kind is not Kind.EQUAL]

    def cause(damage: Damage, one: ToolCall | None, other: ToolCall | None) -> Change | None:
        call = one or other
        assert call is not None
        part = arguments_part(call) if damage is Damage.ARGUMENTS else call_part(call)
        mine = (change for change in unlike if change.part == part)
        return next((each for each in mine if (each.kind is Kind.INSERTED) == (one is None)), None)

    return cause
