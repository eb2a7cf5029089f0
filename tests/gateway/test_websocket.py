"""WebSockets through the gateway, with raw sockets and real libraries on both sides."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest
import trustme
from aiohttp import web

from deltatape.gateway.gateway import TapPolicy
from deltatape.model.exchange import EndReason, Exchange
from deltatape.model.websocket import TEXT, Side
from deltatape.store.audit import audit
from deltatape.wire.websocket import MessageReader
from helpers.clients import PYTHON, Client, available, output
from helpers.corporate import server_context
from helpers.recording import Recording, recording
from helpers.upstream import LIMIT_S, Peer, Script, eventually, provider, run
from helpers.websocket import (
    DEFLATE,
    HANDSHAKE,
    KEY,
    SWITCHED,
    Deflater,
    binary,
    close,
    frame,
    ping,
    pong,
    rebuilt,
    text,
)

PATH = b"/v1/responses"
ASK = HANDSHAKE % (PATH, b"")
AGREE = SWITCHED % b""
CLIENT_SENDS = (
    text("Grüße", mask=KEY)
    + frame(1, b"one ", fin=False, mask=KEY)
    + ping(b"?", mask=KEY)
    + frame(0, b"two", mask=KEY)
    + binary(bytes(range(256)) * 300, mask=KEY)
)
SERVER_SENDS = text("hello") + pong(b"?") + binary(b"\xff" * 70_000) + frame(1, b"x" * 200, wide=8)


def sent_by(exchange: Exchange, side: Side) -> bytes:
    return rebuilt(piece for piece in exchange.frames if piece.side is side)


async def agreed(peer: Peer, *, extra: bytes = b"") -> bytes:
    """The handshake of a provider; what was asked."""
    head, _ = await peer.request()
    await peer.send(SWITCHED % extra)
    return head


async def opened(gateway: Recording, fields: bytes = b"") -> Peer:
    """A client whose handshake has succeeded."""
    client = await gateway.client()
    await client.send(HANDSHAKE % (PATH, fields))
    assert (await client.until(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
    return client


def scene(
    script: Script,
    act: Callable[[Recording], Awaitable[None]],
    folder: Path,
    limit_s: float = LIMIT_S,
) -> None:
    """Run `act` with a gateway in front of a provider that runs `script`."""

    async def scenario() -> None:
        async with provider(script) as port, recording(folder, port) as gateway:
            await act(gateway)

    run(scenario(), limit_s)
    (tape,) = folder.glob("*.tape")
    assert not audit(tape).problems


def test_both_handshakes_pass_as_they_are(tmp_path: Path) -> None:
    asked: list[bytes] = []
    fields = (
        b"Origin: http://localhost:5173\r\n"
        b"Sec-WebSocket-Protocol: realtime, x-api-key.fake-123456\r\n"
        b"Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits, x-other; a=1\r\n"
    )
    reply = SWITCHED % (DEFLATE + b"Sec-WebSocket-Protocol: realtime\r\nX-Odd:  a \r\n")

    async def script(peer: Peer) -> None:
        asked.append((await peer.request())[0])
        await peer.send(reply + text("first"))  # in one segment with the head
        await peer.rest()
        peer.close()

    async def act(gateway: Recording) -> None:
        client = await gateway.client()
        await client.send(HANDSHAKE % (PATH, fields))
        assert await client.until(b"first") == reply + text("first")
        client.close()
        (exchange,) = await gateway.ended()
        port = exchange.request.upstream.rpartition(":")[2].encode()
        assert asked == [
            (HANDSHAKE % (PATH, fields)).replace(b"Host: 127.0.0.1", b"Host: 127.0.0.1:" + port)
        ]
        assert b"fake-123456" not in gateway.path.read_bytes()
        assert exchange.response is not None
        assert exchange.response.status == 101
        assert sent_by(exchange, Side.SERVER) == text("first")

    scene(script, act, tmp_path)


def test_what_both_sides_send_passes_unchanged_and_is_on_the_tape(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await agreed(peer)
        assert await peer.reader.readexactly(len(CLIENT_SENDS)) == CLIENT_SENDS
        await peer.send(SERVER_SENDS)
        await peer.reader.readexactly(len(close(mask=KEY)))
        await peer.send(close())
        peer.close()

    async def act(gateway: Recording) -> None:
        client = await opened(gateway)
        for at in range(0, len(CLIENT_SENDS), 7919):
            await client.send(CLIENT_SENDS[at : at + 7919])
        assert await client.reader.readexactly(len(SERVER_SENDS)) == SERVER_SENDS
        await client.send(close(mask=KEY))
        assert await client.rest() == (close(), "eof")
        client.close()
        (exchange,) = await gateway.ended()
        assert sent_by(exchange, Side.CLIENT) == CLIENT_SENDS + close(mask=KEY)
        assert sent_by(exchange, Side.SERVER) == SERVER_SENDS + close()
        assert exchange.end is not None
        assert (exchange.end.reason, exchange.end.detail) == (EndReason.COMPLETE, "")
        times = [piece.t_ns for piece in exchange.frames]
        assert times == sorted(times)
        sides = [piece.side for piece in exchange.frames]
        assert sides == [Side.CLIENT] * sides.index(Side.SERVER) + sides[sides.index(Side.SERVER) :]

    scene(script, act, tmp_path)


def test_credentials_pass_and_reach_no_tape(tmp_path: Path) -> None:
    secret = "sk-fake-0123456789"  # noqa: S105 - no one's
    coded = Deflater().frame(f'{{"key":"{secret}"}}'.encode(), mask=KEY)

    async def script(peer: Peer) -> None:
        head = await agreed(peer, extra=DEFLATE)
        assert secret.encode() in head
        assert await peer.reader.readexactly(len(coded)) == coded
        await peer.send(text(f"your key: {secret}"))
        peer.close()

    async def act(gateway: Recording) -> None:
        client = await opened(gateway, f"Authorization: Bearer {secret}\r\n".encode())
        await client.send(coded)
        assert await client.rest() == (text(f"your key: {secret}"), "eof")
        client.close()
        (exchange,) = await gateway.ended()
        assert secret.encode() not in gateway.path.read_bytes()
        stars = b"*" * len(secret)
        asked, answered = exchange.frames
        assert (asked.data, asked.wire) == (b'{"key":"' + stars + b'"}', None)
        assert answered.data == b"your key: " + stars

    scene(script, act, tmp_path)


@pytest.mark.parametrize("status", [b"426 Upgrade Required", b"401 Unauthorized", b"200 OK"])
def test_a_refused_upgrade_is_passed_on_as_an_ordinary_response(
    tmp_path: Path, status: bytes
) -> None:
    refusal = (
        b"HTTP/1.1 %b\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 2\r\n\r\nno"
    ) % status

    async def script(peer: Peer) -> None:
        for _ in range(2):
            await peer.request()
            await peer.send(refusal)

    async def act(gateway: Recording) -> None:
        client = await gateway.client()
        for _ in range(2):  # on the same connections
            await client.send(ASK)
            assert await client.reader.readexactly(len(refusal)) == refusal
        for exchange in await gateway.ended(2):
            assert exchange.body == b"no"
            assert exchange.frames == ()
            assert exchange.end is not None
            assert exchange.end.reason is EndReason.COMPLETE
            assert exchange.end.frames is None

    scene(script, act, tmp_path)


@pytest.mark.parametrize(
    "head",
    [
        ASK.replace(b"Upgrade: websocket", b"Upgrade: h2c").replace(
            b"Connection: Upgrade", b"Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMA"
        ),
        ASK.replace(b"GET", b"POST"),
        ASK.replace(b"\r\n\r\n", b"\r\nContent-Length: 2\r\n\r\n{}"),
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n\r\n",
    ],
)
def test_no_other_upgrade_is_asked_for(tmp_path: Path, head: bytes) -> None:
    async def script(peer: Peer) -> None:
        asked, _ = await peer.request()
        assert b"pgrade" not in asked
        assert b"HTTP2" not in asked
        await peer.send(b"HTTP/1.1 204 No Content\r\n\r\n")

    async def act(gateway: Recording) -> None:
        client = await gateway.client()
        await client.send(head)
        assert await client.until(b"\r\n\r\n") == b"HTTP/1.1 204 No Content\r\n\r\n"

    scene(script, act, tmp_path)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        (b"Origin: https://evil.example\r\n", b"foreign_origin"),
        (b"Origin: null\r\n", b"foreign_origin"),
        (b"Sec-Fetch-Site: cross-site\r\n", b"cross_site"),
    ],
)
def test_a_web_page_of_another_origin_gets_no_socket(
    tmp_path: Path, fields: bytes, code: bytes
) -> None:
    async def script(peer: Peer) -> None:
        raise AssertionError(await peer.request())

    async def act(gateway: Recording) -> None:
        client = await gateway.client()
        await client.send(HANDSHAKE % (PATH, fields))
        answer, _ = await client.rest()
        assert answer.startswith(b"HTTP/1.1 403 ")
        assert code in answer
        rebound = await gateway.client()
        await rebound.send(ASK.replace(b"Host: 127.0.0.1", b"Host: evil.example"))
        assert b"foreign_host" in (await rebound.rest())[0]
        assert gateway.tape() == []

    scene(script, act, tmp_path)


def test_other_machines_need_the_token_for_a_socket(tmp_path: Path) -> None:
    async def scenario() -> None:
        policy = TapPolicy(token="fake-token-1234")  # noqa: S106 - no one's
        async with provider(reads) as port, recording(tmp_path, port, policy=policy) as gateway:
            client = await gateway.client()
            await client.send(HANDSHAKE % (b"/t/fake-token-1234" + PATH, b""))
            assert (await client.until(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
            client.close()
            (exchange,) = await gateway.ended()
            assert exchange.request.target == (PATH,)

    run(scenario())


def test_a_provider_may_speak_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    ca = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca))

    async def script(peer: Peer) -> None:
        await agreed(peer)
        assert await peer.reader.readexactly(len(CLIENT_SENDS)) == CLIENT_SENDS
        await peer.send(SERVER_SENDS)
        assert await peer.rest() == (b"", "eof")
        peer.close()

    async def scenario() -> None:
        context = server_context(authority, "127.0.0.1")
        async with (
            provider(script, tls=context) as port,
            recording(tmp_path, f"https://127.0.0.1:{port}", ca=ca) as gateway,
        ):
            client = await opened(gateway)
            await client.send(CLIENT_SENDS)
            assert await client.reader.readexactly(len(SERVER_SENDS)) == SERVER_SENDS
            client.close()
            (exchange,) = await gateway.ended()
            assert sent_by(exchange, Side.CLIENT) == CLIENT_SENDS
            assert sent_by(exchange, Side.SERVER) == SERVER_SENDS

    run(scenario())


def test_the_messages_of_the_client_are_left_out_where_the_bodies_of_requests_are(
    tmp_path: Path,
) -> None:
    async def script(peer: Peer) -> None:
        await agreed(peer)
        await peer.reader.readexactly(len(CLIENT_SENDS + close(mask=KEY)))
        await peer.send(text("answer") + close())
        peer.close()

    async def scenario() -> None:
        async with (
            provider(script) as port,
            recording(tmp_path, port, bodies=False) as gateway,
        ):
            client = await opened(gateway)
            await client.send(CLIENT_SENDS)
            await client.send(close(mask=KEY))
            assert await client.rest() == (text("answer") + close(), "eof")
            client.close()
            (exchange,) = await gateway.ended()
            assert sent_by(exchange, Side.CLIENT) == ping(b"?", mask=KEY) + close(mask=KEY)
            assert sent_by(exchange, Side.SERVER) == text("answer") + close()
            assert [note.text for note in exchange.notes] == [
                "the client's messages were left out on demand"
            ]
            assert exchange.end is not None
            assert exchange.end.reason is EndReason.COMPLETE

    run(scenario())


# The ends.


async def reads(peer: Peer) -> None:
    """A provider that reads to the end, and then ends."""
    await agreed(peer)
    await peer.rest()
    peer.close()


def test_a_half_close_passes_and_the_other_direction_goes_on(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await agreed(peer)
        assert await peer.rest() == (text("bye", mask=KEY), "eof")
        await peer.send(text("still here"))
        peer.close()

    async def act(gateway: Recording) -> None:
        client = await opened(gateway)
        await client.send(text("bye", mask=KEY))
        client.writer.write_eof()
        assert await client.rest() == (text("still here"), "eof")
        (exchange,) = await gateway.ended()
        assert exchange.end is not None
        assert exchange.end.reason is EndReason.CLIENT_CLOSED
        assert sent_by(exchange, Side.SERVER) == text("still here")

    scene(script, act, tmp_path)


def test_a_provider_that_ends_in_mid_frame_is_seen_to(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await agreed(peer)
        await peer.send(text("a whole one") + text("a cut one")[:5])
        peer.close()

    async def act(gateway: Recording) -> None:
        client = await opened(gateway)
        sent = text("a whole one") + text("a cut one")[:5]
        assert await client.rest() == (sent, "eof")
        client.close()
        (exchange,) = await gateway.ended()
        assert exchange.end is not None
        assert exchange.end.reason is EndReason.UPSTREAM_CLOSED
        assert sent_by(exchange, Side.SERVER) == sent
        assert exchange.frames[-1].more

    scene(script, act, tmp_path)


def test_a_reset_by_the_provider_is_a_reset_for_the_client(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await agreed(peer)
        await peer.send(text("last words"))
        await peer.until(b"\x01")  # the client has them
        peer.reset()

    async def act(gateway: Recording) -> None:
        client = await opened(gateway)
        assert await client.until(b"words") == text("last words")
        await client.send(b"\x01")
        assert await client.rest() == (b"", "reset")
        (exchange,) = await gateway.ended()
        assert exchange.end is not None
        assert exchange.end.reason is EndReason.UPSTREAM_RESET
        assert sent_by(exchange, Side.SERVER) == text("last words")

    scene(script, act, tmp_path)


def test_a_reset_by_the_client_is_a_reset_for_the_provider(tmp_path: Path) -> None:
    seen: list[tuple[bytes, str]] = []

    async def script(peer: Peer) -> None:
        await agreed(peer)
        seen.append(await peer.rest())

    async def act(gateway: Recording) -> None:
        client = await opened(gateway)
        client.reset()
        (exchange,) = await gateway.ended()
        assert exchange.end is not None
        assert exchange.end.reason is EndReason.CLIENT_CLOSED
        assert exchange.end.detail == "the client reset its connection"
        await eventually(lambda: seen == [(b"", "reset")], "a reset")

    scene(script, act, tmp_path)


def test_a_client_that_leaves_ends_the_socket(tmp_path: Path) -> None:
    async def act(gateway: Recording) -> None:
        client = await opened(gateway)
        client.close()
        (exchange,) = await gateway.ended()
        assert exchange.end is not None
        assert exchange.end.reason is EndReason.CLIENT_CLOSED
        again = await opened(gateway)  # what was before has left nothing behind
        again.close()
        assert len(await gateway.ended(2)) == 2

    scene(reads, act, tmp_path)


def test_stopping_ends_an_open_socket(tmp_path: Path) -> None:
    async def act(gateway: Recording) -> None:
        client = await opened(gateway)
        await client.send(text("x", mask=KEY))
        await eventually(lambda: bool(gateway.tape()[0].frames), "a frame")
        assert gateway.tape()[0].end is None
        await gateway.stop()
        assert await client.rest() == (b"", "eof")
        (exchange,) = gateway.tape()
        assert exchange.end is not None
        assert exchange.end.reason is EndReason.STOPPED

    scene(reads, act, tmp_path)


# Back-pressure.

_BURST = 16 << 20
"""More than the buffers of the gateway's sockets hold."""
_STEP = 1 << 18


