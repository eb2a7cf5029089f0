"""Cut, join, time and end the reads of a body: shared by all faults and variations.

Invariants: no read is empty; byte count, digest and `content-length` fit the reads; a cut body
announces a greater length, so that its framing shows the cut.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from deltatape.match.schedule import ReplayTempo
from deltatape.model.exchange import (
    End,
    EndReason,
    Exchange,
    Framing,
    HeaderValue,
    MaskedSpan,
    Read,
    watched,
)

_APART_NS = 100_000
_MOST_NS = 1_000_000_000


def refitted(
    exchange: Exchange,
    reads: Sequence[Read],
    *,
    reason: EndReason | None = None,
    t_ns: int | None = None,
) -> Exchange:
    """Return `exchange` with other reads, and an ending and a head that fit them.

    Args:
        exchange: any.
        reads: the new ones.
        reason: how it ends; None: as before.
        t_ns: when it ends; None: as long after its last read as before.
    """
    body = b"".join(read.data for read in reads)
    end = exchange.end
    if end is None and reason is not None:
        end = End(t_ns=0, reason=reason, bytes=0, sha256="", detail="", recorder={}, line=None)
        end = replace(end, t_ns=_last(exchange.reads, exchange.request.t_ns))
    if end is not None:
        lag_ns = max(end.t_ns - _last(exchange.reads, end.t_ns), 0)
        end = replace(
            end,
            t_ns=_last(reads, end.t_ns) + lag_ns if t_ns is None else t_ns,
            reason=reason or end.reason,
            bytes=len(body),
            sha256=hashlib.sha256(body).hexdigest(),
        )
    complete = end is None or end.reason is EndReason.COMPLETE
    changed = replace(exchange, reads=tuple(reads), delivered=(), end=end)
    response = changed.response
    if response is None or response.framing is Framing.NONE:
        return changed
    headers = tuple(
        (name, _content_length(value, len(body), complete=complete))
        if name.lower() == b"content-length"
        else (name, value)
        for name, value in response.headers
    )
    return replace(changed, response=replace(response, headers=headers))


def _last(reads: Sequence[Read], otherwise: int) -> int:
    return max((read.t_ns for read in reads), default=otherwise)


def _content_length(value: HeaderValue, size: int, *, complete: bool) -> bytes:
    """Return the length to announce for a body of `size` bytes: more if it is cut."""
    announced = int(value) if isinstance(value, bytes) and value.isdigit() else 0
    return b"%d" % (size if complete else max(announced, size + 1))


def truncated(exchange: Exchange, size: int, reason: EndReason) -> Exchange:
    """Return `exchange` with the first `size` bytes of its body, ended there for `reason`.

    Trailers are removed, chunk boundaries stay.
    """
    reads = [read for read in _cut_reads(exchange.reads, size) if read.data]
    t_ns = _last(reads, exchange.response.t_ns if exchange.response else exchange.request.t_ns)
    return replace(refitted(exchange, reads, reason=reason, t_ns=t_ns), trailers=())


def _cut_reads(reads: Iterable[Read], size: int) -> Iterator[Read]:
    left = size
    for read in reads:
        if len(read.data) <= left:
            yield read
        else:
            yield split(read, left)[0]
        left = max(left - len(read.data), 0)


def split(read: Read, at: int) -> tuple[Read, Read]:
    """Split a read after `at` bytes, with the chunks that end there or just after."""
    bounds = read.boundaries
    left = right = None
    if bounds is not None:
        left = tuple(bound for bound in bounds if bound <= at)
        right = tuple(bound - at for bound in bounds if bound > at)
    return (
        read._replace(data=read.data[:at], boundaries=left, masked=_masked(read.masked, 0, at)),
        read._replace(
            data=read.data[at:], boundaries=right, masked=_masked(read.masked, at, len(read.data))
        ),
    )


def _masked(spans: Iterable[MaskedSpan], start: int, end: int) -> tuple[MaskedSpan, ...]:
    """Return the masked spans within `[start, end)`."""
    within = ((max(a, start) - start, min(b, end) - start, hash_) for a, b, hash_ in spans)
    return tuple(span for span in within if span[0] < span[1])


def recut(exchange: Exchange, cuts: Iterable[int]) -> Exchange:
    """Return `exchange` with its body in other reads, each an HTTP chunk if it has chunks.

    A piece arrives when its last byte did. Pieces of one read are sent a moment apart, so that they
    arrive separately.

    Args:
        exchange: stays as it is.
        cuts: offsets in the body where to cut; those outside it are ignored.
    """
    body = exchange.body
    edges = sorted({0, len(body), *(cut for cut in cuts if 0 < cut < len(body))})
    spans = [(start, end) for start, end in pairwise(edges) if start < end]
    chunked = is_chunked(exchange)
    ends = list(accumulate(len(read.data) for read in exchange.reads))
    masked = list(_masked_in_body(exchange))
    apart_ns = min(_APART_NS, _MOST_NS // max(len(spans), 1))
    reads: list[Read] = []
    joined = False
    for start, end in spans:
        place = bisect_left(ends, end)
        arrival_ns = exchange.reads[place].t_ns
        previous_ns = reads[-1].t_ns if reads else arrival_ns
        reads.append(
            Read(
                t_ns=max(arrival_ns, previous_ns + (apart_ns if joined else 0)),
                data=body[start:end],
                boundaries=(end - start,) if chunked else None,
                line=None,
                masked=_masked(masked, start, end),
            )
        )
        joined = ends[place] != end
    return refitted(exchange, reads)


def _masked_in_body(exchange: Exchange) -> Iterator[MaskedSpan]:
    start = 0
    for read in exchange.reads:
        yield from ((start + a, start + b, hash_) for a, b, hash_ in read.masked)
        start += len(read.data)


def is_chunked(exchange: Exchange) -> bool:
    """Return whether the response has HTTP chunks."""
    return exchange.response is not None and exchange.response.framing is Framing.CHUNKED


def is_complete(exchange: Exchange) -> bool:
    """Return whether the response ended as its framing announced."""
    return exchange.end is not None and exchange.end.reason is EndReason.COMPLETE


def event_end(body: bytes, end: int) -> int:
    """Return the end of an event whose span may stop between CR and LF."""
    return end + 1 if body[end - 1 : end + 1] == b"\r\n" else end


def rechunked(exchange: Exchange, ends: Sequence[int]) -> Exchange:
    """Return `exchange` with HTTP chunks that end at these offsets of the body."""
    start, reads = 0, []
    for read in exchange.reads:
        stop = start + len(read.data)
        bounds = tuple(end - start for end in ends if start < end <= stop)
        reads.append(read._replace(boundaries=bounds))
        start = stop
    return replace(exchange, reads=tuple(reads))


def delayed(exchange: Exchange, offset: int, wait_ns: int) -> Exchange:
    """Return `exchange` with a wait before the byte at `offset` of its body, or before its end."""
    reads: list[Read] = []
    start = 0
    for read in exchange.reads:
        stop = start + len(read.data)
        if start < offset < stop:
            first, rest = split(read, offset - start)
            reads += [first, rest._replace(t_ns=rest.t_ns + wait_ns)]
        else:
            reads.append(read._replace(t_ns=read.t_ns + (wait_ns if start >= offset else 0)))
        start = stop
    end = exchange.end
    t_ns = None if end is None else end.t_ns + wait_ns
    return watched(refitted(exchange, reads, t_ns=t_ns))


def at_tempo(exchange: Exchange, tempo: ReplayTempo) -> Exchange:
    """Return `exchange` with the times at which a player of this tempo plays it.

    To be done before faults and cuts, which then keep their own times: played with the tempo
    `instant`, a stall of five seconds would take no time.
    """
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
