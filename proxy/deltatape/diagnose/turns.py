"""The responses that come over one WebSocket, each as an exchange of its own.

Over a WebSocket, a client of OpenAI Responses asks with messages of the type `response.create`,
whose other members are those of the body of a request, and the messages of the server are the
events of the stream that would have answered it. One response comes after the other.

Strategy: events belong to the oldest request that has not been answered, until one comes that ends
its response. So every rule sees a response as if it had come alone. Places are those in all that
the server sent.

Spec: https://platform.openai.com/docs/guides/websocket-mode
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus

from deltatape.diagnose.websocket import Socket
from deltatape.model.exchange import End, EndReason, Exchange
from deltatape.model.stream import Event, Format, Stream
from deltatape.model.websocket import TEXT, Message, Side
from deltatape.wire.json_value import parse, read_object

_ASKS = "response.create"
_BEGINS = "response.created"
_REFUSALS = range(400, 600)
_ENDS = frozenset(
    {"response.completed", "response.failed", "response.incomplete", "response.cancelled", "error"}
)
"""Types of events after which nothing comes of a response."""
_REALTIME = ("session.", "conversation.", "input_audio_buffer.")
"""How events of another protocol begin, whose other events are called like these."""
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
    if any(str(kind).startswith(_REALTIME) for kind in types):
        return []
    turns: list[_Turn] = []
    for message, event in _in_order(socket, stream):
        if message is not None:
            turns.append(_Turn(message))
        elif event is not None and turns:
            turn = next((each for each in turns if not each.ended), turns[-1])
            turn.events.append(event)
            turn.ended |= types[event.number] in _ENDS
    return [_alone(exchange, stream, turn) for turn in turns if not _is_warm_up(turn.request)]


def _in_order(socket: Socket, stream: Stream) -> Iterator[tuple[Message | None, Event | None]]:
    """Yield the requests and the events as they came."""
    events = iter(stream.events)
    for message in socket.messages:
        if message.opcode != TEXT or not message.complete:
            continue
        if message.side is Side.SERVER:
            yield None, next(events)
        elif _type_of(message.data.decode(errors="replace")) == _ASKS:
            yield message, None


def _object(text: str) -> Mapping[str, object]:
    value = read_object(text) or parse(text).value
    return value if isinstance(value, dict) else {}


def _type_of(text: str) -> object:
    return _object(text).get("type")


def _is_warm_up(request: Message) -> bool:
    return _object(request.data.decode(errors="replace")).get(_WARM_UP) is False


def _refusal(events: Sequence[Event]) -> int | None:
    """Return the status of an error in place of a response; None if there is none."""
    values = [_object(event.data) for event in events]
    if any(value.get("type") == _BEGINS for value in values):
        return None
    statuses = (value.get("status") for value in values if value.get("type") == "error")
    return next((each for each in statuses if isinstance(each, int) and each in _REFUSALS), None)


def _alone(exchange: Exchange, stream: Stream, turn: _Turn) -> tuple[Exchange, Stream]:
    """Return a response as if it had come over a connection of its own."""
    events = tuple(event._replace(number=number) for number, event in enumerate(turn.events))
    asked, last = turn.request, events[-1] if events else None
    end = exchange.end and replace(exchange.end, frames=None)
    status = _refusal(events)
    head = exchange.response and replace(
        exchange.response,
        status=status or HTTPStatus.OK.value,
        headers=(),
        t_ns=events[0].t_ns if events else asked.t_end_ns,
    )
    if head is not None and status and last is not None:
        head = replace(head, t_ns=last.t_ns, line=last.line)
    if turn.ended and last is not None:
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
        request=replace(
            exchange.request,
            body=asked.data,
            masked=asked.masked,
            t_ns=asked.t_ns,
            t_end_ns=asked.t_end_ns,
            line=asked.line,
        ),
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
        open=exchange.open and not turn.ended,
    )
    return alone, replace(stream, format=Format.WEBSOCKET, events=events, anomalies=())
