"""A scripted provider and a raw client: real sockets on loopback, every byte under control."""

import asyncio
import contextlib
import secrets
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from deltatape.http1.event_loop import StreamingEventLoop

T = TypeVar("T")
LIMIT_S = 20.0
LINGER_RESET = struct.pack("ii", 1, 0)

SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)


def run(scenario: Coroutine[Any, Any, T], limit_s: float = LIMIT_S) -> T:
    """Run a scenario in the loop of a recording; one that hangs fails."""

    async def bounded() -> T:
        try:
            async with asyncio.timeout(limit_s):
                return await scenario
        finally:
            for peer in _OPEN:
                peer.drop()
            _OPEN.clear()
            await _quiet()

    with asyncio.Runner(loop_factory=StreamingEventLoop) as runner:
        return runner.run(bounded())


async def _quiet() -> None:
    """Let servers notice that their clients are gone: for 0.1 s, or until nothing is open."""
    sockets = asyncio.get_running_loop()._selector.get_map()  # type: ignore[attr-defined]
    for _ in range(50):
        if len(sockets) == 1:  # the loop's own
            return
        await asyncio.sleep(0.002)


def chunk(data: bytes) -> bytes:
    """`data` as one HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


_OPEN: list["Peer"] = []


class Peer:
    """One raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        """Write and flush."""
        self.writer.write(data)
        await self.writer.drain()

    async def until(self, marker: bytes) -> bytes:
        """Read up to and with `marker`."""
        return await self.reader.readuntil(marker)

    async def request(self) -> tuple[bytes, bytes]:
        """Read one request whose length is known: head and body."""
        head = await self.until(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return head, await self.reader.readexactly(length)

    async def rest(self) -> tuple[bytes, str]:
        """Read to the end: the bytes, and `eof` or `reset`."""
        got = b""
        try:
            while True:
                data = await self.reader.read(65536)
                if not data:
                    return got, "eof"
                got += data
        except ConnectionResetError:
            return got, "reset"

    async def rest_or_end(self) -> bytes:
        """Read to the terminator of a chunked body, or to the end of the connection."""
        got = b""
        with contextlib.suppress(ConnectionResetError):
            while not got.endswith(b"\r\n0\r\n\r\n"):
                data = await self.reader.read(65536)
                if not data:
                    break
                got += data
        return got

    def close(self) -> None:
        """FIN."""
        self.writer.close()

    def drop(self) -> None:
        """End at once, if it has not ended."""
        with contextlib.suppress(AttributeError):  # asyncio's own, for one that is closed already
            self.writer.transport.abort()

    def reset(self) -> None:
        """RST."""
        sock: socket.socket = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_RESET)
        self.writer.transport.abort()


Script = Callable[[Peer], Awaitable[None]]


@contextlib.asynccontextmanager
async def provider(script: Script, *, tls: Any = None) -> AsyncIterator[int]:
    """A provider that runs `script` on each connection; its port."""
    peers: list[Peer] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        peers.append(peer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await script(peer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for _ in range(4):  # what has just been accepted takes a few turns to be a peer
            await asyncio.sleep(0)
            for peer in peers:
                peer.drop()
        await asyncio.sleep(0)


async def connect(port: int) -> Peer:
    """A raw client connection; `run` drops it at the end."""
    peer = Peer(*await asyncio.open_connection("127.0.0.1", port, limit=2**26))
    _OPEN.append(peer)
    return peer


def post(body: bytes = b"{}", target: str = "/v1/chat/completions", extra: str = "") -> bytes:
    """A POST with a JSON body as bytes."""
    head = (
        f"POST {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n{extra}\r\n"
    )
    return head.encode() + body


def ok_response(body: bytes, *fields: bytes) -> bytes:
    """A successful response with a body of known length."""
    size = b"Content-Length: %d" % len(body)
    return b"\r\n".join((b"HTTP/1.1 200 OK", *fields, size, b"", body))


def free_port() -> int:
    """A free port below the ephemeral ones, so that no other program gets it later."""
    while True:
        port = 15_000 + secrets.randbelow(15_000)
        with socket.socket() as sock, contextlib.suppress(OSError):
            sock.bind(("127.0.0.1", port))
            return port


async def listening(port: int) -> None:
    """Wait until a program listens there."""
    while True:
        with contextlib.suppress(ConnectionError):
            (await connect(port)).close()
            return
        await asyncio.sleep(0.05)


async def eventually(condition: Callable[[], bool], what: str) -> None:
    """Wait until `condition` holds; fail after 60 s, which only a hang takes."""
    for _ in range(6000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"never: {what}")
