"""Listens on an address, tracks open connections, stops gracefully."""

import asyncio
import contextlib
import errno
import ipaddress
import itertools
import logging
import os
import re
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from deltatape.errors import UsageError
from deltatape.http1.server import ServerConnection

BACKLOG = 1024
"""How many clients may wait to be accepted: beyond that, some retry only after 1 s."""
_AT_ONCE = 8
"""How many are accepted in one turn of the loop, in which streams wait."""
_PORT = re.compile(r"[0-9]{1,5}")
_MAX_PORT = 65535
_AUTHORITY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]*)?")
_UNIX = "unix:"
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - read, not opened


@dataclass(frozen=True, slots=True)
class Address:
    """An address to listen on: host and port, or the path of a Unix socket."""

    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return bool(self.path) or is_loopback(self.host)

    @property
    def url(self) -> str:
        """A URL such as `http://127.0.0.1:8377`, also when listening on all addresses.

        For a Unix socket the host is its path, percent-encoded, and the scheme `http+unix`, as in
        requests-unixsocket.
        """
        if self.path:
            return f"http+unix://{quote(self.path, safe='')}"
        return f"http://{bracketed(_ANY.get(self.host, self.host))}:{self.port}"

    def __str__(self) -> str:
        return f"{_UNIX}{self.path}" if self.path else f"{bracketed(self.host)}:{self.port}"


def parse_address(text: str, option: str = "--listen") -> Address:
    """Parse `HOST:PORT`, with IPv6 hosts in brackets, or `unix:PATH`.

    Raises:
        UsageError: not such an address; the message names `option`.
    """
    if text.startswith(_UNIX) and text != _UNIX:
        return Address(path=text.removeprefix(_UNIX))
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not _PORT.fullmatch(port) or int(port) > _MAX_PORT:
        raise UsageError(
            f"{option} {text!r}: invalid address; use HOST:PORT, such as 127.0.0.1:8377 or"
            " [::1]:8377, with port 0 for any free port, or unix:PATH"
        )
    return Address(host, int(port))


def bracketed(host: str) -> str:
    """Return a host as in URLs: IPv6 addresses in brackets."""
    return f"[{host}]" if ":" in host else host


@lru_cache(maxsize=64)
def is_loopback(host: str) -> bool:
    """Check whether a host name or address means this machine only."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_name(authority: str) -> str:
    """Return the host of `HOST[:PORT]` in a `Host` field or origin; "" if it is anything else.

    Strict, since this decides who may ask: with user information, a fragment or a path, programs
    disagree about the host.
    """
    found = _AUTHORITY.fullmatch(authority)
    return found["host"].strip("[]") if found else ""


class Listened(Protocol):
    """A socket, or what asyncio shows of one."""

    def fileno(self) -> int: ...


Bound = tuple[socket.socket, ...]
"""The sockets of one listener: one for each address that a host's name has."""


async def bind(address: Address, listeners: int = 1) -> list[Bound]:
    """Bind sockets for this many listeners on one address; each accepts once a `Listener` has it.

    The system distributes connections among sockets on one port with `SO_REUSEPORT`.

    Raises:
        UsageError: the address is not available.
    """
    try:
        alone = await bind_one(address.host, address.port)
        if listeners == 1:
            return [alone]
        # That was without sharing: otherwise another run of ours could share the port, too.
        port = alone[0].getsockname()[1]
        close_all((alone,))
        return [await bind_one(address.host, port, shared=True) for _ in range(listeners)]
    except OSError as error:
        raise _cannot_listen(address, error) from None


async def bind_one(host: str, port: int, *, shared: bool = False) -> Bound:
    """Bind the sockets of one listener; `shared`: on a port that others listen on, too."""
    server = await asyncio.get_running_loop().create_server(
        asyncio.Protocol, host, port, start_serving=False, reuse_port=shared or None
    )
    bound = duplicates(server.sockets)
    server.close()
    return bound


def duplicates(sockets: Iterable[Listened]) -> Bound:
    """Return copies: they share the queue of waiting connections, but are closed separately."""
    return tuple(socket.socket(fileno=os.dup(each.fileno())) for each in sockets)


def close_all(groups: Iterable[Bound]) -> None:
    """Close sockets; a socket that another process shares keeps listening there."""
    for each in itertools.chain.from_iterable(groups):
        each.close()


async def stop_accepting(sockets: Iterable[Listened]) -> None:
    """Accept no connection any more, before asyncio's servers are closed.

    What waits to be accepted is left to other processes that listen on the same sockets.
    """
    loop = asyncio.get_running_loop()
    for sock in sockets:
        loop.remove_reader(sock.fileno())
    # What was accepted in this turn of the loop gets its transport in the next one, which asyncio
    # refuses if the server is closed by then.
    for _ in range(2):
        await asyncio.sleep(0)


