"""Many tapes by several processes: what shows is order, and that nothing is left behind."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deltatape.cli.parallel_check import check_all, check_one
from deltatape.clock import SystemClock
from deltatape.diagnose.check_tape import TapeReport
from deltatape.model.rule_settings import DEFAULTS
from helpers.incidents import CUT, EMPTY, FIXED
from helpers.program import environment

RECORDINGS = Path(__file__).resolve().parent.parent.parent / "recordings"


def test_a_name_that_means_nothing_is_a_report() -> None:
    assert check_one("missing.tape", DEFAULTS).problem.startswith("missing.tape: No such file")
    assert "it has 1 to 1" in check_one(f"{CUT}#7", DEFAULTS).problem


def test_one_exchange_is_reported_on() -> None:
    report = check_one(f"{CUT}#1", DEFAULTS)
    assert (report.name, report.exchanges, len(report.reported)) == (str(CUT), (1,), 3)


def test_what_the_application_printed_is_held_against_the_wire(tmp_path: Path) -> None:
    tape = tmp_path / "printed.tape"
    lines = (RECORDINGS / "rules" / "C009" / "silent.tape").read_bytes().splitlines(keepends=True)
    ends = next(at for at, line in enumerate(lines, 1) if b',1,"end",' in line)
    t_ns = lines[ends - 1].partition(b",")[0].decode()
    printed = f'{t_ns},0,"log",{{"stream":"stderr","line":"Invalid tool call JSON"}}]\n'.encode()
    tape.write_bytes(b"".join([*lines[:ends], printed, *lines[ends:]]))
    (only,) = check_one(str(tape), DEFAULTS).reported
    assert (only.finding.code, only.finding.exchange) == ("C009", 1)


@pytest.mark.parametrize("jobs", [None, 1, 2])
def test_reports_come_in_order_with_those_that_there_are_already(jobs: int | None) -> None:
    ready = TapeReport(name="nothing", problem="nothing")
    names: list[str | TapeReport] = [str(CUT), ready, str(EMPTY), str(FIXED), str(CUT)] * 3
    found = list(check_all(names, DEFAULTS, jobs))
    assert [report.name for report in found] == [
        name if isinstance(name, str) else name.name for name in names
    ]


def test_large_tapes_are_worth_processes(tmp_path: Path) -> None:
    for name in ("a.tape", "b.tape"):
        head, _, rest = FIXED.read_bytes().partition(b"\n")
        notes = b'[1,0,"note",{"text":"' + b"x" * 1000 + b'"}]\n'
        (tmp_path / name).write_bytes(head + b"\n" + notes * 9000 + rest)
    names = [str(tmp_path / "a.tape"), str(tmp_path / "b.tape"), "missing.tape"]
    found = list(check_all(names, DEFAULTS, None))
    assert [bool(report.problem) for report in found] == [False, False, True]
    shutil.rmtree(tmp_path)


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
        _, said = process.communicate(timeout=300)
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
