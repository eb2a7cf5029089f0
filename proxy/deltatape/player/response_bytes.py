"""An exchange as bytes and times for one kind of client.

The head is the recorded one, field by field, with these differences only:
- values that are masked on the tape are not sent;
- white space is that of `write_response`;
- `Connection` becomes `close` where the recorded head would keep the connection but this client
  does not: it asked for `close`, or speaks HTTP/1.0;
- an HTTP/1.0 client gets a chunked body without its chunks, hence no `Transfer-Encoding`; and no
  1xx heads. `Transfer-Encoding: chunked` is added where a tape that somebody edited lacks it.

Renditions are cached, since most clients have the same profile and repeat requests. One that is too
large for the cache is shared while it is being played.
"""

from collections import OrderedDict
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeAlias
from weakref import WeakValueDictionary

from deltatape.http1.body import fin_completes
from deltatape.http1.head import (
    Fields,
    ParsedRequestHead,
    ends_connection,
    field,
    with_close,
    write_response,
)
from deltatape.match.schedule import ReplayTempo, Timetable, timetable
from deltatape.model.exchange import EndReason, Exchange, Framing, Headers, ResponseHead

_KEPT = 256
_KEPT_BYTES = 32 * 1024 * 1024
_OLD = "1.0"


@dataclass(frozen=True, slots=True)
class ClientProfile:
    """The parts of a request that decide how the answer is sent."""

    old: bool
    """It speaks HTTP/1.0."""
    keep_alive: bool
    continued: bool
    """It has received 100 Continue."""


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class Rendition:
    """What to send and when.

    Attributes:
        exchange: which one it is of.
        table: the bytes, the times, the ending.
        keep: whether the connection outlives the answer.
        fin_completes: whether a FIN would make the body look complete, so that a cut is an RST.
    """

    exchange: Exchange
    table: Timetable
    keep: bool
    fin_completes: bool


_Key: TypeAlias = tuple[int, ClientProfile]


class Renditions:
    """Creates renditions in one tempo, and caches the last ones."""

    def __init__(self, tempo: ReplayTempo) -> None:
        self._tempo = tempo
        # A rendition holds its exchange, so that the id stays its own.
        self._played: WeakValueDictionary[_Key, Rendition] = WeakValueDictionary()
        self._kept: OrderedDict[_Key, tuple[Rendition, int]] = OrderedDict()
        self._kept_bytes = 0

    def of(self, exchange: Exchange, request: ParsedRequestHead, *, continued: bool) -> Rendition:
        """Return the rendition for the sender of `request`; for `continued` see `ClientProfile`."""
        client = ClientProfile(request.http == _OLD, request.keep_alive, continued)
        key = (id(exchange), client)
        found = self._played.get(key)
        if found is not None:
            return found
        made = _rendition(exchange, client, self._tempo)
        self._played[key] = made
        self._keep(key, made)
        return made

    def _keep(self, key: _Key, made: Rendition) -> None:
        size = sum(len(step.data) for step in made.table.steps)
        if size > _KEPT_BYTES:
            return
        self._kept[key] = (made, size)
        self._kept_bytes += size
        while self._kept_bytes > _KEPT_BYTES or len(self._kept) > _KEPT:
            _, (_, freed) = self._kept.popitem(last=False)
            self._kept_bytes -= freed


def _rendition(exchange: Exchange, client: ClientProfile, tempo: ReplayTempo) -> Rendition:
    response = exchange.response
    framing = response.framing if response is not None else None
    chunked = framing is Framing.CHUNKED and not client.old
    if response is None:  # only its client could tell its end
        ends_itself = exchange.end is None or exchange.end.reason is not EndReason.COMPLETE
    else:
        ends_itself = ends_connection(
            _version(response), response.framing, _playable(response.headers)
        )
    keep = client.keep_alive and not client.old and not ends_itself
    close = not keep and not ends_itself
    head = b"" if response is None else _head(response, chunked=chunked, close=close)
    return Rendition(
        exchange=exchange,
        table=timetable(
            exchange,
            tempo,
            head=head,
            chunked=chunked,
            informational=_informational(exchange, client),
        ),
        keep=keep,
        fin_completes=fin_completes(framing, bare=not chunked),
    )


def _head(response: ResponseHead, *, chunked: bool, close: bool) -> bytes:
    """Return the head to send; `close`: it has to say that the connection ends."""
    fields = _playable(response.headers)
    if response.framing is Framing.CHUNKED and not chunked:
        fields = tuple(each for each in fields if each[0].lower() != b"transfer-encoding")
    elif chunked and field(fields, b"transfer-encoding") is None:
        fields += ((b"Transfer-Encoding", b"chunked"),)
    if close:
        fields = with_close(fields)
    return write_response(response.status, response.reason, fields, http=_version(response))


def _informational(exchange: Exchange, client: ClientProfile) -> list[tuple[int, bytes]]:
    """Return the recorded 1xx heads, without a 100 that the client already has."""
    if client.old:
        return []
    heads = list(exchange.informational)
    if client.continued and heads and heads[0].status == HTTPStatus.CONTINUE:
        del heads[0]
    return [
        (
            head.t_ns,
            write_response(head.status, head.reason, _playable(head.headers), http=_version(head)),
        )
        for head in heads
    ]


def _playable(headers: Headers) -> Fields:
    """Return the fields that are not masked."""
    return tuple((name, value) for name, value in headers if isinstance(value, bytes))


def _version(head: ResponseHead) -> str:
    """Return the version for a status line of HTTP/1, also for exchanges in HTTP/2 or 3."""
    return _OLD if head.http == _OLD else "1.1"
