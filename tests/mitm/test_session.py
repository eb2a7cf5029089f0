"""A run of mitmproxy from beginning to end."""

import asyncio
import contextlib
import json
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from deltatape.gateway.outbound import outbound_from
from deltatape.http1.listener import Address
from deltatape.mitm.mitmdump import MitmOptions, Started
from deltatape.mitm.session import introduce, no_traffic, what_to_set
from deltatape.model.exchange import EndReason
from deltatape.model.finding import Severity
from deltatape.record.session import NOBODY_RECORDS
from deltatape.store.reader import Tape, open_tape
from deltatape.store.ring import parse_keep
from helpers.clients import PYTHON
from helpers.mitm import (
    NEWEST,
    OPENAI_APP,
    Recorded,
    authority,
    call_events,
    confdir,
    installed,
    recorder,
    variables,
)
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
        more=(*confdir(folder), *more),
    )


def only_tape(folder: Path) -> Tape:
    (path,) = (folder / "tapes").glob("*.tape")
    return open_tape(path)


@pytest.mark.parametrize("version", NEWEST)
def test_a_signal_ends_it_with_a_summary(tmp_path: Path, version: str) -> None:
    env = variables(tmp_path, installed(version))

    async def scenario() -> list[str]:
        async with provider(stream) as upstream:
            chosen = options(tmp_path, f"http://127.0.0.1:{upstream}")
            recorded = recorder(chosen, env)
            task = begun(recorded)
            await until(recorded.lines, "  set ")
            url = next(line for line in recorded.lines if "OPENAI_BASE_URL=" in line)
            port = int(url.partition("127.0.0.1:")[2].partition("/")[0])
            peer = await connect(port)
            await peer.send(post())
            await peer.rest_or_end()
            await until(recorded.lines, "#1 POST /v1/chat/completions 200")
            os.kill(os.getpid(), signal.SIGTERM)
            assert await task is None
            assert not recorded.reporter.trouble
        return recorded.lines

    lines = run(scenario(), limit_s=LIMIT_S)
    assert lines[-3].startswith("1 exchange taped, 0 with findings")
    assert lines[-1].startswith("next: deltatape why ")
    (exchange,) = only_tape(tmp_path)
    assert exchange.body == b"".join(EVENTS)


def fetched(url: str) -> bytes:
    with urlopen(url) as response:  # noqa: S310 - of loopback
        body: bytes = response.read()
        return body


def until_reported(status: str) -> None:
    """Wait until mitmproxy has reported that it streams: somewhat later than it does."""
    while json.loads(fetched(status))["active"] != 1:
        pass


def begun(recorded: Recorded) -> "asyncio.Task[int | None]":
    return asyncio.get_running_loop().create_task(recorded.session.run())


async def until(lines: list[str], start: str) -> None:
    for _ in range(5):
        try:
            await eventually(lambda: any(line.startswith(start) for line in lines), start)
        except AssertionError:
            continue
        return
    raise AssertionError(lines)


def test_a_mitmproxy_that_dies_ends_the_run(tmp_path: Path) -> None:
    env = variables(tmp_path, installed("11"))
    killer = tmp_path / "killer.py"
    killer.write_text("import os, signal\ndef client_connected(c): os.kill(os.getpid(), 9)\n")

    async def scenario() -> list[str]:
        recorded = recorder(options(tmp_path, None, "-s", str(killer)), env)
        task = begun(recorded)
        await until(recorded.lines, "  set ")
        url = next(line for line in recorded.lines if "HTTPS_PROXY=" in line)
        await connect(int(url.rpartition(":")[2]))
        assert await task == NOBODY_RECORDS
        assert recorded.reporter.trouble
        return recorded.lines

    lines = run(scenario(), limit_s=LIMIT_S)
    assert any("mitmproxy ended by itself (code -9)" in line for line in lines)


