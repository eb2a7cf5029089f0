"""An exchange's reply: framed, claimed by a dialect, reduced."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from deltatape.diagnose.decode import decode, media_type
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
    response = exchange.response
    hints = Hints(
        path=exchange.request.path,
        content_type=media_type(response.headers) if response else "",
        first=_first_objects(stream),
    )
    dialect = detect(hints)
    asked = NOTHING_ASKED if dialect is None else dialect.read_request(exchange.request.body)
    reducer = UnknownReducer() if dialect is None else dialect.reducer(asked)
    for event in stream.events:
        reducer.feed(event)
    reply = reducer.finish(cut=exchange.cut)
    if response and response.status >= _HTTP_ERROR and reply.error is None:
        reason = response.reason.decode("ascii", "replace")
        reply = replace(reply, error=f"HTTP {response.status} {reason}".rstrip())
    return Analysis(exchange=exchange, stream=stream, asked=asked, reply=reply)


def _first_objects(stream: Stream) -> tuple[Mapping[str, object], ...]:
    values = (parse(event.data).value for event in stream.events[:_FIRST_EVENTS])
    return tuple(value for value in values if isinstance(value, dict))
