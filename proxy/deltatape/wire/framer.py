"""Shared parts of the decoders: anomalies, and incomplete units.

A decoder is fed the body read by read and returns the events that each read completes. All decoders
have the invariants of `Decoder`: events, comments, anomalies and spans do not depend on how the
bytes were split, only `t_ns` and `line` do; no input raises; time is linear, and memory for an
unfinished unit is bounded.
"""

from typing import Protocol

from deltatape.model.stream import Anomaly, AnomalyKind, Comment, Event, Place, Span

UNIT_LIMIT = 64 * 1024 * 1024
"""Bytes that one line, element or block of lines may hold; a larger one is dropped."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_REPLACEMENT = "\ufffd"


class Decoder(Protocol):
    """Decodes one body, split in any way."""

    comments: list[Comment]
    anomalies: list[Anomaly]
    tail: Event | None
    """A last event that the end of the body completes: as good as any other. Set by `end`."""

    def feed(self, data: bytes, t_ns: int, line: int | None) -> list[Event]:
        """Return the events that `data` completes.

        Args:
            data: the next bytes of the body, any number of them.
            t_ns: when they were read.
            line: the tape line that holds them.
        """

    def end(self) -> Event | None:
        """Return the event that the end of the body leaves unfinished.

        Call once, after the last `feed`. The event's span ends at the end of the body.
        """


class PartialUnit:
    """The beginning of a unit whose end has not arrived, up to a size."""

    __slots__ = ("_bytes", "dropped")

    def __init__(self) -> None:
        self._bytes = bytearray()
        self.dropped = False
        """Whether the unit was larger than it may be; nothing of it is kept."""

    def __bool__(self) -> bool:
        """Return whether a unit has begun."""
        return self.dropped or bool(self._bytes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartialUnit) and (self._bytes, self.dropped) == (
            other._bytes,
            other.dropped,
        )

    __hash__ = None  # type: ignore[assignment]  # it changes

    def add(self, data: bytes, room: int) -> None:
        """Keep `data`, or drop everything if it exceeds `room` bytes."""
        if self.dropped:
            return
        if len(self._bytes) + len(data) > room:
            self._bytes.clear()
            self.dropped = True
        else:
            self._bytes += data

    def take(self, tail: bytes, room: int) -> bytes | None:
        """Return the unit that ends with `tail` and forget it; None if it is larger than `room`."""
        if self._bytes:
            self._bytes += tail
            tail = bytes(self._bytes)
            self._bytes.clear()
        if self.dropped or len(tail) > room:
            self.dropped = False
            return None
        return tail


class Framer:
    """The state of every decoder: its offset in the body, and its anomalies."""

    def __init__(self, limit: int) -> None:
        self.comments: list[Comment] = []
        self.anomalies: list[Anomaly] = []
        self.tail: Event | None = None
        self._limit = limit
        self._offset = 0
        self._number = 0
        self._t_ns = 0
        self._line: int | None = None

    def _place(self, start: int, end: int) -> Place:
        return Place(Span(start, end), self._t_ns, self._line)

    def _anomaly(self, kind: AnomalyKind, detail: str, place: Place, event: int | None) -> None:
        self.anomalies.append(Anomaly(kind=kind, detail=detail, place=place, event=event))

    def _note(self, kind: AnomalyKind, detail: str, start: int, end: int) -> None:
        """Note an anomaly that concerns no event."""
        self._anomaly(kind, detail, self._place(start, end), None)

    def _text(self, raw: bytes, start: int) -> str:
        """Return the text of the next event, which `raw` holds from `start` on."""
        try:
            return raw.decode()
        except UnicodeDecodeError as problem:
            text, detail = replaced(raw, problem)
            place = self._place(start + problem.start, start + problem.end)
            self._anomaly(AnomalyKind.INVALID_UTF8, detail, place, self._number)
            return text

    def _event(
        self, data: str, start: int, end: int, kind: str = "message", *, exception: bool = False
    ) -> Event:
        """Return the next event, of a format without IDs."""
        number = self._number
        self._number += 1
        return Event(number, kind, data, "", None, start, end, self._t_ns, self._line, exception)


def replaced(raw: bytes, problem: UnicodeDecodeError) -> tuple[str, str]:
    """Return `raw` with U+FFFD for what is not UTF-8, and a phrase on how much that is."""
    text = raw.decode(errors="replace")
    bad = raw[problem.start : problem.end]
    count = text.count(_REPLACEMENT) - raw.count(_REPLACEMENT.encode())
    sequences = "sequence" if count == 1 else "sequences"
    return text, f"{count} invalid UTF-8 {sequences}, the first {bad.hex(' ')}"
