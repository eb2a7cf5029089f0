"""An exchange's reply: framed, claimed by a dialect, reduced."""

from dataclasses import dataclass, replace

from deltatape.diagnose.decode import decode
from deltatape.diagnose.dialect import dialect_of
from deltatape.diagnose.stray import with_stray_error
from deltatape.dialects import UnknownReducer, dialects_for
from deltatape.model.app_names import CONTRACT, AppNames
from deltatape.model.asked import NOTHING_ASKED, Asked
from deltatape.model.exchange import Exchange
from deltatape.model.reply import Reply
from deltatape.model.stream import Stream

_HTTP_ERROR = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """An exchange and everything that is derived from it before any rule looks."""

    exchange: Exchange
    stream: Stream
    asked: Asked
    reply: Reply


def rebuild(exchange: Exchange, app: AppNames = CONTRACT) -> Reply:
    """The assistant message that `exchange` carried, as a correct client should understand it.

    Args:
        exchange: with or without a response.
        app: what an application calls the events of its own endpoint.
    """
    return analyse(exchange, app).reply


def analyse(exchange: Exchange, app: AppNames = CONTRACT) -> Analysis:
    """`exchange` with its framed response, what was asked, and the rebuilt reply.

    Args: see `rebuild`.
    """
    stream = decode(exchange)
    response, request = exchange.response, exchange.request
    dialect = dialect_of(exchange, stream, dialects_for(app))
    asked = NOTHING_ASKED
    if dialect is not None:
        asked = dialect.read_request(request.body, request.path)
    reducer = UnknownReducer() if dialect is None else dialect.reducer(asked)
    for event in stream.events:
        reducer.feed(event)
    reply = with_stray_error(reducer.finish(cut=exchange.cut), stream)
    if response and response.status >= _HTTP_ERROR and reply.error is None:
        reason = response.reason.decode("ascii", "replace")
        reply = replace(reply, error=f"HTTP {response.status} {reason}".rstrip())
    return Analysis(exchange=exchange, stream=stream, asked=asked, reply=reply)
