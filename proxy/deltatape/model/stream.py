"""A framed response body: events, comments and anomalies, with place and time."""

import enum
from dataclasses import dataclass
from typing import NamedTuple


class Span(NamedTuple):
    """Byte offsets into the body after content-coding, half-open: `[start, end)`."""

    start: int
    end: int


class Format(enum.StrEnum):
    """How a body is framed into events."""

    SSE = "sse"
    NDJSON = "ndjson"
    """A JSON value per line."""
    JSON_ARRAY = "json-array"
    """One JSON array, an event per element."""
    EVENTSTREAM = "aws-eventstream"
    """Amazon's binary messages with checksums."""
    JSON = "json"
    """One JSON document: a single event."""
    WEBSOCKET = "websocket"
    """The messages of the server on a WebSocket."""
    OTHER = "other"
    """Nothing that events can be read from."""


class Place(NamedTuple):
    """Where and when: the bytes, the tape line of the record that completed them, its time."""

    span: Span
    t_ns: int
    line: int | None


class Event(NamedTuple):
    """One framed unit. For SSE: what WHATWG HTML 9.2.6 dispatches.

    `number` counts from 0. `type` is the SSE event type ("message" by default) or the
    `:event-type` of an eventstream message, `id` the last event ID, `data` the text after joining
    data lines, the line, the array's element, or the message's payload. `start`, `end`, `t_ns` and
    `line` are those of `place`, which few ask for and which is made when they do.
    """

    number: int
    type: str
    data: str
    id: str
    retry: int | None
    start: int
    end: int
    t_ns: int
    line: int | None
    exception: bool = False
    """Whether the framing itself says that this is an error; `type` is then the error's."""

    @property
    def place(self) -> Place:
        """Where and when."""
        return Place(Span(self.start, self.end), self.t_ns, self.line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """An SSE comment without its colon, often a keep-alive."""

    text: str
    place: Place


class AnomalyKind(enum.StrEnum):
    """Defects of the framing: what the standard drops or replaces, and what cannot be framed."""

    BYTE_ORDER_MARK = "byte-order-mark"
    INVALID_UTF8 = "invalid-utf-8"
    UNTERMINATED_EVENT = "unterminated-event"
    """The body ended before the blank line that dispatches the event."""
    EVENT_WITHOUT_DATA = "event-without-data"
    """A block with fields but without data: the standard dispatches nothing."""
    UNKNOWN_FIELD = "unknown-field"
    BAD_RETRY = "bad-retry"
    ID_WITH_NULL = "id-with-null"
    BAD_CONTENT_CODING = "bad-content-coding"
    BAD_MESSAGE = "bad-message"
    """Bytes where a message should be that are none: a wrong checksum, impossible lengths."""
    TOO_LARGE = "too-large"
    """Decoding stopped at a limit that keeps untrusted bodies from eating the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """A defect of the framing; `event` is the number of the affected event, if any."""

    kind: AnomalyKind
    detail: str
    place: Place
    event: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A framed body.

    `pending` is the event that the end of the body left undispatched: the standard drops it, some
    clients do not.
    """

    format: Format
    body: bytes
    """After content-coding."""
    events: tuple[Event, ...]
    comments: tuple[Comment, ...]
    anomalies: tuple[Anomaly, ...]
    pending: Event | None
