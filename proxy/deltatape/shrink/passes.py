"""The passes, from whole exchanges down to characters, and their order.

Strategy: what takes much away with few runs comes first. The coarse passes are made until none of
them changes anything; then come the fine ones, and all again as long as something changed.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from deltatape.diagnose.decode import decode
from deltatape.model.exchange import BROKEN_CHUNKS, Exchange, Read
from deltatape.shrink.body import EditableBody, Path, Place, from_behind, with_reads
from deltatape.shrink.events import (
    fewer_events,
    fewer_kinds,
    fewer_neighbours,
    fewer_single_events,
    joined,
    leaves,
)
from deltatape.shrink.fields import (
    fewer_blanks,
    fewer_columns,
    fewer_members,
    less_between,
    members,
    smaller_numbers,
)
from deltatape.shrink.search import BudgetExhaustedError, ShrinkSearch, fewest
from deltatape.wire.json_edit import drop, put, quoted
from deltatape.wire.json_value import parse

# Passes over what is not said in events: whole exchanges, heads, times, reads, codings.

STEP_NS = 1_000_000
"""Between two reads, where times do not matter."""
_KEPT = frozenset({b"content-type", b"content-length", b"content-encoding", b"transfer-encoding"})
"""Fields that say how a body is to be read."""
_Change = Callable[[Exchange], Exchange]


def fewer_exchanges(search: ShrinkSearch) -> None:
    """Remove whole exchanges."""
    if len(search.numbers) > 1:
        fewest(search.numbers, search.offer_only)


def plainer(search: ShrinkSearch) -> None:
    """Simplify answers: uncoded, one event per read, at even times, without notes.

    All of that at once; where something of it matters, one after the other.
    """
    for number in search.numbers:
        exchange = search.get(number)
        if exchange is not None and not _made(search, exchange, _all):
            for change in _PLAIN:
                _made(search, search.get(number) or exchange, change)


def fewer_fields_of_heads(search: ShrinkSearch) -> None:
    """Remove head fields that do not say how to read the body."""
    for number in search.numbers:
        exchange = search.get(number)
        if exchange is not None and exchange.response is not None:
            fields = exchange.response.headers
            loose = [at for at, (name, _) in enumerate(fields) if name.lower() not in _KEPT]
            fewest(loose, partial(_offer_fields, search, exchange, loose))
        if exchange is not None and exchange.trailers:
            search.offer_one(replace(search.get(number) or exchange, trailers=()))


def _offer_fields(
    search: ShrinkSearch, exchange: Exchange, loose: Sequence[int], kept: Sequence[int]
) -> bool:
    """Offer the head without those of the `loose` fields that are not `kept`."""
    response = exchange.response
    assert response is not None
    gone = frozenset(loose) - frozenset(kept)
    headers = tuple(field for at, field in enumerate(response.headers) if at not in gone)
    return search.offer_one(replace(exchange, response=replace(response, headers=headers)))


def _made(search: ShrinkSearch, exchange: Exchange, change: _Change) -> bool:
    changed = change(exchange)
    return changed == exchange or search.offer_one(changed, smaller=False)


def _all(exchange: Exchange) -> Exchange:
    for change in _PLAIN:
        exchange = change(exchange)
    return exchange


def _bare(exchange: Exchange) -> Exchange:
    """Return it without notes of the recorder, and without 1xx heads."""
    notes = tuple(note for note in exchange.notes if note.text.startswith(BROKEN_CHUNKS))
    return replace(exchange, informational=(), delivered=(), idle_ns=(), notes=notes)


def _uncoded(exchange: Exchange) -> Exchange:
    """Return it without content-coding."""
    response, stream = exchange.response, decode(exchange)
    if response is None or stream.body == exchange.body or stream.anomalies:
        return exchange
    headers = tuple(field for field in response.headers if field[0].lower() != b"content-encoding")
    t_ns = exchange.reads[-1].t_ns
    read = Read(t_ns=t_ns, data=stream.body, boundaries=None, line=None)
    return with_reads(replace(exchange, response=replace(response, headers=headers)), (read,))


def _by_event(exchange: Exchange) -> Exchange:
    """Return it with each event in a read, and an HTTP chunk, of its own."""
    body = EditableBody.of(exchange)
    if body is None or any(read.masked for read in exchange.reads):
        return exchange
    cuts = sorted({0, *body.ends, len(exchange.body)})
    return with_reads(
        exchange,
        tuple(
            Read(t_ns=exchange.reads[0].t_ns, data=data, boundaries=None, line=None)
            for data in (exchange.body[start:end] for start, end in pairwise(cuts))
        ),
    )


def _evenly(exchange: Exchange) -> Exchange:
    """Return it with reads at even times."""
    if exchange.response is None:
        return exchange
    start = exchange.response.t_ns
    reads = tuple(
        read._replace(t_ns=start + at * STEP_NS) for at, read in enumerate(exchange.reads, 1)
    )
    end = exchange.end and replace(exchange.end, t_ns=start + (len(reads) + 1) * STEP_NS)
    return replace(exchange, reads=reads, end=end)


_PLAIN: tuple[_Change, ...] = (_bare, _uncoded, _by_event, _evenly)


# Passes over texts: strings in the JSON of events, JSON in such strings, data that is not JSON.
#
# A text that is there several times is one text: the pieces of a call, put together, come again in
# the events that end it, and an id stands in each event.

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
    """A text, and all its places in a body."""

    body: EditableBody
    source: str
    """As JSON."""
    places: tuple[Place, ...]

    def offer(self, search: ShrinkSearch, source: str) -> bool:
        """Offer another text instead."""
        return search.offer_one(self.body.putting(dict.fromkeys(self.places, source)))


def shorter_texts(search: ShrinkSearch) -> None:
    """Shorten texts: to nothing, or by parts."""
    for number in search.numbers:
        for source in _sources(search, number):
            text = _text(search, number, source)
            if text is not None and not text.offer(search, _EMPTY):
                _shorten(search, text)


def shorter_data(search: ShrinkSearch) -> None:
    """Shorten event data that is not JSON."""
    for number in search.numbers:
        exchange = search.get(number)
        first = EditableBody.of(exchange) if exchange else None
        for at, data in enumerate(first.texts if first else ()):
            now = search.get(number)
            body = EditableBody.of(now) if now else None
            if body and data != _DONE and parse(data).error is not None:
                fewest(data, partial(_offer_data, search, body, at))


def _sources(search: ShrinkSearch, number: int) -> Sequence[str]:
    """Return the texts of a body as JSON, each once, the longest first."""
    exchange = search.get(number)
    body = EditableBody.of(exchange) if exchange else None
    if body is None:
        return ()
    found = {body.source(place): None for place in _texts(body)}
    return sorted((source for source in found if source != _EMPTY), key=len, reverse=True)


def _texts(body: EditableBody) -> Sequence[Place]:
    return [
        (at, path)
        for at, value in enumerate(body.values)
        for path, leaf in leaves(value)
        if isinstance(leaf, str) and path and path[-1] not in _FIXED
    ]


def _text(search: ShrinkSearch, number: int, source: str) -> _Text | None:
    exchange = search.get(number)
    body = EditableBody.of(exchange) if exchange else None
    if body is None:
        return None
    places = tuple(place for place in _texts(body) if body.source(place) == source)
    return _Text(body, source, places) if places else None


def _shorten(search: ShrinkSearch, text: _Text) -> None:
    inside = text.source[1:-1]
    value = parse(text.source).value
    inner = parse(value).value if isinstance(value, str) else None
    if isinstance(value, str) and isinstance(inner, dict | list):
        _shorten_json(search, text, value)
    elif not (_WORD.fullmatch(inside) and text.offer(search, f'"{inside[0]}"')):
        fewest(_CHARACTER.findall(inside), partial(_offer_characters, search, text))


def _offer_characters(search: ShrinkSearch, text: _Text, kept: Sequence[str]) -> bool:
    return text.offer(search, f'"{"".join(kept)}"')


def _shorten_json(search: ShrinkSearch, text: _Text, value: str) -> None:
    """Shorten a text that is JSON itself by members and elements, the outer ones first."""
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
    search: ShrinkSearch, text: _Text, value: str, paths: Sequence[Path], kept: Sequence[Path]
) -> bool:
    shorter = _without(value, frozenset(paths) - frozenset(kept))
    return text.offer(search, _quoted(text, shorter))


def _without(value: str, paths: frozenset[Path]) -> str:
    """Return a JSON text without some members and elements of one depth."""
    for path in sorted(paths, key=from_behind, reverse=True):
        value = drop(value, path)
    return value


def _quoted(text: _Text, value: str) -> str:
    return quoted(value, plain=text.source.isascii())


def _offer_data(search: ShrinkSearch, body: EditableBody, at: int, kept: Sequence[str]) -> bool:
    return search.offer_one(body.saying({at: "".join(kept)}))


class ShrinkPass(NamedTuple):
    """A way to make smaller tapes."""

    name: str
    """What it is about: `events`."""
    run: Callable[[ShrinkSearch], None]


COARSE = (
    ShrinkPass("exchanges", fewer_exchanges),
    ShrinkPass("kinds of events", fewer_kinds),
    ShrinkPass("events", fewer_events),
    ShrinkPass("adjacent events", fewer_neighbours),
    ShrinkPass("text fragments", joined),
)
FINE = (
    ShrinkPass("headers", fewer_fields_of_heads),
    ShrinkPass("bytes between events", less_between),
    ShrinkPass("fields", fewer_columns),
    ShrinkPass("fields of single events", fewer_members),
    ShrinkPass("texts", shorter_texts),
    ShrinkPass("data", shorter_data),
    ShrinkPass("numbers", smaller_numbers),
    ShrinkPass("whitespace", fewer_blanks),
    ShrinkPass("single events", fewer_single_events),
)
_FIRST = ShrinkPass("times and reads", plainer)


def shrink(search: ShrinkSearch, tell: Callable[[str], None]) -> bool:
    """Shrink the tape of `search` with all passes; return whether they completed.

    Args:
        search: holds the tape, also in the end.
        tell: gets the name of each pass before it is made.
    """

    def made(passes: tuple[ShrinkPass, ...]) -> bool:
        before = search.exchanges
        for each in passes:
            tell(each.name)
            each.run(search)
        return search.exchanges != before

    try:
        made((_FIRST,))
        while True:
            while made(COARSE):
                pass
            if not made(FINE):
                made((_FIRST,))  # what is left may have kept times that only others needed
                return True
    except BudgetExhaustedError:
        return False
