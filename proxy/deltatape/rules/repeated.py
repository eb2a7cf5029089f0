"""Comparison of a delivered call with the call that the application repeats.

First: do the arguments mean the same? If not: can the repeated text be derived from the delivered
fragments (some lost or doubled, those of two calls mixed, the text cut, or encoded or decoded
wrongly)? Only such a relation shows a mistake in the code that joins fragments. Everything else may
have been done on purpose: see `edits`.
"""

import ast
import enum
import json
import re
from bisect import insort
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from deltatape.model.digest import DeliveredCall
from deltatape.model.reply import CallKind, CallStatus
from deltatape.model.request_summary import RepeatedCall
from deltatape.printable import excerpt
from deltatape.rules.pattern_set import PatternSet
from deltatape.rules.text_change import splits_letters
from deltatape.wire.json_value import parse

CLEAN = frozenset({CallStatus.COMPLETE, CallStatus.EMPTY_OK, CallStatus.EMPTY_SUSPECT})
"""Statuses of calls that a correct client can only repeat unchanged."""
MAX_DIFFERENCES = 32
"""Most differences that count as an edit of a few values; comparing stops there."""
_MAX_LITERAL = 10_000
"""Longest Python literal to parse, in characters."""


def leaves(arguments: str) -> Iterator[str]:
    """Yield the strings and numbers in arguments, as text."""
    pending = [parse(arguments).value]
    while pending:
        one = pending.pop()
        if isinstance(one, dict):
            pending += one.values()
        elif isinstance(one, list):
            pending += one
        elif isinstance(one, str):
            yield one
        elif isinstance(one, int | float) and not isinstance(one, bool):
            yield str(one)


class _Absent(enum.Enum):
    ABSENT = "absent"


ABSENT = _Absent.ABSENT
"""Stands for a member that one side does not have."""


class Difference(NamedTuple):
    """A value that differs: JSON path, delivered and repeated value; either may be ABSENT.

    `keys` are the steps of the path: member names and array places.
    """

    keys: tuple[str | int, ...]
    delivered: object
    repeated: object

    @property
    def path(self) -> str:
        """Return the JSON path: `$.city`, `$.days[1]`."""
        steps = (
            f"[{key}]" if isinstance(key, int) else f".{excerpt(key, 40)}" for key in self.keys
        )
        return "$" + "".join(steps)


def differences(original: DeliveredCall, repetition: RepeatedCall) -> tuple[Difference, ...]:
    """Return up to `MAX_DIFFERENCES` differences of the arguments, in the delivered order.

    Compared as values: spacing, order of keys and spelling of numbers do not matter, and no
    argument bytes are the same as `{}`. Free text, and text that is not JSON, is compared as it is.
    Text that is masked on one side equals any text on the other. See `same_but_masked`.
    """
    if original.arguments == repetition.arguments:
        return ()
    one, other = (
        parse(original.arguments.strip() or "{}"),
        parse(repetition.arguments.strip() or "{}"),
    )
    if original.kind is CallKind.CUSTOM or one.error or other.error:
        if same_but_masked(original.arguments, repetition.arguments):
            return ()
        return (Difference((), original.arguments, repetition.arguments),)
    return tuple(_differences(one.value, other.value))


def first_difference(original: DeliveredCall, repetition: RepeatedCall) -> str | None:
    """Return the JSON path of the first difference of the arguments; None if they are equal."""
    found = differences(original, repetition)
    return found[0].path if found else None


def _differences(one: object, other: object) -> Iterator[Difference]:
    """Yield differences depth first, without recursion: values may be nested deeply."""
    pending = [Difference((), one, other)]
    left_over = MAX_DIFFERENCES
    while pending and left_over:
        found = pending.pop()
        keys, left, right = found
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            names = [*left, *(key for key in right if key not in left)]
            inner = [
                Difference((*keys, key), left.get(key, ABSENT), right.get(key, ABSENT))
                for key in names
            ]
        elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
            both = enumerate(zip(left, right, strict=True))
            inner = [Difference((*keys, at), a, b) for at, (a, b) in both]
        elif _same_scalar(left, right):
            continue
        else:
            left_over -= 1
            yield found
            continue
        pending += reversed(inner)


