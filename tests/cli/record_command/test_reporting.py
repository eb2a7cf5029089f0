"""What `deltatape record` says while it runs, and that saying it harms nobody."""

import asyncio
import contextlib
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from deltatape.demo.demo import Background
from helpers.chat import choice, sse
from helpers.console import called
from helpers.hostile import STREAM, assert_harmless, body
from helpers.program import environment, program
from helpers.upstream import SSE_HEAD, Peer, chunk, connect, post, provider, run

FINE = sse(choice({"content": "hi"}, "stop"))


@contextlib.asynccontextmanager
async def recorder(folder: Path, *options: str) -> AsyncIterator[Background]:
    """`deltatape record` on a free port, once it listens."""
    with program("record", "--listen", "127.0.0.1:0", *options, folder=folder) as running:
        await asyncio.to_thread(lambda: running.wait_for("set +OPENAI"))
        yield running


@contextlib.asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[int]:
    """A provider that gives every request this stream."""

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(SSE_HEAD + chunk(answer) + b"0\r\n\r\n")

    async with provider(script) as port:
        yield port


async def ask(port: int, request: bytes) -> bytes:
    """All that comes back until the connection ends."""
    client = await connect(port)
    await client.send(request)
    return (await client.rest())[0]


async def stop(running: Background) -> tuple[int, str]:
    return await asyncio.to_thread(running.stop)


CLOSE = "Connection: close\r\n"
FOREIGN = b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"


def test_without_an_upstream_every_prefix_is_introduced(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with recorder(tmp_path) as running:
            base = running.url
            await asyncio.to_thread(lambda: running.wait_for("ANTHROPIC_BASE_URL"))
            assert b"404 Not Found" in await ask(running.port, post(target="/v1/x", extra=CLOSE))
            code, told = await stop(running)
        assert code == 0
        assert f"url      {base}/NAME forwards to the provider NAME: openai anthropic " in told
        assert f"OPENAI_BASE_URL={base}/openai/v1\n" in told
        assert "refused a request (404 unknown_upstream): no upstream for /v1" in told
        assert "tape: .deltatape/" in told
        assert "next: deltatape doctor\n" in told  # there is nothing to look at

    run(scenario())


def test_an_upstream_of_the_users_own_is_introduced_by_its_name(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            answering(FINE) as port,
            recorder(tmp_path, "--upstream", f"mine=http://127.0.0.1:{port}/base") as running,
        ):
            assert FINE in await ask(running.port, post(target="/mine/v1/x", extra=CLOSE))
            _, told = await stop(running)
        assert f"/mine forwards to http://127.0.0.1:{port}/base\n" in told

    run(scenario())


def test_each_exchange_is_a_line_as_it_ends(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            answering(FINE) as port,
            recorder(tmp_path, "--upstream", f"http://127.0.0.1:{port}") as running,
        ):
            await ask(running.port, post(extra=CLOSE))
            await asyncio.to_thread(
                lambda: running.wait_for(
                    "#1 POST .* 200 .*: 2 characters, finish stop; no findings"
                )
            )
            _, told = await stop(running)
        assert "next: deltatape why .deltatape/" in told
        assert "NOT ON THE TAPE" not in told

    run(scenario())


def test_no_text_of_a_stream_acts_on_the_terminal(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            answering(STREAM) as port,
            recorder(tmp_path, "--upstream", f"http://127.0.0.1:{port}") as running,
        ):
            await ask(running.port, post(body(""), extra=CLOSE))
            await ask(running.port, b"GET / HTTP/1.1\r\nHost: \x9b7m.example\r\n\r\n")
            _, told = await stop(running)
        assert "#1 POST" in told
        assert "refused a request" in told
        assert_harmless(told.encode())

    run(scenario())


def started(folder: Path, *options: str) -> subprocess.Popen[str]:
    """A recorder whose stderr is the test's own."""
    return subprocess.Popen(
        [sys.executable, "-m", "deltatape", "record", "--listen", "127.0.0.1:0", *options],
        cwd=folder,
        env=environment(folder),
        stderr=subprocess.PIPE,
        text=True,
    )


def test_streams_and_refusals_go_on_when_nobody_reads_stderr(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with answering(FINE) as port:
            process = started(tmp_path, "--upstream", f"http://127.0.0.1:{port}")
            try:
                assert process.stderr is not None
                printed = iter(process.stderr.readline, "")
                line = next(line for line in printed if "OPENAI_BASE_URL=" in line)
                process.stderr.close()
                port_of_recorder = int(line.partition("/v1")[0].rpartition(":")[2])
                for _ in range(2):
                    assert FINE in await ask(port_of_recorder, post(extra=CLOSE))
                    assert b"403 Forbidden" in await ask(port_of_recorder, FOREIGN)
                process.send_signal(signal.SIGINT)
                assert await asyncio.to_thread(process.wait) == 0
            finally:
                process.kill()
                process.wait()

    # A program is started and ended here, which takes long on a busy machine.
    run(scenario(), limit_s=120)


def test_an_app_that_does_not_come_is_asked_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltatape.record.session.NO_TRAFFIC_S", 0.1)
    told = called("record", "--", "sleep", "0.5", folder=tmp_path).stderr.decode()
    assert ": sleep has not called a provider through http://127.0.0.1:" in told


def test_an_app_that_came_is_not_asked_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltatape.record.session.NO_TRAFFIC_S", 1.0)
    app = ('curl -s -o answer "$OPENAI_BASE_URL/nowhere"; sleep 1.5',)
    given = ("record", "--upstream", "http://127.0.0.1:9", "--", "sh", "-c", *app)
    told = called(*given, folder=tmp_path).stderr.decode()
    assert "has not called" not in told
    assert "1 exchange taped" in told


def test_the_port_of_another_program_is_reported_and_leaves_no_tape(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with recorder(tmp_path) as running:
            arguments = ["record", "--listen", f"127.0.0.1:{running.port}", "--to", "other"]
            result = await asyncio.to_thread(
                lambda: subprocess.run(
                    [sys.executable, "-m", "deltatape", *arguments],
                    cwd=tmp_path,
                    env=environment(tmp_path),
                    capture_output=True,
                    timeout=300,
                    check=False,
                )
            )
            assert result.returncode == 2
            assert b"choose another port" in result.stderr
            assert list((tmp_path / "other").glob("*.tape")) == []

    run(scenario())


def test_a_terminal_that_takes_nothing_stops_no_stream(tmp_path: Path) -> None:
    """stderr is a pipe that nobody reads: it holds some hundred lines, then a write blocks."""
    arguments = [sys.executable, "-m", "deltatape", "record", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(
        arguments, cwd=tmp_path, env=environment(tmp_path), stderr=subprocess.PIPE
    )

    async def scenario() -> None:
        try:
            assert process.stderr is not None
            port = 0
            while not port:
                line = await asyncio.to_thread(process.stderr.readline)
                port = int((re.findall(rb"127\.0\.0\.1:([0-9]+)/NAME", line) or [b"0"])[0])
            for _ in range(1500):
                assert (await ask(port, FOREIGN)).startswith(b"HTTP/1.1 403")
        finally:
            process.kill()
            process.communicate()

    run(scenario(), limit_s=40)
