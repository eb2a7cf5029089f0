"""What tracers and aimock themselves write of a conversation is imported.

The tracers are OpenLLMetry, OpenTelemetry's own instrumentation, and the SDK of Langfuse.
"""

import asyncio
import gzip
import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime  # noqa: TID251 - it reads no clock
from pathlib import Path
from typing import Any

import pytest

from deltatape.diagnose.rebuild import analyse
from deltatape.store.reader import open_tape
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.clients import CLIENTS, PYTHON, output
from helpers.console import called
from helpers.needed import skip_unless
from helpers.upstream import SSE_HEAD, Peer, chunk, free_port, listening, ok_response, provider, run

LIMIT_S = 120.0
MADE = [("call_a", "weather", '{"city": "Gent"}'), ("call_b", "weather", '{"city": "Brügge"}')]
ANSWERS = (
    sse(
        choice({"role": "assistant", "content": None}),
        *(
            calls(entry(index, ident, name=name, arguments=""))
            for index, (ident, name, _) in enumerate(MADE)
        ),
        *(
            calls(entry(index, arguments=arguments[at : at + 5]))
            for at in range(0, 20, 5)
            for index, (_, _, arguments) in enumerate(MADE)
        ),
        FINISH,
    ),
    sse(choice({"role": "assistant", "content": "It "}), choice({"content": "rains: ☔."}, "stop")),
)


@dataclass
class Servers:
    """A provider, and a Langfuse that takes everything."""

    answers: tuple[bytes, ...] = ANSWERS
    asked: list[bytes] = field(default_factory=list)
    sent: list[tuple[bytes, bytes]] = field(default_factory=list)
    """What came for Langfuse: heads and bodies."""

    async def answer(self, peer: Peer) -> None:
        """One connection of the application."""
        while True:
            _, body = await peer.request()
            self.asked.append(body)
            await peer.send(SSE_HEAD)
            stream = self.answers[len(self.asked) - 1]
            for at in range(0, len(stream), 97):
                await peer.send(chunk(stream[at : at + 97]))
            await peer.send(b"0\r\n\r\n")

    async def take(self, peer: Peer) -> None:
        """One connection of the SDK of Langfuse."""
        while True:
            self.sent.append(await peer.request())
            await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def require(program: Path) -> None:
    """Skip the test where a program is not installed."""
    skip_unless(program.exists(), f"no {program.name}; scripts/setup clients installs it")


