"""The workflow for GitHub Actions and the hook for pre-commit do what they say, on real tapes."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from helpers.incidents import CUT, FIXED
from helpers.program import environment
from helpers.reports import valid_sarif

ROOT = Path(__file__).resolve().parent.parent
WORKFLOW = ROOT / "examples" / "github-actions" / "check.yml"
HOOKS = ROOT / ".pre-commit-hooks.yaml"


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command line as a runner runs it, with our deltatape."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-e", "-c", command],
        cwd=folder,
        env={**environment(folder), "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def steps() -> dict[str, dict[str, Any]]:
    """The steps of the workflow that have names."""
    workflow = yaml.safe_load(WORKFLOW.read_text())
    every = workflow["jobs"]["check"]["steps"]
    return {step["name"]: step for step in every if "name" in step}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a tape in recordings/."""
    (tmp_path / "recordings").mkdir()
    shutil.copyfile(CUT, tmp_path / "recordings" / "cut.tape")
    return tmp_path


def test_the_workflow_annotates_and_fails_for_errors(project: Path) -> None:
    command = str(steps()["Check the tapes"]["run"])
    result = shell(command, project)
    assert result.returncode == 1, result.stderr
    assert result.stdout.startswith("::error file=recordings/cut.tape,line=12,title=W006 ")
    shutil.copyfile(FIXED, project / "recordings" / "cut.tape")
    assert shell(command, project).returncode == 0


def test_the_workflow_writes_what_it_uploads(project: Path) -> None:
    every = steps()
    result = shell(str(every["Check the tapes for code scanning"]["run"]), project)
    assert result.returncode == 0, result.stderr
    upload = every["Upload to code scanning"]
    log = valid_sarif((project / upload["with"]["sarif_file"]).read_bytes())
    results = log["results"]
    assert isinstance(results, list)
    assert len(results) == 3


def test_the_workflow_accepts_findings_as_its_comment_says(project: Path) -> None:
    (made,) = re.findall(r"#   (deltatape check .*)", WORKFLOW.read_text())
    (used,) = re.findall(r"# and then: (--baseline .*)", WORKFLOW.read_text())
    assert shell(made, project).returncode == 0
    assert shell(f"{steps()['Check the tapes']['run']} {used}", project).returncode == 0


def test_the_workflow_has_no_more_rights_than_it_needs() -> None:
    workflow = yaml.safe_load(WORKFLOW.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["jobs"]["check"]["permissions"] == {
        "contents": "read",
        "security-events": "write",
    }


def test_the_hook_checks_the_tapes_of_a_commit(project: Path) -> None:
    (hook,) = yaml.safe_load(HOOKS.read_text())
    files = ["recordings/cut.tape", "README.md", "x.tape.zst"]
    tapes = [name for name in files if re.search(hook["files"], name)]
    assert tapes == ["recordings/cut.tape"]
    result = shell(f"{hook['entry']} {' '.join(tapes)}", project)
    assert result.returncode == 1
    assert "error W006 stream-cut" in result.stdout
    assert hook["language"] == "python"
    assert hook["require_serial"] is True
