"""A dialler in the test's own loop, and what can be reached with it."""

import asyncio
from pathlib import Path

from deltatape.clock import SystemClock
from deltatape.gateway.dial import ConnectionFailedError, Connector, OpenConnection
from deltatape.gateway.outbound import outbound_from
from deltatape.gateway.routes import Origin
from deltatape.http1.body import BodyScan
from deltatape.http1.client import ConnectionLost
from deltatape.http1.head import Fields, ParsedResponseHead
from helpers.upstream import Peer


async def hello(peer: Peer) -> None:
    """Answer one request."""
    await peer.request()
    await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    await peer.rest()


def dialler(ca: Path | None = None, **environment: str) -> Connector:
    """One for this environment."""
    return Connector(outbound_from(environment, ca=ca), SystemClock())


async def try_dial(how: Connector, origin: Origin) -> OpenConnection | ConnectionFailedError:
    """What comes of it; a connection is dropped."""
    try:
        dialled = await how.dial(origin)
    except ConnectionFailedError as error:
        return error
    dialled.connection.abort()
    return dialled


async def failure(how: Connector, origin: Origin) -> ConnectionFailedError:
    """The error that must come of it."""
    outcome = await try_dial(how, origin)
    assert isinstance(outcome, ConnectionFailedError)
    return outcome


class Answer:
    """A handler that keeps a response's body; see `http1.client.ResponseHandler`."""

    def __init__(self) -> None:
        self.body = b""
        self.over: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def on_informational(self, head: ParsedResponseHead) -> None:
        raise AssertionError(head)

    def on_response(self, head: ParsedResponseHead) -> None:
        assert head.status == 200

    def on_response_data(self, raw: bytes, scan: BodyScan) -> None:
        assert raw == scan.data
        self.body += scan.data

    def on_response_note(self, text: str) -> None:
        raise AssertionError(text)

    def on_response_debris(self, raw: bytes) -> None:
        raise AssertionError(raw)

    def on_response_end(self, trailers: Fields) -> None:
        assert not trailers
        self.over.set_result("complete")

    def on_upstream_lost(self, how: ConnectionLost, detail: str) -> None:
        self.over.set_result(f"{how.value} {detail}")

    def on_upstream_writable(self, *, writable: bool) -> None:
        raise AssertionError(writable)


async def get(how: Connector, origin: Origin) -> bytes:
    """The body of one response."""
    dialled = await how.dial(origin)
    answer = Answer()
    dialled.connection.start(answer, "GET")
    dialled.connection.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert await asyncio.wait_for(answer.over, 10) == "complete"
    assert dialled.connect_ns > 0
    assert (dialled.tls_ns > 0) == (origin.scheme == "https")
    dialled.connection.abort()
    return answer.body


async def speak_http(peer: Peer) -> None:
    """Not TLS."""
    await peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    await peer.rest()


async def hang_up(peer: Peer) -> None:
    """End at once."""
    peer.close()


async def say_nothing(peer: Peer) -> None:
    """Wait for what never comes."""
    await peer.rest()
