"""Compare two exchanges: by events in one dialect, else by their contributions."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from deltatape.compare.comparable_events import VOLATILE, ComparableEvent, FieldFilter, units_of
from deltatape.compare.content import (
    Cause,
    arguments_part,
    call_changes,
    call_part,
    content_changes,
    named,
    reply_differences,
)
from deltatape.compare.events import changes_of
from deltatape.compare.values import (
    CallDamage,
    ChangeKind,
    Comparison,
    ContextDifference,
    ContextPart,
    EventChange,
    FramingDifference,
    SpacingDifference,
)
from deltatape.diagnose.rebuild import Analysis
from deltatape.match.body import blanked, json_value
from deltatape.match.difference import JsonDifference, compare
from deltatape.model.exchange import Exchange
from deltatape.model.reply import ToolCall
from deltatape.model.stream import Event, Format, Stream
from deltatape.printable import count, excerpt
from deltatape.rules.answers import counts_in
from deltatape.wire.json_value import parse


def compare_exchanges(
    left: Analysis, right: Analysis, ignore: Collection[str] = VOLATILE
) -> Comparison:
    """Return what changed in the response of `left` on the way to `right`.

    Args:
        left: the side nearer to the provider, or the reference.
        right: the other.
        ignore: fields of events that are not compared, as paths; see `VOLATILE`.
    """
    by_event = _is_comparable(left, right)
    changes: tuple[EventChange, ...]
    framing: tuple[FramingDifference, ...] = ()
    volatile: tuple[tuple[str, int], ...] = ()
    if by_event:
        ignoring = FieldFilter(ignore)
        units = [units_of(side, ignoring) for side in (left, right)]
        changes = changes_of(*units)
        framing = framing_of(left, right, changes, units)
        volatile = _volatile(changes, units)
        cause = _by_events(changes, units)
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
        reply=(*_status(left, right), *reply_differences(left.reply, right.reply, alike=by_event)),
        calls=call_changes(left.reply, right.reply, cause, alike=by_event),
        context=tuple(_context(left, right, by_event=by_event)),
    )


def first_damage(hops: Iterable[Comparison]) -> int | None:
    """Return the place of the first of `hops`, from the provider on, that damaged a call."""
    return next((place for place, hop in enumerate(hops) if hop.damaged), None)


def _is_comparable(left: Analysis, right: Analysis) -> bool:
    """Return whether events of one side can equal events of the other."""
    documents = [side.stream.format is Format.JSON for side in (left, right)]
    empty = not left.stream.events or not right.stream.events
    return left.reply.dialect == right.reply.dialect and (documents[0] == documents[1] or empty)


def _volatile(
    changes: Iterable[EventChange], units: Sequence[Sequence[ComparableEvent]]
) -> tuple[tuple[str, int], ...]:
    """Count the ignored fields that differ between equal events, the most frequent first."""
    ours, theirs = ({unit.event.number: unit for unit in side} for side in units)
    found: Counter[str] = Counter()
    for change in changes:
        if change.kind is ChangeKind.EQUAL:
            for i, j in zip(change.left, change.right, strict=True):
                one, other = _ignored(ours[i]), _ignored(theirs[j])
                found.update(path for path in {*one, *other} if one.get(path) != other.get(path))
    return tuple(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def _ignored(unit: ComparableEvent) -> Mapping[str, str]:
    return unit.forms.ignored if unit.forms else {}


def _by_events(changes: Sequence[EventChange], units: Sequence[Sequence[ComparableEvent]]) -> Cause:
    """Find the first change of an event that contributes to a call, best of what it contributes.

    A gateway that writes every event anew alters all of them, which explains no damage.
    """
    unlike = [change for change in changes if change.kind is not ChangeKind.EQUAL]
    ours, theirs = ({unit.event.number: unit for unit in side} for side in units)

    def says_the_same(change: EventChange) -> bool:
        here, there = (
            "".join(repr(token) for number in numbers for token in side[number].tokens)
            for side, numbers in ((ours, change.left), (theirs, change.right))
        )
        return here == there

    def cause(_: CallDamage, one: ToolCall | None, other: ToolCall | None) -> EventChange | None:
        mine, its = _events_of(one), _events_of(other)
        touching = [
            change
            for change in unlike
            if not (mine.isdisjoint(change.left) and its.isdisjoint(change.right))
        ]
        saying = (change for change in touching if not says_the_same(change))
        return next(saying, next(iter((*touching, *unlike)), None))

    return cause


def _events_of(call: ToolCall | None) -> set[int]:
    if call is None:
        return set()
    return {call.start_event, *(fragment.event for fragment in call.fragments)}


def _by_calls(changes: Sequence[EventChange]) -> Cause:
    """Find the first change that names a call."""
    unlike = [change for change in changes if change.kind is not ChangeKind.EQUAL]

    def cause(
        damage: CallDamage, one: ToolCall | None, other: ToolCall | None
    ) -> EventChange | None:
        call = one or other
        assert call is not None
        part = arguments_part(call) if damage is CallDamage.ARGUMENTS else call_part(call)
        mine = (change for change in unlike if change.part == part)
        return next(
            (each for each in mine if (each.kind is ChangeKind.INSERTED) == (one is None)), None
        )

    return cause


# The parts of an exchange around the answer.

_ALWAYS_NEW = frozenset(
    {"age", "connection", "content-length", "date", "keep-alive", "transfer-encoding"}
)
"""Headers about the connection and the time."""
_MASKED = "***"


def _status(left: Analysis, right: Analysis) -> tuple[JsonDifference, ...]:
    """Return how the statuses differ; a body without a taped exchange has none to compare."""
    sides = [side.exchange for side in (left, right)]
    if not all(side.id and side.response for side in sides):
        return ()
    return named("status", *(side.response.status for side in sides if side.response))


def _context(left: Analysis, right: Analysis, *, by_event: bool) -> Iterator[ContextDifference]:
    """Yield what differs around the answers.

    Args:
        left: one side.
        right: the other.
        by_event: whether their events were compared, so that model and usage are among these.
    """
    found: list[tuple[ContextPart, Sequence[JsonDifference]]] = [
        (ContextPart.REQUEST, _of_requests(left, right)),
        (ContextPart.HEADERS, tuple(_of_headers(left.exchange, right.exchange))),
    ]
    if not by_event:
        models = [side.reply.model for side in (left, right)]
        if all(models):
            found.append((ContextPart.MODEL, named("model", *models)))
        counts = [counts_in(side.reply.usage or {}) for side in (left, right)]
        if counts[0] and counts[1]:
            found += [
                (ContextPart.USAGE, named("prompt tokens", counts[0].prompt, counts[1].prompt)),
                (ContextPart.USAGE, named("answer tokens", counts[0].answer, counts[1].answer)),
            ]
    for part, differences in found:
        for difference in differences:
            yield ContextDifference(part=part, difference=difference)


def _of_requests(left: Analysis, right: Analysis) -> Sequence[JsonDifference]:
    """Return how the requests differ, masked credentials aside."""
    requests = [side.exchange.request for side in (left, right)]
    paths = named("path", *(request.path for request in requests))
    one, other = (
        json_value(blanked(request.content, request.content_masked)) for request in requests
    )
    if not isinstance(one, dict) or not isinstance(other, dict):
        return paths
    if left.reply.dialect != right.reply.dialect:
        one, other = (
            {key: each for key, each in body.items() if key == "model"} for body in (one, other)
        )
    return (*paths, *compare(one, other))


def _of_headers(left: Exchange, right: Exchange) -> Iterator[JsonDifference]:
    """Yield the headers of the response that differ, by lower-case name."""
    ours, theirs = (_headers(side) for side in (left, right))
    for name in dict.fromkeys((*ours, *theirs)):
        here, there = ours.get(name), theirs.get(name)
        if here != there:
            yield JsonDifference(
                path=name, recorded=here or "(absent)", received=there or "(absent)"
            )


def _headers(exchange: Exchange) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for key, value in exchange.response.headers if exchange.response else ():
        name = key.decode("latin-1").lower()
        if name not in _ALWAYS_NEW:
            text = value.decode("utf-8", "replace") if isinstance(value, bytes) else _MASKED
            found[name] = excerpt(f"{found[name]}, {text}" if name in found else text, _SHOWN)
    return found


# Differences of framing between events with the same content.
#
# Each kind is reported once, with the first events that show it: a gateway that serialises events
# anew does so with every one.

_SHOWN = 60


def framing_of(
    left: Analysis,
    right: Analysis,
    changes: Iterable[EventChange],
    units: Sequence[Sequence[ComparableEvent]],
) -> tuple[FramingDifference, ...]:
    """Return the differences of framing between equal events, and in the rest.

    Args:
        left: one side.
        right: the other.
        changes: the changes of the events.
        units: the events of both sides.
    """
    found = list(_of_bodies(left.stream, right.stream))
    ours, theirs = ({unit.event.number: unit for unit in side} for side in units)
    seen: dict[SpacingDifference, FramingDifference] = {}
    for change in changes:
        if change.kind in _PAIRED:
            for i, j in zip(change.left, change.right, strict=True):
                pair = ours[i], theirs[j]
                equal = change.kind is ChangeKind.EQUAL
                for each in (
                    _of_pair(left.stream, right.stream, *pair) if equal else _of_altered(*pair)
                ):
                    before = seen.get(each.what)
                    seen[each.what] = (
                        each if before is None else replace(before, count=before.count + 1)
                    )
    return (*found, *seen.values())


_PAIRED = (ChangeKind.EQUAL, ChangeKind.ALTERED, ChangeKind.REINDEXED)
"""An event of these is one on the other side."""


def _of_altered(one: ComparableEvent, other: ComparableEvent) -> Iterator[FramingDifference]:
    """Yield how the lines of an event differ whose data differs, too."""
    for what, here, there in _of_lines(one.event, other.event):
        if what is not SpacingDifference.EVENT_LINE or (one.names_type and other.names_type):
            yield _framed(what, here, there, one, other)


def _of_bodies(left: Stream, right: Stream) -> Iterator[FramingDifference]:
    sides = (left, right)
    if left.format is not right.format:
        yield _body_difference(SpacingDifference.FORMAT, left.format.value, right.format.value)
    texts = [[comment.text for comment in side.comments] for side in sides]
    if texts[0] != texts[1]:
        shown = [
            count(len(side), "comment")
            + (f", first: {excerpt(side[0].strip(), _SHOWN)}" if side else "")
            for side in texts
        ]
        yield _body_difference(SpacingDifference.COMMENTS, *shown)
    pending = [side.pending.data if side.pending else "" for side in sides]
    if pending[0] != pending[1]:
        yield _body_difference(
            SpacingDifference.PENDING, *(excerpt(each, _SHOWN) or "nothing" for each in pending)
        )


def _body_difference(what: SpacingDifference, left: str, right: str) -> FramingDifference:
    return FramingDifference(what=what, count=1, left=left, right=right, event=None)


def _of_pair(
    left: Stream, right: Stream, one: ComparableEvent, other: ComparableEvent
) -> Iterator[FramingDifference]:
    """Yield the differences between two events with the same content."""
    raw = [
        stream.body[slice(*unit.event.place.span)] for stream, unit in ((left, one), (right, other))
    ]
    if raw[0] == raw[1]:
        return
    found = [*_of_lines(one.event, other.event)]
    # Where ignored fields differ, the event is another one and no copy.
    ignored = [unit.forms.ignored if unit.forms else None for unit in (one, other)]
    if one.event.data != other.event.data and ignored[0] == ignored[1]:
        spellings = _spellings(one.event.data, other.event.data)
        found.append((SpacingDifference.JSON, spellings[0], spellings[1]))
    if left.format is Format.SSE and right.format is Format.SSE:
        ends = ["CR LF" if b"\r" in each else "LF" for each in raw]
        if ends[0] != ends[1]:
            found.append((SpacingDifference.LINE_ENDS, ends[0], ends[1]))
        elif not found and one.event.data == other.event.data:
            here, there = (each.decode("utf-8", "replace") for each in raw)
            found.append((SpacingDifference.FIELDS, here, there))
    for what, here, there in found:
        yield _framed(what, here, there, one, other)


def _framed(
    what: SpacingDifference, here: str, there: str, one: ComparableEvent, other: ComparableEvent
) -> FramingDifference:
    return FramingDifference(
        what=what,
        count=1,
        left=excerpt(here, _SHOWN),
        right=excerpt(there, _SHOWN),
        event=(one.event.number, other.event.number),
    )


def _of_lines(one: Event, other: Event) -> Iterator[tuple[SpacingDifference, str, str]]:
    """Yield how the lines of server-sent events differ beside their data."""
    if one.type != other.type:
        yield SpacingDifference.EVENT_LINE, _named(one.type), _named(other.type)
    if one.id != other.id:
        yield SpacingDifference.ID_LINE, f"id: {one.id}", f"id: {other.id}"
    if one.retry != other.retry:
        yield SpacingDifference.RETRY_LINE, f"retry: {one.retry}", f"retry: {other.retry}"


def _named(name: str) -> str:
    return "no event line" if name == "message" else f"event: {name}"


def _spellings(one: str, other: str) -> tuple[str, str]:
    """Return how two spellings of the same JSON differ, from shortly before the difference."""
    values = [parse(each).value for each in (one, other)]
    if json.dumps(values[0]) != json.dumps(values[1]):
        return "keys in one order", "keys in another"
    pairs = zip(one, other, strict=False)
    at = next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
    start = max(0, at - 12)
    return one[start:], other[start:]
