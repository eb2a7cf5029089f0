"""`deltatape replay` as a process: what it plays, what it tells, and its exit code."""

import asyncio
import gzip
import json
import signal
import sys
import time  # noqa: TID251 - the user's clock, by which speeds are judged
from collections.abc import Callable
from pathlib import Path

import brotli  # type: ignore[import-untyped]
import click
import pytest
import zstandard

from deltatape.cli import replay_command
from deltatape.demo.demo import Background
from deltatape.model.exchange import Exchange
from deltatape.store.reader import open_tape
from deltatape.vary.fault import FAULTS
from helpers import playing
from helpers.console import called
from helpers.hostile import assert_harmless, hostile_tape
from helpers.incidents import BROKEN, CUT, FIXED, STALL, exchange
from helpers.program import deltatape, program
from helpers.pytest_projects import write_tape
from helpers.recorded_apps import Provider
from helpers.taped import taped
from helpers.upstream import SSE_HEAD, Peer, chunk, provider, run

PATH = "/v1/chat/completions"
FAST = ("--listen", "127.0.0.1:0", "--speed", "instant")


def ask(player: Background, body: bytes, path: str = PATH) -> tuple[int, bytes]:
    """Status and body of the answer."""
    return playing.ask(player.url, body, path)


def seconds_for(tape: Path, asked: Exchange, *options: str, folder: Path) -> float:
    """How long an exchange takes to play under `options`, with its bytes checked."""
    listen = ("--listen", "127.0.0.1:0")
    with program("replay", *listen, *options, f"{tape}#{asked.number}", folder=folder) as player:
        assert player.port
        started = time.monotonic()
        assert ask(player, asked.request.body) == (200, asked.body)
        return time.monotonic() - started


def test_a_tape_plays_byte_for_byte_under_every_prefix(tmp_path: Path) -> None:
    with program("replay", *FAST, str(BROKEN), folder=tmp_path) as player:
        for number, path in ((1, PATH), (2, f"/openai{PATH}")):
            recorded = exchange(BROKEN, number)
            assert ask(player, recorded.request.body, path) == (200, recorded.body)
        code, told = player.stop()
    assert "plays 2 exchanges at http://127.0.0.1:" in told
    assert f"playing {BROKEN}#2 POST {PATH} (same bytes)" in told
    assert "2 played, 0 missed, 0 unplayed\n" in told
    assert f"MISTAKE C002 in request 2 ({BROKEN}#2): call 0 (get_itinerary, " in told
    assert code == 1


def test_compressed_requests_are_recorded_read_back_and_played(tmp_path: Path) -> None:
    """As Codex sends them; the recorded app is a broken one."""

    def ask_coded(url: str, number: int, coding: str, encode: Callable[[bytes], bytes]) -> None:
        body, fields = encode(exchange(BROKEN, number).request.body), {"Content-Encoding": coding}
        assert playing.ask(url, body, PATH, fields) == (200, exchange(BROKEN, number).body)

    options = ("--listen", "127.0.0.1:0", "--to", "tapes", "--upstream")
    with (
        program("replay", *FAST, str(BROKEN), folder=tmp_path) as upstream,
        program("record", *options, upstream.url, folder=tmp_path) as recorder,
    ):
        for number in (1, 2):
            ask_coded(recorder.url, number, "zstd", zstandard.compress)
        recorder.stop()
    (tape,) = (tmp_path / "tapes").iterdir()
    taped_again = list(open_tape(tape))
    assert [each.request.content for each in taped_again] == [
        exchange(BROKEN, number).request.body for number in (1, 2)
    ]
    assert zstandard.decompress(taped_again[0].request.body) == taped_again[0].request.content
    said = called("check", tape, folder=tmp_path).stdout.decode()
    assert "error C002 arguments-changed-by-app  app, proven" in said
    with program("replay", *FAST, str(tape), folder=tmp_path) as player:
        ask_coded(player.url, 1, "gzip", gzip.compress)
        ask_coded(player.url, 2, "br", brotli.compress)
        code, told = player.stop()
    assert "2 played, 0 missed, 0 unplayed\n" in told
    assert f"MISTAKE C002 in request 2 ({tape}#2): call 0 (get_itinerary, " in told
    assert code == 1


