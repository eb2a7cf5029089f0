"""The command's output on its way to ours."""

import errno
import os
import signal
import subprocess
import sys
import time  # noqa: TID251 - that nothing waits too long is the point
from pathlib import Path

from helpers.supervisor import (
    LIMIT_S,
    Report,
    arguments,
    run,
    terminal,
    wait_for_the_childs_end,
)
from helpers.supervisor import start as started

PYTHON = sys.executable


def test_both_streams_come_out_and_are_teed_each_for_itself(tmp_path: Path) -> None:
    result, report = run(tmp_path, "sh", "-c", "echo to out; echo to err >&2; printf unended")
    assert (result.stdout, result.stderr) == (b"to out\nunended", b"to err\n")
    assert report.teed("stdout") == result.stdout
    assert report.teed("stderr") == result.stderr


def test_bytes_that_are_no_text_come_out_as_they_are(tmp_path: Path) -> None:
    every = bytes(range(256)) * 3
    script = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 3)"
    result, report = run(tmp_path, PYTHON, "-c", script)
    assert result.stdout == every
    assert report.teed("stdout") == every


def test_lines_of_both_streams_keep_their_order_on_one_output(tmp_path: Path) -> None:
    script = "for i in 1 2 3 4 5; do echo out $i; sleep 0.01; echo err $i >&2; sleep 0.01; done"
    with (tmp_path / "both").open("wb") as both:
        subprocess.run(
            arguments(tmp_path / "report", "log", "sh", "-c", script),
            stdout=both,
            stderr=both,
            timeout=LIMIT_S,
            check=True,
        )
    expected = "".join(f"out {i}\nerr {i}\n" for i in range(1, 6))
    assert (tmp_path / "both").read_text() == expected


def test_much_output_is_passed_on_fast_and_whole(tmp_path: Path) -> None:
    begun = time.monotonic()
    script = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 40960)"
    result, report = run(tmp_path, PYTHON, "-c", script)
    assert result.stdout == bytes(range(256)) * 40960
    assert report.teed("stdout") == result.stdout
    assert time.monotonic() - begun < 10


def test_a_reader_that_leaves_ends_the_command_as_it_would_without_us(tmp_path: Path) -> None:
    with started(tmp_path, "yes") as running:
        assert running.process.stdout is not None
        running.process.stdout.read(10)
        running.process.stdout.close()
        assert running.process.wait(LIMIT_S) == 128 + signal.SIGPIPE


def test_a_full_disk_is_told_and_closed_to_the_command(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            arguments(tmp_path / "report", "log", "yes"),
            stdout=full,
            timeout=LIMIT_S,
            check=False,
        )
    assert result.returncode == 128 + signal.SIGPIPE
    assert Report(tmp_path / "report").told == [
        f"stdout: {os.strerror(errno.ENOSPC)}: closed to the command"
    ]


def test_a_process_that_holds_the_output_open_does_not_hold_us(tmp_path: Path) -> None:
    begun = time.monotonic()
    result, report = run(tmp_path, "sh", "-c", "sleep 30 & echo $!; exit 6")
    os.kill(int(result.stdout), signal.SIGKILL)
    assert result.returncode == 6
    assert 0.9 < time.monotonic() - begun < 10
    assert report.told == [
        (
            "the command has ended, but a process that it started holds its stderr and stdout"
            " open; what that writes from now on is not taken"
        )
    ]


def test_a_process_that_goes_on_writing_does_not_hold_us(tmp_path: Path) -> None:
    result, report = run(tmp_path, "sh", "-c", "(sleep 0.8; exec yes >&2) & exit 6")
    assert result.returncode == 6
    assert len(report.told) == 1
    assert report.teed("stderr").startswith(b"y\ny\n")


def test_output_that_nobody_takes_waits_and_holds_up_nothing_else(tmp_path: Path) -> None:
    script = "echo begun >&2; (sleep 0.3; echo later >&2) & head -c 1000000 /dev/zero; wait"
    with started(tmp_path, "sh", "-c", script) as running:
        running.wait_for("stderr", b"later\n")
        # The pipe to us, the one to the reader, and a piece on its way: no more was taken.
        assert len(running.report.teed("stdout")) <= 3 * 65536
        assert running.process.stdout is not None
        assert running.process.stdout.read() == bytes(1000000)
        assert running.process.wait(LIMIT_S) == 0
    assert running.report.teed("stdout") == bytes(1000000)


def test_what_the_command_wrote_last_waits_for_a_slow_reader(tmp_path: Path) -> None:
    with started(tmp_path, "sh", "-c", "head -c 100000 /dev/zero; printf end") as running:
        wait_for_the_childs_end(running)
        time.sleep(1.5)  # longer than others get to end their output
        assert running.process.poll() is None
        assert running.process.stdout is not None
        assert running.process.stdout.read() == bytes(100000) + b"end"
        assert running.process.wait(LIMIT_S) == 0
        assert running.report.told == []
    assert running.report.teed("stdout") == bytes(100000) + b"end"


def test_a_terminal_that_goes_away_ends_the_output(tmp_path: Path) -> None:
    script = "trap '' HUP; while echo on; do sleep 0.01; done; exit 8"
    with terminal(tmp_path, "sh", "-c", script) as user:
        user.wait_for(b"on")
        user.hang_up()
        assert user.process.wait(LIMIT_S) in {8, 128 + signal.SIGHUP}
