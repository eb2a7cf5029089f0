"""Where two JSON values differ, in few words."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from deltatape.match.masks import shown, stands_for

MAX_DIFFERENCES = 20
MAX_VALUE_CHARACTERS = 60
_MAX_STEP_CHARACTERS = 200
_SHOWN_BEFORE = 15
_MISSING = "(absent)"
_PLAIN = re.compile(r"[^.\[\]*'\"]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One path at which two JSON values differ, each value as shortened JSON."""

    path: str
    recorded: str
    received: str


def compare(recorded: object, received: object) -> tuple[Difference, ...]:
    """The first differences, at most `MAX_DIFFERENCES`, in document order; () when equal.

    What was overwritten in the recorded value, see `masks`, does not count.
    """
    return tuple(islice(_walk(recorded, received, "$"), MAX_DIFFERENCES))


def _walk(recorded: object, received: object, path: str) -> Iterator[Difference]:
    if isinstance(recorded, dict) and isinstance(received, dict):
        for key in (*recorded, *(key for key in received if key not in recorded)):
            yield from _member(recorded, received, key, f"{path}{_step(key)}")
    elif isinstance(recorded, list) and isinstance(received, list):
        for index, (one, other) in enumerate(zip(recorded, received, strict=False)):
            yield from _walk(one, other, f"{path}[{index}]")
        if len(recorded) != len(received):
            yield Difference(
                path=f"{path}.length", recorded=str(len(recorded)), received=str(len(received))
            )
    elif not _is_same(recorded, received):
        start = _common(recorded, received)
        yield Difference(
            path=path, recorded=_short(recorded, start), received=_short(received, start)
        )


def _step(key: str) -> str:
    """A member as `json_path` reads it."""
    if len(key) > _MAX_STEP_CHARACTERS:
        key = key[:_MAX_STEP_CHARACTERS] + "..."
    return f".{key}" if _PLAIN.fullmatch(key) else f"[{json.dumps(key)}]"


def _is_same(recorded: object, received: object) -> bool:
    if type(recorded) is type(received) and recorded == received:
        return True
    return stands_for(recorded, received)


def _member(
    recorded: dict[str, object], received: dict[str, object], key: str, path: str
) -> Iterator[Difference]:
    if key not in received:
        yield Difference(path=path, recorded=_short(recorded[key]), received=_MISSING)
    elif key not in recorded:
        yield Difference(path=path, recorded=_MISSING, received=_short(received[key]))
    else:
        yield from _walk(recorded[key], received[key], path)


def _common(recorded: object, received: object) -> int:
    """How many characters to leave out in front of where two long strings differ."""
    if not isinstance(recorded, str) or not isinstance(received, str):
        return 0
    pairs = zip(recorded, received, strict=False)
    same = next((at for at, (one, other) in enumerate(pairs) if one != other), None)
    if same is None:
        same = min(len(recorded), len(received))
    return max(0, same - _SHOWN_BEFORE)


def _short(value: object, start: int = 0) -> str:
    if start and isinstance(value, str):
        value = f"...{value[start:]}"
    text = json.dumps(shown(value), ensure_ascii=True)
    if len(text) <= MAX_VALUE_CHARACTERS:
        return text
    return text[: MAX_VALUE_CHARACTERS - 3] + "..."
