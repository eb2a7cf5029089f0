"""`deltatape record --mcp-stdio`: what both sides notice, and what is on the tape."""

import asyncio
import json
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from deltatape.model.exchange import EndReason, Exchange, Framing
from deltatape.record.tool_server_session import argument_secrets, server_name
from deltatape.store.reader import open_tape
from helpers.console import called
from helpers.mcp_stdio import SERVER, call, command, line, message, running
from helpers.program import deltatape
from helpers.recorded_apps import Provider, recorded
from helpers.upstream import provider, run

LONG_S = 60.0


def exchanges_in(folder: Path) -> list[Exchange]:
    (path,) = folder.glob("*.tape")
    return sorted(open_tape(path), key=lambda exchange: exchange.number)


def said(exchange: Exchange) -> tuple[bytes, bytes]:
    return exchange.request.body, exchange.body


def test_a_client_and_a_server_notice_nothing(tmp_path: Path) -> None:
    argv = command(tmp_path)
    asked = (
        message(1, "initialize"),
        line(method="notifications/initialized"),
        call(2, "chat", city="Olá"),
        line(id="s1", result={"roots": []}),
        message("x", "fail"),
    )
    seen = []
    for taped in (True, False):
        with running(argv if taped else argv[-2:], tmp_path) as client:
            client.send(*asked)
            seen.append(client.end())
    assert seen[0] == seen[1]
    assert seen[0][0] == 0
    assert seen[0][2] == b"the server ends\n"
    tape = exchanges_in(tmp_path / ".deltatape")
    assert b"".join(each.request.body for each in tape) == b"".join(asked)
    own = [each for each in tape if each.request.method == "GET"]
    answers = b"".join(each.body for each in tape if each not in own)
    assert sorted((answers + own[0].body).splitlines()) == sorted(seen[0][1].splitlines())


def test_each_request_is_an_exchange_with_its_answer(tmp_path: Path) -> None:
    with running(command(tmp_path, "--name", "weather"), tmp_path) as client:
        first = client.ask(call(1, "get_weather", city="Gent"))
        second = client.ask(call("1", "get_weather", city="Riga"))
        assert client.end()[0] == 0
    tape = exchanges_in(tmp_path / ".deltatape")
    assert [said(each) for each in tape] == [
        (call(1, "get_weather", city="Gent"), first),
        (call("1", "get_weather", city="Riga"), second),
    ]
    for each in tape:
        assert each.request.upstream == "http://weather.stdio.invalid"
        assert each.response is not None
        assert (each.response.status, each.response.framing) == (200, Framing.CLOSE)
        assert each.end is not None
        assert each.end.reason is EndReason.COMPLETE
    assert called("check", ".deltatape", folder=tmp_path).stdout == b"no findings\n"
    assert b"MCP tools/call, get_weather answered" in called("show", folder=tmp_path).stdout


def test_messages_without_an_answer_are_accepted_and_the_rest_of_the_server_is_one_stream(
    tmp_path: Path,
) -> None:
    with running(command(tmp_path), tmp_path) as client:
        assert client.ask(call(1, "chat")) == b"a line that is no message\n"
        client.send(line(id="s1", result={"roots": []}))
        client.end()
    asking, hearing, answering = exchanges_in(tmp_path / ".deltatape")
    assert json.loads(asking.body)["id"] == 1
    assert hearing.request.method == "GET"
    assert [b"no message" in each or b"method" in each for each in hearing.body.splitlines()] == [
        True,
        True,
        True,
    ]
    assert answering.response is not None
    assert (answering.response.status, answering.body) == (202, b"")


