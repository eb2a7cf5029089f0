"""A mutable exchange: its events can be rewritten, and all other bytes keep read and time.

Events keep framing and spelling, in four framings: server-sent events, JSON lines, one JSON array,
Amazon's binary messages (their checksums are recomputed; of messages that carry base64 under
`bytes`, the data is the decoded text). Comments, blank lines and an incomplete end belong to no
unit and are never changed. Bytes stay in the read that they came in (see `OffsetMap`); the count of
bytes and the digest in `end` are those of the new body, and so is a `content-length`.
"""

import hashlib
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple, Self

from deltatape.model.exchange import EndReason, Exchange, Read, header, watched
from deltatape.model.stream import Event
from deltatape.wire.aws_eventstream import (
    PRELUDE_SIZE,
    EventStreamDecoder,
    encode_message,
    is_message,
    payload_span,
)
from deltatape.wire.framer import Decoder
from deltatape.wire.json_array import JsonArrayDecoder
from deltatape.wire.json_edit import Path, append, at, drop, put, quoted, source_at
from deltatape.wire.json_value import parse
from deltatape.wire.ndjson import NdjsonDecoder
from deltatape.wire.sse import SseDecoder

_NO_CODING = frozenset({None, b"identity"})
_DATA_LINE = re.compile(rb"^data: ?([^\r\n]*)", re.MULTILINE)
_NAME_LINE = re.compile(rb"^event: ?[^\r\n]*(\r\n?|\n)", re.MULTILINE)
_BYTES = re.compile(rb'"bytes"\s*+:\s*+"([A-Za-z0-9+/=]*+)"')


class MutableEvent:
    """An event of the body, before and after changes.

    Attributes:
        start: where it begins in the body; None if it was not in it.
        raw: its bytes as they came, or those of the event that it is made after.
        type: the event's type.
        removed: whether it is to be left out.
    """

    def __init__(self, start: int | None, raw: bytes, data: tuple[int, int], type_: str) -> None:
        """Args: data: the span of the event's text in `raw`."""
        self.start = start
        self.raw = raw
        self.type = type_
        self.removed = False
        self._data = data
        self._text = self._original = raw[data[0] : data[1]].decode("utf-8", "surrogateescape")
        self._name: str | None = None
        self._value: object = None
        self._parsed = False

    @property
    def data_span(self) -> tuple[int, int]:
        """Return the span of the event's data in `raw`; of a binary message its whole payload."""
        return self._data

    @property
    def text(self) -> str:
        """Return the event's data."""
        return self._text

    @text.setter
    def text(self, text: str) -> None:
        self._text = text
        self._parsed = False

    @property
    def value(self) -> object:
        """Return the JSON value of the data; None if it is not JSON."""
        if not self._parsed:
            self._value = parse(self._text).value
            self._parsed = True
        return self._value

    def put(self, path: Path, source: str) -> None:
        """Set the value at `path` of the data, see `json_edit.put`."""
        if self.value is not None:
            self.text = put(self._text, path, source)

    def put_text(self, path: Path, text: str) -> None:
        """Set the value at `path` to a string."""
        self.put(path, quoted(text, plain=self._text.isascii()))

    def drop(self, path: Path) -> None:
        """Remove the value at `path`."""
        if self.value is not None:
            self.text = drop(self._text, path)

    def append(self, path: Path, source: str) -> None:
        """Add an element to the array at `path`."""
        if self.value is not None:
            self.text = append(self._text, path, source)

    def rename(self, name: str) -> None:
        """Change the type on the `event:` line of a server-sent event; "" removes the line."""
        self._name = name

    def source(self, path: Path) -> str:
        """Return the source of the value at `path` of the data; "" if there is none."""
        return source_at(self._text, path) if self.value is not None else ""

    def like(self) -> "MutableEvent":
        """Return a copy of this event, to be inserted beside it."""
        other = MutableEvent(None, self.raw, self._data, self.type)
        other.text = self._text
        return other

    def on_wire(self) -> bytes:
        """Return the changed event as bytes."""
        if self._text == self._original and self._name is None:
            return self.raw
        start, end = self._data
        data = self._text.encode("utf-8", "surrogateescape")
        return self._named(self._framed(start, data, end))

    def _framed(self, start: int, data: bytes, end: int) -> bytes:
        return self.raw[:start] + data + self.raw[end:]

    def _named(self, raw: bytes) -> bytes:
        line = _NAME_LINE.search(raw) if self._name is not None else None
        if line is None:
            return raw
        named = b"event: %b%b" % (self._name.encode(), line[1]) if self._name else b""
        return raw[: line.start()] + named + raw[line.end() :]


class BinaryMessage(MutableEvent):
    """A binary message; its text is its payload, or what the payload carries."""

    def __init__(self, start: int | None, raw: bytes, type_: str) -> None:
        payload = payload_span(raw)
        super().__init__(start, raw, payload, type_)
        self._carried: tuple[int, int] | None = None
        found = _BYTES.search(raw, *payload)
        carried = _decoded(found[1]) if found else None
        if found and carried is not None:
            self._carried = found.span(1)
            self._text = self._original = carried

    def like(self) -> "BinaryMessage":
        other = BinaryMessage(None, self.raw, self.type)
        other.text = self._text
        return other

    def _framed(self, start: int, data: bytes, end: int) -> bytes:
        if self._carried:
            first, last = self._carried
            data = self.raw[start:first] + b64encode(data) + self.raw[last:end]
        return encode_message(self.raw[PRELUDE_SIZE:start], data)

    def _named(self, raw: bytes) -> bytes:
        return raw


