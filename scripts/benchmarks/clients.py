"""The clients of the benchmark, a program: connections that ask for answers and check them whole.

Strategy: as the provider, one thread over epoll. An answer counts only if its status is 200, its
body has the length that the provider sent, and it holds every delta, in order; else it is short.

Prints one line of JSON. Before that, it waits for a line in two cases, after it has printed one:
where streams are to be held open, once all of them have their delta, before the provider ends them;
and where connections are to be warm, once all of them have had an answer, before they ask again.
"""

import argparse
import array
import contextlib
import gc
import json
import select
import socket
import sys
from collections.abc import Sequence

import httptools

from benchmarks.provider import release_all
from benchmarks.traffic import MARK, STAMP_BYTES, Plan, body_bytes, messages, request
from deltatape.clock import SystemClock

LIMIT_S = 30.0
_READ_BYTES = 65536
AT_ONCE = 50
"""How many connections are opened before their answers are looked at."""
_NS = 1_000_000_000
_OK = 200

_now_ns = SystemClock.now_ns


class Connection:
    """One connection to the proxy; what httptools calls."""

    def __init__(self, load: "Load") -> None:
        self.sock = socket.socket()
        self.sock.settimeout(0)  # a connection that takes long must not hold up what others read
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.fd = self.sock.fileno()
        self.seen = 0
        self.plan = load.plan
        self.wire = load.wire
        self.unsent = memoryview(b"")
        self.events = select.EPOLLOUT
        """What the load waits for."""
        self.opened_ns = 0
        """When it began to connect; 0 once it has read something."""
        self.warm = False
        """Whether it has had the answer that is not measured, and waits."""
        self._load = load
        self._size = 0
        self._last = 0
        self._tail = b""
        self._in_order = True
        self._started_ns = 0
        self._now_ns = 0
        self._parser = httptools.HttpResponseParser(self)

    def start(self) -> None:
        """Begin a request, which the load sends."""
        self.seen = self._size = self._last = 0
        self._tail = b""
        self._in_order = True
        self._parser = httptools.HttpResponseParser(self)
        self._started_ns = _now_ns()
        self.unsent = memoryview(self.wire)

    def feed(self, data: bytes, now_ns: int) -> None:
        """What was read."""
        self._now_ns = now_ns
        if self.opened_ns:
            self._load.first_ns = max(self._load.first_ns, now_ns - self.opened_ns)
            self.opened_ns = 0
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        """See httptools."""
        self._size += len(body)
        text = self._tail + body if self._tail else body
        at = 0
        while (found := text.find(MARK, at)) >= 0 and found + STAMP_BYTES <= len(text):
            at = found + STAMP_BYTES
            stamp = int(text[found + len(MARK) : at])
            self._in_order = self._in_order and stamp >= self._last
            self._last = stamp
            self.seen += 1
            self._load.times.append(self._now_ns - stamp)
        self._tail = text[found if found >= 0 else max(at, len(text) - 1) :]

    def on_message_complete(self) -> None:
        """See httptools."""
        plan = self.plan
        whole = self.seen == plan.deltas and self._size == body_bytes(plan) and self._in_order
        if not plan.deltas:
            self._load.times.append(self._now_ns - self._started_ns)
        self._load.answered(
            self, ok=self._parser.get_status_code() == _OK, whole=whole, size=self._size
        )


