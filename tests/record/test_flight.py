"""The flight recorder as a process: rotation, the budget, pins, and what a restart finds."""

import asyncio
import json
import os
from pathlib import Path

from deltatape.clock import SystemClock
from deltatape.demo.process import background
from deltatape.gateway.tapes import TapeBook
from deltatape.model.exchange import Source
from deltatape.record.flight import Flight
from deltatape.store.reader import open_tape
from deltatape.store.ring import Keep, Ring
from deltatape.store.writer import TapeWriter
from deltatape.tape.mask import Masker
from helpers.program import environment
from helpers.upstream import SSE_HEAD, Peer, chunk, connect, eventually, post, provider, run

LONG_S = 60.0
HEALTHY = (
    b'data: {"choices":[{"index":0,"delta":{"content":"%b"},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)


async def answer(peer: Peer) -> None:
    """Half a megabyte of text; for a request with `cut` in it a stream that breaks off."""
    while True:
        _, body = await peer.request()
        whole = HEALTHY % (b"x" * 500_000)
        await peer.send(SSE_HEAD + chunk(whole[:400_000] if b"cut" in body else whole))
        if b"cut" in body:
            peer.close()
            return
        await peer.send(b"0\r\n\r\n")


async def ask(port: int, body: bytes) -> None:
    client = await connect(port)
    await client.send(post(body, extra="Connection: close\r\n"))
    await client.rest()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "tapes").glob("*.tape"))


def test_the_budget_holds_and_what_lies_around_a_finding_stays(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(answer) as port:
            arguments = (
                *("record", "--to", "tapes", "--listen", "127.0.0.1:0", "--keep", "4MB"),
                *("--upstream", f"http://127.0.0.1:{port}", "--durability", "none"),
            )
            with background(*arguments, cwd=tmp_path, env=environment(tmp_path)) as running:
                await asyncio.to_thread(lambda: running.wait_for("set +OPENAI"))
                for _ in range(16):
                    await ask(running.port, b"{}")
                    await asyncio.sleep(0.2)
                rings = [name for name in names(tmp_path) if ".ring" in name]
                assert len(rings) == len(names(tmp_path))
                size = sum((tmp_path / "tapes" / name).stat().st_size for name in rings)
                assert 1_000_000 < size < 6_000_000
                await ask(running.port, b'{"cut":1}')
                await eventually(
                    lambda: any(".ring" not in name for name in names(tmp_path)), "a pin"
                )
                code, told = await asyncio.to_thread(running.stop)
                assert code == 0, told

    run(scenario(), LONG_S)
    pinned = [name for name in names(tmp_path) if ".ring" not in name]
    assert pinned
    ends = [
        exchange.end.reason
        for name in pinned
        for exchange in open_tape(tmp_path / "tapes" / name)
        if exchange.end is not None
    ]
    assert "upstream_closed" in ends


def test_no_exchange_straddles_tapes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(answer) as port:
            arguments = (
                *("record", "--to", "tapes", "--listen", "127.0.0.1:0", "--keep", "8s"),
                *("--upstream", f"http://127.0.0.1:{port}", "--ready-file", "ready.json"),
            )
            with background(*arguments, cwd=tmp_path, env=environment(tmp_path)) as running:
                ready = tmp_path / "ready.json"
                await eventually(ready.exists, "a ready file")
                first = json.loads(ready.read_text())["tape"]
                slow = await connect(running.port)
                await slow.send(post(b"12")[:-1])  # an exchange that begins before the rotation
                await eventually(lambda: len(names(tmp_path)) > 1, "a second tape")
                await slow.send(b"2")
                await slow.rest_or_end()
                await asyncio.to_thread(running.stop)
                (exchange,) = open_tape(tmp_path / first)
                assert exchange.end is not None
                assert open_tape(tmp_path / first).watch.stop == "rotated"

    run(scenario(), LONG_S)


def test_old_segments_go_when_a_recorder_starts(tmp_path: Path) -> None:
    old = tmp_path / "old.ring.tape"
    old.write_bytes(b"{}\n")
    os.utime(old, (1.0, 1.0))
    keep = tmp_path / "kept.tape"
    keep.write_bytes(b"")

    async def scenario() -> None:
        clock = SystemClock()
        ring = Ring(tmp_path, Keep(age_ns=3600 * 10**9), clock, print)

        def create(name: str | None) -> TapeWriter:
            return TapeWriter.create(
                tmp_path,
                ring.stem(name or "run"),
                clock=clock,
                tool="test",
                source=Source.GATEWAY,
                alarm=print,
            )

        book = TapeBook(create, Masker(b"key"))
        book.start()
        flight = Flight(ring, book)
        flight.start()
        await eventually(lambda: not old.exists(), "the old segment is deleted")
        await flight.stop()
        book.stop("test", None)
        assert keep.exists()
        assert (tmp_path / "run.ring.tape").exists()

    run(scenario())
