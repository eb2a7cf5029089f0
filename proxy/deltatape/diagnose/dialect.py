"""Find the dialect of an exchange: by its response, else by the path of its request.

The first events are looked at in windows that grow: most dialects show themselves at once, and a
few after a long time of pings. The path counts only where the response holds nothing but errors and
pings, or nothing; where it has the status of an error, whose bodies gateways write as they like;
and where a stream was asked for and a strange document came. Applications call their own endpoints
`/api/chat`, too, and may answer with documents and plain text of their own there.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from deltatape.diagnose.decode import media_type
from deltatape.dialects import DIALECTS, Dialect, Hints, detect, error_message, expect
from deltatape.model.exchange import Exchange
from deltatape.model.stream import Event, Format, Stream
from deltatape.wire.json_value import parse, read_object

_WINDOW = 2
"""Events in the first window: nearly every dialect shows itself at once, or behind one event that
says little, such as the verdict of a filter."""
_GROWTH = 4
_BARE_ERROR = frozenset({"message", "Message", "__type"})
"""All that an error of Amazon's services may consist of."""
_HTTP_ERROR = 400


class DetectedDialect(NamedTuple):
    """The dialect of an exchange, and what was parsed to find it."""

    dialect: Dialect | None
    """None: it is unknown."""
    frames: Sequence[Mapping[str, object] | None]
    """What was read for that, of the first events: the objects that they carry."""


def dialect_of(
    exchange: Exchange, stream: Stream, among: Sequence[Dialect] = DIALECTS
) -> Dialect | None:
    """Return the dialect of `exchange`, whose response is framed as `stream`; None if unknown."""
    return spoken_in(exchange, stream, among).dialect


def spoken_in(
    exchange: Exchange, stream: Stream, among: Sequence[Dialect] = DIALECTS
) -> DetectedDialect:
    """Find the dialect and keep what was parsed."""
    headers = _headers(exchange)
    failed = exchange.response is not None and exchange.response.status >= _HTTP_ERROR
    telling = False
    read: list[Mapping[str, object] | None] = []
    for window in _windows(stream.events):
        frames = [_object_in(event) for event in window]
        read += frames
        hints = Hints(
            format=stream.format,
            headers=headers,
            first=tuple([frame for frame in frames if frame is not None]),
            types=tuple([event.type for event in window]),
        )
        found = detect(hints, among)
        if found is not None:
            return DetectedDialect(found, read)
        telling = telling or any(map(_tells, window, frames))
    found = expect(exchange.request.path, among)
    strange = not failed and (telling or stream.format is Format.OTHER)
    if found is not None and strange and not _answers_otherwise(exchange, stream, found):
        found = None
    return DetectedDialect(found, () if found is None else read)


def _answers_otherwise(exchange: Exchange, stream: Stream, dialect: Dialect) -> bool:
    """Return whether this is an answer in place of a stream of `dialect`."""
    request = exchange.request
    if request.path.rstrip("/").endswith(dialect.traits.shared_paths):
        return stream.format is Format.OTHER and not _is_text(exchange, stream)
    if stream.format is Format.JSON:
        return dialect.read_request(request.body, request.path).stream
    return stream.format is Format.OTHER


def _is_text(exchange: Exchange, stream: Stream) -> bool:
    headers = exchange.response.headers if exchange.response else ()
    return stream.body != b"" and media_type(headers) == "text/plain"


def _windows(events: Sequence[Event]) -> Iterator[Sequence[Event]]:
    """Yield `events` in growing slices; one empty slice if there are none."""
    start, size = 0, _WINDOW
    while start == 0 or start < len(events):
        yield events[start : start + size]
        start, size = start + size, size * _GROWTH


def _object_in(event: Event) -> Mapping[str, object] | None:
    value = read_object(event.data) or parse(event.data).value
    return value if isinstance(value, dict) else None


def _tells(event: Event, frame: Mapping[str, object] | None) -> bool:
    """Return whether `frame` would show its dialect if that were known."""
    if frame is None or event.exception or (frame and frame.keys() <= _BARE_ERROR):
        return False
    if frame.get("type") in ("error", "ping"):
        return False
    return "error" not in frame and error_message(frame, event.type) is None


def _headers(exchange: Exchange) -> str:
    fields = exchange.response.headers if exchange.response else ()
    names = [name for name, value in fields if isinstance(value, bytes)]
    return b"\n".join([b"", *names, b""]).lower().decode("latin-1")
