"""The passes, from whole exchanges down to characters, and their order.

Strategy: passes that remove much in few runs come first. The coarse passes are repeated until none
of them changes anything; then come the fine ones, and all again as long as something changed.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple, TypeAlias, TypeVar

from deltatape.diagnose.decode import decode
from deltatape.model.exchange import BROKEN_CHUNKS, Exchange, Read
from deltatape.shrink.body import EditableBody, Path, Place, from_behind, with_reads
from deltatape.shrink.search import BudgetExhaustedError, ShrinkSearch, fewest, largest, patient
from deltatape.wire.json_edit import drop, put, quoted
from deltatape.wire.json_value import parse

_T = TypeVar("_T")


def _leave_out(
    search: ShrinkSearch, items: Sequence[_T], without: Callable[[frozenset[_T]], Exchange]
) -> None:
    """Remove as many `items` of an exchange as possible; `without` builds it without some."""
    every = frozenset(items)
    fewest(items, lambda kept: search.offer_one(without(every - frozenset(kept))))


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


# Passes over whole exchanges, heads, times, reads and codings.

STEP_NS = 1_000_000
"""The time between two reads, if times do not matter."""
_KEPT = frozenset({b"content-type", b"content-length", b"content-encoding", b"transfer-encoding"})
"""Header fields that a client needs to read the body."""
_Change = Callable[[Exchange], Exchange]


def fewer_exchanges(search: ShrinkSearch) -> None:
    """Remove whole exchanges."""
    if len(search.numbers) > 1:
        fewest(search.numbers, search.offer_only)


def plainer(search: ShrinkSearch) -> None:
    """Simplify answers: uncoded, one event per read, at even times, without notes.

    Tries all changes at once, then, if that is refused, one after the other.
    """
    for number in search.numbers:
        exchange = search.get(number)
        if exchange is not None and not _offer_changed(search, exchange, _PLAIN):
            for change in _PLAIN:
                _offer_changed(search, search.get(number) or exchange, [change])


def fewer_fields_of_heads(search: ShrinkSearch) -> None:
    """Remove header fields that a client does not need to read the body."""
    for number in search.numbers:
        exchange = search.get(number)
        if exchange is not None and exchange.response is not None:
            fields = exchange.response.headers
            loose = [at for at, (name, _) in enumerate(fields) if name.lower() not in _KEPT]
            _leave_out(search, loose, partial(_without_fields, exchange))
        if exchange is not None and exchange.trailers:
            search.offer_one(replace(search.get(number) or exchange, trailers=()))


def _without_fields(exchange: Exchange, gone: Iterable[int]) -> Exchange:
    response = exchange.response
    assert response is not None
    headers = tuple(field for at, field in enumerate(response.headers) if at not in gone)
    return replace(exchange, response=replace(response, headers=headers))


def _offer_changed(search: ShrinkSearch, exchange: Exchange, changes: Iterable[_Change]) -> bool:
    changed = exchange
    for change in changes:
        changed = change(changed)
    return changed == exchange or search.offer_one(changed, smaller=False)


def _without_notes(exchange: Exchange) -> Exchange:
    """Return the exchange without notes of the recorder, and without 1xx heads."""
    notes = tuple(note for note in exchange.notes if note.text.startswith(BROKEN_CHUNKS))
    return replace(exchange, informational=(), delivered=(), idle_ns=(), notes=notes)


def _uncoded(exchange: Exchange) -> Exchange:
    """Return the exchange without content-coding."""
    response, stream = exchange.response, decode(exchange)
    if response is None or stream.body == exchange.body or stream.anomalies:
        return exchange
    headers = tuple(field for field in response.headers if field[0].lower() != b"content-encoding")
    t_ns = exchange.reads[-1].t_ns
    read = Read(t_ns=t_ns, data=stream.body, boundaries=None, line=None)
    return with_reads(replace(exchange, response=replace(response, headers=headers)), (read,))


def _by_event(exchange: Exchange) -> Exchange:
    """Return the exchange with each event in its own read and HTTP chunk."""
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


def _at_even_times(exchange: Exchange) -> Exchange:
    """Return the exchange with reads at even times."""
    if exchange.response is None:
        return exchange
    start = exchange.response.t_ns
    reads = tuple(
        read._replace(t_ns=start + at * STEP_NS) for at, read in enumerate(exchange.reads, 1)
    )
    end = exchange.end and replace(exchange.end, t_ns=start + (len(reads) + 1) * STEP_NS)
    return replace(exchange, reads=reads, end=end)


_PLAIN: tuple[_Change, ...] = (_without_notes, _uncoded, _by_event, _at_even_times)


# Passes over events: kinds, single ones, neighbours, and joined pieces.

_NAMES = frozenset(
    {"call_id", "content_index", "contentBlockIndex", "id", "index", "item_id", "name"}
    | {"object", "output_index", "role", "tool_call_id", "type"}
)
"""Keys whose values tell which block, item or call an event belongs to."""
_WIDEST = 4
"""The longest run of events to remove together; longer blocks are removed by their kind."""
_MOST_KINDS = 100
_PATIENCE = 100
"""After this many failed removals in a row, other passes come first."""
_FEW = 60
"""Runs of neighbours are tried only if there are at most this many events."""

Label: TypeAlias = tuple[str, ...]


def fewer_kinds(search: ShrinkSearch) -> None:
    """Remove all events of a kind at once: of a block, of an item, of a type, of a form."""
    for number in search.numbers:
        for label in _labels(search, number):
            body = search.body(number)
            if body is not None:
                kept = [at for at in range(len(body.texts)) if label not in labels(body, at)]
                if 0 < len(kept) < len(body.texts):
                    search.offer_one(body.with_events(kept))


def fewer_events(search: ShrinkSearch) -> None:
    """Remove events, as many at once as possible; give up if nearly all are needed."""
    for number in search.numbers:
        body = search.body(number)
        if body is not None:
            offer = patient(partial(_offer_kept, search, body), _PATIENCE)
            fewest(range(len(body.texts)), offer)


def fewer_single_events(search: ShrinkSearch) -> None:
    """Remove single events without giving up."""
    for number in search.numbers:
        body = search.body(number)
        if body is not None:
            fewest(range(len(body.texts)), partial(_offer_kept, search, body))


def _offer_kept(search: ShrinkSearch, body: EditableBody, kept: Sequence[int]) -> bool:
    return search.offer_one(body.with_events(kept))


def fewer_neighbours(search: ShrinkSearch) -> None:
    """Remove adjacent events that need each other, such as a block and its end."""
    for number in search.numbers:
        for width in range(2, _WIDEST + 1):
            at = 0
            while (body := search.body(number)) and at + width <= len(body.texts) <= _FEW:
                kept = [place for place in range(len(body.texts)) if not at <= place < at + width]
                if not search.offer_one(body.with_events(kept)):
                    at += 1


def join_pieces(search: ShrinkSearch) -> None:
    """Join adjacent pieces of one text into one event, as many as possible."""
    for number in search.numbers:
        at = 0
        while (body := search.body(number)) and at + 1 < len(body.texts):
            path, following = _joinable(body, at)
            if following:
                offer = partial(_offer_joined, search, body, (at, path), following)
                largest(len(following), offer, len(following))
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


def _labels(search: ShrinkSearch, number: int) -> Sequence[Label]:
    """Return the properties shared by several events but not by all; the most frequent first."""
    body = search.body(number)
    if body is None:
        return ()
    total = len(body.texts)
    counts = Counter(label for at in range(total) for label in sorted(labels(body, at)))
    common = [label for label, count in counts.most_common() if 1 < count < total]
    return common[:_MOST_KINDS]


def _joinable(body: EditableBody, at: int) -> tuple[Path, Sequence[int]]:
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
    search: ShrinkSearch, body: EditableBody, place: Place, following: Sequence[int], size: int
) -> bool:
    """Offer the event at `place` joined with the first `size` of `following`."""
    at, path = place
    sources = (body.source((each, path)) for each in (at, *following[:size]))
    joined = '"' + "".join(source[1:-1] for source in sources) + '"'
    texts = {at: put(body.texts[at], path, joined)}
    return search.offer_one(body.with_texts(texts, without=following[:size]))


# Passes over the parts of events: members and elements, numbers, and bytes in between.

_STRING_OR_BLANKS = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+")|[ \t\r\n]+', re.DOTALL)
"""JSON strings, as group 1, and white space."""
_MOST_BYTES = 4096
"""The longest body without events to shrink byte by byte."""


def fewer_columns(search: ShrinkSearch) -> None:
    """Remove members and elements from all events that have them, the outer ones first."""
    for number in search.numbers:
        depth = 1
        while body := search.body(number):
            found = list(dict.fromkeys(path for _, path in _places(body, depth)))
            if not found:
                break
            columns = [path for path in found if not _is_type(search, path)]
            _leave_out(search, columns, body.without_paths)
            depth += 1


def fewer_members(search: ShrinkSearch) -> None:
    """Remove members and elements from single events, the outer ones first."""
    for number in search.numbers:
        depth = 1
        while body := search.body(number):
            found = list(_places(body, depth))
            if not found:
                break
            places = [(at, path) for at, path in found if not _is_type(search, path)]
            _leave_out(search, places, body.without_values)
            depth += 1


def fewer_blanks(search: ShrinkSearch) -> None:
    """Remove spaces between the tokens of JSON."""
    for number in search.numbers:
        if body := search.body(number):
            compact = {
                at: _STRING_OR_BLANKS.sub(lambda match: match[1] or "", text)
                for at, text in enumerate(body.texts)
                if body.values[at] is not None
            }
            spaced = [at for at, text in compact.items() if text != body.texts[at]]

            def without_blanks(
                events: Iterable[int],
                body: EditableBody = body,
                compact: Mapping[int, str] = compact,
            ) -> Exchange:
                return body.with_texts({at: compact[at] for at in events})

            _leave_out(search, spaced, without_blanks)


def smaller_numbers(search: ShrinkSearch) -> None:
    """Set numbers to zero."""
    for number in search.numbers:
        if body := search.body(number):
            places = [
                (at, path)
                for at, value in enumerate(body.values)
                for path, leaf in leaves(value)
                if isinstance(leaf, int | float) and not isinstance(leaf, bool) and leaf
            ]
            _leave_out(search, places, partial(body.with_source, source="0"))


def less_between(search: ShrinkSearch) -> None:
    """Remove bytes of no event: comments, blank lines, a body without events."""
    for number in search.numbers:
        if body := search.body(number):
            lines = body.lines_between()
            _leave_out(search, lines, body.without_bytes)
        if (body := search.body(number)) and not body.texts:
            size = len(body.exchange.body)
            singly = [(at, at + 1) for at in range(min(size, _MOST_BYTES))]
            _leave_out(search, singly, body.without_bytes)


def _is_type(search: ShrinkSearch, path: Path) -> bool:
    """Return whether a member names an event's type: valid streams keep it, needed or not."""
    return search.sound and path[-1] == "type"


