"""A run of mitmproxy from beginning to end."""

import asyncio
import os
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.gateway.outbound import outbound_from
from deltatape.mitm.mitmdump import MitmdumpResult, MitmOptions, Started
from deltatape.mitm.session import (
    MitmRunResult,
    RunObserver,
    introduce,
    serve,
    serve_child,
    what_to_set,
)
from deltatape.store.reader import Tape, open_tape
from helpers.clients import PYTHON
from helpers.mitm import NEWEST, OPENAI_APP, authority, call_events, installed, variables
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


def serving(
    env: dict[str, str], lines: list[str], chosen: MitmOptions
) -> "asyncio.Task[MitmRunResult]":
    run = serve(chosen, grace_s=2.0, tell=lines.append, environment=env)
    return asyncio.get_running_loop().create_task(run)


@pytest.mark.parametrize("version", NEWEST)
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

    async def scenario() -> tuple[int, MitmRunResult]:
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

    async def scenario() -> tuple[int, MitmRunResult]:
        argv = ("sh", "-c", "exit 7")
        return await serve_child(
            argv, options(tmp_path, None), log=False, tell=lines.append, environment=env
        )

    code, outcome = run(scenario(), limit_s=LIMIT_S)
    assert code == 7
    assert outcome.ended.exchanges == 0
    assert Path(only_tape(tmp_path).path).read_text().endswith('"code":7}]\n')


STARTED = Started(url="http://127.0.0.1:1", tape="t/x.tape", ca=Path("/c/ca.pem"), version="11.0.2")
REGULAR = MitmOptions(host="127.0.0.1", port=0, upstream=None, to=Path("t"), hosts=("*.b",))
REVERSE = MitmOptions(host="127.0.0.1", port=1, upstream="https://api.openai.com", to=Path("t"))
IN_ORDER = MitmdumpResult(in_order=True, code=0, exchanges=2, with_findings=1)