def test_a_command_behind_mitmproxy_is_taped_without_its_help(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    upstream = authority(tmp_path)
    own = variables(tmp_path, installed("11"), measured=True)
    env = {**own, "SSL_CERT_FILE": str(upstream.path)}

    async def scenario() -> tuple[int | None, Recorded, bytes]:
        async with provider(stream, tls=upstream.context) as port:
            programs: list[tuple[str, ...]] = [("sh", "-c", CURL % port)]
            programs.append((sys.executable, "-c", URLLIB % port))
            expected = [b"".join(EVENTS)] * 2
            if shutil.which("node") is not None or os.environ.get("CI"):
                programs.append(("node", "-e", FETCH % port))
                expected.append(b"".join(EVENTS))
            if PYTHON.exists() or os.environ.get("CI"):
                programs.append((str(PYTHON), "-c", OPENAI_APP, f"https://localhost:{port}/v1"))
                expected.append(b'{"a": 1}')
            argv = ("sh", "-ec", "\n".join(map(shlex.join, programs)))
            recorded = recorder(options(tmp_path, None, *upstream.trusted), env, argv, log=True)
            return await recorded.session.run(), recorded, b"".join(expected)

    code, recorded, expected = run(scenario(), limit_s=LIMIT_S)
    printed = capfdbinary.readouterr().out
    assert code == 0, recorded.lines
    assert not recorded.reporter.trouble
    assert printed == expected
    tape = only_tape(tmp_path)
    bodies = [each.body for each in tape]
    assert bodies == [b"".join(EVENTS)] * recorded.reporter.exchanges
    assert len(bodies) >= 2
    text = Path(tape.path).read_text()
    assert '"log",{"stream":"stdout"' in text
    assert text.endswith('"stop",{"reason":"child-exit","code":0}]\n')


def test_a_command_of_which_nothing_is_taped_has_its_exit_code_no_log_and_hosts_that_passed(
    tmp_path: Path,
) -> None:
    upstream = authority(tmp_path)
    env = variables(tmp_path, installed("11"))

    async def scenario() -> tuple[int | None, Recorded]:
        async with provider(stream, tls=upstream.context) as port:
            argv = ("sh", "-c", f"curl -sk https://127.0.0.1:{port}/ -o /dev/null; echo x; exit 7")
            chosen = replace(options(tmp_path, None, *upstream.trusted), keep="2h")
            recorded = recorder(chosen, env, argv)
            return await recorded.session.run(), recorded

    code, recorded = run(scenario(), limit_s=LIMIT_S)
    assert code == 7
    assert "0 exchanges taped, 0 with findings" in recorded.lines
    assert recorded.lines[-1] == "passed undecrypted, not taped: 127.0.0.1; --hosts NAME tapes one"
    path = Path(only_tape(tmp_path).path)
    assert path.name.endswith(".ring.tape")  # nothing in it is worth keeping
    assert '"log"' not in path.read_text()
    assert path.read_text().endswith('"code":7}]\n')


STARTED = Started(url="http://127.0.0.1:1", tape="t/x.tape", ca=Path("/c/ca.pem"), version="11.0.2")
REGULAR = MitmOptions(host="127.0.0.1", port=0, upstream=None, to=Path("t"), hosts=("*.b",))
REVERSE = MitmOptions(host="127.0.0.1", port=1, upstream="https://api.openai.com", to=Path("t"))


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


@pytest.mark.parametrize(
    ("connected", "hosts", "expected"),
    [
        (False, (), "does the app read HTTPS_PROXY"),
        (True, (), "sent no request for an LLM host"),
        (True, ("pypi.org",), "undecrypted, not taped: pypi.org; --hosts NAME tapes one"),
        (True, tuple("abcdefg"), "a, b, c, d, e and 2 more"),
    ],
)
def test_nothing_to_tape_is_reported_with_what_was_seen(
    connected: bool,  # noqa: FBT001 - a parameter of the test
    hosts: tuple[str, ...],
    expected: str,
) -> None:
    line = no_traffic(STARTED.url, passed=hosts, connected=connected)
    assert line.startswith("nothing to tape for 20 s")
    assert expected in line


# What the gateway has, too: the ring, the hook, named tapes, the health listener, no bodies.


def test_findings_pin_the_tape_run_the_hook_and_are_on_the_tape(tmp_path: Path) -> None:
    upstream = authority(tmp_path)
    env = {
        **variables(tmp_path, installed("11"), measured=True),
        "SSL_CERT_FILE": str(upstream.path),
    }

    async def cut(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + b"".join(map(chunk, EVENTS[:3])) + b"0\r\n\r\n")

    async def scenario() -> Recorded:
        async with provider(cut, tls=upstream.context) as port:
            chosen = options(tmp_path, None, *upstream.trusted)
            recorded = recorder(
                replace(chosen, keep="5GB"),
                env,
                ("sh", "-c", CURL % port),
                on_finding=f'echo "$1" > {tmp_path}/found; cat > {tmp_path}/report',
                keep=parse_keep("5GB"),
            )
            assert await recorded.session.run() == 0
            return recorded

    recorded = run(scenario(), limit_s=LIMIT_S)
    assert recorded.reporter.with_findings == 1
    assert recorded.reporter.worst is Severity.ERROR
    assert any(line.startswith("    error T003") for line in recorded.lines)
    tape = only_tape(tmp_path)
    assert not Path(tape.path).name.endswith(".ring.tape")
    assert (tmp_path / "found").read_text() == f"{tape.path}\n"
    assert "T003" in (tmp_path / "report").read_text()
    assert [r.payload.code for _, r in tape.records() if r.payload.code == "parsed"] == ["parsed"]


def test_old_segments_are_deleted_and_what_has_findings_is_kept(tmp_path: Path) -> None:
    env = variables(tmp_path, installed("11"), measured=True)

    async def cut(peer: Peer) -> None:
        while True:
            head, _ = await peer.request()
            events = EVENTS[:3] if b"cut" in head else EVENTS
            await peer.send(SSE_HEAD + b"".join(map(chunk, events)) + b"0\r\n\r\n")

    def tapes() -> set[str]:
        return {path.name for path in (tmp_path / "tapes").glob("*.tape")}

    async def scenario() -> str:
        async with provider(cut) as upstream:
            chosen = options(tmp_path, f"http://127.0.0.1:{upstream}")
            recorded = recorder(replace(chosen, keep="1s"), env, keep=parse_keep("1s"))
            task = begun(recorded)
            await until(recorded.lines, "  set ")
            url = next(line for line in recorded.lines if "OPENAI_BASE_URL=" in line)
            port = int(url.partition("127.0.0.1:")[2].partition("/")[0])
            (first,) = tapes()
            peer = await connect(port)
            await peer.send(post(target="/v1/chat/completions"))
            await peer.rest_or_end()
            await vanished(lambda: first in tapes())
            peer = await connect(port)
            await peer.send(post(target="/v1/chat/completions?cut"))
            await peer.rest_or_end()
            await until(recorded.lines, "    error ")
            os.kill(os.getpid(), signal.SIGTERM)
            await task
            assert not recorded.reporter.trouble
            return first

    first = run(scenario(), limit_s=LIMIT_S)
    assert first.endswith(".ring.tape")
    pinned = {name for name in tapes() if ".ring" not in name}
    kept = [exchange for name in pinned for exchange in open_tape(tmp_path / "tapes" / name)]
    assert b"?cut" in b"".join(exchange.request.target_bytes for exchange in kept)


def test_finished_segments_are_sealed(tmp_path: Path) -> None:
    env = variables(tmp_path, installed("11"))
    filler = chunk(b": " + b"x" * (1 << 20) + b"\n\n")  # as large as a segment

    async def large(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(SSE_HEAD + filler + b"".join(map(chunk, EVENTS)) + b"0\r\n\r\n")

    def sealed() -> list[Path]:
        return [*(tmp_path / "tapes").glob("*.tape.zst")]

    async def scenario() -> None:
        async with provider(large) as upstream:
            chosen = options(tmp_path, f"http://127.0.0.1:{upstream}")
            keep = "8MB"
            recorded = recorder(replace(chosen, keep=keep), env, keep=parse_keep(keep), seal=True)
            task = begun(recorded)
            await until(recorded.lines, "  set ")
            url = next(line for line in recorded.lines if "OPENAI_BASE_URL=" in line)
            port = int(url.partition("127.0.0.1:")[2].partition("/")[0])
            for _ in range(3):
                peer = await connect(port)
                await peer.send(post(target="/v1/chat/completions"))
                await peer.rest_or_end()
            await eventually(lambda: bool(sealed()), "a sealed segment")
            os.kill(os.getpid(), signal.SIGTERM)
            await task
            assert not recorded.reporter.trouble

    run(scenario(), limit_s=LIMIT_S)
    journals = {*(tmp_path / "tapes").glob("*.tape")}
    every = [
        *sealed(),
        *(each for each in journals if each.with_suffix(".tape.zst") not in sealed()),
    ]
    ids = [exchange.id for path in every for exchange in open_tape(path)]
    assert len(ids) == len({*ids}) == 3


async def vanished(there: Callable[[], bool]) -> None:
    for _ in range(1000):
        if not there():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it is still there")


def test_a_request_names_its_tape_and_the_name_stays_here(tmp_path: Path) -> None:
    upstream = authority(tmp_path)
    env = {
        **variables(tmp_path, installed("11"), measured=True),
        "SSL_CERT_FILE": str(upstream.path),
    }
    heads: list[bytes] = []

    async def noting(peer: Peer) -> None:
        while True:
            head, _ = await peer.request()
            heads.append(head)
            await peer.send(SSE_HEAD + b"".join(map(chunk, EVENTS)) + b"0\r\n\r\n")

    async def scenario() -> Recorded:
        async with provider(noting, tls=upstream.context) as port:
            ask = f"curl -sSN -d '{{}}' https://localhost:{port}/v1/chat/completions -o /dev/null"
            argv = (
                *("sh", "-ec"),
                f"{ask} -H 'X-Deltatape-Tape: one'; {ask} -H 'X-Deltatape-Tape: ../x'; {ask}",
            )
            recorded = recorder(options(tmp_path, None, *upstream.trusted), env, argv)
            assert await recorded.session.run() == 0
            return recorded

    recorded = run(scenario(), limit_s=LIMIT_S)
    one, main = sorted(
        (tmp_path / "tapes").glob("*.tape"), key=lambda path: path.name != "one.tape"
    )
    assert one.name == "one.tape"
    assert [exchange.number for exchange in open_tape(one)] == [1]
    assert [exchange.number for exchange in open_tape(main)] == [1, 2]
    assert len(heads) == 3
    assert not any(b"deltatape" in head.lower() for head in heads)
    assert any(line.startswith("one#1 POST /v1/chat/completions 200") for line in recorded.lines)
    assert any("'../x' cannot be the name of a tape" in line for line in recorded.lines)
    assert recorded.reporter.exchanges == 3


def test_the_control_address_and_signals_serve_what_is_recorded_without_bodies(
    tmp_path: Path,
) -> None:
    env = variables(tmp_path, installed("11"), measured=True)
    ready = tmp_path / "ready.json"

    async def answering(peer: Peer) -> None:
        head, _ = await peer.request()
        if b"?silent" in head:
            await peer.send(SSE_HEAD + chunk(EVENTS[0]))
            with contextlib.suppress(ConnectionError):
                await peer.reader.read()
        else:
            await peer.send(SSE_HEAD + b"".join(map(chunk, EVENTS)) + b"0\r\n\r\n")

    async def scenario() -> dict[str, object]:
        async with provider(answering) as upstream:
            chosen = replace(options(tmp_path, f"http://127.0.0.1:{upstream}"), bodies=False)
            listen = Address("127.0.0.1", 0)
            recorded = recorder(
                *(chosen, env), control=listen, ready_file=ready, bodies=False, grace_s=300.0
            )
            task = begun(recorded)
            await until(recorded.lines, "  health ")
            told = json.loads(ready.read_text())
            port = urlsplit(told["url"]).port or 0
            peer = await connect(port)
            await peer.send(post(b'{"prompt": "secret"}'))
            await peer.rest_or_end()
            await until(recorded.lines, "#1 POST")
            status = await asyncio.to_thread(fetched, f"{told['control']}/status")
            metrics = await asyncio.to_thread(fetched, f"{told['control']}/metrics")
            assert b"\ndeltatape_exchanges_total 1.0\n" in metrics
            assert b'_transferred_bytes_total{direction="request"} 20.0\n' in metrics
            peer = await connect(port)
            await peer.send(post(target="/v1/chat/completions?silent"))
            await peer.until(EVENTS[0])
            await asyncio.to_thread(until_reported, f"{told['control']}/status")
            os.kill(os.getpid(), signal.SIGINT)
            await until(recorded.lines, "stopping: 1 stream may go on for 300 s; Ctrl-C again cuts")
            os.kill(os.getpid(), signal.SIGINT)
            await task
            found: dict[str, object] = json.loads(status)
            assert found["tapes"] == [told["tape"]]
            return found

    status = run(scenario(), limit_s=LIMIT_S)
    assert (status["exchanges"], status["with_findings"], status["trouble"]) == (1, 0, None)
    assert not ready.exists()
    whole, cut = only_tape(tmp_path)
    assert whole.request.body == b""
    assert whole.body == b"".join(EVENTS)
    assert cut.end is not None
    assert cut.end.reason is EndReason.STOPPED