def _same_scalar(one: object, other: object) -> bool:
    """Compare scalars: 1 equals 1.0, but 1 does not equal true."""
    if isinstance(one, str) and isinstance(other, str):
        return one == other or same_but_masked(one, other)
    return isinstance(one, bool) == isinstance(other, bool) and one == other


class ArgumentsDamage(enum.Enum):
    """A kind of damage to the delivered text on its way into the application's request."""

    EMPTIED = "no arguments at all"
    EMPTY_OBJECT = "an empty object"
    OTHER_CALL = "the arguments of another call"
    LOST = "fragments are missing"
    ALONE = "one fragment alone"
    DOUBLED = "fragments come twice"
    MIXED = "fragments of several calls are joined"
    CUT = "a part of the text"
    TRIMMED = "white space is missing between fragments"
    GLUED = "words run together where fragments meet"
    ENCODED = "encoded once more"
    DECODED = "decoded wrongly"
    TORN = "without the characters that chunk boundaries split"


_APPEND = "append every fragment to the entry of its index; parse once, at the end"
_BY_INDEX = "keep one entry per index, not one for the current call; parse once, at the end"
_WITH_SPACES = "append fragments unchanged: a space at the end of one belongs to the text"
_INCREMENTALLY = "decode the whole stream with one incremental UTF-8 decoder, not each chunk"
_FIRST = "also take the arguments of the event that opens the call, and append all later ones"
HINTS: Mapping[ArgumentsDamage, str] = {
    ArgumentsDamage.EMPTIED: (
        "append every fragment after the event that opens the call; parse at the end"
    ),
    ArgumentsDamage.EMPTY_OBJECT: (
        "do not fall back to {} where parsing fails: parse once, at the end"
    ),
    ArgumentsDamage.OTHER_CALL: _BY_INDEX,
    ArgumentsDamage.LOST: _APPEND,
    ArgumentsDamage.ALONE: (
        "append fragments instead of replacing what is there; parse once, at the end"
    ),
    ArgumentsDamage.DOUBLED: (
        "append each fragment once: from the deltas or from the final event, not both"
    ),
    ArgumentsDamage.MIXED: _BY_INDEX,
    ArgumentsDamage.CUT: "parse when the call has ended, not before; append every fragment",
    ArgumentsDamage.TRIMMED: _WITH_SPACES,
    ArgumentsDamage.GLUED: _WITH_SPACES,
    ArgumentsDamage.ENCODED: "pass the arguments on unchanged: they are JSON text already",
    ArgumentsDamage.DECODED: _INCREMENTALLY,
    ArgumentsDamage.TORN: _INCREMENTALLY,
}
"""What to change in the client."""


class Relation(NamedTuple):
    """How the application's text derives from what was delivered; `clause` is for a message."""

    damage: ArgumentsDamage
    clause: str
    like_edit: bool = False
    """Whether an edit that takes out words, members or digits leaves the same text."""

    @property
    def hint(self) -> str:
        """Return what to change in the client."""
        is_first = self.damage is ArgumentsDamage.LOST and self.clause.startswith("fragment 1 of")
        return _FIRST if is_first else HINTS[self.damage]


