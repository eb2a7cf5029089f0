"""The effect of each fault on a plain exchange; None where it finds no place."""

from deltatape.model.exchange import EndReason, Exchange, Read
from deltatape.model.stream import Format
from deltatape.mutate import MutableEvent, MutableExchange
from deltatape.vary.failures import ProviderFailure, error_event
from deltatape.vary.fault_positions import AnswerPosition, AnswerPositions
from deltatape.vary.shape import delayed, is_chunked, recut, refitted, truncated

_NUL = b"\0"


def cut(
    exchange: Exchange, places: AnswerPositions, where: AnswerPosition, reason: EndReason
) -> Exchange | None:
    """End the answer at a place for `reason`; after all of the answer it is no cut."""
    offset = places.offset(where)
    if offset is None or (offset >= len(exchange.body) and reason is EndReason.COMPLETE):
        return None
    return truncated(exchange, offset, reason)


def stalled(
    exchange: Exchange, places: AnswerPositions, where: AnswerPosition, wait_ns: int | None
) -> Exchange | None:
    """Pause at a place for `wait_ns`, or for ever if it is None."""
    offset = places.offset(where)
    if offset is None:
        return None
    if wait_ns is None:
        return truncated(exchange, offset, EndReason.STOPPED)
    return delayed(exchange, offset, wait_ns)


def dripping(
    exchange: Exchange, places: AnswerPositions, where: AnswerPosition, *, size: int, wait_ns: int
) -> Exchange | None:
    """Send the answer from a place on in pieces of `size` bytes, `wait_ns` apart."""
    offset = places.offset(where)
    total = len(exchange.body)
    if offset is None or offset >= total:
        return None
    pieces = recut(exchange, _edges(exchange, offset, size))
    start, t_ns, reads = 0, 0, []
    for read in pieces.reads:
        due_ns = max(read.t_ns, t_ns + wait_ns) if start > offset else read.t_ns
        t_ns = due_ns
        reads.append(read._replace(t_ns=due_ns))
        start += len(read.data)
    return refitted(pieces, reads)


def _edges(exchange: Exchange, offset: int, size: int) -> list[int]:
    """Return where reads end up to an offset, and where pieces end after it."""
    at, found = 0, [*range(offset, len(exchange.body), size)]
    for read in exchange.reads:
        at += len(read.data)
        if at <= offset:
            found.append(at)
    return found


def failing(
    exchange: Exchange, places: AnswerPositions, where: AnswerPosition, failure: ProviderFailure
) -> Exchange | None:
    """Send an error event at a place between events, and nothing after it."""
    offset = places.border(where)
    form = places.analysis.stream.format
    if offset is None or form in (Format.JSON, Format.OTHER):
        return None
    data = error_event(places.analysis.reply.dialect, form, failure)
    before = exchange.body[:offset]
    if form is Format.JSON_ARRAY:
        opening = b"" if before.strip() else b"["
        separator = b"," if before.rstrip().endswith((b"}", b"]")) else b""
        data = opening + separator + data + b"]"
    kept = truncated(exchange, offset, EndReason.COMPLETE)
    t_ns = kept.end.t_ns if kept.end else 0
    bounds = (len(data),) if is_chunked(exchange) else None
    read = Read(t_ns=t_ns, data=data, boundaries=bounds, line=None)
    return refitted(kept, (*kept.reads, read), t_ns=t_ns)


def dropped(exchange: Exchange, places: AnswerPositions, where: AnswerPosition) -> Exchange | None:
    """Omit the event at a place."""
    draft, unit = _unit(exchange, places, where)
    if draft is None or unit is None:
        return None
    unit.removed = True
    return draft.result()


def doubled(exchange: Exchange, places: AnswerPositions, where: AnswerPosition) -> Exchange | None:
    """Send the event at a place twice."""
    draft, unit = _unit(exchange, places, where)
    if draft is None or unit is None:
        return None
    draft.add_after(unit, unit.like())
    return draft.result()


def swapped(exchange: Exchange, places: AnswerPositions, where: AnswerPosition) -> Exchange | None:
    """Swap the event at a place with the next one."""
    draft, unit = _unit(exchange, places, where)
    if draft is None or unit is None or unit is draft.units[-1]:
        return None
    follows = draft.units[draft.units.index(unit) + 1]
    draft.add_after(follows, unit.like())
    unit.removed = True
    return draft.result()


def corrupted(
    exchange: Exchange, places: AnswerPositions, where: AnswerPosition
) -> Exchange | None:
    """Replace a byte in the event at a place by NUL: invalid JSON, wrong checksums."""
    draft, unit = _unit(exchange, places, where)
    if draft is None or unit is None or unit.start is None:
        return None
    start, end = unit.data_span
    if start == end:
        return None
    offset = unit.start + start + places.choose(end - start)
    draft.edit(offset, offset + 1, _NUL)
    return draft.result()


def _unit(
    exchange: Exchange, places: AnswerPositions, where: AnswerPosition
) -> tuple[MutableExchange | None, MutableEvent | None]:
    """Return the event at a place, ready to be changed."""
    number = places.event(where)
    draft = MutableExchange.of(exchange)
    if number is None or draft is None:
        return None, None
    start = places.spans[number][0]
    return draft, next((unit for unit in draft.units if unit.start == start), None)
