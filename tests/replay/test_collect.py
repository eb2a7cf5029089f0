"""Who answers is known when a request is whole, or too long to be on the tape."""

import asyncio
from pathlib import Path

from deltatape.replay.environment import PLACEHOLDER
from helpers.automatic import CLOSE, KEY, Told, asked, auto
from helpers.upstream import connect, post, run


def test_a_client_that_waits_to_go_on_is_told_to(tmp_path: Path) -> None:
    told, tape = Told(), tmp_path / "x.tape"

    async def scenario() -> None:
        for _ in range(2):
            async with auto(tape, told) as machine:
                client = await connect(machine.listener.port)
                head = post(b"{}", "/openai/v1/x", f"{KEY}{CLOSE}Expect: 100-continue\r\n")
                await client.send(head.removesuffix(b"{}"))
                assert await client.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
                await client.send(b"{}")
                assert b"data: {}" in (await client.rest())[0]

    run(scenario())
    assert len(told.asked) == 1
    assert b"expect" not in told.asked[0][0].lower()


def test_who_is_not_of_this_machine_gets_neither_tape_nor_provider(tmp_path: Path) -> None:
    told = Told()

    async def scenario() -> None:
        async with auto(tmp_path / "x.tape", told) as machine:
            got = await asked(machine, b"{}", "Origin: https://evil.example\r\n")
            assert got.startswith(b"HTTP/1.1 403 ")
            assert len(machine.report.missed) == 1

    run(scenario())
    assert told.asked == []


def test_a_body_that_cannot_be_on_the_tape_is_not_collected_but_passed_on(tmp_path: Path) -> None:
    tape, told = tmp_path / "x.tape", Told()
    body = b"x" * 18_000_000

    async def scenario() -> None:
        async with auto(tape, told) as machine:
            assert (await asked(machine, body)).count(b"x") >= len(body)
            client = await connect(machine.listener.port)
            await client.send(post(body, "/openai/v1/x", f"Authorization: {PLACEHOLDER}\r\n"))
            assert (await client.rest())[0].startswith(b"HTTP/1.1 403 ")

    run(scenario())
    assert [len(body) for _, body in told.asked] == [len(body)]


def test_a_client_that_lags_gets_all_of_a_long_answer(tmp_path: Path) -> None:
    told, size = Told(), 4_000_000

    async def scenario() -> None:
        async with auto(tmp_path / "x.tape", told) as machine:
            client = await connect(machine.listener.port)
            transport = client.writer.transport
            assert isinstance(transport, asyncio.Transport)
            transport.pause_reading()
            await client.send(post(b"x" * size, "/openai/v1/x", KEY + CLOSE))
            await asyncio.sleep(0.3)
            transport.resume_reading()
            assert (await client.rest())[0].count(b"x") >= size

    run(scenario())
