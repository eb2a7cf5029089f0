"""Resets that deliver first, and peers that leave unread."""

import asyncio
import contextlib
import gc
import os
import platform
import socket
import subprocess
import sys
import weakref
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from deltatape.http1.socket import (
    HangupWatch,
    UnreadBytes,
    break_cycle,
    keep_freed_memory,
    limit_reads,
    reset,
    socket_of,
    unsent,
)
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
    monkeypatch.setattr("deltatape.http1.socket._FLUSH_LIMIT_S", 0.1)

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
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        assert unsent(listening) == 0


@contextlib.asynccontextmanager
async def watched() -> AsyncIterator[tuple[HangupWatch, list[str], asyncio.Transport, Peer]]:
    """A watch over a paused transport, what it told, the transport, and its client."""
    hangups: list[str] = []
    async with pair() as (transport, client, _):
        transport.pause_reading()
        yield HangupWatch(transport, lambda: hangups.append("gone")), hangups, transport, client


@pytest.mark.parametrize("leave", [Peer.close, Peer.reset], ids=["fin", "rst"])
def test_a_client_that_leaves_behind_unread_bytes_is_seen(leave: Callable[[Peer], None]) -> None:
    async def scenario() -> None:
        async with watched() as (watch, hangups, _, client):
            await client.send(b"unread")
            watch.start()
            watch.start()
            await asyncio.sleep(0.12)  # it looks more than once
            assert hangups == []
            leave(client)
            await eventually(lambda: bool(hangups), "that the client left")
            await asyncio.sleep(0.12)
            assert hangups == ["gone"]

    run(scenario())


def test_a_stopped_watch_tells_nothing() -> None:
    async def scenario() -> None:
        async with watched() as (watch, hangups, _, client):
            watch.start()
            watch.stop()
            watch.stop()
            client.reset()
            await asyncio.sleep(0.12)
            assert hangups == []

    run(scenario())


def test_a_watch_over_a_closed_transport_ends() -> None:
    async def scenario() -> None:
        async with watched() as (watch, hangups, transport, _):
            watch.start()
            transport.abort()
            await asyncio.sleep(0.12)
            assert hangups == []
            assert watch._timer is None

    run(scenario())


on_linux = pytest.mark.skipif(platform.system() != "Linux", reason="only Linux tells")


async def accepted(listener: socket.socket, client: socket.socket) -> asyncio.Transport:
    """The transport of the connection that `client` makes."""
    loop = asyncio.get_running_loop()
    client.connect(listener.getsockname())
    sock, _ = listener.accept()
    sock.setblocking(False)  # noqa: FBT003 - the socket's own interface
    transport, _ = await loop.connect_accepted_socket(asyncio.Protocol, sock)
    assert isinstance(transport, asyncio.Transport)
    return transport


def states(listener: socket.socket, client: socket.socket) -> list[bool]:
    """Whether something waits: before anything is sent, then unread, read in part, read."""

    async def scenario() -> list[bool]:
        unread = UnreadBytes()
        transport = await accepted(listener, client)
        found = [unread.has_unread(transport)]
        transport.write(b"four")
        found.append(unread.has_unread(transport))
        client.recv(3)
        found.append(unread.has_unread(transport))
        client.recv(1)
        found.append(unread.has_unread(transport))
        transport.write(b"more")
        unread.close()
        unread.close()
        found.append(unread.has_unread(transport))
        transport.close()
        return found

    with listener, client:
        return run(scenario())


EXPECTED = [False, True, True, False, False]


@on_linux
def test_what_a_client_has_not_read_is_known() -> None:
    assert states(socket.create_server(("127.0.0.1", 0)), socket.socket()) == EXPECTED


@on_linux
@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
def test_what_a_client_of_ipv6_has_not_read_is_known() -> None:
    listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    assert states(listener, socket.socket(socket.AF_INET6)) == EXPECTED


@on_linux
@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
def test_a_client_of_ipv4_at_a_listener_of_both_is_known() -> None:
    listener = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)

    class Client(socket.socket):
        def connect(self, address: object) -> None:
            assert isinstance(address, tuple)
            super().connect(("127.0.0.1", address[1]))

    assert states(listener, Client()) == EXPECTED


@on_linux
def test_what_waits_in_a_unix_socket_is_known(tmp_path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s"))
    listener.listen()
    assert states(listener, socket.socket(socket.AF_UNIX)) == EXPECTED


def test_nothing_waits_where_nobody_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    listener = socket.create_server(("127.0.0.1", 0))
    assert states(listener, socket.socket()) == [False] * 5


def test_nothing_waits_in_a_connection_that_is_gone() -> None:
    async def scenario() -> bool:
        with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
            transport = await accepted(listener, client)
            transport.abort()
            await asyncio.sleep(0)
            return UnreadBytes().has_unread(transport)

    assert not run(scenario())


def test_nothing_waits_where_the_kernel_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltatape.http1.socket._NETLINK_SOCK_DIAG", 99)
    listener = socket.create_server(("127.0.0.1", 0))
    assert states(listener, socket.socket()) == [False] * 5


def test_nothing_waits_at_a_peer_that_has_left() -> None:
    async def scenario() -> bool:
        with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
            transport = await accepted(listener, client)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            client.close()
            unread = UnreadBytes()
            waits = unread.has_unread(transport)
            unread.close()
            transport.abort()
            return waits

    assert not run(scenario())


# asyncio reads as much at once as a slow client may have waiting.


def test_a_read_brings_64_kilobytes_at_most() -> None:
    async def scenario() -> list[int]:
        reads: list[int] = []

        class Reads(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                assert isinstance(transport, asyncio.Transport)
                limit_reads(transport)

            def data_received(self, data: bytes) -> None:
                reads.append(len(data))

        here, there = socket.socketpair()
        with here:
            here.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            here.sendall(bytes(150_000))
            transport, _ = await asyncio.get_running_loop().create_connection(Reads, sock=there)
            await eventually(lambda: sum(reads) == 150_000, "everything")
            transport.close()
        return reads

    assert max(run(scenario())) == 64 * 1024


def test_a_transport_without_its_cycle_is_freed_at_once() -> None:
    class Parting(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            self.transport: asyncio.Transport | None = transport
            self.freed = weakref.ref(transport)

        def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's
            assert self.transport is not None
            break_cycle(self.transport)
            self.transport = None

    async def scenario() -> None:
        near, far = socket.socketpair()
        with far:
            loop = asyncio.get_running_loop()
            transport, protocol = await loop.create_connection(Parting, sock=near)
            del transport
            far.send(b"x")
            far.close()
            await eventually(lambda: protocol.freed() is None, "the transport's end")

    gc.disable()
    try:
        run(scenario())
    finally:
        gc.enable()


_FAULTS = f"""
import resource
from {keep_freed_memory.__module__} import keep_freed_memory
keep_freed_memory()
for _ in range(3):
    reads = [bytes(64_000) for _ in range(20)]
    del reads
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    reads = [bytes(64_000) for _ in range(20)]
    del reads
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries decide otherwise")
def test_memory_that_reads_leave_free_is_not_mapped_again() -> None:
    # Dask sets a limit for all programs that its process starts.
    env = {name: each for name, each in os.environ.items() if not name.startswith("MALLOC_")}
    run_alone = subprocess.run(
        [sys.executable, "-c", _FAULTS], env=env, capture_output=True, text=True, check=True
    )
    assert int(run_alone.stdout) < 1000  # 3,900 where the kernel gets it back
