import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import deltatape
from deltatape.model.rule_settings import DEFAULTS
from deltatape.store.rule_set import rule_set

PACKAGE = Path(deltatape.__file__).parent


def rule_set_of(folder: Path) -> str:
    """What a copy of deltatape in another folder says."""
    code = "from deltatape.store.rule_set import rule_set; print(rule_set())"
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={"PYTHONPATH": str(folder)},
        capture_output=True,
        check=True,
        text=True,
    ).stdout.strip()


def test_it_is_the_same_until_a_threshold_changes() -> None:
    assert rule_set() == rule_set(replace(DEFAULTS))
    assert rule_set() != rule_set(replace(DEFAULTS, stall_s=9.0))
    assert rule_set().startswith(f"{deltatape.__version__}-")


@pytest.mark.parametrize(
    "changed", ["rules/stalls.py", "dialects/gemini/reducer.py", "printable.py"]
)
def test_it_changes_with_the_code_that_decides_and_with_no_other(
    tmp_path: Path, changed: str
) -> None:
    copy = tmp_path / "deltatape"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "static"))
    assert rule_set_of(tmp_path) == rule_set()
    with (copy / "cli" / "ls_command.py").open("a") as other:
        other.write("# another command\n")
    assert rule_set_of(tmp_path) == rule_set()
    with (copy / changed).open("a") as rule:
        rule.write("# another rule\n")
    assert rule_set_of(tmp_path) != rule_set()
