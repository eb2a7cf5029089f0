"""`deltatape demo`: no key, no network, some seconds."""

import os
from pathlib import Path

import pytest

from deltatape.demo.demo import INCIDENTS
from deltatape.store.reader import open_tape
from helpers.program import deltatape


def test_the_demo_tells_the_whole_story_and_leaves_nothing(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    result = deltatape("demo", folder=tmp_path, env={"TMPDIR": str(scratch)})
    text = result.stdout.decode()
    assert result.returncode == 0, result.stderr
    titles = [line for line in text.splitlines() if line.startswith("== ")]
    assert [title[3:5] for title in titles] == ["1.", "2.", "3.", "4.", "5."]
    for told in (
        "$ deltatape record --upstream http://127.0.0.1:",
        "app: (the assistant said nothing)",
        "VERDICT   app, proven  (C002)",
        "a flight leaves Berlin",
        "2 played, 0 missed, 0 unplayed",
        "warning D001 stall",
        f" open {os.path.relpath(INCIDENTS, tmp_path.resolve())}\n",
    ):
        assert told in text
    assert list(scratch.iterdir()) == []
    assert not (tmp_path / ".deltatape").exists()


@pytest.mark.slow
def test_the_demos_tapes_are_kept_where_asked_and_a_failed_step_makes_it_1(tmp_path: Path) -> None:
    # A setting of the user's own that makes `check` always succeed: then step 4 goes wrong.
    variables = {
        "DELTATAPE_CHECK_FAIL_ON": "never",
        "DELTATAPE_DEMO_TO": "kept/here",
        "DELTATAPE_REPLAY_SPEED": "instant",
    }
    result = deltatape("demo", folder=tmp_path, env=variables)
    assert result.returncode == 1
    assert b"== 4." in result.stdout
    (tape,) = (tmp_path / "kept" / "here").glob("demo-*/*.tape")
    assert len(open_tape(tape)) == 2


def test_a_file_in_place_of_the_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "taken").write_bytes(b"")
    result = deltatape("demo", "--to", "taken", folder=tmp_path)
    assert result.returncode == 2
    assert b"is a file" in result.stderr


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    result = deltatape("demo", "--to", "/proc/no-such-folder", folder=tmp_path)
    assert result.returncode == 2
    assert result.stderr.startswith(b"deltatape: --to /proc/no-such-folder: ")
