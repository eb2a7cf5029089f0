"""What differs in how events are framed although they say the same.

Told once for each sort of difference, with the first events that show it: a gateway that writes
anew what it passes on does so with every event.
"""

import json
from collections.abc import Iterable, Iterator, Sequence

from deltatape.compare.units import Unit
from deltatape.compare.values import Change, Framed, Kind, Spacing
from deltatape.diagnose.rebuild import Analysis
from deltatape.model.stream import Event, Format, Stream
from deltatape.rules.evidence import excerpt
from deltatape.rules.words import count
from deltatape.wire.json_value import parse

_SHOWN = 60
_UNNAMED = "message"


def framing_of(
    left: Analysis, right: Analysis, changes: Iterable[Change], units: Sequence[Sequence[Unit]]
) -> tuple[Framed, ...]:
    """The differences of framing between events that are told as equal, and of the rest.

    Args:
        left: one side.
        right: the other.
        changes: what became of the events.
        units: the events of both sides.
    """
    found = list(_of_bodies(left.stream, right.stream))
    ours, theirs = ({unit.event.number: unit for unit in side} for side in units)
    seen: dict[Spacing, Framed] = {}
    for change in changes:
        if change.kind is Kind.EQUAL:
            for i, j in zip(change.left, change.right, strict=True):
                for each in _of_pair(left.stream, right.stream, ours[i], theirs[j]):
                    before = seen.get(each.what)
                    seen[each.what] = each if before is None else _again(before)
    return (*found, *seen.values())


def _again(before: Framed) -> Framed:
    return Framed(
        what=before.what,
        count=before.count + 1,
        left=before.left,
        right=before.right,
        event=before.event,
    )


def _of_bodies(left: Stream, right: Stream) -> Iterator[Framed]:
    sides = (left, right)
    if left.format is not right.format:
        yield _whole(Spacing.FORMAT, left.format.value, right.format.value)
    texts = [[comment.text for comment in side.comments] for side in sides]
    if texts[0] != texts[1]:
        yield _whole(Spacing.COMMENTS, *(_comments(each) for each in texts))
    pending = [side.pending.data if side.pending else "" for side in sides]
    if pending[0] != pending[1]:
        yield _whole(Spacing.PENDING, *(excerpt(each, _SHOWN) or "nothing" for each in pending))


def _comments(texts: Sequence[str]) -> str:
    first = f", first: {excerpt(texts[0].strip(), _SHOWN)}" if texts else ""
    return f"{count(len(texts), 'comment')}{first}"


def _whole(what: Spacing, left: str, right: str) -> Framed:
    return Framed(what=what, count=1, left=left, right=right, event=None)


def _of_pair(left: Stream, right: Stream, one: Unit, other: Unit) -> Iterator[Framed]:
    """The differences between two events that say the same."""
    raw = [_raw(left, one), _raw(right, other)]
    if raw[0] == raw[1]:
        return
    numbers = (one.event.number, other.event.number)
    found = [*_of_lines(one.event, other.event)]
    if one.event.data != other.event.data and not _differ_in_ignored(one, other):
        spelt = _spelt(one.event.data, other.event.data)
        found.append((Spacing.JSON, spelt[0], spelt[1]))
    if left.format is Format.SSE and right.format is Format.SSE:
        ends = ["CR LF" if b"\r" in each else "LF" for each in raw]
        if ends[0] != ends[1]:
            found.append((Spacing.LINE_ENDS, ends[0], ends[1]))
        elif not found and one.event.data == other.event.data:
            here, there = (each.decode("utf-8", "replace") for each in raw)
            found.append((Spacing.FIELDS, here, there))
    for what, here, there in found:
        yield Framed(
            what=what,
            count=1,
            left=excerpt(here, _SHOWN),
            right=excerpt(there, _SHOWN),
            event=numbers,
        )


def _of_lines(one: Event, other: Event) -> Iterator[tuple[Spacing, str, str]]:
    """What differs in the lines of server-sent events beside their data."""
    if one.type != other.type:
        yield Spacing.EVENT_LINE, _named(one.type), _named(other.type)
    if one.id != other.id:
        yield Spacing.ID_LINE, f"id: {one.id}", f"id: {other.id}"
    if one.retry != other.retry:
        yield Spacing.RETRY_LINE, f"retry: {one.retry}", f"retry: {other.retry}"


def _named(name: str) -> str:
    """A line with the name of an event; the usual name stands for none."""
    return "no event line" if name == _UNNAMED else f"event: {name}"


def _raw(stream: Stream, unit: Unit) -> bytes:
    start, end = unit.event.place.span
    return stream.body[start:end]


def _differ_in_ignored(one: Unit, other: Unit) -> bool:
    """Whether the data differs in fields that are not compared: then nobody wrote it anew."""
    ignored = [unit.forms.ignored if unit.forms else None for unit in (one, other)]
    return ignored[0] != ignored[1]


def _spelt(one: str, other: str) -> tuple[str, str]:
    """What differs in two spellings of the same JSON, from a little before where it begins."""
    values = [parse(each).value for each in (one, other)]
    if json.dumps(values[0]) != json.dumps(values[1]):
        return "keys in one order", "keys in another"
    pairs = zip(one, other, strict=False)
    at = next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
    start = max(0, at - 12)
    return one[start:], other[start:]
