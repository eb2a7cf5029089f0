"""Resets that deliver first, and peers that leave unread."""

import asyncio
import contextlib
import socket as sockets
from collections.abc import AsyncIterator, Callable

import pytest

from deltatape.http1 import socket
from deltatape.http1.socket import HangupWatch, reset, socket_of
from helpers.upstream import Peer, connect, eventually, run

LARGE = bytes(range(256)) * 32 * 1024  # 8 MiB


class Accepted(asyncio.Protocol):
    """One accepted connection of a bare asyncio server."""

    def __init__(self, ready: "asyncio.Future[asyncio.Transport]") -> None:
        self._ready = ready
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._ready.set_result(transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's
        self.lost = True


@contextlib.asynccontextmanager
async def pair() -> AsyncIterator[tuple[asyncio.Transport, Peer, Accepted]]:
    """The server's transport and a raw client at its other end."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[asyncio.Transport] = loop.create_future()
    protocol = Accepted(ready)
    server = await loop.create_server(lambda: protocol, "127.0.0.1", 0)
    client = await connect(server.sockets[0].getsockname()[1])
    transport = await ready
    try:
        yield transport, client, protocol
    finally:
        server.close()
        transport.abort()


def pause(client: Peer) -> None:
    client.writer.transport.pause_reading()  # type: ignore[attr-defined]


def resume(client: Peer) -> None:
    client.writer.transport.resume_reading()  # type: ignore[attr-defined]


@pytest.mark.parametrize("data", [b"", b"last words", LARGE], ids=["nothing", "little", "much"])
def test_a_reset_comes_after_everything_that_was_written(data: bytes) -> None:
    async def scenario() -> None:
        async with pair() as (transport, client, _):
            transport.write(data)
            reset(transport)
            got, how = await client.rest()
            assert (got == data, how) == (True, "reset")

    run(scenario())


def test_a_reset_waits_for_a_slow_reader() -> None:
    async def scenario() -> None:
        async with pair() as (transport, client, protocol):
            pause(client)
            transport.write(LARGE)
            reset(transport)
            await asyncio.sleep(0.3)
            assert not protocol.lost
            resume(client)
            got, how = await client.rest()
            assert (got == LARGE, how) == (True, "reset")

    run(scenario())


def test_a_reset_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "_FLUSH_LIMIT_S", 0.1)

    async def scenario() -> None:
        async with pair() as (transport, client, protocol):
            pause(client)
            transport.write(LARGE)
            reset(transport)
            await eventually(lambda: protocol.lost, "the reset")
            resume(client)
            got, how = await client.rest()
            assert (len(got) < len(LARGE), how) == (True, "reset")

    run(scenario())


def test_a_client_that_leaves_during_a_reset_ends_the_waiting() -> None:
    async def scenario() -> None:
        async with pair() as (transport, client, protocol):
            pause(client)
            transport.write(LARGE)
            reset(transport)
            client.reset()
            await eventually(lambda: protocol.lost, "the end")
            await asyncio.sleep(0.05)
            assert socket_of(transport) is None
            reset(transport)

    run(scenario())


def test_a_socket_that_does_not_tell_has_nothing_unsent() -> None:
    with sockets.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        assert socket.unsent(listening) == 0


@contextlib.asynccontextmanager
async def watched() -> AsyncIterator[tuple[HangupWatch, list[str], asyncio.Transport, Peer]]:
    """A watch over a paused transport, what it told, the transport, and its client."""
    told: list[str] = []
    async with pair() as (transport, client, _):
        transport.pause_reading()
        yield HangupWatch(transport, lambda: told.append("gone")), told, transport, client


@pytest.mark.parametrize("leave", [Peer.close, Peer.reset], ids=["fin", "rst"])
def test_a_client_that_leaves_behind_unread_bytes_is_seen(leave: Callable[[Peer], None]) -> None:
    async def scenario() -> None:
        async with watched() as (watch, told, _, client):
            await client.send(b"unread")
            watch.start()
            watch.start()
            await asyncio.sleep(0.12)  # it looks more than once
            assert told == []
            leave(client)
            await eventually(lambda: bool(told), "that the client left")
            await asyncio.sleep(0.12)
            assert told == ["gone"]

    run(scenario())


def test_a_stopped_watch_tells_nothing() -> None:
    async def scenario() -> None:
        async with watched() as (watch, told, _, client):
            watch.start()
            watch.stop()
            watch.stop()
            client.reset()
            await asyncio.sleep(0.12)
            assert told == []

    run(scenario())


def test_a_watch_over_a_closed_transport_ends() -> None:
    async def scenario() -> None:
        async with watched() as (watch, told, transport, _):
            watch.start()
            transport.abort()
            await asyncio.sleep(0.12)
            assert told == []
            assert watch._timer is None

    run(scenario())
