"""Passes over events: kinds, single ones, neighbours, and joined pieces."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from deltatape.shrink.body import EditableBody, Path, Place
from deltatape.shrink.search import ShrinkSearch, fewest, largest, patient

_NAMES = frozenset(
    {"call_id", "content_index", "contentBlockIndex", "id", "index", "item_id", "name"}
    | {"object", "output_index", "role", "tool_call_id", "type"}
)
"""Keys whose values say what an event belongs to."""
_WIDEST = 4
"""Neighbours that go together at most; blocks of one kind go by their kind."""
_MOST_KINDS = 100
_PATIENCE = 100
"""Refusals in a row after which other passes are better tried first."""
_FEW = 60
"""Events of which each two neighbours can be tried."""

Label: TypeAlias = tuple[str, ...]


def fewer_kinds(search: ShrinkSearch) -> None:
    """Remove all events of a kind at once: of a block, of an item, of a type, of a form."""
    for number in search.numbers:
        for label in _labels(search, number):
            body = _body(search, number)
            if body is not None:
                kept = [at for at in range(len(body.texts)) if label not in labels(body, at)]
                if 0 < len(kept) < len(body.texts):
                    search.offer_one(body.keeping(kept))


def fewer_events(search: ShrinkSearch) -> None:
    """Remove events, as many at once as possible; give up if nearly all are needed."""
    for number in search.numbers:
        body = _body(search, number)
        if body is not None:
            offer = patient(partial(_offer_kept, search, body), _PATIENCE)
            fewest(range(len(body.texts)), offer)


def fewer_single_events(search: ShrinkSearch) -> None:
    """Remove single events without giving up."""
    for number in search.numbers:
        body = _body(search, number)
        if body is not None:
            fewest(range(len(body.texts)), partial(_offer_kept, search, body))


def fewer_neighbours(search: ShrinkSearch) -> None:
    """Remove adjacent events that need each other, such as a block and its end."""
    for number in search.numbers:
        for width in range(2, _WIDEST + 1):
            at = 0
            while (body := _body(search, number)) and at + width <= len(body.texts) <= _FEW:
                kept = [place for place in range(len(body.texts)) if not at <= place < at + width]
                if not search.offer_one(body.keeping(kept)):
                    at += 1


def joined(search: ShrinkSearch) -> None:
    """Join adjacent pieces of one text into one event, as many as possible."""
    for number in search.numbers:
        at = 0
        while (body := _body(search, number)) and at + 1 < len(body.texts):
            path, row = _row(body, at)
            if row:
                offer = partial(_offer_joined, search, body, (at, path), row)
                largest(len(row), offer, len(row))
            at += 1


def labels(body: EditableBody, at: int) -> frozenset[Label]:
    """Return the properties of an event that others may share."""
    value = body.values[at]
    found: set[Label] = {("type", body.types[at])}
    if isinstance(value, dict):
        found.add(("form", *sorted({"/".join(map(str, path)) for path, _ in leaves(value)})))
        found |= {
            ("/".join(map(str, path)), json.dumps(leaf))
            for path, leaf in leaves(value)
            if path[-1] in _NAMES
        }
    return frozenset(found)


def leaves(value: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Yield the scalars in a JSON value, with their paths."""
    if isinstance(value, Mapping):
        for key, child in value.items():
            yield from leaves(child, (*path, key))
    elif isinstance(value, list):
        for at, child in enumerate(value):
            yield from leaves(child, (*path, at))
    else:
        yield path, value


def _body(search: ShrinkSearch, number: int) -> EditableBody | None:
    exchange = search.get(number)
    return EditableBody.of(exchange) if exchange is not None else None


def _offer_kept(search: ShrinkSearch, body: EditableBody, kept: Sequence[int]) -> bool:
    return search.offer_one(body.keeping(kept))


def _labels(search: ShrinkSearch, number: int) -> Sequence[Label]:
    """Return the properties shared by several events but not by all; the most frequent first."""
    body = _body(search, number)
    if body is None:
        return ()
    total = len(body.texts)
    counts = Counter(label for at in range(total) for label in sorted(labels(body, at)))
    common = [label for label, count in counts.most_common() if 1 < count < total]
    return common[:_MOST_KINDS]


def _row(body: EditableBody, at: int) -> tuple[Path, Sequence[int]]:
    """Return the events that follow `at` and differ from it in one text alone, and its path."""
    found: list[int] = []
    where: Path = ()
    for later in range(at + 1, len(body.texts)):
        path = _only_text(body.values[at], body.values[later])
        if path is None or (where and path and path != where) or not (where or path):
            break
        where = where or path
        found.append(later)
    return where, found


def _only_text(one: object, other: object) -> Path | None:
    """Return the path of the only difference of two values if it is a text; else ()."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return None
    first, second = dict(leaves(one)), dict(leaves(other))
    if first.keys() != second.keys():
        return None
    paths = [path for path, leaf in first.items() if leaf != second[path]]
    if not paths:
        return ()
    texts = isinstance(first[paths[0]], str) and isinstance(second[paths[0]], str)
    return paths[0] if texts and len(paths) == 1 and paths[0][-1] not in _NAMES else None


def _offer_joined(
    search: ShrinkSearch, body: EditableBody, place: Place, row: Sequence[int], size: int
) -> bool:
    """Offer the event at `place` joined with the first `size` of those in `row`."""
    at, path = place
    sources = (body.source((each, path)) for each in (at, *row[:size]))
    whole = '"' + "".join(source[1:-1] for source in sources) + '"'
    texts = {at: body.replaced(at, path, whole)}
    return search.offer_one(body.saying(texts, without=row[:size]))
