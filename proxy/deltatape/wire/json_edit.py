"""Edits in the source of a JSON value; unedited parts keep their spelling.

All texts are complete, valid JSON. An edit at a missing path changes nothing.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from deltatape.wire.json_value import skip_blanks, skip_value, slice_at, value_start

Path: TypeAlias = tuple[str | int, ...]
"""Keys and indexes from the outside in."""

_KEY = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"')


class _Child(NamedTuple):
    """A member of an object, or an element of an array, in its source."""

    step: str | int
    begin: int
    """Where the member begins, with its key."""
    start: int
    """Where its value starts."""
    end: int


def at(value: object, *path: str | int) -> object:
    """Return the value at `path` of a parsed value; None if there is none."""
    for step in path:
        if isinstance(value, Mapping) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def listed(value: object, *path: str | int) -> Sequence[object]:
    """Return the array at `path` of a parsed value; an empty one if none is there."""
    found = at(value, *path)
    return found if isinstance(found, list) else ()


def quoted(text: str, *, plain: bool) -> str:
    """Return `text` as a JSON string.

    Args:
        text: any, also with half surrogate pairs.
        plain: whether only ASCII is to be used.
    """
    found = json.dumps(text, ensure_ascii=plain)
    try:
        found.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return json.dumps(text)
    return found


def put(text: str, path: Path, source: str) -> str:
    """Return `text` with the value `source` at `path`; append a key that its object lacks."""
    start = value_start(text, path)
    if start is not None:
        return text[:start] + source + text[skip_value(text, start) :]
    parent = value_start(text, path[:-1])
    if parent is None or text[parent] != "{":
        return text
    children = _children(text, parent)
    spaced = bool(children) and text[children[-1].start - 1].isspace()
    member = f"{json.dumps(path[-1])}:{' ' if spaced else ''}{source}"
    if not children:
        return f"{text[: parent + 1]}{member}{text[parent + 1 :]}"
    end = children[-1].end
    return f"{text[:end]},{' ' if spaced else ''}{member}{text[end:]}"


def drop(text: str, path: Path) -> str:
    """Return `text` without the member or element at `path`, and without a comma of it."""
    children = _children(text, value_start(text, path[:-1]))
    places = [place for place, child in enumerate(children) if child.step == path[-1]]
    if not places:
        return text
    place = places[-1]
    child = children[place]
    if place:
        return text[: children[place - 1].end] + text[child.end :]
    if len(children) > 1:
        return text[: child.begin] + text[children[1].begin :]
    return text[: child.begin] + text[child.end :]


def append(text: str, path: Path, source: str) -> str:
    """Return `text` with `source` appended to the array at `path`, which is not empty."""
    children = _children(text, value_start(text, path))
    if not children:
        return text
    end = children[-1].end
    return f"{text[:end]},{source}{text[end:]}"


def source_at(text: str, path: Path) -> str:
    """Return the source of the value at `path`; "" if nothing is there."""
    return slice_at(text, path) or ""


def _children(text: str, start: int | None) -> list[_Child]:
    if start is None:
        return []
    if text[start] == "{":
        return list(_members(text, start))
    return list(_elements(text, start)) if text[start] == "[" else []


def _members(text: str, start: int) -> Iterator[_Child]:
    begin = skip_blanks(text, start + 1)
    while key := _KEY.match(text, begin):
        value = skip_blanks(text, skip_blanks(text, key.end()) + 1)
        end = skip_value(text, value)
        yield _Child(json.loads(key[0]), begin, value, end)
        begin = skip_blanks(text, skip_blanks(text, end) + 1)


def _elements(text: str, start: int) -> Iterator[_Child]:
    begin = skip_blanks(text, start + 1)
    number = 0
    while text[begin : begin + 1] not in {"]", ""}:
        end = skip_value(text, begin)
        yield _Child(number, begin, begin, end)
        number += 1
        following = skip_blanks(text, end)
        if text[following] == "]":
            return
        begin = skip_blanks(text, following + 1)
