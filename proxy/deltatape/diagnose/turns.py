"""The responses on one WebSocket, each as a separate exchange.

Over a WebSocket, a client of OpenAI Responses asks with messages of the type `response.create`,
whose other members are those of the body of a request, and the messages of the server are the
events of the stream that would have answered it. One response comes after the other. A session of
OpenAI Realtime is another protocol: see `realtime`.

Strategy: events belong to the oldest request that has not been answered, until one comes that ends
its response. So every rule sees a response as if it had come alone. Places are those in all that
the server sent.

Spec: https://platform.openai.com/docs/guides/websocket-mode
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus

from deltatape.diagnose.realtime import SESSION, RealtimeSession, object_of
from deltatape.diagnose.websocket import Socket
from deltatape.model.exchange import End, EndReason, Exchange
from deltatape.model.stream import Event, Format, Stream
from deltatape.model.websocket import TEXT, Message, Side

_ASKS = "response.create"
_BEGINS = "response.created"
_REFUSALS = range(400, 600)
_ENDS = frozenset(
    {"response.completed", "response.failed", "response.incomplete", "response.cancelled", "error"}
)
"""Types of events after which nothing comes of a response."""
_WARM_UP = "generate"
"""Where it is false, a request only prepares another one."""


@dataclass(slots=True)
class _Turn:
    request: Message
    events: list[Event] = field(default_factory=list)
    ended: bool = False


def turns_of(exchange: Exchange, socket: Socket, stream: Stream) -> list[tuple[Exchange, Stream]]:
    """Return the responses that were asked for over a WebSocket, each with its part of the stream.

    Args:
        exchange: that became a WebSocket.
        socket: its messages.
        stream: what the server sent, as events.
    """
    types = [_type_of(event.data) for event in stream.events]
    if any(str(kind).startswith(SESSION) for kind in types):
        return _of_session(exchange, socket, stream)
    turns: list[_Turn] = []
    for message, event in _in_order(socket, stream):
        if event is None and _type_of(_text(message)) == _ASKS:
            turns.append(_Turn(message))
        elif event is not None and turns:
            turn = next((each for each in turns if not each.ended), turns[-1])
            turn.events.append(event)
            turn.ended |= types[event.number] in _ENDS
    return [
        _alone(
            _asked(exchange, turn.request),
            stream,
            turn.events,
            ended=turn.ended,
            status=_refusal(turn.events),
        )
        for turn in turns
        if object_of(_text(turn.request)).get(_WARM_UP) is not False
    ]


def _of_session(
    exchange: Exchange, socket: Socket, stream: Stream
) -> list[tuple[Exchange, Stream]]:
    """Return the responses of a session of OpenAI Realtime."""
    session = RealtimeSession(exchange)
    for message, event in _in_order(socket, stream):
        if event is None:
            session.add_request(message)
        else:
            session.add_event(event)
    return [
        _alone(
            replace(
                exchange,
                request=replace(
                    exchange.request,
                    body=each.body,
                    masked=(),
                    t_ns=each.t_ns,
                    t_end_ns=each.t_ns,
                    line=each.line,
                ),
                watch=None,  # nobody has to answer a call
            ),
            stream,
            each.events,
            ended=each.ended,
            status=each.status,
        )
        for each in session.responses
    ]


def _in_order(socket: Socket, stream: Stream) -> Iterator[tuple[Message, Event | None]]:
    """Yield the texts of both sides in order; those of the server also as events."""
    events = iter(stream.events)
    for message in socket.messages:
        if message.opcode == TEXT and message.complete:
            yield message, next(events) if message.side is Side.SERVER else None


def _text(message: Message) -> str:
    return message.data.decode(errors="replace")


def _type_of(text: str) -> object:
    return object_of(text).get("type")


def _refusal(events: Sequence[Event]) -> int | None:
    """Return the status of an error in place of a response; None if there is none."""
    values = [object_of(event.data) for event in events]
    if any(value.get("type") == _BEGINS for value in values):
        return None
    statuses = (value.get("status") for value in values if value.get("type") == "error")
    return next((each for each in statuses if isinstance(each, int) and each in _REFUSALS), None)


def _asked(exchange: Exchange, asked: Message) -> Exchange:
    """Return an exchange whose request is a message."""
    request = replace(
        exchange.request,
        body=asked.data,
        masked=asked.masked,
        t_ns=asked.t_ns,
        t_end_ns=asked.t_end_ns,
        line=asked.line,
    )
    return replace(exchange, request=request)


def _alone(
    exchange: Exchange,
    stream: Stream,
    events: Sequence[Event],
    *,
    ended: bool,
    status: int | None,
) -> tuple[Exchange, Stream]:
    """Return a response as if it had come over a separate connection.

    Args:
        exchange: has the request for it.
        stream: all that came.
        events: the events of the response.
        ended: whether the last of them is its end.
        status: the status of an error that came in its place.
    """
    events = tuple([event._replace(number=number) for number, event in enumerate(events)])
    asked, last = exchange.request, events[-1] if events else None
    end = exchange.end and replace(exchange.end, frames=None)
    head = exchange.response and replace(
        exchange.response,
        status=status or HTTPStatus.OK.value,
        headers=(),
        t_ns=events[0].t_ns if events else asked.t_end_ns or asked.t_ns,
    )
    if head is not None and status and last is not None:
        head = replace(head, t_ns=last.t_ns, line=last.line)
    if ended and last is not None:
        end = End(
            t_ns=last.t_ns,
            reason=EndReason.COMPLETE,
            bytes=0,
            sha256="",
            detail="",
            recorder={},
            line=last.line,
        )
    until_ns = end.t_ns if end is not None else None
    alone = replace(
        exchange,
        sent=None,
        response=head,
        frames=(),
        idle_ns=tuple(
            t_ns
            for t_ns in exchange.idle_ns
            if t_ns > asked.t_ns and (until_ns is None or t_ns < until_ns)
        ),
        notes=(),
        end=end,
        open=exchange.open and not ended,
    )
    return alone, replace(stream, format=Format.WEBSOCKET, events=events, anomalies=())
