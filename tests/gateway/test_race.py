"""The first address that answers wins, silent ones cost a quarter of a second, none stays open."""

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from deltatape.gateway import race
from deltatape.gateway.race import Address, connect, connect_first
from helpers.upstream import Peer, free_port, provider, run


async def nothing(peer: Peer) -> None:
    await peer.rest()


def tcp(host: str, port: int) -> Address:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return family, socket.SOCK_STREAM, 0, (host, port)


@contextlib.contextmanager
def silent(host: str) -> Iterator[int]:
    """A port whose queue of connections is full, so that the kernel ignores further ones."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket(family))
        listener.bind((host, 0))
        listener.listen(0)
        for _ in range(8):
            filler = stack.enter_context(socket.socket(family))
            filler.settimeout(0)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def open_descriptors() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


async def reached(*addresses: Address) -> tuple[object, float]:
    """Where we got to, and after how many seconds."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    with await connect_first(addresses) as sock:
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        return sock.getpeername()[1], loop.time() - started


def test_a_name_is_resolved() -> None:
    async def scenario() -> object:
        async with provider(nothing) as port:
            with await connect("localhost", port) as sock:
                return sock.getpeername()[1] == port

    assert run(scenario())


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_silent_address_is_overtaken_after_a_quarter_of_a_second(host: str) -> None:
    async def scenario(mute: int) -> None:
        async with provider(nothing) as port:
            got, seconds = await reached(tcp(host, mute), tcp("127.0.0.1", port))
            assert got == port
            assert 0.2 <= seconds < 2

    with silent(host) as mute:
        before = open_descriptors()
        run(scenario(mute))
        assert open_descriptors() == before


def test_a_refusal_is_followed_by_the_next_address_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(race, "STAGGER_S", 5.0)

    async def scenario() -> None:
        async with provider(nothing) as port:
            got, seconds = await reached(tcp("::1", free_port()), tcp("127.0.0.1", port))
            assert got == port
            assert seconds < 2

    run(scenario())


def test_families_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "STAGGER_S", 0.5)

    async def scenario(mute: int) -> None:
        async with provider(nothing) as port:
            got, seconds = await reached(
                tcp("::1", mute), tcp("::1", mute), tcp("::1", mute), tcp("127.0.0.1", port)
            )
            assert got == port
            assert seconds < 0.95  # one turn, not three

    with silent("::1") as mute:
        run(scenario(mute))


def test_two_that_answer_leave_one_open() -> None:
    async def scenario() -> None:
        async with provider(nothing) as one, provider(nothing) as other:
            before = open_descriptors()
            with await connect_first([tcp("127.0.0.1", one), tcp("127.0.0.1", other)]):
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.05)
            assert open_descriptors() <= before + 1  # the provider's own end

    run(scenario())


def test_winners_of_the_same_moment_leave_one_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "STAGGER_S", 0.0)

    async def scenario() -> None:
        async with provider(nothing) as one, provider(nothing) as other:
            for _ in range(20):
                with await connect_first([tcp("127.0.0.1", one), tcp("127.0.0.1", other)]):
                    pass

    before = open_descriptors()
    run(scenario())
    assert open_descriptors() == before


def test_one_reason_for_all_is_said_once() -> None:
    port = free_port()
    with pytest.raises(OSError, match=f"^{os.strerror(errno.ECONNREFUSED)}$"):
        run(connect_first([tcp("127.0.0.1", port), tcp("::1", port)]))


def test_different_reasons_are_said_with_their_addresses() -> None:
    with pytest.raises(OSError, match=r"127\.0\.0\.1: Connection refused; 255\.255\.255\.255: "):
        run(connect_first([tcp("127.0.0.1", free_port()), tcp("255.255.255.255", 9)]))


def test_no_address_at_all_is_an_error() -> None:
    with pytest.raises(OSError, match="no address"):
        run(connect_first([]))


def test_an_attempt_that_is_cancelled_closes_its_sockets() -> None:
    async def scenario(mute: int) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await connect_first([tcp("127.0.0.1", mute)])

    with silent("127.0.0.1") as mute:
        before = open_descriptors()
        run(scenario(mute))
        assert open_descriptors() == before
