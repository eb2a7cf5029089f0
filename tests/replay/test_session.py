"""A run of the player around a command: what is told, what is written, and the exit code."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.gateway.outbound import outbound_from
from deltatape.http1.listener import Address
from deltatape.match.schedule import ReplayTempo
from deltatape.player.play_options import PlayOptions, RunReadBack
from deltatape.player.player import Player
from deltatape.replay.environment import replay_environment
from deltatape.replay.guard import NetworkGuardTunnel
from deltatape.replay.session import ReplayOptions, Responders, replay, teller
from helpers.broken_app_tape import ASKED, RIGHT, WRONG, Json, mistaken
from helpers.disk import read_only
from helpers.playing import ask
from helpers.taped import taped
from helpers.upstream import eventually

ONE, TWO = taped(body={"a": 1}), taped(body={"a": 2}, number=2)
CURL = "curl -sS -o /dev/null -H content-type:application/json $OPENAI_BASE_URL/chat/completions"


def options(command: str, guard: NetworkGuardTunnel | None = None, **more: Path) -> ReplayOptions:
    return ReplayOptions(
        listen=Address("127.0.0.1"),
        tapes=("x.tape",),
        command=("sh", "-c", command) if command else (),
        report=more.get("report"),
        ready_file=more.get("ready_file"),
        guard=guard,
    )


def played(given: ReplayOptions, folder: Path) -> tuple[int, list[str]]:
    """The exit code and the lines of a run with both exchanges."""
    told: list[str] = []
    exchanges = (ONE, TWO)
    take = teller(told.append, alone=not given.command)
    cast = Responders(
        machine=Player(exchanges, take, PlayOptions(tempo=ReplayTempo(factor=0.0))),
        number=2,
        environment=lambda url: replay_environment(url, os.environ, folder, exchanges),
        recorded=lambda: (ONE,),
    )
    return asyncio.run(replay(cast, given, told.append)), told


def test_a_command_that_asks_for_all_of_it_ends_well(tmp_path: Path) -> None:
    report = tmp_path / "r.json"
    command = f"""{CURL} -d '{{"a":1}}' && {CURL} -d '{{"a":2}}'"""
    code, told = played(options(command, report=report), tmp_path)
    assert code == 0
    assert " plays 2 exchanges to sh at http://127.0.0.1:" in told[0]
    assert told[1:] == ["2 played, 0 missed, 0 unplayed, 1 recorded"]
    document = json.loads(report.read_text())
    assert [len(document[key]) for key in ("played", "missed", "unplayed", "recorded")] == [
        2,
        0,
        0,
        1,
    ]


def test_the_commands_exit_code_comes_first_then_what_is_not_whole(tmp_path: Path) -> None:
    code, told = played(options(f"{CURL} -d '{{}}'"), tmp_path)
    assert code == 1
    assert told[1].startswith("MISSED POST /openai/v1/chat/completions: not on the tape")
    assert "0 played, 1 missed, 2 unplayed, 1 recorded" in told
    assert played(options("exit 7"), tmp_path)[0] == 7
    assert played(options("kill -TERM $$"), tmp_path)[0] == 128 + signal.SIGTERM


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_alone_it_tells_of_every_request_and_ends_at_a_signal(tmp_path: Path, number: int) -> None:
    told: list[str] = []
    ready = tmp_path / "ready.json"

    async def scenario() -> int:
        machine = Player(
            (ONE,), teller(told.append, alone=True), PlayOptions(tempo=ReplayTempo(factor=0.0))
        )
        cast = Responders(machine=machine, number=1, environment=lambda _: {})
        async with asyncio.TaskGroup() as tasks:
            run = tasks.create_task(replay(cast, options("", ready_file=ready), told.append))
            await eventually(ready.exists, "a ready file")
            document = json.loads(ready.read_text())
            assert (document["tapes"], document["version"]) == (["x.tape"], 1)
            assert (await asyncio.to_thread(ask, document["url"], ONE.request.body))[0] == 200
            os.kill(os.getpid(), number)
        return run.result()

    assert asyncio.run(scenario()) == 0
    assert not ready.exists()
    assert told[0].endswith(" (Ctrl-C ends)")
    assert told[1].startswith("  set OPENAI_BASE_URL=http://127.0.0.1:")
    assert told[2:] == [
        "playing x.tape#1 POST /v1/chat/completions (same bytes)",
        "1 played, 0 missed, 0 unplayed",
    ]


def test_a_report_that_cannot_be_written_is_reported_before_anything_runs(tmp_path: Path) -> None:
    for report, problem in (
        (tmp_path, "is a folder"),
        (tmp_path / "no" / "r", "there is no folder"),
    ):
        with pytest.raises(UsageError, match=problem):
            played(options("touch ran", report=report), tmp_path)
    closed = tmp_path / "closed"
    closed.mkdir()
    with read_only(closed), pytest.raises(UsageError, match=f"{closed} must not be written to"):
        played(options("touch ran", report=closed / "r.json"), tmp_path)
    report = tmp_path / "gone" / "r.json"
    report.parent.mkdir()
    with pytest.raises(UsageError, match="No such file"):
        played(options(f"rmdir {report.parent}", report=report), tmp_path)
    assert not (tmp_path / "ran").exists()


def test_a_command_that_goes_past_the_player_is_stopped_and_told_of(tmp_path: Path) -> None:
    lines: list[str] = []
    guard = NetworkGuardTunnel(outbound_from({}), tmp_path, lines.append)
    report = tmp_path / "r.json"
    ask_both = f"""{CURL} -d '{{"a":1}}'; {CURL} -d '{{"a":2}}'"""
    command = f"curl -sS https://api.openai.com/v1/models; {ask_both}"
    code, told = played(options(command, guard, report=report), tmp_path)
    assert code == 1
    assert (
        lines[0] == "BLOCKED: your app sent a request directly to api.openai.com, not to the player"
    )
    assert told[-1] == "blocked: requests sent directly to api.openai.com"
    refused = json.loads(report.read_text())["refused"]
    assert refused == [{"host": "api.openai.com", "provider": "openai"}]


def test_telemetry_past_the_player_is_told_and_no_failure(tmp_path: Path) -> None:
    lines: list[str] = []
    telemetry = {"api.openai.com": "OpenAI Agents SDK"}
    guard = NetworkGuardTunnel(outbound_from({}), tmp_path, lines.append, telemetry=telemetry)
    report = tmp_path / "r.json"
    ask_both = f"""{CURL} -d '{{"a":1}}'; {CURL} -d '{{"a":2}}'"""
    command = f"curl -sS https://api.openai.com/v1/traces/ingest; {ask_both}"
    code, told = played(options(command, guard, report=report), tmp_path)
    assert (code, lines) == (0, [])
    assert told[-1] == "blocked: telemetry of OpenAI Agents SDK to api.openai.com; no failure"
    assert json.loads(report.read_text())["refused"] == []


def read_back(
    folder: Path, *requests: Json, refused: bool = False, then: str = "true"
) -> tuple[int, list[str]]:
    """The exit code and the lines of a run that is read back."""
    told: list[str] = []
    exchanges = mistaken(refused=refused)
    asks = []
    for at, each in enumerate(requests):
        (folder / f"{at}.json").write_text(json.dumps(each))
        asks.append(f"{CURL} -d @{folder}/{at}.json")
    given = options("; ".join((*asks, then)))
    playing = PlayOptions(tempo=ReplayTempo(factor=0.0), read_back=RunReadBack())
    cast = Responders(
        machine=Player(exchanges, teller(told.append, alone=False), playing),
        number=2,
        environment=lambda url: replay_environment(url, os.environ, folder, exchanges),
    )
    return asyncio.run(replay(cast, given, told.append)), told


def test_a_mistake_that_is_made_again_fails_a_command_that_ended_well(tmp_path: Path) -> None:
    code, told = read_back(tmp_path, ASKED, WRONG)
    assert code == 1
    assert told[1] == "2 played, 0 missed, 0 unplayed"
    assert told[2].startswith("MISTAKE C002 in request 2 (x.tape#2): call 0 (get, c1) of #1 was")


def test_a_request_that_is_right_where_the_tape_is_wrong_is_reported_and_passes(
    tmp_path: Path,
) -> None:
    code, told = read_back(tmp_path, ASKED, RIGHT)
    assert code == 0
    assert told[1].endswith("(differs from the recorded request only where that was wrong (C002))")


def test_a_command_that_fails_without_the_mistake_is_told_whose_answers_it_got(
    tmp_path: Path,
) -> None:
    code, told = read_back(tmp_path, ASKED, RIGHT, then="exit 3")
    assert code == 3
    assert told[-1] == (
        "note: the app repeats no mistake of the tape; exit code 3 is the command's own. The"
        " answers from x.tape#2 on were recorded for wrong requests: if the command fails for what"
        " they say, record a tape of the fixed app"
    )
    for then in ("exit 0", "exit 3"):
        _, told = read_back(tmp_path, ASKED, WRONG, then=then)
        assert not any("the command's own" in line for line in told)


def test_behind_the_end_of_the_tape_an_exit_code_says_nothing(tmp_path: Path) -> None:
    code, told = read_back(tmp_path, ASKED, RIGHT, refused=True, then="exit 3")
    assert code == 0
    assert told[1].startswith("END OF TAPE POST ")
    assert told[-1] == (
        "passed up to the end of the tape: exit code 3 does not count, since the command requested"
        " more than the tape has"
    )
    assert read_back(tmp_path, ASKED, RIGHT, refused=True, then="kill -9 $$")[0] == 137
    assert read_back(tmp_path, ASKED, RIGHT, refused=True)[0] == 0
