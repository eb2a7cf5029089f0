"""Amazon Bedrock with a bearer token: what can be led through a gateway, and what by mitmproxy."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import deltatape
from deltatape.model.exchange import EndReason, Exchange
from deltatape.store.reader import open_tape
from helpers.clients import AMAZON, BEDROCK, CONVERSING, PYTHON, ROOT, Sdk, available
from helpers.mitm import NEWEST, Authority, authority, installed, variables, write_ca
from helpers.program import deltatape as called
from helpers.sample_streams import CALLS
from helpers.upstream import Peer, chunk, provider, run

SDKS = [sdk for sdk in CONVERSING if sdk.prefix == "bedrock"]
HOST = "localhost"
LIMIT_S = 90
PAUSE_S = 0.002
AMAZONS = """
import botocore.session
client = botocore.session.Session().create_client("bedrock-runtime", region_name="eu-west-1")
client.converse_stream(modelId="m", messages=[])
"""
ANTHROPICS = """
import anthropic, json
client = anthropic.AnthropicBedrock(max_retries=0)
asked = {"model": "anthropic.claude-3-5-sonnet-20241022-v2:0", "max_tokens": 400, "messages": []}
with client.messages.create(**asked, stream=True) as stream:
    print(json.dumps([event.to_dict() for event in stream]))
"""
"""An application on Anthropic's SDK, whose base URL is the environment's."""


def recorded(sdk: Sdk) -> Exchange:
    """The one exchange on the tape of the SDK's dialect."""
    (exchange,) = open_tape(ROOT / "recordings" / "dialects" / f"{sdk.dialect}.tape")
    return exchange


@asynccontextmanager
async def amazon(
    exchange: Exchange, by: Authority | None = None
) -> AsyncIterator[tuple[str, list[bytes]]]:
    """An endpoint that gives the tape's answer read by read; its URL, and the heads it got."""
    heads: list[bytes] = []
    media = b"Content-Type: application/vnd.amazon.eventstream\r\nx-amzn-RequestId: fake-0000\r\n"
    head = b"HTTP/1.1 200 OK\r\n%bTransfer-Encoding: chunked\r\n\r\n" % media

    async def script(peer: Peer) -> None:
        while True:
            heads.append((await peer.request())[0])
            await peer.send(head)
            for read in exchange.reads:
                await peer.send(chunk(read.data))
                await asyncio.sleep(PAUSE_S)
            await peer.send(b"0\r\n\r\n")

    async with provider(script, tls=by and by.context) as port:
        yield f"http{'s' if by else ''}://{HOST}:{port}", heads


async def understood(url: str, *command: str, folder: Path, env: dict[str, str]) -> str:
    """What an application prints of one turn with the endpoint."""

    def ran() -> subprocess.CompletedProcess[bytes]:
        asked = f"{url}\n".encode()
        return subprocess.run(
            command, input=asked, cwd=folder, env=env, capture_output=True, timeout=300, check=False
        )

    done = await asyncio.to_thread(ran)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.mark.parametrize("version", NEWEST)
@pytest.mark.parametrize("sdk", SDKS, ids=lambda sdk: sdk.name)
def test_amazons_sdk_sees_the_same_behind_mitmproxy_and_its_calls_are_on_the_tape(
    sdk: Sdk, version: str, tmp_path: Path
) -> None:
    available(sdk)
    original, by = recorded(sdk), authority(tmp_path)
    write_ca(tmp_path / ".mitmproxy")
    env = {**variables(tmp_path, installed(version)), **AMAZON, "HOME": str(tmp_path)}
    app = (*sdk.command, original.request.body.decode())
    tapes = tmp_path / "tapes"
    record = (sys.executable, "-m", "deltatape", "record", "--via", "mitm", "--hosts", HOST)
    options = ("--ca", str(by.path), "--to", str(tapes), "--strict", "--")

    async def scenario() -> list[bytes]:
        async with amazon(original, by) as (url, heads):
            trusting = {**env, "AWS_CA_BUNDLE": str(by.path)}
            direct = await understood(url, *app, folder=tmp_path, env=trusting)
            taped = await understood(url, *record, *options, *app, folder=tmp_path, env=env)
            assert taped == direct
            assert "get_weather" in direct
        return heads

    heads = run(scenario(), limit_s=LIMIT_S)
    token = f"Bearer {AMAZON['AWS_BEARER_TOKEN_BEDROCK']}".encode()
    assert [token in head for head in heads] == [True, True]
    fields = [{line for line in head.split(b"\r\n") if line[:5] == b"Host:"} for head in heads]
    assert fields[0] == fields[1] != set()  # a signature for it would still be right
    (path,) = tapes.glob("*.tape")
    (exchange,) = open_tape(path)
    assert token not in path.read_bytes()
    assert exchange.body == original.body
    assert exchange.end is not None
    assert exchange.end.reason is EndReason.COMPLETE
    assert len(exchange.reads) > 1
    assert calls(exchange) == calls(original)
    assert [name for name, _, _ in calls(exchange)] == [name for name, _ in CALLS]


def calls(exchange: Exchange) -> list[tuple[str | None, str, str | None]]:
    """What the rebuilt reply calls."""
    made = deltatape.rebuild(exchange).tool_calls
    return [(call.name, call.arguments, call.id) for call in made]


def test_amazons_sdk_sends_no_token_over_http_so_that_record_sets_it_no_endpoint(
    tmp_path: Path,
) -> None:
    available(BEDROCK)
    done = subprocess.run(
        (str(PYTHON), "-c", AMAZONS),
        env={**AMAZON, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "http://127.0.0.1:9"},
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert b"Bearer authorization requires an HTTPS endpoint." in done.stderr
    show = ("sh", "-c", "echo ${AWS_ENDPOINT_URL_BEDROCK_RUNTIME-unset}")
    told = called(
        *("record", "--upstream", "bedrock=http://127.0.0.1:9", "--", *show),
        folder=tmp_path,
        env=AMAZON,
    )
    assert told.stdout == b"unset\n"


def test_anthropics_sdk_sends_its_token_over_http_to_where_record_leads_it(tmp_path: Path) -> None:
    sdk = next(each for each in SDKS if each.dialect == "bedrock-invoke")
    available(sdk)
    original = recorded(sdk)

    async def scenario() -> bytes:
        async with amazon(original) as (url, _):
            given = ("record", "--upstream", f"bedrock={url}", "--to", "tapes", "--")
            command = (*given, str(PYTHON), "-c", ANTHROPICS)
            done = await asyncio.to_thread(
                called, *command, folder=tmp_path, env={**AMAZON, "AWS_REGION": "eu-west-1"}
            )
            assert done.returncode == 0, done.stderr.decode()
            return done.stdout

    events = json.loads(run(scenario(), limit_s=LIMIT_S))
    assert events[-1]["type"] == "message_stop"
    (path,) = (tmp_path / "tapes").glob("*.tape")
    (exchange,) = open_tape(path)
    assert exchange.body == original.body
