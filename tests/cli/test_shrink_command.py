import json
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.cli.shrink_command import ShrinkProgress
from deltatape.demo.demo import background
from deltatape.model.exchange import Exchange, Tap
from deltatape.store.reader import open_tape
from deltatape.tape.payload import Stop
from deltatape.tape.serialize import tape_lines
from deltatape.trials.shrink import ShrinkStep
from helpers.console import called, on_terminal
from helpers.failing import app, words
from helpers.program import environment
from helpers.tapes import HEADER, write_tape
from helpers.upstream import eventually, run

STOP = Stop(reason="interrupted", exit_code=None)


def tape(folder: Path, *exchanges: Exchange, name: str = "bug.tape") -> str:
    write_tape(folder, b"".join(tape_lines(HEADER, exchanges, STOP)), name)
    return name


def shrunk(folder: Path, *options: str, how: str = "once") -> subprocess.CompletedProcess[bytes]:
    return called("shrink", *options, "--", *app(folder, how), folder=folder)


@pytest.mark.slow
def test_a_tape_and_tests_that_fail_until_the_app_is_mended_come_out(tmp_path: Path) -> None:
    done = shrunk(tmp_path, tape(tmp_path, words(3, of=8)), "--allow-findings")
    assert done.returncode == 0, done.stderr
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "still fails: exit code 1, KeyError: " in out
    assert re.search(r"before: 1 exchange, 8 events, \d+ bytes\n", out)
    assert re.search(r" after: 1 exchange, 1 event, \d+ bytes  \(\d+ runs, \d+ s\)\n", out)
    assert "note: the failure was exit code 1, KeyError: " in err
    assert '  #1 {"choices":[{"delta":{"content":"~~"}}]}\n' in out
    assert "target failure: exit code 1, KeyError: " in err
    assert "(played with --speed instant)\n" in err
    assert "events: 1 exchange, 1 event, " in err
    assert err.endswith("next: pytest test_bug_small.py\n")
    (exchange,) = open_tape(tmp_path / "bug-small.tape")
    assert b"~~" in exchange.body
    gone = runpy.run_path(str(tmp_path / "test_bug_small.py"))["test_the_failure_is_gone"]
    assert script(tmp_path) == 1
    with pytest.raises(AssertionError, match="KeyError"):
        gone(tmp_path)
    check_that_it_is_red_where_nothing_is_tested(tmp_path, gone)
    mended = (tmp_path / "app.py").read_text().replace("raise KeyError", "print")
    (tmp_path / "app.py").write_text(mended)
    assert script(tmp_path) == 0
    gone(tmp_path)


def check_that_it_is_red_where_nothing_is_tested(
    folder: Path, gone: Callable[[Path], None]
) -> None:
    for name in ("app.py", "bug-small.tape"):
        path = folder / name
        hidden = path.rename(folder / "hidden")
        (folder / "report.json").unlink(missing_ok=True)
        with pytest.raises(AssertionError):
            gone(folder)
        assert script(folder) == 2
        hidden.rename(path)
    assert script(folder, deltatape="/nowhere") == 2


def script(folder: Path, deltatape: str = str(Path(sys.executable).parent)) -> int:
    """The exit code of the test for a shell."""
    path = f"{deltatape}:/usr/bin:/bin"
    env = {**environment(folder), "PATH": path}
    ran = subprocess.run(["./bug-small.sh"], cwd=folder, env=env, timeout=300, check=False)
    return ran.returncode


def test_programs_get_json_and_runs_that_are_used_up_are_reported(tmp_path: Path) -> None:
    name = tape(tmp_path, words(0, of=4))
    done = shrunk(tmp_path, name, "--runs", "10", "--speed", "instant", "--format", "json")
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert told["minimal"] is False
    assert told["before"]["events"] == 4
    assert told["files"] == ["bug-small.tape", "test_bug_small.py", "bug-small.sh"]
    assert b"note: stopped after 10 runs" in done.stderr
    assert "OPTIONS = ['--speed', 'instant']" in (tmp_path / "test_bug_small.py").read_text()
    again = shrunk(tmp_path, name, "--runs", "10", "--speed", "instant", "-o", "2.tape")
    assert b"note: 3 results reused from an interrupted search" in again.stderr


def test_an_oracle_is_asked_and_comes_into_the_test(tmp_path: Path) -> None:
    name = tape(tmp_path, words(0, of=2))
    options = ("--oracle", "grep -q fine", "--volatile", "$.date", "--runs", "10", "-o", "t/x.tape")
    done = shrunk(tmp_path, name, *options, how="says")
    assert done.returncode == 1, done.stderr
    assert b"still fails: rejected by the oracle: exit code 1" in done.stdout
    test = (tmp_path / "t" / "test_x.py").read_text()
    assert "ORACLE = 'grep -q fine'" in test
    assert "'--volatile', '$.date'" in test
    assert "FOLDER = HERE / '..'" in test
    assert not (tmp_path / "t" / "x.sh").exists()


def test_requests_that_differ_each_time_are_reported(tmp_path: Path) -> None:
    name = tape(tmp_path, words(of=3), words(0, of=1, number=2, date=3))
    done = shrunk(tmp_path, name, "--runs", "13", "--allow-findings", how="dated")
    assert b"the command did not fail in the same way: not on the tape" in done.stderr


