"""Whole sessions: a model calls a tool, MCP's official SDK runs it; each witness in turn is wrong.

The SDK starts a server without most of the environment: the recorder is found by its folder.
"""

import asyncio
import contextlib
import json
import os
import re
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
from helpers.needed import skip_unless
from helpers.recorded_apps import recorded
from helpers.upstream import Peer, ok_response, provider, run

LONG_S = 240.0
INSTALLED = any(PYTHON.parent.parent.glob("lib/python3*/site-packages/mcp"))
SERVER = (str(PYTHON), str(CLIENTS / "mcp_server.py"))


@pytest.fixture(autouse=True)
def _installed() -> None:
    skip_unless(INSTALLED, "no MCP SDK; scripts/setup clients installs it")


async def model(peer: Peer) -> None:
    """Call the tool for the city of the question, and say so when there is the result."""
    while True:
        _, body = await peer.request()
        messages = json.loads(body)["messages"]
        ended = messages[-1]["role"] == "tool"
        (city,) = re.findall(r"in (\w+)\?", messages[0]["content"])
        arguments = json.dumps({"city": city})
        function = {"name": "mcp__weather__get_weather", "arguments": arguments}
        call = {"id": "call_a1b2c3", "type": "function", "function": function}
        said = {"content": "I see."} if ended else {"content": None, "tool_calls": [call]}
        choice = {
            "index": 0,
            "message": {"role": "assistant", **said},
            "finish_reason": "stop" if ended else "tool_calls",
        }
        members = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
        answer = json.dumps({**members, "choices": [choice]}).encode()
        await peer.send(ok_response(answer, b"Content-Type: application/json"))


async def sessions(
    folder: Path, told: Sequence[tuple[str, str, str]], server: Sequence[str], *options: str
) -> dict[str, list[Exchange]]:
    """Run an agent, once for all its conversations; return what is on each tape, by its name."""
    async with provider(model) as port:
        upstream = ("--upstream", f"openai=http://127.0.0.1:{port}")
        agent = (str(PYTHON), str(CLIENTS / "mcp_agent.py"), json.dumps(told), *server)
        result = await recorded(folder, *upstream, *options, "--", *agent)
    assert result.returncode == 0, result.stderr.decode()
    assert result.stdout == b"I see.\n" * len(told)
    return {
        path.stem: sorted(open_tape(path), key=lambda exchange: exchange.number)
        for path in (folder / "tapes").glob("*.tape")
    }


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


def conversations(exchanges: Sequence[Exchange]) -> list[list[Exchange]]:
    """Divide what an agent did in turn: it connects to the server before each conversation."""
    found: list[list[Exchange]] = []
    for each in exchanges:
        if b'"initialize"' in each.request.body:
            found.append([])
        found[-1].append(each)
    return found


def test_who_was_wrong_over_stdin_and_stdout(tmp_path: Path) -> None:
    taped = (sys.executable, "-m", "deltatape", "record", "--mcp-stdio", "--to", "tapes")
    # The SDK passes no PYTHONPATH on, by which a checkout may be found.
    server = ("env", f"PYTHONPATH={os.environ.get('PYTHONPATH', '')}", *taped, "--", *SERVER)
    told = [("", fault, city) for fault, city, *_ in FAULTS]
    (exchanges,) = run(sessions(tmp_path, told, server), LONG_S).values()
    found = [[(each.code, each.blame) for each in findings(of)] for of in conversations(exchanges)]
    assert found == [[(code, blame)] if code else [] for *_, code, blame in FAULTS]


def test_who_was_wrong_over_http(tmp_path: Path) -> None:
    faults = [each for each in FAULTS if each[1] != "Pompeii"]
    told = [(f"of-{number}", fault, city) for number, (fault, city, *_) in enumerate(faults)]

    async def scenario() -> dict[str, list[Exchange]]:
        with socket.socket() as chosen:
            chosen.bind(("127.0.0.1", 0))
            here = f"127.0.0.1:{chosen.getsockname()[1]}"
        async with listening() as port:
            options = ("--listen", here, "--upstream", f"weather=http://127.0.0.1:{port}")
            server = (f"http://{here}/weather/mcp",)
            return await sessions(tmp_path, told, server, *options)

    found = {
        tape: [(each.code, each.blame) for each in findings(exchanges)]
        for tape, exchanges in run(scenario(), LONG_S).items()
        if tape.startswith("of-")
    }
    assert found == {
        tape: [(code, blame)] if code else []
        for (tape, *_), (*_, code, blame) in zip(told, faults, strict=True)
    }
