"""One request, answered from the tape by its timetable.

One timer per exchange; a client that does not take its bytes stops the clock for what follows,
as back-pressure would have stopped the provider.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Protocol

from deltatape.http1.answer import error_answer
from deltatape.http1.ending import fin_completes, keeps_client
from deltatape.http1.head import Fields, RequestHead, end_to_end, field, write_response
from deltatape.http1.server import ServerConnection
from deltatape.match.request import Asking, Miss
from deltatape.match.schedule import Ending, Tempo, Timetable, timetable
from deltatape.model.exchange import EndReason, Exchange, Framing, Headers

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Shelf(Protocol):
    """What one request needs of the player."""

    tempo: Tempo
    hold_s: float

    def find(self, asking: Asking) -> Exchange | Miss:
        """What is to be played as the answer."""

    def missed(self, asking: Asking, miss: Miss) -> bytes:
        """The answer to a request that no exchange answers."""

    def begun(self, play: "Play") -> None:
        """A request is being answered."""

    def ended(self, play: "Play") -> None:
        """An answer is over."""


class Play:
    """Serves one request; see `http1.server.Handler`."""

    def __init__(self, shelf: Shelf, client: ServerConnection) -> None:
        self._shelf = shelf
        self._client = client
        self._request: RequestHead | None = None
        self._body: list[bytes] = []
        self._exchange: Exchange | None = None
        self._timetable: Timetable | None = None
        self._next = 0
        self._origin_s = 0.0
        self._writable = True
        self._timer: asyncio.TimerHandle | None = None

    # The request.

    def on_request(self, head: RequestHead) -> None:
        """See `Handler.on_request`."""
        self._request = head
        self._shelf.begun(self)
        if (field(head.fields, b"expect") or b"").lower() == b"100-continue":
            self._client.write(_CONTINUE)

    def on_body(self, data: bytes) -> None:
        """See `Handler.on_body`."""
        self._body.append(data)

    def on_request_end(self, trailers: Fields) -> None:  # noqa: ARG002 - part of the protocol
        """See `Handler.on_request_end`."""
        assert self._request is not None
        asking = Asking(
            method=self._request.method, target=self._request.target, body=b"".join(self._body)
        )
        found = self._shelf.find(asking)
        if isinstance(found, Miss):
            self._client.write(self._shelf.missed(asking, found))
            self._finish(self._client.finish, keep_alive=False)
            return
        self._exchange = found
        chunked = self._chunked
        head = b"" if self._exchange.response is None else self._head(self._exchange)
        self._timetable = timetable(
            self._exchange,
            self._shelf.tempo,
            head=head,
            chunked=chunked,
            informational=self._informational(self._exchange),
        )
        self._origin_s = asyncio.get_running_loop().time()
        self._play()

    def on_writable(self, *, writable: bool) -> None:
        """See `Handler.on_writable`."""
        self._writable = writable
        if writable and self._timer is None:
            self._play()

    def on_client_lost(self, *, was_reset: bool) -> None:  # noqa: ARG002 - part of the protocol
        """See `Handler.on_client_lost`."""
        if self._timer is not None:
            self._timer.cancel()
        self._shelf.ended(self)

    def stop(self) -> None:
        """The player stops: cut what is playing."""
        if self._timer is not None:
            self._timer.cancel()
        self._cut(hard=False)

    # The answer.

    @property
    def _chunked(self) -> bool:
        """Whether the body goes out in chunks: as recorded, but never to HTTP/1.0."""
        assert self._request is not None
        return self._framing is Framing.CHUNKED and self._request.http == "1.1"

    @property
    def _keep_client(self) -> bool:
        assert self._request is not None
        return keeps_client(self._request, self._framing)

    @property
    def _framing(self) -> Framing | None:
        response = self._exchange.response if self._exchange else None
        return response.framing if response else None

    def _informational(self, exchange: Exchange) -> list[tuple[int, bytes]]:
        """The recorded 1xx heads, but for 100: that was sent when the client asked for it."""
        if self._request is None or self._request.http == "1.0":
            return []
        return [
            (head.t_ns, write_response(head.status, head.reason, _playable(head.headers)))
            for head in exchange.informational
            if head.status != HTTPStatus.CONTINUE
        ]

    def _head(self, exchange: Exchange) -> bytes:
        response = exchange.response
        assert response is not None
        fields = _playable(response.headers)
        if not self._chunked:
            fields = tuple(f for f in fields if f[0].lower() != b"transfer-encoding")
        if not self._keep_client:
            fields += ((b"Connection", b"close"),)
        return write_response(response.status, response.reason, fields)

    def _play(self) -> None:
        """Send all that is due, then wait for the next step or for the client."""
        self._timer = None
        table = self._timetable
        if table is None:
            return
        loop = asyncio.get_running_loop()
        while self._next < len(table.steps):
            if not self._writable:
                return
            step = table.steps[self._next]
            due = self._origin_s + step.due_ns / 1e9
            if due > loop.time():
                self._timer = loop.call_at(due, self._play)
                return
            self._next += 1
            self._client.write(step.data)
        self._timer = loop.call_at(self._origin_s + table.end_ns / 1e9, self._end)

    def _end(self) -> None:
        self._timer = None
        table, exchange = self._timetable, self._exchange
        assert table is not None
        assert exchange is not None
        if table.ending is Ending.COMPLETE:
            self._finish(self._client.finish, keep_alive=self._keep_client)
        elif table.ending is Ending.ANSWER:
            self._client.write(_gateway_answer(exchange))
            self._finish(self._client.finish, keep_alive=False)
        elif table.ending is Ending.HOLD:
            self._timer = asyncio.get_running_loop().call_later(self._shelf.hold_s, self._let_go)
        else:
            self._cut(hard=table.ending is Ending.RESET)

    def _let_go(self) -> None:
        self._timer = None
        self._cut(hard=False)

    def _cut(self, *, hard: bool) -> None:
        """End so that the client sees a cut: RST where FIN would look like a clean end."""
        if hard or fin_completes(self._framing, bare=not self._chunked):
            self._finish(self._client.reset)
        else:
            self._finish(self._client.close)

    def _finish(self, end: Callable[..., None], **how: bool) -> None:
        self._timetable = None
        end(**how)
        self._shelf.ended(self)


def _playable(headers: Headers) -> Fields:
    """The fields that can be sent again: not those for one hop, and not what was masked."""
    return end_to_end(tuple((name, v) for name, v in headers if isinstance(v, bytes)))


def _gateway_answer(exchange: Exchange) -> bytes:
    """What the gateway said when the upstream could not be reached."""
    assert exchange.end is not None
    late = exchange.end.reason is EndReason.TIMEOUT
    return error_answer(
        504 if late else 502,
        "upstream_timeout" if late else "upstream_refused",
        exchange.end.detail,
        head_only=exchange.request.method == "HEAD",
    )
