"""Typed access to JSON objects, and the exact source text of the values in them."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

from deltatape.wire.json_value import elements_of, slice_at

Frame: TypeAlias = Mapping[str, object]
"""The JSON object that an event carries."""

EVIDENCE_LIMIT = 200
"""Characters of the wire shown with an observation."""


def as_object(value: object) -> Mapping[str, object] | None:
    """Return `value` if it is a JSON object."""
    return value if isinstance(value, dict) else None


def as_array(value: object) -> Sequence[object] | None:
    """Return `value` if it is a JSON array."""
    return value if isinstance(value, list) else None


def get_str(holder: Mapping[str, object], key: str) -> str | None:
    """Return the string at `key`."""
    value = holder.get(key)
    return value if isinstance(value, str) else None


def get_object(holder: Mapping[str, object], key: str) -> Mapping[str, object] | None:
    """Return the object at `key`."""
    return as_object(holder.get(key))


def get_array(holder: Mapping[str, object], key: str) -> Sequence[object]:
    """Return the array at `key`; empty if there is none."""
    return as_array(holder.get(key)) or ()


def objects_in(values: Iterable[object]) -> Iterator[Mapping[str, object]]:
    """Yield the JSON objects among `values`."""
    return (value for value in values if isinstance(value, dict))


def get_objects(holder: Mapping[str, object], key: str) -> Iterator[Mapping[str, object]]:
    """Yield the objects in the array at `key`."""
    return objects_in(get_array(holder, key))


def get_index(holder: Mapping[str, object], key: str) -> int | None:
    """Return the number at `key` as an index: `0`, `0.0` and `"0"` are 0; None if it is not one."""
    value = holder.get(key)
    if type(value) is int:
        return value if value >= 0 else None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:  # noqa: PLR2004
        return int(value)
    if isinstance(value, float) and value.is_integer() and value >= 0:
        return int(value)
    return None


def shown(value: object) -> str:
    """Return `value` as JSON, cut to `EVIDENCE_LIMIT`."""
    return json.dumps(value, ensure_ascii=False)[:EVIDENCE_LIMIT]


# The exact source text of values in an event's data, computed on demand.
#
# Few events need it (arguments that came as JSON instead of a string), but a hostile one may need
# it thousands of times: the elements of an array are taken apart once for all of them.


_COLON = re.compile(r"[ \t\n\r]*+:[ \t\n\r]*+")
_DECODER = json.JSONDecoder(parse_int=str)
_SOLE_LIMIT = 65_536
"""Characters of a text that may be searched for each value in it."""


class JsonSource(Protocol):
    """The position of a JSON value in a text."""

    @property
    def text(self) -> str:
        """The value's source without surrounding whitespace; valid JSON."""


class WholeString:
    """A whole text. See `JsonSource`."""

    def __init__(self, text: str) -> None:
        self.text = text


class MemberValue:
    """The value at an existing key of the object `holder`. See `JsonSource`."""

    def __init__(self, holder: JsonSource, key: str) -> None:
        self._holder = holder
        self._key = key

    @property
    def text(self) -> str:
        return slice_at(self._holder.text, (self._key,)) or ""


class Elements:
    """The elements of the array `holder`."""

    def __init__(self, holder: JsonSource) -> None:
        self._holder = holder
        self._texts: list[str] | None = None

    def text_of(self, index: int) -> str:
        """Return the source of element `index`, which must exist."""
        if self._texts is None:
            self._texts = elements_of(self._holder.text)
        return self._texts[index]


class Element:
    """One of `elements`. See `JsonSource`."""

    def __init__(self, elements: Elements, index: int) -> None:
        self._elements = elements
        self._index = index

    @property
    def text(self) -> str:
        return self._elements.text_of(self._index)


class SoleMember:
    """The value at a key that is usually unique in the whole text. See `JsonSource`.

    Args:
        text: valid JSON, in which the key exists.
        key: plain letters.
        otherwise: the value's position, for texts in which the key occurs more than once.
    """

    def __init__(self, text: str, key: str, otherwise: JsonSource) -> None:
        self._text = text
        self._key = key
        self._otherwise = otherwise

    @property
    def text(self) -> str:
        if len(self._text) > _SOLE_LIMIT:
            return self._otherwise.text
        quoted = f'"{self._key}"'
        start = self._text.find(quoted)
        colon = _COLON.match(self._text, start + len(quoted))
        other = self._text.find(quoted, start + 1)
        # A key may be spelled with escapes; then what was found is another one.
        if start < 0 or other >= 0 or colon is None or "\\u" in self._text:
            return self._otherwise.text
        return self._text[colon.end() : _DECODER.raw_decode(self._text, colon.end())[1]]
