"""One exchange on its way through mitmproxy: heads, bodies, framings, HTTP/2."""

import asyncio
from pathlib import Path

import pytest

from deltatape.model.exchange import EndReason, Exchange, Framing
from helpers.mitm import VENVS, call_events, installed, mitmproxy, own_mitmproxy, ran, variables
from helpers.program import environment
from helpers.upstream import SSE_HEAD, Peer, chunk, connect, post, provider, run

LIMIT_S = 90
EVENTS = call_events()


def tape_of(folder: Path, version: str, answer: bytes, question: bytes) -> Exchange:
    """The exchange of a question; upstream answers it and closes the connection."""

    async def answering(peer: Peer) -> None:
        await peer.until(b"\r\n\r\n")
        await peer.send(answer)
        await asyncio.sleep(0.05)
        peer.close()

    async def scenario() -> Exchange:
        async with (
            provider(answering) as upstream,
            mitmproxy(folder, version, upstream) as running,
        ):
            peer = await connect(running.port)
            await peer.send(question)
            (exchange,) = await running.ended()
            return exchange

    return run(scenario(), limit_s=LIMIT_S)


@pytest.mark.parametrize("version", VENVS)
def test_an_upload_passes_and_is_taped_while_it_comes(tmp_path: Path, version: str) -> None:
    first, rest = b"x" * 70_000, b"y" * 70_000
    seen = asyncio.Event()

    async def counting(peer: Peer) -> None:
        await peer.until(b"\r\n\r\n")
        await peer.reader.readexactly(len(first))
        seen.set()
        await peer.reader.readexactly(len(rest))
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async def scenario() -> Exchange:
        async with (
            provider(counting) as upstream,
            mitmproxy(tmp_path, version, upstream) as running,
        ):
            peer = await connect(running.port)
            head = post(first + rest, extra="Expect: 100-continue\r\n").partition(b"\r\n\r\n")[0]
            await peer.send(head + b"\r\n\r\n" + first)
            await seen.wait()
            await peer.send(rest)
            assert (await peer.until(b"ok")).count(b"HTTP/1.1 200") == 1
            (exchange,) = await running.ended()
            return exchange

    exchange = run(scenario(), limit_s=LIMIT_S)
    assert exchange.request.body == first + rest
    assert b"expect" not in {name.lower() for name, _ in exchange.request.headers}
    assert exchange.response is not None
    assert exchange.response.framing is Framing.LENGTH


