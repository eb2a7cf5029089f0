"""A command of the user's judges runs: what it is told, and how its answer is taken."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from deltatape.errors import DeltatapeError, UsageError
from deltatape.model.torture import Verdict
from deltatape.trials.torture_judge import Judged
from deltatape.trials.torture_oracle import Oracle
from helpers.tortured import outcome


def asked(folder: Path, command: str, *, harmless: bool = True, limit_s: float = 10) -> Judged:
    oracle = Oracle(command=command, environ=os.environ, folder=folder, limit_s=limit_s)
    found = outcome("hé\n", "warned\n", code=3, missed=1, unplayed=1)
    return asyncio.run(oracle.judged(found, outcome(), variation="crlf", harmless=harmless))


def test_it_is_told_of_the_run_and_of_the_tapes_as_they_are(tmp_path: Path) -> None:
    agrees = Judged(Verdict.SAME, "the oracle agrees")
    assert asked(tmp_path, "cat > told.json") == agrees
    told = json.loads((tmp_path / "told.json").read_text())
    assert told == {
        "version": 1,
        "variation": "crlf",
        "harmless": True,
        "outcome": {
            "exit_code": 3,
            "signal": "",
            "timed_out": False,
            "seconds": 0.25,
            "stdout": "hé\n",
            "stderr": "warned\n",
            "report": {
                "played": ["x.tape#1"],
                "missed": ["not on the tape"],
                "unplayed": ["x.tape#2"],
            },
        },
        "recorded": {
            **told["recorded"],
            "exit_code": 0,
            "stdout": "hello\n",
            "stderr": "",
        },
    }


def test_its_exit_code_decides_and_its_last_line_says_why(tmp_path: Path) -> None:
    why = "echo checked; echo the answer lacks its end >&2; exit 4"
    assert asked(tmp_path, why) == Judged(Verdict.REFUSED, "the oracle: the answer lacks its end")
    assert asked(tmp_path, "exit 4") == Judged(Verdict.REFUSED, "the oracle: exit code 4")


def test_a_broken_stream_with_which_it_agrees_was_told(tmp_path: Path) -> None:
    assert asked(tmp_path, "true", harmless=False).verdict is Verdict.TOLD


def test_one_that_does_not_end_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    with pytest.raises(DeltatapeError, match=r"--oracle 'sleep 30 & sleep 30': no answer after"):
        asked(tmp_path, "sleep 30 & sleep 30", limit_s=0.2)


def test_one_that_leaves_something_running_elsewhere_is_not_waited_for(tmp_path: Path) -> None:
    leaves = "setsid sleep 4 & echo checked; exit 0"
    assert asked(tmp_path, leaves, limit_s=0.2).verdict is Verdict.SAME


def test_one_that_cannot_be_run_judges_nothing(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("no program\n")
    absent = r"^--oracle 'absent -q': cannot be run: /bin/sh: .*absent: .*not found$"
    for command, problem in (
        ("absent -q", absent),
        ("./plain", "denied"),
        ("exit 127", "code 127"),
    ):
        with pytest.raises(UsageError, match=problem) as error:
            asked(tmp_path, command)
        assert error.value.exit_code == 2
