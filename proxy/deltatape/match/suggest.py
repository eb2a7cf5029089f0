"""Find the narrowest `--volatile` options with which requests match although they differ.

Strategy: for two texts, the fewest presets that make them equal. If presets are not enough, an
expression for each differing word that has a digit, preceded by the text before it: such words are
ids and counters. Other differences are of content: then the whole field has to be left out.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from deltatape.match.difference import ValuePair
from deltatape.match.volatile import MARKS, PRESETS, VolatileRules

MOST_DIFFERENCES = 500
"""Requests that differ in more places are other requests."""

_COARSE_FIRST = ("path", "hash", "pid", "port", "date", "uuid", "home")
"""The order in which presets are tried."""
_MODEL = "$.model"
_TOKEN = re.compile(r"[A-Za-z0-9]+|.", re.DOTALL)
_JOINTS = "-_.:+/"
"""Between two parts of one word."""
_MOST_COMPARED = 250_000
_CONTEXT = 16
"""How many characters before a word suffice to find it again."""
_PARTIAL = re.compile(r"^[A-Za-z0-9]+(?=[^A-Za-z0-9].*[A-Za-z])", re.DOTALL)
_NO_WORD = re.compile(r"^[^A-Za-z0-9]+")
_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()]")
_CLASSES = tuple(map(re.compile, ("[0-9]+", "[0-9a-f]+", "[0-9A-Za-z]+", r"[\w.:+/-]+")))
_PLACE = re.compile(r"\[\d+\]")


def suggested(
    differences: Iterable[ValuePair], hide: Callable[[str], str] = str, *, prose: bool = True
) -> tuple[str, ...]:
    """Return options that ignore the differences, where options can.

    Args:
        differences: of requests that have been reduced by known rules; of several pairs of
            requests, too.
        hide: overwrites secrets in text: an option must not contain any.
        prose: whether whole fields may be left out although they have sentences in them.
    """
    texts: list[tuple[str, str]] = []
    masks: dict[str, None] = {}
    fields: dict[str, dict[str, None]] = {}
    for number, one in enumerate(differences):
        if number == MOST_DIFFERENCES:
            return ()
        if one.lengths:
            continue
        found: tuple[str, ...] = ()
        if isinstance(one.recorded, str) and isinstance(one.received, str) and one.path != _MODEL:
            found = _masks_between(one.recorded, one.received)
        if found and hide("\n".join(found)) == "\n".join(found):
            texts.append((one.recorded, one.received))  # type: ignore[arg-type]  # seen above
            masks |= dict.fromkeys(found)
        elif hide(one.path) == one.path and (prose or not _is_prose(one)):
            fields.setdefault(any_place(one.path), {})[one.path] = None
    needed = _needed(sorted(masks, key=_finest_first), texts)
    paths = (general if len(each) > 1 else next(iter(each)) for general, each in fields.items())
    return (*needed, *paths)


def _is_prose(pair: ValuePair) -> bool:
    return any(isinstance(each, str) and " " in each for each in (pair.recorded, pair.received))


def any_place(path: str) -> str:
    """Return a path that means all elements of the arrays on the way."""
    return _PLACE.sub("[*]", path)


def _finest_first(mask: str) -> int:
    return -_COARSE_FIRST.index(mask) if mask in PRESETS else 1


def _needed(masks: Sequence[str], texts: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Leave out masks, the first ones first, that are not needed to make each two texts equal."""
    kept = list(masks)
    for mask in masks:
        fewer = [each for each in kept if each != mask]
        if all(_equal(fewer, one, other) for one, other in texts):
            kept = fewer
    return tuple(kept)


def _equal(masks: Iterable[str], one: str, other: str) -> bool:
    mask = VolatileRules(masks).masked_text
    return mask(one) == mask(other)


def _masks_between(recorded: str, received: str) -> tuple[str, ...]:
    """Return the masks with which two texts are equal; () if there are none."""
    presets: tuple[str, ...] = _COARSE_FIRST
    mask = VolatileRules(presets).masked_text
    own = tuple(dict.fromkeys(_expressions(mask(recorded), mask(received))))
    masks = (*presets, *own)
    if not _equal(masks, recorded, received):
        return ()
    return _needed(masks, [(recorded, received)])


class _Segment(NamedTuple):
    """Words that differ, as places in the tokens of two texts."""

    start: int
    end: int
    other_start: int
    other_end: int


def _expressions(one: str, other: str) -> Iterator[str]:
    """Yield an expression for each word that differs and looks like an id."""
    mine, theirs = _TOKEN.findall(one), _TOKEN.findall(other)
    for segment in _segments(mine, theirs):
        words = (
            "".join(mine[segment.start : segment.end]),
            "".join(theirs[segment.other_start : segment.other_end]),
        )
        context = _context("".join(mine[: segment.start]))
        shape = _shape(words)
        if context and shape:
            literal = _SPECIAL.sub(r"\\\g<0>", context)
            yield f"/{literal}({shape})/"


def _shape(words: Sequence[str]) -> str:
    """Return the narrowest expression for ids like these; "" if they are none."""
    if not all(any(map(str.isdigit, word)) for word in words):
        return ""
    return next((each.pattern for each in _CLASSES if all(map(each.fullmatch, words))), "")


def _context(before: str) -> str:
    """Return the text right before a word, from the beginning of a word; "" for none."""
    line = re.split(f"[{''.join(MARKS)}\n]", before)[-1]
    text = line[-_CONTEXT:]
    if len(text) < len(line):
        text = _PARTIAL.sub("", text)
    text = _NO_WORD.sub("", text)
    return text if any(map(str.isalpha, text)) else ""


def _segments(one: Sequence[str], other: Sequence[str]) -> Iterator[_Segment]:
    """Yield where one text has other words than the other; none if it has more or fewer words."""
    least = min(len(one), len(other))
    front = next((at for at in range(least) if one[at] != other[at]), least)
    back = next(
        (at for at in range(least - front) if one[-1 - at] != other[-1 - at]), least - front
    )
    mine, theirs = one[front : len(one) - back], other[front : len(other) - back]
    if len(mine) * len(theirs) > _MOST_COMPARED:
        return
    found: list[_Segment] = []
    for tag, *places in SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        segment = _Segment(*(place + front for place in places))
        if found and segment.start - found[-1].end <= 1 and one[found[-1].end] in _JOINTS:
            segment = segment._replace(start=found[-1].start, other_start=found[-1].other_start)
            found.pop()
        found.append(segment)
    yield from found
