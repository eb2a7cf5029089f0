"""The command's output on its way to ours."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
import time  # noqa: TID251 - that nothing waits too long is the point
from pathlib import Path

import pytest

from deltatape.child.child import run_child
from deltatape.model.log import LogStream
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
    script = "for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done"
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
            "the command has ended, but a process that it started holds its stdout and stderr"
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


@pytest.mark.parametrize("end", ["", r"\033[31m", r"\r"])
def test_a_last_line_that_did_not_end_is_ended(tmp_path: Path, end: str) -> None:
    with terminal(tmp_path, "sh", "-c", f"printf 'no newline{end}'") as user:
        assert user.end() == 0
    assert user.report.told == [""]


@pytest.mark.parametrize("end", [r"\n", r"\n\033[0m", r"\n\033[?25h\033[?2004l"])
def test_a_last_line_that_ended_is_left_alone(tmp_path: Path, end: str) -> None:
    with terminal(tmp_path, "sh", "-c", f"printf 'newline{end}'") as user:
        assert user.end() == 0
    assert user.report.told == []


def test_only_a_line_where_our_own_lines_go_is_ended(tmp_path: Path) -> None:
    _, report = run(tmp_path, "sh", "-c", "printf out")
    assert report.told == []
    _, report = run(tmp_path, "sh", "-c", "printf err >&2")
    assert report.told == [""]


def test_stdout_comes_first_of_what_waited_in_two_pipes(tmp_path: Path) -> None:
    script = "sleep 0.2; echo one; echo two >&2"
    result, report = run(tmp_path, "sh", "-c", script)
    assert (result.stdout, result.stderr) == (b"one\n", b"two\n")
    assert [name for name, _ in report.lines()] == ["stdout", "stderr"]


@pytest.mark.usefixtures("capfd")
def test_a_flood_of_short_lines_leaves_the_loop_its_turns() -> None:

    async def scenario() -> tuple[int, int]:
        taken = turns = 0

        def tee(_: LogStream, data: bytes) -> None:
            nonlocal taken
            taken += len(data)
            busy_until = time.perf_counter() + len(data) * 2e-6
            while time.perf_counter() < busy_until:
                pass

        async def count_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.ensure_future(count_turns())
        argv = (sys.executable, "-c", "import sys; sys.stdout.write('y\\n' * 250_000)")
        code = await run_child(argv, dict(os.environ), tee=tee, tell=print)
        counting.cancel()
        assert code == 0
        return taken, turns

    taken, turns = asyncio.run(scenario())
    assert taken == 500_000
    assert turns > 100  # a second of work in all, in turns of milliseconds
