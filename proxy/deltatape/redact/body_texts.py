"""The text of a body that a quick search for secrets needs to see.

Strategy. Events of a stream repeat most of each other. What stands between two quotation marks is
kept once: a secret has a quotation mark in it only between a name and its value, and where such a
name stands before one, all of the body is kept. The strings that make a text together are those of
a `json_strings.Channel`. Where they stand depends on the shape of an event alone: all of it but its
strings and numbers, then the names of its members, then its marks. Streams have few shapes, which
are remembered over bodies.
"""

import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, groupby
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from deltatape.redact.eventstream import unfold
from deltatape.redact.json_strings import (
    DEPTH_LIMIT,
    INDEXES,
    MARKS,
    StringPlace,
    event_data,
    string_places,
)
from deltatape.regex import OR_NONE
from deltatape.secret_text.prefilter import (
    ClearedTexts,
    has_rare_escape,
    may_encode_text,
    may_hold_secret,
    may_span_strings,
)
from deltatape.wire.json_value import parse

_bodies = ClearedTexts()


def texts_to_search(data: bytes) -> list[bytes] | None:
    """Return shorter texts to search: if the body has secrets, `may_hold_secret` finds one in them.

    None: search `data` itself.
    """
    unfolded = unfold(data)
    data = data if unfolded is None else unfolded.plain
    body = data.decode("latin-1")
    if unfolded is not None:
        events, is_stream = [body[start:end] for start, end in unfolded.events], True
    elif '"' not in body or has_single_strings(body):
        events, is_stream = [], False
    else:
        events, is_stream = event_data(body)
    alone = _unrepeated(data) if is_stream else None
    if alone is None:
        if not _bodies.remembers(data):
            alone = [data]
        elif _bodies.may_hold_secret(data):
            return None
    joined = map(_joined, _shapes.texts(events, is_stream=is_stream))
    return [*(alone or ()), *[_restored(text).encode("latin-1") for text in joined]]


def _unrepeated(data: bytes) -> list[bytes] | None:
    """Return the strings of a body, each once; None if a secret may include a quotation mark."""
    members = dict.fromkeys(data.split(b',"'))  # fewer, so that less is split for the parts
    parts = dict.fromkeys(b'"'.join(members).split(b'"'))
    texts = [b'"'.join((*parts, b""))]
    if has_rare_escape(texts[0]):  # few parts have any, and only those are to be decoded
        escaped = dict.fromkeys(filter(has_rare_escape, parts))
        others = [part for part in parts if part not in escaped]
        texts = [b'"'.join((*each, b"")) for each in (escaped, others)]
    return None if any(map(may_span_strings, texts)) else texts


# The strings of a body that make a text together.

_NUMBER = r"-?[0-9][0-9.eE+-]*+"
_NUMBERS = re.compile(
    rf"[0-9\[](?:(?<=[0-9])[0-9.eE+-]*+|(?<=\[)\s*+{_NUMBER}(?:\s*+,\s*+{_NUMBER}{OR_NONE})*+\s*+\])"
)
"""Numbers, without their signs, and arrays of nothing else."""
_BRACKET = re.compile(r"[\[\]{}]")
_STEPS = {"{": 1, "[": 1, "}": -1, "]": -1}
_ESCAPES = (("\\\\", "\u0100"), ('\\"', "\u0101"))
"""Escapes, and characters for them that no Latin-1 has: then every quotation mark begins or ends a
string."""
_ESCAPE_MARKS = ("\\", "%", "&", *(sign for _, sign in _ESCAPES))
_SHAPE_SIZE = 4096
"""Characters of the largest shape that is remembered."""
_SHAPES = 2048
"""How many shapes are remembered before all are forgotten."""

_Places: TypeAlias = Callable[[Sequence[str]], tuple[str, ...]]
"""Returns the parts at some places of an event that is split at its quotation marks."""


class _Shape(NamedTuple):
    """The places of an event's strings, and the texts that they belong to, in order."""

    channels: tuple[Hashable, ...]
    trails: tuple[Hashable, ...]
    strings: _Places
    is_apart: bool
    """Whether no two of the strings may belong to one text."""


class _Rows(NamedTuple):
    """The strings of events that follow on each other."""

    shape: _Shape
    rows: list[tuple[str, ...]]


