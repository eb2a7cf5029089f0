"""`record --replace`: a recorder takes the place of another one without a cut."""

import asyncio
import contextlib
import json
import signal
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from deltatape.demo.demo import Background
from deltatape.errors import UsageError
from deltatape.http1.listener import Address, bind_one, close_all, duplicates
from deltatape.model.exchange import EndReason, Exchange
from deltatape.record.handover import Successors, find_predecessor, place_of
from deltatape.record.recording import Listening
from deltatape.store.reader import open_tape
from helpers.chat import sse
from helpers.clients import CLIENTS, PYTHON, SDKS, available
from helpers.console import called
from helpers.exchanges import TEXT_REPLY, USER, asks
from helpers.program import deltatape, environment, program
from helpers.recorded_apps import Provider
from helpers.upstream import SSE_HEAD, Peer, chunk, connect, free_port, post, provider, run

LONG_S = 240.0
ASKED = json.dumps(asks(USER)).encode()
PARTS = [sse(each) for each in TEXT_REPLY]
REPLY = b"".join(PARTS)
END = b"\r\n0\r\n\r\n"


async def streams(peer: Peer) -> None:
    """A provider whose streams go on for a moment."""
    while True:
        await peer.request()
        await peer.send(SSE_HEAD)
        for part in PARTS:
            await peer.send(chunk(part))
            await asyncio.sleep(0.01)
        await peer.send(b"0\r\n\r\n")


@dataclass
class Held:
    """A provider that sends half a reply, and the rest on demand."""

    rest: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(SSE_HEAD + chunk(PARTS[0]))
            await self.rest.wait()
            await peer.send(b"".join(map(chunk, PARTS[1:])) + b"0\r\n\r\n")


@dataclass
class Place:
    """An address that one recorder after another has."""

    folder: Path
    upstream: int
    started: contextlib.ExitStack
    port: int = field(default_factory=free_port)
    control: int = field(default_factory=free_port)

    @property
    def ready(self) -> Path:
        return self.folder / "ready.json"

    async def start(self, *options: str, said: str = "  health ") -> Background:
        """Start the next recorder, and wait until it has said that."""
        running = self.started.enter_context(
            program(*self.arguments(), *options, folder=self.folder)
        )
        await asyncio.to_thread(running.wait_for, said)
        return running

    async def replace(self, *options: str) -> Background:
        """Start the next recorder, and wait until the one before accepts nothing any more."""
        return await self.start(*options, said="  replaced the recorder with pid ")

    def arguments(self) -> tuple[str, ...]:
        return (
            *("record", "--replace", "--listen", f"127.0.0.1:{self.port}", "--to", "tapes"),
            *("--upstream", f"http://127.0.0.1:{self.upstream}"),
            *("--control", f"127.0.0.1:{self.control}", "--ready-file", str(self.ready)),
        )

    def exchanges(self) -> list[Exchange]:
        """Those on all tapes."""
        tapes = [open_tape(path) for path in sorted((self.folder / "tapes").glob("*.tape"))]
        return [each for tape in tapes for each in tape]

    def stops(self) -> list[str | None]:
        """Why the tapes end, in the order in which they began."""
        paths = sorted((self.folder / "tapes").glob("*.tape"))
        return [open_tape(path).watch.stop for path in paths]


@contextlib.contextmanager
def place(folder: Path, upstream: int) -> Iterator[Place]:
    with contextlib.ExitStack() as started:
        yield Place(folder, upstream, started)


async def begun(port: int) -> Peer:
    """A client that has got the first part of a reply."""
    client = await connect(port)
    await client.send(post(ASKED))
    await client.until(chunk(PARTS[0]))
    return client


async def ended(running: Background) -> int:
    """The exit code of a recorder that ends by itself."""
    return await asyncio.to_thread(running.process.wait, 120)


