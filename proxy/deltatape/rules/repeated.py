"""Comparing a call that the wire delivered with the call that the application repeats."""

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise

from deltatape.model.asked import RepeatedCall
from deltatape.model.digest import SaidCall
from deltatape.model.reply import CallKind, CallStatus
from deltatape.rules.evidence import excerpt
from deltatape.rules.masked import same_but_masked
from deltatape.wire.json_value import parse

CLEAN = frozenset({CallStatus.COMPLETE, CallStatus.EMPTY_OK, CallStatus.EMPTY_SUSPECT})
"""Calls with which a correct client can do one thing only: repeat them as they are."""

_ABSENT = object()


def first_difference(said: SaidCall, heard: RepeatedCall) -> str | None:
    """The JSON path of the first difference of the arguments, None if they mean the same.

    Compared as values: spacing, order of keys and spelling of numbers do not matter, and no
    argument bytes are the same as `{}`. Free text, and text that is not JSON, is compared as it is.
    What somebody masked on one side is taken for what the other side has. See `same_but_masked`.
    """
    if said.arguments == heard.arguments:
        return None
    one, other = parse(said.arguments.strip() or "{}"), parse(heard.arguments.strip() or "{}")
    if said.kind is CallKind.CUSTOM or one.error or other.error:
        return None if same_but_masked(said.arguments, heard.arguments) else "$"
    return _difference(one.value, other.value)


def _difference(one: object, other: object) -> str | None:
    """Depth first without recursion: both values may be nested as deeply as the parser allows."""
    pending: list[tuple[str, object, object]] = [("$", one, other)]
    while pending:
        path, left, right = pending.pop()
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            keys = [*left, *(key for key in right if key not in left)]
            inner = [(_member(path, k), left.get(k, _ABSENT), right.get(k, _ABSENT)) for k in keys]
        elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
            both = enumerate(zip(left, right, strict=True))
            inner = [(f"{path}[{at}]", a, b) for at, (a, b) in both]
        elif _same_scalar(left, right):
            continue
        else:
            return path
        pending += reversed(inner)
    return None


def _member(path: str, key: str) -> str:
    return f"{path}.{excerpt(key, 40)}"


def _same_scalar(one: object, other: object) -> bool:
    """1 and 1.0 are the same number, 1 and true are not."""
    if isinstance(one, str) and isinstance(other, str):
        return one == other or same_but_masked(one, other)
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def is_related(said: SaidCall, heard: RepeatedCall, others: Sequence[SaidCall]) -> bool:
    """Whether the repeated arguments may have been made of the delivered ones.

    Arguments that have nothing in common with what came are another call's.
    """
    return first_difference(said, heard) is None or relation(said, heard, others) != ""


def relation(said: SaidCall, heard: RepeatedCall, others: Sequence[SaidCall]) -> str:
    """What the application's text is made of, as a clause; "" if nothing fits.

    It names the mistake: which fragments of which calls are in it, and which are not.
    """
    text, pieces = heard.arguments, [piece for piece in said.fragments if piece]
    if not text.strip():
        return "the app repeats no arguments at all"
    if text.strip() == "{}":
        return "the app repeats an empty object"
    for other in others:
        if other is not said and other.arguments and text == other.arguments:
            return f"these are the arguments of call {other.index}"
    for first, second in pairwise([*others]):
        if text in (first.arguments + second.arguments, second.arguments + first.arguments):
            return f"the arguments of call {first.index} and call {second.index} are glued together"
    return _of_fragments(text, said.arguments, pieces) or _of_several(text, others)


def _of_fragments(text: str, whole: str, pieces: list[str]) -> str:
    if text in pieces:
        return f"it is fragment {pieces.index(text) + 1} of {len(pieces)} alone"
    if whole and text == whole + whole:
        return "it is the arguments twice"
    taken = _taken(text, pieces)
    if taken is not None:
        missing = [str(at + 1) for at in range(len(pieces)) if at not in taken]
        return f"fragment {', '.join(missing[:8])} of {len(pieces)} is missing"
    if whole.startswith(text):
        return f"it is the first {len(text)} of {len(whole)} characters"
    if whole.endswith(text):
        return f"it is the last {len(text)} of {len(whole)} characters"
    return ""


def _of_several(text: str, calls: Sequence[SaidCall]) -> str:
    """Whether `text` is made of fragments of several calls: they were joined as they came."""
    left = {call.index: deque(filter(None, call.fragments)) for call in calls}
    used: set[int] = set()
    at = 0
    while at < len(text):
        fits = [
            index for index, pieces in left.items() if pieces and text.startswith(pieces[0], at)
        ]
        if not fits:
            return ""
        longest = max(fits, key=lambda index: len(left[index][0]))
        used.add(longest)
        at += len(left[longest].popleft())
    names = " and ".join(f"call {index}" for index in sorted(used))
    return f"the fragments of {names} are mixed, in the order in which they came"


def _taken(text: str, pieces: list[str]) -> set[int] | None:
    """The fragments whose concatenation `text` is, in order and not all; None if there are none."""
    at, taken = 0, set()
    for number, piece in enumerate(pieces):
        if text.startswith(piece, at):
            at += len(piece)
            taken.add(number)
    return taken if at == len(text) and len(taken) < len(pieces) else None


def same_name(said: SaidCall, heard: RepeatedCall) -> bool:
    """Whether the application repeats the name; a name that never came cannot be repeated."""
    return not said.name or said.name == heard.name


def same_id(said: SaidCall, heard: RepeatedCall) -> bool:
    """Whether the application repeats an id of the call; a missing one it has to invent."""
    return not said.ids or heard.id in said.ids


def is_derived(said: SaidCall, heard: RepeatedCall) -> bool:
    """Whether the repeated id is made of the delivered one: joined, cut, never just another."""
    mine = heard.id or ""
    return any(_is_part(each, mine) or _is_part(mine, each) for each in said.ids)


def _is_part(part: str, whole: str) -> bool:
    """Whether `whole` has `part` in it, and not another number: `c10` is not made of `c1`."""
    at = whole.find(part) if part else -1
    if at < 0 or part == whole:
        return at >= 0
    before, after = whole[at - 1 : at], whole[at + len(part) : at + len(part) + 1]
    goes_on = part[-1].isdigit() and after.isdigit()
    return not goes_on and not (part[0].isdigit() and before.isdigit())
