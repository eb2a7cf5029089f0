"""`scripts/fuzz` works, finds nothing in a short run, and what it once found is in order."""

import subprocess
import sys
from pathlib import Path

import pytest

from helpers.program import environment

ROOT = Path(__file__).resolve().parent.parent
SEEDS = ROOT / "tests" / "fuzz_seeds"
TARGETS = ("tape", "config", "http1")
LIMIT_S = 300


def fuzz(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "fuzz"), *arguments],
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


@pytest.mark.parametrize(("target", "inputs"), [("tape", 150), ("config", 100), ("http1", 1000)])
def test_a_short_run_finds_nothing(target: str, inputs: int, tmp_path: Path) -> None:
    found = tmp_path / "found"
    done = fuzz(tmp_path, target, "--inputs", str(inputs), "--found", str(found))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{target}: {inputs} inputs in " in done.stdout
    assert not found.exists()


@pytest.mark.parametrize("target", [folder.name for folder in sorted(SEEDS.iterdir())])
def test_what_was_found_is_in_order_now(target: str, tmp_path: Path) -> None:
    paths = sorted(map(str, (SEEDS / target).iterdir()))
    assert target in TARGETS
    done = fuzz(tmp_path, target, "--replay", *paths)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [f"{path}: in order" for path in paths]
