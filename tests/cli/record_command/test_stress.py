"""`deltatape record` as a process while its machine is in trouble."""

import asyncio
import contextlib
import os
import resource
import shutil
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from deltatape.demo.demo import Background
from deltatape.model.exchange import EndReason, Exchange
from deltatape.store.reader import open_tape
from helpers.program import program
from helpers.upstream import SSE_HEAD, Peer, chunk, connect, post, provider, run

EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"%04d"}}]}\n\n'
EVENTS = 100
LAST = b"0\r\n\r\n"
DESCRIPTORS = 48
STREAM = b"HTTP/1.1 200"


# A disk that stalls: a file system of its own, which can be frozen as for a snapshot.

_SIZE = 16 << 20
_LIMIT_S = 15.0
"""After this a frozen disk thaws in any case: who writes to it cannot even be killed."""


class Disk:
    """A mounted file system."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Every write to it waits meanwhile."""
        watchdog = threading.Timer(_LIMIT_S, self._thaw)
        watchdog.start()
        try:
            subprocess.run(["fsfreeze", "--freeze", self.folder], check=True, timeout=_LIMIT_S)
            yield
        finally:
            self._thaw()
            watchdog.cancel()

    def _thaw(self) -> None:
        subprocess.run(["fsfreeze", "--unfreeze", self.folder], check=False, capture_output=True)


@contextlib.contextmanager
def freezable_disk(folder: Path) -> Iterator[Disk]:
    """A disk mounted on `folder`; skips the test where that needs more than this machine gives."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    if not all(map(shutil.which, ("mkfs.ext4", "mount", "fsfreeze"))):
        pytest.skip("needs mkfs.ext4, mount and fsfreeze")
    image = folder.with_suffix(".img")
    with image.open("wb") as file:
        file.truncate(_SIZE)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-o", "loop", image, folder], check=False, capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"no loop mounts here: {done.stderr.strip()}")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
        image.unlink()


async def stream(peer: Peer) -> None:
    await peer.request()
    await peer.send(SSE_HEAD)
    for number in range(EVENTS):
        await peer.send(chunk(EVENT % number))
        await asyncio.sleep(0.005)
    await peer.send(LAST)


@contextlib.asynccontextmanager
async def recorder(
    folder: Path, port: int, before: Callable[[], None] | None = None
) -> AsyncIterator[Background]:
    upstream = f"http://127.0.0.1:{port}"
    arguments = ("record", "--listen", "127.0.0.1:0", "--upstream", upstream, "--to", "tapes")
    with program(*arguments, folder=folder, before=before) as running:
        await asyncio.to_thread(lambda: running.wait_for("set +OPENAI"))
        yield running


async def streamed(port: int) -> None:
    """One exchange; fails unless all of it comes."""
    client = await connect(port)
    await client.send(post(b"{}"))
    got = await client.until(LAST)
    assert got.count(b"data: ") == EVENTS
    client.writer.close()


def the_exchanges(folder: Path) -> list[Exchange]:
    (path,) = (folder / "tapes").glob("*.tape")
    return list(open_tape(path))


def test_a_disk_that_stalls_delays_no_stream_and_costs_no_record(tmp_path: Path) -> None:
    with freezable_disk(tmp_path / "tapes") as disk:

        async def scenario() -> str:
            async with provider(stream) as port, recorder(tmp_path, port) as running:
                await streamed(running.port)
                for streams in (1, 3):
                    with disk.frozen():
                        await asyncio.gather(*(streamed(running.port) for _ in range(streams)))
                code, told = await asyncio.to_thread(running.stop)
                assert code == 0
                return told

        told = run(scenario(), 60)
        assert "NOT ON THE TAPE" not in told
        exchanges = the_exchanges(tmp_path)
        assert len(exchanges) == 5
        for exchange in exchanges:
            assert exchange.end is not None
            assert exchange.end.reason is EndReason.COMPLETE
            assert exchange.end.recorder == {}
            assert b"".join(read.data for read in exchange.reads).count(b"data: ") == EVENTS


async def first_bytes(port: int) -> tuple[Peer, bytes]:
    client = await connect(port)
    await client.send(post(b"{}"))
    return client, await client.reader.read(12)


async def starve(running: Background, leave: asyncio.Event) -> None:
    """Ask for more streams than there can be, let them end, and see that all were answered."""

    async def ask() -> bytes:
        client, first = await first_bytes(running.port)
        if first == STREAM:
            await leave.wait()
        client.writer.transport.abort()  # a refused one that stays would hold a descriptor
        return first

    asked = [asyncio.ensure_future(ask()) for _ in range(DESCRIPTORS)]
    await asyncio.to_thread(lambda: running.wait_for("too many open files"))
    await asyncio.sleep(2.5)  # some attempts more
    leave.set()
    assert set(await asyncio.gather(*asked)) <= {STREAM, b"HTTP/1.1 502"}


def test_without_descriptors_connections_wait_and_then_go_on(tmp_path: Path) -> None:
    leave = asyncio.Event()

    async def hang(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD)
        await peer.send(chunk(EVENT % 0))
        await leave.wait()

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))

    async def scenario() -> str:
        async with provider(hang) as port, recorder(tmp_path, port, limit) as running:
            # What is loaded by the first exchange is not to be missing for lack of descriptors.
            client, first = await first_bytes(running.port)
            assert first == STREAM
            client.writer.transport.abort()
            await asyncio.to_thread(lambda: running.wait_for("#1 POST"))
            await starve(running, leave)
            _, first = await first_bytes(running.port)
            assert first == STREAM
            code, told = await asyncio.to_thread(running.stop)
            assert code == 0
            return told

    told = run(scenario(), 60)
    assert told.count("new connections wait until others end") == 1
    assert "Traceback" not in told
    assert "NOT ON THE TAPE" not in told
    assert len(the_exchanges(tmp_path)) == DESCRIPTORS + 2