def test_on_a_terminal_it_shows_how_far_it_is(tmp_path: Path) -> None:
    name = tape(tmp_path, words(0, of=3))
    done = on_terminal(
        "shrink", name, "--runs", "11", "--", *app(tmp_path, "once"), folder=tmp_path
    )
    assert done.returncode == 1
    assert b"runs)" in done.stdout


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ((), "a tape and a command are required: shrink TAPE -- CMD"),
        (("bug.tape", "-o", "bug.tape"), "bug.tape: already exists and is not overwritten"),
        (("bug.tape", "more.tape"), "use deltatape splice first"),
        (("app.tape",), "app.tape: no provider response to play"),
        (("bug.tape", "--speed", "fast"), "fast"),
        (("bug.tape", "--runs", "9"), "9 is not in the range x>=10"),
    ],
)
def test_wrong_usage_is_reported(tmp_path: Path, options: tuple[str, ...], problem: str) -> None:
    tape(tmp_path, words(0, of=1))
    tape(tmp_path, words(0, of=1), name="more.tape")
    tape(tmp_path, replace(words(0, of=1), tap=Tap.APP), name="app.tape")
    done = shrunk(tmp_path, *options)
    assert done.returncode == 2
    assert problem in done.stderr.decode()


def test_an_interrupted_search_says_that_it_can_go_on(tmp_path: Path) -> None:
    name = tape(tmp_path, words(0, of=1))
    with background(
        "shrink", name, "--", *app(tmp_path, "hang"), cwd=tmp_path, env=environment(tmp_path)
    ) as running:
        run(eventually((tmp_path / "hanging").exists, "the command runs"))
        code, said = running.stop()
    assert code == 130
    assert "interrupted; run the same command to resume" in said


def test_a_key_in_a_request_is_on_no_file_that_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-fake-000000-of-mine"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    asking = words(of=1, number=2, said=4, key=key)
    at = asking.request.body.index(key.encode())
    body = asking.request.body.replace(key.encode(), b"*" * len(key))
    request = replace(asking.request, body=body, masked=((at, at + len(key), "0" * 8),))
    name = tape(tmp_path, words(of=4), replace(asking, request=request))
    done = shrunk(tmp_path, name, "--runs", "16", how="key")
    assert b"KeyError: '*****" in done.stdout
    made = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "app.py"]
    assert len(made) >= 5
    assert not [path for path in made if key.encode() in path.read_bytes()]
    assert key.encode() not in done.stdout + done.stderr
    exchanges = list(open_tape(tmp_path / "bug-small.tape"))
    assert b'"said": 4' not in exchanges[1].request.body
    assert len(exchanges[1].request.masked) == 1
    told = shrunk(tmp_path, name, "--error", f"no {key}", "-o", "x.tape")
    assert told.returncode == 2
    assert b"--error contains a credential" in told.stderr


def test_a_command_that_goes_past_the_player_is_reported_as_such(tmp_path: Path) -> None:
    name = tape(tmp_path, words(0, of=1))
    (tmp_path / "past.py").write_text(
        "import urllib.request\nurllib.request.urlopen('https://api.groq.com/openai/v1/models')\n"
    )
    done = called("shrink", name, "--", sys.executable, "past.py", folder=tmp_path)
    assert done.returncode == 2
    told = done.stderr.decode()
    assert "your app sent a request directly to api.groq.com" in told
    assert "past.py:2" in told


@pytest.mark.slow
def test_the_script_tells_what_did_not_run_from_an_exit_code(tmp_path: Path) -> None:
    done = shrunk(tmp_path, tape(tmp_path, words(0, of=1)), how="code")
    assert done.returncode == 0, done.stderr
    assert (
        done.stderr.count(
            b"so only the exit code is compared; use --error TEXT to require a text\n"
        )
        == 1
    )
    assert script(tmp_path) == 1
    gone = runpy.run_path(str(tmp_path / "test_bug_small.py"))["test_the_failure_is_gone"]
    with pytest.raises(AssertionError, match="no luck"):
        gone(tmp_path)
    check_that_it_is_red_where_nothing_is_tested(tmp_path, gone)
    app_file = tmp_path / "app.py"
    app_file.write_text(app_file.read_text().replace("sys.exit(127)", "sys.exit(0)"))
    assert script(tmp_path) == 0
    gone(tmp_path)


def test_an_oracle_that_is_not_there_shrinks_nothing(tmp_path: Path) -> None:
    done = shrunk(tmp_path, tape(tmp_path, words(0, of=2)), "--oracle", "absent")
    assert done.returncode == 2
    assert b"--oracle 'absent' cannot be run: " in done.stderr
    assert b"looking for" not in done.stderr
    assert not (tmp_path / "bug-small.tape").exists()


def step(what: str, events: int, runs: int) -> ShrinkStep:
    return ShrinkStep(what=what, exchanges=(words(of=events),), runs=runs)


def test_a_pass_that_took_something_away_is_reported_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    progress = ShrinkProgress()
    with ShrinkProgress().shown():
        pass  # nothing came of it
    with progress.shown():
        for each in (
            ShrinkStep(what="", exchanges=(), runs=1, note="target failure: exit code 1"),
            step("exchanges", 9, 2),
            step("events", 9, 3),
            step("", 5, 4),
            step("", 2, 5),
            step("fields", 2, 6),
            step("", 1, 7),
        ):
            progress.update(each)
    looking, events, fields = capsys.readouterr().err.splitlines()
    assert looking == "target failure: exit code 1"
    assert events.startswith("events: 1 exchange, 2 events, ")
    assert events.endswith(" after 6 runs")
    assert fields.startswith("fields: 1 exchange, 1 event, ")