@dataclass
class Load:
    """Clients in a loop: what they got."""

    port: int
    whole: int = 0
    closed: int = 0
    over: asyncio.Event = field(default_factory=asyncio.Event)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    async def keep(self) -> None:
        """A raw client that keeps its connection as long as the recorder does."""
        peer: Peer | None = None
        while not self.over.is_set():
            peer = peer or await connect(self.port)
            await peer.send(post(ASKED))
            head = await peer.until(b"\r\n\r\n")
            got = await peer.until(END)
            assert b"".join(map(chunk, PARTS)) + b"0\r\n\r\n" == got
            self._got()
            if b"\r\nconnection: close\r\n" in head.lower():
                self.closed += 1
                assert await peer.rest() == (b"", "eof")
                peer = None

    async def pool(self, *, reuse: bool) -> None:
        """A pool of connections, as SDKs have; it tries nothing twice, since these are POSTs."""
        connector = aiohttp.TCPConnector(force_close=not reuse)
        url = f"http://127.0.0.1:{self.port}/v1/chat/completions"
        async with aiohttp.ClientSession(connector=connector) as session:
            while not self.over.is_set():
                async with session.post(url, data=ASKED) as answer:
                    assert answer.status == 200
                    assert await answer.read() == REPLY
                self._got()

    async def healthy(self, control: int) -> None:
        """A load balancer that asks for health again and again, between the requests."""
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(force_close=True)
        ) as session:
            while not self.over.is_set():
                async with session.get(f"http://127.0.0.1:{control}/health") as answer:
                    assert answer.status == 200
                if not self.over.is_set():
                    await self._news.wait()

    def _got(self) -> None:
        self.whole += 1
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def end(self) -> None:
        """Ask for nothing more."""
        self.over.set()
        self._tell()

    async def grown(self, by: int) -> None:
        aim = self.whole + by
        while self.whole < aim:
            await self._news.wait()


@pytest.mark.parametrize("workers", [(1, 1, 1), (2, 1, 3, 2)], ids=str)
def test_a_restart_refuses_no_request_and_cuts_no_stream(
    tmp_path: Path, workers: tuple[int, ...]
) -> None:
    async def scenario() -> None:
        async with provider(streams) as upstream:
            with place(tmp_path, upstream) as taken:
                first, *others = (("--workers", str(each)) for each in workers)
                running = [await taken.start(*first)]
                load = Load(taken.port)
                async with asyncio.TaskGroup() as clients:
                    for _ in range(2):
                        clients.create_task(load.keep())
                        clients.create_task(load.pool(reuse=True))
                        clients.create_task(load.pool(reuse=False))
                    clients.create_task(load.healthy(taken.control))
                    for options in others:
                        await load.grown(24)
                        running.append(await taken.replace(*options))
                        told = json.loads(taken.ready.read_text())
                        assert told["pid"] == running[-1].process.pid
                    await load.grown(24)
                    assert [await ended(each) for each in running[:-1]] == [0] * len(others)
                    load.end()
                assert taken.ready.exists()
                code, _ = await asyncio.to_thread(running[-1].stop)
                assert code == 0
                assert not taken.ready.exists()
                exchanges = taken.exchanges()
                assert load.closed > 0
                assert len(exchanges) == load.whole
                assert {each.body for each in exchanges} == {REPLY}
                assert {each.end.reason for each in exchanges if each.end} == {EndReason.COMPLETE}
                stops = taken.stops()
                assert stops.count("sigint") == workers[-1]
                assert stops.count("replaced") == sum(workers[:-1])
                assert list((tmp_path / "state" / "deltatape" / "replace").iterdir()) == []

    run(scenario(), LONG_S)


PYTHON_APP = """
import pathlib, openai
client = openai.OpenAI(api_key="sk-fake-000000", max_retries=0)
while not pathlib.Path("over").exists():
    stream = client.chat.completions.create(
        model="m", stream=True, messages=[{"role": "user", "content": "hi"}])
    parts = [part.choices[0].delta.content or "" for part in stream if part.choices]
    assert "".join(parts) == "Olá, 7°C", parts
    print("whole", flush=True)
"""
NODE_APP = """
import assert from "node:assert";
import { existsSync } from "node:fs";
import OpenAI from "openai";
const client = new OpenAI({apiKey: "sk-fake-000000", maxRetries: 0});
while (!existsSync("over")) {
  const stream = await client.chat.completions.create(
    {model: "m", stream: true, messages: [{role: "user", content: "hi"}]});
  let text = "";
  for await (const part of stream) text += part.choices[0]?.delta?.content ?? "";
  assert.strictEqual(text, "Olá, 7°C");
  console.log("whole");
}
"""


async def lines_of(app: asyncio.subprocess.Process, count: int) -> None:
    """Wait until an app has printed so many lines."""
    assert app.stdout is not None
    for _ in range(count):
        assert await app.stdout.readline() == b"whole\n"


