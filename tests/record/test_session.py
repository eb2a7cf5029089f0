"""`deltatape record -- CMD` with real applications: what they print, what is on the tape."""

import asyncio
import json
import os
import re
import signal
import ssl
import sys
from pathlib import Path

import pytest
import trustme

from deltatape.clock import SystemClock
from deltatape.demo.demo import background
from deltatape.diagnose.rebuild import rebuild
from deltatape.gateway.tapes import RingRecording, TapeBook
from deltatape.model.exchange import EndReason, Exchange, Source
from deltatape.model.tape_summary import CHILD_EXIT
from deltatape.store.names import tapes_in
from deltatape.store.reader import Tape, open_tape
from deltatape.store.ring import RetentionPolicy, SegmentRing
from deltatape.store.tape_file import WriterThread
from deltatape.store.writer import TapeWriter
from deltatape.tape.mask import Masker
from helpers.chat import FINISH, calls, entry, sse
from helpers.clients import CLIENTS, PYTHON, SDKS, available
from helpers.corporate import PASSWORD, USER, corporate_proxy, server_context
from helpers.program import environment
from helpers.projects import put
from helpers.recorded_apps import ANSWER, Provider, recorded
from helpers.upstream import SSE_HEAD, Peer, chunk, connect, eventually, post, provider, run

LONG_S = 60.0
TELLS_USERS = Path("/proc/net/tcp").exists()
"""Whether this system tells whose a connection is."""

PYTHON_SDK = """
import openai
client = openai.OpenAI(api_key="sk-fake-000000", max_retries=0)
stream = client.chat.completions.create(
    model="m", stream=True, messages=[{"role": "user", "content": "hi"}])
print("".join(part.choices[0].delta.content or "" for part in stream if part.choices))
"""

NODE_SDK = """
import OpenAI from "openai";
const client = new OpenAI({apiKey: "sk-fake-000000", maxRetries: 0});
const stream = await client.chat.completions.create(
  {model: "m", stream: true, messages: [{role: "user", content: "hi"}]});
let text = "";
for await (const part of stream) text += part.choices[0]?.delta?.content ?? "";
console.log(text);
"""

SHELL = """
curl --no-progress-meter -N -H 'Content-Type: application/json' -H "Authorization: Bearer $KEY" \\
    -d '{"model":"m","stream":true,"messages":[]}' "$OPENAI_BASE_URL/chat/completions"
"""


def python_app(folder: Path, code: str) -> tuple[str, ...]:
    """A command that runs `code` where the official SDKs are installed."""
    (folder / "app.py").write_text(code)
    return (str(PYTHON), "app.py")


def node_app(folder: Path, code: str) -> tuple[str, ...]:
    """The same in JavaScript; the SDK is found from the file's own folder."""
    (folder / "app.mjs").write_text(code)
    (folder / "node_modules").symlink_to(CLIENTS / "node_modules")
    return ("node", "app.mjs")


def plain_app(folder: Path, code: str) -> tuple[str, ...]:
    (folder / "app.py").write_text(code)
    return (sys.executable, "app.py")


def the_tape(folder: Path) -> Tape:
    (path,) = (folder / "tapes").glob("*.tape")
    return open_tape(path)


def the_exchange(folder: Path) -> Exchange:
    (exchange,) = the_tape(folder)
    return exchange


def text_of(tape: Tape) -> str:
    return Path(tape.path).read_text()


def app_of(name: str, folder: Path) -> tuple[str, ...]:
    if name == "python":
        available(SDKS[0])
        return python_app(folder, PYTHON_SDK)
    if name == "node":
        available(SDKS[1])
        return node_app(folder, NODE_SDK)
    return ("sh", "-c", SHELL)