def stop_reading(peer: Peer) -> asyncio.Transport:
    """Have a peer take nothing any more, beyond what a small buffer holds."""
    transport = peer.writer.transport
    assert isinstance(transport, asyncio.Transport)
    transport.pause_reading()
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    return transport


@pytest.mark.slow
@pytest.mark.parametrize("side", list(Side))
def test_a_slow_side_slows_the_other(tmp_path: Path, side: Side) -> None:
    data = binary(b"x" * _BURST, mask=KEY if side is Side.CLIENT else b"")
    go = asyncio.Event()
    sent = 0

    async def send(peer: Peer) -> None:
        nonlocal sent
        for at in range(0, len(data), _STEP):
            await peer.send(data[at : at + _STEP])
            sent = at

    async def receive(peer: Peer) -> None:
        transport = stop_reading(peer)
        await go.wait()
        transport.resume_reading()
        got = bytearray()
        while len(got) < len(data):
            got += await peer.reader.read(_STEP)
        assert got == data

    async def script(peer: Peer) -> None:
        await agreed(peer)
        await (receive if side is Side.CLIENT else send)(peer)
        await peer.rest()
        peer.close()

    async def act(gateway: Recording) -> None:
        client = await opened(gateway)
        acting = asyncio.ensure_future((send if side is Side.CLIENT else receive)(client))
        still = 0
        while still < 10:  # nothing moves any more
            before = sent
            await asyncio.sleep(0.05)
            still = still + 1 if sent == before and sent else 0
        assert sent < _BURST - (2 << 20)  # what is missing is not in the gateway's memory
        go.set()
        await acting
        client.close()
        await eventually(lambda: bool(gateway.seen.exchanges), "an end")
        (exchange,) = gateway.tape()
        assert sent_by(exchange, side) == data

    scene(script, act, tmp_path, limit_s=120)