def test_a_batch_ends_with_its_answers(tmp_path: Path) -> None:
    batch = json.dumps([{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in (1, 2)]).encode()
    with running(command(tmp_path), tmp_path) as client:
        answer = client.ask(batch + b"\n")
        client.end()
    (exchange,) = exchanges_in(tmp_path / ".deltatape")
    assert said(exchange) == (batch + b"\n", answer)


@pytest.mark.parametrize("code", [0, 3])
def test_a_server_that_exits_leaves_its_code_and_a_cut_exchange(tmp_path: Path, code: int) -> None:
    with running(command(tmp_path), tmp_path) as client:
        assert client.ask(call(1, "exit", code=code)) == b""
        assert client.process.wait(timeout=LONG_S) == code
    (exchange,) = exchanges_in(tmp_path / ".deltatape")
    assert exchange.end is not None
    assert exchange.end.reason is EndReason.UPSTREAM_CLOSED
    assert exchange.response is None


def test_who_does_not_wait_for_the_answer_is_the_client(tmp_path: Path) -> None:
    with running(command(tmp_path), tmp_path) as client:
        client.send(call(1, "wait"), call(2, "wait"))
        taken_back = line(method="notifications/cancelled", params={"requestId": 1})
        client.send(taken_back)
        assert client.end()[0] == 0
    first, second, third = exchanges_in(tmp_path / ".deltatape")
    assert first.end is not None
    assert second.end is not None
    assert (first.end.reason, first.end.detail) == (
        EndReason.CLIENT_CLOSED,
        "the client cancelled the request",
    )
    assert second.end.reason is EndReason.CLIENT_CLOSED
    assert third.request.body == taken_back


def test_a_signal_goes_to_the_server(tmp_path: Path) -> None:
    with running(command(tmp_path), tmp_path) as client:
        client.ask(message(1, "ping"))
        client.process.send_signal(signal.SIGTERM)
        assert client.process.wait(timeout=LONG_S) == 128 + signal.SIGTERM
    assert len(exchanges_in(tmp_path / ".deltatape")) == 1


def test_a_killed_recorder_takes_the_server_with_it(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = f"import os; open({str(pid)!r}, 'w').write(str(os.getpid()))\n{SERVER}"
    argv = command(tmp_path)
    (tmp_path / "server.py").write_text(code)
    with running(argv, tmp_path) as client:
        client.ask(message(1, "ping"))
        server = os.pidfd_open(int(pid.read_text())) if hasattr(os, "pidfd_open") else None
        client.process.kill()
        client.process.wait(timeout=LONG_S)
        if server is not None:
            poll = asyncio.run(_ended(server))
            assert poll


async def _ended(pidfd: int) -> bool:
    """Wait for the end of a process."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(pidfd, ended.set)
    await asyncio.wait_for(ended.wait(), LONG_S)
    loop.remove_reader(pidfd)
    os.close(pidfd)
    return True


def test_a_command_that_cannot_start_says_so(tmp_path: Path) -> None:
    result = deltatape("record", "--mcp-stdio", "--", "./nothing", folder=tmp_path)
    assert (result.returncode, result.stdout) == (127, b"")
    assert b"./nothing: No such file" in result.stderr


def test_options_without_effect_are_refused(tmp_path: Path) -> None:
    for options, told in (
        (("--mcp-stdio", "--app", "http://127.0.0.1:1", "--", "x"), "--app: has no effect with"),
        (("--name", "x", "--", "x"), "--name: has no effect without --mcp-stdio"),
        (("--mcp-stdio",), "--mcp-stdio: needs the server's command after --"),
    ):
        result = called("record", *options, folder=tmp_path)
        assert result.returncode == 2
        assert told in result.stderr.decode()


SECRET = "k-93jf7Ahq2nPz"  # noqa: S105 - of nobody


@pytest.mark.parametrize("how", ["environment", "argument"])
def test_a_credential_of_the_server_is_on_no_tape(tmp_path: Path, how: str) -> None:
    argv = command(tmp_path)
    env = {"KEY": SECRET}
    if how == "argument":
        argv = (*argv, "--api-key", SECRET)
        env = {"KEY": "nothing"}
    with running(argv, tmp_path, env) as client:
        told = client.ask(call(1, "key") if how == "environment" else call(1, "x", key=SECRET))
        assert SECRET.encode() in told
        client.end()
    (path,) = (tmp_path / ".deltatape").glob("*.tape")
    assert SECRET.encode() not in path.read_bytes()


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (("npx", "-y", "@modelcontextprotocol/server-memory"), "server-memory"),
        (("/usr/bin/python3.11", "/srv/my server.py", "--x"), "my-server"),
        (("uvx", "mcp-server-git"), "mcp-server-git"),
        (("docker", "run", "-i"), "docker"),
        (("--",), "server"),
    ],
)
def test_a_server_is_called_as_its_command(argv: tuple[str, ...], name: str) -> None:
    assert server_name(argv) == name


def test_credentials_in_a_command_line_are_known_by_their_options() -> None:
    argv = ("server", "--api-key", SECRET, "--token=abcdefgh12", "API_KEY=q1w2e3r4t5", "--port=80")
    found = (SECRET.encode(), b"abcdefgh12", b"q1w2e3r4t5")
    assert argument_secrets(argv) == tuple(sorted(found))


# Beside a recorder that runs.

APP = """
import json, os, subprocess, sys, urllib.request
env = {name: os.environ[name] for name in %(kept)r if name in os.environ}
server = subprocess.Popen(%(argv)r, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
server.stdin.write(%(asked)r)
server.stdin.flush()
server.stdout.readline()
body = json.dumps({"model": "m", "stream": True, "messages": []}).encode()
head = {"Content-Type": "application/json", "Authorization": "Bearer sk-fake-000000"}
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
urllib.request.urlopen(urllib.request.Request(url, body, head)).read()
server.stdin.close()
sys.exit(server.wait())
"""
FEW = ("HOME", "PATH", "PYTHONPATH", "XDG_STATE_HOME", "COVERAGE_PROCESS_START", "KEY")
"""What MCP's SDKs leave of the environment, and what the tests need."""


@pytest.mark.parametrize("how", ["variable", "folder"])
def test_a_server_is_taped_by_the_recorder_of_its_client(tmp_path: Path, how: str) -> None:
    kept = (*FEW, "DELTATAPE_RECORDER") if how == "variable" else FEW
    argv = command(tmp_path, *(() if how == "variable" else ("--to", "tapes")))
    asked = call(1, "key")
    app = tmp_path / "app.py"
    app.write_text(APP % {"kept": kept, "argv": argv, "asked": asked})

    async def scenario() -> None:
        served = Provider()
        async with provider(served.serve) as port:
            upstream = ("--upstream", f"openai=http://127.0.0.1:{port}")
            result = await recorded(
                tmp_path, *upstream, "--", sys.executable, "app.py", env={"KEY": SECRET}
            )
        assert result.returncode == 0, result.stderr.decode()

    run(scenario(), LONG_S)
    asking, model = exchanges_in(tmp_path / "tapes")
    assert asking.request.body == asked
    assert (asking.request.upstream, model.request.method) == (
        "http://server.stdio.invalid",
        "POST",
    )
    assert asking.end is not None
    assert asking.end.reason is EndReason.COMPLETE
    assert SECRET.encode() not in asking.body
    assert asking.end.t_ns <= model.request.t_ns
    assert not [*(tmp_path / "tapes").glob(".recorder-*")]
    assert not (tmp_path / ".deltatape").exists()


def test_a_file_of_a_recorder_that_has_gone_leads_nowhere(tmp_path: Path) -> None:
    folder = tmp_path / ".deltatape"
    folder.mkdir()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens here
        port = taken.getsockname()[1]
        (folder / ".recorder-1.json").write_text(json.dumps({"port": port, "token": "x"}))
        (folder / ".recorder-2.json").write_text("{")
        with running(command(tmp_path), tmp_path) as client:
            client.ask(message(1, "ping"))
            assert client.end()[0] == 0
    assert len(exchanges_in(folder)) == 1
