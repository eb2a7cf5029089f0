"""Narrow readers for the JSON of events: the value if it has the type, else something empty."""

import json
from collections.abc import Mapping, Sequence

Object = Mapping[str, object]
_NOTHING: Object = {}
_LONGEST = 9
"""Digits of an index that stands in a string."""


def member(holder: Object, key: str) -> Object:
    """The object at `key`; empty if there is none."""
    value = holder.get(key)
    return value if isinstance(value, dict) else _NOTHING


def objects(holder: Object, key: str) -> Sequence[tuple[int, Object]]:
    """The objects in the array at `key`, each with its place in it."""
    value = holder.get(key)
    found = value if isinstance(value, list) else ()
    return [(at, one) for at, one in enumerate(found) if isinstance(one, dict)]


def word(holder: Object, key: str) -> str | None:
    """The string at `key`."""
    value = holder.get(key)
    return value if isinstance(value, str) else None


def number(holder: Object, key: str) -> int | None:
    """The index at `key`, which some servers write as a string."""
    value = holder.get(key)
    if type(value) is int:
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _LONGEST:
        return int(value)
    return None


def text_of(value: object) -> str:
    """`value` as JSON, as compact as the wire's."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
