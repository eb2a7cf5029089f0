"""One upstream connection: what a handler gets of each kind of response."""

import asyncio
import contextlib
import os
import socket
import ssl
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trustme

from deltatape.http1.body import BodyScan
from deltatape.http1.client import ConnectionLost, UpstreamConnection
from deltatape.http1.event_loop import OTHERS_AT_ONCE
from deltatape.http1.head import Fields, ParsedResponseHead
from deltatape.http1.tls import ReadableTLSContext
from deltatape.model.exchange import INVALID_HEAD
from helpers.corporate import server_context
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


# Over TLS: asyncio makes the handshake, writes and ends, and need not read the body.

AUTHORITY = trustme.CA()
SERVER = server_context(AUTHORITY, "127.0.0.1")
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


class WatchedConnection(UpstreamConnection):
    """Keeps what asyncio has read."""

    def __init__(self) -> None:
        super().__init__()
        self.by_asyncio = b""

    def data_received(self, data: bytes) -> None:
        self.by_asyncio += data
        super().data_received(data)


class EncryptedPeer:
    """The server's side of TLS, which sends records in pieces of any size."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self._received, self._sending = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = SERVER.wrap_bio(self._received, self._sending, server_side=True)

    async def shake_hands(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self.peer.send(self._sending.read())
                self._received.write(await self.peer.reader.read(65536))
            else:
                await self.peer.send(self._sending.read())
                return

    async def request(self) -> None:
        got = b""
        while not got.endswith(b"\r\n\r\n"):
            try:
                got += self._tls.read()
            except ssl.SSLWantReadError:
                self._received.write(await self.peer.reader.read(65536))

    def records(self, *pieces: bytes) -> bytes:
        """Each in one record."""
        for piece in pieces:
            self._tls.write(piece)
        return self._sending.read()

    def close_notify(self) -> bytes:
        with contextlib.suppress(ssl.SSLWantReadError):
            self._tls.unwrap()
        return self._sending.read()


def client_context(kind: type[ssl.SSLContext], version: ssl.TLSVersion) -> ssl.SSLContext:
    context = kind(ssl.PROTOCOL_TLS_CLIENT)
    AUTHORITY.configure_trust(context)
    context.minimum_version = context.maximum_version = version
    return context


@contextlib.asynccontextmanager
async def encrypted(
    port: int, version: ssl.TLSVersion, kind: type[ssl.SSLContext] = ReadableTLSContext
) -> AsyncIterator[WatchedConnection]:
    _, connection = await asyncio.get_running_loop().create_connection(
        WatchedConnection, "127.0.0.1", port, ssl=client_context(kind, version)
    )
    try:
        yield connection
    finally:
        connection.abort()


@dataclass(frozen=True)
class Sent:
    """What a server sends after the head, once that has been read, and how it ends."""

    records: tuple[bytes, ...] = ()
    step: int = 0
    """The length of the pieces; 0: in one."""
    close_notify: bool = False
    end: str = ""
    """`fin` or `rst`; "" keeps the connection open."""
    damaged: bool = False
    """Whether the last byte is another one."""


def answer_over_tls(
    head: bytes,
    sent: Sent,
    version: ssl.TLSVersion,
    kind: type[ssl.SSLContext] = ReadableTLSContext,
) -> tuple[ResponseLog, WatchedConnection]:
    log = ResponseLog()

    async def script(peer: Peer) -> None:
        server = EncryptedPeer(peer)
        await server.shake_hands()
        await server.request()
        await peer.send(server.records(head))
        await eventually(lambda: bool(log.heads), "the head")
        data = server.records(*sent.records)
        if sent.close_notify:
            data += server.close_notify()
        if sent.damaged:
            data = data[:-1] + bytes([data[-1] ^ 1])
        for at in range(0, len(data), sent.step or len(data)):
            await peer.send(data[at : at + (sent.step or len(data))])
            await asyncio.sleep(0)
        if sent.end == "fin":
            peer.close()
        elif sent.end == "rst":
            await eventually(lambda: log.data == b"he", "the data")  # RST would discard them
            peer.reset()
        else:
            await peer.rest()

    async def scenario() -> tuple[ResponseLog, WatchedConnection]:
        async with provider(script) as port, encrypted(port, version, kind) as connection:
            connection.start(log, "GET")
            connection.write(GET)
            await eventually(lambda: log.over, "the end of the response")
            whole = not (sent.close_notify or sent.end or sent.damaged)
            assert connection.reusable == whole
            return log, connection

    return run(scenario())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("step", [0, 1, 7, 100])
def test_a_body_over_tls_is_the_same_however_its_records_are_cut(
    version: ssl.TLSVersion, step: int
) -> None:
    body = (chunk(b"he"), chunk(b"llo"), b"0\r\nX-T: 1\r\n\r\n")
    log, connection = answer_over_tls(SSE_HEAD, Sent(body, step), version)
    assert log.raw == b"".join(body)
    assert log.data == b"hello"
    assert log.trailers == ((b"X-T", b"1"),)
    assert connection.by_asyncio == SSE_HEAD


@pytest.mark.parametrize("version", VERSIONS)
def test_long_records_over_tls_arrive_whole(version: ssl.TLSVersion) -> None:
    data = os.urandom(1_000_000)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data)
    log, connection = answer_over_tls(head, Sent((data,)), version)
    assert log.data == data
    assert connection.by_asyncio == head


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", [ReadableTLSContext, ssl.SSLContext])
@pytest.mark.parametrize("head", [SSE_HEAD, CLOSE])
@pytest.mark.parametrize(
    ("close_notify", "end"),
    [(True, "fin"), (True, ""), (False, "fin"), (True, "rst"), (False, "rst")],
)
def test_an_end_over_tls_is_told_as_asyncio_tells_it(
    version: ssl.TLSVersion,
    kind: type[ssl.SSLContext],
    head: bytes,
    *,
    close_notify: bool,
    end: str,
) -> None:
    data = chunk(b"he") if head == SSE_HEAD else b"he"
    log, _ = answer_over_tls(head, Sent((data,), close_notify=close_notify, end=end), version, kind)
    assert log.data == b"he"
    if end == "rst" and not close_notify:
        assert log.lost is ConnectionLost.RESET
        assert log.detail == "[Errno 104] Connection reset by peer"
    elif head == CLOSE:
        assert log.trailers == ()
    else:
        assert (log.lost, log.detail) == (ConnectionLost.CLOSED, "")


@pytest.mark.parametrize("version", VERSIONS)
def test_what_comes_before_a_damaged_record_is_passed_on(version: ssl.TLSVersion) -> None:
    log, _ = answer_over_tls(SSE_HEAD, Sent((chunk(b"he"), chunk(b"llo")), damaged=True), version)
    assert log.data == b"he"
    assert log.lost is ConnectionLost.RESET
    assert "DECRYPTION_FAILED_OR_BAD_RECORD_MAC" in log.detail


@pytest.mark.parametrize("version", VERSIONS)
def test_a_paused_connection_over_tls_keeps_what_it_has_not_passed_on(
    version: ssl.TLSVersion,
) -> None:
    pieces = [b"%7d" % n for n in range(1000)]
    waiting: list[WatchedConnection] = []

    class Pausing(ResponseLog):
        def on_response_data(self, raw: bytes, scan: BodyScan) -> None:
            super().on_response_data(raw, scan)
            waiting[0].pause()

    log = Pausing()

    async def script(peer: Peer) -> None:
        server = EncryptedPeer(peer)
        await server.shake_hands()
        await server.request()
        await peer.send(server.records(SSE_HEAD))
        await eventually(lambda: bool(log.heads), "the head")
        await peer.send(server.records(*map(chunk, pieces), b"0\r\n\r\n"))
        await peer.rest()

    async def scenario() -> None:
        async with provider(script) as port, encrypted(port, version) as connection:
            waiting.append(connection)
            connection.start(log, "GET")
            connection.write(GET)
            while not log.over:
                before = len(log.data)
                await eventually(lambda: len(log.data) > before or log.over, "more")  # noqa: B023
                passed_on = len(log.data)
                await asyncio.sleep(0.01)
                assert len(log.data) == passed_on
                connection.resume()
            assert log.data == b"".join(pieces)
            assert connection.reusable

    run(scenario())


def test_an_error_of_a_handler_over_tls_ends_its_own_connection_only() -> None:
    class Failing(ResponseLog):
        def on_response_data(self, raw: bytes, scan: BodyScan) -> None:  # noqa: ARG002 - not used
            raise ZeroDivisionError

    log = Failing()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD)
        await eventually(lambda: bool(log.heads), "the head")
        await peer.send(chunk(b"x"))
        await peer.rest()

    async def scenario() -> list[dict[str, object]]:
        told: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        async with (
            provider(script, tls=SERVER) as port,
            encrypted(port, ssl.TLSVersion.TLSv1_3) as connection,
        ):
            connection.start(log, "GET")
            connection.write(GET)
            await eventually(lambda: log.over, "the end of the response")
            assert not connection.reusable
        return told

    assert [type(each["exception"]) for each in run(scenario())] == [ZeroDivisionError]
    assert log.lost is ConnectionLost.RESET


@pytest.mark.parametrize("version", VERSIONS)
def test_an_upload_over_tls_that_waits_does_not_hold_up_the_response(
    version: ssl.TLSVersion,
) -> None:
    upload = os.urandom(8_000_000)
    log = ResponseLog()

    async def script(peer: Peer) -> None:
        sock: socket.socket = peer.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        await peer.until(b"\r\n\r\n")
        await peer.send(SSE_HEAD)
        for n in range(1, 51):
            await peer.send(chunk(b"x"))
            await eventually(lambda: len(log.data) == n, "the piece")  # noqa: B023
        assert log.writable == [False]
        assert await peer.reader.readexactly(len(upload)) == upload
        await peer.send(b"0\r\n\r\n")
        await peer.rest()

    async def scenario() -> None:
        async with provider(script, tls=SERVER) as port, encrypted(port, version) as connection:
            connection.start(log, "POST")
            connection.write(GET)
            for at in range(0, len(upload), 100_000):
                connection.write(upload[at : at + 100_000])
            await eventually(lambda: log.over, "the response")
            assert log.data == b"x" * 50
            assert log.writable == [False, True]
            assert log.trailers == ()

    run(scenario())


KEY_UPDATE = b"TLS 1.3, Handshake [length 0005], KeyUpdate"
FINISHED = b"TLS 1.2, Handshake [length 0010], Finished"


@pytest.mark.parametrize(
    ("version", "command", "done", "answered"),
    [
        (ssl.TLSVersion.TLSv1_3, b"K\n", b">>> " + KEY_UPDATE, b"<<< " + KEY_UPDATE),
        (ssl.TLSVersion.TLSv1_2, b"r\n", b"<<< " + FINISHED, b""),
    ],
)
def test_a_peer_that_wants_new_keys_in_a_stream_gets_them(
    version: ssl.TLSVersion, command: bytes, done: bytes, answered: bytes, tmp_path: Path
) -> None:
    """`K` and `r` are commands of `openssl s_server`: update both keys, renegotiate.

    OpenSSL answers an update of keys when it handles the next one.
    """
    certificate = tmp_path / "server.pem"
    AUTHORITY.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(certificate)

    async def scenario() -> None:
        server = await asyncio.create_subprocess_exec(
            *("openssl", "s_server", "-accept", "127.0.0.1:0", "-naccept", "1", "-msg"),
            *("-cert", certificate),
            stdin=PIPE,
            stdout=PIPE,
            stderr=STDOUT,
        )
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            await server.stdout.readuntil(b"ACCEPT 127.0.0.1:")
            port = int(await server.stdout.readline())
            async with encrypted(port, version) as connection:
                log = ResponseLog()
                connection.start(log, "GET")
                connection.write(GET)
                await server.stdout.readuntil(b"GET / HTTP/1.1")
                server.stdin.write(CLOSE)
                await eventually(lambda: bool(log.heads), "the head")
                for n in range(3):
                    server.stdin.write(command)
                    await server.stdout.readuntil(done)
                    server.stdin.write(b"text %d\n" % n)
                    await eventually(lambda: log.data.count(b"\n") > n, "the text")  # noqa: B023
                await server.stdout.readuntil(answered or b"\n")
                assert log.data == b"text 0\ntext 1\ntext 2\n"
                assert connection.by_asyncio == CLOSE
        finally:
            if server.returncode is None:
                server.kill()
            await server.communicate()

    run(scenario())
