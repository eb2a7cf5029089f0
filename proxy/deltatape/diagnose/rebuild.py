"""Rebuild an exchange's reply: frame it, find its dialect, reduce it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from deltatape.diagnose.decode import decode, media_type
from deltatape.diagnose.turns import turns_of
from deltatape.diagnose.websocket import read_socket
from deltatape.dialects import (
    DIALECTS,
    UNKNOWN,
    Dialect,
    Hints,
    Reducer,
    UnknownReducer,
    detect,
    dialects_for,
    error_message,
    expect,
    failure_message,
    feed_all,
)
from deltatape.dialects.mcp import ToolServer, speaks_mcp
from deltatape.model.app_names import CONTRACT, AppNames
from deltatape.model.exchange import Exchange, ResponseHead
from deltatape.model.reply import Observation, Reply
from deltatape.model.request_summary import NOTHING_ASKED, RequestSummary
from deltatape.model.stream import Anomaly, AnomalyKind, Event, Format, Place, Span, Stream
from deltatape.wire.json_value import parse, read_object

_HTTP_ERROR = 400
_UNEXPECTED = "S006"
_TOOL_SERVER = ToolServer()
_LONGEST_TEXT = 300
"""How much of a plain-text error to show, in characters."""
TOGETHER = 64
"""How many exchanges to check together."""
TOGETHER_BYTES = 500_000
"""The most bytes of bodies to check together: larger groups do not fit into caches."""
Batched = TypeVar("Batched")


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """An exchange and everything that is derived from it before the rules run."""

    exchange: Exchange
    stream: Stream
    request: RequestSummary
    reply: Reply
    turns: "tuple[Analysis, ...]" = ()
    """The responses of a WebSocket of a known dialect; `reply` has the choices of all."""
    numbers: tuple[int, ...] = ()
    """For such a response: the numbers of its events within the WebSocket."""

    def turn_at(self, line: int | None) -> "Analysis":
        """Return the response whose request is on this tape line; itself if there is none."""
        found = (turn for turn in self.turns if turn.exchange.request.line == line)
        return next(found, self)


class _DetectedDialect(NamedTuple):
    """The dialect of an exchange, and the objects that were parsed to find it."""

    dialect: Dialect | None
    """None: it is unknown."""
    frames: Sequence[Mapping[str, object] | None]
    """The JSON objects of the first events."""


def rebuild(exchange: Exchange, app: AppNames = CONTRACT) -> Reply:
    """Return the assistant message of `exchange` as a correct client reads it.

    Args:
        exchange: with or without a response.
        app: what an application calls the events of its own endpoint.
    """
    return analyse(exchange, app).reply


def analyse(exchange: Exchange, app: AppNames = CONTRACT) -> Analysis:
    """Return `exchange` with its framed response, its parsed request, and the rebuilt reply.

    Args: see `rebuild`.
    """
    return analyse_all((exchange,), app)[0]


def batches(items: Iterable[Batched], size_of: Callable[[Batched], int]) -> Iterator[list[Batched]]:
    """Yield some items at a time: several small ones, but no large ones together."""
    batch: list[Batched] = []
    size = 0
    for item in items:
        batch.append(item)
        size += size_of(item)
        if len(batch) == TOGETHER or size > TOGETHER_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def body_bytes(exchange: Exchange) -> int:
    """Return how long the bodies of request and response are."""
    return len(exchange.request.body) + exchange.body_size


def analyse_all(exchanges: Sequence[Exchange], app: AppNames = CONTRACT) -> list[Analysis]:
    """Analyse several exchanges, in their order.

    Step by step for all of them: what a step needs stays in the processor's caches, which makes it
    an eighth faster than going through all steps for each.

    Args: see `rebuild`.
    """
    streams = [decode(exchange) for exchange in exchanges]
    dialects = dialects_for(app)
    found = _analyse_pairs([*zip(exchanges, streams, strict=True)], dialects)
    return [_with_turns(each, dialects) if each.exchange.upgraded else each for each in found]


def _with_turns(analysis: Analysis, dialects: Sequence[Dialect]) -> Analysis:
    """Return the analysis of a WebSocket with the analyses of its responses, if it has any."""
    exchange, stream = analysis.exchange, analysis.stream
    turns = _analyse_pairs(turns_of(exchange, read_socket(exchange), stream), dialects)
    numbers = {event.start: event.number for event in stream.events}
    known = [
        replace(turn, numbers=tuple([numbers[event.start] for event in turn.stream.events]))
        for turn in turns
        if turn.reply.dialect != UNKNOWN
    ]
    if not known:
        return analysis
    last = known[-1].reply
    choices = (choice for turn in known for choice in turn.reply.choices)
    reply = replace(
        last,
        choices=tuple(replace(choice, index=index) for index, choice in enumerate(choices)),
        error=next((turn.reply.error for turn in known if turn.reply.error is not None), None),
        terminated=all(turn.reply.terminated for turn in known),
        observations=(),
        terminal_event=None,
    )
    return replace(analysis, request=known[0].request, reply=reply, turns=tuple(known))


def _analyse_pairs(
    pairs: Sequence[tuple[Exchange, Stream]], dialects: Sequence[Dialect]
) -> list[Analysis]:
    """Analyse exchanges whose responses are framed; see `analyse_all`."""
    exchanges, streams = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    detected = [_detect(exchange, stream, dialects) for exchange, stream in pairs]
    asked = [
        dialect.read_request(exchange.request.content, exchange.request.path)
        if dialect is not None
        else NOTHING_ASKED
        for exchange, (dialect, _) in zip(exchanges, detected, strict=True)
    ]
    reducers = list(map(_reduce, detected, asked, streams))
    replies = [_finish(reducer, *pair) for reducer, pair in zip(reducers, pairs, strict=True)]
    return [
        Analysis(exchange=exchange, stream=stream, request=each, reply=reply)
        for (exchange, stream), each, reply in zip(pairs, asked, replies, strict=True)
    ]


def _reduce(detected: _DetectedDialect, asked: RequestSummary, stream: Stream) -> Reducer:
    """Return a reducer of the dialect that has read all events."""
    dialect, frames = detected
    reducer = UnknownReducer() if dialect is None else dialect.reducer(asked)
    feed_all(reducer, stream.events, frames)
    return reducer


def _finish(reducer: Reducer, exchange: Exchange, stream: Stream) -> Reply:
    response = exchange.response
    reply = with_stray_error(reducer.finish(cut=exchange.cut), stream)
    if response and response.status >= _HTTP_ERROR and reply.error is None:
        # An error in no known format is not a stream of a dialect: nothing in it is unexpected.
        seen = tuple(one for one in reply.observations if one.code != _UNEXPECTED)
        reply = replace(reply, error=_failure(response, stream), observations=seen)
    return reply


def _failure(response: ResponseHead, stream: Stream) -> str:
    """Return the error of an answer with an error status that no dialect recognises."""
    status = f"HTTP {response.status} {response.reason.decode('ascii', 'replace')}".rstrip()
    message: str | None = None
    if stream.format is Format.OTHER and media_type(response.headers) == "text/plain":
        message = stream.body.decode("utf-8", "replace").strip()[:_LONGEST_TEXT]
    elif len(stream.events) == 1:
        body = parse(stream.events[0].data).value
        message = failure_message(body) if isinstance(body, dict) else None
    return f"{status}: {message}" if message else status


# The dialect of an exchange, found by its response, else by the path of its request.
#
# The first events are searched in windows that grow: most dialects show themselves at once, and a
# few only after many pings. The path counts only where the response holds nothing but errors and
# pings, or nothing; where it has the status of an error, whose bodies gateways write as they like;
# and where a stream was requested and a strange document came. Applications call their own
# endpoints `/api/chat`, too, and may answer with documents and plain text of their own there.

_WINDOW = 2
"""Events in the first window: nearly every dialect shows itself at once, or behind one event that
says little, such as the verdict of a filter."""
_GROWTH = 4
_BARE_ERROR = frozenset({"message", "Message", "__type"})
"""All members of an error by Amazon's services."""


