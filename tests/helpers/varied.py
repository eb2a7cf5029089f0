"""Variations of recorded exchanges, and bodies under content-codings."""

import gzip
from dataclasses import replace
from functools import cache

from deltatape.model.exchange import Exchange
from deltatape.mutate import SeededChoices
from deltatape.vary._base import Variation
from deltatape.vary.coded_bodies import coded
from deltatape.vary.variation import VARIATIONS
from helpers.mutated import RECORDINGS, recorded
from helpers.taped import taped

STEMS = sorted(path.stem for path in RECORDINGS.glob("*.tape"))
TWO = ((10, b"data: 1\n\n"), (20, b"data: 2\n\n"))


@cache
def of(stem: str) -> Exchange:
    """The exchange of the recording of a dialect."""
    return recorded(stem)


def named(name: str) -> Variation:
    """The variation called so."""
    (found,) = (each for each in VARIATIONS if each.name == name)
    return found


def varied(name: str, exchange: Exchange, seed: int = 1) -> Exchange | None:
    """What the variation called `name` makes of `exchange`."""
    return named(name).make(exchange, SeededChoices(seed))


def made(name: str, exchange: Exchange, seed: int = 1) -> Exchange:
    """The same, where it has a place."""
    found = varied(name, exchange, seed)
    assert found is not None
    return found


def pieces(exchange: Exchange) -> list[bytes]:
    """What each read brought."""
    return [read.data for read in exchange.reads]


def gzipped(exchange: Exchange) -> Exchange:
    """The exchange, its body under gzip, flushed at every read."""
    found = coded(exchange, ("gzip",))
    assert found is not None
    return found


def with_fields(exchange: Exchange, *fields: tuple[bytes, bytes]) -> Exchange:
    """The exchange with more fields in its request's head."""
    request = exchange.request
    return replace(exchange, request=replace(request, headers=(*request.headers, *fields)))


def broken_gzip() -> Exchange:
    """An exchange whose coded body is cut, so that nobody can say what it is."""
    headers = ((b"Content-Encoding", b"gzip"),)
    return taped([(10, gzip.compress(b"data: 1\n\n")[:-9])], headers=headers)
