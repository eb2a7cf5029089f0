"""Bodies of every kind pass untouched, and what they hold is understood all the same."""

import gzip
from pathlib import Path

import pytest
import zstandard

from deltatape.diagnose.rebuild import rebuild
from helpers.recording import recording
from helpers.upstream import Peer, chunk, post, provider, run

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
