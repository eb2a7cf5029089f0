"""Forwards one exchange: request up, response down, each byte to its peer before the tape.

The response body is spliced: bytes go to the client as they were read, with the HTTP framing they
came in; only an HTTP/1.0 client gets a chunked body without its chunks. Heads are written again
field by field. The ending is passed on as what it is: RST stays RST, and a cut never becomes a
clean end, for which FIN must not follow a body that a FIN would complete.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from deltatape.gateway.dial import ConnectionFailedError, OpenConnection
from deltatape.gateway.routes import Origin, Refusal, Route
from deltatape.gateway.taping import ExchangeTaping
from deltatape.http1.answer import error_answer
from deltatape.http1.body import BodyScan, fin_completes, keeps_client, write_chunk
from deltatape.http1.client import ConnectionLost, UpstreamConnection
from deltatape.http1.head import (
    Fields,
    ParsedRequestHead,
    ParsedResponseHead,
    end_to_end,
    field,
    write_fields,
    write_request,
    write_response,
)
from deltatape.http1.server import ServerConnection
from deltatape.model.exchange import EndReason, Framing

OWN_FIELD_PREFIX = b"x-deltatape-"


class Carrier(Protocol):
    """The services of the gateway that an exchange uses."""

    def route(self, head: ParsedRequestHead) -> Route | Refusal:
        """Return where the request goes."""

    def tape(
        self, forward: "ExchangeForwarder", route: Route, client: ServerConnection
    ) -> ExchangeTaping:
        """Start an exchange on the tape."""

    def idle_connection(
        self, client: ServerConnection, origin: Origin
    ) -> UpstreamConnection | None:
        """Return a fresh upstream connection that this client used before."""

    def dial(
        self,
        origin: Origin,
        done: Callable[[OpenConnection], None],
        failed: Callable[[ConnectionFailedError], None],
    ) -> asyncio.Task[None]:
        """Open an upstream connection, with callbacks unless cancelled."""

    def refused(self, refusal: Refusal) -> None:
        """Note a request that was answered without an upstream."""

    def ended(
        self,
        taping: ExchangeTaping,
        origin: Origin,
        client: ServerConnection,
        spare: UpstreamConnection | None,
    ) -> None:
        """Note the end of an exchange; `spare` is a reusable upstream connection."""


class ExchangeForwarder:
    """Forwards one exchange; see `http1.server.Handler` and `http1.client.ResponseHandler`."""

    def __init__(self, carrier: Carrier, client: ServerConnection) -> None:
        self._carrier = carrier
        self._client = client
        self._upstream: UpstreamConnection | None = None
        self._dialling: asyncio.Task[None] | None = None
        self._outbox: list[bytes] = []
        self._origin: Origin | None = None
        self._sent: dict[str, int | bool] = {}
        self._request: ParsedRequestHead | None = None
        self._response: ParsedResponseHead | None = None
        self._request_whole = False
        self._without_chunks = False
        self._delivered = 0
        self._over = False
        self.taping: ExchangeTaping | None = None

    # The request, from the client.

    def on_request(self, head: ParsedRequestHead) -> None:
        self._request = head
        route = self._carrier.route(head)
        if isinstance(route, Refusal):
            self._over = True
            self._carrier.refused(route)
            self._answer(route.status, route.code, route.message)
            return
        fields = _request_fields(head, route.origin)
        self._origin = route.origin
        self.taping = self._carrier.tape(self, route, self._client)
        self.taping.request(
            method=head.method,
            target=route.target,
            upstream=route.base,
            http=head.http,
            headers=fields,
        )
        self._outbox.append(write_request(head.method, route.target, fields))
        idle = self._carrier.idle_connection(self._client, route.origin)
        if idle is not None:
            self._attach(OpenConnection(idle, 0, 0), reused=True)
        else:
            self._client.pause_body()
            self._dialling = self._carrier.dial(route.origin, self._attach, self._dial_failed)

    def on_body(self, data: bytes) -> None:
        if self._over or self._request is None or self.taping is None:
            return
        self._send(write_chunk(data) if self._request.length is None else data)
        self.taping.request_body(data)

    def on_request_end(self, trailers: Fields) -> None:
        if self._over or self._request is None or self.taping is None:
            return
        self._request_whole = True
        if self._request.length is None:
            self._send(b"0\r\n%b\r\n" % write_fields(trailers))
        self.taping.request_end()
        self._note_sent()

    def on_writable(self, *, writable: bool) -> None:
        if self._upstream is None or self.taping is None:
            return
        if writable:
            self.taping.delivered(self._delivered)
            self._upstream.resume()
        else:
            self._upstream.pause()

    def on_client_lost(self, *, was_reset: bool) -> None:
        self._end(EndReason.CLIENT_CLOSED, "the client reset its connection" if was_reset else "")

    def stop(self) -> None:
        """End both sides when the gateway stops; a running response is cut."""
        self._cut(hard=False)
        self._end(EndReason.STOPPED, "deltatape was stopped")

    # The upstream connection.

    def _attach(self, dialled: OpenConnection, *, reused: bool = False) -> None:
        assert self._request is not None
        self._dialling = None
        self._upstream = dialled.connection
        self._sent = {
            "connect_ns": dialled.connect_ns,
            "tls_ns": dialled.tls_ns,
            "reused": reused,
        }
        dialled.connection.start(self, self._request.method)
        outbox, self._outbox = self._outbox, []
        self._client.resume_body()  # first: the write may pause it again
        dialled.connection.write(b"".join(outbox))
        self._note_sent()

    def _dial_failed(self, error: ConnectionFailedError) -> None:
        timeout = error.code == "upstream_timeout"
        self._end(EndReason.TIMEOUT if timeout else EndReason.REFUSED, str(error))
        self._answer(504 if timeout else 502, error.code, str(error))

    def _send(self, data: bytes) -> None:
        if self._upstream is not None:
            self._upstream.write(data)
        else:
            self._outbox.append(data)

    def _note_sent(self) -> None:
        if self._request_whole and self._sent and self.taping is not None:
            self.taping.sent(
                connect_ns=int(self._sent["connect_ns"]),
                tls_ns=int(self._sent["tls_ns"]),
                reused=bool(self._sent["reused"]),
            )

    def on_upstream_writable(self, *, writable: bool) -> None:
        if writable:
            self._client.resume_body()
        else:
            self._client.pause_body()

    # The response, from upstream.

    def on_informational(self, head: ParsedResponseHead) -> None:
        if self._request is not None and self._request.http != "1.0":
            self._client.write(write_response(head.status, head.reason, end_to_end(head.fields)))
        if self.taping is not None:
            self.taping.informational(head)

    def on_response(self, head: ParsedResponseHead) -> None:
        assert self._request is not None
        self._response = head
        chunked = head.framing is Framing.CHUNKED
        self._without_chunks = chunked and self._request.http == "1.0"
        fields = end_to_end(head.fields)
        if self._without_chunks:
            fields = tuple(f for f in fields if f[0].lower() != b"transfer-encoding")
        if not self._keep_client:
            fields += ((b"Connection", b"close"),)
        self._client.write(write_response(head.status, head.reason, fields))
        if self.taping is not None:
            self.taping.response(head)

    def on_response_data(self, raw: bytes, scan: BodyScan) -> None:
        """See `ResponseHandler.on_response_data`: the client first, the tape after."""
        self._client.write(scan.data if self._without_chunks else raw)
        if scan.data and self.taping is not None:
            self._delivered += len(scan.data)
            self.taping.read(scan.data, scan.ends)

    def on_response_note(self, text: str) -> None:
        if self.taping is not None:
            self.taping.note(text)

    def on_response_debris(self, raw: bytes) -> None:
        """See `ResponseHandler.on_response_debris`; a tape with a read but no head plays it so."""
        self._client.write(raw)
        if raw and self.taping is not None:
            self.taping.read(raw, None)

    def on_response_end(self, trailers: Fields) -> None:
        if self.taping is not None and trailers:
            self.taping.trailers(trailers)
        keep = self._keep_client
        self._end(EndReason.COMPLETE, "", keep_upstream=self._request_whole)
        self._client.finish(keep_alive=keep)

    def on_upstream_lost(self, how: ConnectionLost, detail: str) -> None:
        self._upstream = None
        reason = (
            EndReason.UPSTREAM_RESET if how is ConnectionLost.RESET else EndReason.UPSTREAM_CLOSED
        )
        self._end(reason, detail)
        self._cut(hard=how is ConnectionLost.RESET)

    # Endings.

    @property
    def _keep_client(self) -> bool:
        """Check whether the client's connection can serve another request after this response."""
        assert self._request is not None
        return keeps_client(self._request, self._response.framing if self._response else None)

    def _cut(self, *, hard: bool) -> None:
        """End the client's connection so that the client notices the cut."""
        framing = self._response.framing if self._response else None
        if hard or fin_completes(framing, bare=self._without_chunks):
            self._client.reset()
        else:
            self._client.close()

    def _answer(self, status: int, code: str, message: str) -> None:
        head_only = self._request is not None and self._request.method == "HEAD"
        self._client.write(error_answer(status, code, message, head_only=head_only))
        self._client.finish(keep_alive=False)

    def _end(self, reason: EndReason, detail: str, *, keep_upstream: bool = False) -> None:
        if self._over:
            return
        self._over = True
        if self._dialling is not None:
            self._dialling.cancel()
        upstream, self._upstream = self._upstream, None
        spare = upstream if upstream is not None and keep_upstream and upstream.reusable else None
        if upstream is not None and spare is None:
            upstream.abort()
        if self.taping is not None and self._origin is not None:
            self.taping.end(reason, detail)
            self._carrier.ended(self.taping, self._origin, self._client, spare)


def _request_fields(head: ParsedRequestHead, origin: Origin) -> Fields:
    """Return the fields to send: rewritten for this upstream, without ours."""
    fields = tuple(
        (name, origin.authority.encode() if name.lower() == b"host" else value)
        for name, value in end_to_end(head.fields)
        if not name.lower().startswith(OWN_FIELD_PREFIX)
    )
    if field(fields, b"host") is None:  # an HTTP/1.0 client need not send one
        return ((b"Host", origin.authority.encode()), *fields)
    return fields
