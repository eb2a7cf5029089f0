"""An S3 server on loopback, a relay before it that can be cut, and tapes to ship."""

import contextlib
import http.client
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from moto.server import ThreadedMotoServer

from deltatape.clock import SystemClock
from deltatape.model.exchange import EndReason
from deltatape.store.names import ulid
from deltatape.tape.encode import header_line
from deltatape.tape.record import Header
from deltatape.tape.tap import ExchangeTap, TapeTap
from helpers.tapes import HEADER, start, taped

BUCKET = "tapes"
URL = f"s3://{BUCKET}/of/ours"
DAY = "dt=2026-11-21"
_BLOCK = 1 << 16


def got(url: str) -> bytes:
    """Return what a server on loopback answers."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc)
    with contextlib.closing(connection):
        connection.request("GET", parts.path)
        return connection.getresponse().read()


class S3Server:
    """moto's server: the protocol of S3, its objects in memory."""

    def __init__(self, port: int) -> None:
        self.port = port

    def request(self, method: str, path: str, body: bytes = b"") -> int:
        """Send a request as it is, unsigned; return the status."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        with contextlib.closing(connection):
            connection.request(method, path, body)
            return connection.getresponse().status

    def reset(self) -> None:
        """Forget everything, accept every key, and have an empty bucket."""
        assert self.request("POST", "/moto-api/reset") == 200
        assert self.request("POST", "/moto-api/reset-auth", b"Infinity") == 200
        assert self.request("PUT", f"/{BUCKET}") == 200

    def check_keys(self) -> None:
        """Accept no key from now on: nobody was given one."""
        assert self.request("POST", "/moto-api/reset-auth", b"0") == 200

    def unfinished_uploads(self) -> int:
        """Count uploads in parts that were neither completed nor aborted."""
        from moto.s3.models import s3_backends  # noqa: PLC0415 - with the server alone

        return sum(
            len(bucket.multiparts)
            for account in s3_backends.values()
            for backend in account.values()
            for bucket in backend.buckets.values()
        )


@contextlib.contextmanager
def s3_server() -> Iterator[S3Server]:
    """Start a server; see `S3Server`."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        yield S3Server(server.get_host_and_port()[1])
    finally:
        server.stop()


def use(port: int, patch: pytest.MonkeyPatch) -> None:
    """Set the usual variables, for a server at a port of loopback."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        patch.delenv(name)
    patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    patch.setenv("AWS_ACCESS_KEY_ID", "shipper")
    patch.setenv("AWS_SECRET_ACCESS_KEY", "not-a-secret")
    patch.setenv("AWS_REGION", "us-east-1")


class Relay:
    """Stands between a client and a server on loopback, and can be cut.

    Attributes:
        port: where clients connect.
        sent: how many bytes clients have sent.
        came: set once a client has sent something.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self._due: tuple[int, Callable[[], object]] | None = None
        self.port = 0
        self.sent = 0
        self.came = threading.Event()
        self._hangs = False
        self.restore()

    def after(self, sent: int, action: Callable[[], object]) -> None:
        """Do something once, when clients have sent so many bytes more; those do not arrive."""
        with self._lock:
            self._due = self.sent + sent, action

    def hang(self) -> None:
        """Accept what clients send from now on, and never answer."""
        self._hangs = True

    def cut(self) -> None:
        """Drop all connections, and refuse new ones."""
        with self._lock:
            listener, self._listener = self._listener, None
            dropped, self._open = self._open, set()
        for each in (*([listener] if listener else []), *dropped):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def restore(self) -> None:
        """Accept connections again, at the same port."""
        listener = socket.create_server(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                with self._lock:
                    self._open |= {client, server}
                for source, sink, counts in ((client, server, True), (server, client, False)):
                    threading.Thread(
                        target=self._pass, args=(source, sink, counts), daemon=True
                    ).start()

    def _pass(self, source: socket.socket, sink: socket.socket, counts: bool) -> None:  # noqa: FBT001
        with contextlib.suppress(OSError):
            while data := source.recv(_BLOCK):
                if counts:
                    self._count(len(data))
                if not self._hangs:
                    sink.sendall(data)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        with self._lock:
            self._open -= {source, sink}

    def _count(self, size: int) -> None:
        self.came.set()
        with self._lock:
            self.sent += size
            due = self._due
            if due is None or self.sent < due[0]:
                return
            self._due = None
        due[1]()


@contextlib.contextmanager
def relay(target: int) -> Iterator[Relay]:
    """Relay to a server; see `Relay`."""
    between = Relay(target)
    try:
        yield between
    finally:
        between.cut()


def tape(size: int = 0, *, id: str = "", stop: bool = True) -> tuple[str, bytes]:  # noqa: A002
    """Return the id and the bytes of a tape with one exchange, whose response has `size` bytes."""
    header = Header(
        id=id or ulid(SystemClock()),
        tool=HEADER.tool,
        recorded_at=HEADER.recorded_at,
        source=HEADER.source,
    )
    step = 1 << 20

    def feed(tap: ExchangeTap) -> None:
        start(tap)
        for at in range(0, size, step):
            tap.read(60 + at, b"x" * min(step, size - at), None)
        tap.end(100 + size, EndReason.COMPLETE)

    lines = taped(feed)
    if stop:
        TapeTap(lines.put).stop(200 + size, "child-exit", 0)
    return header.id, header_line(header) + b"".join(lines.all)


def put_tape(folder: Path, name: str, size: int = 0) -> tuple[str, bytes]:
    """Write a tape into a folder; return its id and its bytes."""
    number, content = tape(size)
    (folder / f"{name}.tape").write_bytes(content)
    return number, content
