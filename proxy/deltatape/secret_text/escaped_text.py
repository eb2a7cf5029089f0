r"""Read text through its escapes, and map changes of it to the bytes.

A secret in a body may be escaped as JSON text, and once more when that JSON is itself in a string
(`arguments`), or be spread over the strings of many events; URLs and pages have other escapes,
and a whole text may be base64 or hexadecimal. A `Layer` is a text made of slices of the text
below it, with or without escapes decoded; a `LayeredView` is a stack of layers on the bytes of a
body. Changes of the top text are mapped down to the bytes.

Text is bytes decoded as Latin-1, so that its offsets are byte offsets; an escaped non-ASCII
character counts as its two to four UTF-8 bytes.

Invariants: a change has the length of what it replaces, at every level; in an escape only the
digits change, so that JSON stays JSON.

Spec: RFC 8259 section 7 (JSON), RFC 3986 section 2.1 (percent-encoding), RFC 4648 (base64, hex).
"""

import base64
import bisect
import functools
import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r'|\\u[0-9a-fA-F]{4}|\\["\\/bfnrt]'
)
_PERCENT = re.compile(r"%[0-9a-fA-F]{2}")
_ENTITY = re.compile(r"&(?:#[0-9]{2,7}|#[xX][0-9a-fA-F]{2,6}|amp|lt|gt|quot|apos);")
_ANY_ESCAPE = re.compile("|".join(each.pattern for each in (ESCAPE, _PERCENT, _ENTITY)))
_BASE64_RUN = re.compile(r"[A-Za-z0-9+/_-]{20,}+")
"""What may be encoded; the shortest secret searched for has 15 characters."""
_HEX_RUN = re.compile(r"[0-9A-Fa-f]{30,}+")
_URL_SAFE = re.compile(r"[_-]")
_STANDARD = str.maketrans("-_", "+/")
_GROUP = 4
"""Digits of base64 that are three bytes."""
_TEXT = re.compile(rb"[\t\r\n -~]{15}")
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
    """A piece of a layer and its origin; `escape` is the escape there, if it is one."""

    at: int
    length: int
    source: int
    width: int
    escape: str = ""


class Layer:
    """A text, and the places of its characters in the text below."""

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
            if not run.escape:
                yield Overwrite(run.source + start - run.at, text)
            elif end - start == run.length:
                yield from _escaped(run, text)

    def lifted(self, start: int, end: int) -> tuple[int, int]:
        """Return where `[start, end)` of the text below is here; escapes count completely.

        For layers of one slice: the order is the same as below.
        """
        first = self._run_at(start)
        last = self._run_at(end - 1)
        low = first.at + (0 if first.escape else start - first.source)
        return low, last.at + (last.length if last.escape else end - last.source)

    def _run_at(self, source: int) -> _Run:
        place = bisect.bisect_right(self._runs, source, key=lambda run: run.source) - 1
        return self._runs[max(place, 0)]


