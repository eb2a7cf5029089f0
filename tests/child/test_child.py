"""A command run as if it had been started without us."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.needed import skip_unless
from helpers.supervisor import (
    LIMIT_S,
    Report,
    arguments,
    run,
)
from helpers.supervisor import start as started

PYTHON = sys.executable


@pytest.mark.parametrize("code", [0, 3, 125, 255])
def test_the_exit_code_is_the_commands(tmp_path: Path, code: int) -> None:
    result, report = run(tmp_path, "sh", "-c", f"exit {code}")
    assert result.returncode == code
    assert report.told == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_command_that_a_signal_ended_is_128_and_its_number(tmp_path: Path, number: int) -> None:
    result, _ = run(tmp_path, "sh", "-c", f"kill -{number} $$")
    assert result.returncode == 128 + number


def test_a_command_that_is_not_there_is_127(tmp_path: Path) -> None:
    result, report = run(tmp_path, "no-such-command-here")
    assert result.returncode == 127
    assert report.told == [f"no-such-command-here: {os.strerror(errno.ENOENT)}"]


def test_a_command_that_cannot_be_run_is_126(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program\n")
    result, report = run(tmp_path, "./text")
    assert result.returncode == 126
    assert report.told == [f"./text: {os.strerror(errno.EACCES)}"]


def test_a_script_without_an_interpreter_line_is_run_by_the_shell(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text('echo "ran with $1"\n')
    script.chmod(0o755)
    result, _ = run(tmp_path, "./script", "this")
    assert (result.returncode, result.stdout) == (0, b"ran with this\n")


def test_a_program_in_node_runs_too(tmp_path: Path) -> None:
    skip_unless(shutil.which("node"), "no Node.js")
    script = "console.log(process.stdout.isTTY ?? false); console.error('err'); process.exit(4)"
    result, report = run(tmp_path, "node", "-e", script)
    assert (result.returncode, result.stdout, result.stderr) == (4, b"false\n", b"err\n")
    assert report.teed("stderr") == b"err\n"


def test_stdin_is_the_commands(tmp_path: Path) -> None:
    result, _ = run(tmp_path, "cat", stdin=b"given\n")
    assert result.stdout == b"given\n"


def test_without_a_log_the_command_has_our_own_output(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with target.open("wb") as out:
        result = subprocess.run(
            arguments(tmp_path / "report", "no-log", "readlink", "/proc/self/fd/1"),
            stdout=out,
            timeout=LIMIT_S,
            check=False,
        )
    assert result.returncode == 0
    assert target.read_text() == f"{target}\n"
    assert Report(tmp_path / "report").teed("stdout") == b""


def test_the_command_is_killed_when_the_recorder_fails(tmp_path: Path) -> None:
    with started(tmp_path, "sh", "-c", "echo $$; exec sleep 60", mode="log+fail") as running:
        running.wait_for("stdout", b"\n")
        assert running.process.wait(LIMIT_S) == 1
        pid = int(running.report.teed("stdout"))
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_process_that_cannot_be_made_is_a_failure_of_ours(tmp_path: Path) -> None:
    # Descriptors for its output are left, one for the making of it is not.
    result, report = run(tmp_path, "true", mode="log+files=6")
    assert result.returncode == 125
    assert report.told == [f"true: {os.strerror(errno.EMFILE)}"]
