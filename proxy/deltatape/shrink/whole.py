"""Passes over what is not said in events: whole exchanges, heads, times, reads, codings."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from deltatape.diagnose.decode import decode
from deltatape.model.exchange import BROKEN_CHUNKS, Exchange, Read
from deltatape.shrink.body import Body, with_reads
from deltatape.shrink.deletion import fewest
from deltatape.shrink.search import Search

STEP_NS = 1_000_000
"""Between two reads, where times do not matter."""
_KEPT = frozenset({b"content-type", b"content-length", b"content-encoding", b"transfer-encoding"})
"""Fields that say how a body is to be read."""

_Change = Callable[[Exchange], Exchange]


def fewer_exchanges(search: Search) -> None:
    """Leaves whole exchanges out."""
    if len(search.numbers) > 1:
        fewest(search.numbers, search.offer_only)


def plainer(search: Search) -> None:
    """Makes answers plain: not coded, an event a read, at even times, without remarks.

    All of that at once; where something of it matters, one after the other.
    """
    for number in search.numbers:
        exchange = search.get(number)
        if exchange is not None and not _made(search, exchange, _all):
            for change in _PLAIN:
                _made(search, search.get(number) or exchange, change)


def fewer_fields_of_heads(search: Search) -> None:
    """Leaves fields of heads out that do not say how the body is to be read."""
    for number in search.numbers:
        exchange = search.get(number)
        if exchange is not None and exchange.response is not None:
            fields = exchange.response.headers
            loose = [at for at, (name, _) in enumerate(fields) if name.lower() not in _KEPT]
            fewest(loose, partial(_offer_fields, search, exchange, loose))
        if exchange is not None and exchange.trailers:
            search.offer_one(replace(search.get(number) or exchange, trailers=()))


def _offer_fields(
    search: Search, exchange: Exchange, loose: Sequence[int], kept: Sequence[int]
) -> bool:
    """Offers the head without those of the `loose` fields that are not `kept`."""
    response = exchange.response
    assert response is not None
    gone = frozenset(loose) - frozenset(kept)
    headers = tuple(field for at, field in enumerate(response.headers) if at not in gone)
    return search.offer_one(replace(exchange, response=replace(response, headers=headers)))


def _made(search: Search, exchange: Exchange, change: _Change) -> bool:
    changed = change(exchange)
    return changed == exchange or search.offer_one(changed, smaller=False)


def _all(exchange: Exchange) -> Exchange:
    for change in _PLAIN:
        exchange = change(exchange)
    return exchange


def _bare(exchange: Exchange) -> Exchange:
    """Without what a recorder noted beside the wire, and without what came before the answer."""
    notes = tuple(note for note in exchange.notes if note.text.startswith(BROKEN_CHUNKS))
    return replace(exchange, informational=(), delivered=(), idle_ns=(), notes=notes)


def _uncoded(exchange: Exchange) -> Exchange:
    """With the body as its content-coding says."""
    response, stream = exchange.response, decode(exchange)
    if response is None or stream.body == exchange.body or stream.anomalies:
        return exchange
    headers = tuple(field for field in response.headers if field[0].lower() != b"content-encoding")
    t_ns = exchange.reads[-1].t_ns
    read = Read(t_ns=t_ns, data=stream.body, boundaries=None, line=None)
    return with_reads(replace(exchange, response=replace(response, headers=headers)), (read,))


def _by_event(exchange: Exchange) -> Exchange:
    """With each event in a read, and an HTTP chunk, of its own."""
    body = Body.of(exchange)
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
    """With reads at even times."""
    if exchange.response is None:
        return exchange
    start = exchange.response.t_ns
    reads = tuple(
        read._replace(t_ns=start + at * STEP_NS) for at, read in enumerate(exchange.reads, 1)
    )
    end = exchange.end and replace(exchange.end, t_ns=start + (len(reads) + 1) * STEP_NS)
    return replace(exchange, reads=reads, end=end)


_PLAIN: tuple[_Change, ...] = (_bare, _uncoded, _by_event, _evenly)
