"""`deltatape replay` as a process: what it plays, what it tells, and its exit code."""

import http.client
import json
import signal
import time  # noqa: TID251 - the user's clock, by which speeds are judged
from pathlib import Path

import pytest

from deltatape.harness.process import LIMIT_S, Background
from deltatape.model.exchange import Exchange
from helpers.console import called
from helpers.hostile import assert_harmless, hostile_tape
from helpers.incidents import BROKEN, CUT, FIXED, STALL, exchange
from helpers.program import deltatape, program

PATH = "/v1/chat/completions"
FAST = ("--listen", "127.0.0.1:0", "--speed", "instant")


def ask(player: Background, body: bytes, path: str = PATH) -> tuple[int, bytes]:
    """Status and body of the answer; where it is cut, the chunks that came whole."""
    connection = http.client.HTTPConnection("127.0.0.1", player.port, timeout=LIMIT_S)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        try:
            return response.status, response.read()
        except http.client.IncompleteRead as cut:
            return response.status, cut.partial
    finally:
        connection.close()


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
    assert code == 0
    assert "plays 2 exchanges at http://127.0.0.1:" in told
    assert f"playing {BROKEN}#2 POST {PATH} (same bytes)" in told
    assert told.endswith("2 played, 0 missed, 0 unplayed\n")


def test_exchanges_of_several_tapes_play(tmp_path: Path) -> None:
    with program("replay", *FAST, f"{BROKEN}#1", f"{FIXED}#2", folder=tmp_path) as player:
        for tape, number in ((FIXED, 2), (BROKEN, 1)):
            recorded = exchange(tape, number)
            assert ask(player, recorded.request.body) == (200, recorded.body)
        assert player.stop(signal.SIGTERM)[0] == 0


def test_what_nobody_asked_for_makes_the_exit_code_1_and_is_named(tmp_path: Path) -> None:
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
    assert "(same JSON but for volatile fields)" in told


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
    assert stall.end.t_ns > 12_000_000_000
    assert seconds_for(STALL, stall, "--speed", "instant", folder=tmp_path) < 5
    assert 0.5 < seconds_for(STALL, stall, "--speed", "20x", folder=tmp_path) < 5
    assert 0.1 < seconds_for(STALL, stall, "--idle-cap", "50ms", folder=tmp_path) < 5
    assert seconds_for(FIXED, cut, folder=tmp_path) > 0.4


def test_a_variable_stands_for_an_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTATAPE_REPLAY_SPEED", "instant")
    monkeypatch.setenv("DELTATAPE_REPLAY_LISTEN", "127.0.0.1:0")
    with program("replay", f"{STALL}#1", folder=tmp_path) as player:
        started = time.monotonic()
        assert ask(player, exchange(STALL, 1).request.body)[0] == 200
        assert time.monotonic() - started < 5


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
        assert 0.25 < time.monotonic() - started < 5
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
        (("--listen", "8378"), "HOST:PORT is accepted"),
        (("--listen", "0.0.0.0:0"), "only loopback is accepted"),
        (("--speed", "fast"), "not a speed; recorded, instant, or a factor such as 2x"),
        (("--speed", "0x"), "not a speed"),
        (("--idle-cap", "10"), "is no duration; 500ms, 30s or 2m are"),
        (("--hold", "soon"), "is no duration"),
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
    assert b"Missing argument 'TAPE[#N]...'" in deltatape("replay", folder=tmp_path).stderr
    with program("replay", *FAST, str(CUT), folder=tmp_path) as player:
        taken = f"127.0.0.1:{player.port}"
        result = deltatape("replay", "--listen", taken, CUT, folder=tmp_path)
        assert result.returncode == 2
        assert f"cannot listen on {taken}: ".encode() in result.stderr