class Load:
    """See the module."""

    def __init__(
        self, port: int, provider: int, plan: Plan, seconds: float, *, warm: bool = False
    ) -> None:
        self.port = port
        self.plan = plan
        self.wire = request(
            port, plan.encode(), stream=bool(plan.deltas), messages=messages(plan.upload)
        )
        self.times = array.array("q")
        self.first_ns = 0
        """The longest time from a connection's beginning to its first byte."""
        self._provider = provider
        self._seconds = seconds
        self._epoll = select.epoll()
        self._open: dict[int, Connection] = {}
        self._began = self._deadline = 0
        self._warming = warm
        self._unmeasured = 0
        self._done = self._errors = self._short = self._bytes = 0

    def run(self, connections: int, at_once: int = AT_ONCE) -> dict[str, object]:
        """All of it; what came out."""
        self._begin()
        announced = not self.plan.hold and not self._warming
        left = connections
        while (left or self._open) and _now_ns() < self._deadline + int(LIMIT_S * _NS):
            opened = min(left, at_once)
            left -= opened
            for _ in range(opened):
                self.connect(Connection(self))
            self._look(0 if left else 0.1)
            if not announced and not left and self._is_open():
                announced = True
                self._wait_and_go_on()
        self._errors += len(self._open) + left
        return self._told(_now_ns() - self._began)

    def _begin(self) -> None:
        self._began = _now_ns()
        self._deadline = self._began + int(self._seconds * _NS)

    def _is_open(self) -> bool:
        return all(each.seen if self.plan.hold else each.warm for each in self._open.values())

    def connect(self, connection: Connection) -> None:
        """Open a connection, which asks as soon as it can."""
        self._open[connection.fd] = connection
        connection.opened_ns = _now_ns()
        with contextlib.suppress(BlockingIOError):
            connection.sock.connect(("127.0.0.1", self.port))
        self._epoll.register(connection.fd, select.EPOLLOUT)

    def _look(self, patience_s: float) -> None:
        for fd, events in self._epoll.poll(patience_s):
            connection = self._open.get(fd)
            if connection is None:
                continue
            if events & ~select.EPOLLOUT and connection.events & select.EPOLLIN:
                self._read(connection)
            elif connection.unsent:
                self._send(connection)
            else:  # it is connected, or will never be
                self._start(connection)

    def _start(self, connection: Connection) -> None:
        connection.start()
        self._send(connection)

    def _send(self, connection: Connection) -> None:
        try:
            sent = connection.sock.send(connection.unsent)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self.lost(connection, error)
            return
        connection.unsent = connection.unsent[sent:]
        events = select.EPOLLIN | (select.EPOLLOUT if connection.unsent else 0)
        if events != connection.events:
            connection.events = events
            self._epoll.modify(connection.fd, events)

    def _read(self, connection: Connection) -> None:
        problem = None
        try:
            data = connection.sock.recv(_READ_BYTES)
            if data:
                connection.feed(data, _now_ns())
                return
        except (OSError, httptools.HttpParserError) as error:
            problem = error
        self.lost(connection, problem)

    def lost(self, connection: Connection, problem: Exception | None) -> None:  # noqa: ARG002
        """A connection failed, or was closed; then there is no `problem`."""
        self._errors += 1
        self._close(connection)

    def _wait_and_go_on(self) -> None:
        print("open", flush=True)
        sys.stdin.readline()
        if self.plan.hold:
            release_all(self._provider)
            return
        self._warming = False
        self._unmeasured = self._done
        del self.times[:]
        self._begin()
        for connection in tuple(self._open.values()):
            self._start(connection)

    def answered(self, connection: Connection, *, ok: bool, whole: bool, size: int) -> None:
        """An answer is complete."""
        self._done += 1
        self._bytes += size
        self._errors += not ok
        self._short += ok and not whole
        if self._warming:
            connection.warm = True
        elif _now_ns() < self._deadline:
            self._start(connection)
        else:
            self._close(connection)

    def _close(self, connection: Connection) -> None:
        if self._open.pop(connection.fd, None) is not None:
            with contextlib.suppress(OSError):
                self._epoll.unregister(connection.fd)
            connection.sock.close()

    def _told(self, took_ns: int) -> dict[str, object]:
        times = sorted(self.times)
        return {
            "seconds": took_ns / _NS,
            "done": self._done,
            "unmeasured": self._unmeasured,
            "errors": self._errors,
            "short": self._short,
            "bytes": self._bytes,
            "first_us": self.first_ns / 1000,
            "p50_us": percentile_us(times, 0.5),
            "p99_us": percentile_us(times, 0.99),
        }


def percentile_us(ascending: Sequence[int], share: float) -> float:
    """A percentile of nanoseconds in microseconds; 0 of nothing."""
    if not ascending:
        return 0.0
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))] / 1000


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="clients")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--provider", type=int, required=True)
    parser.add_argument("--connections", type=int, required=True)
    parser.add_argument("--deltas", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--hold", action="store_true")
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--upload", type=int, required=True)
    parser.add_argument("--at-once", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    plan = Plan(deltas=options.deltas, rate=options.rate, hold=options.hold, upload=options.upload)
    load = Load(options.port, options.provider, plan, options.seconds, warm=options.warm)
    gc.collect()
    gc.freeze()
    gc.disable()
    print(json.dumps(load.run(options.connections, options.at_once)), flush=True)


if __name__ == "__main__":
    main()
