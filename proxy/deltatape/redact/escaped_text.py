r"""Read text through its escapes, and map changes of it to the bytes.

A secret in a body may be escaped as JSON text, and once more when that JSON stands in a string
(`arguments`), or be spread over the strings of many events. A `Layer` is a text made of slices of
the text below it, with or without escapes decoded; a `LayeredView` is a stack of layers on the
bytes of a body. Changes of the top text are mapped down to the bytes.

Text is bytes decoded as Latin-1, so that its offsets are byte offsets; an escaped non-ASCII
character counts as its two to four UTF-8 bytes.

Invariants: a change has the length of what it replaces, at every level; of an escape only the hex
digits of a `\uXXXX` are ever changed, so that JSON stays JSON.

Spec: RFC 8259 section 7 (escapes).
"""

import bisect
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r'|\\u[0-9a-fA-F]{4}|\\["\\/bfnrt]'
)
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_UNIT = 6
"""The length of `\\uXXXX`."""


class Overwrite(NamedTuple):
    """Overwrite the characters from `start` on by `text`."""

    start: int
    text: str

    @property
    def end(self) -> int:
        """Return where the change ends."""
        return self.start + len(self.text)


class _Run(NamedTuple):
    """A piece of a layer and its origin; `length` and `width` differ for escapes."""

    at: int
    length: int
    source: int
    width: int


class Layer:
    """A text, and where its characters stand in the text below."""

    __slots__ = ("_runs", "_starts", "text")

    def __init__(self, text: str, runs: Sequence[_Run]) -> None:
        self.text = text
        self._runs = runs
        self._starts = [run.at for run in runs]

    def below(self, edit: Overwrite) -> Iterator[Overwrite]:
        """Yield `edit` as changes of the text below, without what has no equivalent there."""
        place = max(bisect.bisect_right(self._starts, edit.start) - 1, 0)
        for run in map(self._runs.__getitem__, range(place, len(self._runs))):
            if run.at >= edit.end:
                return
            start, end = max(edit.start, run.at), min(edit.end, run.at + run.length)
            if start >= end:
                continue
            text = edit.text[start - edit.start : end - edit.start]
            if run.length == run.width:
                yield Overwrite(run.source + start - run.at, text)
            elif end - start == run.length:
                yield from _escaped(run, text)

    def lifted(self, start: int, end: int) -> tuple[int, int]:
        """Return where `[start, end)` of the text below is here; escapes count completely.

        For layers of one slice: what lies below stands here in the same order.
        """
        first = self._run_at(start)
        last = self._run_at(end - 1)
        is_plain = first.length == first.width
        low = first.at + (start - first.source if is_plain else 0)
        is_plain = last.length == last.width
        return low, last.at + (end - last.source if is_plain else last.length)

    def _run_at(self, source: int) -> _Run:
        place = bisect.bisect_right(self._runs, source, key=lambda run: run.source) - 1
        return self._runs[max(place, 0)]


def _escaped(run: _Run, text: str) -> Iterator[Overwrite]:
    r"""Yield a new escape with other hex digits, if it has any."""
    if run.width % _UNIT:
        return
    try:
        digits = text.encode("latin-1").decode().encode("utf-16-be").hex()
    except UnicodeDecodeError:
        return
    if len(digits) * _UNIT == run.width * 4:
        for unit in range(run.width // _UNIT):
            yield Overwrite(run.source + unit * _UNIT + 2, digits[4 * unit : 4 * unit + 4])


def _unescaped(escape: str) -> str:
    if escape[1] != "u":
        return _SHORT.get(escape[1], escape[1])
    units = bytes.fromhex(escape.replace("\\u", ""))
    # A lone surrogate keeps three characters of its own, which nothing takes for text.
    text = units.decode("utf-16-be", "surrogatepass")
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def plain(text: str, slices: Iterable[tuple[int, int]], glue: str = "") -> Layer:
    """Return a layer of slices of `text`, ascending or not, with `glue` after each."""
    parts: list[str] = []
    runs: list[_Run] = []
    at = 0
    for start, end in slices:
        runs.append(_Run(at, end - start, start, end - start))
        parts += (text[start:end], glue)
        at += end - start + len(glue)
    return Layer("".join(parts), runs)


def unescaped(text: str, slices: Iterable[tuple[int, int]]) -> Layer:
    """Return a layer of slices of `text` with one level of JSON escapes decoded."""
    parts: list[str] = []
    runs: list[_Run] = []
    at = 0

    def add(part: str, source: int, width: int) -> None:
        nonlocal at
        if width:
            runs.append(_Run(at, len(part), source, width))
            parts.append(part)
            at += len(part)

    for start, end in slices:
        done = start
        for match in ESCAPE.finditer(text, start, end):
            add(text[done : match.start()], done, match.start() - done)
            add(_unescaped(match.group()), match.start(), match.end() - match.start())
            done = match.end()
        add(text[done:end], done, end - done)
    return Layer("".join(parts), runs)


class LayeredView:
    """A text on top of `layers`, of which the first lies on the bytes."""

    __slots__ = ("layers", "text")

    def __init__(self, text: str, layers: tuple[Layer, ...] = ()) -> None:
        self.text = text
        self.layers = layers

    def on(self, layer: Layer) -> "LayeredView":
        """Return the view with another layer on top."""
        return LayeredView(layer.text, (*self.layers, layer))

    def down(self, edits: Iterable[Overwrite]) -> list[Overwrite]:
        """Return changes of the text as changes of the bytes, in order."""
        found = list(edits)
        for layer in reversed(self.layers):
            found = [lower for edit in found for lower in layer.below(edit)]
        return found


def joined(spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the same bytes in as few spans as possible, ascending."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and found[-1][1] >= start:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return tuple(found)


def overwrite(data: bytes | bytearray, edits: Iterable[Overwrite]) -> bytes:
    """Return `data` with changes applied."""
    changed = bytearray(data)
    for edit in edits:
        changed[edit.start : edit.end] = edit.text.encode("latin-1")
    return bytes(changed)
