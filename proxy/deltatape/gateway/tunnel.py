"""A blind tunnel for traffic past the gateway, which reports the hosts.

A CONNECT proxy on loopback, for the programs of one user: where the system tells whose a connection
is (`peer`), that user's connections are served; elsewhere those with credentials of the tunnel's
own, which its URL then has to carry. Bytes go both ways as they come, unread and without a time
limit: TLS stays between the application and its server. The authority of each CONNECT shows which
LLM host was reached past the gateway. All other methods are refused.
"""

import asyncio
import base64
import contextlib
import hmac
import ipaddress
import os
import re
import secrets
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from deltatape.gateway import peer
from deltatape.gateway.dial import ConnectionFailedError, Connector
from deltatape.http1.head import (
    BadMessageError,
    Fields,
    Http2Error,
    ParsedRequestHead,
    field,
    find_head,
    http2_refusal,
    parse_request,
    write_response,
)
from deltatape.http1.listener import BACKLOG, is_loopback
from deltatape.http1.relay import RelaySide
from deltatape.providers import provider_of_host

HOST = "127.0.0.1"
USER = "deltatape"
_ROOT = 0
_EARLY_BYTES = 64 * 1024
_LINGER_S = 2.0
_STOP_S = 2.0
_MAX_PORT = 65535
_AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})")
_SEALED = "tapes are played, so no provider is asked"
_REASONS = {
    200: b"Connection established",
    400: b"Bad Request",
    403: b"Forbidden",
    405: b"Method Not Allowed",
    407: b"Proxy Authentication Required",
    502: b"Bad Gateway",
    504: b"Gateway Timeout",
}


class TunnelSide(RelaySide):
    """One side of a tunnel."""

    def __init__(self, tunnel: "Tunnel") -> None:
        super().__init__()
        self._tunnel = tunnel

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._tunnel.side_opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._tunnel.side_closed(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class TunnelledConnection:
    """A connection that bypassed the gateway."""

    host: str
    port: int
    llm: str | None
    """The provider whose LLM API is served there; None for any other host."""
    failure: str = ""
    """Why it could not be had; "" when it was."""


class Tunnel:
    """The proxy and its connections."""

    def __init__(
        self,
        connector: Connector,
        on_connection: Callable[[TunnelledConnection], None],
        *,
        provider_of: Callable[[str], str | None] = provider_of_host,
        sealed: bool = False,
        allowed: Collection[str] = (),
    ) -> None:
        """Create a tunnel that does not listen yet.

        Args:
            connector: opens the connections.
            on_connection: called for each attempted connection, on the loop's thread.
            provider_of: returns the provider whose LLM API a host serves.
            sealed: whether to refuse such hosts.
            allowed: those that are not refused; lower case.
        """
        self.connector = connector
        self._on_connection = on_connection
        self._provider_of = provider_of
        self._sealed = sealed
        self._allowed = allowed
        self._server: asyncio.Server | None = None
        self._gateway_ports: frozenset[int] = frozenset()
        self._users: frozenset[int] = frozenset()
        self._sides: set[TunnelSide] = set()
        self._all_closed = asyncio.Event()
        self.port = 0
        self.user = USER
        self.token = ""
        """The password, where one is needed: it opens the way out of this machine, so it belongs on
        no tape."""

    @property
    def url(self) -> str:
        """The value of the child's `HTTPS_PROXY`."""
        credentials = f"{USER}:{self.token}@" if self.token else ""
        return f"http://{credentials}{HOST}:{self.port}"

    async def start(self, *, gateway_ports: Iterable[int] = ()) -> None:
        """Listen on a free port.

        Args:
            gateway_ports: where the child's base URLs lead: clients that ignore NO_PROXY ask for
                them here, and what they send there is taped or played.
        """
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _ClientSide(self), HOST, 0, backlog=BACKLOG)
        self.port = self._server.sockets[0].getsockname()[1]
        self._gateway_ports = frozenset(gateway_ports)
        own = await loop.run_in_executor(None, peer.listener_owner, (HOST, self.port))
        if own == os.geteuid():
            # Who is root, as with sudo, needs nobody's leave.
            self._users = frozenset({own, _ROOT})
        else:
            self.token = secrets.token_urlsafe(24)

    async def stop(self) -> None:
        """Stop listening, and cut open connections."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for side in tuple(self._sides):
            side.abort()
        if self._sides:
            self._all_closed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._all_closed.wait(), _STOP_S)

    # What connections ask.

    def side_opened(self, side: TunnelSide) -> None:
        self._sides.add(side)

    def side_closed(self, side: TunnelSide) -> None:
        self._sides.discard(side)
        if not self._sides:
            self._all_closed.set()

    async def destination(
        self, head: ParsedRequestHead, client: peer.Address
    ) -> "_Refusal | tuple[str, int]":
        """Return where to connect for a request of `client`, or why it is refused."""
        if head.method != "CONNECT":
            return _Refusal(
                405,
                f"{head.method}: only CONNECT is served here. This is deltatape's tunnel for"
                " HTTPS_PROXY; plain http:// does not go through it: unset http_proxy, or set"
                " NO_PROXY for that host",
                ((b"Allow", b"CONNECT"),),
            )
        if self.token and not self._has_token(field(head.fields, b"proxy-authorization") or b""):
            return _Refusal(
                407,
                "this tunnel serves one program, with the user and password of the HTTPS_PROXY"
                " that deltatape has set for it; pass on the whole URL",
                ((b"Proxy-Authenticate", b'Basic realm="deltatape"'),),
            )
        if not self.token and not await self._is_own(client):
            return _Refusal(
                403,
                "this tunnel serves programs of the user who runs deltatape; for one of another"
                " user, run deltatape as that user, or with --no-tunnel",
            )
        match = _AUTHORITY.fullmatch(head.target.decode("latin-1"))
        if match is None or not 0 < int(match[3]) <= _MAX_PORT:
            return _Refusal(400, "CONNECT wants HOST:PORT")
        host, port = match[1] or match[2], int(match[3])
        if port == self.port and _is_this_machine(host):
            return _Refusal(403, f"{host}:{port} is this tunnel itself")
        is_sealed = self._sealed and host.lower().rstrip(".") not in self._allowed
        if is_sealed and self._provider_of(host) is not None:
            self.failed(host, port, _SEALED)
            return _Refusal(403, f"{host}:{port}: {_SEALED}")
        return host, port

    async def _is_own(self, client: peer.Address) -> bool:
        loop = asyncio.get_running_loop()
        owner = await loop.run_in_executor(None, peer.owner, client, (HOST, self.port))
        return owner in self._users

    def _has_token(self, credentials: bytes) -> bool:
        scheme, _, encoded = credentials.partition(b" ")
        pair = base64.b64encode(f"{USER}:{self.token}".encode())
        return scheme.lower() == b"basic" and hmac.compare_digest(encoded.strip(), pair)

    def opened(self, host: str, port: int) -> None:
        """Report an open connection, unless it leads to the gateway."""
        if port in self._gateway_ports and _is_this_machine(host):
            return
        self._on_connection(TunnelledConnection(host=host, port=port, llm=self._provider_of(host)))

    def failed(self, host: str, port: int, failure: str) -> None:
        """Report that the server side is unreachable."""
        provider = self._provider_of(host)
        self._on_connection(
            TunnelledConnection(host=host, port=port, llm=provider, failure=failure)
        )


@dataclass(frozen=True, slots=True)
class _Refusal:
    status: int
    text: str
    fields: Fields = ()


def _is_this_machine(host: str) -> bool:
    if is_loopback(host):
        return True
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


class _ServerSide(TunnelSide):
    """The requested server."""

    def __init__(self, tunnel: Tunnel, client: "_ClientSide") -> None:
        super().__init__(tunnel)
        self._client = client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Answer before any byte of the server can pass."""
        super().connection_made(transport)
        self._client.join(self)


