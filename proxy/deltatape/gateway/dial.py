"""Opens upstream connections: DNS, TCP, proxy and TLS, each with its own errors.

Two durations are measured. `connect_ns` lasts until bytes can pass to the upstream: DNS, the race
of its addresses and, with a proxy, the proxy's TLS and its response to CONNECT. `tls_ns` is the
upstream's own TLS handshake.
"""

import asyncio
import contextlib
import os
import socket
import ssl
from asyncio import sslproto
from collections import deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from http import HTTPStatus

from deltatape.clock import Clock
from deltatape.errors import UsageError
from deltatape.gateway.outbound import OutboundSettings, Proxy
from deltatape.gateway.routes import Origin
from deltatape.http1.client import UpstreamConnection
from deltatape.http1.head import BadMessageError, ParsedResponseHead, find_head, parse_response
from deltatape.http1.listener import bracketed
from deltatape.http1.tls import TLS_BUFFER_BYTES

CONNECT_TIMEOUT_S = 60.0
TLS_TIMEOUT_S = 10.0
"""Limit for the TLS handshake: an upstream that speaks no TLS often waits in silence."""
_NOT_TLS = ("WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "PACKET_LENGTH_TOO_LONG")


# Through a corporate proxy: CONNECT and its response.
#
# CONNECT is used for `http://` upstreams, too: the proxy then passes bytes, whereas it would read a
# request in absolute form, change it and perhaps store it.
#
# Source: RFC 9110 section 9.3.6 (CONNECT), RFC 7617 (Basic).

_SHOWN_BYTES = 120


class ProxyError(Exception):
    """The proxy refused or failed.

    `code` is `proxy_refused`, `proxy_unknown`, `proxy_auth` or `proxy_denied`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class ProxiedConnection:
    """An open, paused connection through a proxy; `rest` are bytes after the proxy's answer."""

    transport: asyncio.Transport
    rest: bytes


async def connect_through_proxy(
    proxy: Proxy, host: str, port: int, context: ssl.SSLContext | None
) -> ProxiedConnection:
    """Send CONNECT to `proxy` for `host` and `port`.

    Args:
        proxy: the proxy.
        host: the upstream's.
        port: the upstream's.
        context: for a proxy that expects TLS, else None.

    Raises:
        ProxyError: there is no connection; the message says why, without naming the proxy.
    """
    client = _ConnectClient()
    try:
        await _connect_to_proxy(proxy, client, context)
        try:
            client.send(_connect_request(proxy, host, port))
            head, line = await client.answer
        except BaseException:
            client.abort()
            raise
    except (OSError, BadMessageError, UnicodeError) as error:
        raise _proxy_error(error) from None
    if head.status // 100 != HTTPStatus.OK // 100:
        client.abort()
        raise _refused_by_proxy(proxy, head, line)
    return ProxiedConnection(client.transport, client.rest)


async def _connect_to_proxy(
    proxy: Proxy, client: "_ConnectClient", context: ssl.SSLContext | None
) -> None:
    sock = await connect(proxy.host, proxy.port)
    try:
        await asyncio.get_running_loop().create_connection(
            lambda: client,
            sock=sock,
            ssl=context,
            server_hostname=proxy.host if context is not None else None,
        )
    except BaseException:
        sock.close()
        raise


def _connect_request(proxy: Proxy, host: str, port: int) -> bytes:
    name = bracketed(host) if ":" in host else host.encode("idna").decode("ascii")
    authority = f"{name}:{port}".encode("ascii")
    credentials = b""
    if proxy.authorization is not None:
        credentials = b"Proxy-Authorization: %b\r\n" % proxy.authorization
    return b"CONNECT %b HTTP/1.1\r\nHost: %b\r\nUser-Agent: deltatape\r\n%b\r\n" % (
        authority,
        authority,
        credentials,
    )


def _proxy_error(error: OSError | BadMessageError | UnicodeError) -> ProxyError:
    if isinstance(error, socket.gaierror | UnicodeError):
        return ProxyError("proxy_unknown", f"its name has no address: {reason(error)}")
    if isinstance(error, ssl.SSLCertVerificationError):
        return ProxyError(
            "proxy_refused", f"TLS failed: {error.verify_message} (--ca FILE names a private CA)"
        )
    if isinstance(error, ssl.SSLError):
        return ProxyError("proxy_refused", f"TLS failed: {error.reason or error}")
    if isinstance(error, BadMessageError):
        return ProxyError("proxy_refused", f"its answer to CONNECT is not HTTP/1: {error}")
    return ProxyError("proxy_refused", reason(error) or "it closed the connection")


def _refused_by_proxy(proxy: Proxy, head: ParsedResponseHead, line: bytes) -> ProxyError:
    status_line = ascii(line[:_SHOWN_BYTES].decode("latin-1"))
    if head.status != HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        return ProxyError("proxy_denied", f"it answered CONNECT with {status_line}")
    schemes = sorted(
        {
            value.split(maxsplit=1)[0].decode("latin-1")
            for name, value in head.fields
            if name.lower() == b"proxy-authenticate" and value
        }
    )
    if schemes and "basic" not in (scheme.lower() for scheme in schemes):
        advice = (
            f"it asks for {', '.join(schemes)!a}, and only Basic is spoken here; a local proxy"
            " that speaks it, such as px or cntlm, can stand in between"
        )
    elif proxy.authorization is not None:
        advice = f"the user or password in {proxy.variable} is not accepted"
    else:
        advice = (
            f"it wants a user and password: {proxy.variable}={proxy.scheme}://USER:PASSWORD@"
            f"{bracketed(proxy.host)}:{proxy.port}"
        )
    return ProxyError("proxy_auth", f"it answered CONNECT with {status_line}: {advice}")


class _ConnectClient(asyncio.Protocol):
    """The client side of one CONNECT."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[tuple[ParsedResponseHead, bytes]] = (
            asyncio.get_running_loop().create_future()
        )
        self.rest = b""
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    def send(self, request: bytes) -> None:
        self.transport.write(request)

    def abort(self) -> None:
        if not self.answer.done():
            self.answer.cancel()
        elif not self.answer.cancelled():
            self.answer.exception()  # retrieved, so that asyncio does not log it
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        try:
            while not self.answer.done() and (end := find_head(self._buffer)):
                raw = bytes(self._buffer[:end])
                del self._buffer[:end]
                head = parse_response(raw, method="CONNECT")
                if not head.informational:
                    self.transport.pause_reading()
                    self.rest = bytes(self._buffer)
                    self.answer.set_result((head, raw.partition(b"\r\n")[0]))
        except BadMessageError as error:
            self._fail(error)

    def connection_lost(self, exc: Exception | None) -> None:
        seen = f" after {bytes(self._buffer[:_SHOWN_BYTES])!r}" if self._buffer else ""
        why = f": {reason(exc)}" if exc is not None else ""
        self._fail(ConnectionError(f"it closed the connection without an answer{seen}{why}"))

    def _fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


@dataclass(frozen=True, slots=True)
class OpenConnection:
    """An open connection and the time it took, in ns; `tls_ns` is 0 without TLS."""

    connection: UpstreamConnection
    connect_ns: int
    tls_ns: int


class ConnectionFailedError(Exception):
    """No connection could be opened.

    `code` is `upstream_refused`, `upstream_unknown`, `upstream_tls` or `upstream_timeout`; with a
    proxy also `proxy_refused`, `proxy_unknown`, `proxy_auth` or `proxy_denied`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """A host and port to connect to, and their name in messages."""

    host: str
    port: int
    name: str
    proxy: Proxy | None
    tls: bool


class Connector:
    """Opens connections as `outbound` configures."""

    def __init__(self, outbound: OutboundSettings, clock: Clock) -> None:
        self._outbound = outbound
        self._clock = clock
        self._upstream_context: ssl.SSLContext | None = None
        self._proxy_context: ssl.SSLContext | None = None
        _limit_tls_buffers()

    async def dial(self, origin: Origin) -> OpenConnection:
        """Connect to `origin`.

        Raises:
            ConnectionFailedError: there is no connection; the message names the origin, the proxy
                if there is one, and the reason.
        """
        target = _Target(
            host=origin.host,
            port=origin.port,
            name=origin.url,
            proxy=self._outbound.proxy_for(origin.scheme, origin.host, origin.port),
            tls=origin.scheme == "https",
        )
        proxy_tls = target.proxy is not None and target.proxy.scheme == "https"
        connection = UpstreamConnection(tls_in_tls=target.tls and proxy_tls)
        async with _connect_timeout(target):
            connect_ns, tls_ns = await self._open(target, connection)
        return OpenConnection(connection, connect_ns, tls_ns)

    async def tcp(self, host: str, port: int, protocol: asyncio.Protocol) -> None:
        """Connect `protocol` to `host` and `port` without TLS of our own.

        As for an `https://` upstream, a proxy is asked where one is configured.

        Raises:
            ConnectionFailedError: see `dial`.
        """
        target = _Target(
            host=host,
            port=port,
            name=f"{bracketed(host)}:{port}",
            proxy=self._outbound.proxy_for("https", host, port),
            tls=False,
        )
        async with _connect_timeout(target):
            await self._open(target, protocol)

    async def _open(self, target: _Target, protocol: asyncio.Protocol) -> tuple[int, int]:
        """Connect `protocol`; return the ns until connected and for TLS."""
        started = self._clock.now_ns()
        if target.proxy is None:
            sock = await _connect(target)
            connected = self._clock.now_ns()
            await self._attach(target, sock, protocol)
        else:
            proxied = await self._connect_proxied(target, target.proxy)
            connected = self._clock.now_ns()
            await self._hand_over(target, proxied, protocol)
        done = self._clock.now_ns()
        return connected - started, done - connected if target.tls else 0

    # Directly.

    async def _attach(
        self, target: _Target, sock: socket.socket, protocol: asyncio.Protocol
    ) -> None:
        loop = asyncio.get_running_loop()
        try:
            if not target.tls:
                await loop.create_connection(lambda: protocol, sock=sock)
                return
            context = self._context(target)
            async with _tls_handshake(target):
                await loop.create_connection(
                    lambda: protocol, sock=sock, ssl=context, server_hostname=target.host
                )
        except BaseException:
            sock.close()
            raise

    # Through a proxy.

    async def _connect_proxied(self, target: _Target, proxy: Proxy) -> ProxiedConnection:
        try:
            if proxy.scheme == "https" and self._proxy_context is None:
                self._proxy_context = self._outbound.trust.proxy_context()
            context = self._proxy_context if proxy.scheme == "https" else None
            return await connect_through_proxy(proxy, target.host, target.port, context)
        except UsageError as error:  # a file that was good at the start has changed
            raise ConnectionFailedError("proxy_refused", f"{target.name}: {error}") from None
        except ProxyError as error:
            raise ConnectionFailedError(
                error.code, f"{target.name}: the proxy {proxy.url} ({proxy.variable}): {error}"
            ) from None

    async def _hand_over(
        self, target: _Target, proxied: ProxiedConnection, protocol: asyncio.Protocol
    ) -> None:
        """Hand a proxy connection to `protocol`, after the upstream's TLS handshake if any."""
        transport = proxied.transport
        try:
            if target.tls:
                context = self._context(target)
                async with _tls_handshake(target):
                    transport = await _start_tls(proxied, protocol, context, target.host)
            else:
                transport.set_protocol(protocol)
        except BaseException:
            transport.abort()
            raise
        protocol.connection_made(transport)
        if not target.tls:
            transport.resume_reading()
            if proxied.rest:
                protocol.data_received(proxied.rest)

    def _context(self, target: _Target) -> ssl.SSLContext:
        """Return the TLS context, created once, since it reads the CA bundle."""
        if self._upstream_context is None:
            try:
                self._upstream_context = self._outbound.trust.upstream_context()
            except UsageError as error:  # a file that was good at the start has changed
                raise ConnectionFailedError("upstream_tls", f"{target.name}: {error}") from None
        return self._upstream_context


async def _start_tls(
    proxied: ProxiedConnection, protocol: asyncio.Protocol, context: ssl.SSLContext, host: str
) -> asyncio.Transport:
    if proxied.rest:
        raise ConnectionError(f"it sent {proxied.rest[:40]!r} before the handshake")
    transport = await asyncio.get_running_loop().start_tls(
        proxied.transport, protocol, context, server_hostname=host
    )
    if transport is None:
        raise ConnectionError("it closed the connection")
    return transport


async def _connect(target: _Target) -> socket.socket:
    try:
        return await connect(target.host, target.port)
    except socket.gaierror as error:
        raise ConnectionFailedError(
            "upstream_unknown",
            f"{target.name}: the name {target.host!r} has no address: {error.strerror}",
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a name that no DNS could hold
        raise ConnectionFailedError(
            "upstream_refused", f"{target.name}: no connection: {reason(error)}"
        ) from None


@contextlib.asynccontextmanager
async def _connect_timeout(target: _Target) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            yield
    except TimeoutError:
        via = f" through the proxy {target.proxy.url}" if target.proxy is not None else ""
        raise ConnectionFailedError(
            "upstream_timeout",
            f"{target.name} did not accept a connection{via} in {CONNECT_TIMEOUT_S:.0f} s",
        ) from None


@contextlib.asynccontextmanager
async def _tls_handshake(target: _Target) -> AsyncIterator[None]:
    """Turn errors of a TLS handshake into `ConnectionFailedError`."""
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
    raise ConnectionFailedError("upstream_tls", f"{target.name}: TLS failed: {why}")


def _tls_reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{error.verify_message} (a private CA is named with --ca FILE or SSL_CERT_FILE)"
    if error.reason in _NOT_TLS:
        return f"the answer to the handshake is no TLS ({error.reason}); is it plain http://?"
    return error.reason or str(error)


def _limit_tls_buffers() -> None:
    """Cap asyncio's buffer for each TLS connection: its own default is 16 times as much.

    The attribute is not documented: where it does not exist, the buffer stays as it is.
    """
    if getattr(sslproto.SSLProtocol, "max_size", 0) > TLS_BUFFER_BYTES:
        sslproto.SSLProtocol.max_size = TLS_BUFFER_BYTES


# A TCP connection to a name: the first of its addresses that answers.
#
# Addresses are tried in the system's order but with the families in turn, the next one as soon as
# the one before has failed or has been silent for 250 ms, so that a network that swallows IPv6
# costs a quarter of a second instead of the system's two minutes.
#
# asyncio's own race (`happy_eyeballs_delay`) is not used: where no address answers, Python 3.11 to
# 3.13 raise one `OSError` without an errno, "Multiple exceptions: [Errno 111] Connect call failed
# ('::1', 9, 0, 0), ...", so that the system's words and each address's own reason would be lost.
# `all_errors=True` keeps the errors apart, but only from Python 3.12 on.
#
# Source: RFC 8305 (Happy Eyeballs), sections 4 and 5.

STAGGER_S = 0.25
Address = tuple[socket.AddressFamily, socket.SocketKind, int, tuple[object, ...]]
"""Family, kind, protocol and the address itself."""


async def connect(host: str, port: int) -> socket.socket:
    """Return a connected socket.

    Raises:
        socket.gaierror: the name has no address.
        ValueError: it is no name that DNS could hold.
        OSError: no address accepted the connection; the text says why for each.
    """
    try:  # an address is its own: no thread has to ask for it
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return await connect_first((f, kind, protocol, at) for f, kind, protocol, _, at in found)


async def connect_first(addresses: Iterable[Address]) -> socket.socket:
    """Connect to the first of `addresses` that accepts; close the others.

    Raises:
        OSError: none did.
    """
    loop = asyncio.get_running_loop()
    waiting = _alternate_families(addresses)
    if len(waiting) == 1:
        try:
            return await _connect_to(waiting[0])
        except OSError as refused:
            raise OSError(reason(refused)) from None
    running: dict[asyncio.Task[socket.socket], Address] = {}
    failures: list[tuple[str, str]] = []
    try:
        while waiting or running:
            if waiting:
                address = waiting.popleft()
                running[loop.create_task(_connect_to(address))] = address
            done, _ = await asyncio.wait(
                running,
                timeout=STAGGER_S if waiting else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for task in done:
                address = running.pop(task)
                error = task.exception()
                if error is None:
                    return task.result()
                failures.append((str(address[3][0]), reason(error)))
    finally:
        await _cancel_attempts(running)
    reasons = {why for _, why in failures}
    if len(reasons) > 1:
        raise OSError("; ".join(f"{where}: {why}" for where, why in failures))
    raise OSError(reasons.pop() if reasons else "no address")


def reason(error: BaseException) -> str:
    """Return the system's words for an error: asyncio puts its own into `strerror`."""
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number) if number else str(error)


def _alternate_families(addresses: Iterable[Address]) -> deque[Address]:
    """Alternate address families, starting with the family of the first address."""
    families: dict[int, deque[Address]] = {}
    for address in addresses:
        families.setdefault(address[0], deque()).append(address)
    ordered: deque[Address] = deque()
    while any(families.values()):
        ordered.extend(queue.popleft() for queue in families.values() if queue)
    return ordered


async def _connect_to(address: Address) -> socket.socket:
    family, kind, protocol, at = address
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)  # noqa: FBT003 - the standard library's own signature
        await asyncio.get_running_loop().sock_connect(sock, at)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        sock.close()
        raise
    return sock


async def _cancel_attempts(attempts: Iterable[asyncio.Task[socket.socket]]) -> None:
    """Cancel pending attempts, and close late connections."""
    tasks = tuple(attempts)
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, socket.socket):
            outcome.close()
