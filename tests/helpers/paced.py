"""Recorded streams played at another pace: each event in a read of its own, and one long wait."""

from dataclasses import replace

from deltatape.diagnose.decode import decode
from deltatape.model.exchange import Exchange, Read
from helpers.taped import MS, idle_times

STEP_MS = 10


def paced(exchange: Exchange, after: int, wait_s: float, noise: bytes = b"") -> Exchange:
    """`exchange` had its events come `STEP_MS` apart, and `wait_s` pass in one place.

    Args:
        exchange: what was recorded.
        after: the number of the event before the wait; -1 waits for the first.
        wait_s: how long, in seconds.
        noise: what comes in the middle of the wait.
    """
    body, events = exchange.body, decode(exchange).events
    edges = [0, *(event.end for event in events[:-1]), len(body)]
    reads, t_ms = [], 0.0
    for number in range(len(events)):
        t_ms += STEP_MS
        if number == after + 1:
            t_ms += wait_s * 500
            reads += [_read(t_ms, noise)] if noise else []
            t_ms += wait_s * 500
        reads.append(_read(t_ms, body[edges[number] : edges[number + 1]]))
    assert exchange.end
    last_ns = round(t_ms * MS) + (round(wait_s * 1000) * MS if after == len(events) - 1 else 0)
    marks = (round(t_ns / MS) for t_ns in (*(read.t_ns for read in reads), last_ns))
    return replace(
        exchange,
        request=replace(exchange.request, t_ns=0, t_end_ns=0),
        sent=None,
        reads=tuple(reads),
        idle_ns=idle_times(*marks),
        end=replace(exchange.end, t_ns=last_ns, bytes=sum(len(read.data) for read in reads)),
    )


def _read(t_ms: float, data: bytes) -> Read:
    return Read(t_ns=round(t_ms * MS), data=data, boundaries=None, line=None)
