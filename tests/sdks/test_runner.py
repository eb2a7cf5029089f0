"""A runner is asked stream by stream; one that hangs or dies costs only the stream it was at."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from deltatape.errors import DeltatapeError
from deltatape.model.exchange import EndReason, Exchange
from deltatape.model.request_summary import RepeatedCall
from deltatape.sdks.runner import (
    Environment,
    SdkReply,
    SdkRun,
    SdkStream,
    node_environment,
    python_environment,
    run_sdk,
    standing,
)
from helpers.clients import CLIENTS, PYTHON, SDKS, available
from helpers.taped import taped
from helpers.upstream import connect, post, run
from helpers.vectors import VECTORS, Vector

GET = RepeatedCall(id="c1", name="get", arguments='{"a":1}')
PROGRAM = """
import json, os, sys, time
print(json.dumps({"fake": "1.0"}), flush=True)
for line in sys.stdin:
    wanted = json.loads(line)
    (tool,) = wanted["tools"]
    if tool == "hang":
        time.sleep(60)
    if tool == "die":
        print("out of memory", file=sys.stderr)
        os._exit(3)
    if tool == "environment":
        tool = " ".join(sorted(os.environ.keys() - {"LC_CTYPE"}))
    told = {"calls": [], "refused": [], "text": tool, "finish": None, "error": None}
    print(json.dumps(told), flush=True)
"""


def stream(vector: Vector, *tools: str) -> SdkStream:
    url = "http://p.example/v1/chat/completions"
    exchange = Exchange.from_body(vector.body, content_type="text/event-stream", url=url)
    return SdkStream(exchange=exchange, dialect="openai-chat", tools=tools)


def ran(environment: Environment, *streams: SdkStream, limit_s: float = 20.0) -> SdkRun:
    return asyncio.run(run_sdk(environment, streams, limit_s=limit_s))


def fake(program: str = PROGRAM) -> Environment:
    command = (sys.executable, "-c", program)
    return Environment(package="fake", command=command, folder=Path(sys.prefix))


def test_an_sdk_for_python_tells_what_it_makes_of_streams() -> None:
    available(SDKS[0])
    streams = stream(VECTORS[0], "get"), stream(VECTORS[7]), stream(VECTORS[33])
    run = ran(python_environment("openai", PYTHON), *streams)
    assert set(run.versions) == {"openai"}
    good, broken, wordless = run.replies
    assert good == SdkReply(calls=(GET,), finish="tool_calls")
    assert broken.error.startswith("TypeError: list indices")
    assert wordless.error == "AssertionError"


def test_an_sdk_for_node_tells_what_it_makes_of_streams() -> None:
    available(SDKS[1])
    streams = stream(VECTORS[0], "get"), stream(VECTORS[15], "get"), stream(VECTORS[36], "get")
    run = ran(node_environment("ai", CLIENTS), *streams)
    assert {"ai", "@ai-sdk/openai-compatible"} <= set(run.versions)
    good, doubled, failed = run.replies
    assert good == SdkReply(calls=(GET,), finish="tool-calls")
    assert [call.arguments for call in doubled.refused] == ['{}{"a":1}']
    assert failed.error == "AI_StreamProviderError: overloaded"


def test_a_stream_without_end_costs_only_itself() -> None:
    streams = [stream(VECTORS[0], tool) for tool in ("a", "hang", "b")]
    replies = ran(fake(), *streams, limit_s=1.0).replies
    assert [reply.text for reply in replies] == ["a", "", "b"]
    assert replies[1].error == "Timeout: no end after 1 s"


def test_a_process_that_dies_tells_its_last_words_and_the_next_one_goes_on() -> None:
    streams = [stream(VECTORS[0], tool) for tool in ("die", "die", "b")]
    replies = ran(fake(), *streams).replies
    assert [reply.text for reply in replies] == ["", "", "b"]
    assert replies[0].error == "Exit: its process ended: out of memory"


def test_no_streams_tell_the_version() -> None:
    assert ran(fake()) == SdkRun(versions={"fake": "1.0"}, replies=())


def test_keys_proxies_and_settings_of_the_user_are_not_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HTTPS_PROXY", "OPENAI_API_KEY", "LANGSMITH_TRACING", "NODE_OPTIONS"):
        monkeypatch.setitem(os.environ, name, "x")
    monkeypatch.setitem(os.environ, "HOME", "/home/somebody")
    (reply,) = ran(fake(), stream(VECTORS[0], "environment")).replies
    assert set(reply.text.split()) - {"SSL_CERT_DIR"} <= {
        *("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR")
    }


def test_a_program_that_does_not_start_is_reported() -> None:
    with pytest.raises(DeltatapeError, match=r"fake: cannot be started: Exit: .* no such package"):
        ran(fake("raise SystemExit('no such package')"), stream(VECTORS[0]))
    missing = Environment(package="fake", command=("/nonexistent/python",), folder=Path("/"))
    with pytest.raises(DeltatapeError, match="fake: /nonexistent/python cannot be run: No such"):
        ran(missing, stream(VECTORS[0]))


BODY = b"data: {}\n\n"


def answered(target: str, *exchanges: Exchange) -> tuple[bytes, str]:
    async def scenario() -> tuple[bytes, str]:
        async with standing(exchanges) as stand:
            client = await connect(int(stand.url(0).split(":")[2].partition("/")[0]))
            await client.send(post(target=target, extra="Connection: close\r\n"))
            return await client.rest()

    return run(scenario())


def imported(body: bytes) -> Exchange:
    return Exchange.from_body(body, content_type="text/event-stream", url="http://p.example/v1")


def test_the_number_in_the_path_tells_the_exchange() -> None:
    exchanges = imported(b"data: 0\n\n"), imported(b"data: 1\n\n")
    assert answered("/0/v1/chat/completions", *exchanges)[0].endswith(b"\r\n\r\ndata: 0\n\n")
    assert answered("/1/v1/chat/completions", *exchanges)[0].endswith(b"\r\n\r\ndata: 1\n\n")
    assert answered("/1?alt=sse", *exchanges)[0].endswith(b"\r\n\r\ndata: 1\n\n")


def test_another_path_is_refused_without_a_retry() -> None:
    for target in ("/v1/chat/completions", "/1/v1"):
        head, _, body = answered(target, imported(BODY))[0].partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 404 ")
        assert b"x-should-retry: false" in head
        assert b"no number of an exchange" in body


def test_bytes_that_are_no_request_are_reported_as_such() -> None:
    async def scenario() -> bytes:
        async with standing([imported(BODY)]) as stand:
            client = await connect(int(stand.url(0).split(":")[2].partition("/")[0]))
            await client.send(b"\x00\x01 nonsense\r\n\r\n")
            return (await client.rest())[0]

    assert b"not an HTTP/1 request" in run(scenario())


def test_where_the_tape_ends_unfinished_the_client_sees_a_cut() -> None:
    cut = taped([(0, BODY)], reason=EndReason.CLIENT_CLOSED)
    got, _ = answered("/0", cut)
    assert BODY.strip() in got
    assert not got.endswith(b"0\r\n\r\n")


def test_what_is_playing_is_cut_when_it_closes() -> None:
    async def scenario() -> bytes:
        async with standing([taped([(0, BODY)], reason=EndReason.TIMEOUT)]) as stand:
            client = await connect(int(stand.url(0).split(":")[2].partition("/")[0]))
            await client.send(post(target="/0"))
            got = await client.until(b"data: {}\n\n")
        return got + (await client.rest())[0]

    assert not run(scenario()).endswith(b"0\r\n\r\n")