def test_requests_of_one_connection_use_upstream_again(tmp_path: Path) -> None:
    async def twice(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async def scenario() -> list[Exchange]:
        async with provider(twice) as upstream, mitmproxy(tmp_path, "11", upstream) as running:
            peer = await connect(running.port)
            for _ in range(2):
                await peer.send(post())
                await peer.until(b"ok")
            return await running.ended(2)

    exchanges = run(scenario(), limit_s=LIMIT_S)
    reused = [exchange.sent.reused for exchange in exchanges if exchange.sent]
    assert reused == [False, True]


@pytest.mark.parametrize(
    ("answer", "framing"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", Framing.NONE),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Framing.LENGTH),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n", Framing.CLOSE),
    ],
)
def test_how_a_body_is_delimited_is_on_the_tape(
    tmp_path: Path, answer: bytes, framing: Framing
) -> None:
    exchange = tape_of(tmp_path, "11", answer, b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
    assert exchange.response is not None
    assert exchange.response.framing is framing
    assert exchange.body == answer.partition(b"\r\n\r\n")[2]
    assert all(read.boundaries is None for read in exchange.reads)
    assert exchange.end is not None
    assert exchange.end.reason is EndReason.COMPLETE
    assert exchange.request.t_end_ns is not None


def test_an_answer_to_head_has_no_body(tmp_path: Path) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
    exchange = tape_of(tmp_path, "11", answer, b"HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n")
    assert exchange.response is not None
    assert exchange.response.framing is Framing.NONE


def test_a_websocket_is_noted_and_passes(tmp_path: Path) -> None:
    answer = (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
    )
    question = (
        b"GET /v1/realtime HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    exchange = tape_of(tmp_path, "11", answer, question)
    assert [note.text for note in exchange.notes] == [
        "a WebSocket follows; its frames are not taped"
    ]


async def whole_or_cut(peer: Peer) -> None:
    """The whole stream where the target says so, else without its end."""
    head, _ = await peer.request()
    await peer.send(SSE_HEAD + b"".join(map(chunk, EVENTS)))
    if b"/whole" in head:
        await peer.send(b"0\r\n\r\n")
        await peer.reader.read()
    await asyncio.sleep(0.1)
    peer.close()


@pytest.mark.parametrize("version", VENVS)
def test_http_2_on_both_sides_is_taped_and_its_reset_is_told(tmp_path: Path, version: str) -> None:
    """Another mitmproxy, in front of a plain provider, serves as the upstream with HTTP/2."""

    far = tmp_path / "far"

    async def scenario() -> tuple[Exchange, ...]:
        venv = installed(version)
        command = (str(venv / "bin" / "mitmdump"),)
        async with provider(whole_or_cut) as upstream:
            mode = ("--mode", f"reverse:http://127.0.0.1:{upstream}")
            async with own_mitmproxy(far, command, variables(far, venv), *mode) as server:
                trust = f"ssl_verify_upstream_trusted_ca={far / 'conf' / 'mitmproxy-ca-cert.pem'}"
                async with mitmproxy(
                    tmp_path, version, hosts=("localhost",), more=("--set", trust)
                ) as running:
                    for path in ("whole", "cut"):
                        await ran(
                            *("curl", "-sN", "--http2", "--proxy", running.started.url),
                            *("--cacert", running.started.ca, "-d", "{}"),
                            f"https://localhost:{server.port}/{path}",
                            env=environment(tmp_path),
                        )
                    return tuple(await running.ended(2))

    whole, cut = run(scenario(), limit_s=LIMIT_S)
    assert whole.request.http == "2.0"
    assert whole.response is not None
    assert whole.response.http == "2.0"
    assert whole.body == cut.body == b"".join(EVENTS)
    assert whole.end is not None
    assert whole.end.reason is EndReason.COMPLETE
    assert cut.end is not None
    assert cut.end.reason is EndReason.UPSTREAM_RESET


def script(folder: Path, text: str) -> tuple[str, ...]:
    """Options that add an addon of the user's."""
    path = folder / "their.py"
    path.write_text(text)
    return "-s", str(path)


@pytest.mark.parametrize("version", VENVS)
def test_a_failure_of_taping_never_harms_the_stream(tmp_path: Path, version: str) -> None:
    fault = script(
        tmp_path,
        "def running():\n"
        "    from deltatape.tape.tap import ExchangeTap\n"
        "    def read(*_): raise ValueError('a fault from inside')\n"
        "    ExchangeTap.read = read\n",
    )

    async def scenario() -> None:
        async with (
            provider(lambda peer: sent(peer, b"".join(map(chunk, EVENTS)))) as upstream,
            mitmproxy(tmp_path, version, upstream, more=fault) as running,
        ):
            peer = await connect(running.port)
            await peer.send(post())
            body = (await peer.rest_or_end()).partition(b"\r\n\r\n")[2]
            assert body == b"".join(map(chunk, EVENTS)) + b"0\r\n\r\n"
            await running.until(lambda observed: bool(observed.alarms))
            assert running.observed.alarms == [
                "exchange 1 is taped no further: ValueError('a fault from inside')"
            ]

    run(scenario(), limit_s=LIMIT_S)


async def sent(peer: Peer, chunks: bytes) -> None:
    """One answer in chunks."""
    await peer.request()
    await peer.send(SSE_HEAD + chunks + b"0\r\n\r\n")


def test_what_other_addons_make_of_bodies_is_respected_and_upstream_s_bytes_are_taped(
    tmp_path: Path,
) -> None:
    theirs = script(
        tmp_path,
        "def requestheaders(flow): flow.request.stream = lambda data: data.lower()\n"
        "def responseheaders(flow): flow.response.stream = lambda data: data.upper()\n",
    )
    bodies: list[bytes] = []

    async def noting(peer: Peer) -> None:
        bodies.append((await peer.request())[1])
        await peer.send(SSE_HEAD + chunk(b"answer") + b"0\r\n\r\n")

    async def scenario() -> Exchange:
        async with (
            provider(noting) as upstream,
            mitmproxy(tmp_path, "11", upstream, more=theirs) as running,
        ):
            peer = await connect(running.port)
            await peer.send(post(b"QUESTION"))
            assert b"ANSWER" in await peer.rest_or_end()
            (exchange,) = await running.ended()
            return exchange

    exchange = run(scenario(), limit_s=LIMIT_S)
    assert exchange.body == b"answer"
    assert bodies == [b"question"]


def test_an_answer_that_mitmproxy_makes_itself_is_noted(tmp_path: Path) -> None:
    theirs = script(
        tmp_path,
        "from mitmproxy import http\n"
        "def requestheaders(flow): flow.response = http.Response.make(403, b'no')\n",
    )

    async def scenario() -> Exchange:
        async with mitmproxy(tmp_path, "11", 9, more=theirs) as running:
            peer = await connect(running.port)
            await peer.send(post())
            await peer.until(b"no")
            (exchange,) = await running.ended()
            return exchange

    exchange = run(scenario(), limit_s=LIMIT_S)
    assert exchange.body == b"no"
    assert exchange.request.body == b"{}"
    assert [note.text for note in exchange.notes] == [
        "mitmproxy answered itself; nothing went upstream"
    ]