class _Shapes:
    """Remembers where strings are in events of the same structure."""

    def __init__(self) -> None:
        self._known: dict[
            str, tuple[_Places, dict[Hashable, tuple[_Places, dict[Hashable, _Shape]]]]
        ] = {}
        """By the structure of an event, the places of its members' names; by these names, those of
        its marks."""
        self._count = 0
        self._numbers: dict[Hashable, int] = {}
        """Numbers in place of channels and trails, which take long to compare."""

    def texts(self, events: Sequence[str], *, is_stream: bool) -> Iterator[list[str]]:
        """Yield the strings of each text, which are those of a `Channel`; at least two.

        In a stream also those of a trail, where these are of several channels.

        Args:
            events: the events of a body, with their line feeds.
            is_stream: whether a text may come in pieces, one in each event.
        """
        tables = (
            self._read(events)
            if is_stream
            else [self._read_alone(event, is_stream=False) for event in events]
        )
        by_channel: dict[Hashable, list[str]] = {}
        of_trail: dict[Hashable, set[Hashable]] = {}
        for shape, rows in tables:
            columns = zip(shape.channels, shape.trails, zip(*rows, strict=True), strict=True)
            for channel, trail, column in columns:
                by_channel.setdefault(channel, []).extend(column)
                of_trail.setdefault(trail, set()).add(channel)
        yield from (strings for strings in by_channel.values() if len(strings) > 1)
        mixed = {trail for trail, channels in of_trail.items() if len(channels) > 1}
        if is_stream and mixed:
            by_trail: dict[Hashable, list[str]] = {}
            for shape, rows in tables:
                for trail, column in zip(shape.trails, zip(*rows, strict=True), strict=True):
                    if trail in mixed:
                        by_trail.setdefault(trail, []).extend(column)
            yield from by_trail.values()

    def _read(self, events: Iterable[str]) -> list[_Rows]:
        """Return the strings of a stream's events, with the replacements of `_ESCAPES`."""
        if self._count > _SHAPES or len(self._numbers) > 2 * _SHAPES:
            self.__init__()  # type: ignore[misc]
        found: list[_Rows] = []
        before: _Shape | None = None
        for event in events:
            simple = _simplified(event) if "\\" in event else event
            parts = simple.split('"')
            if len(parts) == 1:
                continue
            shape = self._shape(simple, parts)
            if shape is None:
                found.append(self._read_alone(event, is_stream=True))
                before = None
            elif shape is before:
                found[-1].rows.append(shape.strings(parts))
            else:
                found.append(_Rows(shape, [shape.strings(parts)]))
                # Of one text, the strings of an event come before those of the next one.
                before = shape if shape.is_apart else None
        return found

    def _read_alone(self, event: str, *, is_stream: bool) -> _Rows:
        found = string_places(event, 0, len(event), is_stream=is_stream)
        strings = tuple([event[each.start : each.end] for each in found])
        return _Rows(self._new_shape(found, tuple), [strings])

    def _shape(self, event: str, parts: Sequence[str]) -> _Shape | None:
        """Return the shape of an event; None if it is not plain JSON, or is too large.

        Args:
            event: has the replacements of `_ESCAPES`.
            parts: the same, split at its quotation marks.
        """
        if len(parts) % 2 == 0:
            return None
        structure = _NUMBERS.sub("0", '""'.join(parts[::2]))
        try:
            names, by_names = self._known[structure]
            marks, by_marks = by_names[names(parts)]
            return by_marks[marks(parts)]
        except KeyError:
            return self._learn(event, parts, structure)

    def _learn(self, event: str, parts: Sequence[str], structure: str) -> _Shape | None:
        if len(structure) > _SHAPE_SIZE or parse(structure).error is not None:
            return None
        nesting = accumulate(_STEPS[bracket] for bracket in _BRACKET.findall(structure))
        if max(nesting, default=0) > DEPTH_LIMIT:
            return None
        found = string_places(event, 0, len(event), is_stream=True)
        ends = accumulate(len(part) + 1 for part in parts)
        place_of = {end - 1: place for place, end in enumerate(ends)}
        strings = [place_of[each.end] for each in found]
        names = sorted({*range(1, len(parts), 2)}.difference(strings))
        if any(sign in parts[name] for name in names for _, sign in _ESCAPES):
            return None
        # The value of a mark is a string, or is between its name and the next string.
        marks = [name + 1 for name in names if parts[name] in MARKS]
        marks += [at for at, each in zip(strings, found, strict=True) if each.channel[-1] in MARKS]
        shape = self._new_shape(found, _places(strings))
        names_at, by_names = self._known.setdefault(structure, (_places(names), {}))
        marks_at, by_marks = by_names.setdefault(names_at(parts), (_places(marks), {}))
        by_marks[marks_at(parts)] = shape
        self._count += 1
        return shape

    def _new_shape(self, found: Sequence[StringPlace], strings: _Places) -> _Shape:
        numbers = self._numbers
        channels = tuple([numbers.setdefault(each.channel, len(numbers)) for each in found])
        trails = tuple([numbers.setdefault((None, *each.trail), len(numbers)) for each in found])
        return _Shape(channels, trails, strings, is_apart=len({*trails}) == len(trails))


