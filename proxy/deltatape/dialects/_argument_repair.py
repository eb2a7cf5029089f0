"""Repairs arguments that gateways are known to damage; applied once, at the end of a call.

Rule: if the plain concatenation is one JSON value, nothing is mended, whatever it looks like. Else
the known ways in which good arguments are spoilt are undone, each recognised by its exact trace on
the wire: an empty object leaked in front (T017), the whole value sent again (T014), pieces that
each repeat what came before (T014). Partial JSON is never completed.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from deltatape.wire.json_value import canonical, join_pairs, parse, values_in

CUMULATIVE_MINIMUM = 3
"""Characters that a slot must hold before a piece that starts with them counts as repeating it."""
_CHAIN = 3
"""Pieces that, each the beginning of the next, count as cumulative however short they are."""


class RepairedArguments(NamedTuple):
    """Arguments after repair, with the codes and details of the repairs."""

    text: str
    repairs: tuple[tuple[str, str], ...]
    is_object: bool = False
    """Whether they are known to be one whole object: parsing them once is enough."""


def mend(pieces: Sequence[str]) -> RepairedArguments:
    """Join `pieces` (none empty) and repair known damage."""
    plain = join_pairs("".join(pieces))
    parsed = parse(plain)
    if parsed.error is None:
        return RepairedArguments(plain, (), isinstance(parsed.value, dict))
    rest = _without_empty_objects(pieces)
    repairs: tuple[tuple[str, str], ...] = ()
    if len(rest) < len(pieces):
        repairs = (("T017", "an empty object {} precedes the arguments"),)
        plain = join_pairs("".join(rest))
        if _whole(plain):
            return RepairedArguments(plain, repairs)
    once = _said_again(plain)
    if once is not None:
        return RepairedArguments(once, (*repairs, ("T014", "the whole arguments were sent again")))
    grown = _cumulative(rest)
    if grown is not None:
        detail = "each piece of the arguments repeats the pieces before it"
        return RepairedArguments(grown, (*repairs, ("T014", detail)))
    return RepairedArguments(plain, repairs)


def _whole(text: str) -> bool:
    return parse(text).error is None


def _without_empty_objects(pieces: Sequence[str]) -> Sequence[str]:
    """Drop leading `{}` pieces that another object follows."""
    leaked = False
    for first, piece in enumerate(pieces):
        bare = "".join(piece.split())
        if bare not in ("", "{}") or first == len(pieces) - 1:
            return pieces[first:] if leaked and bare.startswith("{") else pieces
        leaked = leaked or bare == "{}"
    return pieces


def _said_again(text: str) -> str | None:
    """Return the value that `text` repeats; None if it is not a repetition."""
    values = values_in(text)
    if values is None or len(values) <= 1:
        return None
    first = canonical(values[0])
    return values[0] if all(canonical(value) == first for value in values[1:]) else None


def _cumulative(pieces: Sequence[str]) -> str | None:
    """Return the last state of cumulative arguments; None if they are not cumulative."""
    chain = all(after.startswith(before) for before, after in pairwise(pieces))
    if chain and len(pieces) >= _CHAIN and _whole(join_pairs(pieces[-1])):
        return join_pairs(pieces[-1])
    so_far = ""
    grew = False
    for piece in pieces:
        if len(so_far) >= CUMULATIVE_MINIMUM and piece.startswith(so_far):
            grew = True
            so_far = piece
        else:
            so_far += piece
    so_far = join_pairs(so_far)
    return so_far if grew and _whole(so_far) else None