class SiblingCalls:
    """The calls of a reply, indexed by the texts that an application may make of them.

    A reply may have thousands, and each of them is compared with all others.
    """

    def __init__(self, calls: Sequence[DeliveredCall]) -> None:
        self.calls = calls

    def with_arguments(self, text: str, but: DeliveredCall) -> DeliveredCall | None:
        """Return the first call other than `but` with exactly these arguments."""
        found = self._by_arguments.get(text, ())
        return next((call for call in found if call is not but), None)

    def joined(self, text: str) -> tuple[DeliveredCall, DeliveredCall] | None:
        """Return the first two adjacent calls whose arguments, joined in any order, are `text`."""
        return self._by_joined.get(text)

    def mixed(self, text: str) -> list[int]:
        """Return the indexes of the calls whose fragments make up `text`, or nothing.

        Each call's fragments come in their order. At each place the longest one that fits is
        taken; of equal ones that of the first call.
        """
        used: dict[int, int] = {}
        """How many fragments of a call are taken, by the call's place."""
        begun: Counter[str] = Counter()
        """How many of the calls that begin with a fragment are in use."""
        next_of: dict[str, list[int]] = {}
        """The places of the calls in use, in order, by the fragment that comes next."""
        sizes: Counter[int] = Counter()
        """How many different ones of these fragments have a length."""
        at = 0
        while at < len(text):
            fit = self._openings.beginnings(text, at)
            opening = next((each for each in fit if self._is_left(each, begun)), "")
            sliced = (text[at : at + size] for size in sorted(sizes, reverse=True))
            piece = max(opening, next((each for each in sliced if each in next_of), ""), key=len)
            if not piece:
                return []
            places = next_of.get(piece, [])[:1]
            if piece == opening:
                places = [*places, self._by_opening[opening][begun[opening]]]
            place = min(places)
            if place in used:
                next_of[piece].pop(0)
                if not next_of[piece]:
                    del next_of[piece]
                    sizes = sizes - Counter([len(piece)])
            else:
                begun[piece] += 1
            used[place] = used.get(place, 0) + 1
            for following in self._fragments[place][1][used[place] : used[place] + 1]:
                sizes[len(following)] += following not in next_of
                insort(next_of.setdefault(following, []), place)
            at += len(piece)
        return sorted(self._fragments[place][0] for place in used)

    def _is_left(self, opening: str, taken: Mapping[str, int]) -> bool:
        return taken[opening] < len(self._by_opening[opening])

    @cached_property
    def _by_arguments(self) -> Mapping[str, list[DeliveredCall]]:
        """The first two calls with the same arguments: one of them may be the one in question."""
        found: dict[str, list[DeliveredCall]] = {}
        for call in self.calls:
            alike = found.setdefault(call.arguments, [])
            if call.arguments and len(alike) < 2:  # noqa: PLR2004 - as above
                alike.append(call)
        return found

    @cached_property
    def _by_joined(self) -> Mapping[str, tuple[DeliveredCall, DeliveredCall]]:
        found: dict[str, tuple[DeliveredCall, DeliveredCall]] = {}
        for first, second in pairwise(self.calls):
            for text in (first.arguments + second.arguments, second.arguments + first.arguments):
                found.setdefault(text, (first, second))
        return found

    @cached_property
    def _fragments(self) -> Sequence[tuple[int, Sequence[str]]]:
        """The index of each call, and its fragments; of calls with one index the last."""
        by_index = {call.index: [*filter(None, call.fragments)] for call in self.calls}
        return list(by_index.items())

    @cached_property
    def _by_opening(self) -> Mapping[str, list[int]]:
        """The places of calls by their first fragment."""
        found: dict[str, list[int]] = {}
        for place, (_, pieces) in enumerate(self._fragments):
            for opening in pieces[:1]:
                found.setdefault(opening, []).append(place)
        return found

    @cached_property
    def _openings(self) -> PatternSet:
        return PatternSet(self._by_opening)


def is_related(original: DeliveredCall, repetition: RepeatedCall, others: SiblingCalls) -> bool:
    """Return whether the repeated arguments may derive from the delivered ones.

    Arguments that have nothing in common with what came are another call's.
    """
    return (
        first_difference(original, repetition) is None
        or relation(original, repetition, others) is not None
    )


def takes_deltas(original: DeliveredCall, repetition: RepeatedCall) -> bool:
    """Return whether the application repeats the joined deltas, and the last event differs.

    See T015: then both are what was delivered.
    """
    return repetition.arguments == "".join(original.fragments) != original.arguments


def relation(
    original: DeliveredCall, repetition: RepeatedCall, others: SiblingCalls
) -> Relation | None:
    """Return how the application's text derives from the delivered fragments; None if it does not.

    The clause names the fragments and calls that the text contains or lacks.

    Args:
        original: the delivered call; its arguments are not those of `repetition`.
        repetition: what the application repeats in its place.
        others: all calls of the reply.
    """
    text, pieces = repetition.arguments, [piece for piece in original.fragments if piece]
    if not text.strip():
        return Relation(ArgumentsDamage.EMPTIED, "the repeated arguments are empty")
    if text.strip() == "{}":
        return Relation(ArgumentsDamage.EMPTY_OBJECT, "the repeated arguments are an empty object")
    other = others.with_arguments(text, original)
    if other is not None:
        clause = f"these are the arguments of call {other.index}"
        return Relation(ArgumentsDamage.OTHER_CALL, clause)
    joined = others.joined(text)
    if joined is not None:
        first, second = joined
        clause = f"the arguments of call {first.index} and call {second.index} are joined together"
        return Relation(ArgumentsDamage.MIXED, clause)
    return (
        _of_fragments(text, original.arguments, pieces)
        or _of_several(text, others)
        or _closed(text, original.arguments, pieces)
        or _trimmed(text, original.arguments, pieces)
        or _encoded(text, original.arguments)
        or _decoded(original, repetition)
    )


