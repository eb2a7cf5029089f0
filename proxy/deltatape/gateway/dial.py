"""Opening upstream connections: name, TCP, TLS, each with its own time and its own failure."""

import asyncio
import os
import socket
import ssl
from dataclasses import dataclass

from deltatape.clock import Clock
from deltatape.gateway.routes import Origin
from deltatape.http1.client import UpstreamConnection

CONNECT_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Dialled:
    """An open connection and what it took, in ns; `tls_ns` is 0 without TLS."""

    connection: UpstreamConnection
    connect_ns: int
    tls_ns: int


class DialError(Exception):
    """No connection.

    `code` is `upstream_refused`, `upstream_unknown`, `upstream_tls` or `upstream_timeout`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


async def dial(origin: Origin, context: ssl.SSLContext, clock: Clock) -> Dialled:
    """Connect to `origin`.

    Raises:
        DialError: it could not be had; the message names it and says why.
    """
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            return await _dial(origin, context, clock)
    except TimeoutError:
        raise DialError(
            "upstream_timeout",
            f"{origin.url} did not accept a connection in {CONNECT_TIMEOUT_S:.0f} s",
        ) from None
    except socket.gaierror as error:
        raise DialError(
            "upstream_unknown",
            f"{origin.url}: the name {origin.host!r} has no address: {error.strerror}",
        ) from None
    except ssl.SSLError as error:
        raise DialError("upstream_tls", f"{origin.url}: TLS failed: {_tls_reason(error)}") from None
    except (OSError, ValueError) as error:  # ValueError: a name that no DNS could hold
        raise DialError(
            "upstream_refused", f"{origin.url}: no connection: {_reason(error)}"
        ) from None


async def _dial(origin: Origin, context: ssl.SSLContext, clock: Clock) -> Dialled:
    loop = asyncio.get_running_loop()
    started = clock.now_ns()
    sock = await _connect(origin)
    connected = clock.now_ns()
    try:
        _, connection = await loop.create_connection(
            UpstreamConnection,
            sock=sock,
            ssl=context if origin.scheme == "https" else None,
            server_hostname=origin.host if origin.scheme == "https" else None,
        )
    except BaseException:
        sock.close()
        raise
    tls_ns = clock.now_ns() - connected if origin.scheme == "https" else 0
    return Dialled(connection, connected - started, tls_ns)


async def _connect(origin: Origin) -> socket.socket:
    """A TCP connection to the first address that takes one."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
    failure: OSError = OSError("no address")
    for family, kind, protocol, _, address in found:
        sock = socket.socket(family, kind, protocol)
        sock.setblocking(False)  # noqa: FBT003 - the standard library's own signature
        try:
            await loop.sock_connect(sock, address)
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
    raise failure


def _reason(error: OSError | ValueError) -> str:
    """The system's words: asyncio puts its own into `strerror`."""
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number) if number else str(error)


def _tls_reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{error.verify_message} (a private CA is named with SSL_CERT_FILE)"
    return error.reason or str(error)
