"""Typed access to JSON objects: the value if it has the type, else None."""

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

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