def _of_fragments(text: str, whole: str, pieces: list[str]) -> Relation | None:
    if text in pieces:
        clause = f"only fragment {pieces.index(text) + 1} of {len(pieces)} is there"
        return Relation(ArgumentsDamage.ALONE, clause)
    if whole and text == whole + whole:
        return Relation(ArgumentsDamage.DOUBLED, "the arguments are there twice")
    doubled = _doubled(text, pieces)
    if doubled:
        return Relation(ArgumentsDamage.DOUBLED, doubled)
    taken = _used_fragments(text, pieces)
    if taken is not None:
        missing = [at for at in range(len(pieces)) if at not in taken]
        numbers = ", ".join(str(at + 1) for at in missing[:8])
        clause = f"fragment {numbers} of {len(pieces)} is missing"
        return Relation(ArgumentsDamage.LOST, clause, like_edit=_leaves_words(pieces, missing))
    if whole.startswith(text):
        return Relation(
            ArgumentsDamage.CUT, f"only the first {len(text)} of {len(whole)} characters are there"
        )
    if whole.endswith(text):
        return Relation(
            ArgumentsDamage.CUT, f"only the last {len(text)} of {len(whole)} characters are there"
        )
    return None


def _doubled(text: str, pieces: Sequence[str]) -> str:
    """Name in a clause the fragments that appear twice in `text`; "" if none explain it."""
    whole = "".join(pieces)
    extra = len(text) - len(whole)
    if extra <= 0:
        return ""
    if text == "".join(piece + piece for piece in pieces):
        return "every fragment appears twice"
    start = 0
    for number, piece in enumerate(pieces, 1):
        if not text.startswith(piece, start):
            return ""
        start += len(piece)
        if len(piece) == extra and text == whole[:start] + piece + whole[start:]:
            return f"fragment {number} of {len(pieces)} appears twice"
    return ""


def _of_several(text: str, calls: SiblingCalls) -> Relation | None:
    """Return whether `text` joins fragments of several calls in their order of arrival."""
    used = calls.mixed(text)
    if not used:
        return None
    names = " and ".join(f"call {index}" for index in used)
    clause = f"the fragments of {names} are mixed, in the order in which they arrived"
    return Relation(ArgumentsDamage.MIXED, clause)


def _used_fragments(text: str, pieces: list[str]) -> set[int] | None:
    """Return the fragments that make up `text` in order, unless all do; None if none do."""
    at, taken = 0, set()
    for number, piece in enumerate(pieces):
        if text.startswith(piece, at):
            at += len(piece)
            taken.add(number)
    return taken if at == len(text) and len(taken) < len(pieces) else None


_FEW_GAPS = 2
"""Missing fragments in more places than this are no edit."""


def _leaves_words(pieces: Sequence[str], missing: Sequence[int]) -> bool:
    """Return whether fragments are missing in few places, none of them inside a word.

    Fragments are often words, so what an edit takes out begins and ends where fragments do.
    """
    gone = frozenset(missing)
    starts = [at for at in missing if at - 1 not in gone]
    if len(starts) > _FEW_GAPS:
        return False
    for start in starts:
        end = next(at for at in range(start, len(pieces) + 1) if at not in gone)
        before, after = "".join(pieces[:start]), "".join(pieces[end:])
        lost = "".join(pieces[start:end])
        if splits_letters(before, lost) or splits_letters(lost, after):
            return False
    return True


_MAX_CLOSED = 200
"""How many of the first fragments are tried as a premature end."""


