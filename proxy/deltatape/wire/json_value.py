"""JSON text to values that never fails, and the exact source text of a nested value.

All JSON from the wire is parsed by `parse`. It accepts what `json_scan` accepts, at the speed of
the standard library's parser, and reports where and why other text is invalid. Of equal keys in an
object the last value is kept. Integers too long for Python become the double that other clients
see: infinity.

Hot path: a usual event costs one call of the standard library's C decoder, without hooks.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from deltatape.wire.json_scan import DEPTH_LIMIT, ScanState, scan

VALUES_LIMIT = 1000
"""Values after each other that are still taken apart."""

_SHALLOW = 2 * DEPTH_LIMIT
"""A text of fewer characters cannot be too deep: every level takes two."""
_WHITESPACE = " \t\n\r"
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_BLANKS = re.compile(r"[ \t\n\r]*")
_KEY = re.compile(rf"({_STRING})[ \t\n\r]*+:[ \t\n\r]*+")
"""A key and its colon, up to the value."""
_BETWEEN = re.compile(r"[ \t\n\r]*+,?+[ \t\n\r]*+")
_SCALAR = re.compile(rf"{_STRING}|[^\s,\]}}]+", re.DOTALL)
_TOKEN = re.compile(rf"{_STRING}|[\[\]{{}}]", re.DOTALL)
_STEPS = {"{": 1, "[": 1, "}": -1, "]": -1}
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonError:
    """Why a text is not one JSON value. `offset` counts characters."""

    verdict: ScanState
    reason: str
    offset: int

    def __str__(self) -> str:
        return f"{self.reason} (offset {self.offset})"


class Parsed(NamedTuple):
    """A parsed text: `value`, or `error` and no value."""

    value: object
    error: JsonError | None


class _NotPlainError(ValueError):
    """The text contains something that the fast decoder must not decide."""


def _refuse(_: str) -> object:
    raise _NotPlainError


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _NotPlainError
    return found


def _integer(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:
        return float(digits)


_Scan: TypeAlias = Callable[[str, int], tuple[object, int]]
"""The C function behind `raw_decode`: returns the value at an offset, and its end."""

_scan: _Scan = json.JSONDecoder(parse_constant=_refuse).scan_once  # type: ignore[attr-defined]
scan_string: Callable[[str, int], tuple[str, int]] = json.decoder.scanstring  # type: ignore[attr-defined]
"""The string whose first character is at an offset, and where it ends, behind its quote: as the
scanner reads it; ValueError if it has no end."""
_unique_keys = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_unique)
_scan_unique: _Scan = _unique_keys.scan_once  # type: ignore[attr-defined]
_SLOW = json.JSONDecoder(parse_int=_integer)
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_CONTAINERS = (dict, list)
_REFUSED = (ValueError, StopIteration, RecursionError)


def parse(text: str) -> Parsed:
    """Return the value of `text`, or why it has none."""
    bare = text.strip(_WHITESPACE)
    try:
        value, end = _scan(bare, 0) if len(bare) <= _SHALLOW else _scan_long(bare)
        if end == len(bare):
            return Parsed(value, None)
    except _REFUSED:
        pass
    scanner = scan(text)
    if scanner.verdict is ScanState.COMPLETE:
        return Parsed(_SLOW.decode(text), None)
    error = JsonError(verdict=scanner.verdict, reason=scanner.problem, offset=scanner.position)
    return Parsed(None, error)


def reads_alike(text: str) -> bool:
    """Check whether all parsers read `text`, one JSON value, alike: no key twice, no odd text.

    False if unsure; `JsonScanner` decides then.
    """
    if "\\u" in text or not text.isascii():
        return False
    try:
        _scan_unique(text.strip(_WHITESPACE), 0)
    except _REFUSED:
        return False
    return True


def read_object(text: str) -> dict[str, object] | None:
    """Return the object `text` if it is exactly one; else `parse` tells what it is.

    Hot path: nearly every event passes here.
    """
    try:
        value, end = _scan(text, 0) if len(text) <= _SHALLOW else _scan_long(text)
    except _REFUSED:
        return None
    return value if end == len(text) and isinstance(value, dict) else None


def _scan_long(text: str) -> tuple[object, int]:
    """Return the first value in a text with enough characters to be too deep, and where it ends."""
    if text.count("{") + text.count("[") <= DEPTH_LIMIT:
        return _scan(text, 0)
    # Of equal keys only the last value would be seen, and the others may be too deep: none may be.
    value, end = _scan_unique(text, 0)
    _limit_depth(value)
    return value, end


def _limit_depth(value: object) -> None:
    """Walk through the arrays and objects of `value`, level by level.

    Raises:
        _NotPlainError: they are nested too deeply.
    """
    level: list[dict[str, object] | list[object]] = (
        [value] if isinstance(value, _CONTAINERS) else []
    )
    for _ in range(DEPTH_LIMIT):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, _CONTAINERS)
        ]
        if not level:
            return
    raise _NotPlainError


def slice_at(text: str, path: Sequence[str | int]) -> str | None:
    """Return the source text of the value at `path`, without whitespace around it.

    Args:
        text: a whole, valid JSON text.
        path: keys and indexes from the outside in; of equal keys the last counts, as for parsers.

    Returns:
        The exact characters, or None if nothing is there.
    """
    at = value_start(text, path)
    return None if at is None else text[at : skip_value(text, at)]


def value_start(text: str, path: Sequence[str | int]) -> int | None:
    """Return where the value at `path` starts, as `slice_at` finds it; None if nothing is there."""
    at = skip_blanks(text, 0)
    for step in path:
        found = _member(text, at, step) if isinstance(step, str) else _element(text, at, step)
        if found is None:
            return None
        at = found
    return at


def elements_of(text: str) -> list[str]:
    """Return the source texts of the elements of `text`, a whole, valid JSON array, in one pass."""
    found = []
    at = skip_blanks(text, skip_blanks(text, 0) + 1)
    while text[at] != "]":
        end = skip_value(text, at)
        found.append(text[at:end])
        at = skip_blanks(text, end)
        if text[at] == ",":
            at = skip_blanks(text, at + 1)
    return found


def values_in(text: str) -> list[str] | None:
    """Return the source texts of consecutive JSON values in `text`; None if it has anything else.

    None also for numbers and words, which have no end of their own, and for more than
    `VALUES_LIMIT` values.
    """
    found: list[str] = []
    at = skip_blanks(text, 0)
    while at < len(text):
        end = skip_value(text, at) if text[at] in '{["' else at
        if scan(text[at:end]).verdict is not ScanState.COMPLETE or len(found) == VALUES_LIMIT:
            return None
        found.append(text[at:end])
        at = skip_blanks(text, end)
    return found


def canonical(text: str) -> str | None:
    """Return `text` with sorted keys and without whitespace, to compare; None if not JSON."""
    parsed = parse(text)
    if parsed.error is not None:
        return None
    return _CANONICAL.encode(parsed.value)


def join_pairs(text: str) -> str:
    r"""Return `text` with surrogate pairs as one character.

    A pair may be cut between two JSON strings (`"\ud83d"`, `"\ude00"`): each half decodes to a lone
    surrogate, and only their concatenation is text.
    """
    try:
        text.encode()  # no half is text: looking for pairs takes longer
    except UnicodeEncodeError:
        return _PAIR.sub(
            lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text
        )
    return text


def skip_blanks(text: str, at: int) -> int:
    """Return the offset behind the whitespace at `at`."""
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def skip_value(text: str, at: int) -> int:
    """Return the offset behind the value that starts at `at`."""
    if text[at] not in "{[":
        scalar = _SCALAR.match(text, at)
        return scalar.end() if scalar else at
    try:
        return _scan(text, at)[1]
    except _REFUSED:  # too deep, too long a number, or nothing that ends
        pass
    depth = 0
    for token in _TOKEN.finditer(text, at):
        depth += _STEPS.get(token[0], 0)
        if depth == 0:
            return token.end()
    return len(text)


def _member(text: str, at: int, wanted: str) -> int | None:
    """Return where the value of the last member called `wanted` starts."""
    if text[at] != "{":
        return None
    found = None
    at = skip_blanks(text, at + 1)
    while key := _KEY.match(text, at):
        at, name = key.end(), key[1]
        if name[1:-1] == wanted or ("\\" in name and json.loads(name) == wanted):
            found = at
        at = skip_value(text, at)
        between = _BETWEEN.match(text, at)
        at = between.end() if between else at
    return found


def _element(text: str, at: int, index: int) -> int | None:
    """Return where the element number `index` starts."""
    if text[at] != "[":
        return None
    at = skip_blanks(text, at + 1)
    for _ in range(index):
        at = skip_blanks(text, skip_value(text, at))
        if text[at : at + 1] != ",":
            return None
        at = skip_blanks(text, at + 1)
    return None if text[at] == "]" else at