def _places(body: EditableBody, depth: int) -> Iterator[Place]:
    """Yield all members and elements of events at a depth, from 1."""
    for at, value in enumerate(body.values):
        yield from ((at, path) for path in members(value, depth))


# Passes over texts: strings in the JSON of events, JSON in such strings, data that is not JSON.
#
# Equal texts are changed together: the same id is in every event, and the event that ends a call
# repeats its arguments.

_FIXED = frozenset({"finish_reason", "finishReason", "name", "object", "role", "status"}) | {
    "stop_reason",
    "stopReason",
    "type",
}
"""Keys whose values are protocol constants, which cannot be shortened."""
_CHARACTER = re.compile(r"\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL)
"""A character in the source of a JSON string."""
_WORD = re.compile(r"[A-Za-z0-9_.:/-]{2,}")
_DONE = "[DONE]"
_EMPTY = '""'


class _Text(NamedTuple):
    """A text with all its places in a body."""

    body: EditableBody
    source: str
    """The text as a JSON string."""
    places: tuple[Place, ...]

    def offer(self, search: ShrinkSearch, source: str) -> bool:
        """Try the body with another text; return whether it still fails."""
        return search.offer_one(self.body.with_source(self.places, source))

    def offer_value(self, search: ShrinkSearch, value: str) -> bool:
        """Try another text, escaped in the same way."""
        return self.offer(search, quoted(value, plain=self.source.isascii()))


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
        first = search.body(number)
        for at, data in enumerate(first.texts if first else ()):
            body = search.body(number)
            if body and data != _DONE and parse(data).error is not None:

                def offer(kept: Sequence[str], body: EditableBody = body, at: int = at) -> bool:
                    return search.offer_one(body.with_texts({at: "".join(kept)}))

                fewest(data, offer)


def _sources(search: ShrinkSearch, number: int) -> Sequence[str]:
    """Return the texts of a body as JSON, each once, the longest first."""
    body = search.body(number)
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
    body = search.body(number)
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
        characters = _CHARACTER.findall(inside)
        fewest(characters, lambda kept: text.offer(search, f'"{"".join(kept)}"'))


def _shorten_json(search: ShrinkSearch, text: _Text, value: str) -> None:
    """Shorten a text that is JSON itself by members and elements, the outer ones first."""
    depth = 1
    while paths := [*members(parse(value).value, depth)]:
        every = frozenset(paths)

        def offer(kept: Sequence[Path], value: str = value, every: frozenset[Path] = every) -> bool:
            return text.offer_value(search, _without_paths(value, every - frozenset(kept)))

        kept = fewest(paths, offer)
        value = _without_paths(value, every - frozenset(kept))
        depth += 1
    for path, leaf in [*leaves(parse(value).value)]:
        shorter = put(value, path, _EMPTY) if path and isinstance(leaf, str) else value
        if shorter != value and text.offer_value(search, shorter):
            value = shorter


def _without_paths(value: str, paths: frozenset[Path]) -> str:
    """Return a JSON text without some members and elements of one depth."""
    for path in sorted(paths, key=from_behind, reverse=True):
        value = drop(value, path)
    return value


class ShrinkPass(NamedTuple):
    """A way to make smaller tapes."""

    name: str
    """What it shrinks: `events`."""
    run: Callable[[ShrinkSearch], None]


COARSE = (
    ShrinkPass("exchanges", fewer_exchanges),
    ShrinkPass("kinds of events", fewer_kinds),
    ShrinkPass("events", fewer_events),
    ShrinkPass("adjacent events", fewer_neighbours),
    ShrinkPass("text fragments", join_pieces),
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


def shrink(search: ShrinkSearch, on_pass: Callable[[str], None]) -> bool:
    """Shrink the tape of `search` with all passes; return whether they completed.

    Args:
        search: holds the tape, at the end the smallest.
        on_pass: called with the name of each pass before it runs.
    """

    def run(passes: tuple[ShrinkPass, ...]) -> bool:
        before = search.exchanges
        for shrink_pass in passes:
            on_pass(shrink_pass.name)
            shrink_pass.run(search)
        return search.exchanges != before

    try:
        run((_FIRST,))
        while True:
            while run(COARSE):
                pass
            if not run(FINE):
                run((_FIRST,))  # some times were needed only by parts that are gone by now
                return True
    except BudgetExhaustedError:
        return False
