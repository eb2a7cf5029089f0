r"""Server-sent events: bytes to events, exactly as the standard's parser dispatches them.

Spec: WHATWG HTML 9.2.6 "Interpreting an event stream"
(https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation).

Strategy. A usual, complete event is one regex match. Other bytes are split into lines at CRLF, LF
or CR; a complete line is decoded as UTF-8 and added to the current block; a blank line closes the
block. Decoding per line equals decoding the whole stream, since no UTF-8 sequence contains CR or
LF. A CR ends its line at once, so that no event waits for a byte that may not come; a following LF
is skipped later.

Invariants. Events, comments, anomalies and spans are the same for any cutting of the bytes; only
`t_ns` and `line` tell which read completed them. That is why a span ends after the CR of a CRLF:
the LF may not have arrived yet. Several reads are processed as one and their times looked up, since
a call per read would cost more than the events. No byte is searched more than twice, and a block
may hold at most `UNIT_LIMIT` bytes. What the standard drops is kept as a `Comment` or an `Anomaly`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from deltatape.model.stream import AnomalyKind, Comment, Event, Place
from deltatape.wire.framer import BYTE_ORDER_MARK, UNIT_LIMIT, Framer, PartialUnit, replaced

_LINE_END = re.compile(rb"\r\n?|\n")
_USUAL = re.compile(r"(?:event: ?+([^\r\n]*+)\r?+\n)?+data: ?+([^\r\n]*+)\r?+\n(\r?+)\n")
"""A whole event of at most two lines, as nearly all are."""
_USUAL_WITHOUT_CR = re.compile(r"(?:event: ?+([^\n]*+)\n)?+data: ?+([^\n]*+)\n()\n")
"""The same in a text that holds no CR: in a third of the time, since it looks for one character."""
_new = tuple.__new__
"""What named tuples' constructors call; through those, an event takes half as long again."""
_RETRY_DIGITS = 18
"""Longer numbers are ignored: no one waits that long, and long integers are slow to parse."""


Arrival: TypeAlias = tuple[int, int, int | None]
"""Where a read ends in the data, when it was read, the tape line that holds it."""


@dataclass(slots=True)
class _Fault:
    """An anomaly whose event is not known before the block closes."""

    kind: AnomalyKind
    detail: str
    place: Place
    in_event: bool


@dataclass(slots=True)
class _Block:
    """The lines since the last blank line."""

    start: int | None = None
    size: int = 0
    data: list[str] = field(default_factory=list)
    type: str = ""
    retry: int | None = None
    fields: list[str] = field(default_factory=list)
    faults: list[_Fault] = field(default_factory=list)
    too_large: bool = False


