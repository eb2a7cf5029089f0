"""mitmproxy as a process of ours."""

import asyncio
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.mitm.ipc import Log
from deltatape.mitm.mitmdump import ADDON, Mitmdump, MitmOptions, arguments, find_mitmdump
from helpers.mitm import NEWEST, installed, mitmproxy, variables
from helpers.program import environment
from helpers.upstream import connect, provider, run

LIMIT_S = 90
OPTIONS = MitmOptions(host="127.0.0.1", port=0, upstream=None, to=Path("t"))


def fake(folder: Path, program: str) -> dict[str, str]:
    """An environment in which `mitmdump` is a shell script."""
    path = folder / "mitmdump"
    path.write_text(f"#!/bin/sh\n{program}\n")
    path.chmod(0o700)
    return {**environment(folder), "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def refused(options: MitmOptions, env: dict[str, str]) -> str:
    """What is told when mitmproxy does not start."""

    async def scenario() -> str:
        with pytest.raises(UsageError) as caught:
            await Mitmdump(print, print).start(options, env)
        return str(caught.value)

    return run(scenario(), limit_s=LIMIT_S)


def test_options_come_in_the_order_that_lets_the_user_s_win() -> None:
    argv = arguments(
        MitmOptions(
            host="::1",
            port=8377,
            upstream="https://api.openai.com",
            to=Path("tapes"),
            hosts=("a", "*.b"),
            more=("-v",),
        )
    )
    assert argv[:3] == ["--quiet", "--mode", "reverse:https://api.openai.com"]
    hosts = ["--set", "deltatape_hosts=a", "--set", "deltatape_hosts=*.b"]
    assert argv[-7:] == [*hosts, "-v", "--scripts", str(ADDON)]
    assert "deltatape_to=tapes" in argv
    assert arguments(OPTIONS)[:3] == ["--quiet", "--mode", "regular"]


def test_a_missing_mitmproxy_is_reported_with_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        find_mitmdump({"PATH": str(tmp_path)})
    assert "pip install 'deltatape[mitm]'" in str(caught.value)
    assert 'mitmdump -s "$(deltatape mitm --addon-path)"' in str(caught.value)


def test_mitmproxy_is_looked_for_beside_this_python_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = fake(tmp_path, "exit 1")
    assert find_mitmdump(env) == str(tmp_path / "mitmdump")
    beside = tmp_path / "bin"
    beside.mkdir()
    (beside / "mitmdump").touch()
    monkeypatch.setattr(sys, "executable", str(beside / "python"))
    assert find_mitmdump(env) == str(beside / "mitmdump")


def test_a_port_that_is_taken_is_told_like_everywhere(tmp_path: Path) -> None:
    async def nothing(_: object) -> None:
        return

    async def scenario() -> None:
        async with provider(nothing) as port:
            with pytest.raises(UsageError) as caught:
                async with mitmproxy(tmp_path, "11", more=("--listen-port", str(port))):
                    pass
        assert "Address already in use; choose another address with --listen" in str(caught.value)
        assert not (tmp_path / "mitm").exists()

    run(scenario(), limit_s=LIMIT_S)


@pytest.mark.parametrize("version", NEWEST)
def test_options_that_mitmproxy_does_not_know_are_reported_in_its_words(
    tmp_path: Path, version: str
) -> None:
    async def scenario() -> str:
        with pytest.raises(UsageError) as caught:
            async with mitmproxy(tmp_path, version, more=("--nonsense",)):
                pass
        return str(caught.value)

    message = run(scenario(), limit_s=LIMIT_S)
    assert message.startswith("mitmproxy did not start: ")
    assert "--nonsense" in message


def test_a_program_that_only_ends_said_nothing(tmp_path: Path) -> None:
    assert refused(OPTIONS, fake(tmp_path, "exit 1")) == (
        "mitmproxy did not start: it said nothing"
    )


def test_a_program_that_cannot_be_run_is_reported(tmp_path: Path) -> None:
    env = fake(tmp_path, "")
    (tmp_path / "mitmdump").write_text("#!/nowhere/at/all\n")
    assert "No such file or directory" in refused(OPTIONS, env)


def test_what_it_says_itself_is_relayed_and_what_a_child_prints_is_on_the_tape(
    tmp_path: Path,
) -> None:
    async def scenario() -> tuple[list[str], str]:
        async with mitmproxy(tmp_path, "11", more=("--verbose",), measured=True) as running:
            (await connect(running.port)).close()
            await running.until(
                lambda observed: any("client conn" in each for each in observed.lines)
            )
            running.mitmdump.send(
                Log.of("stderr", b"SyntaxError: Unexpected end of JSON input\n", 0)
            )
            await running.stop("child-exit", 1)
            return running.observed.lines, running.text()

    lines, tape = run(scenario(), limit_s=LIMIT_S)
    assert any(line.startswith("mitmproxy: ") for line in lines)
    assert '"log",{"stream":"stderr","line":"SyntaxError: Unexpected end of JSON input"' in tape


def test_of_an_output_however_long_the_last_line_is_told(tmp_path: Path) -> None:
    script = "head -c 200000 /dev/zero | tr '\\0' x; echo; echo last; kill -9 $$"
    assert refused(OPTIONS, fake(tmp_path, script)).endswith("last")


@pytest.mark.parametrize("version", NEWEST)
def test_its_ca_is_awaited_to_the_end_of_the_file(tmp_path: Path, version: str) -> None:
    # Written on the first run, after it listens: for a moment the file is there and empty.
    ca = tmp_path / ".mitmproxy" / "mitmproxy-ca-cert.pem"
    ca.parent.mkdir()
    ca.touch()
    env = {**variables(tmp_path, installed(version)), "HOME": str(tmp_path)}

    async def scenario() -> str:
        mitmdump = Mitmdump(print, print)
        try:
            started = await mitmdump.start(replace(OPTIONS, to=tmp_path / "tapes"), env)
            return started.ca.read_text()
        finally:
            await mitmdump.kill()

    assert run(scenario(), limit_s=LIMIT_S).endswith("-----END CERTIFICATE-----\n")


@pytest.mark.parametrize("version", NEWEST)
def test_mitmproxy_ends_when_deltatape_is_gone(tmp_path: Path, version: str) -> None:
    async def scenario() -> None:
        async with mitmproxy(tmp_path, version) as running:
            transport = running.mitmdump._socket._transport
            assert transport is not None
            transport.abort()
            await asyncio.wait_for(running.mitmdump.gone(), 20)
            assert running.tape().stopped

    run(scenario(), limit_s=LIMIT_S)


def test_one_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltatape.mitm.mitmdump.END_S", 0.3)

    async def scenario() -> None:
        async with mitmproxy(tmp_path, "11") as running:
            os.kill(running.pid, signal.SIGSTOP)
            ended = await running.stop()
            assert not ended.in_order
            assert ended.code == -signal.SIGKILL

    run(scenario(), limit_s=LIMIT_S)


def test_trouble_with_the_tape_is_reported(tmp_path: Path) -> None:
    (tmp_path / "mitm").write_text("a file where a folder should be")

    async def scenario() -> None:
        async with mitmproxy(tmp_path, "11") as running:
            assert running.started.tape == ""
            assert running.observed.alarms
            assert "nothing will be taped" in running.observed.alarms[0]

    run(scenario(), limit_s=LIMIT_S)