def _closed(text: str, whole: str, pieces: Sequence[str]) -> Relation | None:
    """Return whether `text` is what a partial-JSON parser makes of the first fragments.

    Only an end in the middle of a text counts: an application may leave out the last members.
    """
    repeated = parse(text)
    if repeated.error or not isinstance(repeated.value, Mapping) or len(text) >= len(whole):
        return None
    end = 0
    for number, piece in enumerate(pieces[:_MAX_CLOSED], 1):
        end += len(piece)
        closed = _close_string(whole[:end])
        if closed and end < len(whole) and parse(closed).value == repeated.value:
            clause = (
                f"only the first {number} of {len(pieces)} fragments are there, closed by a"
                " partial-JSON parser"
            )
            # An edit that shortens a text keeps the members after it.
            keeps_all = len([*leaves(text)]) == len([*leaves(whole)])
            at_word = not splits_letters(whole[:end], whole[end:])
            return Relation(ArgumentsDamage.CUT, clause, like_edit=keeps_all and at_word)
    return None


def _close_string(text: str) -> str:
    """Close JSON that ends inside a string; return "" if it ends elsewhere."""
    open_brackets: list[str] = []
    inside = escaped = False
    is_value = False
    for character in text:
        if inside:
            inside = escaped or character != '"'
            escaped = not escaped and character == "\\"
        elif character == '"':
            inside = True
        elif character in "{[":
            open_brackets.append("}" if character == "{" else "]")
            is_value = character == "["
        elif character in "}]" and open_brackets:
            open_brackets.pop()
        elif character in ":,":
            is_value = character == ":" or open_brackets[-1:] == ["]"]
    if not inside or escaped or not is_value:
        return ""
    return text + '"' + "".join(reversed(open_brackets))


def _trimmed(text: str, whole: str, pieces: Sequence[str]) -> Relation | None:
    """Return whether `text` is the fragments without the white space at their ends.

    White space elsewhere distinguishes this from a text with all white space removed, and words
    that run together from white space that somebody tidied up. If there is no white space left,
    many joined words in a text do: nobody does that on purpose.
    """
    repeated = parse(text)
    if repeated.error:
        return None
    delivered = parse(whole)
    words, left = (sum(len(each.split()) for each in leaves(one)) for one in (whole, text))
    spaced = any(" " in each.strip() for each in leaves(text))
    glued = max((len(_GLUED.findall(each)) for each in leaves(whole)), default=0)
    if words == left or not (spaced or glued >= _FEW_WORDS):
        return None
    for strip in (str.strip, str.lstrip, str.rstrip):
        joined = parse("".join(map(strip, pieces)))
        if not joined.error and joined.value == repeated.value != delivered.value:
            if spaced and words - left >= _JOINED:
                clause = "the white space at the ends of fragments is missing, and no other"
                return Relation(ArgumentsDamage.TRIMMED, clause)
            return Relation(ArgumentsDamage.GLUED, "words run together where fragments meet")
    return None


_JOINED = 2
"""One space that is missing may have been taken out on purpose."""
_GLUED = re.compile(r"(?<=[^\W\d_]) (?=[^\W\d_])")
"""White space between two words."""
_FEW_WORDS = 3
"""A text with this many spaces is prose; spaces are removed only to compare names and numbers."""


def _encoded(text: str, whole: str) -> Relation | None:
    """Return whether `text` is the value in another notation than a JSON object."""
    delivered, repeated = parse(whole), parse(text)
    if delivered.error:
        return None
    inner = repeated.value
    if isinstance(inner, str) and parse(inner).value == delivered.value:
        return Relation(ArgumentsDamage.ENCODED, "the arguments are encoded as JSON a second time")
    if text.strip() == "[object Object]":
        return Relation(ArgumentsDamage.ENCODED, "this is what JavaScript prints for an object")
    if repeated.error and len(text) <= _MAX_LITERAL and _literal(text) == delivered.value:
        return Relation(ArgumentsDamage.ENCODED, "the arguments are in Python's notation, not JSON")
    return None


def _literal(text: str) -> object:
    """Return the value of a Python literal; ABSENT if it is not one."""
    try:
        found: object = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return ABSENT
    return found


