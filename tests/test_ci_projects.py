"""The small CI projects among the examples: the broken application fails, the fixed one passes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.clients import CLIENTS, SDKS, available
from helpers.program import environment

ROOT = Path(__file__).resolve().parent.parent
NODE_MODULES = CLIENTS / "node_modules"
LIMIT_S = 300
"""For a busy machine: a command takes a few seconds."""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the projects need of a checkout, so that nothing is written to this one."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("examples/ci-python", "examples/ci-node", "examples/incidents"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "recordings" / "incidents", folder / "recordings" / "incidents")
    return folder


def ran(
    command: str, folder: Path, version: str, *programs: Path
) -> subprocess.CompletedProcess[str]:
    """What a shell makes of `command`, with deltatape and `programs` on its path."""
    path = (str(Path(sys.executable).parent), *map(str, programs), os.environ["PATH"])
    env = {**environment(folder), "PATH": os.pathsep.join(path), "VERSION": version}
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        # Vitest reports otherwise where it finds itself in a CI job.
        env={name: value for name, value in env.items() if name not in {"CI", "GITHUB_ACTIONS"}},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def job() -> list[str]:
    """The lines of the Python project's job."""
    text = (ROOT / "examples" / "ci-python" / "check.sh").read_text()
    return [line.strip() for line in text.replace("\\\n", "").splitlines()]


def test_the_python_project_passes_with_the_fixed_applications(checkout: Path) -> None:
    result = ran("./check.sh", checkout / "examples" / "ci-python", "fixed")
    assert result.returncode == 0, result.stdout
    assert "5 passed" in result.stdout
    assert "4 played, 0 missed, 0 unplayed" in result.stdout


@pytest.mark.parametrize("way", ["pytest", "deltatape"])
def test_the_python_project_fails_with_the_broken_ones(checkout: Path, way: str) -> None:
    (command,) = (line for line in job() if line.startswith(way))
    project = checkout / "examples" / "ci-python"
    result = ran(f"tapes=../../recordings/incidents; {command}", project, "broken")
    assert result.returncode == 1, result.stdout
    assert ("5 failed" if way == "pytest" else "FAILED (failures=2)") in result.stdout
    assert "get_stock_analysis" in result.stdout


@pytest.mark.parametrize("version", ["fixed", "broken"])
@pytest.mark.parametrize("way", ["test", "test:wrapped"])
def test_the_node_project_tells_the_broken_from_the_fixed(
    checkout: Path, way: str, version: str
) -> None:
    available(SDKS[1])
    project = checkout / "examples" / "ci-node"
    if not (project / "node_modules").exists():
        (project / "node_modules").symlink_to(NODE_MODULES)
    result = ran(f"npm run --silent {way}", project, version)
    assert result.returncode == (0 if version == "fixed" else 1), result.stdout
    assert ("2 passed" if version == "fixed" else "2 failed") in result.stdout
    if way == "test:wrapped" and version == "fixed":
        assert "6 played, 0 missed, 0 unplayed" in result.stdout
