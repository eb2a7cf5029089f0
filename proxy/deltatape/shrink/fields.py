"""Passes over the parts of events: members and elements, numbers, and bytes in between."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from deltatape.shrink.body import EditableBody, Path, Place, Span
from deltatape.shrink.events import leaves
from deltatape.shrink.search import ShrinkSearch, fewest

_BLANKS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[ \t\r\n]+', re.DOTALL)
"""Texts in JSON, which stay, and blanks."""
_KIND = "type"
_MOST_BYTES = 4096
"""Of a body without events that are tried one by one."""


def fewer_columns(search: ShrinkSearch) -> None:
    """Remove members and elements from all events that have them, the outer ones first."""
    for number in search.numbers:
        depth = 1
        while body := _body(search, number):
            found = list(dict.fromkeys(path for _, path in _places(body, depth)))
            if not found:
                break
            columns = [path for path in found if not _tells(search, path)]
            fewest(columns, partial(_offer_columns, search, body, columns))
            depth += 1


def fewer_members(search: ShrinkSearch) -> None:
    """Remove members and elements from single events, the outer ones first."""
    for number in search.numbers:
        depth = 1
        while body := _body(search, number):
            found = list(_places(body, depth))
            if not found:
                break
            places = [(at, path) for at, path in found if not _tells(search, path)]
            fewest(places, partial(_offer_places, search, body, places))
            depth += 1


def fewer_blanks(search: ShrinkSearch) -> None:
    """Remove spaces between the tokens of JSON."""
    for number in search.numbers:
        if body := _body(search, number):
            tight = {
                at: _BLANKS.sub(_unless_text, text)
                for at, text in enumerate(body.texts)
                if body.values[at] is not None
            }
            loose = [at for at, text in tight.items() if text != body.texts[at]]
            fewest(loose, partial(_offer_tight, search, body, tight, loose))


def smaller_numbers(search: ShrinkSearch) -> None:
    """Set numbers to zero."""
    for number in search.numbers:
        if body := _body(search, number):
            places = [
                (at, path)
                for at, value in enumerate(body.values)
                for path, leaf in leaves(value)
                if isinstance(leaf, int | float) and not isinstance(leaf, bool) and leaf
            ]
            fewest(places, partial(_offer_zeros, search, body, places))


def less_between(search: ShrinkSearch) -> None:
    """Remove bytes of no event: comments, blank lines, a body without events."""
    for number in search.numbers:
        if body := _body(search, number):
            lines = body.between()
            fewest(lines, partial(_offer_spans, search, body, lines))
        if (body := _body(search, number)) and not body.texts:
            size = len(body.exchange.body)
            singly = [(at, at + 1) for at in range(min(size, _MOST_BYTES))]
            fewest(singly, partial(_offer_spans, search, body, singly))


def _tells(search: ShrinkSearch, path: Path) -> bool:
    """Return whether a member names an event's type: valid streams keep it, needed or not."""
    return search.sound and path[-1] == _KIND


def _places(body: EditableBody, depth: int) -> Iterator[Place]:
    """Yield all members and elements of events at a depth, from 1."""
    for at, value in enumerate(body.values):
        yield from ((at, path) for path in members(value, depth))


def members(value: object, depth: int, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of members and elements of a JSON value at a depth, from 1."""
    if len(path) == depth:
        yield path
    elif isinstance(value, Mapping):
        for key, child in value.items():
            yield from members(child, depth, (*path, key))
    elif isinstance(value, list):
        for at, child in enumerate(value):
            yield from members(child, depth, (*path, at))


def _body(search: ShrinkSearch, number: int) -> EditableBody | None:
    exchange = search.get(number)
    return EditableBody.of(exchange) if exchange is not None else None


def _offer_columns(
    search: ShrinkSearch, body: EditableBody, columns: Sequence[Path], kept: Sequence[Path]
) -> bool:
    gone = frozenset(columns) - frozenset(kept)
    every = ((at, path) for at in range(len(body.texts)) for path in gone)
    return search.offer_one(body.dropping(every))


def _offer_places(
    search: ShrinkSearch, body: EditableBody, places: Sequence[Place], kept: Sequence[Place]
) -> bool:
    return search.offer_one(body.dropping(frozenset(places) - frozenset(kept)))


def _offer_tight(
    search: ShrinkSearch,
    body: EditableBody,
    tight: Mapping[int, str],
    loose: Sequence[int],
    kept: Sequence[int],
) -> bool:
    gone = frozenset(loose) - frozenset(kept)
    return search.offer_one(body.saying({at: tight[at] for at in gone}))


def _unless_text(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else ""


def _offer_zeros(
    search: ShrinkSearch, body: EditableBody, places: Sequence[Place], kept: Sequence[Place]
) -> bool:
    zeros = dict.fromkeys(frozenset(places) - frozenset(kept), "0")
    return search.offer_one(body.putting(zeros))


def _offer_spans(
    search: ShrinkSearch, body: EditableBody, spans: Sequence[Span], kept: Sequence[Span]
) -> bool:
    return search.offer_one(body.leaving_out(frozenset(spans) - frozenset(kept)))
