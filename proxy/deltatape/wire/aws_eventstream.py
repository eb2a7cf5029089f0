"""Amazon's event stream encoding, read and written: binary messages with checksums.

Spec: https://smithy.io/2.0/aws/amazon-eventstream.html. A message is, in network byte order: u32
total length, u32 length of the headers, u32 CRC-32 of these eight bytes (together the *prelude*),
headers, payload, u32 CRC-32 of all before it.

A message with a wrong checksum or wrong headers is noted with its span and makes no event: Amazon's
clients raise there, so a correct client does not get its content. Later messages are read, since
its length was right. Bytes that are not a prelude are skipped up to the next prelude, as one
anomaly. A message larger than those clients accept is skipped, too.

Invariants. At most one message of the largest size is held. The search for a prelude looks at every
byte once, and computes a checksum only where the lengths are plausible.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple, TypeAlias
from zlib import crc32

from deltatape.model.stream import AnomalyKind, Event
from deltatape.wire.framer import Framer

HEADERS_LIMIT = 128 * 1024
PAYLOAD_LIMIT = 24 * 1024 * 1024
"""Bytes of headers and of payload that Amazon's own clients take."""

PRELUDE_SIZE = 12
CHECKSUM_SIZE = 4

_PRELUDE = Struct(">III")
_LENGTHS = 8
_FRAME = PRELUDE_SIZE + CHECKSUM_SIZE
"""Bytes of a message without headers and payload."""
_POSSIBLE = re.compile(rb"(?:\x01|\x00(?!\x00\x00[\x00-\x0f]))(?=.{3}\x00[\x00-\x02])", re.DOTALL)
"""Where lengths within the limits can begin: `_FRAME` to 0x01820010, then up to 0x00020000."""
_LARGEST_FIRST = 1
_HEADS_LIMIT = 64
_STRING = 7
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""The sizes of header values, by type: true, false, byte, short, integer, long, timestamp, UUID."""
STRING_KINDS = (6, _STRING)
"""Types of values, bytes and strings, that begin with their length in two bytes."""
_NAMED_BY = {"exception": ":exception-type", "error": ":error-code"}
"""By the type of message, the header that says which error it is."""

HeaderValue: TypeAlias = bool | int | bytes | str
"""A timestamp is an integer, milliseconds since 1970; a UUID is its 16 bytes."""


class _Prelude(NamedTuple):
    """The fixed fields at the start of a message."""

    size: int
    """The size of the whole message."""
    headers: int
    """The size of its headers."""
    checksum: int
    """The checksum of the two lengths."""


@dataclass(frozen=True, slots=True)
class _Head:
    """The parsed headers of a message."""

    type: str
    exception: bool
    message: str
    """The error message in the headers; "" if there is none."""


_State: TypeAlias = Callable[["EventStreamDecoder", int], int]
"""A function of the class: a bound method would hold the decoder that holds it."""


class EventStreamDecoder(Framer):
    """Decodes one body of binary messages. See `Decoder`."""

    def __init__(self, limit: int = PAYLOAD_LIMIT) -> None:
        """Args: limit: bytes of payload that a message may have."""
        super().__init__(limit)
        self._events: list[Event] = []
        self._buffer = bytearray()
        """The bytes from `_offset` of the body on."""
        self._state: _State = EventStreamDecoder._at_prelude
        self._needed = PRELUDE_SIZE
        """How many bytes `_state` needs to continue."""
        self._prelude = _Prelude(0, 0, 0)
        """The prelude of the current message."""
        self._left = 0
        """Bytes of a message that is too large and being skipped."""
        self._start = 0
        """Where in the body the current message, or run of stray bytes, begins."""
        self._heads: dict[bytes, _Head] = {}
        """A cache by encoded headers: a body has few different ones."""

    def feed(self, data: bytes, t_ns: int, line: int | None) -> list[Event]:
        self._t_ns, self._line = t_ns, line
        self._buffer += data
        self._events = []
        at = 0
        while len(self._buffer) - at >= self._needed:
            at = self._state(self, at)
        del self._buffer[:at]
        self._offset += at
        return self._events

    def end(self) -> Event | None:
        """See `Decoder.end`. A message without its end has no event."""
        end = self._offset + len(self._buffer)
        if self._state is EventStreamDecoder._at_prelude:
            if not self._buffer:
                return None
            self._start = self._offset
            if self._buffer[0] > _LARGEST_FIRST:
                self._state = EventStreamDecoder._in_junk
        if self._state is EventStreamDecoder._in_junk:
            self._bad("bytes that are not a message", self._start, end)
            return None
        if self._state is EventStreamDecoder._in_large:
            self._too_large(end)
        detail = "the body ends inside a message"
        if self._state is not EventStreamDecoder._at_prelude:
            detail += f" of {self._prelude.size} bytes"
        self._note(AnomalyKind.UNTERMINATED_EVENT, detail, self._start, end)
        return None

    def _expect(self, state: _State, needed: int) -> None:
        self._state = state
        self._needed = needed

    def _at_prelude(self, at: int) -> int:
        """At the first bytes of a message."""
        self._start = self._offset + at
        prelude = _prelude(self._buffer, at)
        if prelude is None:
            self._expect(EventStreamDecoder._in_junk, PRELUDE_SIZE)
            return at + 1
        self._prelude = prelude
        payload = prelude.size - _FRAME - prelude.headers
        if prelude.headers > HEADERS_LIMIT or payload > self._limit:
            self._left = prelude.size
            self._expect(EventStreamDecoder._in_large, 1)
        else:
            self._expect(EventStreamDecoder._in_message, prelude.size)
        return at

    def _in_junk(self, at: int) -> int:
        """Skip bytes outside of messages, up to a possible incomplete prelude."""
        last = len(self._buffer) - PRELUDE_SIZE
        found = _POSSIBLE.search(self._buffer, at)
        while found is not None and found.start() <= last:
            start = found.start()
            if _prelude(self._buffer, start) is not None:
                self._bad("bytes that are not a message", self._start, self._offset + start)
                self._expect(EventStreamDecoder._at_prelude, PRELUDE_SIZE)
                return start
            found = _POSSIBLE.search(self._buffer, start + 1)
        return last + 1

    def _in_large(self, at: int) -> int:
        """Skip a message that is too large."""
        step = min(self._left, len(self._buffer) - at)
        self._left -= step
        if self._left == 0:
            self._too_large(self._offset + at + step)
            self._expect(EventStreamDecoder._at_prelude, PRELUDE_SIZE)
        return at + step

    def _in_message(self, at: int) -> int:
        """At a message that is all there."""
        size, headers_size, checksum = self._prelude
        raw = bytes(self._buffer[at : at + size])
        self._expect(EventStreamDecoder._at_prelude, PRELUDE_SIZE)
        head = self._head(raw[PRELUDE_SIZE : PRELUDE_SIZE + headers_size])
        start, end = self._start, self._start + size
        # The prelude's checksum is that of the first bytes: no need to go over them again.
        right = crc32(raw[_LENGTHS:-CHECKSUM_SIZE], checksum) == int.from_bytes(
            raw[-CHECKSUM_SIZE:]
        )
        if head is None:
            self._bad("a message whose headers cannot be read", start, end)
        elif not right:
            self._bad(f"the checksum of a message ({head.type}) is wrong", start, end)
        else:
            payload = raw[PRELUDE_SIZE + headers_size : -CHECKSUM_SIZE]
            text = self._text(payload, start + PRELUDE_SIZE + headers_size)
            self._events.append(
                self._event(text or head.message, start, end, head.type, exception=head.exception)
            )
        return at + size

    def _head(self, encoded: bytes) -> _Head | None:
        """Return what `encoded` headers say; None if they cannot be read."""
        head = self._heads.get(encoded)
        if head is None:
            try:
                head = _head(parse_headers(encoded))
            except ValueError:
                return None
            if len(self._heads) < _HEADS_LIMIT:
                self._heads[encoded] = head
        return head

    def _bad(self, detail: str, start: int, end: int) -> None:
        self._note(AnomalyKind.BAD_MESSAGE, detail, start, end)

    def _too_large(self, end: int) -> None:
        detail = f"a message of {self._prelude.size} bytes, more than clients take; it was skipped"
        self._note(AnomalyKind.TOO_LARGE, detail, self._start, end)


def is_message(body: bytes) -> bool:
    """Return whether `body` begins with a message's prelude."""
    return len(body) >= PRELUDE_SIZE and _prelude(body, 0) is not None


