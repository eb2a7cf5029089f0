"""The suite of real programs: its table, its scripted provider, and the results of its last runs.

scripts/test-clients runs the programs themselves, which takes minutes.
"""

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
import zstandard
from client_runs.page import WAYS, is_recorded, is_replayed
from client_runs.programs import DRIVERS, Program, programs
from client_runs.provider import CUT, DONE, EMPTY, HEALTHY, SPLIT, Provider, serving

from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import Exchange
from deltatape.providers import PROVIDERS

ROOT = Path(__file__).parent.parent
PROGRAM = ROOT / "scripts" / "test-clients"
RESULTS = yaml.safe_load((ROOT / "tests" / "clients" / "clients-tested.yaml").read_text())
RAN = [each for each in programs() if "healthy" in RESULTS.get(each.name, {})]
PARTIES = {EMPTY: {"upstream", "model"}, CUT: {"transport"}, SPLIT: {"healthy"}}
"""Whom `why` has to name."""

ARGUMENTS = '{"command": "echo Grüße aus 東京; cat notes.txt"}'
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
FUNCTION = {"name": "run", "description": "", "parameters": SCHEMA}
ASKED: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "function", "function": FUNCTION}],
    },
    "/v1/responses": {"input": "hi", "tools": [{"type": "function", **FUNCTION}]},
    "/v1/messages": {
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"name": "run", "input_schema": SCHEMA}],
    },
    "/v1beta/models/m:streamGenerateContent": {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [{"functionDeclarations": [FUNCTION]}],
    },
}
RESULT: dict[str, tuple[str, Any]] = {
    "/v1/chat/completions": ("messages", {"role": "tool", "tool_call_id": "c", "content": "ok"}),
    "/v1/responses": ("input", {"type": "function_call_output", "call_id": "c", "output": "ok"}),
    "/v1/messages": (
        "messages",
        {"role": "user", "content": [{"type": "tool_result", "content": "ok"}]},
    ),
    "/v1beta/models/m:streamGenerateContent": (
        "contents",
        {"role": "user", "parts": [{"functionResponse": {"response": {"output": "ok"}}}]},
    ),
}


async def reads_of(
    way: str, path: str, asked: dict[str, Any], *, streamed: bool = True
) -> tuple[list[bytes], bool]:
    """The HTTP chunks of an answer, and whether it ended as HTTP wants it."""
    body = {"model": "m", "stream": streamed, **asked}
    found = []
    async with (
        serving(Provider(tool="run", arguments=ARGUMENTS, way=way)) as url,
        aiohttp.ClientSession() as session,
        session.post(url + path, json=body) as response,
    ):
        try:
            piece = b""
            async for data, ends in response.content.iter_chunks():
                piece += data
                if ends:
                    found.append(piece)
                    piece = b""
        except aiohttp.ClientPayloadError:
            return found, False
    return found, True


def calls_in(path: str, asked: dict[str, Any], body: bytes) -> list[tuple[str | None, str]]:
    exchange = Exchange.from_body(
        body, content_type="text/event-stream", url=f"http://127.0.0.1{path}", request=asked
    )
    return [(call.name, call.arguments) for call in rebuild(exchange).tool_calls]


@pytest.mark.parametrize("path", ASKED)
def test_a_healthy_provider_calls_the_tool_and_after_its_result_says_a_text(path: str) -> None:
    asked = ASKED[path]
    reads, ended = asyncio.run(reads_of(HEALTHY, path, asked))
    assert ended
    ((name, arguments),) = calls_in(path, asked, b"".join(reads))
    assert (name, json.loads(arguments)) == ("run", json.loads(ARGUMENTS))
    member, result = RESULT[path]
    reads, _ = asyncio.run(reads_of(HEALTHY, path, {**asked, member: [result]}))
    exchange = Exchange.from_body(
        b"".join(reads), content_type="text/event-stream", url=f"http://127.0.0.1{path}"
    )
    assert rebuild(exchange).text == DONE


@pytest.mark.parametrize("path", ASKED)
def test_broken_providers_are_broken_in_their_way(path: str) -> None:
    asked = ASKED[path]
    healthy, _ = asyncio.run(reads_of(HEALTHY, path, asked))
    empty, ended = asyncio.run(reads_of(EMPTY, path, asked))
    assert ended
    assert calls_in(path, asked, b"".join(empty)) in ([("run", "")], [("run", "{}")])
    cut, ended = asyncio.run(reads_of(CUT, path, asked))
    assert not ended
    assert b"".join(healthy).startswith(b"".join(cut))
    split, ended = asyncio.run(reads_of(SPLIT, path, asked))
    assert ended
    assert b"".join(split) == b"".join(healthy)
    assert [each[:1] for each in split[1:]] == [b"\xbc", b"\x9f", b"\x9d", b"\xba"] * (
        len(split) // 4
    )


def test_a_whole_answer_is_cut_and_split_as_a_stream_is() -> None:
    path = "/v1/chat/completions"
    found = {
        way: asyncio.run(reads_of(way, path, ASKED[path], streamed=False))
        for way in (HEALTHY, CUT, SPLIT)
    }
    whole = b"".join(found[HEALTHY][0])
    (choice,) = json.loads(whole)["choices"]
    (call,) = choice["message"]["tool_calls"]
    assert call["function"] == {"name": "run", "arguments": ARGUMENTS}
    (cut,), ended = found[CUT]
    assert not ended
    assert whole.startswith(cut)
    assert b"echo" in cut
    assert len(found[SPLIT][0]) == 5
    assert b"".join(found[SPLIT][0]) == whole


