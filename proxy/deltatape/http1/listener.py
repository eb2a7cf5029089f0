"""Listening: opens the address, knows the open connections, stops in good order."""

import asyncio
import contextlib
import ipaddress
import re
import socket
from collections.abc import Callable

from deltatape.errors import UsageError
from deltatape.http1.server import ServerConnection

BACKLOG = 128
_PORT = re.compile(r"[0-9]{1,5}")
_MAX_PORT = 65535


def parse_address(text: str) -> tuple[str, int]:
    """`HOST:PORT` as host and port; an IPv6 host stands in brackets.

    Raises:
        UsageError: not such an address, or not one of loopback.
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not _PORT.fullmatch(port) or int(port) > _MAX_PORT:
        raise UsageError(
            f"--listen {text!r}: not an address; HOST:PORT is accepted, such as 127.0.0.1:8377,"
            " with port 0 for any free one"
        )
    if not is_loopback(host):
        raise UsageError(
            f"--listen {text!r}: only loopback is accepted (127.0.0.1, [::1], localhost):"
            " the gateway would hand your provider to everybody who can reach the port"
        )
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether a host name or address stands for this machine only."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Listener:
    """An open port and its connections."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._connections: set[ServerConnection] = set()
        self.host = ""
        self.port = 0

    async def open(self, host: str, port: int, factory: Callable[[], ServerConnection]) -> None:
        """Start to listen.

        Raises:
            UsageError: the address cannot be had.
        """
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(factory, host, port, backlog=BACKLOG)
        except OSError as error:
            reason = error.strerror or str(error)
            raise UsageError(
                f"cannot listen on {host}:{port}: {reason}; choose another port with --listen"
                " (port 0 takes any free one)"
            ) from None
        name = self._server.sockets[0].getsockname()
        self.host, self.port = name[0], name[1]

    @property
    def url(self) -> str:
        """`http://127.0.0.1:8377`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def opened(self, connection: ServerConnection) -> None:
        """A connection was accepted."""
        self._connections.add(connection)
        transport = connection.transport
        sock = transport.get_extra_info("socket") if transport else None
        if sock is not None:
            with contextlib.suppress(OSError):  # a Unix socket has no such option
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def closed(self, connection: ServerConnection) -> None:
        """A connection is gone."""
        self._connections.discard(connection)

    def close(self) -> None:
        """Accept nothing more, neither connections nor requests."""
        if self._server is not None:
            self._server.close()
        for connection in tuple(self._connections):
            connection.retire()

    def drop(self) -> None:
        """End all connections at once."""
        for connection in tuple(self._connections):
            connection.drop()
