"""Back-pressure and endings where both sides lag: what a fast loopback hardly ever shows."""

import asyncio
import socket
from pathlib import Path

import pytest

from deltatape.model.exchange import EndReason
from helpers.recording import Recording, recording
from helpers.upstream import Peer, connect, eventually, post, provider, run

BIG = 8_000_000


async def lagging_client(running: Recording) -> Peer:
    """A client with a small window that does not read."""
    peer = await connect(running.port)
    sock: socket.socket = peer.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 262144)
    peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
    return peer


def answer(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def test_a_connection_paused_at_its_answers_end_serves_the_next_request(tmp_path: Path) -> None:
    async def large(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(answer(b"x" * BIG))

    async def scenario() -> None:
        async with provider(large) as port, recording(tmp_path, port) as running:
            client = await lagging_client(running)
            for _ in range(3):
                await client.send(post())
                await asyncio.sleep(0.2)
                client.writer.transport.resume_reading()  # type: ignore[attr-defined]
                await client.until(b"\r\n\r\n")
                assert len(await client.reader.readexactly(BIG)) == BIG
                client.writer.transport.pause_reading()  # type: ignore[attr-defined]

    run(scenario())


def test_pipelined_requests_of_a_client_that_does_not_read_wait(tmp_path: Path) -> None:
    asked = 0

    async def large(peer: Peer) -> None:
        nonlocal asked
        while True:
            await peer.request()
            asked += 1
            await peer.send(answer(b"x" * BIG))

    async def scenario() -> None:
        async with provider(large) as port, recording(tmp_path, port) as running:
            client = await lagging_client(running)
            await client.send(post() * 20)
            await asyncio.sleep(0.7)
            assert asked <= 2
            client.writer.transport.resume_reading()  # type: ignore[attr-defined]
            for _ in range(20):
                await client.until(b"\r\n\r\n")
                await client.reader.readexactly(BIG)
            assert asked == 20

    run(scenario(), limit_s=40)


def test_an_upload_that_was_buffered_while_dialling_is_held_back(tmp_path: Path) -> None:
    async def deaf(peer: Peer) -> None:
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(30)

    async def scenario() -> None:
        async with provider(deaf) as port, recording(tmp_path, port) as running:
            client = await connect(running.port)
            sent = 0

            async def upload() -> None:
                nonlocal sent
                await client.send(post().replace(b"Length: 2", b"Length: 999999999"))
                while True:
                    await client.send(b"x" * 1_000_000)
                    sent += 1_000_000

            task = asyncio.ensure_future(upload())
            await asyncio.sleep(1.0)
            held = sent
            await asyncio.sleep(0.5)
            assert sent == held
            assert held < 60_000_000
            task.cancel()

    run(scenario())


@pytest.mark.parametrize("turn", range(5))
def test_an_early_answer_reaches_the_client_although_the_upstream_closes(
    tmp_path: Path, turn: int
) -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"

    async def hasty(peer: Peer) -> None:
        await peer.until(b"\r\n\r\n")
        await peer.send(refusal)
        await asyncio.sleep(0.02 * turn)
        peer.close()

    async def scenario() -> None:
        async with provider(hasty) as port, recording(tmp_path, port) as running:
            client = await connect(running.port)
            client.writer.write(post(b"x" * 3_000_000))
            assert b" 413 " in await client.until(b"\r\n\r\nno")
            (exchange,) = await running.ended()
            assert exchange.response is not None
            assert exchange.response.status == 413

    run(scenario())


def test_an_upstream_that_closes_its_side_during_an_upload_is_seen_at_once(tmp_path: Path) -> None:
    async def half(peer: Peer) -> None:
        await peer.until(b"\r\n\r\n")
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        peer.writer.write(b"HTTP/1.1 413 Too Large\r\n\r\nno")
        peer.writer.write_eof()
        await asyncio.sleep(30)

    async def scenario() -> None:
        async with provider(half) as port, recording(tmp_path, port) as running:
            client = await connect(running.port)
            client.writer.write(post(b"x" * 30_000_000))
            assert (await client.until(b"\r\n\r\nno")).startswith(b"HTTP/1.1 413")
            (exchange,) = await running.ended()
            assert exchange.end is not None
            assert exchange.end.reason is EndReason.COMPLETE

    run(scenario())


def test_stopping_shows_a_lagging_client_the_cut_of_a_body_that_the_close_ends(
    tmp_path: Path,
) -> None:
    async def endless(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            await peer.send(b"x" * 65536)

    async def scenario() -> None:
        async with provider(endless) as port, recording(tmp_path, port) as running:
            client = await lagging_client(running)
            await client.send(post())
            await eventually(lambda: any(e.reads for e in running.tape()), "a stream")
            await asyncio.sleep(0.3)
            await running.stop()
            client.writer.transport.resume_reading()  # type: ignore[attr-defined]
            assert (await client.rest())[1] == "reset"

    run(scenario())


def test_stopping_takes_no_further_request_on_an_open_connection(tmp_path: Path) -> None:
    async def slow(peer: Peer) -> None:
        while True:
            await peer.request()
            await asyncio.sleep(0.3)
            await peer.send(answer(b"ok"))

    async def scenario() -> None:
        async with provider(slow) as port, recording(tmp_path, port) as running:
            running.grace_s = 5.0
            client = await connect(running.port)
            await client.send(post() + post())
            await eventually(lambda: bool(running.recorder.active), "a request")
            await running.stop()
            body, _ = await client.rest()
            assert body.count(b"HTTP/1.1 200 OK") == 1
            assert len(running.tape()) == 1

    run(scenario())


def test_a_name_that_no_dns_could_hold_is_answered_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with recording(tmp_path, "http://a..b") as running:
            client = await connect(running.port)
            await client.send(post())
            assert (await client.rest())[0].startswith(b"HTTP/1.1 502")

    run(scenario())
