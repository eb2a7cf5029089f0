"""No provider is reached past the player, everything else is, and what was tried is told."""

import asyncio
import base64
import socket
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from deltatape.gateway.outbound import outbound_from
from deltatape.replay.guard import NetworkGuard, NetworkGuardTunnel
from deltatape.trials.torture import torture
from helpers.corporate import corporate_proxy
from helpers.tortured import rig
from helpers.upstream import Peer, connect, provider, run


async def connected(variables: Mapping[str, str], authority: str) -> Peer:
    """A client that has asked for a way to `authority`."""
    proxy = urlsplit(variables["HTTPS_PROXY"])
    assert proxy.port is not None
    pair = base64.b64encode(f"{proxy.username}:{proxy.password}".encode())
    client = await connect(proxy.port)
    fields = f"Host: {authority}\r\nProxy-Authorization: Basic {pair.decode()}\r\n"
    await client.send(f"CONNECT {authority} HTTP/1.1\r\n{fields}\r\n".encode())
    return client


async def echo(peer: Peer) -> None:
    await peer.send(await peer.reader.readexactly(2))


def test_a_provider_is_refused_once_told_with_the_place_in_the_code(tmp_path: Path) -> None:
    (tmp_path / "llm.py").write_text('import os\nBASE = "https://api.openai.com/v1"\n')
    told: list[str] = []

    async def scenario() -> None:
        guard = NetworkGuardTunnel(outbound_from({}), tmp_path, told.append)
        variables = await guard.start(1)
        assert variables["https_proxy"] == variables["HTTPS_PROXY"]
        for _ in range(2):
            client = await connected(variables, "api.openai.com:443")
            answer = (await client.rest())[0]
            assert answer.startswith(b"HTTP/1.1 403 ")
            assert b"tapes are played, so no provider is asked" in answer
        await guard.stop()
        assert guard.refused == {"api.openai.com": "openai"}

    run(scenario())
    assert told == [
        (
            "BLOCKED: your app sent a request directly to api.openai.com, not to the player;"
            " see llm.py:2"
        ),
        '    instead of BASE = "https://api.openai.com/v1"',
        '    write      BASE = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")',
    ]


def test_other_hosts_and_the_player_are_reached(tmp_path: Path) -> None:
    told: list[str] = []

    async def scenario() -> None:
        guard = NetworkGuardTunnel(outbound_from({}), tmp_path, told.append)
        async with provider(echo) as port, provider(echo) as player:
            variables = await guard.start(player)
            for each in (port, player):
                client = await connected(variables, f"127.0.0.1:{each}")
                await client.until(b"\r\n\r\n")
                await client.send(b"hi")
                assert await client.reader.readexactly(2) == b"hi"
            await guard.stop()
        assert guard.refused == {}

    run(scenario())
    assert told == []


def test_a_host_that_is_allowed_is_reached_and_told(tmp_path: Path) -> None:
    told: list[str] = []

    async def scenario() -> None:
        async with provider(echo) as port, corporate_proxy({"api.openai.com": port}) as proxy:
            outbound = outbound_from({"HTTPS_PROXY": f"http://127.0.0.1:{proxy.port}"})
            guard = NetworkGuardTunnel(outbound, tmp_path, told.append, allowed=("API.openai.com",))
            variables = await guard.start(1)
            client = await connected(variables, "api.openai.com:443")
            await client.until(b"\r\n\r\n")
            await client.send(b"hi")
            assert await client.reader.readexactly(2) == b"hi"
            other = await connected(variables, "api.groq.com:443")
            assert (await other.rest())[0].startswith(b"HTTP/1.1 403 ")
            await guard.stop()
        assert guard.refused == {"api.groq.com": "groq"}
        assert list(guard.remarks()) == [
            "not played: api.openai.com was reached directly, as --allow-host says"
        ]

    run(scenario())
    assert "api.openai.com" not in "".join(told)


def test_without_a_place_in_the_code_doctor_is_named(tmp_path: Path) -> None:
    told: list[str] = []

    async def scenario() -> None:
        guard = NetworkGuardTunnel(outbound_from({}), tmp_path, told.append)
        client = await connected(await guard.start(1), "api.anthropic.com:443")
        await client.rest()
        await guard.stop()
        await asyncio.sleep(0)

    run(scenario())
    assert told == [
        "BLOCKED: your app sent a request directly to api.anthropic.com, not to the player",
        "    run `deltatape doctor` to find the place in your code",
    ]


def answer_to_connect(url: str, authority: str) -> bytes:
    """The beginning of the answer to a CONNECT."""
    at = urlsplit(url)
    user = base64.b64encode(f"{at.username}:{at.password}".encode()).decode()
    with socket.create_connection((at.hostname or "", at.port or 0), timeout=5) as sock:
        head = f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n"
        sock.sendall(f"{head}Proxy-Authorization: Basic {user}\r\n\r\n".encode())
        return sock.recv(4096)


def test_a_provider_is_out_of_reach_and_who_asked_for_it_is_reported(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text('URL = "https://api.groq.com/openai/v1"\n')
    with NetworkGuard(outbound_from({}), tmp_path) as network_guard:
        assert network_guard.problem() == ""
        answer = answer_to_connect(network_guard.variables["HTTPS_PROXY"], "api.groq.com:443")
        assert answer.startswith(b"HTTP/1.1 403 ")
        assert network_guard.refused == ["api.groq.com"]
        problem = network_guard.problem()
        assert problem.startswith(
            "your app sent a request directly to api.groq.com, not to the player"
        )
        assert "app.py:1" in problem
    assert network_guard.problem() == problem


def test_telemetry_is_blocked_and_not_reported(tmp_path: Path) -> None:
    telemetry = {"api.groq.com": "Somebody's framework"}
    with NetworkGuard(outbound_from({}), tmp_path, telemetry=telemetry) as network_guard:
        answer = answer_to_connect(network_guard.variables["HTTPS_PROXY"], "api.groq.com:443")
        assert answer.startswith(b"HTTP/1.1 403 ")
    assert network_guard.problem() == ""


def test_a_command_that_is_tortured_reaches_nobody_but_the_player(tmp_path: Path) -> None:
    program = "import urllib.request as r; r.urlopen('https://api.groq.com/openai/v1/models')"
    made = rig(tmp_path, "once", only=("every-byte",))
    with NetworkGuard(outbound_from({}), tmp_path) as network_guard:
        command = (sys.executable, "-c", program)
        result = torture(replace(made, command=command, network_guard=network_guard))
    assert "your app sent a request directly to api.groq.com" in result.problem
    assert result.runs == 2
