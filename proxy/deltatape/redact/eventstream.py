"""Convert Amazon's binary messages to text that can be searched and overwritten, and back.

Strategy. `unfold` turns a body into text: header names and values, payloads, and the decoded base64
that payloads carry under `bytes` (Bedrock's InvokeModel), joined by separators that no secret
contains. After characters were overwritten, `folded` converts the text back: it encodes base64
again and updates correct checksums. Lengths, preludes and sizes in headers never change.

A message with a wrong checksum keeps a wrong one: the complement of the correct one, which reveals
nothing about the original. Base64 that cannot be encoded again at the same length is overwritten by
asterisks completely.

Spec: https://smithy.io/2.0/aws/amazon-eventstream.html
"""

import bisect
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from deltatape.model.stream import AnomalyKind
from deltatape.redact.json_strings import FramedBody, framed
from deltatape.secret_text.escaped_text import LayeredView, Overwrite, joined
from deltatape.wire.aws_eventstream import (
    CHECKSUM_SIZE,
    PRELUDE_SIZE,
    STRING_KINDS,
    EventStreamDecoder,
    checksum,
    header_places,
    is_message,
)

Span = tuple[int, int]

_COMPLEMENT = 0xFFFFFFFF
_GLUE = b"\n\0\n"
_STRUCTURE = frozenset(
    (b":message-type", b":event-type", b":content-type", b":exception-type", b":error-code")
)
"""Headers that say what a message is and not what it says."""

_CARRIED = re.compile(rb'"bytes"\s*+:\s*+"([^"\\]*+(?:\\.[^"\\]*+)*+)', re.DOTALL)
_BASE64 = re.compile(rb"([A-Za-z0-9+/]*+)={0,2}")
_FOREIGN = re.compile(rb"[^A-Za-z0-9+/]")
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_BITS = 6
"""Bits in a character of base64."""
_SPOTTED = frozenset(
    (AnomalyKind.BAD_MESSAGE, AnomalyKind.TOO_LARGE, AnomalyKind.UNTERMINATED_EVENT)
)


class _Part(NamedTuple):
    """A run of the plain text, and the bytes of the body that it comes from."""

    at: int
    text: bytes
    start: int
    raw: bytes

    @property
    def is_base64(self) -> bool:
        """Return whether the bytes are base64 that can be encoded again."""
        return self.text is not self.raw and _BASE64.fullmatch(self.raw) is not None

    def span(self, start: int, end: int) -> Span:
        """Return the part of the body for `[start, end)` of the plain text."""
        start, end = max(start - self.at, 0), min(end - self.at, len(self.text))
        if self.is_base64:
            start, end = start * 8 // _BITS, -(-end * 8 // _BITS)
        elif self.text is not self.raw:
            start, end = 0, len(self.raw)
        return self.start + start, self.start + end

    def folded(self, text: bytes) -> bytes:
        """Return the bytes that encode `text`, which is as long as the original one."""
        if text == self.text:
            return self.raw
        if self.text is self.raw:
            return text
        return _encoded(text, self.raw) if self.is_base64 else b"*" * len(self.raw)


