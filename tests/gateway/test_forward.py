"""The transparency contract, shown with raw sockets on both sides."""

import asyncio
import gc
import gzip
import hashlib
import os
import socket
import ssl
import struct
import sys
import tempfile
from pathlib import Path

import pytest
import trustme
import zstandard

from deltatape.diagnose.check import check
from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import EndReason, Framing, MaskedCredential
from deltatape.store.audit import audit
from helpers.corporate import server_context
from helpers.playing import playing
from helpers.recording import Recording, recording
from helpers.upstream import (
    SSE_HEAD,
    Peer,
    chunk,
    connect,
    eventually,
    free_port,
    ok_response,
    post,
    provider,
    run,
)

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


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_stream_over_tls_arrives_byte_for_byte_on_both_sides(
    tmp_path: Path, version: ssl.TLSVersion
) -> None:
    sent = [os.urandom(size) for size in (1, 100, 16_383, 16_384, 16_385, 300_000)] + EVENTS
    uploads: list[bytes] = []

    async def swap(peer: Peer) -> None:
        uploads.append((await peer.request())[1])
        await peer.send(SSE_HEAD)
        for data in sent:
            await peer.send(chunk(data))
            await asyncio.sleep(0.005)
        await peer.send(b"0\r\n\r\n")
        await stream(peer)

    async def scenario() -> None:
        authority, ca = trustme.CA(), tmp_path / "ca.pem"
        authority.cert_pem.write_to_path(ca)
        context = server_context(authority, "127.0.0.1")
        context.minimum_version = context.maximum_version = version
        async with (
            provider(swap, tls=context) as port,
            recording(tmp_path, f"https://127.0.0.1:{port}", ca=ca) as gateway,
        ):
            client = await gateway.client()
            upload = os.urandom(1_000_000)
            await client.send(post(upload))
            assert await client.until(b"\r\n\r\n") == SSE_HEAD
            whole = b"".join(map(chunk, sent)) + b"0\r\n\r\n"
            assert await client.reader.readexactly(len(whole)) == whole
            await client.send(post())
            await client.until(b"0\r\n\r\n")
            first, second = await gateway.ended(2)
            assert uploads == [upload]
            assert first.request.body == upload
            assert first.body == b"".join(sent)
            assert second.body == b"".join(EVENTS)
            for exchange in (first, second):
                assert exchange.end is not None
                assert exchange.end.reason is EndReason.COMPLETE

    run(scenario())


@pytest.mark.parametrize(
    ("reset", "reason"),
    [(False, EndReason.UPSTREAM_CLOSED), (True, EndReason.UPSTREAM_RESET)],
)
def test_a_stream_over_tls_that_is_cut_without_close_notify_is_cut_for_the_client(
    tmp_path: Path, *, reset: bool, reason: EndReason
) -> None:
    got = asyncio.Event()

    async def cut(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(EVENTS[0]))
        await got.wait()
        peer.reset() if reset else peer.drop()

    async def scenario() -> None:
        authority, ca = trustme.CA(), tmp_path / "ca.pem"
        authority.cert_pem.write_to_path(ca)
        async with (
            provider(cut, tls=server_context(authority, "127.0.0.1")) as port,
            recording(tmp_path, f"https://127.0.0.1:{port}", ca=ca) as gateway,
        ):
            client = await gateway.client()
            await client.send(post())
            assert await client.until(EVENTS[0] + b"\r\n") == SSE_HEAD + chunk(EVENTS[0])
            got.set()
            assert await client.rest() == (b"", "reset" if reset else "eof")
            (exchange,) = await gateway.ended()
            assert exchange.end is not None
            assert exchange.end.reason is reason

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
            await peer.send(ok_response(body))

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


def test_requests_that_differ_in_their_length_alone_arrive_with_their_own(tmp_path: Path) -> None:
    lengths = (b"6", b"11", b"6", b"007", b"11")
    bodies = [b"x" * int(length) for length in lengths]
    got: list[tuple[bytes, bytes]] = []

    async def answer_all(peer: Peer) -> None:
        while True:
            got.append(await peer.request())
            await peer.send(b"HTTP/1.1 204 No Content\r\n\r\n")

    async def scenario() -> None:
        async with provider(answer_all) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            for length, body in zip(lengths, bodies, strict=True):
                head = b"POST /v1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: %b\r\n\r\n"
                await client.send(head % length + body)
                await client.until(b"\r\n\r\n")
            exchanges = await gateway.ended(len(lengths))
            assert [body for _, body in got] == bodies
            assert [exchange.request.body for exchange in exchanges] == bodies
            for length, (head, _), exchange in zip(lengths, got, exchanges, strict=True):
                field = (b"Content-Length", length)
                assert b"%b: %b\r\n" % field in head
                assert field in exchange.request.headers
                assert b"Host: 127.0.0.1:%d\r\n" % port in head

    run(scenario())


def segments_with_data(peer: Peer) -> int:
    """Return how many segments with data its socket has received."""
    sock: socket.socket = peer.writer.get_extra_info("socket")
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return int(struct.unpack_from("=I", info, 152)[0])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts segments")
def test_a_small_exchange_is_one_segment_each_way(tmp_path: Path) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nanswer"
    received: list[int] = []

    async def answer_all(peer: Peer) -> None:
        while True:
            assert (await peer.request())[1] == b"question"
            received.append(segments_with_data(peer))
            await peer.send(answer)

    async def scenario() -> None:
        async with provider(answer_all) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            for count in range(1, 4):
                await client.send(post(b"question"))
                assert await client.until(b"answer") == answer
                assert segments_with_data(client) == count
            assert received == [1, 2, 3]

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


# Bodies of every kind pass untouched, and what they hold is understood all the same.