def payload_span(message: bytes) -> tuple[int, int]:
    """Return the payload's span in a whole message; the headers come before it."""
    return PRELUDE_SIZE + int.from_bytes(message[4:8]), len(message) - CHECKSUM_SIZE


def checksum(data: bytes | bytearray) -> int:
    """Return the checksum of `data`: a message without its checksum, or the two lengths."""
    return crc32(data)


class HeaderPlace(NamedTuple):
    """The spans of a header's name and value, and the value's type."""

    name: tuple[int, int]
    kind: int
    value: tuple[int, int]
    """Without its length. May end behind the headers, if these are cut."""


def header_places(data: bytes, start: int, end: int) -> Iterator[HeaderPlace]:
    """Yield the headers in `[start, end)` of `data`, up to the first unreadable one."""
    at = start
    while at < end:
        name, name_end = at + 1, at + 1 + data[at]
        kind = data[name_end] if name_end < end else -1
        value = name_end + (3 if kind in STRING_KINDS else 1)
        if kind not in _SIZES and (kind not in STRING_KINDS or value > end):
            return
        size = _SIZES.get(kind, int.from_bytes(data[name_end + 1 : value]))
        at = value + size
        yield HeaderPlace((name, name_end), kind, (value, at))


def parse_headers(encoded: bytes) -> dict[str, HeaderValue]:
    """Return the values of a message's headers by name.

    Raises:
        ValueError: they end too early, have an unknown type, text that is not UTF-8, or the same
            name twice.
    """
    headers: dict[str, HeaderValue] = {}
    read = 0
    for (start, end), kind, (first, read) in header_places(encoded, 0, len(encoded)):
        raw = encoded[first:read]
        value: HeaderValue
        match kind:
            case 0 | 1:
                value = kind == 0
            case 7:
                value = raw.decode()
            case 6 | 9:
                value = raw
            case _:
                value = int.from_bytes(raw, signed=True)
        key = encoded[start:end].decode()
        if key in headers:
            raise ValueError(f"header {key!r} twice")
        headers[key] = value
    if read != len(encoded):
        raise ValueError(f"{len(encoded)} bytes of headers that cannot be read up to their end")
    return headers