def _decoded(original: DeliveredCall, repetition: RepeatedCall) -> Relation | None:
    """Return whether all differences are non-ASCII characters that were decoded wrongly."""
    pairs: list[tuple[str, str]] = []
    for each in differences(original, repetition):
        if not (isinstance(each.delivered, str) and isinstance(each.repeated, str)):
            return None
        pairs.append((each.delivered, each.repeated))
    torn = [original.fragments[place] for place in original.torn]
    cut = Counter(each for piece in torn for each in piece if not each.isascii())
    lost = sum((missing_characters(one, other) for one, other in pairs), Counter[str]())
    if lost and lost <= cut and all(missing_characters(one, other) for one, other in pairs):
        places = ", ".join(str(place + 1) for place in original.torn[:8])
        clause = (
            f"{''.join(lost)!r} is missing: a chunk boundary splits its bytes (fragment"
            f" {places} of {len(original.fragments)})"
        )
        # A filter removes all such characters; a decoder that works per chunk loses only cut ones.
        others = not all(each.isascii() for each in leaves(repetition.arguments))
        return Relation(ArgumentsDamage.DECODED if others else ArgumentsDamage.TORN, clause)
    if not all(misdecoded(one, other) for one, other in pairs):
        return None
    return Relation(ArgumentsDamage.DECODED, "characters outside ASCII were decoded wrongly")


def misdecoded(one: str, other: str) -> bool:
    """Return whether `other` is `one`, decoded chunk by chunk or with another encoding than UTF-8.

    Characters that are only missing prove nothing: in many scripts, every edit takes out some.
    """
    if one.isascii():
        return False
    data = one.encode("utf-8", "surrogatepass")
    if other == data.decode("latin-1") or other == data.decode("cp1252", "replace"):
        return True
    if "\ufffd" in other and "\ufffd" not in one:
        parts = [re.escape(part) for part in re.split("\ufffd+", other)]
        return re.fullmatch("[^\x00-\x7f]+".join(parts), one, re.DOTALL) is not None
    return False


def missing_characters(one: str, other: str) -> Counter[str]:
    """Count the non-ASCII characters of `one` that `other` lacks; none if it differs otherwise."""
    at = 0
    lost: Counter[str] = Counter()
    for character in one:
        if at < len(other) and other[at] == character:
            at += 1
        elif character.isascii():
            return Counter()
        else:
            lost[character] += 1
    return lost if at == len(other) else Counter()


_COMPARABLE = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))


class ContentKeys(NamedTuple):
    """Finds equal calls without comparing each with each: calls with a key in common are equal."""

    keys: tuple[Hashable, ...]
    masked: bool
    """Whether a part of the arguments is masked: then calls may be equal without a common key."""


_ANY_NAME = "any name"


def delivered_keys(call: DeliveredCall) -> ContentKeys:
    """Return the keys of a delivered call, for `is_same_content`."""
    value, masked = _comparable(call.arguments)
    named = ("name", call.name) if call.name else _ANY_NAME
    values = () if value is None or call.kind is CallKind.CUSTOM else ((named, "value", value),)
    return ContentKeys(((named, "text", call.arguments), *values), masked)


def repeated_keys(call: RepeatedCall) -> ContentKeys:
    """Return the keys of a repeated call, for `is_same_content`."""
    value, masked = _comparable(call.arguments)
    keys: list[Hashable] = []
    for named in (("name", call.name), _ANY_NAME):
        keys.append((named, "text", call.arguments))
        if value is not None:
            keys.append((named, "value", value))
    return ContentKeys(tuple(keys), masked)


def _comparable(arguments: str) -> tuple[str | None, bool]:
    """Return a text that is the same for equal JSON, or None; and whether anything is masked."""
    parsed = parse(arguments.strip() or "{}")
    masked = _MASK.search(arguments) is not None
    if parsed.error:
        return None, masked
    # 1 equals 1.0, and the masks of a text may be escaped.
    root: list[Any] = [parsed.value]
    pending: list[tuple[Any, Any]] = [(root, 0)]
    while pending:
        outer, key = pending.pop()
        inner = outer[key]
        if isinstance(inner, dict):
            pending += ((inner, each) for each in inner)
        elif isinstance(inner, list):
            pending += ((inner, each) for each in range(len(inner)))
        elif isinstance(inner, str):
            masked = masked or _MASK.search(inner) is not None
        elif isinstance(inner, float) and inner.is_integer():
            outer[key] = int(inner)
    return _COMPARABLE.encode(root[0]), masked