def test_a_reset_is_noticed_behind_a_slow_side(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await agreed(peer)
        stop_reading(peer)
        await asyncio.Event().wait()

    async def act(gateway: Recording) -> None:
        client = await opened(gateway)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(client.send(binary(b"x" * _BURST, mask=KEY)), 1)
        client.reset()
        await eventually(lambda: bool(gateway.seen.exchanges), "an end")
        (exchange,) = gateway.tape()
        assert exchange.end is not None
        assert exchange.end.reason is EndReason.CLIENT_CLOSED

    scene(script, act, tmp_path, limit_s=120)


# Real libraries.


def messages(exchange: Exchange, *, compressed: bool) -> list[tuple[Side, int, bytes]]:
    reader = MessageReader(compressed=compressed)
    found = [reader.add(piece) for piece in exchange.frames]
    assert reader.violations == []
    assert reader.end() == []
    return [(each.side, each.opcode, each.data) for each in found if each is not None]


@contextlib.asynccontextmanager
async def echoing() -> AsyncIterator[int]:
    """A server of aiohttp that sends back each message; its port."""

    async def echo(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=("realtime",), max_msg_size=0)
        await socket.prepare(request)
        async for message in socket:
            if message.type is aiohttp.WSMsgType.TEXT:
                await socket.send_str(message.data)
            else:
                await socket.send_bytes(message.data)
        return socket

    app = web.Application()
    app.router.add_get(PATH.decode(), echo)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


TEXTS = ["", "hello", "Grüße " * 3000, "hello", json.dumps({"n": list(range(40_000))})]


@pytest.mark.parametrize("compress", [0, 15])
def test_a_client_and_a_server_of_aiohttp_speak_through_the_gateway(
    tmp_path: Path, compress: int
) -> None:
    async def scenario() -> None:
        async with (
            echoing() as port,
            recording(tmp_path, port) as gateway,
            aiohttp.ClientSession() as session,
            session.ws_connect(
                f"http://127.0.0.1:{gateway.port}{PATH.decode()}",
                compress=compress,
                protocols=("realtime",),
                max_msg_size=0,
            ) as socket,
        ):
            assert socket.protocol == "realtime"
            for each in TEXTS:
                await socket.send_str(each)
                assert await socket.receive_str() == each
            await socket.send_bytes(bytes(1 << 20))
            assert await socket.receive_bytes() == bytes(1 << 20)
            await socket.close(code=4001, message=b"enough")
            (exchange,) = await gateway.ended()
            assert exchange.end is not None
            assert exchange.end.reason is EndReason.COMPLETE
            found = messages(exchange, compressed=compress > 0)
            for side in Side:
                told = [data for by, opcode, data in found if by is side and opcode == TEXT]
                assert told == [each.encode() for each in TEXTS]
            assert (Side.CLIENT, 8, b"\x0f\xa1enough") in found

    run(scenario())


_CLIENT = """
import json, sys
from websockets.sync.client import connect

texts = json.load(sys.stdin)
with connect(sys.argv[1], max_size=None, compression=sys.argv[2] or None, proxy=None) as socket:
    for each in texts:
        socket.send(each)
        assert socket.recv() == each
    socket.send([texts[1], texts[2]])  # a message in fragments
    assert socket.recv() == texts[1] + texts[2]
    assert socket.ping(b"here?").wait(20)
    socket.close(1001, "bye")
print(socket.protocol.close_rcvd)
"""


@pytest.mark.parametrize("compression", ["", "deflate"])
def test_a_client_of_websockets_speaks_through_the_gateway(
    tmp_path: Path, compression: str
) -> None:
    available(Client("websockets", (str(PYTHON),)))

    async def scenario() -> None:
        async with echoing() as port, recording(tmp_path, port) as gateway:
            url = f"ws://127.0.0.1:{gateway.port}{PATH.decode()}"
            asked = json.dumps(TEXTS).encode()
            await output(PYTHON, "-c", _CLIENT, url, compression, stdin=asked)
            (exchange,) = await gateway.ended()
            found = messages(exchange, compressed=bool(compression))
            told = [data for by, opcode, data in found if by is Side.CLIENT and opcode == TEXT]
            assert told == [each.encode() for each in [*TEXTS, TEXTS[1] + TEXTS[2]]]
            assert (Side.SERVER, 10, b"here?") in found
            assert exchange.end is not None
            assert exchange.end.reason is EndReason.COMPLETE

    run(scenario())


_SERVER = """
import asyncio
from websockets.asyncio.server import serve

async def echo(socket):
    async for message in socket:
        await socket.send(message)

async def main():
    async with serve(echo, "127.0.0.1", 0, max_size=None) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Future()

asyncio.run(main())
"""


def test_a_server_of_websockets_speaks_through_the_gateway(tmp_path: Path) -> None:
    available(Client("websockets", (str(PYTHON),)))

    async def scenario() -> None:
        server = await asyncio.create_subprocess_exec(
            *(str(PYTHON), "-c", _SERVER), stdout=asyncio.subprocess.PIPE
        )
        assert server.stdout is not None
        try:
            port = int(await server.stdout.readline())
            async with (
                recording(tmp_path, port) as gateway,
                aiohttp.ClientSession() as session,
                session.ws_connect(
                    f"http://127.0.0.1:{gateway.port}/", compress=15, max_msg_size=0
                ) as socket,
            ):
                for each in TEXTS:
                    await socket.send_str(each)
                    assert await socket.receive_str() == each
                await socket.close()
                (exchange,) = await gateway.ended()
                found = messages(exchange, compressed=True)
                told = [data for by, opcode, data in found if by is Side.SERVER and opcode == TEXT]
                assert told == [each.encode() for each in TEXTS]
        finally:
            server.kill()
            await server.wait()

    run(scenario())
