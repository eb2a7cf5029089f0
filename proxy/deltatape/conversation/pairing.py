"""Which delivered call a repeated call stands for.

Ids decide where both sides have them; then equality, then the name, and only between equally long
rests the order. A call that nothing stands for is lost, unless the request repeats it further on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from deltatape.model.asked import RepeatedCall
from deltatape.model.digest import Pair, SaidCall
from deltatape.rules.repeated import first_difference, is_derived, same_id, same_name

_Test = Callable[[SaidCall, RepeatedCall], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Delivered calls in pairs with what stands for them, and what is left on both sides."""

    pairs: tuple[Pair, ...]
    lost: tuple[SaidCall, ...]
    extra: tuple[RepeatedCall, ...]

    @property
    def identical(self) -> bool:
        """Whether the application repeats exactly the calls that were delivered."""
        return not (self.lost or self.extra) and all(
            _is_same(pair.said, pair.heard) and same_id(pair.said, pair.heard)
            for pair in self.pairs
        )


def pair_calls(
    said: Sequence[SaidCall], heard: Sequence[RepeatedCall], further: Sequence[RepeatedCall]
) -> Pairing:
    """Pairs the calls of a reply with those of the message that repeats it.

    Args:
        said: the delivered calls.
        heard: the calls of the message.
        further: calls of later messages of the same request: some applications repeat one reply
            as several messages. They only keep a call from being lost.
    """
    left, open_calls = list(said), list(heard)
    pairs = _take_named(left, open_calls)
    elsewhere = list(further)
    _take_named(left, elsewhere)
    pairs += _take(left, open_calls, _is_same)
    _take(left, elsewhere, _is_same)
    pairs += _take(left, open_calls, _is_named)
    if len(left) == len(open_calls):
        pairs += _take(left, open_calls, _could_be)
    pairs.sort(key=lambda pair: pair.said.index)
    return Pairing(pairs=tuple(pairs), lost=tuple(left), extra=tuple(open_calls))


def _take_named(said: list[SaidCall], heard: list[RepeatedCall]) -> list[Pair]:
    """As `_take`, by id: most calls go this way, and a reply may have thousands."""
    by_id: dict[str, list[RepeatedCall]] = {}
    for each in reversed(heard):
        if each.id is not None:
            by_id.setdefault(each.id, []).append(each)
    pairs = []
    for call in said:
        same = next((by_id[each] for each in call.ids if by_id.get(each)), None)
        if same:
            pairs.append(Pair(said=call, heard=same.pop()))
    taken = {id(each) for pair in pairs for each in (pair.said, pair.heard)}
    said[:] = [each for each in said if id(each) not in taken]
    heard[:] = [each for each in heard if id(each) not in taken]
    return pairs


def _take(said: list[SaidCall], heard: list[RepeatedCall], test: _Test) -> list[Pair]:
    """Moves what passes `test` out of both lists, each call at most once, in order."""
    pairs = []
    for call in tuple(said):
        match = next((each for each in heard if test(call, each)), None)
        if match is None:
            continue
        said.remove(call)
        heard.remove(match)
        pairs.append(Pair(said=call, heard=match))
    return pairs


def _is_named(said: SaidCall, heard: RepeatedCall) -> bool:
    return said.name is not None and said.name == heard.name


def _could_be(said: SaidCall, heard: RepeatedCall) -> bool:
    """Whether a spoiled call may stand for this one: not if id and name are another call's."""
    name, other = said.name or "", heard.name or ""
    return not heard.id or is_derived(said, heard) or name in other or other in name


def _is_same(said: SaidCall, heard: RepeatedCall) -> bool:
    return same_name(said, heard) and first_difference(said, heard) is None
