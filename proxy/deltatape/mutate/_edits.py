"""Edits of a body and where they move its bytes: into which read, chunk and masked span.

An edit is a range of the body and what stands there instead; edits ascend and do not overlap. What
is inserted at a border belongs to the left of it, but at the very beginning; of what replaces a
range across a border, all belongs to the left.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from deltatape.model.exchange import Read


class Edit(NamedTuple):
    """`[start, end)` of the body becomes `data`."""

    start: int
    end: int
    data: bytes


def tidy(edits: Iterable[Edit]) -> list[Edit]:
    """Edits in order; of two that overlap, the latter begins where the former ends."""
    found: list[Edit] = []
    for start, end, data in sorted(edits, key=lambda edit: edit[:2]):
        floor = found[-1].end if found else 0
        found.append(Edit(max(start, floor), max(end, floor), data))
    return found


def narrowed(start: int, old: bytes, new: bytes) -> Edit:
    """The smallest edit that makes `new` of the `old` bytes at `start`."""
    limit = min(len(old), len(new))
    head = next((at for at in range(limit) if old[at] != new[at]), limit)
    room = limit - head
    tail = next((at for at in range(room) if old[-1 - at] != new[-1 - at]), room)
    return Edit(start + head, start + len(old) - tail, new[head : len(new) - tail])


def edited(body: bytes, edits: Sequence[Edit]) -> bytes:
    """The body after `edits`."""
    parts, at = [], 0
    for start, end, data in edits:
        parts += [body[at:start], data]
        at = end
    return b"".join([*parts, body[at:]])


class Moved:
    """Where offsets of a body are after edits."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self._edits = edits
        self._places = [edit[:2] for edit in edits]
        grown = (len(data) - (end - start) for start, end, data in edits)
        self._grown = [0, *accumulate(grown)]

    def at(self, offset: int) -> int:
        """The offset that was `offset`."""
        if offset == 0:
            return 0
        done = bisect_right(self._places, (offset, offset))
        if done and self._places[done - 1][1] > offset:
            start, _, data = self._edits[done - 1]
            return start + self._grown[done - 1] + len(data)
        return offset + self._grown[done]

    def read(self, read: Read, start: int, body: bytes) -> Read | None:
        """The read that began at `start`; None if nothing of it is left.

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
