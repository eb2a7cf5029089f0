"""Object stores on loopback, a relay before them that can be cut, and tapes to ship."""

import base64
import contextlib
import hashlib
import hmac
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from email.utils import formatdate
from pathlib import Path
from urllib.parse import urlsplit
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import pytest

from deltatape.clock import SystemClock
from deltatape.model.exchange import EndReason
from deltatape.store.names import ulid
from deltatape.tape.encode import header_line
from deltatape.tape.record import Header
from deltatape.tape.tap import ExchangeTap, TapeTap
from helpers.needed import skip_unless
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
    with _serving(_moto()) as port:
        yield S3Server(port)


def _moto() -> WSGIApplication:
    # It takes a second, which a process that only collects the tests must not spend.
    from moto.moto_server import werkzeug_app as moto  # noqa: PLC0415

    application: WSGIApplication = moto.DomainDispatcherApplication(moto.create_backend_app)
    return application


@contextlib.contextmanager
def _serving(application: WSGIApplication) -> Iterator[int]:
    """Serve on loopback, and yield the port."""
    from werkzeug.serving import WSGIRequestHandler, make_server  # noqa: PLC0415 - see _moto

    class Silent(WSGIRequestHandler):
        def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002
            pass

    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Silent)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def gs_server(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start a server of Google's XML API, which is that of S3 under other names, and use it.

    Its objects are moto's. obstore asks for nothing else; Google's own server is closed, and
    the emulators that install from a package registry have the JSON API.
    """
    backend = _moto()

    def application(asked: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        for name in [name for name in asked if name.startswith("HTTP_X_GOOG_")]:
            asked[name.replace("X_GOOG", "X_AMZ")] = asked.pop(name)
        # moto asks nobody for a key; but who has none gets only what is public.
        asked["HTTP_AUTHORIZATION"] = "AWS4-HMAC-SHA256 Credential=k/20261121/us-east-1/s3/x"

        def answer(status: str, headers: list[tuple[str, str]], *rest: object) -> object:
            renamed = [(k.lower().replace("x-amz-", "x-goog-"), v) for k, v in headers]
            return start(status, renamed, *rest)  # type: ignore[arg-type]

        return backend(asked, answer)  # type: ignore[arg-type]

    with _serving(application) as port:
        S3Server(port).reset()
        account = {"client_email": "", "private_key": "", "private_key_id": ""}
        key = folder / "account.json"
        key.write_text(json.dumps({**account, "disable_oauth": True}))
        _forget("GOOGLE_", patch)
        patch.setenv("GOOGLE_SERVICE_ACCOUNT", str(key))
        patch.setenv("GOOGLE_BASE_URL", f"http://127.0.0.1:{port}")
        yield


AZURITE = Path(__file__).parents[1] / "objects" / "node_modules" / "azurite"
_ACCOUNT, _ACCOUNT_KEY = "shipper", base64.b64encode(b"not-a-secret").decode()


@contextlib.contextmanager
def az_server(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start Azurite, Microsoft's server for developers, and use it; skips where it is missing."""
    node = shutil.which("node")
    skip_unless(node and AZURITE.is_dir(), "no Azurite; scripts/setup stores installs it")
    program = AZURITE / "dist" / "src" / "blob" / "main.js"
    options = ("--inMemoryPersistence", "--blobPort", "0", "--disableTelemetry")
    with subprocess.Popen(
        [str(node), str(program), *options, "--skipApiVersionCheck"],
        env={**os.environ, "AZURITE_ACCOUNTS": f"{_ACCOUNT}:{_ACCOUNT_KEY}"},
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            said = (re.search(r"listens on http://127\.0\.0\.1:(\d+)", x) for x in server.stdout)
            port = int(next(filter(None, said))[1])
            _make_container(port)
            _forget("AZURE_", patch)
            patch.setenv("AZURE_STORAGE_ACCOUNT_NAME", _ACCOUNT)
            patch.setenv("AZURE_STORAGE_ACCOUNT_KEY", _ACCOUNT_KEY)
            patch.setenv("AZURE_STORAGE_ENDPOINT", f"http://127.0.0.1:{port}/{_ACCOUNT}")
            yield
        finally:
            server.kill()


def _make_container(port: int) -> None:
    """Make what obstore cannot: it has no request for a container."""
    said = f"x-ms-date:{formatdate(usegmt=True)}\nx-ms-version:2021-08-06"
    signed = f"PUT{12 * chr(10)}{said}\n/{_ACCOUNT}/{_ACCOUNT}/{BUCKET}\nrestype:container"
    code = hmac.digest(base64.b64decode(_ACCOUNT_KEY), signed.encode(), hashlib.sha256)
    headers = dict(line.split(":", 1) for line in said.splitlines())
    headers["Authorization"] = f"SharedKey {_ACCOUNT}:{base64.b64encode(code).decode()}"
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("PUT", f"/{_ACCOUNT}/{BUCKET}?restype=container", headers=headers)
        assert connection.getresponse().status == 201


def _forget(prefix: str, patch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(prefix)]:
        patch.delenv(name)


def use(port: int, patch: pytest.MonkeyPatch) -> None:
    """Set the usual variables, for a server at a port of loopback."""
    _forget("AWS_", patch)
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
