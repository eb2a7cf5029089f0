"""Harmless: the same body with another head, framing or coding, and with a pause.

Sources: RFC 9110 (names of fields in any case, media types with parameters, 103, content-codings
that a request accepts), RFC 9112 sections 6 and 7 (how bodies end, trailers).
"""

from collections.abc import Iterable
from dataclasses import replace

from deltatape.model.exchange import (
    Exchange,
    Framing,
    HeaderValue,
    ResponseHead,
    header,
)
from deltatape.mutate import MutationChoices
from deltatape.vary._base import harmless
from deltatape.vary.coded_bodies import coded, plain
from deltatape.vary.fault import parse_fault
from deltatape.vary.shape import is_chunked, is_complete

_PAUSES = ("stall=1500ms,at=in-arguments", "stall=1500ms,at=in-text", "stall=1500ms")
_OF_FRAMING = frozenset({b"content-length", b"transfer-encoding", b"trailer"})
_TEXTS = ("text/", "application/json", "application/x-ndjson")


def _with_headers(
    exchange: Exchange, headers: Iterable[tuple[bytes, HeaderValue]]
) -> Exchange | None:
    """Return `exchange` with other fields; None if they are the same."""
    response, fields = exchange.response, tuple(headers)
    if response is None or fields == response.headers:
        return None
    return replace(exchange, response=replace(response, headers=fields))


def _fields(exchange: Exchange) -> tuple[tuple[bytes, HeaderValue], ...]:
    return exchange.response.headers if exchange.response else ()


@harmless("header-case")
def header_case(exchange: Exchange, _: MutationChoices) -> Exchange | None:
    """The names of the head's fields are in lower case, or with capitals if they were so."""
    return _with_headers(exchange, ((_recased(name), value) for name, value in _fields(exchange)))


def _recased(name: bytes) -> bytes:
    return name.title() if name == name.lower() else name.lower()


@harmless("charset")
def charset(exchange: Exchange, _: MutationChoices) -> Exchange | None:
    """The media type says its charset: `text/event-stream; charset=utf-8`, or no longer does."""
    return _with_headers(exchange, ((name, _typed(name, v)) for name, v in _fields(exchange)))


def _typed(name: bytes, value: HeaderValue) -> HeaderValue:
    if name.lower() != b"content-type" or not isinstance(value, bytes):
        return value
    media, parameters, _ = value.partition(b";")
    if not media.decode("latin-1").strip().lower().startswith(_TEXTS):
        return value
    return media.strip() if parameters else media.strip() + b"; charset=utf-8"


@harmless("early-hints")
def early_hints(exchange: Exchange, _: MutationChoices) -> Exchange | None:
    """A 103 Early Hints response precedes the response head."""
    response = exchange.response
    if response is None or exchange.informational:
        return None
    hint = ResponseHead(
        status=103,
        reason=b"Early Hints",
        http=response.http,
        framing=Framing.NONE,
        headers=((b"Link", b"</>; rel=preconnect"),),
        t_ns=response.t_ns,
        line=None,
    )
    return replace(exchange, informational=(hint,))


@harmless("trailers")
def trailers(exchange: Exchange, _: MutationChoices) -> Exchange | None:
    """Trailer fields follow the last HTTP chunk."""
    if not is_chunked(exchange) or not is_complete(exchange) or exchange.trailers:
        return None
    return replace(exchange, trailers=((b"X-Served-By", b"deltatape"),))


@harmless("until-close")
def until_close(exchange: Exchange, _: MutationChoices) -> Exchange | None:
    """The body ends when the connection closes, without chunks or content-length."""
    response = exchange.response
    framed = response is not None and response.framing in (Framing.CHUNKED, Framing.LENGTH)
    if response is None or not framed or not is_complete(exchange) or not exchange.reads:
        return None
    fields = tuple(pair for pair in response.headers if pair[0].lower() not in _OF_FRAMING)
    return replace(
        exchange,
        response=replace(response, framing=Framing.CLOSE, headers=fields),
        reads=tuple(read._replace(boundaries=None) for read in exchange.reads),
        trailers=(),
    )


@harmless("gzip")
def gzipped(exchange: Exchange, _: MutationChoices) -> Exchange | None:
    """The body is compressed with gzip, which the request accepts, and flushed at every read."""
    accepted = header(exchange.request.headers, "accept-encoding") or b""
    tokens = [token.partition(b";")[0].strip().lower() for token in accepted.split(b",")]
    if b"gzip" not in tokens or plain(exchange) is not exchange or not exchange.reads:
        return None
    return coded(exchange, ("gzip",)) if exchange.response else None


@harmless("uncompressed")
def uncompressed(exchange: Exchange, _: MutationChoices) -> Exchange | None:
    """The body is sent without its compression."""
    bare = plain(exchange)
    return None if bare is exchange else bare


@harmless("pause")
def pause(exchange: Exchange, chance: MutationChoices) -> Exchange | None:
    """The stream pauses for 1.5 seconds, inside arguments if there are any, and continues."""
    faults = map(parse_fault, _PAUSES)
    tried = (fault.applied(exchange, chance) for fault in faults)
    return next((made for made in tried if made is not None), None)


TRANSPORT = (
    header_case,
    charset,
    early_hints,
    trailers,
    until_close,
    gzipped,
    uncompressed,
    pause,
)
