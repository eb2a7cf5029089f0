"""Dead zones as a real recorder tapes them: two processes, real sockets, thresholds of a moment."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from deltatape.conversation import check_conversation
from deltatape.diagnose.check import check
from deltatape.diagnose.digest import digest
from deltatape.model.finding import Finding
from deltatape.rules.settings import Settings
from deltatape.store.reader import open_tape
from helpers.chat import FINISH, sse
from helpers.exchanges import USER, asks, assistant, call, result
from helpers.program import program
from helpers.upstream import SSE_HEAD, Peer, Script, chunk, connect, post, provider, run

QUICK = Settings(unanswered_s=0.5, after_result_s=0.5)
AFTER = asks(USER, assistant(("c1", "get", '{"a":1}')), result("c1"))


@asynccontextmanager
async def recorded(folder: Path, script: Script) -> AsyncIterator[int]:
    """The port of `deltatape record` in front of a provider; it stops in good order at the end."""
    async with provider(script) as upstream:
        options = ("--listen", "127.0.0.1:0", "--upstream", f"http://127.0.0.1:{upstream}")
        with program("record", *options, folder=folder) as running:
            await asyncio.to_thread(lambda: running.wait_for("OPENAI_BASE_URL"))
            yield running.port
            code, _ = await asyncio.to_thread(running.stop)
            assert code == 0


def found(folder: Path, settings: Settings) -> Sequence[Finding]:
    (tape,) = (folder / ".deltatape").glob("*.tape")
    exchanges = list(open_tape(tape))
    own = [finding for exchange in exchanges for finding in check(exchange, settings)]
    return [*own, *check_conversation(map(digest, exchanges), settings)]


async def calls_a_tool(peer: Peer) -> None:
    while True:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(sse(*call(), FINISH)) + b"0\r\n\r\n")


async def is_silent(peer: Peer) -> None:
    await peer.request()
    await peer.rest()


def test_an_application_that_never_answers_its_call(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with recorded(tmp_path, calls_a_tool) as port:
            client = await connect(port)
            await client.send(post(json.dumps(asks(USER)).encode()))
            await client.rest_or_end()
            await asyncio.sleep(0.8)

    run(scenario())
    (finding,) = found(tmp_path, QUICK)
    assert finding.code == "D003"
    assert " s; then the recorder stopped (" in finding.message
    assert not found(tmp_path, Settings())


def test_a_provider_that_is_silent_after_a_tool_result(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with recorded(tmp_path, is_silent) as port:
            client = await connect(port)
            await client.send(post(json.dumps(AFTER).encode()))
            await asyncio.sleep(0.8)
            client.close()

    run(scenario())
    (finding,) = (each for each in found(tmp_path, QUICK) if each.code == "D004")
    assert re.search(
        r"the client disconnected after ([6-9][0-9]{2} ms|1\.[0-9] s)$", finding.message
    )
    assert "D004" not in [each.code for each in found(tmp_path, Settings())]