def encode_headers(headers: Mapping[str, str]) -> bytes:
    """Encode headers whose values are all strings."""
    pairs = ((name.encode(), text.encode()) for name, text in headers.items())
    return b"".join(
        b"%c%b%c%b%b" % (len(name), name, _STRING, len(value).to_bytes(2), value)
        for name, value in pairs
    )


def encode_message(headers: bytes, payload: bytes) -> bytes:
    """Return a message with these headers, encoded, and this payload."""
    size = _FRAME + len(headers) + len(payload)
    lengths = size.to_bytes(4) + len(headers).to_bytes(4)
    message = lengths + crc32(lengths).to_bytes(4) + headers + payload
    return message + crc32(message).to_bytes(4)


def _prelude(data: bytes | bytearray, at: int) -> _Prelude | None:
    """Return the prelude that begins at `at`; None if none does. All of its bytes are there."""
    prelude = _Prelude(*_PRELUDE.unpack_from(data, at))
    if prelude.size < _FRAME + prelude.headers:
        return None
    return prelude if crc32(data[at : at + _LENGTHS]) == prelude.checksum else None


def _head(headers: Mapping[str, HeaderValue]) -> _Head:
    kind = headers.get(":message-type")
    named = _NAMED_BY.get(kind) if isinstance(kind, str) else None
    name = headers.get(named or ":event-type")
    default = str(kind) if named else "message"
    text = headers.get(":error-message")
    return _Head(
        type=name if isinstance(name, str) and name else default,
        exception=named is not None,
        message=json.dumps({"message": text}) if kind == "error" and isinstance(text, str) else "",
    )
