"""A listening `ServerConnection` with a scripted handler behind it, for raw clients."""

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

from deltatape.http1.head import Fields, ParsedRequestHead
from deltatape.http1.listener import Address, Listener
from deltatape.http1.server import ServerConnection
from helpers.upstream import Peer, connect, ok_response

CHUNKED = b"POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
"""The head of a request for /c; chunks follow."""
REFUSED = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nrefused"
"""The answer to bytes that are not a request."""


class Service:
    """A `Handler` of one request: keeps what it gets, and runs the script at each step."""

    def __init__(self, connection: ServerConnection, script: "Script") -> None:
        self.connection = connection
        self._script = script
        self.head: ParsedRequestHead | None = None
        self.body = b""
        self.pieces = 0
        self.trailers: Fields = ()
        self.complete = False
        self.writable: list[bool] = []
        self.lost: list[bool] = []

    def on_request(self, head: ParsedRequestHead) -> None:
        self.head = head
        self._script(self, "head")

    def on_body(self, data: bytes) -> None:
        self.body += data
        self.pieces += 1
        self._script(self, "body")

    def on_request_end(self, trailers: Fields) -> None:
        self.trailers = trailers
        self.complete = True
        self._script(self, "end")

    def on_writable(self, *, writable: bool) -> None:
        self.writable.append(writable)

    def on_client_lost(self, *, was_reset: bool) -> None:
        self.lost.append(was_reset)

    @property
    def target(self) -> bytes:
        """What was asked for."""
        assert self.head is not None
        return self.head.target

    def answer(self, body: bytes, *, keep_alive: bool = True) -> None:
        """A whole response."""
        self.connection.write(ok_response(body))
        self.connection.finish(keep_alive=keep_alive)


Script: TypeAlias = Callable[[Service, str], None]


class Serving:
    """A running server, which is a `ServerOwner`."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.listener = Listener()
        self.services: list[Service] = []
        self.connections: list[ServerConnection] = []
        self.closed_count = 0
        self.problems: list[str] = []

    def handler(self, connection: ServerConnection) -> Service:
        self.services.append(Service(connection, self._script))
        return self.services[-1]

    def opened(self, connection: ServerConnection) -> None:
        self.connections.append(connection)
        self.listener.opened(connection)

    def closed(self, connection: ServerConnection) -> None:
        self.closed_count += 1
        self.listener.closed(connection)

    def refused_bytes(self, problem: str) -> bytes:
        self.problems.append(problem)
        return REFUSED

    async def client(self) -> Peer:
        """A raw connection to it."""
        return await connect(self.listener.port)


@contextlib.asynccontextmanager
async def serving(
    script: Script,
    at: Address = Address("127.0.0.1"),  # noqa: B008 - a value
) -> AsyncIterator[Serving]:
    """A server, by default on a free port, that runs `script` for each step of each request."""
    running = Serving(script)
    await running.listener.open(at, lambda: ServerConnection(running))
    try:
        yield running
    finally:
        running.listener.close()
        for connection in running.connections:
            if connection.transport is not None:
                connection.transport.abort()


def echo(service: Service, step: str) -> None:
    """Answers a whole request with its own target and body."""
    if step == "end":
        service.answer(service.target + b"=" + service.body)


def silent(_service: Service, _step: str) -> None:
    """Never answers."""
