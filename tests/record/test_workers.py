"""`deltatape record --workers N`: several processes share the port, and record as one."""

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import sys
import threading
import urllib.request
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from deltatape.demo.demo import Background
from deltatape.diagnose.check_tape import check_exchanges
from deltatape.errors import TapeFormatError, UsageError
from deltatape.model.exchange import EndReason
from deltatape.model.rule_settings import DEFAULTS
from deltatape.record.workers import NumberPipe
from deltatape.store.reader import Tape, open_tape
from deltatape.store.shards import ShardedTape, open_recording
from helpers.chat import FINISH, sse
from helpers.console import called
from helpers.exchanges import (
    CALL_MESSAGE,
    CALL_REPLY,
    TEXT,
    TEXT_REPLY,
    USER,
    asks,
    assistant,
    call,
    result,
    user,
)
from helpers.program import program
from helpers.upstream import SSE_HEAD, Peer, chunk, connect, eventually, post, provider, run

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds processes in /proc")

ASKED = asks(USER)
ANSWERED = asks(USER, CALL_MESSAGE, result("c1"))
PRUNED = asks(USER, assistant(text="Hello"), user("Thank you."))
"""The next turn of an app that forgets calls which are answered."""
TWO = user("Two, please.")
TWO_CALLS = [*call(), *call("find", index=1), FINISH]
LOST = asks(TWO, CALL_MESSAGE, result("c1"))
"""That of an app that has lost one of two calls."""


async def answer(peer: Peer) -> None:
    """A provider that calls a tool, and answers in text once that has answered, or the user."""
    while True:
        _, body = await peer.request()
        history = json.loads(body).get("messages", [USER, USER])
        first = len(history) == 1 and "weather" in history[0]["content"]
        chunks = CALL_REPLY if first else TEXT_REPLY
        reply = sse(*(TWO_CALLS if history == [TWO] else chunks))
        await peer.send(SSE_HEAD + chunk(reply) + b"0\r\n\r\n")


@dataclass
class Sharing:
    """A recorder with workers."""

    running: Background
    folder: Path
    status: str
    clients: dict[int, Peer] = field(default_factory=dict)
    """A connection that is kept for each worker."""

    def tapes(self) -> list[Tape]:
        while True:
            # One was renamed meanwhile, or has no header yet.
            with contextlib.suppress(UsageError, TapeFormatError):
                return [open_tape(path) for path in sorted(self.folder.glob("*.tape"))]

    def workers(self) -> list[int]:
        """The processes that record."""
        return workers_of(self.running.process.pid)

    async def asked(self) -> dict[str, Any]:
        """The status."""
        status: dict[str, Any] = json.loads(await asyncio.to_thread(_got, f"{self.status}/status"))
        return status

    async def shows(self, **numbers: int) -> dict[str, Any]:
        """The status once it has these numbers."""
        status: dict[str, Any] = {}
        for _ in range(1000):
            status = await self.asked()
            if numbers.items() <= status.items():
                return status
            await asyncio.sleep(0.01)
        raise AssertionError(f"{numbers} are not in {status}")

    async def client_of(self, index: int) -> Peer:
        """A connection to that worker, which is kept: the system chooses for each new one."""
        while index not in self.clients:
            before = {tape.path: opened(tape) for tape in self.tapes()}
            client = await connect(self.running.port)
            changed = partial(self.changed, before)
            await eventually(lambda: len(changed()) == 1, "the connection on a tape")  # noqa: B023 - awaited
            (tape,) = changed()
            assert tape.header.shard is not None
            self.clients.setdefault(tape.header.shard.index, client)
        return self.clients[index]

    def changed(self, before: dict[str, int]) -> list[Tape]:
        return [tape for tape in self.tapes() if opened(tape) > before.get(tape.path, 0)]

    async def said(self, pattern: str) -> str:
        return await asyncio.to_thread(self.running.wait_for, pattern)

    async def stop(self, number: int = signal.SIGINT) -> tuple[int, str]:
        return await asyncio.to_thread(self.running.stop, number)


def opened(tape: Tape) -> int:
    return len([change for change in open_tape(tape.path).clients if change.opened])


def workers_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [each for each in map(int, children) if b"deltatape.record\0" in command_of(each)]


