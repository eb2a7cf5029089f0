"""A mutable exchange: its events, and how changes map back to reads and times.

Bytes stay in the read that they came in (see `OffsetMap`). The count of bytes and the digest in
`end` are those of the new body, and so is a `content-length`.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple, Self

from deltatape.model.exchange import EndReason, Exchange, HeaderValue, Read, header, watched
from deltatape.mutate._units import MutableEvent, is_array, is_sse, units_of

_NO_CODING = frozenset({None, b"identity"})


# Edits of a body and where they move its bytes: into which read, chunk and masked span.
#
# An edit is a range of the body and what stands there instead; edits ascend and do not overlap.
# What is inserted at a border belongs to the left of it, but at the very beginning; of what
# replaces a range across a border, all belongs to the left.


class BodyEdit(NamedTuple):
    """Replace `[start, end)` of the body by `data`."""

    start: int
    end: int
    data: bytes


class OffsetMap:
    """Maps offsets of a body to those after edits."""

    def __init__(self, edits: Sequence[BodyEdit]) -> None:
        self._edits = edits
        self._places = [edit[:2] for edit in edits]
        grown = (len(data) - (end - start) for start, end, data in edits)
        self._grown = [0, *accumulate(grown)]

    def at(self, offset: int) -> int:
        """Return the new offset of `offset`."""
        if offset == 0:
            return 0
        done = bisect_right(self._places, (offset, offset))
        if done and self._places[done - 1][1] > offset:
            start, _, data = self._edits[done - 1]
            return start + self._grown[done - 1] + len(data)
        return offset + self._grown[done]

    def read(self, read: Read, start: int, body: bytes) -> Read | None:
        """Return the read that began at `start`; None if nothing of it is left.

        Args: body: the new one.
        """
        first, last = self.at(start), self.at(start + len(read.data))
        if first == last:
            return None
        bounds = read.boundaries
        if bounds is not None:
            bounds = tuple(dict.fromkeys(self.at(start + bound) - first for bound in bounds))
        spans = [
            (self.at(start + begin) - first, self.at(start + end) - first, hash_)
            for begin, end, hash_ in read.masked
        ]
        masked = tuple(span for span in spans if span[0] < span[1])
        return read._replace(data=body[first:last], boundaries=bounds, masked=masked)


class MutableExchange:
    """An exchange and its units, which mutators change in place."""

    def __init__(self, exchange: Exchange, body: bytes) -> None:
        self.exchange = exchange
        self.units = units_of(body)
        """Those of the body, in order, and new ones between them."""
        self.reason: EndReason | None = None
        """How the transport is to end instead."""
        self._body = body
        self._raw: list[BodyEdit] = []
        self._times: Callable[[Read], int] | None = None

    @classmethod
    def of(cls, exchange: Exchange) -> Self | None:
        """Return the draft of `exchange`; None if its body cannot be rewritten: coded, or empty."""
        headers = exchange.response.headers if exchange.response else ()
        body = exchange.body
        if not body or header(headers, "content-encoding") not in _NO_CODING:
            return None
        return cls(exchange, body)

    @property
    def is_sse(self) -> bool:
        """Return whether the body is server-sent events."""
        return is_sse(self._body)

    def add_after(self, unit: MutableEvent, *new: MutableEvent) -> None:
        """Insert events after `unit`."""
        place = self.units.index(unit) + 1
        self.units[place:place] = new

    def add_before(self, unit: MutableEvent, new: MutableEvent) -> None:
        """Insert an event before `unit`."""
        self.units.insert(self.units.index(unit), new)

    def cut_after(self, unit: MutableEvent, *, reason: EndReason | None = None) -> None:
        """End the body after `unit`, regularly or for `reason`."""
        place = self.units.index(unit) + 1
        for later in self.units[place:]:
            later.removed = True
        last = next((one for one in reversed(self.units[:place]) if one.start is not None), unit)
        end = (last.start or 0) + len(last.raw)
        self.shorten(len(self._body) - end)
        self.reason = reason

    def shorten(self, size: int) -> None:
        """Remove the last `size` bytes of the body."""
        self.edit(len(self._body) - size, len(self._body), b"")

    def edit(self, start: int, end: int, data: bytes) -> None:
        """Replace `[start, end)` of the body, where no unit is changed, by `data`."""
        self._raw.append(BodyEdit(start, end, data))

    def tail(self) -> bytes:
        """Return the body from its last unit's data on."""
        last = self.units[-1]
        return self._body[(last.start or 0) :]

    def retime(self, times: Callable[[Read], int]) -> None:
        """Set the time of each read to `times`, in nanoseconds."""
        self._times = times

    def result(self) -> Exchange | None:
        """Return the changed exchange; None if nothing is changed."""
        edits = tidy([*self._edits(), *self._raw])
        body = edited(self._body, edits)
        if body == self._body and self._times is None:
            return None
        reads = tuple(self._reads(OffsetMap(edits), body))
        taken = OffsetMap(edits)
        return self._ended(
            replace(
                self.exchange,
                reads=reads,
                delivered=tuple(
                    replace(each, bytes=taken.at(each.bytes)) for each in self.exchange.delivered
                ),
            ),
            body,
        )

    def _edits(self) -> Iterator[BodyEdit]:
        own = [unit for unit in self.units if unit.start is not None]
        places = {id(unit): place for place, unit in enumerate(own)}
        last = max((places[id(unit)] for unit in own if not unit.removed), default=-1)
        first = before = own[0].start or 0 if own else 0
        for unit in self.units:
            if unit.start is None:
                if not unit.removed:
                    yield BodyEdit(before, before, self._joined(unit, before, first))
                continue
            end = unit.start + len(unit.raw)
            if unit.removed:
                yield self._removal(own, places[id(unit)], last)
            else:
                yield narrowed(unit.start, unit.raw, unit.on_wire())
            before = end

    def _joined(self, unit: MutableEvent, place: int, first: int) -> bytes:
        """Return a new unit with its separators at `place`; the units begin at `first`."""
        if not is_array(self._body):
            return unit.on_wire()
        return unit.on_wire() + b"," if place == first else b"," + unit.on_wire()

    def _removal(self, own: list[MutableEvent], place: int, last: int) -> BodyEdit:
        """Return a unit's removal, in an array with a comma; `last` is the last that stays."""
        unit = own[place]
        start = unit.start or 0
        end = start + len(unit.raw)
        if is_array(self._body):
            if place < last:
                end = own[place + 1].start or end
            elif place:
                start = (own[place - 1].start or 0) + len(own[place - 1].raw)
        return BodyEdit(start, end, b"")

    def _reads(self, moved: OffsetMap, body: bytes) -> Iterator[Read]:
        start = 0
        for read in self.exchange.reads:
            found = moved.read(read, start, body)
            start += len(read.data)
            if found is not None:
                yield found if self._times is None else found._replace(t_ns=self._times(found))

    def _ended(self, exchange: Exchange, body: bytes) -> Exchange:
        """Return `exchange` with an ending and a head that fit its body."""
        end, response = exchange.end, exchange.response
        if end is not None:
            lag_ns = end.t_ns - max((read.t_ns for read in self.exchange.reads), default=0)
            last_ns = max((read.t_ns for read in exchange.reads), default=0)
            end = replace(
                end,
                t_ns=last_ns + lag_ns,
                reason=self.reason or end.reason,
                bytes=len(body),
                sha256=hashlib.sha256(body).hexdigest(),
            )
        if response is not None:
            size = b"%d" % len(body)
            headers = tuple((name, _sized(name, value, size)) for name, value in response.headers)
            response = replace(response, headers=headers)
        fitted = replace(exchange, end=end, response=response)
        return fitted if self._times is None else watched(fitted)


def _sized(name: bytes, value: HeaderValue, size: bytes) -> HeaderValue:
    return size if name.lower() == b"content-length" else value


def tidy(edits: Iterable[BodyEdit]) -> list[BodyEdit]:
    """Return edits in order; of two that overlap, the latter begins where the former ends."""
    found: list[BodyEdit] = []
    for start, end, data in sorted(edits, key=lambda edit: edit[:2]):
        floor = found[-1].end if found else 0
        found.append(BodyEdit(max(start, floor), max(end, floor), data))
    return found


def narrowed(start: int, old: bytes, new: bytes) -> BodyEdit:
    """Return the smallest edit that turns the `old` bytes at `start` into `new`."""
    limit = min(len(old), len(new))
    head = next((at for at in range(limit) if old[at] != new[at]), limit)
    room = limit - head
    tail = next((at for at in range(room) if old[-1 - at] != new[-1 - at]), room)
    return BodyEdit(start + head, start + len(old) - tail, new[head : len(new) - tail])


def edited(body: bytes, edits: Sequence[BodyEdit]) -> bytes:
    """Return the body after `edits`."""
    parts, at = [], 0
    for start, end, data in edits:
        parts += [body[at:start], data]
        at = end
    return b"".join([*parts, body[at:]])
