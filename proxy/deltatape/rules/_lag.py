"""How far the client lagged behind the upstream, by the two clocks of the tape."""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate

from deltatape.model.exchange import Exchange


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """The client took byte number `offset` at `end_ns`; it had been there since `start_ns`."""

    start_ns: int
    end_ns: int
    offset: int
    line: int | None
    """Of the read that brought it."""


def lags(exchange: Exchange) -> tuple[Lag, ...]:
    """A lag for every record of a delivery, in order."""
    if not exchange.delivered:
        return ()
    sizes = list(accumulate(len(read.data) for read in exchange.reads))
    found = []
    for each in exchange.delivered:
        at = bisect_left(sizes, max(1, each.bytes))
        if at < len(sizes):
            read = exchange.reads[at]
            lag = Lag(start_ns=read.t_ns, end_ns=each.t_ns, offset=each.bytes, line=read.line)
            found.append(lag)
    return tuple(found)
