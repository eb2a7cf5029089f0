"""An exchange's reply: framed, claimed by a dialect, reduced."""

from dataclasses import dataclass, replace

from deltatape.diagnose.decode import decode
from deltatape.dialects import Hints, UnknownReducer, detect
from deltatape.model.asked import NOTHING_ASKED, Asked
from deltatape.model.exchange import Exchange
from deltatape.model.reply import Reply
from deltatape.model.stream import Stream
from deltatape.wire.json_value import parse

_FIRST_EVENTS = 16
"""Events among which a dialect must show itself; comments are none, pings and errors are."""
_HTTP_ERROR = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """An exchange and everything that is derived from it before any rule looks."""

    exchange: Exchange
    stream: Stream
    asked: Asked
    reply: Reply


def rebuild(exchange: Exchange) -> Reply:
    """The assistant message that `exchange` carried, as a correct client should understand it."""
    return analyse(exchange).reply


def analyse(exchange: Exchange) -> Analysis:
    """`exchange` with its framed response, what was asked, and the rebuilt reply."""
    stream = decode(exchange)
    response, path = exchange.response, exchange.request.path
    dialect = detect(_hints(exchange, stream), path)
    asked = NOTHING_ASKED
    if dialect is not None:
        asked = dialect.read_request(exchange.request.body, path)
    reducer = UnknownReducer() if dialect is None else dialect.reducer(asked)
    for event in stream.events:
        reducer.feed(event)
    reply = reducer.finish(cut=exchange.cut)
    if response and response.status >= _HTTP_ERROR and reply.error is None:
        reason = response.reason.decode("ascii", "replace")
        reply = replace(reply, error=f"HTTP {response.status} {reason}".rstrip())
    return Analysis(exchange=exchange, stream=stream, asked=asked, reply=reply)


def _hints(exchange: Exchange, stream: Stream) -> Hints:
    headers = exchange.response.headers if exchange.response else ()
    first = stream.events[:_FIRST_EVENTS]
    values = (parse(event.data).value for event in first)
    return Hints(
        format=stream.format,
        headers={
            name.lower().decode("latin-1"): value.decode("latin-1")
            for name, value in headers
            if isinstance(value, bytes)
        },
        first=tuple(value for value in values if isinstance(value, dict)),
        types=tuple(event.type for event in first),
    )
