"""Compare the content of two replies: texts, calls, the end.

Calls are compared in all dialects (`call_changes`). Between different dialects, as of a gateway
that translates, texts and endings are compared in the same way (`content_changes`): neither the
number of events nor their JSON has a meaning there. The pieces of each call, of text, reasoning and
refusal are joined; a difference is reported with the events in which it begins.

Reasoning, which many translations drop on purpose, is compared only where both sides have some.
Finish reasons are compared by their meaning, and only where both sides have one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from deltatape.compare.comparable_events import is_deep
from deltatape.compare.values import CallChange, CallDamage, ChangeKind, EventChange
from deltatape.match.difference import JsonDifference, compare
from deltatape.model.reply import NOT_OURS, CallKind, CallStatus, Channel, Choice, Reply, ToolCall
from deltatape.rules.finish import FinishMeaning, finish_of
from deltatape.wire.json_value import parse

_FINISH = "finish"


@dataclass(frozen=True, slots=True)
class _JoinedText:
    """A text, and the events of its fragments."""

    text: str
    pieces: tuple[tuple[int, int], ...]
    """Where each piece ends in the text, and the event that brought it."""

    def event_at(self, offset: int) -> tuple[int, ...]:
        """Return the event that brought this character; past the end, the last event."""
        for end, event in self.pieces:
            if offset < end:
                return (event,)
        return (self.pieces[-1][1],) if self.pieces else ()


def content_changes(left: Reply, right: Reply) -> tuple[EventChange, ...]:
    """Return the changes of the left side's content; by choice: text, calls, the end."""
    found: list[EventChange] = []
    for _, one, other in choices_of(left, right):
        for channel in Channel:
            here, there = _text_of_channel(one, channel), _text_of_channel(other, channel)
            if channel is Channel.TEXT or (here.text and there.text):
                found.append(_text_change(channel.value, here, there))
        for ours, theirs in pairs_of(calls_of(one), calls_of(other)):
            found += _calls(ours, theirs)
        found += _ends(one, other)
    return tuple(found)


def _text_of_channel(choice: Choice | None, channel: Channel) -> _JoinedText:
    pieces = [piece for piece in choice.pieces if piece.channel is channel] if choice else []
    return _joined_text([(piece.text, piece.event) for piece in pieces])


def _arguments(call: ToolCall) -> _JoinedText:
    return _joined_text([(piece.text, piece.event) for piece in call.fragments])


def _joined_text(pieces: Sequence[tuple[str, int]]) -> _JoinedText:
    ends: list[tuple[int, int]] = []
    at = 0
    for text, event in pieces:
        at += len(text)
        ends.append((at, event))
    return _JoinedText("".join(text for text, _ in pieces), tuple(ends))


