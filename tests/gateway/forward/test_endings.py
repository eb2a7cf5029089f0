"""Every way in which an exchange ends reaches the other side as what it is."""

import asyncio
import tempfile
from pathlib import Path

import pytest

from deltatape.diagnose.check import check
from deltatape.model.exchange import EndReason
from helpers.playing import playing
from helpers.recording import recording
from helpers.upstream import SSE_HEAD, Peer, chunk, free_port, post, provider, run

EVENT = b'data: {"n":0}\n\n'


def ending(cut: str, head: bytes) -> tuple[bytes, str, EndReason]:
    """What a client sees, and the tape says, of a response that upstream ends in this way."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(head + (chunk(EVENT) if b"chunked" in head else EVENT))
        await asyncio.sleep(0.05)
        peer.close() if cut == "fin" else peer.reset()

    async def scenario(folder: Path) -> tuple[bytes, str, EndReason]:
        async with provider(script) as port, recording(folder, port) as gateway:
            client = await gateway.client()
            await client.send(post())
            await client.until(b"\r\n\r\n")
            body, how = await client.rest()
            (exchange,) = await gateway.ended()
            assert exchange.end is not None
            assert exchange.body == EVENT
            return body, how, exchange.end.reason

    with tempfile.TemporaryDirectory() as folder:
        return run(scenario(Path(folder)))


LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
CLOSE = b"HTTP/1.1 200 OK\r\n\r\n"


def test_a_cut_stays_a_cut_in_every_framing() -> None:
    assert ending("fin", SSE_HEAD) == (chunk(EVENT), "eof", EndReason.UPSTREAM_CLOSED)
    assert ending("fin", LENGTH) == (EVENT, "eof", EndReason.UPSTREAM_CLOSED)
    assert ending("fin", CLOSE) == (EVENT, "eof", EndReason.COMPLETE)


def test_a_reset_stays_a_reset_in_every_framing() -> None:
    assert ending("rst", SSE_HEAD) == (chunk(EVENT), "reset", EndReason.UPSTREAM_RESET)
    assert ending("rst", LENGTH) == (EVENT, "reset", EndReason.UPSTREAM_RESET)
    assert ending("rst", CLOSE) == (EVENT, "reset", EndReason.UPSTREAM_RESET)


def test_an_http_1_0_client_sees_a_cut_of_a_chunked_body_as_reset(tmp_path: Path) -> None:
    async def cut(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(EVENT))
        await asyncio.sleep(0.05)
        peer.close()

    async def scenario() -> None:
        async with provider(cut) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            await client.send(b"GET /x HTTP/1.0\r\n\r\n")
            head = await client.until(b"\r\n\r\n")
            assert b"Transfer-Encoding" not in head
            assert b"Connection: close" in head
            assert await client.rest() == (EVENT, "reset")

    run(scenario())


@pytest.mark.parametrize("how", ["fin", "rst"])
def test_an_upstream_that_leaves_without_an_answer_is_seen_to_leave(
    tmp_path: Path, how: str
) -> None:
    async def leave(peer: Peer) -> None:
        await peer.request()
        peer.close() if how == "fin" else peer.reset()

    async def scenario() -> None:
        async with provider(leave) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            await client.send(post())
            assert await client.rest() == (b"", "eof" if how == "fin" else "reset")
            (exchange,) = await gateway.ended()
            assert exchange.response is None

    run(scenario())


def test_an_idle_clients_leaving_closes_the_upstream_at_once(tmp_path: Path) -> None:
    gone = asyncio.Event()

    async def silent(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(EVENT))
        await peer.rest()
        gone.set()

    async def scenario() -> None:
        async with provider(silent) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            await client.send(post())
            await client.until(chunk(EVENT))
            client.close()
            async with asyncio.timeout(1):
                await gone.wait()
            (exchange,) = await gateway.ended()
            assert exchange.end is not None
            assert exchange.end.reason is EndReason.CLIENT_CLOSED

    run(scenario())


def test_a_client_that_leaves_during_a_paused_upload_closes_the_upstream(tmp_path: Path) -> None:
    gone = asyncio.Event()

    async def deaf(peer: Peer) -> None:
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(1.0)
        peer.writer.transport.resume_reading()  # type: ignore[attr-defined]
        await peer.rest()
        gone.set()

    async def scenario() -> None:
        async with provider(deaf) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            client.writer.write(post(b"x" * 50_000_000))
            await asyncio.sleep(0.5)
            client.reset()
            (exchange,) = await gateway.ended()
            assert exchange.end is not None
            assert exchange.end.reason is EndReason.CLIENT_CLOSED
            assert not gone.is_set()  # noticed while upstream still takes nothing
            await asyncio.wait_for(gone.wait(), 5)

    run(scenario())


def test_a_refused_upstream_is_answered_and_named(tmp_path: Path) -> None:
    port = free_port()

    async def scenario() -> None:
        async with recording(tmp_path, port) as gateway:
            client = await gateway.client()
            await client.send(post())
            answer, _ = await client.rest()
            assert answer.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
            assert f"http://127.0.0.1:{port}".encode() in answer
            assert b'"code": "upstream_refused"' in answer
            (exchange,) = await gateway.ended()
            assert exchange.end is not None
            assert exchange.end.reason is EndReason.REFUSED
            assert f"127.0.0.1:{port}" in exchange.end.detail

    run(scenario())


@pytest.mark.parametrize("debris", [b"SSH-2.0-hello\r\n\r\n", b"HTTP/1.1 200 OK\r\nServ"])
def test_what_comes_in_place_of_a_head_is_passed_on_taped_and_played(
    tmp_path: Path, debris: bytes
) -> None:
    async def babble(peer: Peer) -> None:
        await peer.request()
        await peer.send(debris)
        peer.close()

    async def scenario() -> None:
        async with provider(babble) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            await client.send(post())
            assert await client.rest() == (debris, "eof")
            (exchange,) = await gateway.ended()
            assert exchange.response is None
            assert exchange.body == debris
            assert exchange.end is not None
            assert exchange.end.reason is EndReason.UPSTREAM_CLOSED
            assert "W006" in [finding.code for finding in check(exchange)]
        async with playing(exchange) as stage:
            client = await stage.client()
            await client.send(post())
            assert await client.rest() == (debris, "eof")

    run(scenario())


def test_broken_chunk_framing_goes_on_raw_and_is_noted(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(EVENT))
        await asyncio.sleep(0.05)
        await peer.send(b"not a size\r\nrest")
        peer.close()

    async def scenario() -> None:
        async with provider(script) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            await client.send(post())
            await client.until(b"\r\n\r\n")
            assert (await client.rest())[0] == chunk(EVENT) + b"not a size\r\nrest"
            (exchange,) = await gateway.ended()
            assert "broken chunk framing" in exchange.notes[0].text
            assert exchange.end is not None
            assert exchange.end.reason is EndReason.UPSTREAM_CLOSED

    run(scenario())


def test_bytes_after_the_response_are_withheld_and_noted(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n")

    async def scenario() -> None:
        async with provider(script) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            await client.send(post(extra="Connection: close\r\n"))
            answer, how = await client.rest()
            assert answer.endswith(b"\r\n\r\nok")
            assert how == "eof"
            (exchange,) = await gateway.ended()
            assert "after the response's end" in exchange.notes[0].text

    run(scenario())