@pytest.mark.parametrize("language", ["python", "node"])
def test_sdks_that_try_nothing_twice_notice_nothing(tmp_path: Path, language: str) -> None:
    python = language == "python"
    available(SDKS[0] if python else SDKS[1])
    (tmp_path / "app.py").write_text(PYTHON_APP)
    (tmp_path / "app.mjs").write_text(NODE_APP)
    (tmp_path / "node_modules").symlink_to(CLIENTS / "node_modules")
    command = (str(PYTHON), "app.py") if python else ("node", "app.mjs")

    async def scenario() -> None:
        served = Provider()
        async with provider(served.serve) as upstream:
            with place(tmp_path, upstream) as taken:
                running = [await taken.start()]
                url = f"http://127.0.0.1:{taken.port}/v1"
                env = {**environment(tmp_path), "OPENAI_BASE_URL": url}
                apps = [
                    await asyncio.create_subprocess_exec(
                        *command, cwd=tmp_path, env=env, stdout=asyncio.subprocess.PIPE
                    )
                    for _ in range(2)
                ]
                for app in apps:
                    await lines_of(app, 10)
                running.append(await taken.replace())
                assert await ended(running[0]) == 0
                (tmp_path / "over").touch()
                for app in apps:
                    await app.communicate()
                assert [app.returncode for app in apps] == [0, 0]
                await asyncio.to_thread(running[-1].stop)
                assert len(taken.exchanges()) == len(served.asked)

    run(scenario(), LONG_S)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_old_one_ends_when_its_last_stream_does(tmp_path: Path, workers: str) -> None:
    async def scenario() -> None:
        held = Held()
        async with provider(held.serve) as upstream:
            with place(tmp_path, upstream) as taken:
                old = await taken.start("--workers", workers)
                client = await begun(taken.port)
                new = await taken.replace()
                assert "1 stream may go on there" in new.wait_for("  replaced ")
                assert "1 stream may go on for 600 s" in old.wait_for("^replaced by ")
                fresh = await begun(taken.port)
                assert old.process.poll() is None
                held.rest.set()
                assert await client.until(END) == b"".join(map(chunk, PARTS[1:])) + b"0\r\n\r\n"
                # Its head had promised to keep the connection: the next answer ends it.
                await client.send(post(ASKED))
                got = await client.until(END)
                assert b"\r\nConnection: close\r\n" in got
                assert await client.rest() == (b"", "eof")
                assert await ended(old) == 0
                await fresh.until(END)

    run(scenario(), LONG_S)


def test_connections_that_nobody_uses_do_not_keep_the_old_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(streams) as upstream:
            with place(tmp_path, upstream) as taken:
                old = await taken.start()
                idle = [await connect(taken.port) for _ in range(3)]
                await idle[0].send(post(ASKED))
                await idle[0].until(END)
                await taken.replace()
                assert await ended(old) == 0
                assert [await each.rest() for each in idle] == [(b"", "eof")] * 3

    run(scenario(), LONG_S)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_streams_are_cut_after_the_drain_timeout(tmp_path: Path, workers: str) -> None:
    async def scenario() -> None:
        held = Held()
        async with provider(held.serve) as upstream:
            with place(tmp_path, upstream) as taken:
                old = await taken.start("--drain-timeout", "100ms", "--workers", workers)
                client = await begun(taken.port)
                await taken.replace()
                assert await ended(old) == 0
                await client.rest_or_end()
                (exchange,) = taken.exchanges()
                assert exchange.end is not None
                assert exchange.end.reason is EndReason.STOPPED
                held.rest.set()

    run(scenario(), LONG_S)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_signal_ends_a_recorder_that_drains(tmp_path: Path, workers: str) -> None:
    async def scenario() -> None:
        held = Held()
        async with provider(held.serve) as upstream:
            with place(tmp_path, upstream) as taken:
                old = await taken.start("--grace", "10ms", "--workers", workers)
                await begun(taken.port)
                await taken.replace()
                code, told = await asyncio.to_thread(old.stop, signal.SIGTERM)
                assert code == 0
                assert "stopping: 1 stream may go on for 0.01 s" in told
                assert "sigterm" in taken.stops()
                held.rest.set()

    run(scenario(), LONG_S)