def said_on_socket(way: str, *asked: dict[str, Any]) -> list[list[str]]:
    """The messages that answer each request on a WebSocket."""

    async def converse() -> list[list[str]]:
        found = []
        async with (
            serving(Provider(tool="run", arguments=ARGUMENTS, way=way)) as url,
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{url}/v1/responses") as socket,
        ):
            for body in asked:
                await socket.send_str(json.dumps({"type": "response.create", "model": "m", **body}))
                texts: list[str] = []
                while not texts or '"response.completed"' not in texts[-1]:
                    message = await socket.receive()
                    if message.type is not aiohttp.WSMsgType.TEXT:
                        break
                    texts.append(message.data)
                found.append(texts)
        return found

    return asyncio.run(converse())


def test_a_provider_answers_on_a_websocket_as_over_http() -> None:
    asked = ASKED["/v1/responses"]
    over_http = b"".join(asyncio.run(reads_of(HEALTHY, "/v1/responses", asked))[0])
    events = [line[6:].decode() for line in over_http.splitlines() if line.startswith(b"data: ")]
    result = {**asked, "input": [RESULT["/v1/responses"][1]]}
    for way in (HEALTHY, SPLIT):
        advance, called, said = said_on_socket(way, {**asked, "generate": False}, asked, result)
        assert [json.loads(each)["type"] for each in advance] == [
            *("response.created", "response.in_progress", "response.completed")
        ]
        assert [kind_of(each) for each in called] == [kind_of(each) for each in events]
        assert DONE in said[-1]
    (cut,) = said_on_socket(CUT, asked)
    assert "response.function_call_arguments.delta" in cut[-1]


def kind_of(event: str) -> tuple[str, str]:
    value = json.loads(event)
    return value["type"], value.get("delta", "")


def test_a_compressed_request_is_read() -> None:
    async def ask() -> bytes:
        body = zstandard.compress(
            json.dumps({"model": "m", "stream": True, **ASKED["/v1/responses"]}).encode()
        )
        async with (
            serving(Provider(tool="run", arguments=ARGUMENTS, way=HEALTHY)) as url,
            aiohttp.ClientSession() as session,
            session.post(
                f"{url}/v1/responses", data=body, headers={"content-encoding": "zstd"}
            ) as response,
        ):
            return await response.read()

    assert len(calls_in("/v1/responses", {}, asyncio.run(ask()))) == 1


def test_a_request_without_the_tool_gets_a_text() -> None:
    path = "/v1/chat/completions"
    asked = {"messages": [{"role": "user", "content": "a title, please"}]}
    reads, ended = asyncio.run(reads_of(CUT, path, asked))
    assert ended
    assert calls_in(path, asked, b"".join(reads)) == []


@pytest.mark.parametrize("program", programs(), ids=lambda each: each.name)
def test_an_entry_of_the_table_is_valid(program: Program) -> None:
    assert bool(program.npm) != bool(program.pip)
    separator = "@" if program.npm else "=="
    for package in program.packages:
        name, _, version = package.rpartition(separator)
        assert name
        assert re.fullmatch(r"\d+(\.\d+)+", version), package
    assert program.upstream in PROVIDERS
    assert program.clock in {"faketime", "tape"}
    assert any("{prompt}" in word for word in program.command) or program.driver
    if program.tool:
        assert not json.dumps(json.loads(program.arguments), ensure_ascii=False).isascii()
    if program.driver:
        assert (DRIVERS / program.driver).exists()


def test_documented_versions_are_those_that_were_run() -> None:
    for program in RAN:
        assert program.version.startswith(program.client.version), program.name


@pytest.mark.parametrize("program", RAN, ids=lambda each: each.name)
def test_the_last_run_was_as_documented(program: Program) -> None:
    found = RESULTS[program.name]
    assert found["packages"] == list(program.packages)
    assert is_recorded(program, found["healthy"])
    assert len(found["replays"]) == 2
    assert is_replayed(found["healthy"], found["replays"])
    assert is_replayed(found["healthy"], [found["later"]])


@pytest.mark.parametrize("program", RAN, ids=lambda each: each.name)
def test_why_names_the_right_party_for_each_broken_provider(program: Program) -> None:
    broken = RESULTS[program.name]["broken"]
    assert broken.keys() == WAYS.keys()
    for way, one in broken.items():
        assert one["verdict"].partition(",")[0] in PARTIES[way], way


def run_suite(*words: str) -> tuple[int, str]:
    argv = [sys.executable, str(PROGRAM), *words]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout


def test_the_page_is_what_the_results_tell() -> None:
    ran = subprocess.run(
        [sys.executable, PROGRAM, "--check"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "")


def test_an_unknown_program_is_named() -> None:
    ran = subprocess.run(
        [sys.executable, PROGRAM, "emacs"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert ran.stdout.startswith("unknown: emacs; known: ")
