"""The loop in which streams come first: readers, transports, and many events at once."""

import asyncio
import contextlib
import os
import socket
from collections import Counter
from collections.abc import AsyncIterator, Iterator

from deltatape.http1.event_loop import OTHERS_AT_ONCE, StreamingEventLoop
from helpers.upstream import eventually, run


class Transported(asyncio.Protocol):
    """Keeps what a transport tells."""

    def __init__(self) -> None:
        self.data = b""
        self.lost: list[Exception | None] = []

    def data_received(self, data: bytes) -> None:
        self.data += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)


class Watched:
    """A transport's socket, of which a reader may read first; `far` is its peer."""

    def __init__(
        self, near: socket.socket, far: socket.socket, transport: asyncio.Transport
    ) -> None:
        self.near, self.far, self.transport = near, far, transport
        self.read = b""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, StreamingEventLoop)
        self.loop = loop
        self.protocol = transport.get_protocol()

    def reader(self) -> bool:
        data = os.read(self.near.fileno(), 1000)
        self.read += data
        return bool(data)


@contextlib.asynccontextmanager
async def watched() -> AsyncIterator[tuple[Watched, Transported]]:
    near, far = socket.socketpair()
    near.setblocking(False)  # noqa: FBT003 - the name says it
    transport, protocol = await asyncio.get_running_loop().create_connection(Transported, sock=near)
    try:
        yield Watched(near, far, transport), protocol
    finally:
        transport.abort()
        far.close()


def test_a_reader_reads_until_the_transport_is_to_again() -> None:
    async def scenario() -> None:
        async with watched() as (sock, protocol):
            sock.loop.read_directly(sock.near.fileno(), sock.reader)
            sock.far.send(b"one")
            await eventually(lambda: sock.read == b"one", "the reader's data")
            assert protocol.data == b""
            sock.loop.read_by_transport(sock.near.fileno())
            sock.loop.read_by_transport(sock.near.fileno())
            sock.far.send(b"two")
            await eventually(lambda: protocol.data == b"two", "the transport's data")
            assert sock.read == b"one"

    run(scenario())


def test_what_a_reader_leaves_is_the_transports() -> None:
    async def scenario() -> None:
        async with watched() as (sock, protocol):
            sock.loop.read_directly(sock.near.fileno(), sock.reader)
            sock.far.shutdown(socket.SHUT_WR)
            await eventually(lambda: protocol.lost == [None], "the end")
            assert (sock.read, protocol.data) == (b"", b"")

    run(scenario())


def test_nothing_is_read_while_the_transport_is_paused() -> None:
    async def scenario() -> None:
        async with watched() as (sock, _):
            sock.loop.read_directly(sock.near.fileno(), sock.reader)
            sock.transport.pause_reading()
            sock.far.send(b"one")
            for _turn in range(5):
                await asyncio.sleep(0)
            assert sock.read == b""
            sock.transport.resume_reading()
            await eventually(lambda: sock.read == b"one", "the reader's data")

    run(scenario())


def test_all_of_many_events_are_told_a_few_at_once() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        told: list[int] = []
        turns: list[int] = []

        def on_readable(sock: socket.socket) -> None:
            told.append(sock.fileno())
            loop.remove_reader(sock)

        with contextlib.ExitStack() as stack:
            for _ in range(5 * OTHERS_AT_ONCE):
                near, far = map(stack.enter_context, socket.socketpair())
                far.send(b"x")
                loop.add_reader(near, on_readable, near)
            while len(told) < 5 * OTHERS_AT_ONCE:
                before = len(told)
                await asyncio.sleep(0)
                turns.append(len(told) - before)
        assert len(set(told)) == len(told)
        assert max(turns) <= 2 * OTHERS_AT_ONCE  # `sleep` may come before or after them

    run(scenario())


def test_sockets_that_are_always_ready_take_turns() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        told: Counter[int] = Counter()
        with contextlib.ExitStack() as stack:
            for _ in range(30 * OTHERS_AT_ONCE):
                near, far = map(stack.enter_context, socket.socketpair())
                far.send(b"x")
                loop.add_reader(near, lambda fd: told.update((fd,)), near.fileno())
                stack.callback(loop.remove_reader, near)
            for _ in range(300):
                await asyncio.sleep(0)
        assert len(told) == 30 * OTHERS_AT_ONCE
        assert max(told.values()) <= 3 * min(told.values())

    run(scenario())


@contextlib.contextmanager
def others() -> Iterator[list[socket.socket]]:
    """Sockets that are ready in every turn, more than one turn takes."""
    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as stack:
        ready: list[socket.socket] = []
        for _ in range(10 * OTHERS_AT_ONCE):
            near, far = map(stack.enter_context, socket.socketpair())
            far.send(b"x")
            loop.add_reader(near, lambda: None)
            stack.callback(loop.remove_reader, near.fileno())
            ready.append(near)
        yield ready


def test_a_reader_reads_in_every_turn_while_others_wait() -> None:
    async def scenario() -> None:
        async with watched() as (sock, protocol):
            sock.loop.read_directly(sock.near.fileno(), sock.reader)
            with others():
                await asyncio.sleep(0)
                for turn in range(50):
                    sock.far.send(b"x")
                    await asyncio.sleep(0)
                    await asyncio.sleep(0)  # the first may have looked before
                    assert len(sock.read) == turn + 1
                sock.transport.pause_reading()
                sock.far.send(b"x")
                for _turn in range(50):
                    await asyncio.sleep(0)
                assert len(sock.read) == 50
                sock.transport.resume_reading()
                sock.far.shutdown(socket.SHUT_WR)
                await eventually(lambda: protocol.lost == [None], "the end")
                assert len(sock.read) == 51
        assert protocol.data == b""

    run(scenario())


def test_a_socket_is_not_told_what_one_with_its_number_waited_for() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        told: list[int] = []
        with others() as ready, contextlib.ExitStack() as stack:
            for _turn in range(5):
                await asyncio.sleep(0)
            for old in ready:
                number = old.fileno()
                loop.remove_reader(number)
                near, _far = map(stack.enter_context, socket.socketpair())
                os.dup2(near.fileno(), number)
                loop.add_reader(number, told.append, number)
            for _turn in range(50):
                await asyncio.sleep(0)
        assert told == []

    run(scenario())


def test_a_timer_is_waited_for_without_events() -> None:
    async def scenario() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.sleep(0.02)
        return loop.time() - began

    assert run(scenario()) >= 0.02
