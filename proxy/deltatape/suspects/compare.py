"""Compares a client's calls with those that an application repeats.

Order, name, id, and arguments as JSON values, as the rules over conversations compare them. What
never came cannot be repeated: an id where the wire had none is the application's own.
"""

from collections.abc import Sequence
from functools import lru_cache

from deltatape.model.request_summary import RepeatedCall
from deltatape.wire.json_value import canonical, parse

Ids = frozenset[str | None]
"""The ids that calls have on the wire; empty in dialects without."""
NO_IDS: Ids = frozenset()
_SHORT = 60
_WHOLE = 4
"""What two equal calls score."""


def equal(made: Sequence[RepeatedCall], heard: Sequence[RepeatedCall], ids: Ids = NO_IDS) -> bool:
    """Check whether an application with the calls `made` would repeat `heard`.

    Args:
        made: a client's calls.
        heard: the application's.
        ids: on the wire.
    """
    return len(made) == len(heard) and all(
        _likeness(one, other, ids) == _WHOLE for one, other in zip(made, heard, strict=True)
    )


def likeness(made: Sequence[RepeatedCall], heard: Sequence[RepeatedCall], ids: Ids) -> float:
    """Rate how much of `heard` is in `made`, from 0 to 1, by position."""
    if not made or not heard:
        return float(len(made) == len(heard))
    pairs = zip(made, heard, strict=False)
    score = sum(_likeness(one, other, ids) for one, other in pairs)
    return score / (_WHOLE * max(len(made), len(heard)))


def _likeness(one: RepeatedCall, other: RepeatedCall, ids: Ids) -> int:
    # Without an id of its own an application makes one up, but none that the wire has.
    same_id = one.id == other.id if one.id and (other.id or ids) else other.id not in ids
    same_name = (one.name or "") == (other.name or "")
    alike = same_arguments(one.arguments, other.arguments)
    return same_id + same_name + 2 * alike


def same_arguments(made: str, heard: str) -> bool:
    """Check whether two texts are equal or the same JSON; no text equals `{}`.

    Arguments that are encoded twice may be repeated as what is in them.
    """
    if made == heard:
        return True
    mine = _canonical(made)
    if mine is not None and mine.startswith('"'):
        return mine == _canonical(heard) or _canonical(str(parse(made).value)) == _canonical(heard)
    return mine is not None and mine == _canonical(heard)


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str | None:
    return canonical(text.strip() or "{}")


def difference(wire: Sequence[RepeatedCall], made: Sequence[RepeatedCall]) -> str:
    """Describe the first difference between the stream's calls and a client's, as a clause."""
    if len(wire) != len(made):
        calls = "call" if len(wire) == 1 else f"{len(wire)} calls"
        return f"of the {calls} in the stream it makes {len(made) or 'none'}"
    for place, (one, other) in enumerate(zip(wire, made, strict=True)):
        found = _one_difference(one, other)
        if found:
            return f"call {place} {found}"
    return "the calls come out right"


def _one_difference(one: RepeatedCall, other: RepeatedCall) -> str:
    if (one.name or "") != (other.name or ""):
        return f"gets {_what('name', other.name)} instead of {_shown(one.name)}"
    if not same_arguments(one.arguments, other.arguments):
        got = _what("arguments", other.arguments)
        return f"gets {got} instead of {_shown(one.arguments)}"
    if one.id and one.id != other.id:
        return f"gets {_what('id', other.id)} instead of {_shown(one.id)}"
    return ""


def _what(kind: str, text: str | None) -> str:
    return f"the {kind} {_shown(text)}" if text else f"no {kind}"


def _shown(text: str | None) -> str:
    if not text:
        return "nothing"
    return text if len(text) <= _SHORT else text[:_SHORT] + "..."
