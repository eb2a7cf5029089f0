"""Bytes pass as they are, endings as what they are, and who lags stops the other."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme

from deltatape.gateway.outbound import outbound_from
from helpers.corporate import corporate_proxy, server_context
from helpers.tunnelling import Tunnelling, tunnelling
from helpers.upstream import Peer, eventually, provider, run

BIG = 8 * 1024 * 1024


async def echo(peer: Peer) -> None:
    got, _ = await peer.rest()
    await peer.send(got)
    peer.close()


def test_a_half_close_is_passed_on_and_the_answer_comes_back() -> None:
    async def scenario() -> None:
        data = os.urandom(BIG)
        async with provider(echo) as port, tunnelling() as t:
            peer = await t.through(port)
            peer.writer.write(data)
            peer.writer.write_eof()
            got, ending = await peer.rest()
            assert hashlib.sha256(got).digest() == hashlib.sha256(data).digest()
            assert ending == "eof"
            await eventually(lambda: not t.tunnel._ends, "both sides are closed")

    run(scenario())


def test_a_server_may_finish_first() -> None:
    received = bytearray()

    async def speak_then_listen(peer: Peer) -> None:
        await peer.send(b"220 hello\r\n")
        peer.writer.write_eof()
        received.extend((await peer.rest())[0])
        peer.close()

    async def scenario() -> None:
        async with provider(speak_then_listen) as port, tunnelling() as t:
            peer = await t.through(port)
            assert await peer.rest() == (b"220 hello\r\n", "eof")
            await peer.send(b"more")
            peer.close()
            await eventually(lambda: received == b"more", "the rest arrives")
            await eventually(lambda: not t.tunnel._ends, "both sides are closed")

    run(scenario())


@pytest.mark.parametrize("side", ["server", "client"])
def test_a_reset_arrives_as_a_reset(side: str) -> None:
    seen: asyncio.Queue[str] = asyncio.Queue()

    async def script(peer: Peer) -> None:
        await peer.send(b"hello")
        if side == "server":
            await peer.until(b"go")
            peer.reset()
        else:
            seen.put_nowait((await peer.rest())[1])

    async def scenario() -> None:
        async with provider(script) as port, tunnelling() as t:
            peer = await t.through(port)
            assert await peer.until(b"hello") == b"hello"
            if side == "server":
                await peer.send(b"go")
                assert (await peer.rest())[1] == "reset"
            else:
                peer.reset()
                assert await asyncio.wait_for(seen.get(), 5) == "reset"
            await eventually(lambda: not t.tunnel._ends, "both sides are closed")

    run(scenario())


def test_a_side_that_does_not_read_stops_the_other() -> None:
    async def scenario() -> None:
        sent: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def pour(peer: Peer) -> None:
            """Write until nobody takes it any more."""
            for count in range(1, 4096):
                peer.writer.write(bytes(65536))
                try:
                    await asyncio.wait_for(peer.writer.drain(), 0.5)
                except TimeoutError:
                    sent.set_result(count * 65536)
                    await peer.rest()

        async with provider(pour) as port, tunnelling() as t:
            peer = await t.through(port)
            transport = peer.writer.transport
            assert isinstance(transport, asyncio.Transport)
            transport.pause_reading()
            total = await asyncio.wait_for(sent, 15)
            held = sum(
                end.transport.get_write_buffer_size() for end in t.tunnel._ends if end.transport
            )
            assert held < 1024 * 1024
            transport.resume_reading()
            assert len(await peer.reader.readexactly(total)) == total

    run(scenario(), limit_s=40)


# With TLS on one side: a corporate proxy that is spoken to with it.


@asynccontextmanager
async def secured(folder: Path, port: int) -> AsyncIterator[Tunnelling]:
    """A tunnel whose way to api.test leads through TLS to a proxy."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    context = server_context(authority, "127.0.0.1")
    async with corporate_proxy({"api.test": port}, tls=context) as proxy:
        environment = {"HTTPS_PROXY": f"https://127.0.0.1:{proxy.port}"}
        async with tunnelling(outbound_from(environment, ca=folder / "ca.pem")) as t:
            yield t


def test_bytes_pass_through_tls_both_ways(tmp_path: Path) -> None:
    data = os.urandom(BIG)

    async def mirror(peer: Peer) -> None:
        await peer.send(await peer.reader.readexactly(BIG))
        peer.close()

    async def scenario() -> None:
        async with provider(mirror) as port, secured(tmp_path, port) as t:
            peer = await t.through(443, "api.test")
            peer.writer.write(data)
            got, ending = await peer.rest()
            assert hashlib.sha256(got).digest() == hashlib.sha256(data).digest()
            assert ending == "eof"
            await eventually(lambda: not t.tunnel._ends, "both sides are closed")

    run(scenario())


def test_a_client_that_ends_is_seen_behind_tls(tmp_path: Path) -> None:
    async def scenario() -> None:
        ended = asyncio.Event()

        async def wait(peer: Peer) -> None:
            await peer.rest()
            ended.set()

        async with provider(wait) as port, secured(tmp_path, port) as t:
            peer = await t.through(443, "api.test")
            peer.close()
            await asyncio.wait_for(ended.wait(), 5)
            await eventually(lambda: not t.tunnel._ends, "both sides are closed")

    run(scenario())


def test_a_refusal_of_an_upload_arrives_before_its_reset() -> None:
    """The server answers, stops reading and resets; what it said is not lost in the tunnel."""

    async def refuse(peer: Peer) -> None:
        await peer.until(b"begin")
        await peer.send(b"413 too large")
        await asyncio.sleep(0.2)
        peer.reset()

    async def scenario() -> None:
        async with provider(refuse) as port, tunnelling() as t:
            peer = await t.through(port)
            peer.writer.write(b"begin" + bytes(BIG))
            assert await peer.rest() == (b"413 too large", "reset")

    run(scenario())
