"""LiteLLM's proxy between two taps: `diff` names what it changes, and what a broken one breaks."""

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deltatape.store.reader import open_tape
from helpers.clients import CLIENTS, ROOT
from helpers.console import called
from helpers.needed import skip_unless
from helpers.program import environment, program
from helpers.sample_streams import SampleStream, sample_stream
from helpers.upstream import SSE_HEAD, Peer, chunk, connect, free_port, post, provider, run

pytestmark = pytest.mark.slow
LITELLM = ROOT / ".venv-litellm" / "bin" / "litellm"
LIMIT_S = 500.0
CHAT, MESSAGES, RESPONSES = (
    sample_stream(name) for name in ("openai-chat", "anthropic-messages", "openai-responses")
)
MODELS = (
    ("gpt-4o", "openai", "/v1"),
    ("gpt-4.1", "openai", "/v1"),
    ("claude-fake", "anthropic", ""),
)


def broken(how: str) -> dict[str, object]:
    """What makes the proxy break the answer to a request; see litellm_hooks.py."""
    return {"metadata": {"user_id": how}} if how.startswith("messages") else {"user": how}


ASKED: Mapping[str, tuple[SampleStream, dict[str, object]]] = {
    "chat": (CHAT, {}),
    "messages": (MESSAGES, {}),
    "responses": (RESPONSES, {}),
    "chat of Anthropic's": (CHAT, {"model": "claude-fake"}),
    "messages of OpenAI's": (MESSAGES, {"model": "gpt-4o"}),
    "responses of Anthropic's": (RESPONSES, {"model": "claude-fake"}),
    **{
        how: (stream, broken(how))
        for stream, how in (
            *((CHAT, f"chat-{how}") for how in ("drop", "empty", "finish", "id", "index")),
            (MESSAGES, "messages-empty"),
            (RESPONSES, "responses-cut"),
        )
    },
}
"""What the app sends to the proxy, by the name of the case."""


@dataclass(frozen=True, slots=True)
class Taped:
    """The folder of both tapes, and the numbers of each case's exchanges in them."""

    folder: Path
    numbers: Mapping[str, tuple[int, int]]

    def names(self, case: str) -> tuple[str, str]:
        """The exchanges of a case, the provider's first."""
        near_provider, near_app = self.numbers[case]
        return f"provider.tape#{near_provider}", f"app.tape#{near_app}"

    def lines(self, case: str) -> list[str]:
        """What `diff` shows."""
        result = called("diff", *self.names(case), folder=self.folder, env={"COLUMNS": "200"})
        return result.stdout.decode().splitlines()

    def hop(self, case: str) -> dict[str, Any]:
        """What `diff` says to programs."""
        names = self.names(case)
        document = json.loads(called("diff", *names, "--format", "json", folder=self.folder).stdout)
        (hop,) = document["hops"]
        assert document["damaged"] == (0 if hop["calls"] else None)
        return dict(hop)

    def damages(self, case: str) -> list[tuple[str, str]]:
        """Which calls are damaged, and how."""
        return [(call["left"]["name"], call["damage"]) for call in self.hop(case)["calls"]]


async def answer(peer: Peer) -> None:
    """Stream the sample of the dialect that is asked for."""
    while True:
        head, _ = await peer.request()
        target = head.split()[1].decode()
        stream = next((s for s in (CHAT, MESSAGES, RESPONSES) if s.target == target), None)
        if stream is None:  # the proxy asks for the models of a provider
            await peer.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}")
            continue
        await peer.send(SSE_HEAD + b"".join(map(chunk, stream.pieces)) + b"0\r\n\r\n")


