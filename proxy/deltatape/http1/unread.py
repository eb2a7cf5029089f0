"""Whether a peer has read what it was sent, where it is on the same machine.

TCP joins what is not read in time: two pieces that are sent shortly after each other come as one.
Who wants them to be read one by one has to know that the first is gone. Linux tells how much waits
in any socket of the machine (sock_diag(7)); of a Unix socket, how much the peer has left unread.
Elsewhere nobody tells, and nothing is waited for.
"""

import asyncio
import ipaddress
import socket
import struct
import sys

from deltatape.http1.socket import socket_of, unsent

_NETLINK_SOCK_DIAG = 4
_BY_FAMILY = 20
_REQUEST = 1
_ERROR = 2
_ANY = 0xFFFFFFFF
_HEADER = struct.Struct("=IHHII")
_ASK = struct.Struct("=BBBxI")
_IDENT = struct.Struct("!HH16s16sI8s")
_NO_COOKIE = b"\xff" * 8
_REST = struct.Struct("=4x48xII")
"""Of the answer: what identifies the socket, when it expires, and what waits in it."""
_ANSWER_BYTES = 4096


class Unread:
    """Looks at peers' sockets; belongs to one thread."""

    def __init__(self) -> None:
        self._netlink: socket.socket | None = None
        self._tells = sys.platform == "linux"

    def close(self) -> None:
        """Look no more: from now on everything counts as read."""
        self._tells = False
        netlink, self._netlink = self._netlink, None
        if netlink is not None:
            netlink.close()

    def waits(self, transport: asyncio.BaseTransport) -> bool:
        """Whether something that was written is known not to have been read yet."""
        sock = socket_of(transport)
        if sock is None or not self._tells:
            return False
        if sock.family is socket.AF_UNIX:
            return unsent(sock) > 0
        query = _query(sock)
        if query is None:
            return False
        try:
            return _waiting(self._asked(query)) > 0
        except OSError:  # a kernel without it, or one that forbids it
            self.close()
            return False

    def _asked(self, query: bytes) -> bytes:
        if self._netlink is None:
            self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
            self._netlink.settimeout(0)  # the answer is there when the question has been taken
        self._netlink.send(query)
        return self._netlink.recv(_ANSWER_BYTES)


def _query(sock: socket.socket) -> bytes | None:
    """The question for the peer's socket; None if that is on another machine."""
    try:
        own, peer = sock.getsockname(), sock.getpeername()
    except OSError:
        return None
    here, there = _address(own[0]), _address(peer[0])
    if not there.is_loopback or here.version != there.version:
        return None
    family = socket.AF_INET if there.version == 4 else socket.AF_INET6  # noqa: PLR2004
    ident = _IDENT.pack(peer[1], own[1], there.packed, here.packed, 0, _NO_COOKIE)
    ask = _ASK.pack(family, socket.IPPROTO_TCP, 0, _ANY) + ident
    return _HEADER.pack(_HEADER.size + len(ask), _BY_FAMILY, _REQUEST, 0, 0) + ask


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _waiting(answer: bytes) -> int:
    """The bytes that wait in the socket of the answer; 0 where it tells of none."""
    if len(answer) < _HEADER.size + _REST.size or _HEADER.unpack_from(answer)[1] == _ERROR:
        return 0
    _, waiting = _REST.unpack_from(answer, _HEADER.size)
    return int(waiting)