class Listener:
    """A listening address and its connections."""

    def __init__(self) -> None:
        self._servers: list[asyncio.Server] = []
        self._connections: set[ServerConnection] = set()
        self.address = Address()
        """Where it listens; a port that was 0 is known once it is open."""

    async def open(
        self,
        address: Address,
        factory: Callable[[], ServerConnection],
        sockets: Iterable[socket.socket] = (),
    ) -> None:
        """Listen, on copies of `sockets` if there are some, which are bound already."""
        asyncio.get_running_loop().set_exception_handler(DescriptorExhaustionHandler())
        try:
            self.address = await self._open(address, factory, tuple(sockets))
        except OSError as error:
            raise _cannot_listen(address, error) from None

    async def _open(
        self, address: Address, factory: Callable[[], ServerConnection], sockets: Bound
    ) -> Address:
        loop = asyncio.get_running_loop()
        if address.path:
            sock = _unix_socket(address.path)
            server = await loop.create_unix_server(factory, sock=sock, backlog=_AT_ONCE)
            self._servers.append(server)
            _lengthen_backlog(server)
            return address
        own = duplicates(sockets) or await bind_one(address.host, address.port)
        for sock in own:
            server = await loop.create_server(factory, sock=sock, backlog=_AT_ONCE)
            self._servers.append(server)
            _lengthen_backlog(server)
        name = self._servers[0].sockets[0].getsockname()
        return Address(name[0], name[1])

    @property
    def sockets(self) -> Bound:
        """Copies of those on which it listens, for another process."""
        return duplicates(sock for server in self._servers for sock in server.sockets)

    @property
    def port(self) -> int:
        """The port; 0 for a Unix socket."""
        return self.address.port

    @property
    def url(self) -> str:
        """See `Address.url`."""
        return self.address.url

    def opened(self, connection: ServerConnection) -> None:
        self._connections.add(connection)
        transport = connection.transport
        sock = transport.get_extra_info("socket") if transport else None
        if sock is not None:
            with contextlib.suppress(OSError):  # a Unix socket has no such option
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def closed(self, connection: ServerConnection) -> None:
        self._connections.discard(connection)

    async def drain(self) -> None:
        """Accept no more connections; leave the open ones alone."""
        servers, self._servers = self._servers, []
        await stop_accepting(sock for server in servers for sock in server.sockets)
        for server in servers:
            server.close()

    def close(self) -> None:
        """Stop accepting connections and requests."""
        for server in self._servers:
            server.close()
            if self.address.path:
                with contextlib.suppress(OSError):
                    Path(self.address.path).unlink()
        self._servers = []
        for connection in tuple(self._connections):
            connection.retire()

    def drop(self) -> None:
        """End all connections at once."""
        for connection in tuple(self._connections):
            connection.drop()


def _lengthen_backlog(server: asyncio.Server) -> None:
    """Let `BACKLOG` clients wait; asyncio's own setting would also accept that many at once."""
    for sock in server.sockets:
        with socket.socket(fileno=os.dup(sock.fileno())) as same:
            same.listen(BACKLOG)


class AddressInUseError(UsageError):
    """Another process listens on an address."""

    def __init__(self, address: Address, message: str) -> None:
        super().__init__(message)
        self.address = address


def _cannot_listen(address: Address, error: OSError) -> UsageError:
    unknown = isinstance(error, socket.gaierror)  # its numbers are not those of the system
    reason = os.strerror(error.errno) if error.errno and not unknown else error.strerror or error
    if unknown or error.errno == errno.EADDRNOTAVAIL:
        advice = "use an address of this machine, such as 127.0.0.1"
    elif address.path:
        advice = "choose another path"
    else:
        advice = "choose another port, 0 takes any free one"
    message = f"cannot listen on {address}: {reason}; {advice}"
    if error.errno == errno.EADDRINUSE:
        return AddressInUseError(address, message)
    return UsageError(message)


def _unix_socket(path: str) -> socket.socket:
    """Bind a socket that only its owner can reach, replacing the socket of a dead process."""
    place = Path(path)
    if place.is_socket() and not _is_answered(path):
        place.unlink()
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        mask = os.umask(0o177)
        try:
            sock.bind(path)
        finally:
            os.umask(mask)
    except BaseException:
        sock.close()
        raise
    return sock


def _is_answered(path: str) -> bool:
    """Check whether a process listens there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


# When the process has no file descriptors left, new connections wait, with one warning a minute.
#
# asyncio then stops accepting for a second and tries again, which is right. But each time it logs a
# traceback for every place in the backlog, hundreds of lines a second, and as many again if the
# listener was closed in between.

_ACCEPTING = "socket.accept() out of system resource"
_TRYING_AGAIN = "._start_serving("
_EVERY_S = 60.0
_log = logging.getLogger(__name__)


class DescriptorExhaustionHandler:
    """Handles exhausted descriptors in a loop; leaves other errors to asyncio."""

    def __init__(self) -> None:
        self._said: float | None = None

    def __call__(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
        message, error = context.get("message"), context.get("exception")
        if _TRYING_AGAIN in str(message) and isinstance(error, ValueError):
            return  # the socket is closed: nothing more to accept
        if message != _ACCEPTING:
            loop.default_exception_handler(dict(context))
            return
        if self._said is None or loop.time() - self._said >= _EVERY_S:
            self._said = loop.time()
            _log.warning("%s: new connections wait until others end", _reason(context))


def _reason(context: Mapping[str, object]) -> str:
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        return "too many open files for one process (see `ulimit -n`)"
    return f"{error}"