class Screen:
    """What was told, and who tells."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.observer = RunObserver(self.lines.append, 5.0)


def test_a_proxy_says_what_it_looks_into_and_what_to_set() -> None:
    lines = [
        *introduce(STARTED, REGULAR, alone=True),
        *what_to_set(STARTED, REGULAR, Path("/s/bundle.pem")),
    ]
    assert lines[0].endswith("is recording by mitmproxy 11.0.2; Ctrl-C ends the tape")
    assert "  tape     t/x.tape" in lines
    assert "  decrypt  the hosts of LLM providers *.b; all else passes undecrypted" in lines
    assert "  set      HTTPS_PROXY=http://127.0.0.1:1" in lines
    assert any("SSL_CERT_FILE=/s/bundle.pem" in line for line in lines)
    assert any("node_proxy.cjs" in line for line in lines)
    assert "--listen HOST:PORT keeps it" in lines[-1]


def test_a_reverse_proxy_says_where_it_forwards() -> None:
    lines = [*introduce(STARTED, REVERSE, alone=False), *what_to_set(STARTED, REVERSE, None)]
    assert lines[0].endswith("is recording by mitmproxy 11.0.2")
    assert "  url      http://127.0.0.1:1 forwards to https://api.openai.com" in lines
    assert lines[-1].startswith("  set      OPENAI_BASE_URL=http://127.0.0.1:1/v1")


def test_the_company_s_proxy_is_reported_and_that_no_proxy_does_not_hold_there() -> None:
    environment = {"HTTPS_PROXY": "http://ann:fake@proxy.test:3128", "NO_PROXY": "intra.test"}
    lines = [*introduce(STARTED, behind(REGULAR, environment), alone=True)]
    assert lines[-2] == "  through  http://proxy.test:3128 (HTTPS_PROXY)"
    assert "mitmproxy heeds no NO_PROXY, apps do" in lines[-1]
    lines = [*what_to_set(STARTED, behind(REGULAR, environment), Path("/s/bundle.pem"))]
    assert "           NO_PROXY=localhost,127.0.0.1,::1  (besides yours)" in lines


def test_a_proxy_that_one_upstream_is_not_reached_by_is_reported() -> None:
    environment = {"https_proxy": "http://ann:fake@proxy.test:3128", "NO_PROXY": ""}
    lines = [*introduce(STARTED, behind(REVERSE, environment), alone=True)]
    assert lines[-1].startswith("  note     https_proxy is not used: mitmproxy reaches an --upst")
    plain = replace(REVERSE, upstream="http://llm.test")
    for options, more in ((plain, {}), (REVERSE, {"NO_PROXY": "openai.com"})):
        lines = [*introduce(STARTED, behind(options, {**environment, **more}), alone=True)]
        assert lines[-1].startswith("  url      ")


def behind(options: MitmOptions, environment: dict[str, str]) -> MitmOptions:
    return replace(options, outbound=outbound_from(environment))


def test_nothing_to_tape_is_reported_with_what_was_seen() -> None:
    for seen, hosts, expected in (
        ((), (), "does the app read HTTPS_PROXY"),
        (("client",), (), "sent no request for an LLM host"),
        (("client",), ("pypi.org",), "undecrypted, not taped: pypi.org; --hosts NAME tapes one"),
        (("client",), tuple("abcdefg"), "a, b, c, d, e and 2 more"),
    ):
        screen = Screen()
        for what in seen:
            screen.observer.traffic(what)
        for host in hosts:
            screen.observer.passed(host)
        screen.observer.remind(STARTED.url)
        (line,) = screen.lines
        assert line.startswith("nothing to tape for 20 s")
        assert expected in line
    screen = Screen()
    screen.observer.traffic("exchange")
    screen.observer.remind(STARTED.url)
    assert screen.lines == []


def test_streams_that_may_go_on_are_reported() -> None:
    screen = Screen()
    screen.observer.stopping(0)
    screen.observer.stopping(2)
    assert screen.lines == ["stopping: 2 streams may go on for 5 s; Ctrl-C again cuts"]


def test_trouble_is_reported_at_once() -> None:
    screen = Screen()
    screen.observer.line("#1 POST")
    screen.observer.alarm("disk full")
    assert screen.lines == ["#1 POST", "TAPING IN TROUBLE: disk full"]
    assert screen.observer.trouble


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (
            IN_ORDER,
            [
                "2 exchanges taped, 1 with findings",
                "tape: t/x.tape",
                "next: deltatape why t/x.tape",
            ],
        ),
        (
            MitmdumpResult(in_order=True, code=0),
            ["0 exchanges taped, not analysed yet", "tape: t/x.tape"],
        ),
        (
            MitmdumpResult(in_order=True, code=0, exchanges=1, lost_records=2, lost_bytes=30),
            [
                "1 exchange taped, not analysed yet",
                "NOT ON THE TAPE: 2 records, 30 bytes; the streams themselves were not touched",
                "tape: t/x.tape",
                "next: deltatape why t/x.tape",
            ],
        ),
        (
            MitmdumpResult(in_order=False, code=-9),
            [
                (
                    "TAPING IN TROUBLE: mitmproxy ended by itself (code -9); what it had written is"
                    " on the tape"
                ),
                "tape: t/x.tape",
                "next: deltatape why t/x.tape",
            ],
        ),
    ],
)
def test_the_last_words(ended: MitmdumpResult, expected: list[str]) -> None:
    screen = Screen()
    screen.observer.summarise(ended, STARTED)
    assert screen.lines == expected
    assert screen.observer.trouble is not ended.in_order


def test_hosts_that_passed_are_named_when_nothing_was_taped() -> None:
    screen = Screen()
    screen.observer.passed("example.com")
    without = Started(url="u", tape="", ca=Path("c"), version="12")
    screen.observer.summarise(MitmdumpResult(in_order=True, code=0), without)
    assert screen.lines[1:] == [
        "passed undecrypted, not taped: example.com; --hosts NAME tapes one"
    ]