def _first_difference(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _text_change(name: str, one: _JoinedText, other: _JoinedText) -> EventChange:
    """Return the change of a text, with the events of the first difference, or all."""
    if one.text == other.text:
        return EventChange(
            kind=ChangeKind.EQUAL, left=_events(one), right=_events(other), part=name
        )
    at = _first_difference(one.text, other.text)
    kind = ChangeKind.ALTERED
    if not one.text or not other.text:
        kind = ChangeKind.INSERTED if other.text else ChangeKind.DROPPED
    return EventChange(
        kind=kind,
        left=one.event_at(at),
        right=other.event_at(at),
        differences=named(name, one.text, other.text),
        part=name,
    )


def _events(text: _JoinedText) -> tuple[int, ...]:
    return tuple(dict.fromkeys(event for _, event in text.pieces))


def call_part(call: ToolCall) -> str:
    """Return the name of a call as a part of the content."""
    return f"{'server ' if call.kind in NOT_OURS else ''}call {call.index}"


def arguments_part(call: ToolCall) -> str:
    """Return the name of a call's arguments as a part of the content."""
    return f"{call_part(call)} arguments"


def _calls(one: ToolCall | None, other: ToolCall | None) -> Iterator[EventChange]:
    """Yield the changes of a call: of its identity, then of its arguments."""
    if one is not None and other is not None:
        found = identity_differences(one, other, alike=False)
        yield EventChange(
            kind=ChangeKind.ALTERED if found else ChangeKind.EQUAL,
            left=(one.start_event,),
            right=(other.start_event,),
            differences=found,
            part=call_part(one),
        )
        yield _arguments_change(one, other)
        return
    call = one or other
    assert call is not None
    events = tuple(dict.fromkeys((call.start_event, *_events(_arguments(call)))))
    yield EventChange(
        kind=ChangeKind.INSERTED if one is None else ChangeKind.DROPPED,
        left=() if one is None else events,
        right=events if one is None else (),
        part=call_part(call),
    )


def _arguments_change(one: ToolCall, other: ToolCall) -> EventChange:
    """Return the change of arguments. JSON spelling is ignored: some dialects send objects."""
    ours, theirs = _arguments(one), _arguments(other)
    differences = argument_differences(one, other)
    at = _first_difference(ours.text, theirs.text)
    return EventChange(
        kind=ChangeKind.ALTERED if differences else ChangeKind.EQUAL,
        left=ours.event_at(at) if differences else _events(ours),
        right=theirs.event_at(at) if differences else _events(theirs),
        differences=differences,
        part=arguments_part(one),
    )


def _ends(one: Choice | None, other: Choice | None) -> Iterator[EventChange]:
    """Yield the change of a finish reason's meaning, if both sides name one."""
    if one is None or other is None or not one.finishes or not other.finishes:
        return
    found = named(_FINISH, _meaning(one), _meaning(other))
    yield EventChange(
        kind=ChangeKind.ALTERED if found else ChangeKind.EQUAL,
        left=(one.finishes[-1][0],),
        right=(other.finishes[-1][0],),
        differences=found,
        part=_FINISH,
    )


def _meaning(choice: Choice) -> str:
    """Return the meaning of a finish reason: "stop" for one of calls, which some dialects lack."""
    meaning = finish_of(choice)
    if meaning is FinishMeaning.TOOLS and choice.tool_calls:
        meaning = FinishMeaning.STOP
    return str(choice.finish_reason_raw) if meaning is FinishMeaning.OTHER else meaning.name.lower()


# Pair the calls of two replies, and describe how each call changed.
#
# Ids decide where both sides have them; then equality, then the name, then the order, if equally
# many calls are left on both sides. A call without an id on the left and with one on the right can
# be the same call: gateways add ids when they translate a dialect without them.

_ARGUMENTS = "(arguments)"
_NAME = "name"
_PARTS: Mapping[str, Callable[[Choice], str | None]] = {
    "text": lambda choice: choice.text,
    "reasoning": lambda choice: choice.reasoning,
    "refusal": lambda choice: choice.refusal,
    "finish reason": lambda choice: choice.finish_reason_raw,
}
CallPair: TypeAlias = tuple[ToolCall | None, ToolCall | None]
Cause: TypeAlias = Callable[[CallDamage, ToolCall | None, ToolCall | None], EventChange | None]
"""Finds the changed event that explains a damage to a call, given the left and the right call."""
_Test: TypeAlias = Callable[[ToolCall, ToolCall], bool]


def call_changes(left: Reply, right: Reply, cause: Cause, *, alike: bool) -> tuple[CallChange, ...]:
    """Return the changes of calls, in the order of the left side, then the added ones.

    Args:
        left: one reply.
        right: the other.
        cause: finds the change of events behind a change of a call.
        alike: whether both are of one dialect; else another id is no damage.
    """
    found: list[CallChange] = []
    for index, one, other in choices_of(left, right):
        shared = _shared_indices(calls_of(one), calls_of(other)) if alike else {}
        for pair in pairs_of(calls_of(one), calls_of(other)):
            found += (
                CallChange(
                    damage=damage,
                    choice=index,
                    left=pair[0],
                    right=pair[1],
                    differences=differences,
                    cause=cause(damage, *pair),
                )
                for damage, differences in _damages(*pair, shared, alike=alike)
            )
    return tuple(found)


def choices_of(left: Reply, right: Reply) -> Iterator[tuple[int, Choice | None, Choice | None]]:
    """Yield the choices of both replies by their index."""
    ours = {choice.index: choice for choice in left.choices}
    theirs = {choice.index: choice for choice in right.choices}
    for index in sorted({*ours, *theirs}):
        yield index, ours.get(index), theirs.get(index)


def calls_of(choice: Choice | None) -> tuple[ToolCall, ...]:
    """Return the calls of a choice that are calls on the wire."""
    return () if choice is None else (*choice.tool_calls, *choice.server_calls)


def pairs_of(left: Sequence[ToolCall], right: Sequence[ToolCall]) -> list[CallPair]:
    """Pair the calls of both sides, in the order of the left; then the added ones."""
    ours, theirs = list(left), list(right)
    partner: dict[int, ToolCall] = {}
    tests: tuple[_Test, ...] = (
        lambda one, other: not {*one.ids}.isdisjoint(other.ids),
        lambda one, other: one.name == other.name and not argument_differences(one, other),
        lambda one, other: one.name is not None and one.name == other.name,
    )
    for test in tests:
        _pair(ours, theirs, test, partner)
    if len(ours) == len(theirs):
        _pair(ours, theirs, lambda _, __: True, partner)
    return [*((call, partner.get(id(call))) for call in left), *((None, call) for call in theirs)]


def _pair(
    ours: list[ToolCall], theirs: list[ToolCall], test: _Test, partner: dict[int, ToolCall]
) -> None:
    """Move pairs that pass `test` from both lists into `partner`, in order."""
    for call in tuple(ours):
        at = next((at for at, other in enumerate(theirs) if test(call, other)), None)
        if at is not None:
            partner[id(call)] = theirs.pop(at)
            ours[:] = [each for each in ours if each is not call]


def _shared_indices(left: Sequence[ToolCall], right: Sequence[ToolCall]) -> Mapping[int, ToolCall]:
    """Map calls of the right side to an earlier one that has the same index.

    Only where no calls of the left side share one. Clients that go by the index make one call of
    two.
    """
    if len({call.wire_index for call in left}) < len(left):
        return {}
    first: dict[int, ToolCall] = {}
    found: dict[int, ToolCall] = {}
    for call in right:
        if call.wire_index is not None:
            earlier = first.setdefault(call.wire_index, call)
            if earlier is not call:
                found[id(call)] = earlier
    return found


def _damages(
    one: ToolCall | None,
    other: ToolCall | None,
    shared: Mapping[int, ToolCall],
    *,
    alike: bool,
) -> Iterator[tuple[CallDamage, tuple[JsonDifference, ...]]]:
    if one is None:
        yield CallDamage.ADDED, ()
    elif other is None:
        yield CallDamage.LOST, ()
    else:
        identity = identity_differences(one, other, alike=alike)
        if not alike:
            # A gateway that translates between dialects makes ids in the other dialect's style.
            identity = tuple(each for each in identity if each.path == _NAME)
        earlier = shared.get(id(other))
        if earlier is not None:
            now = f"{other.wire_index}, as call {earlier.index}"
            identity += (JsonDifference(path="index", recorded=str(one.wire_index), received=now),)
        if identity:
            yield CallDamage.IDENTITY, identity
        arguments = argument_differences(one, other)
        if arguments:
            yield CallDamage.ARGUMENTS, arguments


def identity_differences(
    one: ToolCall, other: ToolCall, *, alike: bool
) -> tuple[JsonDifference, ...]:
    """Return how names and ids of two calls differ. A new id in place of none is no difference.

    Args:
        one: a call.
        other: the same call on the other side.
        alike: whether both are of one dialect; else an id may be missing: some have none.
    """
    found = named(_NAME, one.name, other.name)
    if one.ids and {*one.ids}.isdisjoint(other.ids) and (alike or other.ids):
        found += named("id", one.id, other.id)
    return found


def argument_differences(one: ToolCall, other: ToolCall) -> tuple[JsonDifference, ...]:
    """Return how the arguments of two calls differ; () if they mean the same.

    They are compared as values if both are JSON (1 equals 1.0), else as text. Empty arguments equal
    `{}` only if the tool is known to need none: otherwise somebody put an empty object in the place
    of lost arguments.
    """
    if (
        one.arguments == other.arguments
        or _are_both_empty(one, other)
        or _are_both_empty(other, one)
    ):
        return ()
    values = [parse(call.arguments) for call in (one, other)]
    is_text = CallKind.CUSTOM in (one.kind, other.kind)
    if is_text or any(each.error is not None or is_deep(each.value) for each in values):
        return named(_ARGUMENTS, one.arguments, other.arguments)
    return compare(_plain(values[0].value), _plain(values[1].value))


def _are_both_empty(one: ToolCall, other: ToolCall) -> bool:
    """Return whether one call needs no arguments and has none, and the other has `{}`."""
    return one.status is CallStatus.EMPTY_OK and parse(other.arguments).value == {}


def _plain(value: object) -> object:
    """Return `value` with whole numbers as integers, however they were written."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def named(path: str, one: object, other: object) -> tuple[JsonDifference, ...]:
    """Return how two values differ, under their own path; () when they are equal."""
    return tuple(
        JsonDifference(path=path, recorded=each.recorded, received=each.received)
        for each in compare(one, other)
    )


def reply_differences(left: Reply, right: Reply, *, alike: bool) -> tuple[JsonDifference, ...]:
    """Return how the rebuilt replies differ, without their calls.

    Args:
        left: one reply.
        right: the other.
        alike: whether both are of one dialect; else only what every dialect can say.
    """
    found: tuple[JsonDifference, ...] = ()
    for index, one, other in choices_of(left, right) if alike else ():
        front = f"choice {index} " if max(len(left.choices), len(right.choices)) > 1 else ""
        for part, of in _PARTS.items():
            texts = [of(choice) if choice else None for choice in (one, other)]
            found += named(f"{front}{part}", *texts)
    found += named("error", left.error, right.error)
    return found + named("ended as it should", left.terminated, right.terminated)
