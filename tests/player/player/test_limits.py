"""Whom the player serves, and how much of a request it takes and keeps."""

import pytest

from deltatape.http1.listener import Address
from deltatape.match.schedule import ReplayTempo
from deltatape.player.play_options import PlayOptions, Told
from deltatape.player.player import MARGIN_BYTES, Player
from helpers.playing import answer, playing
from helpers.taped import taped
from helpers.upstream import chunk, connect, post, run

TWO = ((10, b"data: 1\n\n"), (20, b"data: 2\n\n"))


@pytest.mark.parametrize(
    "field",
    ["Host: evil.example", "Host: localhost\r\nOrigin: https://evil.example"],
)
def test_who_is_not_of_this_machine_gets_nothing_of_the_tape(field: str) -> None:
    async def scenario() -> None:
        async with playing(taped(TWO)) as stage:
            for method, length in ((b"POST", 9), (b"HEAD", 0)):
                client = await stage.client()
                head = b"%b /v1/chat/completions HTTP/1.1\r\n%b\r\nContent-Length: %d\r\n\r\n"
                await client.send(head % (method, field.encode(), length))
                got, _ = await client.rest()  # before the body: it is of no interest
                assert got.startswith(b"HTTP/1.1 403 ")
                assert b"x-should-retry: false" in got
                assert got.endswith(b"\r\n\r\n") == (method == b"HEAD")
            report = stage.player.report
            assert [one.asking.method for one in report.missed] == ["POST", "HEAD"]
            assert len(report.unplayed) == 1

    run(scenario())


def test_pages_of_this_machine_are_served() -> None:
    got, _ = answer(
        taped(TWO), post(extra="Origin: http://localhost:5173\r\nConnection: close\r\n")
    )
    assert got.startswith(b"HTTP/1.1 200 ")


def test_the_report_has_bodies_only_where_they_are_wanted() -> None:
    recorded = taped(TWO, body=b'{"a": 1}')

    async def bodies(*, wanted: bool) -> list[bytes]:
        told: list[Told] = []
        player = Player(
            (recorded,), told.append, PlayOptions(tempo=ReplayTempo(factor=0.0), bodies=wanted)
        )
        await player.start(Address("127.0.0.1", 0))
        for body in (b'{"a": 2}', b'{"a": 1}'):
            client = await connect(player.listener.port)
            await client.send(post(body, extra="Connection: close\r\n"))
            await client.rest()
        await player.stop()
        return [one.asking.body for one in told]

    assert run(bodies(wanted=True)) == [b'{"a": 2}', b'{"a": 1}']
    assert run(bodies(wanted=False)) == [b"", b""]


@pytest.mark.parametrize("field", [b"Transfer-Encoding: chunked", b"Content-Length: 9000000000"])
def test_a_body_that_is_longer_than_any_on_the_tape_is_not_read(field: bytes) -> None:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n%b\r\n\r\n" % field

    async def scenario() -> None:
        async with playing(taped(TWO)) as stage:
            client = await stage.client()
            await client.send(head)
            if b"chunked" in field:
                piece = chunk(b"x" * 1_000_000)
                for _ in range(MARGIN_BYTES // 1_000_000 + 2):
                    await client.send(piece)
            got, _ = await client.rest()
            assert got.startswith(b"HTTP/1.1 400 ")
            assert b"its body has more than" in got
            (missed,) = stage.player.report.missed
            assert missed.asking.body == b""

    run(scenario())


def test_a_client_of_http_1_0_is_not_told_to_continue() -> None:
    head = (
        b"POST /v1/chat/completions HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    )
    got, _ = answer(taped(TWO, body=b"{}"), head + b"{}")
    assert got.startswith(b"HTTP/1.1 200 ")


def test_a_long_target_does_not_come_back_whole() -> None:
    async def scenario() -> None:
        async with playing(taped(TWO)) as stage:
            client = await stage.client()
            await client.send(post(target="/v1/x?api_key=sk-fake-000000&b=" + "a" * 60_000))
            got, _ = await client.rest()
            assert len(got) < 2000
            assert b"sk-fake" not in got
            (missed,) = stage.player.report.missed
            assert len(missed.asking.target) <= 4096

    run(scenario())