@pytest.mark.parametrize("name", ["python", "node", "curl"])
def test_an_app_is_taped_without_being_told_anything(tmp_path: Path, name: str) -> None:
    async def scenario() -> None:
        served = Provider()
        async with provider(served.serve) as port:
            upstream = ("--upstream", f"openai=http://127.0.0.1:{port}")
            command = app_of(name, tmp_path)
            result = await recorded(
                tmp_path, *upstream, "--", *command, env={"KEY": "sk-fake-000000"}
            )
            assert result.returncode == 0, result.stderr.decode()
            assert ANSWER in result.stdout.decode()
            assert served.asked[0].startswith(b"POST /v1/chat/completions ")
            exchange = the_exchange(tmp_path)
            assert rebuild(exchange).text == ANSWER
            assert exchange.end is not None
            assert exchange.end.reason is EndReason.COMPLETE
            tape = the_tape(tmp_path)
            assert ANSWER.encode() in b"".join(entry.line for entry in tape.logs)
            assert (tape.watch.stop, tape.watch.exit_code) == (CHILD_EXIT, 0)
            assert b"sk-fake-000000" not in text_of(tape).encode()

    run(scenario(), LONG_S)


def test_a_known_agent_gets_what_it_needs_and_another_the_line_that_is_missing(
    tmp_path: Path,
) -> None:
    agent = put(tmp_path, "claude", "#!/bin/sh\necho $ENABLE_TOOL_SEARCH\n")
    agent.chmod(0o755)

    async def scenario() -> None:
        result = await recorded(tmp_path, "--", "./claude", env={"HOME": str(tmp_path)})
        assert (result.returncode, result.stdout) == (0, b"true\n")
        result = await recorded(tmp_path, "--", "sh", "-c", "codex exec hi", env={"PATH": "/bin"})
        told = result.stderr.decode()
        assert "Codex reads no base URL from its environment; start it with: deltatape" in told
        assert result.returncode == 127

    run(scenario(), LONG_S)


IGNORES_NO_PROXY = """
NO_PROXY= no_proxy= curl --no-progress-meter -N -p -x "$HTTPS_PROXY" \\
    -d '{"model":"m","messages":[]}' -H 'Content-Type: application/json' \\
    "$OPENAI_BASE_URL/chat/completions"
"""


def test_an_app_that_ignores_no_proxy_is_taped_through_the_tunnel(tmp_path: Path) -> None:
    async def scenario() -> None:
        served = Provider()
        async with provider(served.serve) as port:
            upstream = ("--upstream", f"openai=http://127.0.0.1:{port}")
            result = await recorded(tmp_path, *upstream, "--", "sh", "-c", IGNORES_NO_PROXY)
            assert ANSWER in result.stdout.decode(), result.stderr.decode()
            assert "NOT TAPED" not in result.stderr.decode()
            assert rebuild(the_exchange(tmp_path)).text == ANSWER

    run(scenario(), LONG_S)


