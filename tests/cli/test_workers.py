"""Processes that check tapes: nothing of them is left behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deltatape.cli.parallel_check import check_all
from deltatape.clock import SystemClock
from deltatape.rules.settings import DEFAULTS
from helpers.incidents import CUT
from helpers.program import environment

NS = 1_000_000_000


def test_a_run_that_is_left_early_leaves_no_process() -> None:
    reports = check_all([str(CUT)] * 20, DEFAULTS, 2)
    assert next(reports).name == str(CUT)
    reports.close()  # type: ignore[attr-defined]
    assert not children(os.getpid())


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="it looks for processes in /proc")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_workers_end_with_the_program(tmp_path: Path, number: signal.Signals, code: int) -> None:
    head, _, rest = CUT.read_bytes().partition(b"\n")
    for name in range(40):
        records = b"".join(
            rest.replace(b",1,", b",%d," % at).rpartition(b"[")[0] for at in range(1, 200)
        )
        (tmp_path / f"{name}.tape").write_bytes(head + b"\n" + records)
    with subprocess.Popen(
        [sys.executable, "-m", "deltatape", "check", "--jobs", "2", "."],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        workers = waited(process.pid)
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
    assert process.returncode == code
    if number is signal.SIGINT:  # else Python's own tracker tells what it cleans up
        assert said.strip() == b""
    until = SystemClock.now_ns() + 10 * NS
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert SystemClock.now_ns() < until, "a worker goes on"


def waited(pid: int) -> list[int]:
    """Its workers, as soon as they are there."""
    until = SystemClock.now_ns() + 20 * NS
    while len(found := children(pid)) < 2:
        assert SystemClock.now_ns() < until, "no workers"
    return found


def children(pid: int) -> list[int]:
    """The workers that `pid` started, and that are no zombies."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = status.read_text().rpartition(")")[2].split()[:2]
            command = (status.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if int(parent) == pid and state != "Z" and b"spawn_main" in command:
            found.append(int(status.parent.name))
    return found
