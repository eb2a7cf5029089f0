"""What asyncio has no word for: a connection that ends with RST, and a peer that left unread.

A cut stream must reach the application as a cut. Where FIN would look like a clean end, or where
the other side sent RST, the connection is reset, but only after everything that was written has
left: RST discards what is still queued in the kernel.
"""

import asyncio
import contextlib
import fcntl
import os
import select
import socket
import struct
import termios
from collections.abc import Callable, Iterator

_LINGER_RESET = struct.pack("ii", 1, 0)
_FLUSH_STEP_S = 0.01
_FLUSH_LIMIT_S = 5.0
_WATCH_STEP_S = 0.05
_READ_BYTES = 64 * 1024
_ASYNCIO_READ_BYTES = 256 * 1024
_GONE = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)


def socket_of(transport: asyncio.BaseTransport) -> socket.socket | None:
    """The socket below a transport; None once it is closed."""
    sock = transport.get_extra_info("socket")
    return sock if sock is not None and sock.fileno() >= 0 else None


def reset(transport: asyncio.Transport) -> None:
    """End a connection with RST once all that was written has been taken by the peer's kernel.

    Waits at most 5 s for a peer that does not read; then the rest is lost, as it would have been.
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
    """End a connection with RST, whatever is still unsent."""
    sock = socket_of(transport)
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
    transport.abort()


def leftovers(transport: asyncio.BaseTransport) -> Iterator[bytes]:
    """What the peer sent before it ended the connection, and nobody read.

    A write that fails makes asyncio drop the transport although an answer, such as a 413 to an
    upload, lies unread in the kernel. Nothing can be had below TLS.
    """
    sock = socket_of(transport)
    if sock is None or transport.get_extra_info("sslcontext") is not None:
        return
    with contextlib.suppress(OSError):
        while data := os.read(sock.fileno(), _READ_BYTES):
            yield data


def unsent(sock: socket.socket) -> int:
    """Bytes that the peer's kernel has not acknowledged; 0 where the system does not tell."""
    try:
        raw = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, b"\0\0\0\0")
    except OSError:
        return 0
    return int(struct.unpack("i", raw)[0])


def keep_read_memory() -> None:
    """Have the allocator keep the memory that asyncio reads into.

    asyncio asks for 256 KiB with every read and gives back all but what came. glibc maps and unmaps
    a block of that size each time, until one of at least that size has been freed: three system
    calls and a page fault for every read. Other allocators do not mind.
    """
    bytes(2 * _ASYNCIO_READ_BYTES)


class HangupWatch:
    """Tells that the peer left while its transport is paused.

    A paused transport is not read, so asyncio does not notice the peer's FIN or RST behind bytes
    that nobody takes; `poll` does. Looks every 50 ms, and only while started.
    """

    def __init__(self, transport: asyncio.Transport, gone: Callable[[], None]) -> None:
        self._transport = transport
        self._gone = gone
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to look; starting twice is the same as once."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_WATCH_STEP_S, self._look)

    def stop(self) -> None:
        """Stop looking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        sock = socket_of(self._transport)
        if sock is None:
            return
        poller = select.poll()
        poller.register(sock.fileno(), _GONE)
        if poller.poll(0):
            self._gone()
        else:
            self.start()
