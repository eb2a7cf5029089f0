"""Socket operations that asyncio lacks: RST, and unread bytes.

A cut stream must reach the application as a cut. Where FIN would look like a clean end, or where
the other side sent RST, the connection is reset, but only after everything that was written has
left: RST discards what is still queued in the kernel.
"""

import asyncio
import contextlib
import fcntl
import ipaddress
import os
import select
import socket
import struct
import sys
import termios
from collections.abc import Callable, Iterator
from typing import Any

_LINGER_RESET = struct.pack("ii", 1, 0)
_FLUSH_STEP_S = 0.01
_FLUSH_LIMIT_S = 5.0
_WATCH_STEP_S = 0.05
READ_BYTES = 64 * 1024
_KEPT_BYTES = 4 << 20
GONE = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)
"""The peer has closed its sending half, or the connection."""
RESET = select.POLLERR
"""The peer has reset the connection."""


def socket_of(transport: asyncio.BaseTransport) -> socket.socket | None:
    """Return the socket of a transport; None if closed."""
    sock = transport.get_extra_info("socket")
    return sock if sock is not None and sock.fileno() >= 0 else None


def reset(transport: asyncio.Transport) -> None:
    """Close with RST once the peer's kernel has taken everything written.

    Waits at most 5 s for a peer that does not read; then the rest is lost.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _FLUSH_LIMIT_S

    def step() -> None:
        sock = socket_of(transport)
        if sock is None:
            return
        if (transport.get_write_buffer_size() or unsent(sock)) and loop.time() < deadline:
            loop.call_later(_FLUSH_STEP_S, step)
            return
        reset_now(transport)

    step()


def reset_now(transport: asyncio.Transport) -> None:
    """Close with RST at once."""
    sock = socket_of(transport)
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
    transport.abort()


def leftovers(transport: asyncio.BaseTransport) -> Iterator[bytes]:
    """Yield bytes that the peer sent before its end and that are unread.

    A failed write makes asyncio drop the transport although an answer, such as a 413 to an upload,
    may be unread in the kernel. Not possible with TLS.
    """
    sock = socket_of(transport)
    if sock is None or transport.get_extra_info("sslcontext") is not None:
        return
    with contextlib.suppress(OSError):
        while data := os.read(sock.fileno(), READ_BYTES):
            yield data


def unsent(sock: socket.socket) -> int:
    """Return bytes that the peer's kernel has not acknowledged; 0 if unknown."""
    try:
        raw = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, b"\0\0\0\0")
    except OSError:
        return 0
    return int(struct.unpack("i", raw)[0])


def limit_reads(transport: asyncio.Transport) -> None:
    """Have asyncio read `READ_BYTES` at once from a connection instead of four times as much.

    What was read before a slow peer's side is paused waits in memory. Besides, the block that a
    read allocates is small enough for glibc not to map and unmap it each time. The attribute is not
    documented: where it does not exist, reads stay as they are.
    """
    plain: Any = transport
    if getattr(plain, "max_size", 0) > READ_BYTES:
        plain.max_size = READ_BYTES


def keep_freed_memory() -> None:
    """Have glibc keep some MiB of the memory that reads leave free, for the next ones.

    By default it gives the end of its heap back to the kernel once 128 KiB are free there, and has
    it mapped again, page by page, for the reads that follow: a fifth of what an upload costs. The
    limit is twice the largest block that was mapped by itself and freed. Other C libraries go on as
    they do, and glibc, too, where the environment sets a limit (`MALLOC_TRIM_THRESHOLD_`).
    """
    bytes(_KEPT_BYTES // 2)


def break_cycle(transport: asyncio.Transport) -> None:
    """Have a transport that is closed be freed at once, and not by the garbage collector.

    asyncio's keeps a method of its own, and so refers to itself. The attribute is not documented:
    where it does not exist, the collector frees it.
    """
    plain: Any = transport
    if getattr(plain, "_read_ready_cb", None) is not None:
        plain._read_ready_cb = _nothing_more  # noqa: SLF001 - see above


def _nothing_more() -> None:
    """Read nothing."""


class HangupWatch:
    """Detects that the peer left while its transport is paused.

    A paused transport is not read, so asyncio does not notice the peer's FIN or RST behind unread
    bytes; `poll` does. Looks every 50 ms, and only while started.

    Args:
        transport: the transport of the peer.
        on_hangup: called once.
        events: the events of `poll` that count as leaving.
    """

    def __init__(
        self, transport: asyncio.Transport, on_hangup: Callable[[], None], events: int = GONE
    ) -> None:
        self._transport = transport
        self._on_hangup = on_hangup
        self._events = events
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start watching; starting twice is harmless."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_WATCH_STEP_S, self._poll)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _poll(self) -> None:
        self._timer = None
        sock = socket_of(self._transport)
        if sock is None:
            return
        poller = select.poll()
        poller.register(sock.fileno(), self._events)
        if poller.poll(0):
            self._on_hangup()
        else:
            self.start()


# Whether a peer on this machine has read what it was sent.
#
# TCP merges what is not read in time: two pieces sent shortly after each other arrive as one. To
# have them read one by one, the sender must know that the first was read. Linux reports how many
# bytes wait in any socket of the machine (sock_diag(7)), and for a Unix socket how many the peer
# has not read. Other systems report nothing, so there the sender does not wait.

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
"""Its timer, and how many bytes wait in the socket; what identifies it is skipped."""
_ANSWER_BYTES = 4096


class UnreadBytes:
    """Inspects peers' sockets; belongs to one thread."""

    def __init__(self) -> None:
        self._netlink: socket.socket | None = None
        self._supported = sys.platform == "linux"

    def close(self) -> None:
        """Stop inspecting: all later bytes count as read."""
        self._supported = False
        netlink, self._netlink = self._netlink, None
        if netlink is not None:
            netlink.close()

    def has_unread(self, transport: asyncio.BaseTransport) -> bool:
        """Check whether something written is known to be unread."""
        sock = socket_of(transport)
        if sock is None or not self._supported:
            return False
        if sock.family is socket.AF_UNIX:
            return unsent(sock) > 0
        request = _diag_request(sock)
        if request is None:
            return False
        try:
            return _unread_bytes(self._send_query(request)) > 0
        except OSError:  # a kernel without it, or one that forbids it
            self.close()
            return False

    def _send_query(self, request: bytes) -> bytes:
        if self._netlink is None:
            self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
            self._netlink.settimeout(0)  # the answer is there when the question has been taken
        self._netlink.send(request)
        return self._netlink.recv(_ANSWER_BYTES)


def _diag_request(sock: socket.socket) -> bytes | None:
    """Build the query for the peer's socket; None if it is on another machine."""
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


def _unread_bytes(answer: bytes) -> int:
    """Return the bytes waiting in the socket of the answer; 0 if unknown."""
    if len(answer) < _HEADER.size + _REST.size or _HEADER.unpack_from(answer)[1] == _ERROR:
        return 0
    _, waiting = _REST.unpack_from(answer, _HEADER.size)
    return int(waiting)
