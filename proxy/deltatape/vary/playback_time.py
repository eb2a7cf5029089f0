"""Convert recorded times to the times to play; faults added later keep their own.

A player whose tempo is `instant` has no time at all, and a stall of five seconds would be none in
it. So times are made first, faults and cutting come on top, and the player plays at `RECORDED`.
"""

from dataclasses import replace

from deltatape.match.schedule import ReplayTempo
from deltatape.model.exchange import Exchange, watched


def at_tempo(exchange: Exchange, tempo: ReplayTempo) -> Exchange:
    """Return `exchange` with the times at which a player of this tempo plays it."""
    if tempo == ReplayTempo():
        return exchange
    start = exchange.request.t_end_ns or exchange.request.t_ns
    response, end = exchange.response, exchange.end
    known = [head.t_ns for head in exchange.informational]
    known += [response.t_ns] if response else []
    known += [read.t_ns for read in exchange.reads]
    known += [end.t_ns] if end else []
    waits = tempo.waits(instant - start for instant in known)
    times = [start + wait for wait in waits]
    heads = len(exchange.informational)
    first = heads + (1 if response else 0)
    played = replace(
        exchange,
        informational=tuple(
            replace(head, t_ns=t_ns)
            for head, t_ns in zip(exchange.informational, times, strict=False)
        ),
        response=replace(response, t_ns=times[heads]) if response else None,
        reads=tuple(
            read._replace(t_ns=t_ns)
            for read, t_ns in zip(exchange.reads, times[first:], strict=False)
        ),
        end=replace(end, t_ns=times[-1]) if end else None,
        delivered=(),
    )
    return watched(played)