def dialect_of(
    exchange: Exchange, stream: Stream, among: Sequence[Dialect] = DIALECTS
) -> Dialect | None:
    """Return the dialect of `exchange`, whose response is framed as `stream`; None if unknown."""
    return _detect(exchange, stream, among).dialect


def _detect(
    exchange: Exchange, stream: Stream, among: Sequence[Dialect] = DIALECTS
) -> _DetectedDialect:
    if stream.format is Format.WEBSOCKET:
        among = [each for each in among if stream.format in each.traits.formats]
    if exchange.upgraded:
        return _DetectedDialect(None, ())  # each of its responses has one
    headers = _headers(exchange)
    failed = exchange.response is not None and exchange.response.status >= _HTTP_ERROR
    has_content = False
    parsed: list[Mapping[str, object] | None] = []
    for window in _windows(stream.events):
        frames = [_object_in(event) for event in window]
        parsed += frames
        hints = Hints(
            format=stream.format,
            headers=headers,
            first=tuple([frame for frame in frames if frame is not None]),
            types=tuple([event.type for event in window]),
        )
        if _TOOL_SERVER.claims(hints) and _speaks_mcp(exchange):
            return _DetectedDialect(_TOOL_SERVER, parsed)
        found = detect(hints, among)
        if found is not None:
            return _DetectedDialect(found, parsed)
        has_content = has_content or any(map(_has_content, window, frames))
    if _speaks_mcp(exchange):
        return _DetectedDialect(_TOOL_SERVER, parsed)
    found = expect(exchange.request.path, among)
    strange = not failed and (has_content or stream.format is Format.OTHER)
    if found is not None and strange and not _answers_otherwise(exchange, stream, found):
        found = None
    return _DetectedDialect(found, () if found is None else parsed)


