"""Whether the records of a tape stand in the order that the format asks for, and add up.

Strategy: a small state per exchange. What is wrong is told with the line; whether it is a defect
or the trace of a loss that the recorder told of, is decided when the exchange's `end` is known.

Format: recordings/README.md, "Order", "Boundaries" and "Endings".
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from deltatape.model.exchange import Framing
from deltatape.tape.heads import Informational, RequestHead, ResponseStart, Trailers
from deltatape.tape.payload import (
    BodyRead,
    Boundaries,
    Ending,
    MaskedSpans,
    ParsedAs,
    RequestBody,
    RequestEnd,
    SentUpstream,
)
from deltatape.tape.record import Payload, Record, Unknown

_ONCE = frozenset(("request", "request-end", "sent", "response", "trailers", "end"))
_OF_RESPONSE = frozenset(("boundaries", "read", "trailers"))


class Fault(NamedTuple):
    """Something that is out of order."""

    line: int
    message: str


@dataclass(slots=True, kw_only=True)
class ExchangeOrder:
    """What has come of an exchange so far."""

    seen: set[str] = field(default_factory=set)
    faults: list[Fault] = field(default_factory=list)
    ending: Ending | None = None
    line: int = 0
    """Of its first record."""
    _last_ns: int = 0
    _framing: Framing | None = None
    _boundaries: tuple[int, tuple[int, ...]] | None = None
    _masked: tuple[int, int] | None = None
    _bytes: int = 0
    _hash: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    @property
    def lost(self) -> bool:
        """Whether the recorder tells that it lost records of this exchange."""
        return self.ending is not None and bool(self.ending.recorder)

    def take(self, line: int, record: Record) -> None:
        """The next record of the exchange."""
        payload = record.payload
        self.line = self.line or line
        if isinstance(payload, Unknown | ParsedAs):
            return
        self.faults += (Fault(line, message) for message in self._out_of_order(record))
        self._last_ns = max(self._last_ns, record.t_ns)
        if self.ending is None:
            self.faults += (Fault(line, message) for message in self._content(line, payload))
        self.seen.add(payload.code)

    def _out_of_order(self, record: Record) -> Iterator[str]:
        code = record.payload.code
        if self.ending is not None:
            yield f"`{code}` after the `end` of its exchange: readers ignore it"
            return
        if record.t_ns < self._last_ns:
            yield f"its time, {record.t_ns} ns, is before that of the record before it"
        if not self.seen and code != "request":
            yield f"`{code}` before the `request` of its exchange"
        if code in _ONCE & self.seen:
            yield f"a second `{code}` of its exchange"
        if code == "request-body" and "request-end" in self.seen:
            yield "`request-body` after `request-end`"
        if code == "informational" and "response" in self.seen:
            yield "`informational` after `response`"
        if code in _OF_RESPONSE and not self.seen & (_OF_RESPONSE | {"response"}):
            yield f"`{code}` before the `response` of its exchange"

    def _content(self, line: int, payload: Payload) -> Iterator[str]:
        match payload:
            case ResponseStart(framing=framing):
                self._framing = framing
            case MaskedSpans(spans=spans):
                self._masked = (line, max((span[1] for span in spans), default=0))
            case RequestBody(data=data):
                yield from self._piece(len(data))
            case Boundaries(ends=ends):
                yield from self._bounds(line, ends)
            case BodyRead(data=data):
                yield from self._piece(len(data))
                yield from self._read(data)
            case Ending():
                yield from self._end(payload)
            case RequestHead() | RequestEnd() | SentUpstream() | Informational() | Trailers() | _:
                pass

    def _piece(self, size: int) -> Iterator[str]:
        masked, self._masked = self._masked, None
        if masked is not None and masked[1] > size:
            yield f"of {size} bytes, but the `masked` in line {masked[0]} tells of {masked[1]}"

    def _bounds(self, line: int, ends: tuple[int, ...]) -> Iterator[str]:
        if self._boundaries is not None:
            yield f"the `boundaries` in line {self._boundaries[0]} have no `read`"
        if self._framing is not None and self._framing is not Framing.CHUNKED:
            yield f"`boundaries` in a response whose framing is {self._framing}"
        self._boundaries = (line, ends)

    def _read(self, data: bytes) -> Iterator[str]:
        boundaries, self._boundaries = self._boundaries, None
        if boundaries is not None and boundaries[1] and boundaries[1][-1] > len(data):
            yield (
                f"a read of {len(data)} bytes, but the `boundaries` in line {boundaries[0]} reach "
                f"to {boundaries[1][-1]}"
            )
        self._bytes += len(data)
        self._hash.update(data)

    def _end(self, ending: Ending) -> Iterator[str]:
        self.ending = ending
        if self._boundaries is not None:
            yield f"the `boundaries` in line {self._boundaries[0]} have no `read`"
        if ending.bytes != self._bytes:
            yield f"`end` tells of {ending.bytes} bytes, the reads hold {self._bytes}"
        elif ending.sha256 != self._hash.hexdigest():
            yield "`end.sha256` is not that of the reads: they were changed"