def command_of(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def _got(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=20) as response:  # noqa: S310 - on loopback
        data: bytes = response.read()
        return data


async def exchange(client: Peer, request: object) -> bytes:
    """One exchange on a kept connection."""
    await client.send(post(json.dumps(request).encode()))
    return await client.until(b"\r\n0\r\n\r\n")


@contextlib.asynccontextmanager
async def sharing(
    folder: Path, port: int, *options: str, workers: int = 2
) -> AsyncIterator[Sharing]:
    ready = folder / "ready.json"
    arguments = ("record", "--listen", "127.0.0.1:0", "--workers", str(workers), "--to", "tapes")
    more = ("--upstream", f"http://127.0.0.1:{port}", "--ready-file", str(ready))
    with program(*arguments, *more, "--control", "127.0.0.1:0", *options, folder=folder) as running:
        await asyncio.to_thread(running.wait_for, "  health ")
        document = json.loads(ready.read_text())
        yield Sharing(running, folder / "tapes", document["control"])


def recording(folder: Path) -> ShardedTape:
    tape = open_recording(min((folder / "tapes").glob("*.tape")))
    assert isinstance(tape, ShardedTape)
    assert tape.missing == ()
    return tape


def codes(tape: Tape) -> list[str]:
    report = check_exchanges("x", tape.exchanges(), DEFAULTS)
    return [each.finding.code for each in report.reported]


def findings(told: str) -> list[str]:
    return re.findall(r"^    (?:error|warning|info) ([A-Z]\d+) ", told, re.MULTILINE)


def test_every_byte_reaches_its_client_and_a_tape(tmp_path: Path) -> None:
    bodies = [b'{"messages":[{"role":"user","content":"%d"}]}' % each for each in range(60)]

    async def ask(port: int, some: list[bytes]) -> None:
        client = await connect(port)
        for body in some:
            got = await exchange(client, json.loads(body))
            assert got.endswith(chunk(sse(*TEXT_REPLY)) + b"0\r\n\r\n")

    async def scenario() -> None:
        async with provider(answer) as port, sharing(tmp_path, port, workers=3) as shared:
            asking = (ask(shared.running.port, bodies[at::15]) for at in range(15))
            await asyncio.gather(*asking)
            code, told = await shared.stop()
            assert code == 0
            assert "60 exchanges taped, 0 with findings" in told

    run(scenario(), 120)
    tape = recording(tmp_path)
    exchanges = list(tape.exchanges())
    assert sorted(each.number for each in exchanges) == [*range(1, 61)]
    assert all(each.end is not None and each.end.reason is EndReason.COMPLETE for each in exchanges)
    assert all(each.body == sse(*TEXT_REPLY) for each in exchanges)
    asked = [json.loads(each.request.body)["messages"][0]["content"] for each in exchanges]
    assert {*map(str, range(60))} == {*asked}
    assert len({shard.header.recorded_at for shard in tape.shards}) == 1
    assert sorted(shard.header.shard.index for shard in tape.shards if shard.header.shard) == [
        *(1, 2, 3)
    ]
    assert codes(tape) == []
    assert all(shard.stopped for shard in tape.shards)


def test_a_conversation_on_several_workers_is_judged_as_a_whole(tmp_path: Path) -> None:
    async def scenario() -> str:
        async with provider(answer) as port, sharing(tmp_path, port) as shared:
            for index, request in ((1, ASKED), (2, ANSWERED), (1, PRUNED)):
                await exchange(await shared.client_of(index), request)
            return (await shared.stop())[1]

    told = run(scenario(), 60)
    assert findings(told) == []
    tape = recording(tmp_path)
    assert codes(tape) == []
    assert any(codes(shard) for shard in map(open_tape, (each.path for each in tape.shards)))
    checked = called("check", "tapes", folder=tmp_path)
    assert checked.returncode == 0, checked.stdout


def test_a_call_that_was_lost_between_workers_is_found(tmp_path: Path) -> None:
    async def scenario() -> tuple[int, str]:
        async with (
            provider(answer) as port,
            sharing(
                tmp_path, port, "--fail-on", "warning", "--on-finding", "cat >>found"
            ) as shared,
        ):
            await exchange(await shared.client_of(1), asks(TWO))
            await exchange(await shared.client_of(2), LOST)
            await shared.said("    warning C0")
            assert (await shared.asked())["with_findings"] == 1
            return await shared.stop()

    code, told = run(scenario(), 60)
    assert code == 1
    assert codes(recording(tmp_path)) == findings(told)
    (found,) = findings(told)
    assert found.startswith("C0")
    assert json.loads((tmp_path / "found").read_text())["findings"][0]["code"] == found


def test_the_next_request_may_come_to_another_worker_at_once(tmp_path: Path) -> None:
    """Each next request comes to another worker as soon as the answer is there."""

    async def scenario() -> str:
        async with provider(answer) as port, sharing(tmp_path, port) as shared:
            one, other = [await shared.client_of(index) for index in (1, 2)]
            for day in range(40):
                asked = user(f"What is the weather on day {day}?")
                await exchange(one, asks(asked))
                await exchange(other, asks(asked, CALL_MESSAGE, result("c1", f"{day}")))
                one, other = other, one
            return (await shared.stop())[1]

    told = run(scenario(), 60)
    numbers = [int(each) for each in re.findall(r"^#(\d+) POST", told, re.MULTILINE)]
    assert sorted(numbers) == [*range(1, 81)]
    assert findings(told) == codes(recording(tmp_path)) == []


def test_the_status_is_that_of_all_workers(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(answer) as port, sharing(tmp_path, port) as shared:
            for index in (1, 2):
                await exchange(await shared.client_of(index), ASKED)
            refused = await connect(shared.running.port)
            await refused.send(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
            await refused.rest()
            await shared.said("refused a request .403")
            status = await shared.shows(exchanges=2, refused=1, active=0)
            assert status["trouble"] is None
            assert sorted(status["tapes"]) == sorted(
                str(Path(tape.path).relative_to(tmp_path)) for tape in shared.tapes()
            )
            assert (await shared.stop(signal.SIGTERM))[0] == 0

    run(scenario(), 60)
    assert {tape.watch.stop for tape in recording(tmp_path).shards} == {"sigterm"}


def test_streams_may_end_and_a_second_signal_cuts_them(tmp_path: Path) -> None:
    async def hang(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(sse(TEXT, done=False)))
        await peer.reader.read()

    async def scenario() -> tuple[int, str]:
        async with (
            provider(hang) as port,
            sharing(tmp_path, port, "--grace", "60s", workers=3) as shared,
        ):
            clients = [await connect(shared.running.port) for _ in range(6)]
            for client in clients:
                await client.send(post())
                await client.until(b"Hello")
            await shared.shows(active=len(clients))
            shared.running.process.send_signal(signal.SIGINT)
            await shared.said("stopping: 6 streams may go on for 60 s")
            return await shared.stop()

    code, told = run(scenario(), 60)
    assert code == 0
    assert "Traceback" not in told
    exchanges = list(recording(tmp_path).exchanges())
    assert [each.end and each.end.reason for each in exchanges] == [EndReason.STOPPED] * 6


def test_a_worker_that_is_killed_is_replaced_and_the_others_go_on(tmp_path: Path) -> None:
    async def scenario() -> tuple[int, str]:
        async with provider(answer) as port, sharing(tmp_path, port, "--strict") as shared:
            one, other = [await shared.client_of(index) for index in (1, 2)]
            await exchange(other, ASKED)
            before = {tape.path for tape in shared.tapes()}
            first, second = shared.workers()
            os.kill(first, signal.SIGKILL)
            assert (await one.rest())[0] == b""
            await shared.said("TAPING IN TROUBLE: worker 1 was killed by SIGKILL.*takes its place")
            await exchange(other, ANSWERED)
            await eventually(lambda: len(shared.tapes()) == 3, "a new tape")
            (new,) = {tape.path for tape in shared.tapes()} - before
            del shared.clients[1]
            await eventually(lambda: len(shared.workers()) == 2, "a new worker")
            assert second in shared.workers()
            await exchange(await shared.client_of(1), PRUNED)
            await eventually(lambda: len(open_tape(new)) == 1, "its exchange on the tape")
            status = await shared.asked()
            assert "worker 1" in (status["trouble"] or status["past_trouble"]["problem"])
            return await shared.stop()

    code, told = run(scenario(), 60)
    assert code == 125
    assert findings(told) == []
    tape = recording(tmp_path)
    assert len(tape.shards) == 3
    numbers = [number for shard in tape.shards for number in shard.numbers()]
    assert len(numbers) == len({*numbers})
    assert codes(tape) == []
    assert f"{len(numbers)} exchanges taped" in told


def test_workers_end_with_a_session_that_is_killed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(answer) as port, sharing(tmp_path, port) as shared:
            await exchange(await shared.client_of(1), ASKED)
            pids = shared.workers()
            shared.running.process.kill()
            await eventually(lambda: not any(map(command_of, pids)), "the end of the workers")

    run(scenario(), 60)
    assert {tape.watch.stop for tape in recording(tmp_path).shards} == {"orphaned"}


def test_what_lies_around_a_finding_is_kept_on_all_tapes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(answer) as port, sharing(tmp_path, port, "--keep", "1h") as shared:
            assert all(".ring" in tape.path for tape in shared.tapes())
            await exchange(await shared.client_of(1), asks(TWO))
            await exchange(await shared.client_of(2), LOST)
            await eventually(
                lambda: not any(".ring" in tape.path for tape in shared.tapes()), "pinned tapes"
            )
            assert (await shared.stop())[0] == 0

    run(scenario(), 60)
    recording(tmp_path)


def test_all_workers_together_keep_to_the_budget(tmp_path: Path) -> None:
    large = asks(user("x" * 250_000))
    sizes = []

    async def scenario() -> None:
        async with (
            provider(answer) as port,
            sharing(tmp_path, port, "--keep", "8MB", workers=4) as shared,
        ):
            clients = [await shared.client_of(index) for index in (1, 2, 3, 4)]
            for _ in range(14):
                for client in clients:
                    await exchange(client, large)
                await eventually(lambda: kept(shared.folder) <= 8_000_000, "old tapes are gone")
                sizes.append(kept(shared.folder))
            assert (await shared.stop())[0] == 0

    run(scenario(), 300)
    assert max(sizes) > 4_000_000


def kept(folder: Path) -> int:
    """How large the segments of a ring are together."""
    size = 0
    for path in folder.glob("*.ring*.tape"):
        with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
            size += path.stat().st_size
    return size


def test_requests_that_name_a_tape_get_one_of_each_worker(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(answer) as port, sharing(tmp_path, port) as shared:
            for index, request in ((1, ASKED), (2, ANSWERED)):
                client = await shared.client_of(index)
                await client.send(
                    post(json.dumps(request).encode(), "/s/weather/v1/chat/completions")
                )
                await client.until(b"\r\n0\r\n\r\n")
            assert findings((await shared.stop())[1]) == []

    run(scenario(), 60)
    tape = open_recording(tmp_path / "tapes" / "weather.tape")
    assert isinstance(tape, ShardedTape)
    assert tape.missing == ()
    assert [Path(each.path).name for each in tape.shards] == ["weather.tape", "weather-2.tape"]
    assert len(tape) == 2
    assert codes(tape) == []


def test_a_port_that_is_in_use_is_refused_also_by_another_run(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(answer) as port, sharing(tmp_path, port) as shared:
            address = f"127.0.0.1:{shared.running.port}"
            for workers in ("1", "2"):
                given = ("--listen", address, "--workers", workers, "--to", "other")
                told = await asyncio.to_thread(called, "record", *given, folder=tmp_path)
                assert told.returncode == 2
                assert f"cannot listen on {address}: Address already in use" in told.stderr.decode()

    run(scenario(), 60)
    assert not list((tmp_path / "other").glob("*.tape"))


def test_an_upstream_that_is_the_recorder_itself_is_refused(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = ("--listen", f"127.0.0.1:{port}", "--upstream", f"http://127.0.0.1:{port}")
    told = called("record", "--workers", "2", "--to", "tapes", *given, folder=tmp_path)
    assert told.returncode == 2
    assert "is deltatape's own address" in told.stderr.decode()
    assert not list((tmp_path / "tapes").glob("*.tape"))


def test_one_worker_is_a_recorder_as_ever(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(answer) as port, sharing(tmp_path, port, workers=1) as shared:
            await exchange(await connect(shared.running.port), ASKED)
            assert shared.workers() == []
            await shared.stop()

    run(scenario(), 60)
    (path,) = (tmp_path / "tapes").glob("*.tape")
    assert open_tape(path).header.shard is None
    assert "-w1" not in path.name


def test_numbers_are_given_once_and_without_gaps() -> None:
    async def scenario() -> list[int]:
        pipe, got = NumberPipe(), list[int]()
        while len(got) < 20_000:
            try:
                got.append(int.from_bytes(os.read(pipe.reader, 8)))
            except BlockingIOError:
                await asyncio.sleep(0)
        pipe.close()
        return got

    assert run(scenario()) == [*range(1, 20_001)]


def test_a_run_ends_when_no_worker_can_be_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = tmp_path / "ready.json"

    def kill() -> None:
        while not ready.exists():
            threading.Event().wait(0.01)
        monkeypatch.setattr(sys, "executable", shutil.which("false"))
        for pid in workers_of(os.getpid()):
            os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    given = ("--listen", "127.0.0.1:0", "--workers", "2", "--ready-file", str(ready))
    told = called("record", "--to", "tapes", *given, folder=tmp_path)
    killer.join()
    assert told.returncode == 125
    said = told.stderr.decode()
    for index in (1, 2):
        assert f"worker {index} was killed by SIGKILL, and its streams with it; another one" in said
        assert f"worker {index} ended with exit code 1, and its streams with it; it is not" in said
    assert "0 exchanges taped" in said