def test_a_new_one_that_fails_leaves_the_old_one_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(streams) as upstream:
            with place(tmp_path, upstream) as taken, socket.create_server(("127.0.0.1", 0)) as busy:
                old = await taken.start()
                port = busy.getsockname()[1]
                arguments = (*taken.arguments(), "--control", f"127.0.0.1:{port}")
                failed = await asyncio.to_thread(lambda: deltatape(*arguments, folder=tmp_path))
                assert failed.returncode == 2
                assert f"--control 127.0.0.1:{port}: Address already in use" in (
                    failed.stderr.decode()
                )
                client = await connect(taken.port)
                for _ in range(2):
                    await client.send(post(ASKED))
                    assert b"close" not in await client.until(END)
                new = await taken.replace()
                assert await ended(old) == 0
                assert new.process.poll() is None

    run(scenario(), LONG_S)


def test_the_place_of_one_that_was_killed_is_free(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(streams) as upstream:
            with place(tmp_path, upstream) as taken:
                old = await taken.start()
                old.process.kill()
                await ended(old)
                new = await taken.start()
                assert not any("replaced" in line for line in new.lines)
                client = await connect(taken.port)
                await client.send(post(ASKED))
                await client.until(END)

    run(scenario(), LONG_S)


def test_one_that_does_not_give_its_place_away_keeps_it(tmp_path: Path) -> None:
    with program("record", "--listen", "127.0.0.1:0", folder=tmp_path) as running:
        refused = deltatape(
            *("record", "--replace", "--listen", f"127.0.0.1:{running.port}"), folder=tmp_path
        )
    assert refused.returncode == 2
    assert refused.stderr.decode() == (
        f"deltatape: --replace: 127.0.0.1:{running.port} is in use, but by no recorder that you"
        " started with --replace and the same --listen; stop it first, or choose another port\n"
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--listen", "127.0.0.1:0"), "needs --listen HOST:PORT with a fixed port"),
        (("--listen", "unix:s"), "needs --listen HOST:PORT with a fixed port"),
        (("--listen", "0.0.0.0:8377"), "needs --token TOKEN"),
        (("--listen", "127.0.0.1:8377", "--", "true"), "CMD ends with its recorder"),
        (("--via", "mitm", "--", "true"), "has no effect with --via mitm: mitmproxy listens"),
    ],
)
def test_what_nobody_could_take_over_is_refused(
    tmp_path: Path, arguments: tuple[str, ...], problem: str
) -> None:
    refused = called("record", "--replace", *arguments, folder=tmp_path)
    assert refused.returncode in (2, 125)
    assert f"--replace: {problem}" in refused.stderr.decode()


def test_a_place_is_offered_by_a_path_of_any_length(tmp_path: Path) -> None:
    env = {"XDG_STATE_HOME": str(tmp_path / ("long" * 30))}
    where = place_of(Address("127.0.0.1", 8377), env)
    assert find_predecessor(where) is None

    async def scenario() -> None:
        bound = await bind_one("127.0.0.1", 0)

        def copies() -> Listening:
            return {
                "one": [duplicates(bound * 100), duplicates(bound)],
                "two": [duplicates(bound * 50)],
            }

        offered = Successors(where, copies)
        offered.start()
        found = await asyncio.to_thread(find_predecessor, where)
        assert found is not None
        assert {n: [len(g) for g in gs] for n, gs in found.sockets.items()} == {
            "one": [100, 1],
            "two": [50],
        }
        assert {s.getsockname() for gs in found.sockets.values() for g in gs for s in g} == {
            bound[0].getsockname()
        }
        asking = asyncio.ensure_future(found.drain())
        await offered.wait()
        offered.answer(7)
        assert await asking == 7
        found.close()
        offered.close()
        close_all([bound])

    run(scenario())


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b'{"version":2,"pid":7}', "the recorder that runs, with pid 7, is of a version"),
        (b"", "is being replaced already"),
        (b"no JSON", "no sockets from the recorder that runs"),
        (b'{"version":1,"pid":7,"sockets":{"a":[1]}}', "it has ended"),
    ],
)
def test_an_answer_without_sockets_is_told(tmp_path: Path, answer: bytes, problem: str) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            connection.sendall(answer)
            connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(UsageError, match=problem):
            find_predecessor(path)
        thread.join()