_shapes = _Shapes()


def _places(places: Sequence[int]) -> _Places:
    if len(places) > 1:
        return itemgetter(*places)
    return lambda parts: tuple([parts[place] for place in places])


def _simplified(text: str) -> str:
    for escape, sign in _ESCAPES:
        text = text.replace(escape, sign)
    return text


def _restored(text: str) -> str:
    for escape, sign in _ESCAPES:
        text = text.replace(sign, escape)
    return text


# What a string that a stream repeats shows.

_SHORT = 500
"""Characters of strings, such as ids, that every event may repeat."""
_OFTEN = 8
"""How often the strings of a text come on average where most of them are repeated."""
_FEW, _LONGEST = 5, 128
"""Repetitions of a string, and the longest such string in characters, that show as much as any
number: what a pattern needs comes in three of them or is in its shortest match, and all groups of
digits that may be encoded text come in five."""
_TIMES, _WINDOW = 16, 1024
"""The same where there may be encoded text, or text around it: twice base64 of what decides."""
_REMEMBERED = 1024
_repeated: set[str] = set()
"""What was repeated in a body."""


def _joined(strings: Sequence[str]) -> str:
    """Return a text that shows whether `strings` make a secret together."""
    first, different = strings[0], len({*strings})
    if different * _OFTEN > len(strings) and different > 1:
        return "".join(strings)
    if different > 1:
        return "".join([_abridged(text, len([*same])) for text, same in groupby(strings)])
    if not _is_repeatable(first):
        return "".join(strings)
    if first not in _repeated:
        # Nearly all such come in one body only, as ids do, or in all.
        if len(_repeated) >= _REMEMBERED:
            _repeated.clear()
        _repeated.add(first)
        return _repetition(first)
    return _repetition(first) if _may_hold_repeated(first) else ""


def _is_repeatable(text: str) -> bool:
    """Return whether repeating `text` makes no other escapes."""
    return len(text) <= _SHORT and not any(mark in text for mark in _ESCAPE_MARKS)


def _abridged(text: str, times: int) -> str:
    """Repeat `text`, between other text, until more repetitions would show nothing new.

    What is left out is as many groups of digits, whatever is encoded and how often.
    """
    enough = _TIMES + _WINDOW // max(len(text), 1)
    if times > enough and _is_repeatable(text):
        times = enough + (times - enough) % _TIMES
    return text * times


def _repetition(text: str) -> str:
    """Repeat `text` until more repetitions would show nothing new."""
    few = text * (_FEW + _LONGEST // max(len(text), 1))
    return few if not may_encode_text(few.encode("latin-1")) else _abridged(text, 2 * _WINDOW)


@lru_cache(_REMEMBERED)
def _may_hold_repeated(text: str) -> bool:
    """Return False only if no number of repetitions of `text` makes a secret."""
    return may_hold_secret(_repetition(text).encode("latin-1"))


# Documents in which no two strings belong to one text.

_VALUES = re.compile(
    r'("[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"\s*+:)|"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"'
    r"|-?[0-9][0-9.eE+-]*+"
)
"""The names of members, in a group, strings and numbers of a JSON text."""


def has_single_strings(text: str) -> bool:
    """Return True only if `text` is a JSON object in which no two strings have the same place.

    Then no string is joined with another. Of one shape, all have or none has.
    """
    if not text.startswith("{"):
        return False
    if len(text) > _SHAPE_SIZE:
        return _has_own_places(text)
    parts = _VALUES.split(text)
    return _has_single_strings("".join(['""' if part is None else part for part in parts]))


@lru_cache(_SHAPES)
def _has_single_strings(shape: str) -> bool:
    if _has_own_places(shape):
        return True
    channels = [each.channel for each in string_places(shape, 0, len(shape), is_stream=False)]
    return parse(shape).error is None and len({*channels}) == len(channels)


def _has_own_places(text: str) -> bool:
    """Return whether no object has a name twice, or an index."""
    try:
        return _depth(json.loads(text, object_pairs_hook=_object)) < DEPTH_LIMIT
    except (ValueError, RecursionError):
        return False


class _Depth(int):
    """How deep an object is nested, in place of it."""


def _object(pairs: list[tuple[str, object]]) -> _Depth:
    keys = {key for key, _ in pairs}
    if len(keys) < len(pairs) or not INDEXES.isdisjoint(keys):
        raise ValueError
    return _Depth(1 + max([_depth(value) for _, value in pairs], default=0))


def _depth(value: object) -> int:
    if isinstance(value, _Depth):
        return value
    if isinstance(value, list) and not _NESTED.isdisjoint(map(type, value)):
        return 1 + max(map(_depth, value))
    return int(isinstance(value, list))


_NESTED = frozenset((list, _Depth))
