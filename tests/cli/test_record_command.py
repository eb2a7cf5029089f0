"""`deltatape record` as a process: crashes, full disks, memory, signals."""

import asyncio
import contextlib
import os
import re
import resource
import shutil
import signal
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from deltatape.demo.demo import Background
from deltatape.diagnose.check import check
from deltatape.model.exchange import EndReason
from deltatape.store.reader import open_tape
from helpers.console import called
from helpers.program import program
from helpers.upstream import SSE_HEAD, Peer, chunk, connect, eventually, post, provider, run

EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"%04d"}}]}\n\n'
LONG_EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n' % (b"x" * 2000)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def peak_kib(pid: int) -> int:
    """The largest resident size that a process has had, in KiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise AssertionError("no VmHWM")


@contextlib.asynccontextmanager
async def recorder(
    folder: Path, port: int, *more: str, limit: int = 0
) -> AsyncIterator[Background]:
    """`deltatape record` in front of `port`; `limit` is the largest file it may write."""

    def set_limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    before = set_limit if limit else None
    upstream = f"http://127.0.0.1:{port}"
    arguments = ("record", "--listen", "127.0.0.1:0", "--upstream", upstream, "--to", "tapes")
    with program(*arguments, *more, folder=folder, before=before) as running:
        await asyncio.to_thread(lambda: running.wait_for("set +OPENAI"))
        yield running


def the_tape(folder: Path) -> Path:
    (path,) = (folder / "tapes").glob("*.tape")
    return path


def test_kill_9_leaves_all_but_one_read_per_stream(tmp_path: Path) -> None:
    got = [b""] * 50

    async def endless(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD)
        number = 0
        while True:
            await peer.send(chunk(EVENT % number))
            number += 1
            await asyncio.sleep(0.005)

    async def read(slot: int, peer: Peer) -> None:
        await peer.send(post())
        await peer.until(b"\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while data := await peer.reader.read(65536):
                got[slot] += data

    async def scenario() -> None:
        async with provider(endless) as port, recorder(tmp_path, port) as running:
            clients = [await connect(running.port) for _ in got]
            tasks = [asyncio.ensure_future(read(n, peer)) for n, peer in enumerate(clients)]
            await eventually(lambda: all(len(each) > 2000 for each in got), "streams")
            running.process.send_signal(signal.SIGKILL)
            await asyncio.wait(tasks)

    run(scenario())
    assert_all_but_one_read(the_tape(tmp_path), [each.count(b"data:") for each in got])


def assert_all_but_one_read(path: Path, delivered: list[int]) -> None:
    """Each exchange holds what was delivered but at most one read, and is diagnosed as cut."""
    tape = open_tape(path)
    assert not tape.stopped
    taped = list(tape)
    size = len(EVENT % 0)
    for exchange in taped:
        count = len(exchange.body) // size
        assert exchange.body == b"".join(EVENT % number for number in range(count))
        assert exchange.end is None
        assert "W006" in [finding.code for finding in check(exchange)]
    # Which client was which exchange is not on the tape: compare in the order of lengths.
    bodies = sorted(len(exchange.body) // size for exchange in taped)
    largest = max(len(read.data) for exchange in taped for read in exchange.reads) // size
    lost = [there - here for there, here in zip(sorted(delivered), bodies, strict=True)]
    assert max(lost) <= largest


def test_kill_9_while_tapes_rotate_leaves_tapes_that_are_read(tmp_path: Path) -> None:
    async def answer(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(SSE_HEAD + chunk(LONG_EVENT) * 40 + b"0\r\n\r\n")

    async def ask(port: int) -> None:
        peer = await connect(port)
        with contextlib.suppress(ConnectionError, EOFError):
            while True:
                await peer.send(post())
                await peer.until(b"\r\n0\r\n\r\n")

    async def kill_after_a_deletion(port: int, wait_s: float) -> None:
        async with recorder(tmp_path, port, "--keep", "4MB") as running:
            asking = [asyncio.ensure_future(ask(running.port)) for _ in range(4)]
            newest = max((tmp_path / "tapes").glob("*.tape"), key=lambda path: path.name)
            await eventually(lambda: not newest.exists(), "a deleted tape")
            await asyncio.sleep(wait_s)
            running.process.send_signal(signal.SIGKILL)
            await asyncio.wait(asking)

    async def scenario() -> None:
        async with provider(answer) as port:
            await kill_after_a_deletion(port, 0)
            await kill_after_a_deletion(port, 0.01)

    run(scenario(), limit_s=300)
    paths = sorted((tmp_path / "tapes").glob("*.tape"))
    assert len(paths) > 1
    for path in paths:
        for exchange in open_tape(path):
            assert (LONG_EVENT * 40).startswith(exchange.body)
            assert exchange.end is None or exchange.body == LONG_EVENT * 40


@pytest.mark.slow
def test_64_mb_uploads_need_constant_memory(tmp_path: Path) -> None:
    size = 64 * 1024 * 1024

    def tape_size() -> int:
        return sum(path.stat().st_size for path in (tmp_path / "tapes").glob("*.tape"))

    def tape_is_as_long_as(size: int) -> bool:
        return tape_size() >= size

    async def swallow(peer: Peer) -> None:
        while True:
            await peer.until(b"\r\n\r\n")
            left = size
            while left:
                left -= len(await peer.reader.read(min(left, 65536)))
            await peer.send(OK)

    async def upload(port: int) -> None:
        peer = await connect(port)
        head = f"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n"
        await peer.send(head.encode())
        before = tape_size()
        for sent in range(64):
            # A quote takes two bytes of a line. Of a disk that is further behind, lines are lost.
            due = before + (sent - 8) * 2 * 1024 * 1024
            await eventually(partial(tape_is_as_long_as, due), "the tape follows")
            await peer.send(b'"' * (1024 * 1024))
        assert await peer.until(b"ok") == OK

    async def scenario() -> None:
        async with provider(swallow) as port, recorder(tmp_path, port) as running:
            before = peak_kib(running.process.pid)
            await upload(running.port)
            await upload(running.port)
            # The tape has 256 MB of lines. Of them, what may wait for the disk is 64 MiB.
            assert peak_kib(running.process.pid) - before < 88 * 1024
            running.stop()

    run(scenario(), limit_s=300)
    for exchange in open_tape(the_tape(tmp_path)):
        assert len(exchange.request.body) == size


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_tape_and_prints_a_summary(tmp_path: Path, number: int) -> None:
    async def answer(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)

    async def scenario() -> None:
        async with provider(answer) as port, recorder(tmp_path, port) as running:
            peer = await connect(running.port)
            await peer.send(post())
            await peer.until(b"ok")
            code, told = running.stop(number)
            assert code == 0
            assert "1 exchange taped" in told
            assert str(the_tape(tmp_path).relative_to(tmp_path)) in told
            assert open_tape(the_tape(tmp_path)).stopped

    run(scenario())


def test_a_second_signal_cuts_streams_at_once(tmp_path: Path) -> None:
    async def endless(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(b"data: 1\n\n"))
        await peer.rest()

    async def scenario() -> None:
        more = ("--grace", "60s")
        async with provider(endless) as port, recorder(tmp_path, port, *more) as running:
            peer = await connect(running.port)
            await peer.send(post())
            await peer.until(b"data: 1\n\n\r\n")
            running.process.send_signal(signal.SIGINT)
            await asyncio.to_thread(lambda: running.wait_for("1 stream may go on for 60 s"))
            code, _ = await asyncio.to_thread(running.stop)
            assert code == 0
            (exchange,) = open_tape(the_tape(tmp_path))
            assert exchange.end is not None
            assert exchange.end.reason is EndReason.STOPPED

    run(scenario())


async def stream_fully(port: int, events: int) -> bytes:
    peer = await connect(port)
    await peer.send(post())
    await peer.until(b"\r\n\r\n")
    body = await peer.until(b"\r\n0\r\n\r\n")
    assert body.count(b"data:") == events
    return body


async def many(peer: Peer) -> None:
    while True:
        await peer.request()
        await peer.send(SSE_HEAD)
        for number in range(500):
            await peer.send(chunk(EVENT % number))
            await asyncio.sleep(0.0005)  # in many reads, however busy the machine is
        await peer.send(b"0\r\n\r\n")


def test_a_file_that_may_not_grow_never_touches_a_stream_and_is_loud(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(many) as port, recorder(tmp_path, port, limit=20_000) as running:
            await stream_fully(running.port, 500)
            _, told = await asyncio.to_thread(running.stop)
            assert "TAPING IN TROUBLE" in told
            assert "NOT ON THE TAPE" in told

    run(scenario())
    (exchange,) = open_tape(the_tape(tmp_path))
    # Where there was room again for less, it was taped again: whole events, in their order.
    taped = [int(number) for number in re.findall(rb'"content":"(\d{4})"', exchange.body)]
    assert exchange.body == b"".join(EVENT % number for number in taped)
    assert taped == sorted(set(taped))
    assert taped[:10] == list(range(10))


def test_a_disk_that_is_full_for_a_while_is_counted_in_the_end(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    disk = tmp_path / "tapes"
    disk.mkdir()
    mount = f"mount -t tmpfs -o size=64k,mode=0700 tmpfs {disk}"
    assert os.system(mount) == 0  # noqa: S605 - a fixed command
    try:

        async def scenario() -> None:
            filler = disk / "filler"
            async with provider(many) as port, recorder(tmp_path, port) as running:
                filler.write_bytes(b"x" * 49_000)
                await stream_fully(running.port, 500)
                filler.unlink()
                await stream_fully(running.port, 500)
                _, told = await asyncio.to_thread(running.stop)
                assert "TAPING IN TROUBLE" in told
                assert "No space left on device" in told

        run(scenario())
        (path,) = disk.glob("*.tape")
        exchanges = list(open_tape(path))
        assert any(e.end and e.end.recorder.get("lost_records") for e in exchanges) or any(
            e.end is None for e in exchanges
        )
    finally:
        os.system(f"umount {disk}")  # noqa: S605 - a fixed command


def test_a_folder_that_vanishes_never_touches_a_stream_and_is_loud(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(many) as port, recorder(tmp_path, port, "--strict") as running:
            await stream_fully(running.port, 500)
            shutil.rmtree(tmp_path / "tapes")
            await stream_fully(running.port, 500)
            code, told = await asyncio.to_thread(running.stop)
            assert "TAPING IN TROUBLE" in told
            assert "NOT ON THE TAPE" in told
            assert code == 125  # --strict

    run(scenario())


def test_a_folder_that_cannot_be_made_never_touches_a_stream(tmp_path: Path) -> None:
    async def scenario() -> None:
        to = ("--to", "/proc/no-such-folder")
        async with provider(many) as port, recorder(tmp_path, port, *to) as running:
            await stream_fully(running.port, 500)
            _, told = await asyncio.to_thread(running.stop)
            assert "TAPING IN TROUBLE" in told
            assert "NOT ON THE TAPE" in told

    run(scenario())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--listen", "nowhere"), "use HOST:PORT"),
        (("--upstream", "api.openai.com"), "invalid upstream"),
        (("--grace", "soon"), "invalid duration"),
    ],
)
def test_a_wrong_call_says_what_would_be_accepted(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = called("record", *arguments, folder=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr.decode()
    assert not (tmp_path / ".deltatape").exists()


def test_a_port_that_others_can_reach_makes_up_a_token_and_says_it(tmp_path: Path) -> None:
    async def answer(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)

    async def scenario() -> None:
        async with provider(answer) as port:
            upstream = ("--upstream", f"http://127.0.0.1:{port}", "--to", "tapes")
            listen = ("--listen", "0.0.0.0:0")
            with program("record", *listen, *upstream, folder=tmp_path) as running:
                line = await asyncio.to_thread(lambda: running.wait_for("set +OPENAI"))
                found = re.search(r"http://127\.0\.0\.1:(\d+)(/t/[\w-]{20,})/v1", line)
                assert found is not None
                for path, status in ((found[2], b"200"), ("", b"403")):
                    client = await connect(int(found[1]))
                    await client.send(post(target=f"{path}/v1/x"))
                    assert (await client.until(b"\r\n")).split()[1] == status
                await asyncio.to_thread(running.stop)

    run(scenario())