def test_an_ignored_mistake_does_not_fail_the_run(tmp_path: Path) -> None:
    options = (*FAST, "--ignore", "C002,C009")
    with program("replay", *options, str(BROKEN), folder=tmp_path) as player:
        for number in (1, 2):
            assert ask(player, exchange(BROKEN, number).request.body)[0] == 200
        code, told = player.stop()
    assert code == 0
    assert told.endswith("2 played, 0 missed, 0 unplayed\n")
    refused = called("replay", "--mode", "auto", "--ignore", "C", str(BROKEN), folder=tmp_path)
    assert refused.returncode == 2
    assert b"--ignore: has no effect with --mode auto" in refused.stderr


def test_exchanges_of_several_tapes_play(tmp_path: Path) -> None:
    with program("replay", *FAST, f"{BROKEN}#1", f"{FIXED}#2", folder=tmp_path) as player:
        for tape, number in ((FIXED, 2), (BROKEN, 1)):
            recorded = exchange(tape, number)
            assert ask(player, recorded.request.body) == (200, recorded.body)
        assert player.stop(signal.SIGTERM)[0] == 0


def test_an_unplayed_exchange_is_named_and_makes_the_exit_code_1(tmp_path: Path) -> None:
    with program("replay", *FAST, str(BROKEN), folder=tmp_path) as player:
        assert ask(player, exchange(BROKEN, 1).request.body)[0] == 200
        code, told = player.stop()
    assert code == 1
    assert "1 played, 0 missed, 1 unplayed\n" in told
    assert told.endswith(f"  unplayed: {BROKEN}#2 {PATH}\n")


def test_a_miss_makes_the_exit_code_1_and_names_the_difference(tmp_path: Path) -> None:
    recorded = exchange(CUT, 1)
    other = json.loads(recorded.request.body) | {"model": "other"}
    with program("replay", *FAST, str(CUT), folder=tmp_path) as player:
        status, answer = ask(player, json.dumps(other).encode())
        assert status == 400
        assert json.loads(answer)["error"]["differences"][0]["path"] == "$.model"
        assert ask(player, recorded.request.body)[0] == 200
        code, told = player.stop()
    assert code == 1
    assert f"MISSED POST {PATH}: not on the tape: " in told
    assert "1 played, 1 missed, 0 unplayed" in told


def test_the_same_json_in_other_words_is_the_same_request(tmp_path: Path) -> None:
    recorded = exchange(FIXED, 1)
    asked = json.dumps(json.loads(recorded.request.body), indent=2, sort_keys=True).encode()
    with program("replay", *FAST, f"{FIXED}#1", folder=tmp_path) as player:
        assert ask(player, asked) == (200, recorded.body)
        code, told = player.stop()
    assert code == 0
    assert "(same JSON)" in told


def test_a_volatile_field_may_differ(tmp_path: Path) -> None:
    recorded = exchange(FIXED, 1)
    asked = json.dumps(json.loads(recorded.request.body) | {"model": "other"}).encode()
    options = (*FAST, "--volatile", "model", "--volatile", "metadata.session")
    with program("replay", *options, f"{FIXED}#1", folder=tmp_path) as player:
        assert ask(player, asked) == (200, recorded.body)
        code, told = player.stop()
    assert code == 0
    assert "(same JSON except for what is volatile)" in told


def test_parts_of_texts_may_differ_and_what_that_makes_equal_is_told(tmp_path: Path) -> None:
    tape = tmp_path / "x.tape"
    days = ("2026-11-26", "2026-11-27")
    bodies = ({"text": f"on {day}, run-{at}"} for at, day in enumerate(days, 1))
    write_tape(tape, *(taped(body=body, number=at) for at, body in enumerate(bodies, 1)))
    (tmp_path / "deltatape.yaml").write_text("replay: {volatile: [date, '/run-[0-9]+/']}")
    with program("replay", *FAST, str(tape), folder=tmp_path) as player:
        for _ in days:
            assert ask(player, b'{"text": "on 2026-12-03, run-77"}')[0] == 200
        code, told = player.stop()
    assert code == 0
    assert told.count("(same JSON except for what is volatile)") == 2
    assert told.count("#2 would match as well") == 1


