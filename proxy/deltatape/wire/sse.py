r"""Server-sent events: bytes to events, exactly as the standard's parser dispatches them.

Spec: WHATWG HTML 9.2.6 "Interpreting an event stream"
(https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation).

Strategy. Bytes are cut into lines at CRLF, LF or CR; a complete line is decoded as UTF-8 and put
into the block under construction; a blank line closes the block. Decoding per line equals decoding
the whole stream, since no UTF-8 sequence contains CR or LF. A CR ends its line at once, so that an
event is never held back for a byte that may not come; an LF right after it is swallowed later.

Invariants. Events, comments, anomalies and spans are the same for any cutting of the bytes; only
`t_ns` and `line` tell which `feed` completed them. That is why a span ends behind the CR of a CRLF:
the LF may not have arrived yet. Every byte is searched once, and a block may not hold more than
`EVENT_LIMIT` bytes. What the standard drops is kept as a `Comment` or an `Anomaly`.
"""

import re
from dataclasses import dataclass, field

from deltatape.model.stream import Anomaly, AnomalyKind, Comment, Event, Place, Span

EVENT_LIMIT = 64 * 1024 * 1024
"""Bytes that the lines of one event may hold; a larger event is dropped as `TOO_LARGE`."""

_LINE_END = re.compile(rb"\r\n?|\n")
_BOM = b"\xef\xbb\xbf"
_RETRY_DIGITS = 18
"""Longer numbers of milliseconds are no times; reading them as integers would only cost."""


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


class SseDecoder:
    """Decodes one event stream, fed in any cutting."""

    def __init__(self, limit: int = EVENT_LIMIT) -> None:
        self.comments: list[Comment] = []
        self.anomalies: list[Anomaly] = []
        self._limit = limit
        self._offset = 0
        self._line_start = 0
        self._partial = bytearray()
        self._line_dropped = False
        self._first_line = True
        self._after_cr = False
        self._number = 0
        self._last_id = ""
        self._block = _Block()
        self._t_ns = 0
        self._line: int | None = None

    def feed(self, data: bytes, t_ns: int, line: int | None) -> list[Event]:
        """The events that `data` completes.

        Args:
            data: the next bytes of the body, any number of them.
            t_ns: when they were read.
            line: the tape line that holds them.
        """
        self._t_ns, self._line = t_ns, line
        events: list[Event] = []
        start = 0
        if self._after_cr and data:
            self._after_cr = False
            if data.startswith(b"\n"):
                start = 1
                self._line_start += 1
        for match in _LINE_END.finditer(data, start):
            stop = match.start()
            event = self._end_line(data[start:stop], self._offset + stop + 1)
            if event is not None:
                events.append(event)
            start = match.end()
            self._line_start = self._offset + start
        self._after_cr = self._after_cr or (start == len(data) and data.endswith(b"\r"))
        if start < len(data):
            self._hold(data[start:])
        self._offset += len(data)
        return events

    def end(self) -> Event | None:
        """What the end of the body leaves undispatched: the standard drops it, some clients do not.

        To be called once, after the last `feed`. The event's span ends at the end of the body.
        """
        if self._partial or self._line_dropped:
            self._end_line(b"", self._offset)
        block, self._block = self._block, _Block()
        if block.start is None:
            self._keep(block, None)
            return None
        place = self._place(block.start, self._offset)
        event = self._event(block, place) if block.data and not block.too_large else None
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

    def _hold(self, data: bytes) -> None:
        """Keeps the beginning of a line whose end has not arrived."""
        if self._line_dropped:
            return
        if self._block.size + len(self._partial) + len(data) > self._limit:
            self._partial.clear()
            self._line_dropped = True
        else:
            self._partial += data

    def _end_line(self, tail: bytes, end: int) -> Event | None:
        """Takes a line whose last bytes are `tail`; `end` is the offset behind its line end."""
        raw = tail
        if self._partial:
            self._partial += tail
            raw = bytes(self._partial)
            self._partial.clear()
        block = self._block
        if self._line_dropped or block.size + len(raw) > self._limit:
            self._drop_line()
            return None
        start = self._line_start
        if self._first_line:
            self._first_line = False
            if raw.startswith(_BOM):
                raw = raw[len(_BOM) :]
                start += len(_BOM)
                self._fault(AnomalyKind.BYTE_ORDER_MARK, "a byte order mark", 0, start)
        if not raw:
            return self._close(end)
        if raw.startswith(b":"):
            self._comment(raw, start)
            return None
        if block.start is None:
            block.start = start
        block.size += len(raw)
        self._field(self._text(raw, start, in_event=True), start, start + len(raw))
        return None

    def _drop_line(self) -> None:
        self._line_dropped = False
        self._first_line = False
        block = self._block
        block.too_large = True
        block.data.clear()
        if block.start is None:
            block.start = self._line_start

    def _comment(self, raw: bytes, start: int) -> None:
        text = self._text(raw, start, in_event=False)[1:]
        place = self._place(start, start + len(raw))
        self.comments.append(Comment(text=text, place=place))

    def _text(self, raw: bytes, start: int, *, in_event: bool) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError as problem:
            text = raw.decode(errors="replace")
            bad = raw[problem.start : problem.end]
            count = text.count("\ufffd") - raw.count("\ufffd".encode())
            self._fault(
                AnomalyKind.INVALID_UTF8,
                f"{count} invalid UTF-8 sequence(s), the first {bad.hex(' ')}",
                start + problem.start,
                start + problem.end,
                in_event=in_event,
            )
            return text

    def _field(self, text: str, start: int, stop: int) -> None:
        """Processes a field line, `start` to `stop`."""
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
                self._retry(value, start, stop)
            case _:
                detail = f"unknown field {name[:80]!r}"
                self._fault(AnomalyKind.UNKNOWN_FIELD, detail, start, stop)
                return
        block.fields.append(name)

    def _retry(self, value: str, start: int, stop: int) -> None:
        # "If the field value consists of only ASCII digits": isdigit() alone admits other scripts.
        if value.isascii() and value.isdigit() and len(value) <= _RETRY_DIGITS:
            self._block.retry = int(value)
        else:
            self._fault(AnomalyKind.BAD_RETRY, f"retry {value[:80]!r}", start, stop)

    def _close(self, end: int) -> Event | None:
        """Dispatches the block at the blank line that ends at `end`."""
        block, self._block = self._block, _Block()
        if block.start is None:
            self._keep(block, None)
            return None
        place = self._place(block.start, end)
        if block.data and not block.too_large:
            event = self._event(block, place)
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

    def _event(self, block: _Block, place: Place) -> Event:
        return Event(
            number=self._number,
            type=block.type or "message",
            data="\n".join(block.data),
            id=self._last_id,
            retry=block.retry,
            place=place,
        )

    def _fault(
        self, kind: AnomalyKind, detail: str, start: int, stop: int, *, in_event: bool = True
    ) -> None:
        place = self._place(start, stop)
        self._block.faults.append(_Fault(kind, detail, place, in_event))

    def _keep(self, block: _Block, number: int | None) -> None:
        """Turns the faults of a closed block into anomalies of its event."""
        for fault in block.faults:
            event = number if fault.in_event else None
            self._anomaly(fault.kind, fault.detail, fault.place, event)

    def _anomaly(self, kind: AnomalyKind, detail: str, place: Place, event: int | None) -> None:
        self.anomalies.append(Anomaly(kind=kind, detail=detail, place=place, event=event))

    def _place(self, start: int, end: int) -> Place:
        return Place(span=Span(start, end), t_ns=self._t_ns, line=self._line)
