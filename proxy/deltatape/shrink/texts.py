"""Passes over texts: strings in the JSON of events, JSON in such strings, data that is no JSON.

A text that is there several times is one text: the pieces of a call, put together, come again in
the events that end it, and an id stands in each event.
"""

import re
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from deltatape.mutate._json import drop, put, quoted
from deltatape.shrink.body import Body, Path, Place, from_behind
from deltatape.shrink.deletion import fewest
from deltatape.shrink.events import leaves
from deltatape.shrink.fields import members
from deltatape.shrink.search import Search
from deltatape.wire.json_value import parse

_FIXED = frozenset({"finish_reason", "finishReason", "name", "object", "role", "status"}) | {
    "stop_reason",
    "stopReason",
    "type",
}
"""Keys whose values are words of a protocol: a part of one is none."""
_CHARACTER = re.compile(r"\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL)
"""Of the source of a JSON string."""
_WORD = re.compile(r"[A-Za-z0-9_.:/-]{2,}")
_DONE = "[DONE]"
_EMPTY = '""'


class _Text(NamedTuple):
    """A text, and all places at which it stands in a body."""

    body: Body
    source: str
    """As JSON."""
    places: tuple[Place, ...]

    def offer(self, search: Search, source: str) -> bool:
        """Offers another text instead."""
        return search.offer_one(self.body.putting(dict.fromkeys(self.places, source)))


def shorter_texts(search: Search) -> None:
    """Makes texts shorter: to nothing, or by what can go."""
    for number in search.numbers:
        for source in _sources(search, number):
            text = _text(search, number, source)
            if text is not None and not text.offer(search, _EMPTY):
                _shorten(search, text)


def shorter_data(search: Search) -> None:
    """Makes what events say shorter where it is no JSON."""
    for number in search.numbers:
        exchange = search.get(number)
        first = Body.of(exchange) if exchange else None
        for at, data in enumerate(first.texts if first else ()):
            now = search.get(number)
            body = Body.of(now) if now else None
            if body and data != _DONE and parse(data).error is not None:
                fewest(data, partial(_offer_data, search, body, at))


def _sources(search: Search, number: int) -> Sequence[str]:
    """The texts of a body as JSON, each once, the longest first."""
    exchange = search.get(number)
    body = Body.of(exchange) if exchange else None
    if body is None:
        return ()
    found = {body.source(place): None for place in _texts(body)}
    return sorted((source for source in found if source != _EMPTY), key=len, reverse=True)


def _texts(body: Body) -> Sequence[Place]:
    return [
        (at, path)
        for at, value in enumerate(body.values)
        for path, leaf in leaves(value)
        if isinstance(leaf, str) and path and path[-1] not in _FIXED
    ]


def _text(search: Search, number: int, source: str) -> _Text | None:
    exchange = search.get(number)
    body = Body.of(exchange) if exchange else None
    if body is None:
        return None
    places = tuple(place for place in _texts(body) if body.source(place) == source)
    return _Text(body, source, places) if places else None


def _shorten(search: Search, text: _Text) -> None:
    inside = text.source[1:-1]
    value = parse(text.source).value
    inner = parse(value).value if isinstance(value, str) else None
    if isinstance(value, str) and isinstance(inner, dict | list):
        _shorten_json(search, text, value)
    elif not (_WORD.fullmatch(inside) and text.offer(search, f'"{inside[0]}"')):
        fewest(_CHARACTER.findall(inside), partial(_offer_characters, search, text))


def _offer_characters(search: Search, text: _Text, kept: Sequence[str]) -> bool:
    return text.offer(search, f'"{"".join(kept)}"')


def _shorten_json(search: Search, text: _Text, value: str) -> None:
    """Makes a text that is JSON itself shorter by members and elements, the outer ones first."""
    depth = 1
    while paths := [*members(parse(value).value, depth)]:
        kept = fewest(paths, partial(_offer_members, search, text, value, paths))
        value = _without(value, frozenset(paths) - frozenset(kept))
        depth += 1
    for path, leaf in [*leaves(parse(value).value)]:
        shorter = put(value, path, _EMPTY) if path and isinstance(leaf, str) else value
        if shorter != value and text.offer(search, _quoted(text, shorter)):
            value = shorter


def _offer_members(
    search: Search, text: _Text, value: str, paths: Sequence[Path], kept: Sequence[Path]
) -> bool:
    shorter = _without(value, frozenset(paths) - frozenset(kept))
    return text.offer(search, _quoted(text, shorter))


def _without(value: str, paths: frozenset[Path]) -> str:
    """A JSON text without some members and elements of one depth."""
    for path in sorted(paths, key=from_behind, reverse=True):
        value = drop(value, path)
    return value


def _quoted(text: _Text, value: str) -> str:
    return quoted(value, plain=text.source.isascii())


def _offer_data(search: Search, body: Body, at: int, kept: Sequence[str]) -> bool:
    return search.offer_one(body.saying({at: "".join(kept)}))