def test_a_mask_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "deltatape.yaml").write_text("replay: {volatile: ['a:day']}")
    done = called("replay", str(FIXED), folder=tmp_path)
    assert done.returncode == 2
    assert b"--volatile 'a:day': 'day' is no mask; use date, hash, home" in done.stderr


def test_an_exchange_plays_once_or_as_often_as_asked(tmp_path: Path) -> None:
    recorded = exchange(CUT, 1)
    for options, third, code in (((), 400, 1), (("--repeat",), 200, 0)):
        with program("replay", *FAST, *options, str(CUT), folder=tmp_path) as player:
            statuses = [ask(player, recorded.request.body)[0] for _ in range(2)]
            assert statuses == [200, third]
            assert player.stop()[0] == code


def test_recorded_time_passes_as_asked(tmp_path: Path) -> None:
    stall, cut = exchange(STALL, 1), exchange(FIXED, 1)
    assert stall.end is not None
    recorded_s = stall.end.t_ns / 1e9
    assert recorded_s > 12
    assert seconds_for(STALL, stall, "--speed", "instant", folder=tmp_path) < recorded_s
    assert seconds_for(STALL, stall, "--speed", "20x", folder=tmp_path) > 0.5
    assert seconds_for(STALL, stall, "--idle-cap", "50ms", folder=tmp_path) > 0.1
    assert seconds_for(FIXED, cut, folder=tmp_path) > 0.4


def test_an_environment_variable_sets_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DELTATAPE_REPLAY_SPEED", "instant")
    monkeypatch.setenv("DELTATAPE_REPLAY_LISTEN", "127.0.0.1:0")
    with program("replay", f"{STALL}#1", folder=tmp_path) as player:
        assert ask(player, exchange(STALL, 1).request.body)[0] == 200


def test_an_unfinished_exchange_is_held_and_then_cut(tmp_path: Path) -> None:
    lines = CUT.read_bytes().split(b"\n")
    unfinished = [line for line in lines if b'"end"' not in line and b'"stop"' not in line]
    (tmp_path / "x.tape").write_bytes(b"\n".join(unfinished))
    recorded = exchange(CUT, 1)
    with program("replay", *FAST, "--hold", "300ms", "x.tape", folder=tmp_path) as player:
        assert player.port
        started = time.monotonic()
        status, body = ask(player, recorded.request.body)
        assert (status, body.startswith(b"data: ")) == (200, True)
        assert recorded.body.startswith(body)
        assert time.monotonic() - started > 0.25
        assert player.stop()[0] == 0