class _Message(NamedTuple):
    """A message, or bytes that are none (`size` 0), at `[start, end)` of the body."""

    start: int
    end: int
    size: int
    """The size of the whole message; its end can be missing."""

    def checksum(self, body: bytes | bytearray) -> tuple[bytes, int]:
        """Return the bytes present of the message's checksum, and the correct one."""
        stop = self.start + self.size - CHECKSUM_SIZE
        if not self.size or stop >= self.end:
            return b"", 0
        return bytes(body[stop : self.end]), checksum(body[self.start : stop])

    def update_checksum(self, body: bytearray, before: bytes) -> None:
        """Update the message's checksum if the message changed since `before`."""
        known, right = self.checksum(before)
        stop = self.end - len(known)
        if not known or body[self.start : stop] == before[self.start : stop]:
            return
        was_right = right.to_bytes(4).startswith(known)
        _, now = self.checksum(body)
        new = now if was_right else now ^ _COMPLEMENT
        body[stop : self.end] = new.to_bytes(4)[: len(known)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedEventStream:
    """A body as text."""

    body: bytes
    plain: bytes
    events: tuple[Span, ...]
    """In the plain text: what should be JSON."""
    prose: tuple[Span, ...]
    """In the plain text: values of headers that are not known to be structure, and what is between
    messages."""
    _parts: tuple[_Part, ...]
    _messages: tuple[_Message, ...]

    def framed(self, plain: LayeredView) -> FramedBody:
        """Return the plain text, or an overwritten one, as a stream of events."""
        return FramedBody(plain, self.events, is_stream=True)

    def folded(self, plain: bytes) -> bytes:
        """Return the body with `plain` in place of its text."""
        body = bytearray(self.body)
        for part in self._parts:
            text = plain[part.at : part.at + len(part.text)]
            body[part.start : part.start + len(part.raw)] = part.folded(text)
        for message in self._messages:
            message.update_checksum(body, self.body)
        return bytes(body)

    def spans(self, spans: Iterable[Span]) -> tuple[Span, ...]:
        """Return where spans of the plain text are in the body: ascending, neighbours joined."""
        return joined(lower for span in spans for lower in self._below(*span))

    def edits(self, body: bytes, spans: Iterable[Span] | None = None) -> tuple[Overwrite, ...]:
        """Return the changed messages of `body`: all, or those that `spans` touch."""
        touched = self._messages
        if spans is not None:
            starts = [message.start for message in self._messages]
            places = {bisect.bisect_right(starts, start) - 1 for start, _ in spans}
            touched = tuple(self._messages[place] for place in sorted(places))
        return tuple(
            Overwrite(start, body[start:end].decode("latin-1"))
            for start, end, _ in touched
            if body[start:end] != self.body[start:end]
        )

    def _below(self, start: int, end: int) -> Iterator[Span]:
        """Yield the parts of a span that begins and ends in encoded parts."""
        place = bisect.bisect_right(self._parts, start, key=lambda part: part.at) - 1
        for part in map(self._parts.__getitem__, range(max(place, 0), len(self._parts))):
            if part.at >= end:
                return
            yield part.span(start, end)


def unfold(body: bytes) -> DecodedEventStream | None:
    """Return a body of Amazon's messages as text; None if it has none."""
    messages = _messages(body)
    if not messages:
        return None
    layout = _Layout(body)
    for message in messages:
        layout.add(message)
    return DecodedEventStream(
        body=body,
        plain=b"".join(layout.texts),
        events=tuple(layout.events),
        prose=tuple(layout.prose),
        _parts=tuple(layout.parts),
        _messages=messages,
    )


class ChecksummedBody(NamedTuple):
    """The checksums of a body."""

    repairs: tuple[Overwrite, ...]
    """Recomputed checksums of messages in which bytes were masked."""
    wrong: tuple[int, ...]
    """Where messages begin that arrived with a wrong checksum."""


def check_checksums(body: bytes, masked: Iterable[Span]) -> ChecksummedBody:
    """Check the checksums of a body; `masked` are ascending spans that were overwritten."""
    repairs: list[Overwrite] = []
    wrong: list[int] = []
    spans = sorted(masked)
    for message in _messages(body):
        known, right = message.checksum(body)
        if right.to_bytes(4).startswith(known):
            continue
        place = bisect.bisect_left(spans, message.end, key=lambda span: span[0])
        is_masked = place > 0 and spans[place - 1][1] > message.start
        if is_masked and not (right ^ _COMPLEMENT).to_bytes(4).startswith(known):
            text = right.to_bytes(4)[: len(known)].decode("latin-1")
            repairs.append(Overwrite(message.end - len(known), text))
        else:
            wrong.append(message.start)
    return ChecksummedBody(tuple(repairs), tuple(wrong))


def _messages(body: bytes) -> tuple[_Message, ...]:
    """Return all of a body as messages and the bytes in between; () without any message."""
    if not is_message(body) and (
        b"\0" not in body or framed(LayeredView(body.decode("latin-1"))).events
    ):
        return ()
    decoder = EventStreamDecoder()
    places = [event.place for event in decoder.feed(body, 0, None)]
    decoder.end()
    places += [a.place for a in decoder.anomalies if a.kind in _SPOTTED]
    found = []
    for start, end in sorted({(place.span.start, place.span.end) for place in places}):
        known = is_message(body[start : start + PRELUDE_SIZE])
        found.append(_Message(start, end, int.from_bytes(body[start : start + 4]) if known else 0))
    return tuple(found) if any(message.size for message in found) else ()


class _Layout:
    """Lays out the plain text."""

    def __init__(self, body: bytes) -> None:
        self.texts: list[bytes] = []
        self.parts: list[_Part] = []
        self.events: list[Span] = []
        self.prose: list[Span] = []
        self._body = body
        self._at = 0

    def add(self, message: _Message) -> None:
        """Add the next message."""
        start, end, size = message
        if not size:
            self._prose(start, end)
            return
        prelude = self._body[start : start + PRELUDE_SIZE]
        payload = min(start + PRELUDE_SIZE + int.from_bytes(prelude[4:8]), end)
        self._headers(start + PRELUDE_SIZE, payload)
        self._payload(payload, min(start + size - CHECKSUM_SIZE, end))

    def _headers(self, at: int, end: int) -> None:
        """Add names and values that can be read; the rest unchanged."""
        for (first, last), kind, (start, stop) in header_places(self._body, at, end):
            self._part(first, last)
            self._end()
            at = min(stop, end)
            if kind in STRING_KINDS:
                if self._body[first:last] in _STRUCTURE:
                    self._part(start, at)
                    self._end()
                else:
                    self._prose(start, at)
        if at < end:
            self._prose(at, end)

    def _payload(self, start: int, end: int) -> None:
        """Add each value of the payload, then the payload without them."""
        found = [match.span(1) for match in _CARRIED.finditer(self._body, start, end)]
        for first, last in found:
            raw = self._body[first:last]
            self.events.append(self._add(_decoded(raw), first, raw))
            self._end()
        begin = self._at
        for first, last in found:
            self._part(start, first)
            start = last
        self._part(start, end)
        if begin < self._at:
            self.events.append((begin, self._at))
        self._end()

    def _prose(self, start: int, end: int) -> None:
        self.prose.append(self._part(start, end))
        self._end()

    def _part(self, start: int, end: int) -> Span:
        """Add bytes unchanged."""
        raw = self._body[start:end]
        return self._add(raw, start, raw)

    def _add(self, text: bytes, start: int, raw: bytes) -> Span:
        at = self._at
        self.parts.append(_Part(at, text, start, raw))
        self.texts.append(text)
        self._at += len(text)
        return at, self._at

    def _end(self) -> None:
        self.texts.append(_GLUE)
        self._at += len(_GLUE)


def _decoded(raw: bytes) -> bytes:
    """Decode base64, also truncated or without padding; leave other data unchanged."""
    exact = _BASE64.fullmatch(raw)
    chars = exact[1] if exact else _FOREIGN.sub(b"", raw.translate(_URL_SAFE))
    return _decode_padded(chars)[: len(chars) * _BITS // 8]


def _decode_padded(chars: bytes) -> bytes:
    """Decode base64 without padding; missing bits of a last byte are 0."""
    return b64decode(chars + b"A" * (-len(chars) % 4))


def _encoded(text: bytes, raw: bytes) -> bytes:
    """Encode a text as base64 of the same length as `raw`, keeping the unused bits."""
    chars = raw.rstrip(b"=")
    return b64encode(text + _decode_padded(chars)[len(text) :])[: len(chars)] + raw[len(chars) :]
