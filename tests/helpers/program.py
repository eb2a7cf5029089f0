"""deltatape as a program: real processes, ended by pid."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from deltatape.demo.demo import Background, background

LIMIT_S = 240
"""For a machine whose cores are busy: nearly every command takes less than a second."""


@contextlib.contextmanager
def program(
    *arguments: str, folder: Path, before: Callable[[], None] | None = None
) -> Iterator[Background]:
    """Start `deltatape ARGUMENTS` in `folder`; killed at the end if it still runs."""
    env = environment(folder) if before is None else uncovered(environment(folder))
    with background(*arguments, cwd=folder, env=env, before=before) as running:
        yield running


def deltatape(
    *arguments: str | Path,
    folder: Path,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "deltatape", *map(str, arguments)],
        cwd=folder,
        env={**environment(folder), **(env or {})},
        input=stdin,
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )


def environment(folder: Path) -> dict[str, str]:
    """The test's environment, with state of its own and no proxies."""
    kept = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    return {**kept, "XDG_STATE_HOME": str(folder / "state"), "COLUMNS": "100"}


UNMEASURED = {"COVERAGE_PROCESS_START": "", "COVERAGE_PROCESS_CONFIG": ""}
"""Variables that turn the measuring of coverage off, also where they are added to others."""
MEASURED: dict[str, str] = {}
"""Variables with which a program is measured although programs are not; see `leave_unmeasured`."""


def leave_unmeasured() -> None:
    """Measure no coverage of the programs that this process starts, but with `MEASURED`."""
    MEASURED.update({name: os.environ.pop(name) for name in UNMEASURED if name in os.environ})


def uncovered(env: Mapping[str, str]) -> dict[str, str]:
    """`env` without the measuring of coverage.

    A limit on files would damage its data; a copy of the package would be counted beside it.
    """
    return {name: value for name, value in env.items() if not name.startswith("COVERAGE_")}