@contextlib.asynccontextmanager
async def proxy(folder: Path, upstream: str) -> AsyncIterator[str]:
    """LiteLLM's proxy in front of `upstream`; its URL."""
    shutil.copy(CLIENTS / "litellm_hooks.py", folder)
    models = [
        {
            "model_name": name,
            "litellm_params": {
                "model": f"{kind}/{name}",
                "api_base": f"{upstream}{path}",
                "api_key": "fake-000000",
            },
        }
        for name, kind, path in MODELS
    ]
    hooks = {"callbacks": ["litellm_hooks.handler"]}
    settings = {"model_list": models, "litellm_settings": hooks}
    (folder / "config.yaml").write_text(json.dumps(settings))
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *(str(LITELLM), "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)),
        cwd=folder,
        env={
            **{k: v for k, v in environment(folder).items() if not k.startswith("PYTHON")},
            "HOME": str(folder),
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    shown = b""
    try:
        while b"Uvicorn running" not in shown:
            line = await process.stdout.readline()
            assert line, shown.decode()
            shown += line
        reading = asyncio.ensure_future(process.stdout.read())
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        await process.wait()
    await reading


async def converse(folder: Path) -> None:
    """Send every request through a tap, the proxy and another tap to the provider."""
    listen = ("--listen", "127.0.0.1:0", "--upstream")
    async with provider(answer) as port:
        upstream = f"http://127.0.0.1:{port}"
        with program("record", "--to", "b", *listen, upstream, folder=folder) as near_provider:
            async with proxy(folder, near_provider.url) as url:
                with program("record", "--to", "a", *listen, url, folder=folder) as near_app:
                    for stream, fields in ASKED.values():
                        peer = await connect(int(near_app.url.rpartition(":")[2]))
                        body = json.dumps({**stream.request, **fields}).encode()
                        await peer.send(post(body, stream.target, "Authorization: Bearer fake\r\n"))
                        assert (await peer.rest_or_end()).startswith(b"HTTP/1.1 200 ")
                        peer.close()
                    near_app.stop()
            near_provider.stop()


@pytest.fixture(scope="module")
def taped(tmp_path_factory: pytest.TempPathFactory) -> Taped:
    skip_unless(LITELLM.exists(), "no proxy of LiteLLM; scripts/setup litellm installs it")
    folder = tmp_path_factory.mktemp("taps")
    run(converse(folder), LIMIT_S)
    numbers = []
    for name, made in (("provider.tape", "b"), ("app.tape", "a")):
        (path,) = (folder / made).glob("*.tape")
        path.rename(folder / name)
        numbers.append(
            [each.number for each in open_tape(folder / name) if each.request.method == "POST"]
        )
    return Taped(folder, dict(zip(ASKED, zip(*numbers, strict=True), strict=True)))


def test_what_it_makes_of_chat_is_told_once_and_damages_no_call(taped: Taped) -> None:
    lines = taped.lines("chat")
    assert lines[2] == "21 events altered"
    assert '  in 21 events: $.model: "gpt-4o-2024-08-06" -> "gpt-4o"' in lines
    assert "  in 20 events: $.choices[0].logprobs: null -> (absent)" in lines
    assert sum("gpt-4o-2024-08-06" in line for line in lines) == 1
    ends = [line.strip() for line in lines[-3:]]
    assert ends[0] == "$.choices.length: 0 -> 1"
    assert ends[1].startswith("$.usage.cost: (absent) -> ")
    hop = taped.hop("chat")
    assert (hop["calls"], hop["reply"]) == ([], [])


def test_it_passes_messages_on_as_they_are(taped: Taped) -> None:
    assert taped.lines("messages")[2] == "equal"


def test_of_responses_it_drops_the_event_lines_and_adds_an_end(taped: Taped) -> None:
    lines = taped.lines("responses")
    assert lines[2] == "30 events altered, 1 event inserted"
    assert any(line.startswith("  framing: event lines of 30 events: ") for line in lines)
    assert '  in 30 events: $.model: (absent) -> "gpt-4.1"' in lines
    assert lines[-1].endswith("inserted: nothing new: [DONE]")
    assert taped.hop("responses")["calls"] == []


@pytest.mark.parametrize(
    ("case", "provider_side", "app_side"),
    [
        ("chat of Anthropic's", "anthropic-messages", "openai-chat"),
        ("messages of OpenAI's", "openai-responses", "anthropic-messages"),
        ("responses of Anthropic's", "anthropic-messages", "openai-responses"),
    ],
)
def test_a_translation_is_compared_by_what_it_says(
    taped: Taped, case: str, provider_side: str, app_side: str
) -> None:
    hop = taped.hop(case)
    assert (hop["left"]["dialect"], hop["right"]["dialect"]) == (provider_side, app_side)
    assert (hop["equal"], hop["compared"]) == (True, "content")
    asked = f'"{sample_stream(app_side).target}" -> "{sample_stream(provider_side).target}"'
    assert f"  request, right to left: path: {asked}" in taped.lines(case)


def test_its_headers_are_told_and_make_nobody_unequal(taped: Taped) -> None:
    hop = taped.hop("messages")
    added = [
        each["path"]
        for each in hop["context"]
        if each["part"] == "headers" and each["left"] == "(absent)"
    ]
    assert "x-litellm-call-id" in added
    assert hop["equal"]


def test_a_dropped_chunk_is_the_cause_although_all_chunks_are_altered(taped: Taped) -> None:
    assert taped.damages("chat-drop") == [("get_weather", "arguments")]
    (call,) = taped.hop("chat-drop")["calls"]
    assert (call["cause"]["kind"], call["cause"]["left"]) == ("dropped", [8])
    lines = taped.lines("chat-drop")
    assert "      first change: event 8, dropped" in lines


def test_emptied_arguments_are_named_in_both_dialects(taped: Taped) -> None:
    both = [("get_weather", "arguments"), ("get_forecast", "arguments")]
    assert taped.damages("chat-empty") == both
    assert taped.damages("messages-empty") == both
    assert "      + (no bytes)" in taped.lines("messages-empty")


def test_a_shared_index_and_changed_ids_are_damage(taped: Taped) -> None:
    assert taped.damages("chat-index") == [("get_forecast", "identity")]
    lines = taped.lines("chat-index")
    assert any(line.endswith(": shares the index of another call") for line in lines)
    assert "      index: 1 -> 0, as call 0" in lines
    assert taped.damages("chat-id") == [("get_weather", "identity"), ("get_forecast", "identity")]
    ids = '      id: "call_fake00000000000000000Gent" -> "call_0"'
    assert ids in taped.lines("chat-id")


def test_a_finish_reason_of_its_own_is_told(taped: Taped) -> None:
    assert '  reply: finish reason: "tool_calls" -> "stop"' in taped.lines("chat-finish")


def test_a_stream_that_it_cuts_loses_a_call_and_the_end(taped: Taped) -> None:
    assert taped.damages("responses-cut") == [
        ("get_weather", "arguments"),
        ("get_forecast", "lost"),
    ]
    lines = taped.lines("responses-cut")
    assert any(line.startswith("  reply: ended as it should: true -> false") for line in lines)
