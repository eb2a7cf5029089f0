r"""Newline-delimited JSON: an event per line.

Spec: https://github.com/ndjson/ndjson-spec; JSON Lines (https://jsonlines.org) is the same.

A line ends at LF. A CR before it is not part of the event. A CR elsewhere does not end a line: in
JSON it is whitespace between tokens. (Readers that split at every Unicode line end break valid
JSON: strings may contain U+2028.) Blank lines are skipped. Lines are not validated.

The end of the body also ends the last line if that is a complete JSON value, since servers leave
out the LF and clients accept the line. Otherwise the line is torn.
"""

from deltatape.model.stream import AnomalyKind, Event
from deltatape.wire.framer import BYTE_ORDER_MARK, UNIT_LIMIT, Framer, PartialUnit
from deltatape.wire.json_value import parse

_BLANKS = b" \t\r"


class NdjsonDecoder(Framer):
    """Decodes one body of JSON lines. See `Decoder`."""

    def __init__(self, limit: int = UNIT_LIMIT) -> None:
        super().__init__(limit)
        self._held = PartialUnit()
        self._line_start = 0

    def feed(self, data: bytes, t_ns: int, line: int | None) -> list[Event]:
        self._t_ns, self._line = t_ns, line
        end = self._offset
        self._offset += len(data)
        first, *lines = data.split(b"\n")
        if not lines:
            self._held.add(first, self._limit)
            return []
        rest = lines.pop()
        end += len(first) + 1
        events = [self._end_line(self._held.take(first, self._limit), end)]
        for raw in lines:
            end += len(raw) + 1
            events.append(self._end_line(raw if len(raw) <= self._limit else None, end))
        self._held.add(rest, self._limit)
        return [event for event in events if event is not None]

    def end(self) -> Event | None:
        """See `Decoder.end`. A last line that is a whole JSON value is the `tail`."""
        if not self._held:
            return None
        start, raw = self._line_start, self._held.take(b"", self._limit)
        event = self._end_line(raw, self._offset)
        if event is None and raw is not None:
            return None
        if event is not None and parse(event.data).error is None:
            self.tail = event
            return None
        self._anomaly(
            AnomalyKind.UNTERMINATED_EVENT,
            "the body ends inside a line: it is not a complete JSON value",
            event.place if event is not None else self._place(start, self._offset),
            event.number if event is not None else None,
        )
        return event

    def _end_line(self, raw: bytes | None, end: int) -> Event | None:
        """Process a line that ends at `end`, its line end included; None: it is too long."""
        start, self._line_start = self._line_start, end
        if raw is None:
            detail = f"a line of more than {self._limit} bytes; it was dropped"
            self._note(AnomalyKind.TOO_LARGE, detail, start, end)
            return None
        marked = start == 0 and raw.startswith(BYTE_ORDER_MARK)
        if marked:
            start = len(BYTE_ORDER_MARK)
            raw = raw[start:]
        blank = not raw or (raw.isspace() and not raw.strip(_BLANKS))
        if marked:
            event = None if blank else self._number
            place = self._place(0, start)
            self._anomaly(AnomalyKind.BYTE_ORDER_MARK, "a byte order mark", place, event)
        return (
            None if blank else self._event(self._text(raw.removesuffix(b"\r"), start), start, end)
        )
