"""Describe where two JSON values differ, in few words."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from deltatape.match.body import shown_value, stands_for
from deltatape.tape.mask import is_credential_member

MAX_DIFFERENCES = 20
MAX_VALUE_CHARACTERS = 60
_MAX_STEP_CHARACTERS = 200
_SHOWN_BEFORE = 15
_PLAIN = re.compile(r"[^.:\[\]*'\"]+")
_NAME = re.compile(r"\.([^.\[\]]+)(?:\[\d+\])*$")
_HIDDEN = "***"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonDifference:
    """One path at which two JSON values differ, each value as shortened JSON."""

    path: str
    recorded: str
    received: str


def compare(
    recorded: object, received: object, hide: Callable[[str], str] = str
) -> tuple[JsonDifference, ...]:
    """Return the first differences, at most `MAX_DIFFERENCES`, in document order; () when equal.

    What was overwritten in the recorded value, see `body`, does not count. Strings whose member is
    named like a credential are not shown.

    Args:
        recorded: see `body.blanked`.
        received: as the application sent it.
        hide: overwrites in text what must not be shown, each character by one.
    """
    found = islice(differing(recorded, received), MAX_DIFFERENCES)
    return tuple(described(each, hide) for each in found)


ABSENT: Final = object()
"""The value of a member that is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuePair:
    """Two values that differ, and their path; of arrays, only their lengths."""

    path: str
    recorded: object
    received: object
    lengths: bool = False


def described(values: ValuePair, hide: Callable[[str], str] = str) -> JsonDifference:
    """Return a difference in words; see `compare`."""
    named = _NAME.search(values.path)
    is_secret = named is not None and is_credential_member(named[1])
    start = _omitted_prefix(values.recorded, values.received)
    recorded, received = (
        _HIDDEN if is_secret and isinstance(each, str) else _short(each, start, hide)
        for each in (values.recorded, values.received)
    )
    return JsonDifference(path=hide(values.path), recorded=recorded, received=received)


def differing(recorded: object, received: object, path: str = "$") -> Iterator[ValuePair]:
    """Yield every difference, in document order; see `compare`."""
    if isinstance(recorded, dict) and isinstance(received, dict):
        for key in (*recorded, *(key for key in received if key not in recorded)):
            below = f"{path}{_step(key)}"
            if key in recorded and key in received:
                yield from differing(recorded[key], received[key], below)
            else:
                yield ValuePair(
                    path=below,
                    recorded=recorded.get(key, ABSENT),
                    received=received.get(key, ABSENT),
                )
    elif isinstance(recorded, list) and isinstance(received, list):
        for index, (one, other) in enumerate(zip(recorded, received, strict=False)):
            yield from differing(one, other, f"{path}[{index}]")
        if len(recorded) != len(received):
            yield ValuePair(
                path=f"{path}.length",
                recorded=len(recorded),
                received=len(received),
                lengths=True,
            )
    elif not (type(recorded) is type(received) and recorded == received) and not stands_for(
        recorded, received
    ):
        yield ValuePair(path=path, recorded=recorded, received=received)


def _step(key: str) -> str:
    """Write a member as `json_path` reads it."""
    if len(key) > _MAX_STEP_CHARACTERS:
        key = key[:_MAX_STEP_CHARACTERS] + "..."
    return f".{key}" if _PLAIN.fullmatch(key) else f"[{json.dumps(key)}]"


def _omitted_prefix(recorded: object, received: object) -> int:
    """Return how many characters to omit before the difference of two long strings."""
    if not isinstance(recorded, str) or not isinstance(received, str):
        return 0
    pairs = zip(recorded, received, strict=False)
    same = next((at for at, (one, other) in enumerate(pairs) if one != other), None)
    if same is None:
        same = min(len(recorded), len(received))
    return max(0, same - _SHOWN_BEFORE)


def _short(value: object, start: int, hide: Callable[[str], str]) -> str:
    if value is ABSENT:
        return "(absent)"
    if isinstance(value, str):
        # Masked before it is cut: half a credential would not be recognised.
        value = hide(value)
        value = f"...{value[start:]}" if start else value
        text = json.dumps(shown_value(value), ensure_ascii=True)
    else:
        text = hide(json.dumps(shown_value(value), ensure_ascii=True))
    if len(text) <= MAX_VALUE_CHARACTERS:
        return text
    return text[: MAX_VALUE_CHARACTERS - 3] + "..."