def is_same_content(original: DeliveredCall, repetition: RepeatedCall) -> bool:
    """Return whether the application repeats name and arguments."""
    return same_name(original, repetition) and first_difference(original, repetition) is None


def same_name(original: DeliveredCall, repetition: RepeatedCall) -> bool:
    """Return whether the application repeats the name; a name that was never sent cannot be."""
    return not original.name or original.name == repetition.name


def same_id(original: DeliveredCall, repetition: RepeatedCall) -> bool:
    """Return whether the application repeats an id of the call; it must invent a missing one."""
    return not original.ids or repetition.id in original.ids


def is_derived(original: DeliveredCall, repetition: RepeatedCall) -> bool:
    """Return whether the repeated id is the delivered one joined or cut, not replaced."""
    mine = repetition.id or ""
    return any(_is_part(each, mine) or _is_part(mine, each) for each in original.ids)


class DerivedIds:
    """Finds the repeated ids that are derived from delivered ids: see `is_derived`."""

    def __init__(self, calls: Iterable[DeliveredCall], repeated: Iterable[str | None]) -> None:
        self._repeated = PatternSet(filter(None, repeated))
        delivered = PatternSet(call_id for call in calls for call_id in call.ids if call_id)
        self._containing: dict[str, list[str]] = {}
        """By delivered id, the repeated ones that contain it."""
        for call_id in sorted(self._repeated.patterns):
            for part in delivered.within(call_id):
                self._containing.setdefault(part, []).append(call_id)

    def of(self, call_id: str) -> Iterator[str]:
        """Yield those that are derived from a delivered id."""
        for part in self._repeated.within(call_id):
            if _is_part(part, call_id) or _is_part(call_id, part):
                yield part
        for whole in self._containing.get(call_id, ()):
            if whole != call_id and _is_part(call_id, whole):
                yield whole


def _is_part(part: str, whole: str) -> bool:
    """Return whether `whole` contains `part` as a whole number: `c10` does not contain `c1`."""
    at = whole.find(part) if part else -1
    if at < 0 or part == whole:
        return at >= 0
    before, after = whole[at - 1 : at], whole[at + len(part) : at + len(part) + 1]
    goes_on = part[-1].isdigit() and after.isdigit()
    return not goes_on and not (part[0].isdigit() and before.isdigit())


_RANDOM = re.compile(r"[A-Za-z0-9]{8,}")
_ENOUGH_DIFFERENT = 5


def is_distinctive(call_id: str) -> bool:
    """Return whether an id is random enough to be unique.

    Counters (`call_0`, `functions.search:3`), placeholders (`call_xxxxxxxx`, `REDACTED`) and other
    words name a call only within its own reply.
    """
    for part in _RANDOM.findall(call_id):
        digits = sum(character.isdigit() for character in part)
        mixed = digits >= 2 or (part != part.lower() and part != part.upper())  # noqa: PLR2004
        if mixed and len(set(part.lower())) >= _ENOUGH_DIFFERENT:
            return True
    return False


_MASK = re.compile(
    r"\*{3,}|[\u2022\u2588]{3,}"
    r"|[\[<({](?:redacted|masked|filtered|removed|hidden|secret)[^\])>}\n]{0,40}[\])>}]",
    re.IGNORECASE,
)


def same_but_masked(one: str, other: str) -> bool:
    """Return whether one text is the other with parts of it masked.

    Recorders replace credentials by as many asterisks. They recognise them in a request, but not in
    a stream that splits them, so one side may be masked and the other not. Applications that hide
    personal data use any placeholder.

    >>> same_but_masked("key sk-fake-000000, please", "key **************, please")
    True
    """
    return _fits(one, other) or _fits(other, one)


def _fits(masked: str, text: str) -> bool:
    """Return whether `text` contains the visible parts of `masked`, in order."""
    first, *rest = _MASK.split(masked)
    if not rest or not text.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(text) - len(rest[-1]) >= at and text.endswith(rest[-1])
