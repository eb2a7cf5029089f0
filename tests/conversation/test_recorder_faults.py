"""What a real recorder tapes when it is in trouble itself is nobody else's fault."""

import asyncio
import json
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from deltatape.diagnose.check_tape import check_exchanges
from deltatape.model.finding import Finding
from deltatape.rules.settings import DEFAULTS
from deltatape.store.reader import open_tape
from helpers.chat import sse
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks
from helpers.program import program
from helpers.upstream import SSE_HEAD, Peer, chunk, connect, post, provider, run

ASKED = post(json.dumps(asks(USER)).encode())


async def answers_in_two_pieces(peer: Peer) -> None:
    while True:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(sse(TEXT, done=False)))
        await asyncio.sleep(0.5)
        await peer.send(chunk(sse(FINISH_TEXT)) + b"0\r\n\r\n")


def taped(folder: Path, trouble: Callable[[int], None], after_s: float) -> list[Finding]:
    """What is found where `trouble` comes over the recorder, whose process it is given."""

    async def scenario() -> None:
        async with provider(answers_in_two_pieces) as upstream:
            options = ("--listen", "127.0.0.1:0", "--upstream", f"http://127.0.0.1:{upstream}")
            with program("record", *options, folder=folder) as running:
                await asyncio.to_thread(lambda: running.wait_for("OPENAI_BASE_URL"))
                client = await connect(running.port)
                await asyncio.sleep(0.2)  # until it is accepted
                trouble(running.process.pid)
                await client.send(ASKED)
                await asyncio.sleep(after_s)

    run(scenario())
    (tape,) = (folder / ".deltatape").glob("*.tape")
    report = check_exchanges(str(tape), open_tape(tape), DEFAULTS)
    return [each.finding for each in report.reported]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors in /proc")
def test_a_full_table_of_descriptors_is_the_recorders(tmp_path: Path) -> None:
    def fill(pid: int) -> None:
        known = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - names are all that is needed
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (known, known))

    (cut,) = taped(tmp_path, fill, 1.0)
    assert (cut.code, cut.blame) == ("W006", None)
    assert "Too many open files" in cut.message


def test_a_recorder_that_is_killed_leaves_a_tape_that_blames_nobody(tmp_path: Path) -> None:
    def kill_soon(pid: int) -> None:
        asyncio.get_running_loop().call_later(0.3, os.kill, pid, signal.SIGKILL)

    (cut,) = taped(tmp_path, kill_soon, 1.0)
    assert (cut.code, cut.blame) == ("W006", None)
    assert "the recorder was killed or crashed" in cut.message
