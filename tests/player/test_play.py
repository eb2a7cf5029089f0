"""One answer: its bytes, its times, and every way in which it can end early."""

import asyncio
import platform
import socket
import sys
from dataclasses import replace

import pytest

from deltatape.model.exchange import EndReason, Exchange, Framing
from deltatape.player.play import joined
from helpers.clients import output
from helpers.playing import answer, playing
from helpers.taped import taped
from helpers.upstream import chunk, eventually, post, run

HEAD_REQUEST = b"HEAD /v1/x HTTP/1.1\r\nHost: localhost\r\n\r\n"
TEN = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"


def sized(reason: EndReason = EndReason.COMPLETE) -> Exchange:
    """An exchange of known length, in two reads."""
    return taped(
        ((10, b"12345"), (20, b"67890")),
        framing=Framing.LENGTH,
        headers=((b"Content-Length", b"10"),),
        reason=reason,
    )


async def until_quiet(read: asyncio.StreamReader) -> bytes:
    """What has come once nothing more comes for 0.2 s."""
    got = b""
    while True:
        try:
            got += await asyncio.wait_for(read.read(65536), 0.2)
        except TimeoutError:
            return got


def test_several_chunks_in_a_read_and_one_over_several_reads_keep_their_ends() -> None:
    exchange = taped(((10, b"aabb"), (20, b"cc"), (30, b"ccdd")), boundaries=[(2, 4), (), (2, 4)])
    got, _ = answer(exchange)
    assert got.endswith(
        b"\r\n\r\n" + chunk(b"aa") + chunk(b"bb") + chunk(b"cccc") + chunk(b"dd") + b"0\r\n\r\n"
    )


def test_trailers_follow_a_chunked_body() -> None:
    got, _ = answer(taped(((10, b"a"),), trailers=((b"X-Sum", b"1"), (b"X-T", b"2"))))
    assert got.endswith(chunk(b"a") + b"0\r\nX-Sum: 1\r\nX-T: 2\r\n\r\n")


def test_status_reason_and_fields_are_those_of_the_tape() -> None:
    made = taped((), framing=Framing.LENGTH, headers=((b"x-A", b"1"), (b"Content-Length", b"0")))
    assert made.response is not None
    odd = replace(made, response=replace(made.response, status=429, reason=b"Slow Down"))
    got, _ = answer(odd)
    assert got == (
        b"HTTP/1.1 429 Slow Down\r\nx-A: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )


def test_a_connection_serves_answer_after_answer() -> None:
    second = replace(sized(), number=2)

    async def scenario() -> None:
        async with playing(sized(), second) as stage:
            client = await stage.client()
            for _ in range(2):
                await client.send(post())
                assert await client.until(b"67890") == TEN + b"1234567890"

    run(scenario())


def test_head_is_answered_with_the_head_alone() -> None:
    exchange = taped(
        (), method="HEAD", target=b"/v1/x", body=b"", framing=Framing.NONE, headers=((b"a", b"b"),)
    )

    async def scenario() -> None:
        async with playing(exchange) as stage:
            client = await stage.client()
            await client.send(HEAD_REQUEST)
            assert await until_quiet(client.reader) == b"HTTP/1.1 200 OK\r\na: b\r\n\r\n"

    run(scenario())


def test_the_gateways_own_answer_to_head_has_no_body() -> None:
    exchange = taped(
        (),
        method="HEAD",
        target=b"/v1/x",
        body=b"",
        framing=None,
        reason=EndReason.REFUSED,
        detail="nobody there",
    )
    got, _ = answer(exchange, HEAD_REQUEST)
    assert got.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    assert got.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("reason", "how"), [(EndReason.UPSTREAM_CLOSED, "eof"), (EndReason.UPSTREAM_RESET, "reset")]
)
def test_a_body_of_known_length_is_cut_where_it_was(reason: EndReason, how: str) -> None:
    cut = replace(sized(reason), reads=sized().reads[:1])
    assert answer(cut) == (
        TEN.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + b"12345",
        how,
    )


