"""Opening upstream connections: name, TCP, proxy, TLS, each with its own failure.

What is measured: `connect_ns` until bytes can pass to the upstream, which counts the name, the race
of its addresses and, where there is one, the proxy with its TLS and its answer to CONNECT; `tls_ns`
is the upstream's own TLS.
"""

import asyncio
import contextlib
import socket
import ssl
from asyncio import sslproto
from collections.abc import AsyncIterator
from dataclasses import dataclass

from deltatape.clock import Clock
from deltatape.errors import UsageError
from deltatape.gateway.outbound import Outbound, Proxy
from deltatape.gateway.race import connect, reason
from deltatape.gateway.routes import Origin
from deltatape.gateway.via_proxy import Passage, ProxyError, pass_through
from deltatape.http1.client import UpstreamConnection
from deltatape.http1.listener import bracketed

CONNECT_TIMEOUT_S = 60.0
TLS_TIMEOUT_S = 10.0
"""How long an upstream may take for the TLS handshake: one without TLS often waits in silence."""
TLS_BUFFER_BYTES = 32 * 1024
"""What asyncio holds for reading per TLS connection; its own default is eight times as much."""

_NOT_TLS = ("WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "PACKET_LENGTH_TOO_LONG")


@dataclass(frozen=True, slots=True)
class Dialled:
    """An open connection and what it took, in ns; `tls_ns` is 0 without TLS."""

    connection: UpstreamConnection
    connect_ns: int
    tls_ns: int


class DialError(Exception):
    """No connection.

    `code` is `upstream_refused`, `upstream_unknown`, `upstream_tls` or `upstream_timeout`; with a
    proxy also `proxy_refused`, `proxy_unknown`, `proxy_auth` or `proxy_denied`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """Whom to reach, and how it is called in messages."""

    host: str
    port: int
    name: str
    proxy: Proxy | None
    tls: bool


class Dialler:
    """Opens connections the way `outbound` says."""

    def __init__(self, outbound: Outbound, clock: Clock) -> None:
        self._outbound = outbound
        self._clock = clock
        self._upstream_context: ssl.SSLContext | None = None
        self._proxy_context: ssl.SSLContext | None = None
        _hold_less_per_connection()

    async def dial(self, origin: Origin) -> Dialled:
        """Connect to `origin`.

        Raises:
            DialError: it could not be had; the message names it, and the proxy if there is one, and
                says why.
        """
        connection = UpstreamConnection()
        target = _Target(
            host=origin.host,
            port=origin.port,
            name=origin.url,
            proxy=self._outbound.proxy_for(origin.scheme, origin.host, origin.port),
            tls=origin.scheme == "https",
        )
        async with _in_time(target):
            connect_ns, tls_ns = await self._open(target, connection)
        return Dialled(connection, connect_ns, tls_ns)

    async def tcp(self, host: str, port: int, protocol: asyncio.Protocol) -> None:
        """Connect `protocol` to `host` and `port`, without TLS of ours; it is told its transport.

        As for an `https://` upstream, a proxy is asked where one is configured.

        Raises:
            DialError: see `dial`.
        """
        target = _Target(
            host=host,
            port=port,
            name=f"{bracketed(host)}:{port}",
            proxy=self._outbound.proxy_for("https", host, port),
            tls=False,
        )
        async with _in_time(target):
            await self._open(target, protocol)

    async def _open(self, target: _Target, protocol: asyncio.Protocol) -> tuple[int, int]:
        """Connect `protocol`; ns until connected, and for TLS."""
        started = self._clock.now_ns()
        if target.proxy is None:
            sock = await _connect(target)
            connected = self._clock.now_ns()
            await self._begin(target, sock, protocol)
        else:
            passage = await self._pass(target, target.proxy)
            connected = self._clock.now_ns()
            await self._take_over(target, passage, protocol)
        done = self._clock.now_ns()
        return connected - started, done - connected if target.tls else 0

    # Directly.

    async def _begin(
        self, target: _Target, sock: socket.socket, protocol: asyncio.Protocol
    ) -> None:
        loop = asyncio.get_running_loop()
        try:
            if not target.tls:
                await loop.create_connection(lambda: protocol, sock=sock)
                return
            context = self._context(target)
            async with _securing(target):
                await loop.create_connection(
                    lambda: protocol, sock=sock, ssl=context, server_hostname=target.host
                )
        except BaseException:
            sock.close()
            raise

    # Through a proxy.

    async def _pass(self, target: _Target, proxy: Proxy) -> Passage:
        try:
            if proxy.scheme == "https" and self._proxy_context is None:
                self._proxy_context = self._outbound.trust.proxy_context()
            context = self._proxy_context if proxy.scheme == "https" else None
            return await pass_through(proxy, target.host, target.port, context)
        except UsageError as error:  # a file that was good at the start has changed
            raise DialError("proxy_refused", f"{target.name}: {error}") from None
        except ProxyError as error:
            raise DialError(
                error.code, f"{target.name}: the proxy {proxy.url} ({proxy.variable}): {error}"
            ) from None

    async def _take_over(
        self, target: _Target, passage: Passage, protocol: asyncio.Protocol
    ) -> None:
        """Give the way through the proxy to `protocol`, with TLS inside it where wanted."""
        transport = passage.transport
        try:
            if target.tls:
                context = self._context(target)
                async with _securing(target):
                    transport = await _start_tls(passage, protocol, context, target.host)
            else:
                transport.set_protocol(protocol)
        except BaseException:
            transport.abort()
            raise
        protocol.connection_made(transport)
        if not target.tls:
            transport.resume_reading()
            if passage.rest:
                protocol.data_received(passage.rest)

    def _context(self, target: _Target) -> ssl.SSLContext:
        """One context for all connections, made when first needed: it reads the CA bundle."""
        if self._upstream_context is None:
            try:
                self._upstream_context = self._outbound.trust.upstream_context()
            except UsageError as error:  # a file that was good at the start has changed
                raise DialError("upstream_tls", f"{target.name}: {error}") from None
        return self._upstream_context


async def _start_tls(
    passage: Passage, protocol: asyncio.Protocol, context: ssl.SSLContext, host: str
) -> asyncio.Transport:
    if passage.rest:
        raise ConnectionError(f"it sent {passage.rest[:40]!r} before the handshake")
    transport = await asyncio.get_running_loop().start_tls(
        passage.transport, protocol, context, server_hostname=host
    )
    if transport is None:
        raise ConnectionError("it closed the connection")
    return transport


async def _connect(target: _Target) -> socket.socket:
    try:
        return await connect(target.host, target.port)
    except socket.gaierror as error:
        raise DialError(
            "upstream_unknown",
            f"{target.name}: the name {target.host!r} has no address: {error.strerror}",
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a name that no DNS could hold
        raise DialError(
            "upstream_refused", f"{target.name}: no connection: {reason(error)}"
        ) from None


@contextlib.asynccontextmanager
async def _in_time(target: _Target) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            yield
    except TimeoutError:
        via = f" through the proxy {target.proxy.url}" if target.proxy is not None else ""
        raise DialError(
            "upstream_timeout",
            f"{target.name} did not accept a connection{via} in {CONNECT_TIMEOUT_S:.0f} s",
        ) from None


@contextlib.asynccontextmanager
async def _securing(target: _Target) -> AsyncIterator[None]:
    """What can go wrong in a TLS handshake, as a `DialError`."""
    try:
        async with asyncio.timeout(TLS_TIMEOUT_S):
            yield
    except TimeoutError:
        why = f"no answer to the handshake in {TLS_TIMEOUT_S:.0f} s; does it speak plain http://?"
    except ssl.SSLError as error:
        why = _tls_reason(error)
    except (OSError, ValueError) as error:  # ValueError: a name that no certificate could hold
        why = reason(error) or "it closed the connection during the handshake"
    else:
        return
    raise DialError("upstream_tls", f"{target.name}: TLS failed: {why}")


def _tls_reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{error.verify_message} (a private CA is named with --ca FILE or SSL_CERT_FILE)"
    if error.reason in _NOT_TLS:
        return f"the answer to the handshake is no TLS ({error.reason}); is it plain http://?"
    return error.reason or str(error)


def _hold_less_per_connection() -> None:
    """Cap asyncio's buffer for each TLS connection: a record of TLS has 16 KB at most.

    The attribute is not documented: where it does not exist, the buffer stays as it is.
    """
    if getattr(sslproto.SSLProtocol, "max_size", 0) > TLS_BUFFER_BYTES:
        sslproto.SSLProtocol.max_size = TLS_BUFFER_BYTES
