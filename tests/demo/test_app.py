"""The demo's application: two accumulators that differ in one decision."""

import asyncio
import json
import sys
from collections.abc import Iterable
from typing import Any

import pytest

from deltatape.demo import app
from deltatape.demo.app import Accumulator, AppToolCall, by_index, run_tool, single_call
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.upstream import SSE_HEAD, Peer, Script, chunk, free_port, provider, run

ONE: list[dict[str, Any]] = [
    {"role": "assistant", "content": None},
    {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "get", "arguments": ""}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": '{"q":'}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]},
    {},
]
TWO: list[dict[str, Any]] = [
    {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "get", "arguments": ""}}]},
    {"tool_calls": [{"index": 1, "id": "b", "function": {"name": "put", "arguments": None}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": '{"q":1}'}}, {"index": 1}]},
    {"tool_calls": [{"index": 1, "function": {"arguments": '{"p":2}'}}]},
]
FRAMES = (
    calls(entry(0, "a", name="get_itinerary", arguments="")),
    calls(entry(1, "b", name="search_flights", arguments="")),
    calls(entry(0, arguments='{"trip_id":"x"}')),
    calls(entry(1, arguments='{"day":"y"}')),
    FINISH,
)


def understood(accumulate: Accumulator, deltas: Iterable[dict[str, Any]]) -> list[AppToolCall]:
    return accumulate(iter(deltas)).calls


@pytest.mark.parametrize("accumulate", [single_call, by_index])
def test_both_understand_text_and_a_single_call(accumulate: Accumulator) -> None:
    assert understood(accumulate, ONE) == [AppToolCall("a", "get", '{"q":1}')]
    words: list[dict[str, Any]] = [{"content": "hel"}, {"content": None}, {"content": "lo"}]
    assert accumulate(iter(words)).text == "hello"


def test_the_broken_one_gives_fragments_to_the_call_opened_last() -> None:
    assert understood(single_call, TWO) == [
        AppToolCall("a", "get", ""),
        AppToolCall("b", "put", '{"q":1}{"p":2}'),
    ]


def test_the_fixed_one_gives_fragments_to_the_call_of_their_index() -> None:
    assert understood(by_index, TWO) == [
        AppToolCall("a", "get", '{"q":1}'),
        AppToolCall("b", "put", '{"p":2}'),
    ]


def test_a_tool_is_run_with_its_arguments_or_says_what_is_wrong_with_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert json.loads(run_tool(AppToolCall("a", "get", '{"q": 1}'))) == {
        "ok": True,
        "asked": {"q": 1},
    }
    assert (
        "bad arguments: Expecting value"
        in json.loads(run_tool(AppToolCall("a", "get", "")))["error"]
    )
    assert capsys.readouterr().out.splitlines() == [
        "app: get({'q': 1})",
        "app: get failed: bad arguments '': Expecting value: line 1 column 1 (char 0)",
    ]


def talk(monkeypatch: pytest.MonkeyPatch, script: Script, accumulator: str = "by-index") -> int:
    """The application's exit code when it talks to a provider that runs `script`."""
    monkeypatch.setattr(sys, "argv", ["app", "--accumulator", accumulator])

    async def scenario() -> int:
        async with provider(script) as port:
            monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1")
            return await asyncio.to_thread(app.main)

    return run(scenario())


def answering(requests: list[dict[str, Any]], *bodies: bytes) -> Script:
    """A provider that answers the requests with these bodies, and keeps what was asked."""

    async def script(peer: Peer) -> None:
        head, body = await peer.request()
        requests.append(json.loads(body))
        assert head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\n")
        await peer.send(SSE_HEAD + chunk(bodies[len(requests) - 1]) + b"0\r\n\r\n")
        await peer.rest()

    return script


@pytest.mark.parametrize(
    ("accumulator", "expected"),
    [
        ("by-index", ['{"trip_id":"x"}', '{"day":"y"}']),
        ("single-call", ["", '{"trip_id":"x"}{"day":"y"}']),
    ],
)
def test_calls_are_run_and_repeated_as_they_were_understood(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    accumulator: str,
    expected: list[str],
) -> None:
    requests: list[dict[str, Any]] = []
    script = answering(requests, sse(*FRAMES), sse(choice({"content": "done"}, "stop")))
    assert talk(monkeypatch, script, accumulator) == 0
    question, reply, *results = requests[1]["messages"]
    assert question == app.QUESTION
    assert [call["function"]["arguments"] for call in reply["tool_calls"]] == expected
    assert [result["tool_call_id"] for result in results] == ["a", "b"]
    assert requests[0]["tools"] == app.TOOLS
    assert capsys.readouterr().out.endswith("app: done\n")


def test_an_answer_without_calls_is_the_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert talk(monkeypatch, answering([], sse(choice({"content": "hello"}, "stop")))) == 0
    assert capsys.readouterr().out == "app: hello\n"


def test_a_silent_answer_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert talk(monkeypatch, answering([], sse(choice({}, "stop")))) == 1
    assert capsys.readouterr().out == "app: (the assistant said nothing)\n"


def test_a_stream_that_breaks_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def cut(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + b"ff\r\ndata: {")
        peer.close()

    assert talk(monkeypatch, cut) == 1
    assert "app: the stream broke: IncompleteRead" in capsys.readouterr().out


def test_a_provider_that_is_not_there_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["app", "--accumulator", "by-index"])
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{free_port()}/v1")
    assert app.main() == 1
    assert "ConnectionRefusedError" in capsys.readouterr().out