def test_a_cut_before_any_byte_of_the_body_is_a_cut_after_the_head() -> None:
    got, how = answer(taped((), reason=EndReason.UPSTREAM_CLOSED))
    assert got.endswith(b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
    assert how == "eof"


def test_a_hundred_times_the_speed_takes_a_hundredth_of_the_time() -> None:
    slow = taped(((10, b"a"), (30_010, b"b")))

    async def scenario() -> float:
        async with playing(slow, factor=100.0) as stage:
            client = await stage.client()
            await client.send(post())
            await client.until(chunk(b"a"))
            started = asyncio.get_running_loop().time()
            await client.until(chunk(b"b"))
            return asyncio.get_running_loop().time() - started

    assert run(scenario()) > 0.25  # the test itself would end before 30 s are over


def test_clients_are_served_side_by_side() -> None:
    held = taped(reason=EndReason.TIMEOUT)

    async def scenario() -> None:
        async with playing(held, replace(taped(), number=2), hold_s=60) as stage:
            first, second = await stage.client(), await stage.client()
            await first.send(post())
            await first.until(chunk(b"data: 1\n\n"))
            await second.send(post())
            await second.until(b"0\r\n\r\n")
            assert len(stage.player.report.played) == 2

    run(scenario())


def test_a_client_that_leaves_in_the_middle_of_its_request_is_forgotten() -> None:
    async def scenario() -> None:
        async with playing(taped()) as stage:
            client = await stage.client()
            await client.send(post(b"12345")[:-1])
            await eventually(lambda: bool(stage.player._plays), "a request")
            client.close()
            await eventually(lambda: not stage.player._plays, "its end")
            assert len(stage.player.report.unplayed) == 1

    run(scenario())


def test_a_client_that_leaves_while_it_is_held_is_forgotten() -> None:
    async def scenario() -> None:
        async with playing(taped(reason=EndReason.TIMEOUT), hold_s=60) as stage:
            client = await stage.client()
            await client.send(post())
            await client.until(chunk(b"data: 1\n\n"))
            await asyncio.sleep(0.05)
            client.reset()
            await eventually(lambda: not stage.player._plays, "its end")

    run(scenario())


def test_stopping_ends_a_request_that_is_not_whole() -> None:
    async def scenario() -> None:
        async with playing(taped()) as stage:
            client = await stage.client()
            await client.send(post(b"12345")[:-1])
            await eventually(lambda: bool(stage.player._plays), "a request")
            await stage.player.stop()
            assert await client.rest() == (b"", "eof")

    run(scenario())


def test_stopping_resets_a_body_that_a_close_would_make_whole() -> None:
    exchange = taped(((10, b"a"), (60_000, b"b")), framing=Framing.CLOSE)

    async def scenario() -> None:
        async with playing(exchange, factor=1.0) as stage:
            client = await stage.client()
            await client.send(post())
            await client.until(b"\r\n\r\na")
            await stage.player.stop()
            assert await client.rest() == (b"", "reset")

    run(scenario())


def test_stopping_cuts_a_client_that_does_not_read() -> None:
    big = taped(((1, b"x" * 16_000_000), (2, b"end")))

    async def scenario() -> None:
        async with playing(big) as stage:
            client = await stage.client()
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await client.send(post())
            await asyncio.sleep(0.1)
            assert stage.player._plays
            await stage.player.stop()
            assert not stage.player._plays

    run(scenario())


EVERY_READ = """
import socket, sys
sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=10)
sock.sendall(bytes.fromhex(sys.argv[2]))
got = []
while not b"".join(got[-9:]).endswith(b"0\\r\\n\\r\\n"):
    got.append(sock.recv(65536))
print(len(got))
"""


@pytest.mark.skipif(platform.system() != "Linux", reason="only Linux tells what was read")
def test_reads_arrive_one_by_one_in_another_process_even_without_any_wait() -> None:
    exchange = taped([(ms, b"x") for ms in range(10, 310)])

    async def scenario() -> bytes:
        async with playing(exchange) as stage:
            port = str(stage.player.listener.port)
            return await output(sys.executable, "-c", EVERY_READ, port, post().hex())

    # The head and the terminator are apart from the body on this tape.
    assert int(run(scenario())) == 1 + 300 + 0


def test_a_client_that_reads_nothing_does_not_hold_the_answer_up_for_long() -> None:
    exchange = taped(((10, b"a"), (20, b"b"), (30, b"c")), end_ms=30)

    async def scenario() -> None:
        async with playing(exchange) as stage:
            with socket.create_connection(("127.0.0.1", stage.player.listener.port)) as client:
                client.sendall(post())
                await eventually(lambda: bool(stage.player._plays), "a request")
                await eventually(lambda: not stage.player._plays, "the end of the answer")
                assert client.recv(65536).endswith(b"1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0\r\n\r\n")

    run(scenario())


def test_requests_that_are_sent_ahead_are_answered_in_turn() -> None:
    one, two = (
        taped(((10, text), (20, text)), body={"n": number}, number=number)
        for number, text in enumerate((b"one", b"two"), 1)
    )

    async def scenario() -> bytes:
        async with playing(one, two) as stage:
            client = await stage.client()
            await client.send(post(b'{"n": 1}') + post(b'{"n": 2}', extra="Connection: close\r\n"))
            return (await client.rest())[0]

    first, second = run(scenario()).split(b"HTTP/1.1 200 OK")[1:]
    assert b"3\r\none\r\n3\r\none\r\n0\r\n\r\n" in first
    assert b"3\r\ntwo\r\n3\r\ntwo\r\n0\r\n\r\n" in second


def test_a_body_is_joined_of_its_pieces_and_one_alone_is_not_copied() -> None:
    piece = b"abc"
    assert joined(b"", piece) is piece
    body: bytes | bytearray = b""
    for _ in range(3):
        body = joined(body, piece)
    assert bytes(body) == piece * 3
    assert piece == b"abc"