def variables(folder: Path, langfuse: int) -> dict[str, str]:
    """The environment of a program that sends to a Langfuse on that port."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LANGFUSE_HOST": f"http://127.0.0.1:{langfuse}",
        "LANGFUSE_PUBLIC_KEY": "pk-lf-fake",
        "LANGFUSE_SECRET_KEY": "sk-lf-fake",
    }


async def converse(
    folder: Path, how: str, port: int, langfuse: int = 0, **environment: str
) -> None:
    """Run the application, with a tracer that writes `trace`."""
    await output(
        *(PYTHON, CLIENTS / "reported.py", how, f"http://127.0.0.1:{port}", "."),
        cwd=folder,
        env={**variables(folder, langfuse), **environment},
    )


def traced(folder: Path, how: str, **environment: str) -> Servers:
    """Run the application before a provider of its own."""
    require(PYTHON)
    servers = Servers()

    async def scenario() -> None:
        async with provider(servers.answer) as port, provider(servers.take) as langfuse:
            await converse(folder, how, port, langfuse, **environment)

    run(scenario(), LIMIT_S)
    assert len(servers.asked) == 2
    return servers


def assert_imported(
    folder: Path, kind: str, times: list[tuple[float, ...]], name: str = "trace"
) -> str:
    """Import a file, compare it with the wire and the times of the file; return what is printed.

    Args:
        times: when each call began and ended, in seconds since the first one.
    """
    (folder / "x.tape").unlink(missing_ok=True)
    done = called("import", name, "-o", "x.tape", folder=folder)
    printed = done.stderr.decode()
    assert done.returncode == 0, printed
    assert printed.startswith(f"read as {kind}: 2 exchanges\n")
    assert "no bytes of the wire, but messages as a program reported them" in printed
    first, second = map(analyse, open_tape(folder / "x.tape"))
    assert [(call.id, call.name, call.arguments) for call in first.reply.tool_calls] == MADE
    assert first.reply.finish_reason_raw == "tool_calls"
    assert (second.reply.text, second.reply.finish_reason_raw) == ("It rains: ☔.", "stop")
    assert [tool.name for tool in first.request.tools] == ["weather"]
    assert [each.role for each in second.request.history] == [
        *("system", "user", "assistant", "tool", "tool")
    ]
    assert second.request.history[1].text == "Which weather have Gent and Brügge?"
    assert [call.id for call in second.request.history[2].calls] == ["call_a", "call_b"]
    taped = [
        (each.exchange.request.t_ns / 1e9, each.exchange.reads[0].t_ns / 1e9)
        for each in (first, second)
    ]
    assert taped == [pytest.approx(each, abs=1e-5) for each in times]
    checked = called("check", "x.tape", folder=folder)
    assert (checked.returncode, checked.stdout) == (0, b"no findings\n")
    return printed


def spans_in(path: Path) -> list[dict[str, Any]]:
    """The spans of a file, whoever wrote it."""
    text = path.read_text()
    if text.startswith("{\n"):
        return [*map(json.loads, text.replace("\n}\n{", "\n}\0{").split("\0"))]
    every = map(json.loads, text.splitlines())
    return [
        span
        for one in every
        for scope in one["resourceSpans"][0]["scopeSpans"]
        for span in scope["spans"]
    ]


def since_first(spans: list[dict[str, Any]], *names: str) -> list[tuple[float, ...]]:
    """When each span began and ended, as the members of these names say."""
    ends = [[seconds(span[name]) for name in names] for span in spans]
    return [tuple(each - ends[0][0] for each in pair) for pair in ends]


def seconds(value: str) -> float:
    return int(value) / 1e9 if value.isdecimal() else datetime.fromisoformat(value).timestamp()


def otlp_times(spans: list[dict[str, Any]]) -> list[tuple[float, ...]]:
    return since_first(spans, "startTimeUnixNano", "endTimeUnixNano")


def test_spans_that_openllmetry_made_are_imported(tmp_path: Path) -> None:
    """From a file of OTLP/JSON, and as the SDK prints them."""
    traced(tmp_path, "openllmetry")
    times = otlp_times(spans_in(tmp_path / "trace"))
    assert_imported(tmp_path, "spans of OpenTelemetry", times)
    assert next(iter(open_tape(tmp_path / "x.tape"))).request.upstream.startswith("http://127.0.0.")
    times = since_first(spans_in(tmp_path / "printed"), "start_time", "end_time")
    assert_imported(tmp_path, "spans of OpenTelemetry", times, "printed")


CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


def test_spans_of_opentelemetrys_own_instrumentation_are_imported(tmp_path: Path) -> None:
    traced(tmp_path, "official", **{CAPTURE: "SPAN_ONLY"})
    times = otlp_times(spans_in(tmp_path / "trace"))
    assert_imported(tmp_path, "spans of OpenTelemetry", times)


def test_spans_without_messages_are_refused_with_what_to_set(tmp_path: Path) -> None:
    traced(tmp_path, "official")
    refused = called("import", "trace", "-o", "x.tape", folder=tmp_path)
    assert refused.returncode == 2
    assert (
        f"let the instrumentation capture messages: {CAPTURE}=SPAN_ONLY" in refused.stderr.decode()
    )


FETCH = """
import langfuse
api = langfuse.Langfuse().api
print(api.observations.get_many(type="GENERATION", fields="core,basic,io,model").json())
"""


def observation(span: dict[str, Any]) -> dict[str, Any]:
    """A span of the SDK as the API of Langfuse returns it."""
    values = {each["key"]: each["value"].get("stringValue") for each in span["attributes"]}
    start, end = (int(span[f"{name}TimeUnixNano"]) // 10**6 for name in ("start", "end"))
    return {
        "id": span["spanId"],
        "traceId": span["traceId"],
        "projectId": "p",
        "type": values["langfuse.observation.type"].upper(),
        "startTime": f"{datetime.fromtimestamp(start / 1000, UTC):%FT%T}.{start % 1000:03}Z",
        "endTime": f"{datetime.fromtimestamp(end / 1000, UTC):%FT%T}.{end % 1000:03}Z",
        "level": "DEFAULT",
        "model": values["langfuse.observation.model.name"],
        "input": values["langfuse.observation.input"],
        "output": values["langfuse.observation.output"],
    }


def test_what_langfuse_traced_is_imported_from_a_file_and_from_its_api(tmp_path: Path) -> None:
    """The spans that its SDK made, and the answer of the API that its SDK wrote."""
    servers = traced(tmp_path, "langfuse")
    spans = spans_in(tmp_path / "trace")
    times = otlp_times(spans)
    printed = assert_imported(tmp_path, "spans of OpenTelemetry", times)
    assert "note: #1: Langfuse: has no finish reason; it was told by the message" in printed

    head, sent = servers.sent[0]  # protobuf, which is refused
    assert head.startswith(b"POST /api/public/otel/v1/traces ")
    coded = b"content-encoding: gzip" in head.lower()
    (tmp_path / "sent").write_bytes(gzip.decompress(sent) if coded else sent)
    refused = called("import", "sent", "-o", "y.tape", folder=tmp_path)
    assert refused.returncode == 2
    assert b"sent: is no answer of an LLM, but binary data" in refused.stderr

    listed = [observation(each) for each in spans]
    answer = json.dumps({"data": listed[::-1], "meta": {"cursor": None}}).encode()

    async def serve(peer: Peer) -> None:
        head, _ = await peer.request()
        assert head.startswith(b"GET /api/public/v2/observations?"), head
        await peer.send(ok_response(answer, b"Content-Type: application/json"))

    async def scenario() -> None:
        async with provider(serve) as port:
            fetched = await output(PYTHON, "-c", FETCH, env=variables(tmp_path, port))
            (tmp_path / "trace").write_bytes(fetched)

    run(scenario(), LIMIT_S)
    times = since_first(listed, "startTime", "endTime")
    assert_imported(tmp_path, "observations of Langfuse", times)


AIMOCK = CLIENTS / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
AGAIN = sse(
    choice({"content": "Once more: "}),
    calls(entry(0, "call_c", name="weather", arguments="")),
    FINISH,
)


def test_the_fixtures_that_aimock_records_are_imported(tmp_path: Path) -> None:
    """A file of an answer each. What it loses, docs/importing.md says."""
    require(PYTHON)
    require(AIMOCK)
    servers = Servers(answers=(ANSWERS[0], AGAIN))

    async def scenario() -> None:
        async with provider(servers.answer) as upstream:
            port = free_port()
            aimock = await asyncio.create_subprocess_exec(
                *("node", AIMOCK, "--record", "--provider-openai", f"http://127.0.0.1:{upstream}"),
                *("--port", str(port), "--fixtures", "fixtures", "--log-level", "silent"),
                cwd=tmp_path,
                env=variables(tmp_path, 0),
            )
            try:
                await listening(port)
                await converse(tmp_path, "untraced", port)
            finally:
                aimock.terminate()
                await aimock.wait()

    (tmp_path / "fixtures").mkdir()
    run(scenario(), LIMIT_S)
    for path in (tmp_path / "fixtures").rglob("*.json"):
        (fixture,) = json.loads(path.read_bytes())["fixtures"]
        again = fixture["match"]["hasToolResult"]
        done = called("import", path, "-o", f"{again}.tape", folder=tmp_path)
        assert done.stderr.startswith(b"read as fixtures of aimock: 1 exchange\n"), done.stderr
        assert b"note: aimock: answers requests that match" in done.stderr
        (analysis,) = map(analyse, open_tape(tmp_path / f"{again}.tape"))
        found = [(call.id, call.name, call.arguments) for call in analysis.reply.tool_calls]
        assert found == ([("call_c", "weather", "{}")] if again else MADE)  # the wire has "" there
        assert analysis.reply.text == ("Once more: " if again else "")
        (read,) = analysis.exchange.reads
        assert read.t_ns == fixture["recordedTimings"]["totalDurationMs"] * 10**6
        checked = called("check", f"{again}.tape", folder=tmp_path)
        assert (checked.returncode, checked.stdout) == (0, b"no findings\n")
    assert {path.name for path in tmp_path.glob("*.tape")} == {"True.tape", "False.tape"}
