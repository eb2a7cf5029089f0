"""The provider of the benchmark, a program: streams deltas, paced or as fast as they are taken.

Strategy: one thread over epoll, no framework, so that it takes little of the machine that the
proxy under test shares with it. Every delta is one write of its own and carries the time of that
write. Paced streams begin at phases spread evenly, since streams in step would queue on each other.

It prints its port, and ends when its standard input does, or after the limit: a number of seconds
may be given.
"""

import gc
import heapq
import select
import socket
import struct
import sys

import httptools

from benchmarks.traffic import (
    ANSWER,
    HEAD,
    LAST,
    PLAN,
    RELEASE,
    Cut,
    Plan,
    decode_plan,
    delta,
    first,
    request,
)
from deltatape.clock import SystemClock

LIMIT_S = 1200
_BACKLOG = 4096
_READ_BYTES = 65536
_IDLE_S = 0.5
_NS = 1_000_000_000
_GOLDEN = 0.6180339887
"""Multiples of it, without their whole part, are spread evenly however many there are."""

_now_ns = SystemClock.now_ns


class Connection:
    """An accepted connection; what httptools calls."""

    def __init__(self, provider: "Provider", sock: socket.socket) -> None:
        self.sock = sock
        self.fd = sock.fileno()
        self.parser = httptools.HttpRequestParser(self)
        self.unsent = b""
        self.left = 0
        self.gap_ns = 0
        self.hold = False
        self.cut = Cut.NONE
        self._provider = provider
        self._plan = b""

    def on_message_begin(self) -> None:
        """See httptools."""
        self._plan = b""

    def on_header(self, name: bytes, value: bytes) -> None:
        """See httptools."""
        if name.lower() == PLAN:
            self._plan = value

    def on_message_complete(self) -> None:
        """See httptools."""
        if self._plan == RELEASE:
            self._provider.release(self)
        else:
            self._provider.begin(self, decode_plan(self._plan))


class Provider:
    """See the module."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
        self._listener.settimeout(0)
        self.port: int = self._listener.getsockname()[1]
        self._epoll = select.epoll()
        self._epoll.register(self._listener, select.EPOLLIN)
        self._epoll.register(sys.stdin, select.EPOLLIN)
        self._open: dict[int, Connection] = {}
        self._held: set[Connection] = set()
        self._fast: dict[Connection, None] = {}
        self._due: list[tuple[int, int, Connection]] = []
        self._streams = 0

    def serve(self, limit_s: int) -> None:
        """Until standard input ends, or for so long."""
        end = _now_ns() + limit_s * _NS
        while (now := _now_ns()) < end:
            for fd, events in self._epoll.poll(self._patience_s(now)):
                if fd == sys.stdin.fileno():
                    return
                self._look(fd, events)
            now = _now_ns()
            while self._due and self._due[0][0] <= now:
                due, number, connection = heapq.heappop(self._due)
                self._step(connection)
                if connection.left and connection.fd in self._open:
                    heapq.heappush(self._due, (due + connection.gap_ns, number, connection))
            for connection in tuple(self._fast):
                self._step(connection)

    def _patience_s(self, now: int) -> float:
        if self._fast:
            return 0
        if not self._due:
            return _IDLE_S
        return min(max(self._due[0][0] - now, 0) / _NS, _IDLE_S)

    def _look(self, fd: int, events: int) -> None:
        if fd == self._listener.fileno():
            self._accept()
            return
        connection = self._open.get(fd)
        if connection is None:
            return
        if events & ~select.EPOLLOUT:
            self._read(connection)
        elif connection.unsent:
            unsent, connection.unsent = connection.unsent, b""
            self._send(connection, unsent)
            if not connection.unsent:
                self._epoll.modify(fd, select.EPOLLIN)
                if connection.left and not connection.gap_ns:
                    self._fast[connection] = None

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            sock.settimeout(0)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(self, sock)
            self._open[connection.fd] = connection
            self._epoll.register(connection.fd, select.EPOLLIN)

    def _read(self, connection: Connection) -> None:
        try:
            data = connection.sock.recv(_READ_BYTES)
        except OSError:
            data = b""
        if data:
            connection.parser.feed_data(data)
        else:
            self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        if self._open.pop(connection.fd, None) is not None:
            self._fast.pop(connection, None)
            self._held.discard(connection)
            connection.left = 0
            connection.sock.close()

    # What is asked for.

    def begin(self, connection: Connection, plan: Plan) -> None:
        """Answer."""
        if not plan.deltas:
            self._send(connection, ANSWER)
            return
        connection.left, connection.hold = plan.deltas, plan.hold
        connection.cut = plan.cut
        if plan.cut is not Cut.NONE:
            connection.left += 1  # a step of its own, so that all deltas have left before
        connection.gap_ns = int(_NS / plan.rate) if plan.rate else 0
        self._send(connection, HEAD + first(_now_ns()))
        if connection.gap_ns:
            self._streams += 1
            phase = self._streams * _GOLDEN % 1
            due = _now_ns() + int(connection.gap_ns * (0.5 + phase))
            heapq.heappush(self._due, (due, self._streams, connection))
        elif not connection.unsent:
            self._fast[connection] = None

    def release(self, connection: Connection) -> None:
        """End all streams that are held, and answer."""
        held, self._held = self._held, set()
        for each in held:
            self._send(each, LAST)
        self._send(connection, ANSWER)

    def _step(self, connection: Connection) -> None:
        if not connection.left:
            self._fast.pop(connection, None)
            return
        connection.left -= 1
        if not connection.left and connection.cut is not Cut.NONE:
            self._break_off(connection)
            return
        self._send(connection, delta(_now_ns()))
        if not connection.left:
            self._fast.pop(connection, None)
            if connection.hold:
                self._held.add(connection)
            else:
                self._send(connection, LAST)

    def _break_off(self, connection: Connection) -> None:
        if connection.cut is Cut.RESET:
            linger = struct.pack("ii", 1, 0)  # on, for no time: closing resets
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._drop(connection)

    def _send(self, connection: Connection, data: bytes) -> None:
        if connection.unsent:
            connection.unsent += data
            return
        try:
            sent = connection.sock.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._drop(connection)
            return
        if sent < len(data):
            connection.unsent = data[sent:]
            self._fast.pop(connection, None)
            self._epoll.modify(connection.fd, select.EPOLLIN | select.EPOLLOUT)


def release_all(port: int) -> None:
    """Have the provider at `port` end the streams that it holds."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
        sock.sendall(request(port, RELEASE, stream=False))
        sock.recv(_READ_BYTES)


def main() -> None:
    """Run the program."""
    provider = Provider()
    print(provider.port, flush=True)
    gc.collect()
    gc.freeze()
    gc.disable()
    provider.serve(int(sys.argv[1]) if len(sys.argv) > 1 else LIMIT_S)


if __name__ == "__main__":
    main()
