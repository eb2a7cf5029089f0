"""JSON paths (a subset of RFC 9535), as users write them and as providers send them.

A user's path may mean many members: names (`.name`, `['name']`), places in arrays (`[0]`, `[-1]`),
every member or element (`.*`, `[*]`), and descendants (`..name`). The leading `$` is optional.
Reports of misses print paths in this form. A provider's path means one value: see `parse_place`.
"""

import enum
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from deltatape.errors import UsageError
from deltatape.wire.json_value import join_pairs


class Wildcard(enum.Enum):
    """Path steps without a name."""

    ANY = "*"
    """Every member or element."""
    DEEP = ".."
    """The value itself and all that is inside it, at any depth."""


Step: TypeAlias = str | int | Wildcard
"""A member's name, the place of an element, or a wild card. A name of digits is also a place."""
Holder: TypeAlias = dict[str, object] | list[object]
"""What values are in."""

_STEP = re.compile(
    r"(?P<deep>\.(?=\.[^.\[])|\.\.(?=\[))"
    r"|(?P<any>\.\*|\[\*\])"
    r"|\[(?P<place>-?(?:0|[1-9][0-9]{0,8}))\]"
    r"""|\[(?:'(?P<single>[^']+)'|"(?P<double>[^"]+)")\]"""
    r"|\.(?P<name>[^.\[\]*'\"]+)"
)


def parse_path(text: str) -> tuple[Step, ...]:
    """Return `messages.*.id`, `messages[0].id` or `$..id` as its steps.

    Raises:
        UsageError: not such a path.
    """
    path = text.removeprefix("$")
    if path == text and not path.startswith((".", "[")):
        path = f".{path}"
    steps: list[Step] = []
    at = 0
    while match := _STEP.match(path, at):
        steps.append(_step(match))
        at = match.end()
    if not steps or at < len(path):
        raise UsageError(
            f"--volatile {text!r}: not a path; metadata.session, messages.*.id, messages[0].id and"
            " $..cache_control are"
        )
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    if match["deep"]:
        return Wildcard.DEEP
    if match["any"]:
        return Wildcard.ANY
    if match["place"]:
        return int(match["place"])
    return match["single"] or match["double"] or match["name"]


def drop(value: object, path: tuple[Step, ...]) -> None:
    """Remove from a JSON value, in place, what a path names.

    A member is removed with its name; an array element becomes null, so that the array's length
    still counts.
    """
    for holder, step in list(select(value, path)):
        if isinstance(holder, dict):
            holder.pop(str(step), None)
        else:
            holder[int(step)] = None


def select(value: object, path: tuple[Step, ...]) -> Iterator[tuple[Holder, str | int]]:
    """Yield the object or array of each value that a path names, and its name or place in there."""
    head, rest = path[0], path[1:]
    if head is Wildcard.DEEP:
        for inner in _containers(value):
            yield from select(inner, rest)
    elif isinstance(value, dict):
        for name in _names(value, head):
            if rest:
                yield from select(value[name], rest)
            else:
                yield value, name
    elif isinstance(value, list):
        for place in _places(value, head):
            if rest:
                yield from select(value[place], rest)
            else:
                yield value, place


def _names(value: Mapping[str, object], head: Step) -> tuple[str, ...]:
    """Return the members that a step means."""
    if head is Wildcard.ANY:
        return tuple(value)
    return (head,) if isinstance(head, str) and head in value else ()


def _places(value: Sequence[object], head: Step) -> Iterable[int]:
    """Return the elements that a step means."""
    if head is Wildcard.ANY:
        return range(len(value))
    place = int(head) if isinstance(head, str) and head.isdecimal() else head
    return (place,) if isinstance(place, int) and -len(value) <= place < len(value) else ()


def _containers(value: object) -> Iterator[object]:
    """Yield `value` and all objects and arrays inside it, the innermost last."""
    pending = [value]
    while pending:
        inner = pending.pop()
        if isinstance(inner, dict):
            yield inner
            pending += inner.values()
        elif isinstance(inner, list):
            yield inner
            pending += inner


# The paths of one value, as providers send them (Gemini's streamed arguments).
#
# Source: RFC 9535, section 2.3 (name and index selectors, shorthand names). Only what names exactly
# one value is taken; a path without `$` is, as clients do, seen from the root.

PLACE_LIMIT = 100
"""Steps of a path that is still followed; arguments are never nested that deeply."""
PlaceStep: TypeAlias = str | int
"""The name of a member, or the index of an element."""
_PLACE_STEP = re.compile(
    r"""\.(?P<name>[^.\[\]]++)
      | \[\ *+(?P<index>0|[1-9][0-9]{0,8})\ *+\]
      | \[\ *+'(?P<single>[^'\\]*+(?:\\.[^'\\]*+)*+)'\ *+\]
      | \[\ *+"(?P<double>[^"\\]*+(?:\\.[^"\\]*+)*+)"\ *+\]""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED_QUOTE = re.compile(r"\\'|\"|\\.", re.DOTALL)
_REQUOTED = {"\\'": "'", '"': '\\"'}


def parse_place(text: str) -> tuple[PlaceStep, ...] | None:
    """Return the steps of the path `text`, at least one; None if it does not name one value."""
    if not text.startswith("$"):
        text = f"${text}" if text.startswith("[") else f"$.{text}"
    steps: list[PlaceStep] = []
    at = 1
    while at < len(text):
        found = _PLACE_STEP.match(text, at)
        step = _place_step(found) if found else None
        if found is None or step is None or len(steps) == PLACE_LIMIT:
            return None
        steps.append(step)
        at = found.end()
    return tuple(steps) or None


def _place_step(found: re.Match[str]) -> PlaceStep | None:
    quoted = found["double"]
    if found["single"] is not None:
        quoted = _ESCAPED_QUOTE.sub(lambda one: _REQUOTED.get(one[0], one[0]), found["single"])
    if quoted is not None:
        try:
            return join_pairs(str(json.loads(f'"{quoted}"')))
        except ValueError:
            return None
    return found["name"] if found["index"] is None else int(found["index"])
