"""The demo's steps, run from Python."""

import os
import resource
import shlex
import signal
import sys
from pathlib import Path

import pytest

from deltatape.demo.demo import INCIDENTS, LIMIT_S, OTHERS, Demo, background, program
from deltatape.store.reader import open_tape
from helpers.incidents import CUT
from helpers.program import environment, uncovered


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTATAPE_REPLAY_SPEED", "instant")


def test_a_step_that_goes_wrong_is_a_failure_of_the_demo_which_goes_on(tmp_path: Path) -> None:
    told: list[str] = []
    demo = Demo(tmp_path, told.append, kept=True)
    assert demo._record()
    (tape,) = tmp_path.glob("*.tape")
    assert len(open_tape(tape)) == 2
    tape.write_bytes(b"garbage\n")
    assert not demo._why()
    assert demo._check()
    assert [line[:5] for line in told if line.startswith("\n== ")] == ["\n== 1", "\n== 2", "\n== 4"]


@pytest.mark.parametrize("kept", [True, False])
def test_at_the_end_a_command_opens_a_folder_that_is_still_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, kept: bool
) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    told: list[str] = []
    Demo(tmp_path, told.append, kept=kept)._look()
    *called, action, shown = shlex.split(told[-1].strip().removeprefix("$ "))
    assert Path(called[0]).samefile(sys.executable)
    assert called[1:] == ["-m", "deltatape"]
    assert action == "open"
    assert Path(shown).samefile(tmp_path if kept else INCIDENTS)


def test_where_the_shell_finds_deltatape_the_command_is_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "deltatape"
    own.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program() == "deltatape"


def test_every_tape_of_the_demo_is_there() -> None:
    for name in ("itinerary-broken", "itinerary-fixed", *OTHERS):
        assert (INCIDENTS / f"{name}.tape").is_file()


PLAY = ("replay", "--listen", "127.0.0.1:0", str(CUT))


def test_it_tells_where_it_listens_and_ends_by_signal(tmp_path: Path) -> None:
    with background(*PLAY, cwd=tmp_path, env=environment(tmp_path)) as running:
        assert running.url == f"http://127.0.0.1:{running.port}"
        assert running.url in running.wait_for("plays [0-9]+ exchange")
        code, told = running.stop(signal.SIGTERM)
        assert code == 1  # nothing was played
        assert told == "".join(running.lines)
        assert "0 played, 0 missed, 1 unplayed" in told


def test_it_is_killed_when_nobody_ended_it() -> None:
    with background(*PLAY) as running:
        assert running.port
        assert running.process.poll() is None
    assert running.process.poll() == -signal.SIGKILL


def test_it_is_killed_when_its_user_fails() -> None:
    with pytest.raises(RuntimeError, match="on purpose"), background(*PLAY) as running:
        raise RuntimeError("on purpose")
    assert running.process.poll() == -signal.SIGKILL


def test_a_process_that_ends_without_the_line_is_reported_at_once_with_what_it_said() -> None:
    with background("replay", "missing.tape") as running:
        with pytest.raises(TimeoutError, match=r"missing\.tape: No such file"):
            running.wait_for("never printed")
        assert running.process.wait(LIMIT_S) == 2


def test_waiting_for_a_line_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    with background(*PLAY) as running:
        assert running.port
        monkeypatch.setattr("deltatape.demo.demo.LIMIT_S", 0.1)
        with pytest.raises(TimeoutError, match="no line matches 'never'"):
            running.wait_for("never")
        monkeypatch.undo()


def test_it_runs_in_the_folder_and_environment_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "x.tape").write_bytes(CUT.read_bytes())
    variables = {**os.environ, "DELTATAPE_REPLAY_LISTEN": "nowhere"}
    with background("replay", "x.tape", cwd=tmp_path, env=variables) as running:
        assert "nowhere" in running.wait_for("HOST:PORT")


def test_a_limit_can_be_set_before_it_runs(tmp_path: Path) -> None:
    def no_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    (tmp_path / "body").write_bytes(b"data: 1\n\n")
    env = uncovered(environment(tmp_path))
    arguments = ("import", "body", "-o", "x.tape")
    with background(*arguments, cwd=tmp_path, env=env, before=no_files) as running:
        assert "File too large" in running.wait_for("x.tape")
