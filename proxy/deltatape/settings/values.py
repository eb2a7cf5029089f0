"""What a settings file holds, before it has a meaning: values that know their place."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from deltatape.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in a file something stands; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        """`deltatape.yaml:3:11`."""
        return f"{self.file}:{self.line}:{self.column}"

    def refuse(self, problem: str) -> UsageError:
        """An error about what stands here."""
        return UsageError(f"{self}: {problem}")

    def unknown(self, key: str, known: Iterable[str], what: str) -> UsageError:
        """An error about a key that is none of `known`, with what may have been meant."""
        names = sorted(known)
        near = difflib.get_close_matches(key.replace("_", "-"), names, n=3, cutoff=0.6)
        accepted = f"did you mean {' or '.join(near)}?" if near else f"known are {' '.join(names)}"
        return self.refuse(f"{key!a} is no {what}; {accepted}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A single value, as its text."""

    text: str
    place: Place
    absent: bool
    """Nothing stands there, or `null`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A sequence."""

    items: "tuple[Value, ...]"
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a key of a mapping stands for, and where the key stands."""

    key: Place
    value: "Value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A mapping."""

    entries: Mapping[str, Entry]
    place: Place


Value: TypeAlias = Scalar | Items | Table
