"""`deltatape scan`: what it says, and what it refuses."""

import json
import shutil
import signal
import subprocess
import sys
import time  # noqa: TID251 - waits for a file of another program
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from deltatape.cli import scan_command
from deltatape.cli.scan_command import _Teller, progress_text
from deltatape.scan.scan import ScanProgress
from helpers.console import called
from helpers.disk import unreadable
from helpers.incidents import BROKEN, CUT
from helpers.program import deltatape, environment

S = 1_000_000_000
HALF = ScanProgress(tapes=12, of_tapes=40, bytes=100, of_bytes=400, exchanges=3400, ns=2 * S)


def tapes(folder: Path, *more: bytes) -> Path:
    (folder / "in").mkdir()
    shutil.copy(BROKEN, folder / "in")
    shutil.copy(CUT, folder / "in")
    for number, content in enumerate(more):
        (folder / "in" / f"{number:02}.tape").write_bytes(content)
    return folder


def test_the_summary_says_what_was_read_and_what_was_known(tmp_path: Path) -> None:
    first = deltatape("scan", "in", "--out", "out", "--jobs", "2", folder=tapes(tmp_path))
    assert (first.returncode, first.stderr) == (0, b"")
    assert first.stdout.startswith(b"out: 2 tapes read, 3 exchanges, ")
    second = called("scan", "in", "--out", "out", "--jobs", "1", folder=tmp_path)
    assert second.stdout.startswith(b"out: 0 tapes read (2 known already), 0 exchanges, ")


def test_the_json_form_says_the_same(tmp_path: Path) -> None:
    words = ("scan", "in", "--out", "out", "--jobs", "1", "--format", "json")
    told = json.loads(called(*words, folder=tapes(tmp_path)).stdout)
    assert (told["version"], told["dataset"], told["tapes"], told["exchanges"]) == (1, "out", 2, 3)
    assert (told["known"], told["recording"], told["problems"]) == (0, 0, 0)


def test_tapes_that_cannot_be_read_are_named_up_to_twenty(tmp_path: Path) -> None:
    folder = tapes(tmp_path, *[b"no tape\n"] * 22)
    result = called("scan", "in", "--out", "out", "--jobs", "1", folder=folder)
    lines = result.stderr.decode().splitlines()
    assert result.returncode == 2
    assert sum("no tape" in line for line in lines) == 20
    assert "and 2 more; see `problem` of table tapes" in lines[-1]
    again = called("scan", "in", "--out", "out", "--jobs", "1", folder=folder)
    assert again.returncode == 0, "it is known by now"


def test_a_folder_that_cannot_be_read_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    sub = tapes(tmp_path) / "in" / "sub"
    sub.mkdir()
    with unreadable(sub):
        result = called("scan", "in", "--out", "out", "--jobs", "1", folder=tmp_path)
    assert result.returncode == 2
    assert result.stderr.decode() == f"deltatape: {sub}: Permission denied\n"
    assert result.stdout.startswith(b"out: 2 tapes read, 3 exchanges, ")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--scheduler", "tcp://127.0.0.1:1"), "has no effect without --engine dask"),
        (
            ("--engine", "dask", "--scheduler", "tcp://127.0.0.1:1", "--jobs", "2"),
            "--jobs: has no effect with --scheduler",
        ),
    ],
)
def test_options_without_effect_are_refused(
    words: tuple[str, ...], why: str, tmp_path: Path
) -> None:
    result = called("scan", "in", "--out", "out", *words, folder=tapes(tmp_path))
    assert result.returncode == 2
    assert why in result.stderr.decode()


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    result = called("scan", "in", "--out", "out", folder=tmp_path)
    assert result.returncode == 2
    assert b"in: there is no such folder" in result.stderr


def test_a_file_is_no_dataset(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    result = called("scan", "in", "--out", "out", folder=tapes(tmp_path))
    assert result.returncode == 2
    assert b"/out: is a file; name a folder" in result.stderr


def test_progress_is_told_with_rate_and_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    text = "12 of 40 tapes, 3,400 exchanges (1,700 per second), 6.0 s left"
    assert progress_text(HALF) == text
    with _Teller() as teller:
        teller.tell(HALF)
        assert capsys.readouterr().err == ""
        late = ScanProgress(tapes=13, of_tapes=40, bytes=100, of_bytes=400, exchanges=34, ns=20 * S)
        teller.tell(late)
    assert capsys.readouterr().err.startswith("scan: 13 of 40 tapes, ")
    assert scan_command._SAY_NS == 10 * S


def test_after_a_scan_that_was_killed_the_next_one_goes_on(tmp_path: Path) -> None:
    folder = tapes(tmp_path, *[BROKEN.read_bytes()] * 40)
    out = tmp_path / "out"
    words = (sys.executable, "-m", "deltatape", "scan", "in", "--out", "out", "--jobs", "2")
    log = tmp_path / "log"
    with log.open("wb") as file:
        running = subprocess.Popen(
            words, cwd=folder, env=environment(folder), stdout=file, stderr=file
        )
    try:
        while running.poll() is None and not [*(out / "tapes").rglob("*.parquet")]:
            time.sleep(0.02)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == -signal.SIGKILL, log.read_text()

    summary = json.loads(called(*words[3:-1], "1", "--format", "json", folder=folder).stdout)

    assert summary["known"] >= 1
    assert summary["known"] + summary["tapes"] == 42
    whole = json.loads(
        called("scan", "in", "--out", "other", "--format", "json", folder=folder).stdout
    )
    for table in ("tapes", "exchanges", "findings", "calls"):
        assert number_of(out, table) == number_of(tmp_path / "other", table)
    assert whole["tapes"] == 42


def number_of(out: Path, table: str) -> int:
    return sum(pq.read_metadata(path).num_rows for path in (out / table).rglob("*.parquet"))