class _ClientSide(TunnelSide):
    """The application's side: first its request, then its bytes."""

    def __init__(self, tunnel: Tunnel) -> None:
        super().__init__(tunnel)
        self._buffer = bytearray()
        self._dialling: asyncio.Task[None] | None = None
        self._destination: tuple[str, int] | None = None
        self._is_parsed = False
        self._refused = False

    def data_received(self, data: bytes) -> None:
        if self.peer is not None:
            self.peer.write(data)
            return
        if self._refused:
            return
        self._buffer += data
        if not self._is_parsed:
            self._parse_head()
        elif len(self._buffer) > _EARLY_BYTES and self.transport is not None:
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        if self.peer is not None:
            return super().eof_received()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._dialling is not None:
            self._dialling.cancel()
        super().connection_lost(exc)

    def _parse_head(self) -> None:
        try:
            end = find_head(self._buffer)
            if not end:
                return
            head = parse_request(bytes(self._buffer[:end]))
        except Http2Error as error:
            self._say_no(http2_refusal(str(error)))
            return
        except BadMessageError as error:
            self._refuse(_Refusal(400, f"not an HTTP/1 request: {error}"))
            return
        del self._buffer[:end]
        self._is_parsed = True
        self._dialling = asyncio.get_running_loop().create_task(self._dial(head))

    async def _dial(self, head: ParsedRequestHead) -> None:
        assert self.transport is not None  # its loss cancels this
        destination = await self._tunnel.destination(
            head, self.transport.get_extra_info("peername")
        )
        if isinstance(destination, _Refusal):
            self._refuse(destination)
            return
        self._destination = destination
        host, port = destination
        server = _ServerSide(self._tunnel, self)
        try:
            await self._tunnel.connector.tcp(host, port, server)
        except ConnectionFailedError as error:
            status = 504 if error.code == "upstream_timeout" else 502
            self._tunnel.failed(host, port, str(error))
            self._refuse(_Refusal(status, str(error)))
        self._dialling = None

    def join(self, server: _ServerSide) -> None:
        """Answer and splice, once the server side is connected."""
        assert self._destination is not None
        if self.transport is None:
            server.abort()
            return
        self.peer, server.peer = server, self
        self.write(write_response(200, _REASONS[200], ()))
        if self._buffer:
            server.write(bytes(self._buffer))
            self._buffer.clear()
        self.transport.resume_reading()
        self._tunnel.opened(*self._destination)

    def _refuse(self, refusal: _Refusal) -> None:
        body = f"deltatape: {refusal.text}\n".encode()
        fields = (
            (b"Content-Type", b"text/plain; charset=utf-8"),
            (b"Content-Length", b"%d" % len(body)),
            (b"Connection", b"close"),
            *refusal.fields,
        )
        self._say_no(write_response(refusal.status, _REASONS[refusal.status], fields) + body)

    def _say_no(self, answer: bytes) -> None:
        """Answer, then wait briefly for the client to read: a RST would discard the answer."""
        transport = self.transport
        if transport is None or self.peer is not None:  # too late: the splice tells the end
            return
        self._refused = True
        transport.write(answer)
        with contextlib.suppress(OSError):  # a client that is quick has gone already
            transport.write_eof()
        transport.resume_reading()
        asyncio.get_running_loop().call_later(_LINGER_S, self.abort)
