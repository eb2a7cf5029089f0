"""The examples do what README.md says of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.program import environment

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "examples" / "replay-in-ci.sh"
INCIDENTS = ROOT / "recordings" / "incidents"
TAPES = f"{INCIDENTS}/itinerary-broken.tape#1 {INCIDENTS}/itinerary-fixed.tape#2"
APP = (sys.executable, "-m", "deltatape.harness.app", "--accumulator")


@pytest.mark.parametrize(
    ("tapes", "command", "code"),
    [
        (TAPES, (*APP, "by-index"), 0),
        (TAPES, (*APP, "single-call"), 1),
        (TAPES, ("true",), 1),
        (f"{INCIDENTS}/itinerary-fixed.tape", ("false",), 1),
        ("no-such.tape", ("true",), 2),
    ],
    ids=["fixed app", "broken app", "nothing played", "command fails", "no tape"],
)
def test_a_capture_is_a_ci_job(
    tmp_path: Path, tapes: str, command: tuple[str, ...], code: int
) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        [str(SCRIPT), tapes, *command],
        cwd=tmp_path,
        env={**environment(tmp_path), "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == code, result.stdout + result.stderr
    assert ("2 played, 0 missed, 0 unplayed" in result.stdout) == (code == 0)
