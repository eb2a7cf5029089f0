"""The exact source text of values inside an event's data, found only when somebody asks.

Few events need it (arguments that came as JSON instead of a string), but a hostile one may need it
thousands of times: the elements of an array are taken apart once for all of them.
"""

from typing import Protocol

from deltatape.wire.json_value import elements_of, slice_at


class Source(Protocol):
    """Where a JSON value stands in a text."""

    @property
    def text(self) -> str:
        """The value's source, without whitespace around it; valid JSON."""


class Whole:
    """A whole text. See `Source`."""

    def __init__(self, text: str) -> None:
        self.text = text


class Member:
    """The value at a key, which exists, of the object that `holder` is. See `Source`."""

    def __init__(self, holder: Source, key: str) -> None:
        self._holder = holder
        self._key = key

    @property
    def text(self) -> str:
        """See `Source.text`."""
        return slice_at(self._holder.text, (self._key,)) or ""


class Elements:
    """The elements of the array that `holder` is."""

    def __init__(self, holder: Source) -> None:
        self._holder = holder
        self._texts: list[str] | None = None

    def text_of(self, index: int) -> str:
        """The source of the element number `index`, which exists."""
        if self._texts is None:
            self._texts = elements_of(self._holder.text)
        return self._texts[index]


class Element:
    """One of `elements`. See `Source`."""

    def __init__(self, elements: Elements, index: int) -> None:
        self._elements = elements
        self._index = index

    @property
    def text(self) -> str:
        """See `Source.text`."""
        return self._elements.text_of(self._index)
