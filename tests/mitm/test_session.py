"""A run of mitmproxy from beginning to end."""

import asyncio
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from deltatape.mitm.mitmdump import MitmOptions
from deltatape.mitm.session import Outcome, serve, serve_child
from deltatape.store.reader import Tape, open_tape
from helpers.clients import PYTHON
from helpers.mitm import OPENAI_APP, VENVS, authority, call_events, installed, variables
from helpers.upstream import SSE_HEAD, Peer, chunk, connect, eventually, post, provider, run

LIMIT_S = 90
EVENTS = call_events()
CURL = "exec curl -sSN -d '{}' https://localhost:%d/v1/chat/completions"
FETCH = (
    "fetch('https://localhost:%d/v1/chat/completions', {method: 'POST', body: '{}'})"
    ".then((r) => r.text()).then((t) => process.stdout.write(t))"
)
URLLIB = (
    "import urllib.request as r; print(r.urlopen(r.Request("
    "'https://localhost:%d/v1/chat/completions', data=b'{}')).read().decode(), end='')"
)


async def stream(peer: Peer) -> None:
    while True:
        await peer.request()
        await peer.send(SSE_HEAD + b"".join(map(chunk, EVENTS)) + b"0\r\n\r\n")


def options(folder: Path, upstream: str | None, *more: str) -> MitmOptions:
    return MitmOptions(
        host="127.0.0.1",
        port=0,
        upstream=upstream,
        to=folder / "tapes",
        hosts=("localhost",),
        more=("--set", f"confdir={folder / 'conf'}", *more),
    )


def only_tape(folder: Path) -> Tape:
    (path,) = (folder / "tapes").glob("*.tape")
    return open_tape(path)


def serving(env: dict[str, str], lines: list[str], chosen: MitmOptions) -> "asyncio.Task[Outcome]":
    run = serve(chosen, grace_s=2.0, tell=lines.append, environment=env)
    return asyncio.get_running_loop().create_task(run)


@pytest.mark.parametrize("version", VENVS)
def test_a_signal_ends_it_with_a_summary(tmp_path: Path, version: str) -> None:
    env = variables(tmp_path, installed(version))

    async def scenario() -> list[str]:
        lines: list[str] = []
        async with provider(stream) as upstream:
            chosen = options(tmp_path, f"http://127.0.0.1:{upstream}")
            task = serving(env, lines, chosen)
            await until(lines, "  set ")
            url = next(line for line in lines if "OPENAI_BASE_URL=" in line)
            port = int(url.partition("127.0.0.1:")[2].partition("/")[0])
            peer = await connect(port)
            await peer.send(post())
            await peer.rest_or_end()
            await until(lines, "#1 POST /v1/chat/completions 200")
            os.kill(os.getpid(), signal.SIGTERM)
            outcome = await task
            assert outcome.ended.in_order
            assert not outcome.trouble
        return lines

    lines = run(scenario(), limit_s=LIMIT_S)
    assert lines[-3].startswith("1 exchange taped")
    assert lines[-1].startswith("next: deltatape why ")
    (exchange,) = only_tape(tmp_path)
    assert exchange.body == b"".join(EVENTS)


async def until(lines: list[str], start: str) -> None:
    for _ in range(5):
        try:
            await eventually(lambda: any(line.startswith(start) for line in lines), start)
        except AssertionError:
            continue
        return
    raise AssertionError(lines)


def test_a_proxy_writes_the_bundle_that_it_names(tmp_path: Path) -> None:
    env = variables(tmp_path, installed("11"))

    async def scenario() -> list[str]:
        lines: list[str] = []
        task = serving(env, lines, options(tmp_path, None))
        await until(lines, "  set ")
        os.kill(os.getpid(), signal.SIGINT)
        await task
        return lines

    lines = run(scenario(), limit_s=LIMIT_S)
    (named,) = [line for line in lines if " SSL_CERT_FILE=" in line]
    bundle = Path(named.split("=")[1].split(" ")[0])
    ca = (tmp_path / "conf" / "mitmproxy-ca-cert.pem").read_text().strip()
    assert ca in bundle.read_text()


def test_a_mitmproxy_that_dies_ends_the_run(tmp_path: Path) -> None:
    env = variables(tmp_path, installed("11"))
    killer = tmp_path / "killer.py"
    killer.write_text("import os, signal\ndef client_connected(c): os.kill(os.getpid(), 9)\n")

    async def scenario() -> list[str]:
        lines: list[str] = []
        chosen = options(tmp_path, None, "-s", str(killer))
        task = serving(env, lines, chosen)
        await until(lines, "  set ")
        url = next(line for line in lines if "HTTPS_PROXY=" in line)
        await connect(int(url.rpartition(":")[2]))
        outcome = await task
        assert not outcome.ended.in_order
        assert outcome.trouble
        return lines

    lines = run(scenario(), limit_s=LIMIT_S)
    assert any("mitmproxy ended by itself (code -9)" in line for line in lines)


@pytest.mark.parametrize("kind", ["sh", "python", "node", "openai"])
def test_a_command_behind_mitmproxy_is_taped_without_its_help(
    tmp_path: Path, kind: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    upstream = authority(tmp_path)
    env = {**variables(tmp_path, installed("11")), "SSL_CERT_FILE": str(upstream.path)}
    if kind == "node" and shutil.which("node") is None and not os.environ.get("CI"):
        pytest.skip("Node.js is not installed")
    if kind == "openai" and not PYTHON.exists() and not os.environ.get("CI"):
        pytest.skip("the SDKs are not installed; scripts/setup clients installs them")

    async def scenario() -> tuple[int, Outcome]:
        async with provider(stream, tls=upstream.context) as port:
            argv = {
                "sh": ("sh", "-c", CURL % port),
                "python": (sys.executable, "-c", URLLIB % port),
                "node": ("node", "-e", FETCH % port),
                "openai": (str(PYTHON), "-c", OPENAI_APP, f"https://localhost:{port}/v1"),
            }[kind]
            chosen = options(tmp_path, None, *upstream.trusted)
            return await serve_child(argv, chosen, log=True, tell=lines.append, environment=env)

    lines: list[str] = []
    code, outcome = run(scenario(), limit_s=LIMIT_S)
    printed = capfdbinary.readouterr().out
    assert code == 0, lines
    assert outcome.ended.in_order
    tape = only_tape(tmp_path)
    assert [each.body for each in tape] == [b"".join(EVENTS)]
    assert outcome.ended.exchanges == 1
    assert printed == (b'{"a": 1}' if kind == "openai" else b"".join(EVENTS))
    text = Path(tape.path).read_text()
    assert '"log",{"stream":"stdout"' in text
    assert text.endswith('"stop",{"reason":"child-exit","code":0}]\n')


def test_the_command_s_exit_code_comes_back_and_nothing_is_logged_on_demand(
    tmp_path: Path,
) -> None:
    env = variables(tmp_path, installed("11"))
    lines: list[str] = []

    async def scenario() -> tuple[int, Outcome]:
        argv = ("sh", "-c", "exit 7")
        return await serve_child(
            argv, options(tmp_path, None), log=False, tell=lines.append, environment=env
        )

    code, outcome = run(scenario(), limit_s=LIMIT_S)
    assert code == 7
    assert outcome.ended.exchanges == 0
    assert Path(only_tape(tmp_path).path).read_text().endswith('"code":7}]\n')