SSE = (
    b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)
JSON = b'{"object":"chat.completion","choices":[{"index":0,"message":{"content":"hi"}}]}'


@pytest.mark.parametrize(
    ("fields", "body", "text"),
    [
        (b"Content-Type: text/event-stream\r\nContent-Encoding: gzip", gzip.compress(SSE), "hi"),
        (
            b"Content-Type: text/event-stream\r\nContent-Encoding: zstd",
            zstandard.ZstdCompressor().compress(SSE),
            "hi",
        ),
        (b"Content-Type: application/json", JSON, "hi"),
        (b"Content-Type: application/octet-stream", bytes(range(256)) * 300, ""),
        (b"Content-Type: text/event-stream", b"", ""),
    ],
    ids=["gzip", "zstd", "json", "binary", "empty"],
)
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_a_body_passes_untouched(
    tmp_path: Path, fields: bytes, body: bytes, text: str, *, chunked: bool
) -> None:
    length = b"\r\nContent-Length: %d" % len(body)
    head = (
        b"HTTP/1.1 200 OK\r\n" + fields + (b"\r\nTransfer-Encoding: chunked" if chunked else length)
    )
    framed = (chunk(body) if body else b"") + b"0\r\n\r\n" if chunked else body
    sent = head + b"\r\n\r\n" + framed

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(sent)

    async def scenario() -> None:
        async with provider(script) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            await client.send(post())
            assert await client.reader.readexactly(len(sent)) == sent
            (exchange,) = await gateway.ended()
            assert exchange.body == body
            assert rebuild(exchange).text == text

    run(scenario())


@pytest.mark.parametrize(
    ("request_line", "head"),
    [
        (b"HEAD /x HTTP/1.1", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
        (b"GET /x HTTP/1.1", b"HTTP/1.1 204 No Content\r\n\r\n"),
        (b"GET /x HTTP/1.1", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
    ],
)
def test_an_answer_without_a_body_leaves_the_connection_usable(
    tmp_path: Path, request_line: bytes, head: bytes
) -> None:
    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(head)

    async def scenario() -> None:
        async with provider(script) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            for _ in range(2):
                await client.send(request_line + b"\r\nHost: localhost\r\n\r\n")
                assert await client.until(b"\r\n\r\n") == head
            exchanges = await gateway.ended(2)
            assert [exchange.body for exchange in exchanges] == [b"", b""]

    run(scenario())


# Every way in which an exchange ends reaches the other side as what it is.


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


LF_HEAD = (
    b"HTTP/1.1 200 OK\ncontent-type: text/event-stream\nset-cookie: sid=fake0123456789abcdef\n\n"
)


def test_events_after_an_invalid_head_are_passed_on_as_they_come(tmp_path: Path) -> None:
    arrived = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(LF_HEAD + EVENTS[0])
        await arrived.wait()  # the client has the first event before the second is sent
        await peer.send(EVENTS[1])
        peer.close()

    async def scenario() -> None:
        async with provider(script) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            await client.send(post())
            assert await client.until(EVENTS[0]) == LF_HEAD + EVENTS[0]
            arrived.set()
            assert await client.rest() == (EVENTS[1], "eof")
            (exchange,) = await gateway.ended()
            masked = LF_HEAD.replace(b"fake0123456789abcdef", b"*" * 20)
            assert exchange.response is None
            assert exchange.body == masked + EVENTS[0] + EVENTS[1]
            assert exchange.end is not None
            assert exchange.end.reason is EndReason.UPSTREAM_CLOSED
            (finding,) = check(exchange)
            assert (finding.code, finding.blame) == ("W006", None)
            assert "is not valid HTTP/1" in finding.message
        assert audit(gateway.path).problems == ()

    run(scenario())


def test_a_client_that_accepts_an_invalid_head_can_send_its_next_request(tmp_path: Path) -> None:
    accepted = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok"

    async def script(peer: Peer) -> None:
        for _ in range(2):
            await peer.request()
            await peer.send(accepted)
        await peer.rest()

    async def scenario() -> None:
        async with provider(script) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            for _ in range(2):
                await client.send(post())
                assert await client.until(b"ok") == accepted
            client.close()
            first, second = await gateway.ended(2)
            assert first.end is not None
            assert second.end is not None
            assert (first.end.reason, second.end.reason) == (
                EndReason.COMPLETE,
                EndReason.CLIENT_CLOSED,
            )

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


# Back-pressure and endings where both sides lag: what a fast loopback hardly ever shows.


BIG = 8_000_000


async def lagging_client(running: Recording) -> Peer:
    """A client with a small window that does not read."""
    peer = await connect(running.port)
    sock: socket.socket = peer.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 262144)
    peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
    return peer


def test_a_connection_paused_at_its_answers_end_serves_the_next_request(tmp_path: Path) -> None:
    async def large(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(ok_response(b"x" * BIG))

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
            await peer.send(ok_response(b"x" * BIG))

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
            await peer.send(ok_response(b"ok"))

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


def test_an_exchange_leaves_nothing_to_the_garbage_collector(tmp_path: Path) -> None:
    async def scenario() -> set[str]:
        async with provider(stream) as port, recording(tmp_path, port) as gateway:
            client = await gateway.client()
            gc.collect()
            gc.set_debug(gc.DEBUG_SAVEALL)
            await client.send(post())
            await client.until(b"0\r\n\r\n")
            client.close()
            await eventually(lambda: not gateway.recorder.book.current.clients, "the client's end")
            await asyncio.sleep(0)  # the upstream connection's end
            gc.collect()
            return {type(each).__module__ for each in gc.garbage}

    gc.disable()
    try:
        left = run(scenario())
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not {each for each in left if each.startswith(("deltatape.", "httptools."))}
