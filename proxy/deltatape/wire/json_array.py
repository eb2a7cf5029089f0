r"""A streamed JSON array, `[{..},\r\n{..}]`: one event per element, once it is complete.

Spec: RFC 8259. Objects, arrays and strings end by themselves; a bare word (`null`, `12`) ends at
the delimiter behind it. An event's data is the element's exact source. Elements are not validated:
only brackets outside of strings are counted, of whatever kind, so that nesting needs no stack.
Bytes in place of an element, a comma or the array's end are skipped, as one anomaly up to the next
element. Everything after the array is ignored.

Strategy. `_state` is the function for the next bytes. Runs of bytes are skipped by regular
expressions, and an element within one read is usually one match of `_ELEMENT`; repeats are
possessive, so that no byte is examined more than three times.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from deltatape.model.stream import AnomalyKind, Event
from deltatape.regex import OR_NONE
from deltatape.wire.framer import BYTE_ORDER_MARK, UNIT_LIMIT, Framer, PartialUnit
from deltatape.wire.json_value import parse

_USUAL_DEPTH = 16
"""Elements that are nested deeper are read bracket by bracket."""

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_FLAT = rb'[^"\[\]{}]++|' + _STRING
_OR_NONE = OR_NONE.encode()


def _element(depth: int) -> bytes:
    """Return the expression of an element with up to `depth` levels, or of a string."""
    inside = _FLAT
    for _ in range(depth - 1):
        inside = _FLAT + rb"|[\[{](?:" + inside + _OR_NONE + rb")*+[\]}]"
    return _STRING + rb"|[\[{](?:" + inside + _OR_NONE + rb")*+[\]}]"


_ELEMENT = re.compile(_element(_USUAL_DEPTH), re.DOTALL)
_SKIPPED = re.compile(rb"(?:" + _FLAT + _OR_NONE + rb")*+", re.DOTALL)
_IN_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_BRACKETS = re.compile(rb"[\[{]++|[\]}]++")
_WORD = re.compile(rb'[^,\[\]{"]*+')
_BLANKS = re.compile(rb"[ \t\r\n]*+")
_QUOTE = ord('"')


@dataclass(slots=True)
class _Stray:
    """Bytes in the array that belong to no element."""

    detail: str
    start: int
    end: int


_State: TypeAlias = Callable[["JsonArrayDecoder", bytes, int], int]
"""A function of the class: a bound method would hold the decoder that holds it."""


class JsonArrayDecoder(Framer):
    """Decodes one body that is a JSON array. See `Decoder`."""

    def __init__(self, limit: int = UNIT_LIMIT) -> None:
        super().__init__(limit)
        self._state: _State = JsonArrayDecoder._at_mark
        self._events: list[Event] = []
        self._held = PartialUnit()
        self._start = 0
        """Where the element begins; between elements, where the last one ended."""
        self._depth = 0
        self._quoted = False
        self._escaped = False
        self._comma: int | None = None
        """Where the comma is that an element must follow."""
        self._separable = False
        """Whether there is an element in front, with no comma behind it yet."""
        self._stray: _Stray | None = None

    def feed(self, data: bytes, t_ns: int, line: int | None) -> list[Event]:
        self._t_ns, self._line = t_ns, line
        self._events = []
        at = 0
        while at < len(data):
            at = self._state(self, data, at)
        self._offset += len(data)
        return self._events

    def end(self) -> Event | None:
        if self._stray is not None and self._state is JsonArrayDecoder._outside_array:
            self._stray.end = self._offset
        self._settle()
        if self._state in (JsonArrayDecoder._after, JsonArrayDecoder._outside_array):
            return None
        event = None
        place = self._place(self._start, self._offset)
        what = "the array: it is never closed"
        if self._held:
            what = "an element"
            event = self._element_event(self._held.take(b"", self._limit), self._offset)
        number = None if event is None else event.number
        detail = f"the body ends inside {what}"
        self._anomaly(AnomalyKind.UNTERMINATED_EVENT, detail, place, number)
        return event

    def _at_mark(self, data: bytes, at: int) -> int:
        """At the beginning of the body, which may be a byte order mark."""
        seen = self._offset + at
        if data[at] == BYTE_ORDER_MARK[seen]:
            if seen + 1 == len(BYTE_ORDER_MARK):
                self._note(AnomalyKind.BYTE_ORDER_MARK, "a byte order mark", 0, seen + 1)
                self._state = JsonArrayDecoder._before
            return at + 1
        self._state = JsonArrayDecoder._before
        if seen:
            self._ignore_rest(0)
        return at

    def _before(self, data: bytes, at: int) -> int:
        """Before the array."""
        at = _end(_BLANKS, data, at)
        if data[at : at + 1] == b"[":
            self._state = JsonArrayDecoder._between
            self._start = self._offset + at + 1
            return at + 1
        if at < len(data):
            self._ignore_rest(self._offset + at)
        return at

    def _ignore_rest(self, start: int) -> None:
        self._stray = _Stray("data that is not an array", start, start)
        self._state = JsonArrayDecoder._outside_array

    def _outside_array(self, data: bytes, _: int) -> int:
        """Skip text outside of the array."""
        return len(data)

    def _after(self, data: bytes, at: int) -> int:
        """After the array."""
        at = _end(_BLANKS, data, at)
        if at < len(data):
            self._stray = _Stray("data behind the array", self._offset + at, self._offset + at)
            self._state = JsonArrayDecoder._outside_array
        return at

    def _between(self, data: bytes, at: int) -> int:
        """Read on between elements."""
        at = _end(_BLANKS, data, at)
        match data[at : at + 1]:
            case b"{" | b"[" | b'"':
                return self._begin(data, at)
            case b",":
                comma = self._offset + at
                if not self._separable:
                    self._ignore("a comma behind no element", comma, comma + 1)
                self._separable = False
                self._comma = comma
                return at + 1
            case b"]":
                if self._comma is not None:
                    self._ignore("a comma before no element", self._comma, self._comma + 1)
                self._settle()
                self._state = JsonArrayDecoder._after
                return at + 1
            case b"":
                return at
            case _:
                self._begin_at(self._offset + at)
                self._state = JsonArrayDecoder._in_word
                return at

    def _begin_at(self, start: int) -> None:
        """Begin an element, whose first byte is at `start` of the body."""
        if self._separable:
            self._ignore("no comma between two elements", self._start, start)
        self._start = start
        self._separable = True
        self._comma = None

    def _begin(self, data: bytes, at: int) -> int:
        """At an object, an array or a string."""
        self._begin_at(self._offset + at)
        self._settle()
        whole = _ELEMENT.match(data, at)
        if whole is None:
            self._state = JsonArrayDecoder._in_element
            return at
        raw = whole[0]
        self._dispatch(raw if len(raw) <= self._limit else None, self._offset + whole.end())
        return whole.end()

    def _in_element(self, data: bytes, at: int) -> int:
        """Read on in an object, array or string that is incomplete or deeply nested."""
        stop = self._element_end(data, at)
        if stop is None:
            self._held.add(data[at:], self._limit)
            return len(data)
        self._dispatch(self._held.take(data[at:stop], self._limit), self._offset + stop)
        self._state = JsonArrayDecoder._between
        return stop

    def _element_end(self, data: bytes, at: int) -> int | None:
        """Return where in `data` the element ends; None if behind it."""
        while at < len(data):
            if self._quoted:
                at = self._skip_string(data, at)
                if not self._quoted and self._depth == 0:
                    return at
                continue
            at = _end(_SKIPPED, data, at)
            run = _BRACKETS.match(data, at)
            if run is None:
                # `_SKIPPED` skips whole strings: a quote here opens one that ends behind `data`.
                self._quoted = at < len(data)
                at += 1
            elif run[0][0] in b"[{":
                self._depth += len(run[0])
                at = run.end()
            elif len(run[0]) < self._depth:
                self._depth -= len(run[0])
                at = run.end()
            else:
                at += self._depth
                self._depth = 0
                return at
        return None

    def _skip_string(self, data: bytes, at: int) -> int:
        """Return where the rest of a string ends, its quote included, or `data`."""
        if self._escaped:
            self._escaped = False
            at += 1
        at = _end(_IN_STRING, data, at)
        if at < len(data):
            # A quote, or a backslash that is the last byte of `data`.
            self._quoted = data[at] != _QUOTE
            self._escaped = self._quoted
            at += 1
        return at

    def _in_word(self, data: bytes, at: int) -> int:
        """Read on in a bare word, up to a delimiter."""
        stop = _end(_WORD, data, at)
        if stop == len(data):
            self._held.add(data[at:], self._limit)
            return stop
        raw = self._held.take(data[at:stop], self._limit)
        self._state = JsonArrayDecoder._between
        self._end_word(raw, self._offset + stop)
        return stop

    def _end_word(self, raw: bytes | None, end: int) -> None:
        if raw is None:
            self._dispatch(None, end)
            return
        word = raw.rstrip(b" \t\r\n")
        end = self._start + len(word)
        if parse(word.decode(errors="replace")).error is None:
            self._settle()
            self._dispatch(word, end)
        else:
            self._ignore("data that is not an element", self._start, end)
            self._start = end

    def _dispatch(self, raw: bytes | None, end: int) -> None:
        """Dispatch a whole element; None: it is too large."""
        event = self._element_event(raw, end)
        if event is not None:
            self._events.append(event)
        self._start = end

    def _element_event(self, raw: bytes | None, end: int) -> Event | None:
        """Return the event of the element that ends at `end`."""
        if raw is None:
            detail = f"an element of more than {self._limit} bytes; it was dropped"
            self._note(AnomalyKind.TOO_LARGE, detail, self._start, end)
            return None
        return self._event(self._text(raw, self._start), self._start, end)

    def _ignore(self, detail: str, start: int, end: int) -> None:
        """Note bytes that belong to no element, with those right before them."""
        if self._stray is None:
            self._stray = _Stray(detail, start, end)
        else:
            self._stray.end = end

    def _settle(self) -> None:
        """Report the bytes that belong to no element."""
        if self._stray is not None:
            stray, self._stray = self._stray, None
            self._note(AnomalyKind.BAD_MESSAGE, stray.detail, stray.start, stray.end)


def _end(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    """Return where a match of `pattern`, which matches everywhere, ends."""
    found = pattern.match(data, at)
    return found.end() if found else at
