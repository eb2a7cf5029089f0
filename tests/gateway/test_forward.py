"""The transparency contract, shown with raw sockets on both sides; endings: forward/."""

import asyncio
import hashlib
from pathlib import Path

import pytest

from deltatape.model.exchange import EndReason, Framing, MaskedCredential
from helpers.recording import recording
from helpers.upstream import SSE_HEAD, Peer, chunk, eventually, post, provider, run

EVENTS = [b'data: {"n":%d}\n\n' % n for n in range(5)]


async def stream(peer: Peer) -> None:
    await peer.request()
    await peer.send(SSE_HEAD)
    for event in EVENTS:
        await peer.send(chunk(event))
        await asyncio.sleep(0.01)
    await peer.send(b"0\r\n\r\n")


def test_a_stream_arrives_byte_for_byte_with_its_chunks(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(stream) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            await client.send(post())
            assert await client.until(b"\r\n\r\n") == SSE_HEAD
            body = await client.until(b"0\r\n\r\n")
            assert body == b"".join(map(chunk, EVENTS)) + b"0\r\n\r\n"
            (exchange,) = await gateway.ended()
            assert exchange.body == b"".join(EVENTS)
            assert exchange.end is not None
            assert exchange.end.reason is EndReason.COMPLETE
            assert exchange.end.sha256 == hashlib.sha256(b"".join(EVENTS)).hexdigest()
            assert exchange.response is not None
            assert exchange.response.framing is Framing.CHUNKED
            assert all(read.boundaries == (len(read.data),) for read in exchange.reads)

    run(scenario())


def test_the_first_event_arrives_before_the_second_is_sent(tmp_path: Path) -> None:
    arrived = asyncio.Event()

    async def wait_between(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(EVENTS[0]))
        await arrived.wait()
        await peer.send(chunk(EVENTS[1]) + b"0\r\n\r\n")

    async def scenario() -> None:
        async with provider(wait_between) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            await client.send(post())
            await client.until(chunk(EVENTS[0]))
            arrived.set()
            await client.until(b"0\r\n\r\n")

    run(scenario())


@pytest.mark.parametrize("target", ["/a?q=%7E&q=", "//b/../c", "/v1/x?a=b%20c#", "/'(){}|"])
def test_target_and_fields_reach_upstream_untouched(tmp_path: Path, target: str) -> None:
    heads: list[bytes] = []

    async def keep(peer: Peer) -> None:
        heads.append((await peer.request())[0])
        await peer.send(b"HTTP/1.1 200 OK\r\nX-B: 1\r\nx-b: 2\r\nContent-Length: 2\r\n\r\nok")

    async def scenario() -> None:
        async with provider(keep) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            extra = "X-A: 1\r\nx-a: 2\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX-Deltatape-Tape: t\r\n"
            await client.send(post(target=target, extra=extra))
            answer = await client.until(b"ok")
            assert answer == b"HTTP/1.1 200 OK\r\nX-B: 1\r\nx-b: 2\r\nContent-Length: 2\r\n\r\nok"
            assert heads == [
                f"POST {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type:"
                " application/json\r\nContent-Length: 2\r\nX-A: 1\r\nx-a: 2\r\n\r\n".encode()
            ]

    run(scenario())


def test_credentials_reach_upstream_and_never_the_tape(tmp_path: Path) -> None:
    heads: list[bytes] = []

    async def keep(peer: Peer) -> None:
        heads.append((await peer.request())[0])
        await peer.send(b"HTTP/1.1 204 No Content\r\nSet-Cookie: s=fake-cookie\r\n\r\n")

    async def scenario() -> None:
        async with provider(keep) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            target = "/v1/x?key=fake-query-key&alt=sse"
            await client.send(post(target=target, extra="Authorization: Bearer sk-fake\r\n"))
            assert b"Set-Cookie: s=fake-cookie" in await client.until(b"\r\n\r\n")
            assert b"Authorization: Bearer sk-fake" in heads[0]
            assert b"key=fake-query-key" in heads[0]
            (exchange,) = await gateway.ended()
            assert gateway.writer.path is not None
            raw = gateway.writer.path.read_bytes()
            assert b"fake" not in raw
            assert exchange.request.target[0] == b"/v1/x?key="
            assert isinstance(exchange.request.target[1], MaskedCredential)
            assert exchange.request.target[2] == b"&alt=sse"

    run(scenario())


def test_an_http_1_0_client_gets_a_chunked_body_without_chunks(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(stream) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            await client.send(b"GET /x HTTP/1.0\r\n\r\n")
            await client.until(b"\r\n\r\n")
            assert await client.rest() == (b"".join(EVENTS), "eof")

    run(scenario())


def test_informational_heads_and_trailers_pass(tmp_path: Path) -> None:
    sent = (
        b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"
        + SSE_HEAD
        + chunk(b"x")
        + b"0\r\nX-Sum: 1\r\n\r\n"
    )

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(sent)

    async def scenario() -> None:
        async with provider(script) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            await client.send(post())
            assert await client.until(b"X-Sum: 1\r\n\r\n") == sent
            (exchange,) = await gateway.ended()
            assert [head.status for head in exchange.informational] == [103]
            assert exchange.trailers == ((b"X-Sum", b"1"),)

    run(scenario())


def test_an_http_1_0_client_gets_no_informational_head_but_the_tape_does(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")

    async def scenario() -> None:
        async with provider(script) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            await client.send(b"GET /x HTTP/1.0\r\n\r\n")
            assert (await client.rest())[0].startswith(b"HTTP/1.1 204 No Content\r\n")
            (exchange,) = await gateway.ended()
            assert [head.status for head in exchange.informational] == [103]

    run(scenario())


def test_100_continue_comes_from_upstream(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await peer.until(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert await peer.reader.readexactly(2) == b"{}"
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async def scenario() -> None:
        async with provider(script) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            request = post(extra="Expect: 100-continue\r\n")
            await client.send(request[:-2])
            assert await client.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            await client.send(request[-2:])
            assert (await client.until(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK")

    run(scenario())


def test_a_chunked_upload_arrives_whole(tmp_path: Path) -> None:
    got: list[bytes] = []

    async def script(peer: Peer) -> None:
        got.append(await peer.until(b"\r\nX-T: 1\r\n\r\n"))
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async def scenario() -> None:
        async with provider(script) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            head = b"POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            await client.send(head)
            await client.send(chunk(b"hello") + chunk(b" you") + b"0\r\nX-T: 1\r\n\r\n")
            await client.until(b"\r\n\r\n")
            assert got[0].endswith(b"9\r\nhello you\r\n0\r\nX-T: 1\r\n\r\n")
            (exchange,) = await gateway.ended()
            assert exchange.request.body == b"hello you"

    run(scenario())


def test_pipelined_requests_are_answered_in_order_on_one_upstream_connection(
    tmp_path: Path,
) -> None:
    connections: list[Peer] = []

    async def echo(peer: Peer) -> None:
        connections.append(peer)
        while True:
            _, body = await peer.request()
            await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    async def scenario() -> None:
        async with provider(echo) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            await client.send(post(b"first") + post(b"second"))
            got = await client.until(b"second")
            assert got.index(b"first") < got.index(b"second")
            one, two = await gateway.ended(2)
            assert one.sent is not None
            assert two.sent is not None
            assert (one.sent.reused, two.sent.reused) == (False, True)
            assert len(connections) == 1

    run(scenario())


def test_an_early_answer_to_an_unfinished_upload_reaches_the_client(tmp_path: Path) -> None:
    async def hasty(peer: Peer) -> None:
        await peer.until(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        await asyncio.sleep(0.2)

    async def scenario() -> None:
        async with provider(hasty) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            await client.send(post(b"x" * 5_000_000)[:1_000_000])
            assert (await client.until(b"\r\n\r\nno")).startswith(b"HTTP/1.1 413")
            await gateway.ended()

    run(scenario())


def test_a_slow_provider_holds_an_upload_back_and_then_gets_all_of_it(tmp_path: Path) -> None:
    size = 20_000_000

    async def sleepy(peer: Peer) -> None:
        await asyncio.sleep(0.3)
        await peer.until(b"\r\n\r\n")
        assert await peer.reader.readexactly(size) == b"x" * size
        await peer.send(b"HTTP/1.1 204 No Content\r\n\r\n")

    async def scenario() -> None:
        async with provider(sleepy) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            client.writer.write(post(b"x" * size))
            assert (await client.until(b"\r\n\r\n")).startswith(b"HTTP/1.1 204")

    run(scenario())


def test_a_slow_client_holds_the_provider_back_and_its_catching_up_is_taped(tmp_path: Path) -> None:
    sent = 0
    piece = b"x" * 65536

    async def pour(peer: Peer) -> None:
        nonlocal sent
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(800):
            await peer.send(piece)
            sent += len(piece)
        peer.close()

    async def scenario() -> None:
        async with provider(pour) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await client.send(post())
            await asyncio.sleep(0.5)
            assert sent < 800 * len(piece)
            client.writer.transport.resume_reading()  # type: ignore[attr-defined]
            await client.until(b"\r\n\r\n")
            await client.reader.readexactly(800 * len(piece))
            assert await client.rest() == (b"", "eof")
            (exchange,) = await gateway.ended()
            assert exchange.delivered
            assert exchange.delivered[-1].bytes <= 800 * len(piece)

    run(scenario())


def test_silence_is_noted_while_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltatape.gateway.recorder.IDLE_NS", 50_000_000)

    async def silent(peer: Peer) -> None:
        await peer.request()
        await peer.rest()

    async def scenario() -> None:
        async with provider(silent) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            await client.send(post())
            await eventually(lambda: bool(gateway.tape()), "an exchange")
            await asyncio.sleep(0.3)
            client.close()
            (exchange,) = await gateway.ended()
            assert len(exchange.idle_ns) >= 2

    run(scenario())
