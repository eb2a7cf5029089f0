"""A recorded WebSocket, played to raw clients and to real libraries."""

import json
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from deltatape.model.exchange import EndReason, Exchange
from deltatape.model.websocket import Side
from deltatape.player.play_options import MissedRequest, PlayedRequest
from helpers.playing import Stage, playing
from helpers.recording import recording
from helpers.responses_socket import call, question, result
from helpers.upstream import Peer, eventually, run
from helpers.websocket import (
    DEFLATE,
    HANDSHAKE,
    KEY,
    Deflater,
    close,
    frame,
    ping,
    pong,
    rebuilt,
    socket,
    text,
)

CLIENT, SERVER = Side.CLIENT, Side.SERVER
ASK = b"/v1/realtime"
ACCEPTED = b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
HEADERS = ((b"Connection", b"Upgrade"), (b"Sec-WebSocket-Accept", b"recorded"))
TALK = socket(
    (SERVER, text("welcome")),
    (CLIENT, text('{"n":1}', mask=KEY)),
    (SERVER, text("one")),
    (CLIENT, text('{"n":2}', mask=KEY)),
    (SERVER, text("two")),
    (CLIENT, close(mask=KEY)),
    (SERVER, close(1000, "bye")),
    headers=HEADERS,
)


async def opened(stage: Stage, fields: bytes = b"") -> Peer:
    client = await stage.client()
    await client.send(HANDSHAKE % (ASK, fields))
    head = await client.until(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 ")
    assert ACCEPTED in head
    return client


def test_a_websocket_is_played_message_for_message() -> None:
    async def scenario() -> None:
        async with playing(TALK) as stage:
            client = await opened(stage)
            assert await client.until(b"welcome") == text("welcome")
            await client.send(text('{ "n": 1.0 }', mask=b"\1\2\3\4")[:5])
            await client.send(text('{ "n": 1.0 }', mask=b"\1\2\3\4")[5:])
            assert await client.until(b"one") == text("one")
            await client.send(ping(b"?", mask=KEY) + pong(mask=KEY))
            assert await client.until(b"?") == pong(b"?")
            await client.send(text('{"n":2}', mask=KEY))
            assert await client.until(b"two") == text("two")
            await client.send(close(mask=KEY))
            assert await client.rest() == (close(1000, "bye"), "eof")
            (outcome,) = stage.outcomes
            assert isinstance(outcome, PlayedRequest)
            assert stage.player.report.whole

    run(scenario())


def test_messages_are_answered_in_the_order_in_which_they_come() -> None:
    async def scenario() -> None:
        async with playing(TALK) as stage:
            client = await opened(stage)
            await client.until(b"welcome")
            await client.send(text('{"n":2}', mask=KEY) + text('{"n":1}', mask=KEY))
            assert await client.until(b"one") == text("two") + text("one")

    run(scenario())


def test_a_message_that_is_not_on_the_tape_ends_the_socket_with_the_reason() -> None:
    async def scenario() -> None:
        async with playing(TALK) as stage:
            client = await opened(stage)
            await client.until(b"welcome")
            await client.send(text('{"n":3}', mask=KEY))
            assert await client.rest() == (close(1008, "not on the tape"), "eof")
            miss = stage.outcomes[-1]
            assert isinstance(miss, MissedRequest)
            assert "recorded 1, received 3" in miss.message or "recorded 2" in miss.message

    run(scenario())


def test_a_message_on_a_socket_on_which_none_was_recorded_is_not_on_the_tape() -> None:
    async def scenario() -> None:
        async with playing(socket((SERVER, text("x")), headers=HEADERS)) as stage:
            client = await opened(stage)
            await client.send(text("?", mask=KEY))
            got, _ = await client.rest()
            assert got.startswith(text("x"))

    run(scenario())


@pytest.mark.parametrize(
    ("reason", "how"), [(EndReason.UPSTREAM_CLOSED, "eof"), (EndReason.UPSTREAM_RESET, "reset")]
)
def test_a_socket_ends_as_it_did(reason: EndReason, how: str) -> None:
    cut = socket(
        (CLIENT, text("a", mask=KEY)), (SERVER, text("hello")[:4]), headers=HEADERS, reason=reason
    )

    async def scenario() -> None:
        async with playing(cut) as stage:
            client = await opened(stage)
            await client.send(text("a", mask=KEY))
            assert await client.rest() == (text("hello")[:4], how)

    run(scenario())


def test_a_socket_waits_for_the_close_frame_that_answers_the_servers() -> None:
    ended = socket(
        (SERVER, text("bye") + close(1001)), (CLIENT, close(1001, mask=KEY)), headers=HEADERS
    )

    async def scenario() -> None:
        async with playing(ended) as stage:
            client = await opened(stage)
            assert await client.reader.readexactly(len(text("bye") + close(1001)))
            await client.send(close(1001, mask=KEY))
            assert (await client.rest())[1] == "eof"

    run(scenario())


def test_a_request_that_asks_for_no_websocket_gets_none() -> None:
    async def scenario() -> None:
        async with playing(TALK) as stage:
            client = await stage.client()
            await client.send(b"GET /v1/realtime HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            got, _ = await client.rest()
            assert got.startswith(b"HTTP/1.1 400 ")
            assert b"this request does not ask for one" in got

    run(scenario())


def test_steps_come_at_their_times_and_stopping_cuts_them() -> None:
    frames = tuple(piece._replace(t_ns=piece.t_ns * 10**7) for piece in TALK.frames[:3])
    last = frames[2]._replace(t_ns=frames[2].t_ns + 10**13)
    late = replace(TALK, frames=(*frames[:2], last))

    async def scenario() -> None:
        async with playing(late, factor=1.0) as stage:
            client = await opened(stage)
            assert await client.until(b"welcome") == text("welcome")
            await client.send(text('{"n":1}', mask=KEY) + ping(b"?", mask=KEY))
            assert await client.until(b"?") == pong(b"?")  # and not what is due in hours
            await stage.player.stop()
            assert await client.rest() == (b"", "eof")

    run(scenario())


def test_compressed_messages_are_played_to_clients_with_and_without_compression() -> None:
    asked, answered = Deflater(), Deflater()
    sent = [
        (CLIENT, asked.frame(b'{"n":1}', mask=KEY)),
        (SERVER, answered.frame(b"once upon a time")),
        (CLIENT, asked.frame(b'{"n":2}', mask=KEY)),
        (SERVER, answered.frame(b"once upon a time")),
    ]
    headers = (*HEADERS, (b"Sec-WebSocket-Extensions", b"permessage-deflate"))
    recorded = socket(*sent, headers=headers, reason=EndReason.CLIENT_CLOSED)

    async def scenario() -> None:
        async with playing(recorded, recorded) as stage:
            client = await opened(stage, DEFLATE)
            for at in (0, 2):
                await client.send(sent[at][1])
                assert await client.reader.readexactly(len(sent[at + 1][1])) == sent[at + 1][1]
            plain = await opened(stage)
            for number in (1, 2):
                await plain.send(text(f'{{"n":{number}}}', mask=KEY))
                expected = text("once upon a time")
                assert await plain.reader.readexactly(len(expected)) == expected

    run(scenario())


def test_what_cannot_be_decompressed_is_no_message() -> None:
    headers = (*HEADERS, (b"Sec-WebSocket-Extensions", b"permessage-deflate"))
    recorded = socket((CLIENT, text("a", mask=KEY)), (SERVER, text("1")), headers=headers)

    async def scenario() -> None:
        async with playing(recorded) as stage:
            client = await opened(stage, DEFLATE)
            await client.send(frame(1, b"\xff\xff\xff", rsv=4, mask=KEY))
            assert await client.rest() == (close(1008, "not on the tape"), "eof")

    run(scenario())


def test_a_client_that_leaves_ends_the_play() -> None:
    async def scenario() -> None:
        async with playing(TALK) as stage:
            client = await opened(stage)
            await client.until(b"welcome")
            client.close()
            await eventually(lambda: not stage.player._plays, "an end")

    run(scenario())


def test_responses_play_to_a_client_of_aiohttp_and_are_recorded_as_they_were(
    tmp_path: Path,
) -> None:
    sent = [question(), *call(1), result(1), *call(2), (CLIENT, close(mask=KEY)), (SERVER, close())]
    recorded = socket(*sent, headers=((b"Connection", b"Upgrade"), *HEADERS[1:]))
    asked = [data for side, data in sent if side is CLIENT][:2]

    async def scenario() -> None:
        async with playing(recorded) as stage:
            port = stage.player.listener.port
            async with recording(tmp_path, port) as gateway, aiohttp.ClientSession() as session:
                url = f"http://127.0.0.1:{gateway.port}{ASK.decode()}"
                async with session.ws_connect(url) as client:
                    for data in asked:
                        await client.send_str(_text_of(data))
                        kinds = [(await client.receive_json())["type"] for _ in range(7)]
                        assert kinds[-1] == "response.completed"
                (again,) = await gateway.ended()
                for side in Side:
                    one, other = (_said(each, side) for each in (again, recorded))
                    assert one == other

    run(scenario())


def _text_of(data: bytes) -> str:
    (piece,) = socket((CLIENT, data)).frames
    return json.dumps(json.loads(piece.data))


def _said(exchange: Exchange, side: Side) -> bytes:
    pieces = [piece for piece in exchange.frames if piece.side is side]
    if side is SERVER:
        return rebuilt(pieces)
    return b"\n".join(piece.data for piece in pieces)
