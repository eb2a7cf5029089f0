"""A tape is played, the provider is asked for the rest, and the tape has it afterwards."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from deltatape import __version__
from deltatape.clock import SystemClock
from deltatape.errors import UsageError
from deltatape.gateway.outbound import outbound_from
from deltatape.gateway.routes import parse_upstream
from deltatape.http1.listener import Address
from deltatape.match.schedule import ReplayTempo
from deltatape.model.exchange import EndReason, Exchange, Framing, Source
from deltatape.player.play_options import (
    CorrectedRequest,
    MissedRequest,
    PlayedRequest,
    PlayOptions,
)
from deltatape.replay.auto import AutoPlayer, ProviderRoutes, StagingTape
from deltatape.replay.environment import PLACEHOLDER
from deltatape.replay.playback import end
from deltatape.replay.report import request_lines
from deltatape.store.reader import open_tape
from deltatape.store.writer import TapeWriter
from deltatape.tape.tap import ExchangeTap, TapeTap
from helpers.tapes import MASKER
from helpers.upstream import SSE_HEAD, Peer, chunk, connect, post, provider, run

# A machine of `--mode auto` in the test's loop, and its provider, which repeats what it gets.

ANY = Address("127.0.0.1", 0)
KEY = "Authorization: Bearer sk-fake-000000\r\n"
CLOSE = "Connection: close\r\n"


@dataclass
class Told:
    """What a machine told, and what the provider was asked."""

    what: list[PlayedRequest | MissedRequest | CorrectedRequest] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    asked: list[tuple[bytes, bytes]] = field(default_factory=list)

    async def serve(self, peer: Peer) -> None:
        """A provider that repeats the body."""
        while True:
            head, body = await peer.request()
            self.asked.append((head, body))
            if b"hang" in body:
                await peer.send(SSE_HEAD)
                await asyncio.sleep(60)
            await peer.send(SSE_HEAD + chunk(b"data: " + body + b"\n\n") + chunk(b""))


@asynccontextmanager
async def auto(
    tape: Path, told: Told, environment: Mapping[str, str] | None = None, upstream: str = ""
) -> AsyncIterator[AutoPlayer]:
    """A machine for `tape`, before a provider at `/openai`."""
    async with provider(told.serve) as port:
        ways = ProviderRoutes(
            upstreams=(parse_upstream(upstream or f"openai=http://127.0.0.1:{port}"),),
            outbound=outbound_from({}),
            environment=environment or {},
            folder=tape.parent,
            mask_key=b"k" * 32,
            clock=SystemClock(),
            say=told.lines.append,
        )
        playing = PlayOptions(tempo=ReplayTempo(factor=0.0))
        machine = AutoPlayer(tape, on(tape), playing, told.what.append, ways)
        await machine.start(ANY)
        try:
            yield machine
        finally:
            await end(machine)


def on(tape: Path) -> list[Exchange]:
    """What is on a tape, if there is one."""
    return list(open_tape(tape)) if tape.exists() else []


async def asked(machine: AutoPlayer, body: bytes, extra: str = KEY) -> bytes:
    """What a client gets."""
    client = await connect(machine.listener.port)
    await client.send(post(body, "/openai/v1/chat/completions", extra + CLOSE))
    return (await client.rest())[0]


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
        f"forwarding to the provider: {where}: {why}",
        f"recorded {tape}#3 POST /v1/chat/completions (200)",
    ]
    assert first.lines[0] == f"forwarding to the provider: {where}: the tape has no request yet"
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
            told.lines += [one.message, one.query.target.decode(), *request_lines(one)]

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
            assert b"there is no API key to send it to the provider" in got
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
        assert (
            second.message == "not added to the tape: it was still in progress when the run ended"
        )

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
        assert missed.message.endswith(": the application was stopped before it was complete")
        machine.ending()

    run(scenario())


def test_what_a_killed_run_has_left_is_reported(tmp_path: Path) -> None:
    told, left = Told(), tmp_path / ".x.abc.new"
    left.mkdir()
    (left / "new.tape").touch()

    async def scenario() -> None:
        async with auto(tmp_path / "x.tape", told):
            pass

    run(scenario())
    assert told.lines[0].startswith(f"note: {left}: recordings of a killed run")


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
    ways = ProviderRoutes(
        upstreams=(parse_upstream(upstream),),
        outbound=outbound_from({}),
        environment={},
        folder=tape.parent,
        mask_key=b"k" * 32,
        clock=SystemClock(),
        say=print,
    )
    machine = AutoPlayer(tape, (), PlayOptions(), print, ways)
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


CLOCK = SystemClock()


def write(
    folder: Path, *feeds: Callable[[ExchangeTap], None], source: Source = Source.GATEWAY
) -> Path:
    """A tape in `folder` with an exchange for each of `feeds`."""
    writer = TapeWriter.create(
        folder, "new", clock=CLOCK, tool=f"deltatape {__version__}", source=source, alarm=print
    )
    for place, feed in enumerate(feeds, 1):
        tap = ExchangeTap(place, writer.put, MASKER)
        tap.request(
            place * 100,
            id=f"{os.urandom(13).hex().upper()}",
            method="POST",
            target=b"/v1/chat/completions",
            upstream="https://api.example.com",
            http="1.1",
            headers=(),
        )
        tap.request_body(place * 100 + 1, b'{"a":%d}' % place)
        tap.request_end(place * 100 + 2)
        feed(tap)
        tap.flush()
    TapeTap(writer.put, MASKER).stop(9000, "replayed", None)
    writer.close()
    assert writer.path is not None
    return writer.path


def answered(status: int, reason: EndReason = EndReason.COMPLETE) -> Callable[[ExchangeTap], None]:
    def feed(tap: ExchangeTap) -> None:
        tap.response(
            1000, status=status, reason=b"", http="1.1", framing=Framing.LENGTH, headers=()
        )
        tap.read(1001, b"data: 1\n\n", None)
        tap.end(1002, reason)

    return feed


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def lost(tap: ExchangeTap) -> None:
    tap.response(1000, status=200, reason=b"", http="1.1", framing=Framing.LENGTH, headers=())
    tap.end(1001, EndReason.COMPLETE, recorder={"lost_records": 1})


def refused(tap: ExchangeTap) -> None:
    tap.end(1000, EndReason.REFUSED, detail="no connection")


def silent(tap: ExchangeTap) -> None:
    tap.end(1000, EndReason.UPSTREAM_CLOSED)


def unfinished(tap: ExchangeTap) -> None:
    tap.flush()


def test_a_tape_that_is_not_there_is_made(tmp_path: Path) -> None:
    tape = tmp_path / "deep" / "x.tape"
    beside = StagingTape(tape)
    folder = beside.make()
    assert (folder.parent, folder.stat().st_mode & 0o777) == (tape.parent, 0o700)
    write(folder, answered(200), answered(429))
    done = beside.splice(folder, CLOCK)
    assert [(e.tape, e.number) for e in done.kept] == [(str(tape), 1), (str(tape), 2)]
    assert done.left_out == ()
    assert names(tape.parent) == ["x.tape"]
    assert open_tape(tape).watch.stop == "replayed"


def test_a_tape_grows_and_keeps_its_mode(tmp_path: Path) -> None:
    tape = write(tmp_path, answered(200))
    tape.chmod(0o644)
    os.utime(tape, (1, 1))
    beside = StagingTape(tape)
    folder = beside.make()
    write(folder, answered(201))
    (kept,) = beside.splice(folder, CLOCK).kept
    assert kept.number == 2
    assert [e.response.status for e in open_tape(tape) if e.response] == [200, 201]
    assert tape.stat().st_mode & 0o777 == 0o644
    assert tape.stat().st_mtime > 1
    assert names(tmp_path) == [tape.name]


def test_what_would_fail_a_test_for_ever_is_left_out(tmp_path: Path) -> None:
    tape = tmp_path / "x.tape"
    beside = StagingTape(tape)
    folder = beside.make()
    stopped = answered(200, EndReason.STOPPED)
    write(folder, refused, answered(200), answered(401), stopped, lost, silent, unfinished)
    done = beside.splice(folder, CLOCK)
    assert [e.number for e in done.kept] == [1]
    assert [e.request.body for e in done.kept] == [b'{"a":2}']
    assert sorted(why for _, why in done.left_out) == [
        "it could not be recorded completely",
        "it was still in progress when the run ended",
        "it was still in progress when the run ended",
        "no connection",
        "the provider did not answer",
        "the provider rejected the API key (status 401)",
    ]


def test_where_nothing_is_worth_it_the_tape_stays_as_it_is(tmp_path: Path) -> None:
    beside = StagingTape(tmp_path / "x.tape")
    folder = beside.make()
    write(folder, refused)
    assert beside.splice(folder, CLOCK).kept == ()
    assert names(tmp_path) == []


def test_what_cannot_be_put_onto_the_tape_is_not_lost(tmp_path: Path) -> None:
    tape = write(tmp_path, answered(200))
    before = tape.read_bytes()
    beside = StagingTape(tape)
    folder = beside.make()
    write(folder, answered(200))
    write(folder, answered(200), source=Source.IMPORT)
    with pytest.raises(UsageError, match=f"what was recorded is in {folder}"):
        beside.splice(folder, CLOCK)
    assert tape.read_bytes() == before
    assert len(names(folder)) == 2


class Intruder:
    """A clock that, when a tape is spliced, has somebody else write to the original."""

    def __init__(self, tape: Path) -> None:
        self._tape = tape

    def now_ns(self) -> int:
        return CLOCK.now_ns()

    def wall_ns(self) -> int:
        with self._tape.open("ab") as file:
            file.write(b'[99999,0,"idle",{}]\n')
        return CLOCK.wall_ns()


def test_what_others_do_to_the_tape_at_the_same_time_is_not_undone(tmp_path: Path) -> None:
    tape = write(tmp_path, answered(200))
    beside = StagingTape(tape)
    folder = beside.make()
    write(folder, answered(200))
    with pytest.raises(UsageError, match=r"changed .*; what was recorded is in "):
        beside.splice(folder, Intruder(tape))
    assert tape.read_bytes().endswith(b'"idle",{}]\n')
    assert "new.tape" in names(folder)


def test_a_tape_that_cannot_grow_is_refused_at_once(tmp_path: Path) -> None:
    imported = write(tmp_path, answered(200), source=Source.IMPORT)
    with pytest.raises(UsageError, match="an imported tape has no times"):
        StagingTape(imported)
    writer = TapeWriter.create(
        tmp_path, "open", clock=CLOCK, tool="deltatape", source=Source.GATEWAY, alarm=print
    )
    assert writer.path is not None
    with pytest.raises(UsageError, match="still being recorded"):
        StagingTape(writer.path)
    writer.close()
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="needs a writable folder"):
        StagingTape(tmp_path / "file" / "x.tape").make()


def test_what_the_application_left_once_it_was_being_ended_stays_away(tmp_path: Path) -> None:
    for until, kept in ((1002, 0), (1003, 1)):
        beside = StagingTape(tmp_path / f"{until}.tape")
        folder = beside.make()
        tape = write(folder, answered(200, EndReason.CLIENT_CLOSED))
        recorded = beside.splice(folder, CLOCK, {tape.name: until})
        assert len(recorded.kept) == kept
        assert len(recorded.left_out) == 1 - kept


def test_only_folders_whose_process_is_gone_are_left_over(tmp_path: Path) -> None:
    beside = StagingTape(tmp_path / "x.tape")
    ours = beside.make()
    empty, full, other = (tmp_path / name for name in (".x.1.new", ".x.2.new", ".y.3.new"))
    for folder in (empty, full, other):
        folder.mkdir()
        write(folder, answered(200)) if folder is not empty else None
    (tmp_path / ".x.4.new").touch()
    assert StagingTape(tmp_path / "x.tape").leftovers() == (full,)
    assert ours.is_dir()
    assert not empty.exists()
    assert other.exists()
    beside.splice(ours, CLOCK)
    assert not ours.exists()


def test_runs_that_end_on_one_tape_at_the_same_time_are_all_on_it(tmp_path: Path) -> None:
    tape = tmp_path / "x.tape"
    several = [StagingTape(tape) for _ in range(8)]
    folders = [beside.make() for beside in several]
    for folder in folders:
        write(folder, *(answered(200) for _ in range(20)))
    with ThreadPoolExecutor(len(several)) as threads:
        done = threads.map(lambda beside, folder: beside.splice(folder, CLOCK), several, folders)
        assert [len(one.kept) for one in done] == [20] * len(several)
    assert len(list(open_tape(tape).exchanges())) == 20 * len(several)
    assert names(tmp_path) == ["x.tape"]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_to_a_tape_stays_one(tmp_path: Path, *, is_there: bool) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "links").mkdir()
    real = tmp_path / "kept" / "x.tape"
    if is_there:
        write(real.parent, answered(200)).rename(real)
    link = tmp_path / "links" / "y.tape"
    link.symlink_to("../kept/x.tape")
    beside = StagingTape(link)
    folder = beside.make()
    write(folder, answered(200))
    beside.splice(folder, CLOCK)
    assert link.is_symlink()
    assert len(list(open_tape(link).exchanges())) == 1 + is_there
    assert (names(link.parent), names(real.parent)) == (["y.tape"], ["x.tape"])