def test_no_text_of_a_tape_acts_on_the_terminal(tmp_path: Path) -> None:
    tape = hostile_tape(tmp_path)
    with program("replay", *FAST, tape.name, folder=tmp_path) as player:
        ask(player, b'{"model": "\\u001b[7m"}')
        code, told = player.stop()
    assert code == 1
    assert "MISSED" in told
    assert "unplayed: h\\x1b]0;owned" in told
    assert_harmless(told.encode())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--listen", "8378"), "use HOST:PORT"),
        (("--listen", "0.0.0.0:0"), "use a loopback address"),
        (("--speed", "fast"), "invalid speed; use recorded, instant, or a factor such as 2x"),
        (("--speed", "0x"), "invalid speed"),
        (("--idle-cap", "10"), "invalid duration; use 500ms, 30s or 2m"),
        (("--hold", "soon"), "invalid duration"),
        (("--reads", "words"), "--reads 'words'"),
        (("--fault", "flood"), "unknown fault 'flood'; use one of status,"),
        (("--upstream", "http://a.example"), "--upstream: has no effect without --mode auto"),
        (("sh", "x"), f"put -- before it: deltatape replay {CUT} -- sh x"),
        (("--no-tunnel",), "--no-tunnel: has no effect without a command after --"),
        (("--mode", "auto", "x.tape"), "name exactly one TAPE, without #N"),
        (("--report", "no/such.json"), "there is no folder no; name a writable file"),
        (("missing.tape",), "missing.tape: No such file or directory"),
        ((f"{CUT}#2",), "no such exchange on the tape"),
    ],
)
def test_a_wrong_call_says_what_would_be_accepted(
    tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    result = called("replay", str(CUT), *options, folder=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    assert message in result.stderr.decode()


def test_without_a_tape_and_on_a_taken_port_it_ends(tmp_path: Path) -> None:
    assert b"Missing argument 'TAPE[#N]...'" in called("replay", folder=tmp_path).stderr
    with program("replay", *FAST, str(CUT), folder=tmp_path) as player:
        taken = f"127.0.0.1:{player.port}"
        result = called("replay", "--listen", taken, CUT, folder=tmp_path)
        assert result.returncode == 2
        assert f"cannot listen on {taken}: ".encode() in result.stderr


FIXED_APP = (sys.executable, "-m", "deltatape.demo.app", "--accumulator", "by-index")
BROKEN_APP = (*FIXED_APP[:-1], "single-call")
AT_ONCE = ("--speed", "instant")


def test_a_command_is_run_against_the_tape_and_judged_by_both_its_code_and_the_tape(
    tmp_path: Path,
) -> None:
    options = (*AT_ONCE, "--report", "r.json", FIXED)
    fixed = called("replay", *options, "--", *FIXED_APP, folder=tmp_path)
    assert fixed.returncode == 0, fixed.stderr
    first, last = fixed.stderr.decode().splitlines()
    assert " plays 2 exchanges to python" in first
    assert last == "2 played, 0 missed, 0 unplayed"
    report = json.loads((tmp_path / "r.json").read_text())
    assert [one["matched"] for one in report["played"]] == ["exact", "exact"]
    broken = called("replay", *options, "--", *BROKEN_APP, folder=tmp_path)
    assert broken.returncode == 1
    assert b"MISSED POST /openai/v1/chat/completions: not on the tape: " in broken.stderr
    (missed,) = json.loads((tmp_path / "r.json").read_text())["missed"]
    assert missed["nearest"]["exchange"] == 2
    assert missed["differences"][0]["path"] == "$.messages[1].tool_calls[0].function.arguments"


def test_what_is_not_a_verdict_of_the_command_has_a_code_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "bad.tape").write_text("garbage\n")
    for command, code in ((("sh", "-c", "exit 3"), 3), (("true",), 1), (("no-such-program",), 127)):
        assert called("replay", str(CUT), "--", *command, folder=tmp_path).returncode == code
    for options in (
        ("no.tape",),
        ("bad.tape",),
        (str(CUT), "--fault", "x"),
        (str(CUT), "--listen", "unix:/tmp/x"),
    ):
        assert called("replay", *options, "--", "true", folder=tmp_path).returncode == 125


def test_the_help_names_every_fault() -> None:
    (told,) = (
        each.help
        for each in replay_command.command.params
        if isinstance(each, click.Option) and each.name == "fault"
    )
    assert told is not None
    assert f"Kinds: {', '.join(FAULTS)}." in told


def test_a_fault_that_strikes_nothing_is_reported(tmp_path: Path) -> None:
    done = called("replay", str(CUT), "--fault", "cut,exchange=5", "--", "true", folder=tmp_path)
    assert done.returncode != 0
    assert b"there is no exchange 5 to play; the tape has 1" in done.stderr
    done = called("replay", str(CUT), "--fault", "cut", "--", "true", folder=tmp_path)
    assert b"fault cut was never injected: no exchange was played\n" in done.stderr


def test_a_run_whose_fault_missed_its_place_fails(tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(exchange(CUT, 1).request.body)
    asks = "curl -sS -o got --data-binary @body $OPENAI_BASE_URL/chat/completions"
    for place, then, code in ((999, "true", 1), (999, "exit 7", 7), (1, "true", 0)):
        options = (*AT_ONCE, "--fault", f"drop,at=event:{place}", str(CUT), "--", "sh", "-c")
        done = called("replay", *options, f"{asks}; {then}", folder=tmp_path)
        assert (b" was never injected: no played response" in done.stderr) == (place == 999)
        assert done.returncode == code


def test_a_fault_strikes_and_the_answer_comes_to_who_asks_again(tmp_path: Path) -> None:
    command = (
        'for n in 1 2 3; do curl -sS -o a$n -w "%{http_code} " -H content-type:application/json'
        " --data-binary @body $OPENAI_BASE_URL/chat/completions >>codes; done"
    )
    recorded = exchange(CUT, 1)
    (tmp_path / "body").write_bytes(recorded.request.body)
    options = (*AT_ONCE, "--reads", "every-byte", "--fault", "status=429,retry-after=1,times=1")
    run = ("--fault", "end,at=byte:9", str(CUT), "--", "sh", "-c", command)
    result = called("replay", *options, *run, folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "codes").read_text() == "429 200 200 "
    assert (tmp_path / "a2").read_bytes() == recorded.body[:9]
    told = result.stderr.decode()
    assert "(same bytes; fault status=429,retry-after=1,times=1)" in told
    assert "(same bytes; fault end,at=byte:9)" in told


def test_what_is_missing_is_recorded_and_there_in_the_next_run(tmp_path: Path) -> None:
    command = 'curl -sS -o got -H "Authorization: Bearer $OPENAI_API_KEY" -d {} $OPENAI_BASE_URL/x'
    env = {"OPENAI_API_KEY": "sk-fake-000000"}
    served = Provider()

    async def scenario() -> None:
        async with provider(served.serve) as port:
            auto = ("--mode", "auto", "--upstream", f"openai=http://127.0.0.1:{port}")
            result = await asyncio.to_thread(
                deltatape,
                "replay",
                *auto,
                "x.tape",
                "--",
                "sh",
                "-c",
                command,
                folder=tmp_path,
                env=env,
            )
            assert result.returncode == 0, result.stderr
            assert result.stderr.endswith(b"0 played, 0 missed, 0 unplayed, 1 recorded\n")

    run(scenario())
    first = (tmp_path / "got").read_bytes()
    result = called("replay", "x.tape", "--", "sh", "-c", command, folder=tmp_path, env=env)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "got").read_bytes() == first
    assert len(served.asked) == 1


_LEAVES = """
import os, signal, sys, time, urllib.request
url, key = os.environ["OPENAI_BASE_URL"] + "/x", os.environ["OPENAI_API_KEY"]
asked = urllib.request.Request(url, b"1", {{"Authorization": f"Bearer {{key}}"}})
urllib.request.urlopen(asked).readline()
{}
while True:  # pause() would miss a signal that came just before it
    time.sleep(0.1)
"""
_HANGS_UP = """
signal.signal(signal.SIGHUP, lambda *_: sys.exit(143))
os.kill(os.getppid(), signal.SIGHUP)
"""


@pytest.mark.parametrize(
    "how",
    [
        "os.kill(os.getppid(), signal.SIGTERM)",
        "os.kill(os.getpid(), signal.SIGTERM)",
        _HANGS_UP,
    ],
)
def test_what_was_cut_by_the_end_of_a_run_is_not_on_the_tape(tmp_path: Path, how: str) -> None:
    async def hang(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(b"data: 1\n\n"))
        await asyncio.sleep(60)

    async def scenario() -> None:
        async with provider(hang) as port:
            auto = ("--mode", "auto", "--upstream", f"openai=http://127.0.0.1:{port}")
            result = await asyncio.to_thread(
                deltatape,
                "replay",
                *(*auto, "x.tape", "--", sys.executable, "-c", _LEAVES.format(how)),
                folder=tmp_path,
                env={"OPENAI_API_KEY": "sk-fake-000000"},
            )
            assert result.returncode == 143, result.stderr
            assert b"the application was stopped before it was complete" in result.stderr

    run(scenario())
    assert not list(tmp_path.glob("*x.*"))