def test_hosts_that_were_reached_instead_are_named_where_nothing_is_taped(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(Provider().serve) as port:
            script = f'curl -s -p -x "$HTTPS_PROXY" http://localhost:{port}/ -d x'
            env = {"NO_PROXY": "", "no_proxy": ""}
            command = ("env", "-u", "NO_PROXY", "-u", "no_proxy", "sh", "-c", script)
            result = await recorded(tmp_path, "--", *command, env=env)
            told = result.stderr.decode()
            assert "instead, the app went to localhost; if an LLM answers there" in told, told
            assert "NOT TAPED" not in told

    run(scenario(), LONG_S)


@pytest.fixture
def openrouter(tmp_path: Path) -> ssl.SSLContext:
    """TLS for a server that calls itself openrouter.ai; its authority is `ca.pem`."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return server_context(authority, "openrouter.ai")


def test_a_url_in_an_env_file_becomes_the_upstream(
    tmp_path: Path, openrouter: ssl.SSLContext
) -> None:
    (tmp_path / ".env").write_text(
        'OPENAI_BASE_URL="https://openrouter.ai/api/v1"\nOPENAI_API_KEY=sk-or-fake-000\n'
    )

    async def scenario() -> None:
        served = Provider()
        async with (
            provider(served.serve, tls=openrouter) as port,
            corporate_proxy({"openrouter.ai": port}, guarded=True) as proxy,
        ):
            env = {
                "HTTPS_PROXY": f"http://{USER}:{PASSWORD}@127.0.0.1:{proxy.port}",
                "KEY": "sk-or-fake-000",
            }
            result = await recorded(tmp_path, "--ca", "ca.pem", "--", "sh", "-c", SHELL, env=env)
            assert result.returncode == 0, result.stderr.decode()
            assert ANSWER in result.stdout.decode()
            assert served.asked[0].startswith(b"POST /api/v1/chat/completions ")
            assert b"\r\nHost: openrouter.ai\r\n" in served.asked[0]
            told = result.stderr.decode()
            assert "OPENAI_BASE_URL in .env:1 points at https://openrouter.ai/api/v1" in told, told
            raw = text_of(the_tape(tmp_path)).encode()
            assert not [each for each in (b"sk-or-fake-000", PASSWORD.encode()) if each in raw]
            assert the_exchange(tmp_path).request.upstream == "https://openrouter.ai"

    run(scenario(), LONG_S)


HARD_CODED = """
import subprocess, sys
url = "https://openrouter.ai/api/v1"
sys.exit(subprocess.run(["curl", "--no-progress-meter", "-N", "-d", "{}",
                         url + "/chat/completions"]).returncode)
"""


def test_an_app_that_goes_past_the_gateway_is_seen_and_not_disturbed(
    tmp_path: Path, openrouter: ssl.SSLContext
) -> None:
    async def scenario() -> None:
        served = Provider()
        async with (
            provider(served.serve, tls=openrouter) as port,
            corporate_proxy({"openrouter.ai": port}) as proxy,
        ):
            env = {
                "HTTPS_PROXY": f"http://127.0.0.1:{proxy.port}",
                "CURL_CA_BUNDLE": str(tmp_path / "ca.pem"),
            }
            result = await recorded(tmp_path, "--", *plain_app(tmp_path, HARD_CODED), env=env)
            told = result.stderr.decode()
            assert result.returncode == 0, told
            assert ANSWER in result.stdout.decode()
            assert "NOT TAPED: your app went to openrouter.ai past deltatape; see app.py:3" in told
            assert "OPENROUTER_API_BASE" in told, told
            assert proxy.passed == ["openrouter.ai:443"]
            tape = the_tape(tmp_path)
            assert len(tape) == 0
            assert "openrouter.ai:443 was reached past deltatape" in text_of(tape)

    run(scenario(), LONG_S)


FRAMEWORK = """
import subprocess, os
def ask(url, *more):
    subprocess.run(["curl", "--no-progress-meter", "-A", "Agents/Python 0.24.0", *more, "-d", "{}",
                    "-H", "Content-Type: application/json", url])
%s
ask("https://api.openai.com/v1/traces/ingest")
"""


@pytest.mark.parametrize("asks", [True, False])
def test_telemetry_past_the_gateway_is_told_as_such_where_the_rest_is_taped(
    tmp_path: Path, *, asks: bool
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))

    async def scenario() -> None:
        served = Provider()
        async with (
            provider(served.serve) as plain,
            provider(served.serve, tls=server_context(authority, "api.openai.com")) as port,
            corporate_proxy({"api.openai.com": port}) as proxy,
        ):
            env = {
                "HTTPS_PROXY": f"http://127.0.0.1:{proxy.port}",
                "CURL_CA_BUNDLE": str(tmp_path / "ca.pem"),
            }
            first = 'ask(os.environ["OPENAI_BASE_URL"] + "/chat/completions")' if asks else ""
            upstream = ("--upstream", f"openai=http://127.0.0.1:{plain}")
            app = plain_app(tmp_path, FRAMEWORK % first)
            result = await recorded(tmp_path, *upstream, "--", *app, env=env)
            told = result.stderr.decode()
            assert proxy.passed == ["api.openai.com:443"]
            line = "telemetry of OpenAI Agents SDK went to api.openai.com; it is not taped"
            assert (line in told) == asks, told
            assert ("NOT TAPED" in told) != asks

    run(scenario(), LONG_S)


def test_an_app_that_cannot_even_reach_the_provider_is_told_who_stands_in_the_way(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        # A company's proxy that lets nobody out.
        async with corporate_proxy(answer=b"HTTP/1.1 403 Forbidden\r\n\r\n") as proxy:
            env = {"HTTPS_PROXY": f"http://127.0.0.1:{proxy.port}"}
            result = await recorded(tmp_path, "--", *plain_app(tmp_path, HARD_CODED), env=env)
            told = result.stderr.decode()
            assert "NOT TAPED: your app went to openrouter.ai past deltatape; see app.py:3" in told
            assert "    and could not reach it: " in told
            assert "403 Forbidden" in told
            tape = text_of(the_tape(tmp_path))
            assert "openrouter.ai:443 was not reached past deltatape: not taped" in tape

    run(scenario(), LONG_S)


def test_without_a_tunnel_the_app_keeps_its_own_proxy(tmp_path: Path) -> None:
    code = "import os; print(os.environ['HTTPS_PROXY'])"

    async def scenario() -> None:
        env = {"HTTPS_PROXY": "http://127.0.0.1:9"}
        command = plain_app(tmp_path, code)
        through = await recorded(tmp_path, "--", *command, env=env)
        past = await recorded(tmp_path, "--no-tunnel", "--", *command, env=env)
        assert re.fullmatch(rb"http://(deltatape:\S+@)?127\.0\.0\.1:\d{2,}\n", through.stdout)
        assert (b"@" in through.stdout) != TELLS_USERS
        assert past.stdout == b"http://127.0.0.1:9\n"

    run(scenario(), LONG_S)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("sh", "-c", "exit 3"), 3),
        (("sh", "-c", "kill -TERM $$"), 143),
        (("./no-such-program",), 127),
        (("/",), 126),
    ],
)
def test_the_exit_code_is_the_commands(tmp_path: Path, command: tuple[str, ...], code: int) -> None:
    async def scenario() -> None:
        result = await recorded(tmp_path, "--", *command)
        assert result.returncode == code
        assert the_tape(tmp_path).watch.exit_code == code

    run(scenario(), LONG_S)


def test_a_signal_reaches_the_command_and_the_tape_is_ended_in_order(tmp_path: Path) -> None:
    code = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print("up", flush=True)
time.sleep(30)
"""
    arguments = ("record", "--to", "tapes", "--ready-file", "ready.json", "--")
    command = plain_app(tmp_path, code)
    with background(*arguments, *command, cwd=tmp_path, env=environment(tmp_path)) as running:

        async def scenario() -> None:
            ready = tmp_path / "ready.json"
            await eventually(ready.exists, "a ready file")
            document = json.loads(ready.read_text())
            tape = tmp_path / document["tape"]
            assert document["url"].startswith("http://127.0.0.1:")
            assert document["pid"] == running.process.pid
            await eventually(
                lambda: any(b"up" in entry.line for entry in open_tape(tape).logs),
                "the command's first line",
            )

        run(scenario())
        exit_code, _ = running.stop(signal.SIGTERM)
    assert exit_code == 7
    assert not (tmp_path / "ready.json").exists()
    assert (the_tape(tmp_path).watch.stop, the_tape(tmp_path).watch.exit_code) == (CHILD_EXIT, 7)


def test_what_the_command_prints_is_left_alone_on_demand(tmp_path: Path) -> None:
    async def scenario() -> None:
        result = await recorded(tmp_path, "--no-log", "--", "echo", "hi")
        assert result.stdout in (b"", b"hi\n")
        assert the_tape(tmp_path).logs == ()

    run(scenario(), LONG_S)


def test_health_and_status_tell_of_the_run(tmp_path: Path) -> None:
    code = """
import json, os, urllib.request
ready = json.load(open("ready.json"))
for what in ("/health", "/status"):
    print(urllib.request.urlopen(ready["control"] + what).read().decode().strip())
"""

    async def scenario() -> None:
        more = ("--control", "127.0.0.1:0", "--ready-file", "ready.json")
        result = await recorded(tmp_path, *more, "--", *plain_app(tmp_path, code))
        assert result.returncode == 0, result.stderr.decode()
        health, status = map(json.loads, result.stdout.splitlines())
        assert health == {"version": 1, "status": "ok"}
        assert status["exchanges"] == 0
        assert status["folder"] == str(the_tape(tmp_path).path).rpartition("/")[0]
        assert status["tapes"] == [the_tape(tmp_path).path.replace(str(tmp_path) + "/", "")]

    run(scenario(), LONG_S)


def test_findings_make_the_exit_code_and_run_the_hook(tmp_path: Path) -> None:
    hook = 'cat > found.json; echo "$1" > found.path'

    async def cut(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(b'data: {"choices":[]}\n\n'))
        peer.close()

    async def scenario() -> None:
        async with provider(cut) as port:
            more = ("--upstream", f"openai=http://127.0.0.1:{port}", "--fail-on", "error")
            app = f"{SHELL.rstrip()} || true"
            result = await recorded(
                tmp_path, *more, "--on-finding", hook, "--", "sh", "-c", app, env={"KEY": "x"}
            )
            assert result.returncode == 1, result.stderr.decode()
            found = json.loads((tmp_path / "found.json").read_text())
            assert found["exchange"] == 1
            assert "W006" in {finding["code"] for finding in found["findings"]}
            tape = (tmp_path / "found.path").read_text().strip()
            assert (tmp_path / tape).is_file()
            assert b"    error W006 stream-cut (" in result.stderr
            last = result.stderr.splitlines()[-1]
            assert last == b"--fail-on error: failed, as a finding is of severity error"

    run(scenario(), LONG_S)


def test_health_is_no_longer_ok_when_nothing_can_be_taped(tmp_path: Path) -> None:
    code = """
import json, urllib.error, urllib.request
ready = json.load(open("ready.json"))
try:
    urllib.request.urlopen(ready["control"] + "/health")
except urllib.error.HTTPError as error:
    print(error.code, json.load(error)["status"])
"""
    (tmp_path / "file").touch()

    async def scenario() -> None:
        more = ("--control", "127.0.0.1:0", "--ready-file", "ready.json", "--to", "file/tapes")
        result = await recorded(tmp_path, *more, "--", *plain_app(tmp_path, code))
        assert result.stdout == b"503 taping-in-trouble\n", result.stderr.decode()

    run(scenario(), LONG_S)


def test_a_call_that_an_app_never_answers_is_told_when_it_ends(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(
            SSE_HEAD + chunk(sse(calls(entry(0, "c1", name="f", arguments="{}")), FINISH))
        )
        await peer.send(b"0\r\n\r\n")

    async def scenario() -> None:
        async with provider(script) as port:
            more = ("--upstream", f"openai=http://127.0.0.1:{port}", "--on-finding", "cat > found")
            app = f"{SHELL.rstrip()}; exit 1"
            result = await recorded(tmp_path, *more, "--", "sh", "-c", app, env={"KEY": "x"})
            told = result.stderr.decode()
            assert "#1 was never answered\n    warning D003 unanswered-tool-call (" in told
            found = json.loads((tmp_path / "found").read_text())
            assert [each["code"] for each in found["findings"]] == ["D003"]

    run(scenario(), LONG_S)


def test_what_keeps_the_recorder_from_starting_is_not_taken_for_the_commands_code(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with provider(Provider().serve) as port:
            taken = ("--listen", f"127.0.0.1:{port}")
            assert (await recorded(tmp_path, *taken, "--", "true")).returncode == 125
            assert (await recorded(tmp_path, *taken)).returncode == 2
        assert not list(tmp_path.glob("tapes/*.tape"))  # noqa: ASYNC240 - quick

    run(scenario(), LONG_S)


HEALTHY = (
    b'data: {"choices":[{"index":0,"delta":{"content":"%b"},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)


async def answer(peer: Peer) -> None:
    """Half a megabyte of text; for a request with `cut` in it a stream that breaks off."""
    while True:
        _, body = await peer.request()
        whole = HEALTHY % (b"x" * 500_000)
        await peer.send(SSE_HEAD + chunk(whole[:400_000] if b"cut" in body else whole))
        if b"cut" in body:
            peer.close()
            return
        await peer.send(b"0\r\n\r\n")


async def ask(port: int, body: bytes) -> None:
    client = await connect(port)
    await client.send(post(body, extra="Connection: close\r\n"))
    await client.rest()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "tapes").glob("*.tape"))


def test_the_budget_holds_and_what_lies_around_a_finding_stays(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(answer) as port:
            arguments = (
                *("record", "--to", "tapes", "--listen", "127.0.0.1:0", "--keep", "4MB"),
                *("--upstream", f"http://127.0.0.1:{port}", "--durability", "none"),
            )
            with background(*arguments, cwd=tmp_path, env=environment(tmp_path)) as running:
                await asyncio.to_thread(lambda: running.wait_for("set +OPENAI"))
                for _ in range(16):
                    await ask(running.port, b"{}")
                    await asyncio.sleep(0.2)
                rings = [name for name in names(tmp_path) if ".ring" in name]
                assert len(rings) == len(names(tmp_path))
                size = sum((tmp_path / "tapes" / name).stat().st_size for name in rings)
                assert 1_000_000 < size < 6_000_000
                await ask(running.port, b'{"cut":1}')
                await eventually(
                    lambda: any(".ring" not in name for name in names(tmp_path)), "a pin"
                )
                code, told = await asyncio.to_thread(running.stop)
                assert code == 0, told

    run(scenario(), LONG_S)
    pinned = [name for name in names(tmp_path) if ".ring" not in name]
    assert pinned
    ends = [
        exchange.end.reason
        for name in pinned
        for exchange in open_tape(tmp_path / "tapes" / name)
        if exchange.end is not None
    ]
    assert "upstream_closed" in ends


def test_finished_segments_are_sealed_pinned_and_swept_as_others(tmp_path: Path) -> None:
    def sealed() -> list[str]:
        return sorted(path.name for path in (tmp_path / "tapes").glob("*.tape.zst"))

    async def scenario() -> None:
        async with provider(answer) as port:
            arguments = (
                *("record", "--to", "tapes", "--listen", "127.0.0.1:0", "--keep", "8MB", "--seal"),
                *("--upstream", f"http://127.0.0.1:{port}", "--durability", "none"),
            )
            with background(*arguments, cwd=tmp_path, env=environment(tmp_path)) as running:
                await asyncio.to_thread(lambda: running.wait_for("set +OPENAI"))
                for _ in range(4):
                    await ask(running.port, b"{}")
                await eventually(lambda: bool(sealed()), "a sealed segment")
                await ask(running.port, b'{"cut":1}')
                await eventually(
                    lambda: any(".ring" not in name for name in sealed()), "a sealed pin"
                )
                code, told = await asyncio.to_thread(running.stop)
                assert code == 0, told

    run(scenario(), LONG_S)
    ids = [exchange.id for path in tapes_in(tmp_path / "tapes") for exchange in open_tape(path)]
    assert len(ids) == len({*ids}) == 5


def test_no_exchange_straddles_tapes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(answer) as port:
            arguments = (
                *("record", "--to", "tapes", "--listen", "127.0.0.1:0", "--keep", "8s"),
                *("--upstream", f"http://127.0.0.1:{port}", "--ready-file", "ready.json"),
            )
            with background(*arguments, cwd=tmp_path, env=environment(tmp_path)) as running:
                ready = tmp_path / "ready.json"
                await eventually(ready.exists, "a ready file")
                first = json.loads(ready.read_text())["tape"]
                slow = await connect(running.port)
                await slow.send(post(b"12")[:-1])  # an exchange that begins before the rotation
                await eventually(lambda: len(names(tmp_path)) > 1, "a second tape")
                await slow.send(b"2")
                await slow.rest_or_end()
                await asyncio.to_thread(running.stop)
                (exchange,) = open_tape(tmp_path / first)
                assert exchange.end is not None
                assert open_tape(tmp_path / first).watch.stop == "rotated"

    run(scenario(), LONG_S)


def test_old_segments_go_when_a_recorder_starts(tmp_path: Path) -> None:
    old = tmp_path / "old.ring.tape"
    old.write_bytes(b"{}\n")
    os.utime(old, (1.0, 1.0))
    keep = tmp_path / "kept.tape"
    keep.write_bytes(b"")

    async def scenario() -> None:
        clock = SystemClock()
        ring = SegmentRing(tmp_path, RetentionPolicy(age_ns=3600 * 10**9), clock, print, print)

        def create(name: str | None, thread: WriterThread) -> TapeWriter:
            return TapeWriter.create(
                tmp_path,
                ring.stem(name or "run"),
                clock=clock,
                tool="test",
                source=Source.GATEWAY,
                alarm=print,
                thread=thread,
            )

        book = TapeBook(create, Masker(b"key"))
        flight = RingRecording(ring, book)
        flight.start()
        await eventually(lambda: not old.exists(), "the old segment is deleted")
        await flight.stop()
        book.stop("test", None)
        assert keep.exists()
        assert (tmp_path / "run.ring.tape").exists()

    run(scenario())