def _speaks_mcp(exchange: Exchange) -> bool:
    request = exchange.request
    fields = (*request.headers, *(exchange.response.headers if exchange.response else ()))
    return speaks_mcp(request.content, request.upstream, (name for name, _ in fields))


def _answers_otherwise(exchange: Exchange, stream: Stream, dialect: Dialect) -> bool:
    """Return whether this is an answer in place of a stream of `dialect`."""
    request = exchange.request
    if request.path.rstrip("/").endswith(dialect.traits.shared_paths):
        return stream.format is Format.OTHER and not _is_text(exchange, stream)
    if stream.format is Format.JSON:
        return dialect.read_request(request.content, request.path).stream
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


def _has_content(event: Event, frame: Mapping[str, object] | None) -> bool:
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


# Reads an error in an event stream that is not an event, but a bare JSON document.
#
# Gateways of Google and others put the error body that they would have answered with into a stream
# that has begun, line by line as it is. For the standard each such line is a field that nobody
# knows, and is dropped; official clients that look at raw lines raise it.

_CODE = "S005"
_LONGEST = 64 * 1024
"""Bytes of such an error; what is longer is none."""
_SHOWN = 200


def with_stray_error(reply: Reply, stream: Stream) -> Reply:
    """Return `reply` with an error that `stream` has outside its events, if there is one."""
    for place, text in _documents(stream):
        value = parse(text).value
        message = error_message(value, "") if isinstance(value, dict) else None
        if message is not None:
            noticed = Observation(
                code=_CODE,
                detail=f"an error instead of an answer, as bare JSON: {message}",
                evidence=text[:_SHOWN],
                event=None,
                place=place,
            )
            every = (*reply.observations, noticed)
            return replace(reply, error=reply.error or message, observations=every)
    return reply


def _documents(stream: Stream) -> Iterator[tuple[Place, str]]:
    """Yield runs of dropped lines that look like a JSON object, as texts."""
    for run in _runs(stream):
        start, end = run[0].place.span.start, run[-1].place.span.end
        if end - start <= _LONGEST and stream.body[start : start + 1] == b"{":
            place = run[-1].place._replace(span=Span(start, end))
            yield place, stream.body[start:end].decode(errors="replace")


def _runs(stream: Stream) -> Iterator[Sequence[Anomaly]]:
    """Yield the unknown fields, joining those on neighbouring lines."""
    run: list[Anomaly] = []
    for anomaly in stream.anomalies:
        if anomaly.kind is not AnomalyKind.UNKNOWN_FIELD:
            continue
        if run and stream.body[run[-1].place.span.end : anomaly.place.span.start].strip(b"\r\n"):
            yield run
            run = []
        run.append(anomaly)
    if run:
        yield run
