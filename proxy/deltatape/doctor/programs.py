"""Run programs of the user's machine: git, Python, Node. Each has a few seconds, and no input."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_GIT_S = 2.0
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


def ask(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], limit_s: float
) -> subprocess.CompletedProcess[bytes] | None:
    """Run a command in `folder`; return None if it cannot be run or takes longer than `limit_s`."""
    try:
        return subprocess.run(  # noqa: S603 - fixed commands
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limit_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes] | None:
    """Run git without the hooks and monitors that a project may have set; else as `ask`."""
    return ask((*_GIT, *arguments), folder, {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}, _GIT_S)