def _decoded(carried: bytes) -> str | None:
    """Decode base64 that encodes to the same text again."""
    try:
        data = b64decode(carried)
    except Base64Error:
        return None
    return data.decode("utf-8", "surrogateescape") if b64encode(data) == carried else None


def is_array(body: bytes) -> bool:
    """Return whether a body is read as one JSON array."""
    return body.lstrip().startswith(b"[")


def is_sse(body: bytes) -> bool:
    """Return whether a body is read as server-sent events."""
    return not is_message(body) and not body.lstrip().startswith((b"[", b"{"))


def units_of(body: bytes) -> list[MutableEvent]:
    """Return the events of `body` that can be rewritten, in order."""
    if is_sse(body):
        units = (_sse_unit(body, event) for event in _decode(SseDecoder(), body))
        return [unit for unit in units if unit is not None]
    if is_message(body):
        events = _decode(EventStreamDecoder(), body)
        return [BinaryMessage(event.start, _raw(body, event), event.type) for event in events]
    events = _decode(JsonArrayDecoder() if is_array(body) else NdjsonDecoder(), body)
    raws = ((event, _raw(body, event)) for event in events)
    return [MutableEvent(e.start, raw, (0, len(raw.rstrip())), e.type) for e, raw in raws]


def _decode(decoder: Decoder, body: bytes) -> list[Event]:
    events = decoder.feed(body, 0, None)
    decoder.end()
    return events if decoder.tail is None else [*events, decoder.tail]


def _raw(body: bytes, event: Event) -> bytes:
    return body[slice(*event.place.span)]


def _sse_unit(body: bytes, event: Event) -> MutableEvent | None:
    """Return an event with its blank line; None if its data is not one line of UTF-8."""
    start, end = event.place.span
    if body[end - 1 : end + 1] == b"\r\n":
        end += 1  # the decoder's spans end after the CR
    raw = body[start:end]
    lines = [*_DATA_LINE.finditer(raw)]
    if len(lines) != 1 or lines[0][1] != event.data.encode(errors="replace"):
        return None
    return MutableEvent(start, raw, lines[0].span(1), event.type)


# Edits of a body and where they move its bytes: into which read, chunk and masked span.
#
# An edit is a range of the body and its replacement; edits ascend and do not overlap.
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


class MutableExchange:
    """An exchange and its units, which mutators change in place."""

    def __init__(self, exchange: Exchange, body: bytes) -> None:
        self.exchange = exchange
        self.units = units_of(body)
        """The events of the body, in order, and new ones between them."""
        self.reason: EndReason | None = None
        """How the transport ends, if not as recorded."""
        self._body = body
        self._body_edits: list[BodyEdit] = []
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
        recorded = (each for each in reversed(self.units[:place]) if each.start is not None)
        last = next(recorded, unit)
        end = (last.start or 0) + len(last.raw)
        self.shorten(len(self._body) - end)
        self.reason = reason

    def shorten(self, size: int) -> None:
        """Remove the last `size` bytes of the body."""
        self.edit(len(self._body) - size, len(self._body), b"")

    def edit(self, start: int, end: int, data: bytes) -> None:
        """Replace `[start, end)` of the body, where no unit is changed, by `data`."""
        self._body_edits.append(BodyEdit(start, end, data))

    def of_type(self, kind: str) -> list[MutableEvent]:
        """Return the units whose data has this `type`."""
        return [unit for unit in self.units if at(unit.value, "type") == kind]

    def renumber(self) -> None:
        """Renumber the remaining events, as if the removed ones had never existed.

        That is `sequence_number`, which only events of Responses have.
        """
        number = 0
        for unit in self.units:
            if not unit.removed and at(unit.value, "sequence_number") is not None:
                if at(unit.value, "sequence_number") != number:
                    unit.put(("sequence_number",), str(number))
                number += 1

    def tail(self) -> bytes:
        """Return the body from its last unit's data on."""
        last = self.units[-1]
        return self._body[(last.start or 0) :]

    def retime(self, times: Callable[[Read], int]) -> None:
        """Set the time of each read to `times`, in nanoseconds."""
        self._times = times

    def result(self) -> Exchange | None:
        """Return the changed exchange; None if nothing is changed."""
        edits = tidy([*self._unit_edits(), *self._body_edits])
        body = edited(self._body, edits)
        if body == self._body and self._times is None:
            return None
        moved = OffsetMap(edits)
        changed = replace(
            self.exchange,
            reads=tuple(self._reads(moved, body)),
            delivered=tuple(
                replace(progress, bytes=moved.at(progress.bytes))
                for progress in self.exchange.delivered
            ),
        )
        return self._ended(changed, body)

    def _unit_edits(self) -> Iterator[BodyEdit]:
        own = [unit for unit in self.units if unit.start is not None]
        places = {id(unit): place for place, unit in enumerate(own)}
        last = max((places[id(unit)] for unit in own if not unit.removed), default=-1)
        first = before = own[0].start or 0 if own else 0
        for unit in self.units:
            if unit.start is None:
                if not unit.removed:
                    data = unit.on_wire()
                    if is_array(self._body):
                        data = data + b"," if before == first else b"," + data
                    yield BodyEdit(before, before, data)
                continue
            end = unit.start + len(unit.raw)
            if unit.removed:
                yield self._removal(own, places[id(unit)], last)
            else:
                yield narrowed(unit.start, unit.raw, unit.on_wire())
            before = end

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
            headers = tuple(
                (name, size if name.lower() == b"content-length" else value)
                for name, value in response.headers
            )
            response = replace(response, headers=headers)
        fitted = replace(exchange, end=end, response=response)
        return fitted if self._times is None else watched(fitted)
