"""Find the secrets of one text, also escaped and encoded, and overwrite them.

Strategy. The text is searched unchanged, then with its escapes decoded once, twice, and so on: JSON
escapes, percent-encoding and HTML entities alike. What is base64 or hexadecimal of text in the
fully decoded text is decoded and searched, too.

Everything found is overwritten with asterisks, byte by byte. Whitespace, quotes, backslashes and
short escapes stay: JSON stays JSON, and lines stay lines.
"""

import functools
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from deltatape.secret_text.escaped_text import (
    Layer,
    LayeredView,
    Overwrite,
    decoded,
    encoded_runs,
    joined,
    overwrite,
)
from deltatape.secret_text.patterns import SecretMatch, find
from deltatape.secret_text.prefilter import ENCODINGS, LEVELS, may_hold_secret

_SHORTEST = 7
"""Characters of the shortest match: `://a:b@`."""
_CACHED = 512

_VISIBLE = re.compile(r'[^\s"\\\x00-\x1f\x7f]')


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A secret in a body. `spans` are its bytes, ascending, at least one."""

    kind: str
    certain: bool
    value: bytes
    """The secret itself, for its hash: never shown."""
    spans: tuple[tuple[int, int], ...]
    edits: tuple[Overwrite, ...]
    """What overwrites it, if all secrets of the body are replaced."""


def in_view(view: LayeredView, encodings: int = ENCODINGS) -> Iterator[Secret]:
    """Yield the secrets in a text, at every level of escapes."""
    texts = [view.text]
    layers: list[Layer] = []
    while len(layers) < LEVELS:
        layer = decoded(texts[-1])
        if layer is None:
            break
        layers.append(layer)
        texts.append(layer.text)
        view = view.on(layer)
    for level, text in enumerate(texts):
        for match in find(text):
            value = text[match.start : match.end]
            edits = _asterisks(view, layers[level:], match)
            if edits:
                yield Secret(
                    kind=match.kind,
                    certain=match.certain,
                    value=value.encode("latin-1"),
                    spans=spans_of(edits),
                    edits=edits,
                )
    if encodings:
        for run in encoded_runs(view.text):
            yield from in_view(view.on(run), encodings - 1)


def _asterisks(
    view: LayeredView, above: Iterable[Layer], match: SecretMatch
) -> tuple[Overwrite, ...]:
    """Return the changes of the bytes that overwrite a match.

    They are made in the fully decoded text, so that no escape is broken.
    """
    start, end = match.start, match.end
    for layer in above:
        start, end = layer.lifted(start, end)
    stars = _VISIBLE.sub("*", view.text[start:end])
    return tuple(edit for edit in view.down([Overwrite(start, stars)]) if edit.text)


def spans_of(edits: Iterable[Overwrite]) -> tuple[tuple[int, int], ...]:
    """Return the bytes that `edits` change."""
    return joined((edit.start, edit.end) for edit in edits)


def without_secrets(text: str) -> str:
    """Return `text` with asterisks for what looks like a secret in it."""
    if len(text) < _SHORTEST:
        return text
    return _cached(text) if len(text) < _CACHED else _overwritten(text)


def each_without_secrets(texts: Sequence[str]) -> list[str]:
    """Return `texts`, each as `without_secrets` returns it.

    Most have no secret: they are searched together, which takes a fraction of the time.
    """
    if len(texts) <= 1:
        return [without_secrets(text) for text in texts]
    if not may_hold_secret("\n".join(texts).encode("utf-8", "surrogatepass")):
        return [*texts]
    half = len(texts) // 2
    return [*each_without_secrets(texts[:half]), *each_without_secrets(texts[half:])]


def secret_strings(value: object, most: int = sys.maxsize) -> dict[str, str]:
    """Return the strings in a JSON value that have secrets, each with what to show instead.

    Args:
        value: as the JSON encoder takes it.
        most: how many elements of each list are searched.
    """
    found: dict[str, None] = {}
    _add_strings(value, most, found)
    texts = [*found]
    pairs = zip(texts, each_without_secrets(texts), strict=True)
    return {text: shown for text, shown in pairs if shown != text}


def _add_strings(value: object, most: int, found: dict[str, None]) -> None:
    match value:
        case str():
            found[value] = None
        case dict():
            for member in value.values():
                _add_strings(member, most, found)
        case list() | tuple():
            for element in value[:most]:
                _add_strings(element, most, found)
        case _:
            pass


def _overwritten(text: str) -> str:
    data = text.encode("utf-8", "surrogatepass")
    if not may_hold_secret(data):
        return text
    # A secret may begin where another one ended, and show only when that is gone.
    while True:
        found = in_view(LayeredView(data.decode("latin-1")))
        changed = overwrite(data, [edit for secret in found for edit in secret.edits])
        if changed == data:
            return data.decode("utf-8", "surrogatepass")
        data = changed


_cached = functools.lru_cache(_CACHED)(_overwritten)
