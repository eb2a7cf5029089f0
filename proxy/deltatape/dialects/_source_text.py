"""The exact source text of values in an event's data, computed on demand.

Few events need it (arguments that came as JSON instead of a string), but a hostile one may need it
thousands of times: the elements of an array are taken apart once for all of them.
"""

import json
import re
from typing import Protocol

from deltatape.wire.json_value import elements_of, slice_at

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
        otherwise: where the value stands, for texts in which the key is not the only one.
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
