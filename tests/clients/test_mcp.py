"""Whole sessions: a model calls a tool, MCP's official SDK runs it; each witness in turn is wrong.

The SDK starts a server without most of the environment: the recorder is found by its folder.
"""

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from deltatape.conversation import check_conversation
from deltatape.diagnose.check import check
from deltatape.diagnose.digest import digest
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Blame, Finding
from deltatape.store.reader import open_tape
from helpers.clients import CLIENTS, PYTHON
from helpers.recorded_apps import recorded
from helpers.upstream import Peer, provider, run

LONG_S = 240.0
INSTALLED = any(PYTHON.parent.parent.glob("lib/python3*/site-packages/mcp"))
pytestmark = pytest.mark.skipif(
    not INSTALLED and not os.environ.get("CI"),
    reason="no MCP SDK; scripts/setup clients installs it",
)
SERVER = (str(PYTHON), str(CLIENTS / "mcp_server.py"))


class Model:
    """Calls the tool for a city, and says so when it has the result."""

    def __init__(self, city: str) -> None:
        self._arguments = json.dumps({"city": city})

    async def serve(self, peer: Peer) -> None:
        """Answer the requests of one connection."""
        while True:
            _, body = await peer.request()
            ended = json.loads(body)["messages"][-1]["role"] == "tool"
            function = {"name": "mcp__weather__get_weather", "arguments": self._arguments}
            call = {"id": "call_a1b2c3", "type": "function", "function": function}
            said = {"content": "I see."} if ended else {"content": None, "tool_calls": [call]}
            choice = {
                "index": 0,
                "message": {"role": "assistant", **said},
                "finish_reason": "stop" if ended else "tool_calls",
            }
            members = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
            answer = json.dumps({**members, "choices": [choice]}).encode()
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            await peer.send(head + b"Content-Length: %d\r\n\r\n" % len(answer) + answer)


async def session(
    folder: Path, fault: str, city: str, server: Sequence[str], *options: str
) -> list[Exchange]:
    """Run the agent; return what is on its tape."""
    async with provider(Model(city).serve) as port:
        upstream = ("--upstream", f"openai=http://127.0.0.1:{port}")
        agent = (str(PYTHON), str(CLIENTS / "mcp_agent.py"), fault, *server)
        result = await recorded(folder, *upstream, *options, "--", *agent)
    assert (result.returncode, result.stdout) == (0, b"I see.\n"), result.stderr.decode()
    (path,) = (folder / "tapes").glob("*.tape")
    return sorted(open_tape(path), key=lambda exchange: exchange.number)


def findings(exchanges: Sequence[Exchange]) -> list[Finding]:
    own = [finding for each in exchanges for finding in check(each)]
    return [*own, *check_conversation(map(digest, exchanges))]


@contextlib.asynccontextmanager
async def listening() -> AsyncIterator[int]:
    """A server at a port."""
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port: int = chosen.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *SERVER, str(port), stderr=asyncio.subprocess.PIPE
    )
    try:
        assert process.stderr is not None
        while b"running on" not in await process.stderr.readline():
            assert process.returncode is None
        yield port
    finally:
        process.kill()
        await process.communicate()


FAULTS = [
    ("none", "Gent", None, None),
    ("arguments", "Gent", "C023", Blame.APP),
    ("not asked", "Gent", "C024", Blame.APP),
    ("result", "Gent", "C025", Blame.APP),
    ("none", "Atlantis", "C026", None),
    ("none", "Pompeii", "C026", Blame.TOOL_SERVER),
]


@pytest.mark.parametrize(("fault", "city", "code", "blame"), FAULTS)
def test_who_was_wrong_over_stdin_and_stdout(
    tmp_path: Path, fault: str, city: str, code: str | None, blame: Blame | None
) -> None:
    taped = (sys.executable, "-m", "deltatape", "record", "--mcp-stdio", "--to", "tapes")
    # The SDK passes no PYTHONPATH on, by which a checkout may be found.
    server = ("env", f"PYTHONPATH={os.environ.get('PYTHONPATH', '')}", *taped, "--", *SERVER)
    exchanges = run(session(tmp_path, fault, city, server), LONG_S)
    found = findings(exchanges)
    assert [(each.code, each.blame) for each in found] == ([(code, blame)] if code else [])


@pytest.mark.parametrize(
    ("fault", "city", "code", "blame"), [each for each in FAULTS if each[1] != "Pompeii"]
)
def test_who_was_wrong_over_http(
    tmp_path: Path, fault: str, city: str, code: str | None, blame: Blame | None
) -> None:
    async def scenario() -> list[Exchange]:
        with socket.socket() as chosen:
            chosen.bind(("127.0.0.1", 0))
            here = f"127.0.0.1:{chosen.getsockname()[1]}"
        async with listening() as port:
            options = ("--listen", here, "--upstream", f"weather=http://127.0.0.1:{port}")
            server = (f"http://{here}/weather/mcp",)
            return await session(tmp_path, fault, city, server, *options)

    found = findings(run(scenario(), LONG_S))
    assert [(each.code, each.blame) for each in found] == ([(code, blame)] if code else [])
