"""Which call of one reply is which of another, and what became of it.

Ids decide where both sides have them; then equality, then the name, then the order where as many
are left on both sides. A call that the right side gave an id although it had none on the left is
the same call: dialects without ids are translated so.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from deltatape.compare.values import CallChange, Change, Damage
from deltatape.compare.volatile import is_deep
from deltatape.match.difference import Difference, compare
from deltatape.model.reply import CallKind, CallStatus, Choice, Reply, ToolCall
from deltatape.wire.json_value import parse

_ARGUMENTS = "(arguments)"
_NAME = "name"

_PARTS: Mapping[str, Callable[[Choice], str | None]] = {
    "text": lambda choice: choice.text,
    "reasoning": lambda choice: choice.reasoning,
    "refusal": lambda choice: choice.refusal,
    "finish reason": lambda choice: choice.finish_reason_raw,
}

CallPair: TypeAlias = tuple[ToolCall | None, ToolCall | None]
Cause: TypeAlias = Callable[[Damage, ToolCall | None, ToolCall | None], Change | None]
"""The first change of events behind a damage of a call, as the left and the right side have it."""
_Test: TypeAlias = Callable[[ToolCall, ToolCall], bool]


def call_changes(left: Reply, right: Reply, cause: Cause, *, alike: bool) -> tuple[CallChange, ...]:
    """What became of the calls, in the order of the left side, then those that were added.

    Args:
        left: one reply.
        right: the other.
        cause: finds the change of events behind a change of a call.
        alike: whether both are of one dialect; else another id is no damage.
    """
    found: list[CallChange] = []
    for index, one, other in choices_of(left, right):
        for pair in pairs_of(calls_of(one), calls_of(other)):
            found += (
                _change(index, pair, *damage, cause) for damage in _damages(*pair, alike=alike)
            )
    return tuple(found)


def choices_of(left: Reply, right: Reply) -> Iterator[tuple[int, Choice | None, Choice | None]]:
    """The choices of both replies by their index."""
    ours = {choice.index: choice for choice in left.choices}
    theirs = {choice.index: choice for choice in right.choices}
    for index in sorted({*ours, *theirs}):
        yield index, ours.get(index), theirs.get(index)


def calls_of(choice: Choice | None) -> tuple[ToolCall, ...]:
    """The calls of a choice that are calls on the wire."""
    return () if choice is None else (*choice.tool_calls, *choice.server_calls)


def pairs_of(left: Sequence[ToolCall], right: Sequence[ToolCall]) -> list[CallPair]:
    """The calls of both sides in pairs, in the order of the left; then those that were added."""
    ours, theirs = list(left), list(right)
    partner: dict[int, ToolCall] = {}
    for test in (_same_id, _same_call, _same_name):
        _pair(ours, theirs, test, partner)
    if len(ours) == len(theirs):
        _pair(ours, theirs, lambda _, __: True, partner)
    return [*((call, partner.get(id(call))) for call in left), *((None, call) for call in theirs)]


def _pair(
    ours: list[ToolCall], theirs: list[ToolCall], test: _Test, partner: dict[int, ToolCall]
) -> None:
    """Moves what passes `test` out of both lists into `partner`, in order."""
    for call in tuple(ours):
        at = next((at for at, other in enumerate(theirs) if test(call, other)), None)
        if at is not None:
            partner[id(call)] = theirs.pop(at)
            ours[:] = [each for each in ours if each is not call]


def _same_id(one: ToolCall, other: ToolCall) -> bool:
    return not {*one.ids}.isdisjoint(other.ids)


def _same_call(one: ToolCall, other: ToolCall) -> bool:
    return one.name == other.name and not argument_differences(one, other)


def _same_name(one: ToolCall, other: ToolCall) -> bool:
    return one.name is not None and one.name == other.name


def _damages(
    one: ToolCall | None, other: ToolCall | None, *, alike: bool
) -> Iterator[tuple[Damage, tuple[Difference, ...]]]:
    if one is None:
        yield Damage.ADDED, ()
    elif other is None:
        yield Damage.LOST, ()
    else:
        identity = identity_differences(one, other, alike=alike)
        if not alike:
            # Whoever translates between dialects makes ids of the other one's kind.
            identity = tuple(each for each in identity if each.path == _NAME)
        if identity:
            yield Damage.IDENTITY, identity
        arguments = argument_differences(one, other)
        if arguments:
            yield Damage.ARGUMENTS, arguments


def identity_differences(one: ToolCall, other: ToolCall, *, alike: bool) -> tuple[Difference, ...]:
    """Where names and ids of two calls differ. An id where there was none is no difference.

    Args:
        one: a call.
        other: the same call on the other side.
        alike: whether both are of one dialect; else an id may be missing: some have none.
    """
    found = named(_NAME, one.name, other.name)
    if one.ids and {*one.ids}.isdisjoint(other.ids) and (alike or other.ids):
        found += named("id", one.id, other.id)
    return found


def argument_differences(one: ToolCall, other: ToolCall) -> tuple[Difference, ...]:
    """Where the arguments of two calls differ; () if they mean the same.

    Compared as values where both are JSON, else as they are; 1 and 1.0 are the same number. No
    bytes are the same as `{}` only where the tool is known to need nothing: elsewhere somebody put
    an empty object in the place of arguments that got lost.
    """
    if one.arguments == other.arguments or _needless(one, other) or _needless(other, one):
        return ()
    values = [parse(call.arguments) for call in (one, other)]
    is_text = CallKind.CUSTOM in (one.kind, other.kind)
    if is_text or any(each.error is not None or is_deep(each.value) for each in values):
        return named(_ARGUMENTS, one.arguments, other.arguments)
    return compare(_plain(values[0].value), _plain(values[1].value))


def _needless(one: ToolCall, other: ToolCall) -> bool:
    """Whether one call has no arguments since it needs none, and the other an empty object."""
    return one.status is CallStatus.EMPTY_OK and parse(other.arguments).value == {}


def _plain(value: object) -> object:
    """`value` with whole numbers as such, however they were written."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def named(path: str, one: object, other: object) -> tuple[Difference, ...]:
    """Where two values differ, under a path of its own; () when they are equal."""
    return tuple(
        Difference(path=path, recorded=each.recorded, received=each.received)
        for each in compare(one, other)
    )


def _change(
    choice: int,
    pair: CallPair,
    damage: Damage,
    differences: tuple[Difference, ...],
    cause: Cause,
) -> CallChange:
    return CallChange(
        damage=damage,
        choice=choice,
        left=pair[0],
        right=pair[1],
        differences=differences,
        cause=cause(damage, *pair),
    )


def reply_differences(left: Reply, right: Reply, *, alike: bool) -> tuple[Difference, ...]:
    """Where the rebuilt replies differ, their calls aside.

    Args:
        left: one reply.
        right: the other.
        alike: whether both are of one dialect; else only what every dialect can say.
    """
    found: tuple[Difference, ...] = ()
    for index, one, other in choices_of(left, right) if alike else ():
        front = f"choice {index} " if max(len(left.choices), len(right.choices)) > 1 else ""
        for part, of in _PARTS.items():
            texts = [of(choice) if choice else None for choice in (one, other)]
            found += named(f"{front}{part}", *texts)
    found += named("error", left.error, right.error)
    return found + named("ended as it should", left.terminated, right.terminated)