class SseDecoder(Framer):
    """Decodes one event stream. See `Decoder`."""

    def __init__(self, limit: int = UNIT_LIMIT) -> None:
        """Args: limit: bytes that the lines of one event may hold."""
        super().__init__(limit)
        self._held = PartialUnit()
        self._line_start = 0
        self._first_line = True
        self._after_cr = False
        self._last_id = ""
        self._block = _Block()
        self._reads: list[Arrival] = []
        """The remaining reads of this `feed`, the next one last."""
        self._until = 0
        """Where in the data of this `feed` the current read ends."""

    def feed(self, data: bytes, t_ns: int, line: int | None) -> list[Event]:
        return self.feed_reads(data, ((len(data), t_ns, line),))

    def feed_reads(self, data: bytes, reads: Iterable[Arrival]) -> list[Event]:
        """Return what feeding `data` read by read returns, in less time.

        Args:
            data: the next bytes of the body, of any number of reads.
            reads: these, in their order; the last one ends where `data` does.
        """
        events: list[Event] = []
        start = self._begin(data, reads)
        text = data.decode("latin-1")
        usual = _USUAL if b"\r" in data else _USUAL_WITHOUT_CR
        while True:
            start = self._append_usual(usual, text, start, events)
            match = _LINE_END.search(data, start)
            if match is None:
                break
            stop = match.start()
            self._arrive(stop + 1)
            event = self._end_line(data[start:stop], self._offset + stop + 1)
            if event is not None:
                events.append(event)
            start = match.end()
            self._line_start = self._offset + start
        self._hold(data, start)
        return events

    def _begin(self, data: bytes, reads: Iterable[Arrival]) -> int:
        """Start on `data`; return where in it lines begin."""
        self._reads, self._until = [*reads], -1
        self._reads.reverse()
        self._arrive(0)
        if self._first_line and data and not self._held:
            # All that is special about the first line; without it, it may be a usual event's.
            self._first_line = data.startswith(BYTE_ORDER_MARK[:1])
        start = 0
        if self._after_cr and data:
            self._after_cr = False
            if data.startswith(b"\n"):
                start = 1
                self._line_start += 1
        return start

    def _hold(self, data: bytes, start: int) -> None:
        """Keep the rest of `data`, in which no line ends."""
        self._after_cr = self._after_cr or (start == len(data) and data.endswith(b"\r"))
        if start < len(data):
            self._held.add(data[start:], self._limit - self._block.size)
        self._offset += len(data)
        if self._reads:
            _, self._t_ns, self._line = self._reads[0]
            self._reads.clear()
        self._until = 0

    def _arrive(self, end: int) -> None:
        """Advance to the read that holds the byte before `end`."""
        while self._until < end:
            self._until, self._t_ns, self._line = self._reads.pop()

    def end(self) -> Event | None:
        """See `Decoder.end`. The standard drops the event that is left, some clients do not."""
        if self._held:
            self._end_line(b"", self._offset)
        block, self._block = self._block, _Block()
        if block.start is None:
            self._keep(block, None)
            return None
        place = self._place(block.start, self._offset)
        event = self._event_of(block, place) if block.data and not block.too_large else None
        number = None if event is None else event.number
        self._keep(block, number)
        if block.too_large:
            self._too_large(place)
        what = "an event" if event is not None else "a block without data"
        self._anomaly(
            AnomalyKind.UNTERMINATED_EVENT,
            f"the body ends inside {what}: no blank line follows it",
            place,
            number,
        )
        return event

    def _append_usual(
        self, usual: re.Pattern[str], text: str, start: int, events: list[Event]
    ) -> int:
        """Append the usual events at `start`, if a block begins there; return where they end.

        Args:
            usual: what they match.
            text: the bytes as Latin-1, where offsets in the text are those in the bytes.
            start: offset in it.
            events: gets the events.
        """
        block = self._block
        if block.start is not None or block.faults or self._held or self._first_line:
            return start
        offset, number, last_id, add = self._offset, self._number, self._last_id, events.append
        until, t_ns, line, next_read = self._until, self._t_ns, self._line, self._reads.pop
        is_ascii, limit = text.isascii(), self._limit
        for match in iter(usual.scanner(text, start).match, None):  # type: ignore[attr-defined]
            kind, value, carriage = match.groups()
            end = match.end()
            if end - start > limit:
                break
            if not is_ascii:
                try:
                    value = value if value.isascii() else _as_utf8(value)
                    kind = kind if not kind or kind.isascii() else _as_utf8(kind)
                except UnicodeDecodeError:
                    break
            # The LF of its last CRLF neither completes an event nor is in its span.
            stop = end - len(carriage)
            while until < stop:
                until, t_ns, line = next_read()
            begin, stop, kind = offset + start, offset + stop, kind or "message"
            event = (number, kind, value, last_id, None, begin, stop, t_ns, line, False)
            add(_new(Event, event))
            number += 1
            start = end
        self._until, self._t_ns, self._line = until, t_ns, line
        self._number, self._line_start = number, offset + start
        return start

    def _end_line(self, tail: bytes, end: int) -> Event | None:
        """Process a line whose last bytes are `tail`; `end` is the offset behind its line end."""
        block = self._block
        raw = self._held.take(tail, self._limit - block.size)
        if raw is None:
            self._drop_line()
            return None
        start = self._line_start
        if self._first_line:
            self._first_line = False
            if raw.startswith(BYTE_ORDER_MARK):
                raw = raw[len(BYTE_ORDER_MARK) :]
                start += len(BYTE_ORDER_MARK)
                self._fault(AnomalyKind.BYTE_ORDER_MARK, "a byte order mark", 0, start)
        if not raw:
            return self._close(end)
        if raw.startswith(b":"):
            text = self._line_text(raw, start, in_event=False)[1:]
            place = self._place(start, start + len(raw))
            self.comments.append(Comment(text=text, place=place))
            return None
        if block.start is None:
            block.start = start
        block.size += len(raw)
        self._field(self._line_text(raw, start, in_event=True), start, start + len(raw))
        return None

    def _drop_line(self) -> None:
        self._first_line = False
        block = self._block
        block.too_large = True
        block.data.clear()
        if block.start is None:
            block.start = self._line_start

    def _line_text(self, raw: bytes, start: int, *, in_event: bool) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError as problem:
            text, detail = replaced(raw, problem)
            self._fault(
                AnomalyKind.INVALID_UTF8,
                detail,
                start + problem.start,
                start + problem.end,
                in_event=in_event,
            )
            return text

    def _field(self, text: str, start: int, stop: int) -> None:
        """Process a field line, `start` to `stop`."""
        name, _, value = text.partition(":")
        value = value.removeprefix(" ")
        block = self._block
        match name:
            case "data":
                if not block.too_large:
                    block.data.append(value)
            case "event":
                block.type = value
            case "id":
                # "If the field value does not contain U+0000 NULL, then set the last event ID
                # buffer to the field value. Otherwise, ignore the field."
                if "\0" in value:
                    self._fault(AnomalyKind.ID_WITH_NULL, f"id {value[:80]!r}", start, stop)
                else:
                    self._last_id = value
            case "retry":
                # "If the field value consists of only ASCII digits": isdigit() alone admits others.
                if value.isascii() and value.isdigit() and len(value) <= _RETRY_DIGITS:
                    block.retry = int(value)
                else:
                    self._fault(AnomalyKind.BAD_RETRY, f"retry {value[:80]!r}", start, stop)
            case _:
                detail = f"unknown field {name[:80]!r}"
                self._fault(AnomalyKind.UNKNOWN_FIELD, detail, start, stop)
                return
        block.fields.append(name)

    def _close(self, end: int) -> Event | None:
        """Dispatch the block at the blank line that ends at `end`."""
        block, self._block = self._block, _Block()
        if block.start is None:
            self._keep(block, None)
            return None
        place = self._place(block.start, end)
        if block.data and not block.too_large:
            event = self._event_of(block, place)
            self._keep(block, event.number)
            self._number += 1
            return event
        self._keep(block, None)
        if block.too_large:
            self._too_large(place)
        elif block.fields:
            detail = f"a block with {', '.join(dict.fromkeys(block.fields))} but without data"
            self._anomaly(AnomalyKind.EVENT_WITHOUT_DATA, detail, place, None)
        return None

    def _too_large(self, place: Place) -> None:
        detail = f"an event of more than {self._limit} bytes; it was dropped"
        self._anomaly(AnomalyKind.TOO_LARGE, detail, place, None)

    def _event_of(self, block: _Block, place: Place) -> Event:
        return Event(
            number=self._number,
            type=block.type or "message",
            data="\n".join(block.data),
            id=self._last_id,
            retry=block.retry,
            start=place.span.start,
            end=place.span.end,
            t_ns=place.t_ns,
            line=place.line,
        )

    def _fault(
        self, kind: AnomalyKind, detail: str, start: int, stop: int, *, in_event: bool = True
    ) -> None:
        place = self._place(start, stop)
        self._block.faults.append(_Fault(kind, detail, place, in_event))

    def _keep(self, block: _Block, number: int | None) -> None:
        """Turn the faults of a closed block into anomalies of its event."""
        for fault in block.faults:
            event = number if fault.in_event else None
            self._anomaly(fault.kind, fault.detail, fault.place, event)


def _as_utf8(text: str) -> str:
    return text.encode("latin-1").decode()
