"""The report of `deltatape diff`: a summary line, the damaged calls, then the events.

As in other diffs, equal events are shown only next to a difference. A run of adjacent events with
the same change is shown once.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from deltatape.compare import (
    CallChange,
    CallDamage,
    ChangeKind,
    Comparison,
    ContextPart,
    EventChange,
    SpacingDifference,
)
from deltatape.compare.values import FramingDifference
from deltatape.diagnose.rebuild import Analysis
from deltatape.match.difference import JsonDifference
from deltatape.model.reply import ToolCall
from deltatape.printable import count, excerpt
from deltatape.render.json_document import document
from deltatape.render.lines import BOLD, DIM, GOOD, WIDTH, Line, StyledText, cropped, line, wrapped
from deltatape.secret_text.search import without_secrets
from deltatape.why.alignment import edits
from deltatape.why.timeline import identity, label, news

CONTEXT = 2
"""Equal events that are shown before and after what differs."""
_MOST_CHANGES = 40
_MOST_EVENTS = 6
"""Neighbours to which the same happened that are shown."""
_LONG = 80
"""Characters of arguments in which a difference is found at a glance."""
_MOST_DIFFERENCES = 6
_MOST_HEADERS = 6
_OFTEN = 3
"""An alteration of at least this many events is shown once."""
_ABSENT = "(absent)"
_STYLES = {
    ChangeKind.EQUAL: DIM,
    ChangeKind.DROPPED: "red",
    ChangeKind.INSERTED: "green",
    ChangeKind.ALTERED: "yellow",
    ChangeKind.REINDEXED: "magenta",
    ChangeKind.MERGED: "cyan",
    ChangeKind.SPLIT: "cyan",
    ChangeKind.RECUT: "cyan",
    ChangeKind.MOVED: "cyan",
}
_MARKS = {ChangeKind.EQUAL: " ", ChangeKind.DROPPED: "-", ChangeKind.INSERTED: "+"}
_DAMAGES = {
    CallDamage.LOST: "lost",
    CallDamage.ADDED: "added",
    CallDamage.ARGUMENTS: "arguments altered",
    CallDamage.IDENTITY: "id or name changed",
}
_SPACINGS = {
    SpacingDifference.FORMAT: "body format",
    SpacingDifference.EVENT_LINE: "event lines",
    SpacingDifference.ID_LINE: "id lines",
    SpacingDifference.RETRY_LINE: "retry lines",
    SpacingDifference.LINE_ENDS: "line ends",
    SpacingDifference.JSON: "JSON formatting",
    SpacingDifference.FIELDS: "field spacing",
    SpacingDifference.COMMENTS: "comments",
    SpacingDifference.PENDING: "incomplete last event",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSides:
    """Two compared sides, with the names that the user gave them."""

    left: str
    right: str
    comparison: Comparison


def diff_lines(
    hops: Sequence[ComparedSides], damaged: int | None, width: int = WIDTH
) -> list[Line]:
    """Format all hops in order; with several, first the hop that damaged a call.

    Args:
        hops: each from one side to the next.
        damaged: the place of the first that damaged a call.
        width: the width of the page.
    """
    lines: list[Line] = []
    if len(hops) > 1:
        lines += [*_verdict(hops, damaged, width), line("")]
    for place, hop in enumerate(hops):
        lines += [line("")] if place else []
        lines += _hop(hop, width)
    return lines


def _verdict(hops: Sequence[ComparedSides], damaged: int | None, width: int) -> list[Line]:
    if damaged is None:
        return [line(StyledText("no hop damaged a call", GOOD))]
    hop = hops[damaged]
    damage = _call(hop.comparison.damaged[0])
    text = f"first hop that damaged a call: {hop.left} -> {hop.right}: {damage}"
    return wrapped(text, 0, "bold red", width)


def _hop(hop: ComparedSides, width: int) -> Iterator[Line]:
    comparison = hop.comparison
    for mark, name, side in (
        ("---", hop.left, comparison.left),
        ("+++", hop.right, comparison.right),
    ):
        yield cropped(line(StyledText(f"{mark} {name}", BOLD), f"  {_side(side)}"), width)
    yield from _summary(comparison, width)
    for call in comparison.calls:
        yield from _call_lines(call, width)
    for difference in comparison.reply:
        yield from _difference(difference, 2, width, front="reply: ")
    for framed in comparison.framing:
        yield cropped(line(StyledText(f"  framing: {_framed(framed)}", "cyan")), width)
    repeated = _repeated(comparison.changes)
    for difference, number in repeated.items():
        yield from _difference(difference, 2, width, front=f"in {number} events: ")
    yield from _context_lines(comparison, width)
    if any(change.kind is not ChangeKind.EQUAL for change in comparison.changes):
        yield line("")
        yield from _Events(comparison, width, repeated.keys()).lines()


def _repeated(changes: Iterable[EventChange]) -> dict[JsonDifference, int]:
    """Return what is altered in the same way in several events, and in how many.

    A gateway that writes each event anew alters all of them: that is told once, before the events.
    """
    altered = Counter(
        difference
        for change in changes
        if change.kind is ChangeKind.ALTERED and not change.part
        for difference in change.differences
    )
    return {each: number for each, number in altered.items() if number >= _OFTEN}


def _context_lines(comparison: Comparison, width: int) -> Iterator[Line]:
    """Yield what differs around the answers: of headers that one side lacks, only the names."""
    parts: dict[ContextPart, list[JsonDifference]] = {part: [] for part in ContextPart}
    for each in comparison.context:
        parts[each.part].append(each.difference)
    headers = parts.pop(ContextPart.HEADERS)
    for part, found in parts.items():
        is_request = part is ContextPart.REQUEST
        for difference in found[:_MOST_DIFFERENCES]:
            # A request goes the other way: from the application to the provider.
            front = "request, right to left: " if is_request else ""
            told = _turned(difference) if is_request else difference
            yield from _difference(told, 2, width, front=front, style=DIM)
        more = len(found) - _MOST_DIFFERENCES
        if more > 0:
            text = f"  request: {count(more, 'more difference')}; --format json lists them"
            yield line(StyledText(text, DIM))
    for mark, side in (("only on the left", 1), ("only on the right", 0)):
        names = [each.path for each in headers if _sides(each)[side] == _ABSENT]
        if names:
            more = len(names) - _MOST_HEADERS
            rest = [f"and {more} more"] if more > 0 else []
            text = ", ".join([*names[:_MOST_HEADERS], *rest])
            yield from wrapped(f"headers {mark}: {text}", 2, DIM, width)
    for difference in headers:
        if _ABSENT not in _sides(difference):
            yield from _difference(difference, 2, width, front="header ", style=DIM)


def _sides(difference: JsonDifference) -> tuple[str, str]:
    return difference.recorded, difference.received


def _turned(difference: JsonDifference) -> JsonDifference:
    return JsonDifference(
        path=difference.path, recorded=difference.received, received=difference.recorded
    )


def _side(side: Analysis) -> str:
    calls = sum(len(choice.tool_calls) + len(choice.server_calls) for choice in side.reply.choices)
    return ", ".join(
        (side.reply.dialect, count(len(side.stream.events), "event"), count(calls, "call"))
    )


def _summary(comparison: Comparison, width: int) -> list[Line]:
    """Count what differs."""
    how = (
        ""
        if comparison.by_event
        else " (different dialects: compared by the content of the events)"
    )
    if comparison.equal:
        lines = [line(StyledText(f"equal{how}", GOOD))]
    else:
        text = ", ".join(_counted(comparison)) or _otherwise(comparison)
        lines = wrapped(f"{text}{how}", 0, BOLD, width)
    if comparison.volatile:
        fields = ", ".join(f"{path} ({number})" for path, number in comparison.volatile)
        lines += wrapped(f"ignored fields (number of events): {fields}", 0, DIM, width)
    return lines


def _otherwise(comparison: Comparison) -> str:
    """Describe a difference without any changed event."""
    return "equal events, different framing" if comparison.framing else "equal events"


def _counted(comparison: Comparison) -> list[str]:
    sizes: dict[ChangeKind, int] = {}
    for change in comparison.changes:
        if change.kind is not ChangeKind.EQUAL:
            size = max(len(change.left), len(change.right))
            sizes[change.kind] = sizes.get(change.kind, 0) + (size if comparison.by_event else 1)
    what = "event" if comparison.by_event else "part"
    return [f"{count(size, what)} {kind}" for kind, size in sizes.items()]


def _call(call: CallChange) -> str:
    one = call.left or call.right
    assert one is not None
    front = f"choice {call.choice} " if call.choice else ""
    damage = _DAMAGES[call.damage]
    if call.differences and all(each.path == "index" for each in call.differences):
        damage = "shares the index of another call"
    return f"{front}{label(one)} {identity(one)}: {damage}"


def _call_lines(call: CallChange, width: int) -> Iterator[Line]:
    yield from wrapped(_call(call), 2, "bold red", width)
    sides = [(mark, each) for mark, each in (("-", call.left), ("+", call.right)) if each]
    if call.damage is not CallDamage.IDENTITY:
        for mark, each in sides:
            yield cropped(
                line(StyledText(f"      {mark} {excerpt(each.arguments) or '(no bytes)'}", DIM)),
                width,
            )
    if call.damage is CallDamage.IDENTITY or any(len(each.arguments) > _LONG for _, each in sides):
        for difference in call.differences[:_MOST_DIFFERENCES]:
            yield from _difference(difference, 6, width)
    if call.cause is not None:
        yield cropped(line(f"      first change: {_cause(call.cause)}"), width)


def _cause(change: EventChange) -> str:
    """Describe the events of a change."""
    if not change.right:
        return f"{_events(change.left)}, {change.kind}"
    if not change.left:
        return f"{_events(change.right)} of the right side, {change.kind}"
    return f"{_events(change.left)} ({_range(change.right)} on the right side), {change.kind}"


def _events(numbers: Sequence[int]) -> str:
    return f"event {numbers[0]}" if len(numbers) == 1 else f"events {_range(numbers)}"


def _range(numbers: Sequence[int]) -> str:
    if not numbers:
        return ""
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"


def _difference(
    difference: JsonDifference, indent: int, width: int, *, front: str = "", style: str = ""
) -> list[Line]:
    text = f"{front}{difference.path}: {difference.recorded} -> {difference.received}"
    return wrapped(text, indent, style, width)


def _framed(framed: FramingDifference) -> str:
    number = "" if framed.event is None else f" of {count(framed.count, 'event')}"
    return f"{_SPACINGS[framed.what]}{number}: {framed.left} -> {framed.right}"


class _Events:
    """Formats the changed events."""

    def __init__(
        self, comparison: Comparison, width: int, told: Collection[JsonDifference] = ()
    ) -> None:
        self._changes = [_untold(change, told) for change in comparison.changes]
        self._news: tuple[Mapping[int, str], Mapping[int, str]] = (
            _by_number(comparison.left),
            _by_number(comparison.right),
        )
        self._width = width
        sides = (comparison.left, comparison.right)
        digits = max(len(str(len(side.stream.events))) for side in sides)
        self._digits = max(5, digits, 2 * digits + 1)

    def lines(self) -> Iterator[Line]:
        """Yield the changes with equal events around them."""
        yield line(StyledText(f"  {'left':>{self._digits}} {'right':>{self._digits}}", DIM))
        changes = 0
        groups = [list(group) for _, group in groupby(self._changes, key=_sort_of)]
        for place, group in enumerate(groups):
            if group[0].kind is ChangeKind.EQUAL:
                for change in group:
                    last = place == len(groups) - 1
                    yield from self._equal(change, before=place > 0, after=not last)
                continue
            changes += 1
            if changes > _MOST_CHANGES:
                rest = sum(1 for each in groups[place:] if each[0].kind is not ChangeKind.EQUAL)
                text = f"{count(rest, 'more change')}; --format json lists all"
                yield line(StyledText(text, DIM))
                return
            yield from self._group(group)

    def _equal(self, change: EventChange, *, before: bool, after: bool) -> Iterator[Line]:
        """Yield the first equal events after a change and the last ones before the next."""
        if change.part:
            yield self._row(change, change.left, change.right)
            return
        pairs = list(zip(change.left, change.right, strict=True))
        head = pairs[:CONTEXT] if before else []
        tail = pairs[len(head) :][-CONTEXT:] if after else []
        hidden = len(pairs) - len(head) - len(tail)
        yield from (self._row(change, (i,), (j,)) for i, j in head)
        if hidden:
            yield line(StyledText(f"  ... {count(hidden, 'equal event')}", DIM))
        yield from (self._row(change, (i,), (j,)) for i, j in tail)

    def _group(self, group: Sequence[EventChange]) -> Iterator[Line]:
        """Yield neighbours with the same change: the first ones, and a count."""
        shown: tuple[JsonDifference, ...] = ()
        for change in group[:_MOST_EVENTS]:
            yield from self._change(change, shown)
            shown = change.differences
        more = len(group) - _MOST_EVENTS
        if more > 0:
            text = f"  ... {count(more, 'more event')} {group[0].kind} in the same way"
            yield line(StyledText(text, _STYLES[group[0].kind]))

    def _change(self, change: EventChange, shown: Sequence[JsonDifference] = ()) -> Iterator[Line]:
        """Yield a change, with its differences unless the previous change had the same."""
        kind, left, right = change.kind, change.left, change.right
        if kind in (ChangeKind.DROPPED, ChangeKind.INSERTED) and not change.part:
            numbers = left or right
            for number in numbers[:_MOST_EVENTS]:
                yield self._row(change, (number,) if left else (), (number,) if right else ())
            more = len(numbers) - _MOST_EVENTS
            if more > 0:
                yield line(StyledText(f"  ... {count(more, 'more event')} {kind}", _STYLES[kind]))
            return
        yield self._row(change, left, right)
        if not change.part and (len(left) > 1 or len(right) > 1):
            yield from self._pieces(kind, left, right)
        for difference in change.differences[:_MOST_DIFFERENCES]:
            if difference not in shown:
                yield from _difference(difference, 2 * self._digits + 8, self._width)

    def _pieces(
        self, kind: ChangeKind, left: Sequence[int], right: Sequence[int]
    ) -> Iterator[Line]:
        """Yield the first events of each side of a merge or split."""
        for mark, numbers, news_ in (("-", left, self._news[0]), ("+", right, self._news[1])):
            for number in numbers[:3]:
                text = f"{' ' * (2 * self._digits + 6)}{mark} {news_.get(number, '')}"
                yield cropped(line(StyledText(text, _STYLES[kind])), self._width)
            if len(numbers) > 3:  # noqa: PLR2004 - as many as are shown
                text = f"{' ' * (2 * self._digits + 6)}{mark} ... {len(numbers) - 3} more"
                yield line(StyledText(text, DIM))

    def _row(self, change: EventChange, left: Sequence[int], right: Sequence[int]) -> Line:
        kind = change.kind
        mark, style = _MARKS.get(kind, "~"), _STYLES[kind]
        here, there = f"{_range(left):>{self._digits}}", f"{_range(right):>{self._digits}}"
        prefix = "" if kind is ChangeKind.EQUAL else f"{kind}: "
        what = change.part
        if not what and len(left) <= 1 and len(right) <= 1:
            what = self._news[0].get(left[0], "") if left else self._news[1].get(right[0], "")
        whole = line(
            StyledText(f"{mark} {here} {there}  ", style), StyledText(f"{prefix}{what}", style)
        )
        return cropped(whole, self._width)


def _by_number(side: Analysis) -> Mapping[int, str]:
    numbers = (event.number for event in side.stream.events)
    return dict(zip(numbers, (excerpt(each) for each in news(side)), strict=True))


def _untold(change: EventChange, told: Collection[JsonDifference]) -> EventChange:
    """Return a change without the differences that are shown once for all events."""
    if change.kind is not ChangeKind.ALTERED:
        return change
    rest = tuple(each for each in change.differences if each not in told)
    return replace(change, differences=rest)


def _sort_of(change: EventChange) -> tuple[object, ...]:
    """Return a key that is equal for neighbours with the same change at the same paths."""
    if change.kind is ChangeKind.ALTERED:
        return (change.kind, *(difference.path for difference in change.differences))
    if change.kind is ChangeKind.EQUAL or not change.differences:
        return (change.kind, change.left if change.kind is not ChangeKind.EQUAL else ())
    return (change.kind, *(difference.path for difference in change.differences))


# `diff --format json`. Schema: docs/diff.schema.json.
#
# The keys are a contract: new ones may be added, none is renamed.


def diff_json(hops: Sequence[ComparedSides], damaged: int | None) -> str:
    """Return all hops in order.

    Args:
        hops: each from one side to the next.
        damaged: the place of the first that damaged a call.
    """
    return document(
        equal=all(hop.comparison.equal for hop in hops),
        damaged=damaged,
        hops=[_json_hop(hop) for hop in hops],
    )


def _json_hop(hop: ComparedSides) -> dict[str, object]:
    comparison: Comparison = hop.comparison
    return {
        "left": _json_side(hop.left, comparison.left),
        "right": _json_side(hop.right, comparison.right),
        "equal": comparison.equal,
        "compared": "events" if comparison.by_event else "content",
        "calls": [_call_change(call) for call in comparison.calls],
        "reply": _differences(comparison.reply),
        "framing": [_json_framed(framed) for framed in comparison.framing],
        "ignored": [{"path": path, "events": number} for path, number in comparison.volatile],
        "changes": [_change(change) for change in comparison.changes],
        "context": [
            {"part": each.part, **_json_difference(each.difference)} for each in comparison.context
        ],
    }


def _json_side(name: str, side: Analysis) -> dict[str, object]:
    return {
        "name": name,
        "exchange": side.exchange.number,
        "id": side.exchange.id,
        "dialect": side.reply.dialect,
        "events": len(side.stream.events),
    }


def _call_change(call: CallChange) -> dict[str, object]:
    return {
        "damage": call.damage,
        "choice": call.choice,
        "left": _json_call(call.left),
        "right": _json_call(call.right),
        "differences": _differences(call.differences),
        "edits": _edits(call),
        "cause": None if call.cause is None else _change(call.cause),
    }


def _edits(call: CallChange) -> list[dict[str, object]] | None:
    """Return the steps from the arguments of one side to the other's; None: one side lacks it."""
    if call.left is None or call.right is None:
        return None
    texts = call.left.arguments, call.right.arguments
    return [
        {"op": each.op, "left": list(each.delivered), "right": list(each.sent)}
        for each in edits(*map(without_secrets, texts))  # as they are shown
    ]


def _json_call(call: ToolCall | None) -> dict[str, object] | None:
    if call is None:
        return None
    return {
        "index": call.index,
        "id": call.id,
        "name": call.name,
        "kind": call.kind,
        "arguments": call.arguments,
        "status": call.status,
    }


def _change(change: EventChange) -> dict[str, object]:
    return {
        "kind": change.kind,
        "left": list(change.left),
        "right": list(change.right),
        "part": change.part or None,
        "differences": _differences(change.differences),
    }


def _differences(differences: Iterable[JsonDifference]) -> list[dict[str, str]]:
    return [_json_difference(each) for each in differences]


def _json_difference(difference: JsonDifference) -> dict[str, str]:
    return {
        "path": difference.path,
        "left": difference.recorded,
        "right": difference.received,
    }


def _json_framed(framed: FramingDifference) -> dict[str, object]:
    return {
        "what": framed.what,
        "events": None if framed.event is None else framed.count,
        "left": framed.left,
        "right": framed.right,
        "first": None if framed.event is None else list(framed.event),
    }
