"""One upstream connection: what a handler gets of each kind of response."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from deltatape.http1.body import BodyScan
from deltatape.http1.client import ConnectionLost, UpstreamConnection
from deltatape.http1.event_loop import OTHERS_AT_ONCE
from deltatape.http1.head import Fields, ParsedResponseHead
from deltatape.model.exchange import INVALID_HEAD
from helpers.upstream import SSE_HEAD, Peer, Script, chunk, eventually, provider, run

LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
CLOSE = b"HTTP/1.1 200 OK\r\n\r\n"
WHOLE = SSE_HEAD + chunk(b"he") + chunk(b"llo") + b"0\r\nX-T: 1\r\n\r\n"


@dataclass
class ResponseLog:
    """Keeps what a handler gets of one response; see `ResponseHandler`."""

    heads: list[int] = field(default_factory=list)
    raw: bytes = b""
    data: bytes = b""
    debris: bytes = b""
    ends: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    trailers: Fields | None = None
    lost: ConnectionLost | None = None
    detail: str = ""
    writable: list[bool] = field(default_factory=list)

    def on_informational(self, head: ParsedResponseHead) -> None:
        assert head.informational
        self.heads.append(head.status)

    def on_response(self, head: ParsedResponseHead) -> None:
        self.heads.append(head.status)

    def on_response_data(self, raw: bytes, scan: BodyScan) -> None:
        self.ends += [len(self.data) + end for end in scan.ends or ()]
        self.raw += raw
        self.data += scan.data

    def on_response_note(self, text: str) -> None:
        self.notes.append(text)

    def on_response_debris(self, raw: bytes) -> None:
        self.debris += raw

    def on_response_end(self, trailers: Fields) -> None:
        assert not self.over
        self.trailers = trailers

    def on_upstream_lost(self, how: ConnectionLost, detail: str) -> None:
        assert not self.over
        self.lost, self.detail = how, detail

    def on_upstream_writable(self, *, writable: bool) -> None:
        self.writable.append(writable)

    @property
    def over(self) -> bool:
        return self.trailers is not None or self.lost is not None


@contextlib.asynccontextmanager
async def connected(script: Script) -> AsyncIterator[UpstreamConnection]:
    """A connection to a provider that runs `script`."""
    async with provider(script) as port:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(UpstreamConnection, "127.0.0.1", port)
        try:
            yield connection
        finally:
            connection.abort()


async def ask(connection: UpstreamConnection, method: str = "POST") -> ResponseLog:
    """Send one request; return its response once that is over."""
    log = ResponseLog()
    connection.start(log, method)
    connection.write(f"{method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n".encode())
    await eventually(lambda: log.over, "the end of the response")
    return log


def answer(
    data: bytes, method: str = "POST", end: str = "", step: int = 0
) -> tuple[ResponseLog, bool]:
    """What is told of `data`, sent in pieces of `step`, and whether the connection is reusable.

    `end` is `fin` or `rst`, sent after it; "" to keep the connection open.
    """

    async def script(peer: Peer) -> None:
        await peer.request()
        for at in range(0, len(data), step or len(data) or 1):
            await peer.send(data[at : at + (step or len(data))])
            await asyncio.sleep(0)
        await asyncio.sleep(0.02)
        if end:
            peer.close() if end == "fin" else peer.reset()
        else:
            await peer.rest()

    async def scenario() -> tuple[ResponseLog, bool]:
        async with connected(script) as connection:
            return await ask(connection, method), connection.reusable

    return run(scenario())


@pytest.mark.parametrize("step", [0, 1, 3, 50])
def test_a_chunked_response_is_the_same_however_it_is_cut(step: int) -> None:
    log, reusable = answer(WHOLE, step=step)
    assert log.heads == [200]
    assert SSE_HEAD + log.raw == WHOLE
    assert log.data == b"hello"
    assert log.ends == [2, 5]
    assert log.trailers == ((b"X-T", b"1"),)
    assert reusable


@pytest.mark.parametrize("step", [0, 1])
def test_informational_heads_come_before_the_final_one(step: int) -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
    log, _ = answer(early + LENGTH + b"hello", step=step)
    assert log.heads == [103, 100, 200]
    assert log.data == b"hello"


@pytest.mark.parametrize(
    ("method", "head"),
    [
        ("HEAD", LENGTH),
        ("HEAD", SSE_HEAD),
        ("POST", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("POST", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
        ("POST", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ],
)
def test_a_response_without_body_ends_with_its_head(method: str, head: bytes) -> None:
    log, reusable = answer(head, method)
    assert (log.trailers, log.raw, log.data) == ((), b"", b"")
    assert reusable


def test_a_body_that_the_close_ends_is_whole_then() -> None:
    log, reusable = answer(CLOSE + b"hello", end="fin")
    assert (log.data, log.trailers, log.lost) == (b"hello", (), None)
    assert not reusable


@pytest.mark.parametrize(
    ("data", "end", "how"),
    [
        (SSE_HEAD + chunk(b"he"), "fin", ConnectionLost.CLOSED),
        (LENGTH + b"he", "fin", ConnectionLost.CLOSED),
        (SSE_HEAD + chunk(b"he"), "rst", ConnectionLost.RESET),
        (LENGTH + b"he", "rst", ConnectionLost.RESET),
        (CLOSE + b"he", "rst", ConnectionLost.RESET),
    ],
)
def test_a_body_that_is_cut_is_lost(data: bytes, end: str, how: ConnectionLost) -> None:
    log, reusable = answer(data, end=end)
    assert (log.heads, log.data, log.lost) == ([200], b"he", how)
    assert bool(log.detail) == (how is ConnectionLost.RESET)
    assert not reusable


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 200", b"HTTP/1.1 100 Continue\r\n\r\nHTTP"])
def test_a_head_that_is_cut_is_lost(data: bytes) -> None:
    log, _ = answer(data, end="fin")
    assert (log.lost, log.detail) == (ConnectionLost.CLOSED, "")
    assert log.debris == data.rpartition(b"\r\n\r\n")[2]
    assert len(log.notes) == bool(log.debris)


@pytest.mark.parametrize(
    "head",
    [
        b"SSH-2.0-hello\r\n\r\n",
        b"HTTP/1.1 200 OK\ncontent-type: text/event-stream\n\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.2 200 OK\r\n\r\n",
        b"ICY 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\x01c\x00\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
    ],
)
@pytest.mark.parametrize("step", [0, 1, 7])
@pytest.mark.parametrize("end", ["fin", "rst"])
def test_an_invalid_head_and_all_after_it_are_handed_on_until_the_end(
    head: bytes, step: int, end: str
) -> None:
    data = head + b"data: late\n\ndata: later\n\n"
    log, reusable = answer(data, end=end, step=step)
    assert log.debris == data
    assert len(log.notes) == 1
    assert log.notes[0].startswith(INVALID_HEAD)
    assert log.notes[0].endswith("; bytes go on as they came")
    assert log.heads == []
    if end == "fin":
        assert log.lost is ConnectionLost.CLOSED
        assert log.detail.startswith(INVALID_HEAD)
    else:
        assert log.lost is ConnectionLost.RESET
    assert not reusable


def test_broken_framing_goes_on_raw_until_the_end_and_is_no_whole_response() -> None:
    log, _ = answer(SSE_HEAD + chunk(b"he") + b"zz\r\nraw", end="fin")
    assert log.data.endswith(b"zz\r\nraw")
    assert len(log.notes) == 1
    assert "not a chunk size" in log.notes[0]
    assert log.lost is ConnectionLost.CLOSED


@pytest.mark.parametrize("rest", [b"more", LENGTH])
def test_bytes_after_the_end_are_noted_and_spoil_the_connection(rest: bytes) -> None:
    log, reusable = answer(LENGTH + b"hello" + rest)
    assert log.raw == b"hello"
    assert log.notes == [f"{len(rest)} bytes after the response's end"]
    assert log.trailers == ()
    assert not reusable


def test_a_connection_serves_again_unless_it_said_otherwise() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(LENGTH + b"first")
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 6\r\n\r\nsecond")
        await peer.rest()

    async def scenario() -> None:
        async with connected(script) as connection:
            assert not connection.reusable  # nothing was asked yet
            assert (await ask(connection)).data == b"first"
            assert connection.reusable
            assert (await ask(connection)).data == b"second"
            assert not connection.reusable

    run(scenario())


def test_an_answer_nobody_asked_for_ends_the_connection() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(LENGTH + b"hello")
        await asyncio.sleep(0.05)
        await peer.send(LENGTH + b"again")
        await peer.rest()

    async def scenario() -> None:
        async with connected(script) as connection:
            await ask(connection)
            assert connection.reusable
            await eventually(lambda: not connection.reusable, "the end")

    run(scenario())


def test_an_upstream_that_lags_is_told_of() -> None:
    async def script(peer: Peer) -> None:
        await asyncio.sleep(0.1)
        await peer.reader.readexactly(8_000_000)
        await peer.send(LENGTH + b"hello")
        await peer.rest()

    async def scenario() -> None:
        async with connected(script) as connection:
            log = ResponseLog()
            connection.start(log, "POST")
            connection.write(b"x" * 8_000_000)
            assert log.writable == [False]
            await eventually(lambda: log.over, "the response")
            assert log.writable == [False, True]

    run(scenario())


def test_a_lagging_upstream_without_a_handler_troubles_nobody() -> None:
    async def script(peer: Peer) -> None:
        await peer.reader.readexactly(8_000_000)
        await peer.send(b"done")

    async def scenario() -> None:
        async with connected(script) as connection:
            connection.write(b"x" * 8_000_000)
            await eventually(lambda: connection._transport is None, "the end")
            connection.write(b"x")
            connection.pause()
            connection.resume()
            connection.abort()

    run(scenario())


def test_a_paused_connection_reads_nothing() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(LENGTH + b"he")
        await asyncio.sleep(0.05)
        await peer.send(b"llo")
        await peer.rest()

    async def scenario() -> None:
        async with connected(script) as connection:
            log = ResponseLog()
            connection.start(log, "GET")
            connection.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await eventually(lambda: log.data == b"he", "the first read")
            connection.pause()
            await asyncio.sleep(0.15)
            assert log.data == b"he"
            connection.resume()
            await eventually(lambda: log.over, "the rest")

    run(scenario())


def test_a_handler_that_ends_a_connection_hears_no_more_of_it() -> None:
    class Leaving(ResponseLog):
        def on_response(self, head: ParsedResponseHead) -> None:
            super().on_response(head)
            connections[0].abort()

    connections: list[UpstreamConnection] = []

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(LENGTH + b"hello")
        await peer.rest()

    async def scenario() -> None:
        async with connected(script) as connection:
            connections.append(connection)
            log = Leaving()
            connection.start(log, "GET")
            connection.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await eventually(lambda: connection._transport is None, "the end")
            assert (log.heads, log.data, log.over) == ([200], b"", False)

    run(scenario())


def test_a_stream_goes_on_among_more_events_than_a_turn_takes() -> None:
    async def endless(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD)
        for _ in range(100):
            await peer.send(chunk(b"x"))
            await asyncio.sleep(0)
        await peer.send(b"0\r\n\r\n")
        await peer.rest()

    async def scenario() -> ResponseLog:
        loop = asyncio.get_running_loop()
        with contextlib.ExitStack() as stack:
            for _ in range(5 * OTHERS_AT_ONCE):  # that are told in every turn
                near, far = map(stack.enter_context, socket.socketpair())
                far.send(b"x")
                loop.add_reader(near, lambda: None)
                stack.callback(loop.remove_reader, near)
            async with connected(endless) as connection:
                return await ask(connection)

    log = run(scenario())
    assert log.data == b"x" * 100
    assert log.trailers == ()


def test_an_error_of_a_handler_ends_its_own_connection_only() -> None:
    class Failing(ResponseLog):
        def on_response_data(self, raw: bytes, scan: BodyScan) -> None:  # noqa: ARG002 - not used
            raise ZeroDivisionError

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD)
        await asyncio.sleep(0.01)
        await peer.send(chunk(b"x"))
        await peer.rest()

    async def scenario() -> tuple[ResponseLog, list[dict[str, object]]]:
        told: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        log = Failing()
        async with connected(script) as connection:
            connection.start(log, "POST")
            connection.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
            await eventually(lambda: log.over, "the end of the response")
            assert not connection.reusable
        return log, told

    log, told = run(scenario())
    assert log.lost is not None
    assert [type(each["exception"]) for each in told] == [ZeroDivisionError]


def test_a_reset_after_data_is_told_as_one() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(b"one"))
        await asyncio.sleep(0.01)
        await peer.send(chunk(b"two"))
        peer.reset()

    async def scenario() -> ResponseLog:
        async with connected(script) as connection:
            return await ask(connection)

    log = run(scenario())
    assert log.data in (b"one", b"onetwo")
    assert log.lost is not None
    assert log.lost.value == "reset"
