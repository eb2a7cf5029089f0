"""A tape that is still being recorded: an agent hangs right now, and somebody asks why."""

import asyncio
from pathlib import Path

from deltatape.store.reader import open_tape
from helpers.chat import calls, entry, sse
from helpers.console import called
from helpers.recording import recording
from helpers.upstream import SSE_HEAD, Peer, chunk, eventually, post, provider, run

OPENED = sse(calls(entry(0, "c1", name="get", arguments='{"a')))


async def hang(peer: Peer) -> None:
    await peer.request()
    await peer.send(SSE_HEAD + chunk(OPENED))
    await peer.rest()


def test_why_on_a_running_recording_says_that_it_goes_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(hang) as port, recording(tmp_path, port) as running:
            client = await running.client()
            await client.send(post(b'{"stream": true}'))
            await client.until(chunk(OPENED))
            await eventually(lambda: any(e.reads for e in running.tape()), "a read")
            path = str(running.writer.path)
            assert open_tape(path).recording
            told = called("why", path, folder=tmp_path).stdout.decode()
            assert "Still in progress" in told
            assert "died" not in told
            assert called("check", path, folder=tmp_path).returncode == 0
        assert not open_tape(path).recording
        assert b"T003" in called("check", path, folder=tmp_path).stdout

    run(scenario())


def test_a_silence_that_goes_on_is_reported_with_its_length(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(hang) as port, recording(tmp_path, port) as running:
            client = await running.client()
            await client.send(post(b'{"stream": true}'))
            await client.until(chunk(OPENED))
            (forward,) = running.recorder.active.values()
            assert forward.taping is not None
            # Eleven seconds later, as far as the recorder's clock goes.
            for _ in range(2):
                running.writer._zero_ns -= 5_500_000_000
                forward.taping.watch(0)
            await asyncio.sleep(0.05)
            told = called("why", str(running.writer.path), folder=tmp_path).stdout.decode()
            assert "No progress for 11" in told
            assert "is still going on" in told
            assert "upstream, likely" in told

    run(scenario())