def _escaped(run: _Run, text: str) -> Iterator[Overwrite]:
    r"""Yield a new escape with other digits, if it has any."""
    if run.escape[0] == "%":
        yield Overwrite(run.source + 1, f"{ord(text):02X}")
        return
    try:
        characters = text.encode("latin-1").decode()
    except UnicodeDecodeError:
        return
    if run.escape[0] == "&":
        yield from _entity(run, characters)
        return
    digits = characters.encode("utf-16-be").hex()
    if len(digits) * _UNIT == run.width * 4:
        for unit in range(run.width // _UNIT):
            yield Overwrite(run.source + unit * _UNIT + 2, digits[4 * unit : 4 * unit + 4])


def _entity(run: _Run, characters: str) -> Iterator[Overwrite]:
    """Yield a reference of the same length to the first of `characters`, if it has a number."""
    number = run.escape.strip("&#xX;")
    if run.escape[1] == "#":
        form = "x" if run.escape[2] in "xX" else "d"
        digits = f"{ord(characters[0]):0{len(number)}{form}}"
        yield Overwrite(run.source + len(run.escape) - 1 - len(number), digits)


@functools.lru_cache(1024)
def _unescaped(escape: str) -> str:
    if escape[0] == "%":
        return chr(int(escape[1:], 16))
    if escape[0] == "&":
        text = html.unescape(escape) or escape
    elif escape[1] == "u":
        # A lone surrogate keeps three characters of its own, which nothing takes for text.
        text = bytes.fromhex(escape.replace("\\u", "")).decode("utf-16-be", "surrogatepass")
    else:
        return _SHORT.get(escape[1], escape[1])
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def undone(text: str) -> str:
    """Return `text` with one level of its escapes decoded, whosoever they are."""
    return _ANY_ESCAPE.sub(lambda match: _unescaped(match[0]), text)


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


def unescaped(
    text: str, slices: Iterable[tuple[int, int]], escapes: re.Pattern[str] = ESCAPE
) -> Layer:
    """Return a layer of slices of `text` with one level of escapes decoded, by default of JSON."""
    parts: list[str] = []
    runs: list[_Run] = []
    at = 0

    def add(part: str, source: int, width: int, escape: str = "") -> None:
        nonlocal at
        if width:
            runs.append(_Run(at, len(part), source, width, escape))
            parts.append(part)
            at += len(part)

    for start, end in slices:
        done = start
        for match in escapes.finditer(text, start, end):
            add(text[done : match.start()], done, match.start() - done)
            add(_unescaped(match[0]), match.start(), match.end() - match.start(), match[0])
            done = match.end()
        add(text[done:end], done, end - done)
    return Layer("".join(parts), runs)


def decoded(text: str) -> Layer | None:
    """Return `text` with one level of its escapes decoded, whosoever they are; None without any."""
    if not any(mark in text for mark in "\\%&") or not _ANY_ESCAPE.search(text):
        return None
    return unescaped(text, [(0, len(text))], _ANY_ESCAPE)


class EncodedLayer(Layer):
    """The text that is encoded in hexadecimal or base64 below.

    Args:
        text: decoded.
        source: where the digits begin below.
        size: characters of a group of digits.
        width: digits of a group.
        encode: makes digits of characters.
    """

    __slots__ = ("_encode", "_size", "_source", "_width")

    def __init__(
        self, text: str, source: int, size: int, width: int, encode: Callable[[bytes], str]
    ) -> None:
        super().__init__(text, ())
        self._source = source
        self._size = size
        self._width = width
        self._encode = encode

    def below(self, edit: Overwrite) -> Iterator[Overwrite]:
        """Yield `edit` as a change of the whole groups of digits that it touches."""
        first, last = edit.start // self._size, (edit.end - 1) // self._size + 1
        before = self.text[first * self._size : edit.start]
        changed = before + edit.text + self.text[edit.end : last * self._size]
        digits = self._encode(changed.encode("latin-1"))
        yield Overwrite(self._source + first * self._width, digits)


def encoded_runs(text: str) -> Iterator[EncodedLayer]:
    """Yield the parts of `text` that are hexadecimal or base64 of text."""
    for match in _HEX_RUN.finditer(text):
        digits = match[0][: len(match[0]) // 2 * 2]
        found = _text_of(bytes.fromhex(digits))
        if found:
            yield EncodedLayer(found, match.start(), 1, 2, bytes.hex)
    for match in _BASE64_RUN.finditer(text):
        encode = _base64_safe if _URL_SAFE.search(match[0]) else _base64
        run = match[0].translate(_STANDARD)
        # Letters may precede it.
        for shift in range(_GROUP):
            digits = run[shift:]
            if len(digits) % _GROUP == 1:  # encodes nothing
                digits = digits[:-1]
            found = _text_of(base64.b64decode(digits + "=" * (-len(digits) % _GROUP)))
            if found:
                yield EncodedLayer(found, match.start() + shift, 3, _GROUP, encode)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode().rstrip("=")


def _base64_safe(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _text_of(data: bytes) -> str:
    """Return `data` if there is text in it, else ""."""
    return data.decode("latin-1") if _TEXT.search(data) else ""


class LayeredView:
    """A text on top of `layers`; the first layer decodes the bytes."""

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
