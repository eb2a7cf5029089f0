"""A tape is played, the provider is asked for the rest, and the tape has it afterwards."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from deltatape.clock import SystemClock
from deltatape.errors import UsageError
from deltatape.gateway.outbound import outbound_from
from deltatape.gateway.routes import parse_upstream
from deltatape.http1.listener import Address
from deltatape.model.exchange import EndReason
from deltatape.player.playing import Playing
from deltatape.replay.auto import AutoPlayer, Ways
from deltatape.replay.environment import PLACEHOLDER
from deltatape.replay.report import told as as_told
from deltatape.store.reader import open_tape
from helpers.automatic import CLOSE, KEY, Told, asked, auto
from helpers.upstream import connect, post, run


def test_what_is_on_the_tape_is_played_and_what_is_not_is_there_next_time(tmp_path: Path) -> None:
    tape, first, second = tmp_path / "x.tape", Told(), Told()

    async def scenario() -> None:
        async with auto(tape, first) as machine:
            assert b'data: {"a":1}' in await asked(machine, b'{"a":1}')
            assert b'data: {"a":2}' in await asked(machine, b'{"a":2}')
        assert [e.request.body for e in machine.recorded.kept] == [b'{"a":1}', b'{"a":2}']
        async with auto(tape, second) as machine:
            assert b'data: {"a":2}' in await asked(machine, b'{"a":2}')
            assert b'data: {"a":3}' in await asked(machine, b'{"a":3}')
        report = machine.report
        assert [one.exchange.number for one in report.played] == [2]
        assert [one.number for one in report.unplayed] == [1]
        assert report.missed == ()

    run(scenario())
    assert [body for _, body in second.asked] == [b'{"a":3}']
    assert [e.request.body for e in open_tape(tape)] == [b'{"a":1}', b'{"a":2}', b'{"a":3}']
    where = "POST /openai/v1/chat/completions"
    why = "the nearest recorded request differs; $.a: recorded 1, received 3"
    assert second.lines == [
        f"asking the provider: {where}: {why}",
        f"recorded {tape}#3 POST /v1/chat/completions (200)",
    ]
    assert first.lines[0] == f"asking the provider: {where}: nothing is recorded yet"
    assert b"sk-fake-000000" in first.asked[0][0]
    assert "sk-fake" not in tape.read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["x.tape"]


def test_a_key_that_the_environment_tells_is_masked_wherever_it_stands(tmp_path: Path) -> None:
    tape, told = tmp_path / "x.tape", Told()

    async def scenario() -> None:
        async with auto(tape, told, {"MY_API_KEY": "fake-000000-fake"}) as machine:
            await asked(machine, b'{"a":"fake-000000-fake"}')

    run(scenario())
    assert b"fake-000000-fake" in told.asked[0][1]
    assert "fake-000000-fake" not in tape.read_text()


def test_what_is_told_of_requests_has_no_credentials_in_it(tmp_path: Path) -> None:
    tape, told = tmp_path / "x.tape", Told()
    key, known = "sk-proj-fake000000fake000000fake000000", "fake-000000-fake"

    async def scenario() -> None:
        async with auto(tape, told, {"MY_API_KEY": known}) as machine:
            await asked(machine, b'{"a":1}')
            await asked(machine, b'{"a":"%b %b"}' % (key.encode(), known.encode()))
            for target in (f"/openai/v1?{key}", f"/t/{known[:9]}/v1", f"/{key}/{known}?key=fake-1"):
                client = await connect(machine.listener.port)
                await client.send(post(b"{}", target, KEY + CLOSE))
                await client.rest()
        assert machine.report.missed
        for one in machine.report.missed:
            told.lines += [one.message, one.asking.target.decode(), *as_told(one)]

    run(scenario())
    assert len(told.lines) > 8
    for line in told.lines:
        assert "fake" not in line


def test_the_placeholder_of_a_missing_key_never_leaves(tmp_path: Path) -> None:
    tape, told = tmp_path / "x.tape", Told()

    async def scenario() -> None:
        async with auto(tape, told) as machine:
            environment = machine.environment("http://127.0.0.1:1")
            assert environment["OPENAI_BASE_URL"] == "http://127.0.0.1:1/openai/v1"
            assert environment["OPENAI_API_KEY"] == PLACEHOLDER
            got = await asked(machine, b"{}", f"Authorization: Bearer {PLACEHOLDER}\r\n")
            assert got.startswith(b"HTTP/1.1 403 ")
            assert b"there is no key to ask the provider with" in got
            client = await connect(machine.listener.port)
            await client.send(post(b"{}", f"/gemini/x?key={PLACEHOLDER}", CLOSE))
            assert (await client.rest())[0].startswith(b"HTTP/1.1 403 ")
        assert len(machine.report.missed) == 2

    run(scenario())
    assert told.asked == []
    assert not tape.exists()


def test_what_the_gateway_refuses_and_what_was_cut_are_misses(tmp_path: Path) -> None:
    told = Told()

    async def scenario() -> None:
        async with auto(tmp_path / "x.tape", told) as machine:
            client = await connect(machine.listener.port)
            await client.send(post(b"{}", "/nowhere/v1", CLOSE))
            assert (await client.rest())[0].startswith(b"HTTP/1.1 404 ")
            hanging = await connect(machine.listener.port)
            await hanging.send(post(b'"hang"', "/openai/v1/x", KEY))
            await hanging.until(b"\r\n\r\n")
            silent = await connect(machine.listener.port)
            await silent.send(b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab")
        first, second = machine.report.missed
        assert "nowhere" in first.message
        assert second.message == "not put onto the tape: it went on when the run ended"

    run(scenario())


def test_bytes_that_are_no_request_are_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with auto(tmp_path / "x.tape", Told()) as machine:
            client = await connect(machine.listener.port)
            await client.send(b"nonsense\r\n\r\n")
            assert (await client.rest())[0].startswith(b"HTTP/1.1 400 ")

    run(scenario())


def test_an_answer_that_the_client_did_not_want_to_the_end_is_taped_as_such(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with auto(tmp_path / "x.tape", Told()) as machine:
            client = await connect(machine.listener.port)
            await client.send(post(b'"hang"', "/openai/v1/x", KEY))
            await client.until(b"\r\n\r\n")
            client.reset()
            early = await connect(machine.listener.port)
            await early.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nab")
            early.close()
            await asyncio.sleep(0.1)
        (kept,) = machine.recorded.kept
        assert kept.end is not None
        assert kept.end.reason is EndReason.CLIENT_CLOSED

    run(scenario())


def test_an_answer_that_the_application_left_as_it_was_ended_is_a_miss(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with auto(tmp_path / "x.tape", Told()) as machine:
            assert b"200 OK" in await asked(machine, b'{"a":1}')
            client = await connect(machine.listener.port)
            await client.send(post(b'"hang"', "/openai/v1/x", KEY))
            await client.until(b"\r\n\r\n")
            machine.ending()
            machine.ending()
            client.reset()
            await asyncio.sleep(0.1)
        assert len(machine.recorded.kept) == 1
        (missed,) = machine.report.missed
        assert missed.message.endswith(": the application was ended before it was over")
        machine.ending()

    run(scenario())


def test_what_a_killed_run_has_left_is_told(tmp_path: Path) -> None:
    told, left = Told(), tmp_path / ".x.abc.new"
    left.mkdir()
    (left / "new.tape").touch()

    async def scenario() -> None:
        async with auto(tmp_path / "x.tape", told):
            pass

    run(scenario())
    assert told.lines[0].startswith(f"note: {left}: recorded by a run that was killed")


def test_trouble_with_the_tape_is_loud(tmp_path: Path) -> None:
    told = Told()

    async def scenario() -> None:
        async with auto(tmp_path / "x.tape", told) as machine:
            machine.alarm("disk full")

    run(scenario())
    assert told.lines == ["TAPING IN TROUBLE: disk full"]


def test_an_upstream_that_is_itself_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        told = Told()
        async with auto(tmp_path / "x.tape", told) as other:
            port = other.listener.port
        ways_port = f"openai=http://127.0.0.1:{port}"
        with pytest.raises(UsageError, match="is deltatape's own address"):
            async with auto_at(tmp_path / "x.tape", ways_port, port):
                raise AssertionError

    run(scenario())
    assert list(tmp_path.iterdir()) == []


@asynccontextmanager
async def auto_at(tape: Path, upstream: str, port: int) -> AsyncIterator[AutoPlayer]:
    """A machine at a port of its own choice."""
    ways = Ways(
        upstreams=(parse_upstream(upstream),),
        outbound=outbound_from({}),
        environment={},
        folder=tape.parent,
        mask_key=b"k" * 32,
        clock=SystemClock(),
        say=print,
    )
    machine = AutoPlayer(tape, (), Playing(), print, ways)
    await machine.start(Address("127.0.0.1", port))
    yield machine


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
