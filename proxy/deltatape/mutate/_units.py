"""A body as events whose data can be rewritten, keeping framing and spelling.

Four framings: server-sent events, JSON lines, one JSON array, Amazon's binary messages (their
checksums are recomputed; of messages that carry base64 under `bytes`, the data is what that says).
What is no event - comments, blank lines, a torn end - belongs to no unit and is never touched.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping
from typing import TypeAlias

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
from deltatape.wire.json_edit import Path, append, drop, put, quoted, source_at
from deltatape.wire.json_value import parse
from deltatape.wire.ndjson import NdjsonDecoder
from deltatape.wire.sse import SseDecoder

_DATA_LINE = re.compile(rb"^data: ?([^\r\n]*)", re.MULTILINE)
_NAME_LINE = re.compile(rb"^event: ?[^\r\n]*(\r\n?|\n)", re.MULTILINE)
_BYTES = re.compile(rb'"bytes"\s*+:\s*+"([A-Za-z0-9+/=]*+)"')

Span: TypeAlias = tuple[int, int]


class MutableEvent:
    """An event of the body, before and after changes.

    Attributes:
        start: where it begins in the body; None if it was not in it.
        raw: its bytes as they came, or those of the event that it is made after.
        type: the event's type.
        removed: whether it is to be left out.
    """

    def __init__(self, start: int | None, raw: bytes, data: Span, type_: str) -> None:
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
    def data_span(self) -> Span:
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
        """Change the type that a server-sent event names."""
        self._name = name

    def unnamed(self) -> None:
        """Remove the line with the type of a server-sent event."""
        self._name = ""

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
        self._carried: Span | None = None
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
    if is_message(body):
        return _taken(EventStreamDecoder(), body, _message)
    if is_array(body):
        return _taken(JsonArrayDecoder(), body, _element)
    if is_sse(body):
        return _taken(SseDecoder(), body, _server_sent)
    return _taken(NdjsonDecoder(), body, _element)


_Maker: TypeAlias = Callable[[bytes, Event], MutableEvent | None]


def _taken(decoder: Decoder, body: bytes, make: _Maker) -> list[MutableEvent]:
    events = decoder.feed(body, 0, None)
    decoder.end()
    if decoder.tail is not None:
        events.append(decoder.tail)
    found = (make(body, event) for event in events)
    return [unit for unit in found if unit is not None]


def _message(body: bytes, event: Event) -> MutableEvent:
    start, end = event.place.span
    return BinaryMessage(start, body[start:end], event.type)


def _element(body: bytes, event: Event) -> MutableEvent:
    start, end = event.place.span
    raw = body[start:end]
    return MutableEvent(start, raw, (0, len(raw.rstrip())), event.type)


def _server_sent(body: bytes, event: Event) -> MutableEvent | None:
    """Return a server-sent event with its blank line; None if its data is not one line of UTF-8."""
    start, end = event.place.span
    if body[end - 1 : end + 1] == b"\r\n":
        end += 1  # the decoder's spans end behind the CR
    raw = body[start:end]
    lines = [*_DATA_LINE.finditer(raw)]
    if len(lines) != 1 or lines[0][1] != event.data.encode(errors="replace"):
        return None
    return MutableEvent(start, raw, lines[0].span(1), event.type)


def kinds(units: list[MutableEvent]) -> Mapping[str, list[MutableEvent]]:
    """Group the units by the `type` in their data."""
    found: dict[str, list[MutableEvent]] = {}
    for unit in units:
        kind = unit.value.get("type") if isinstance(unit.value, dict) else None
        if isinstance(kind, str):
            found.setdefault(kind, []).append(unit)
    return found
