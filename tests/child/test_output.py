"""The command's output on its way to ours."""

import asyncio
import errno
import math
import os
import signal
import subprocess
import sys
import time  # noqa: TID251 - that nothing waits too long is the point
from pathlib import Path

import pytest

from deltatape.child.child import run_child
from deltatape.child.output import BURST_BYTES, BYTES_PER_S, LAST_BYTES, PAUSE_S, LogBudget
from deltatape.model.tape_summary import LogStream
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


def test_much_output_is_passed_on_whole(tmp_path: Path) -> None:
    script = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 12288)"
    result, report = run(tmp_path, PYTHON, "-c", script)
    assert result.stdout == bytes(range(256)) * 12288
    assert report.teed("stdout") == result.stdout


def test_of_a_flood_the_tee_gets_the_beginning_and_the_end(tmp_path: Path) -> None:
    script = "import sys; sys.stdout.write('a line\\n' * 2_000_000 + 'the last words')"
    result, report = run(tmp_path, PYTHON, "-c", script)
    assert result.stdout == b"a line\n" * 2_000_000 + b"the last words"
    teed = report.teed("stdout")
    assert teed.startswith(b"a line\n" * (BURST_BYTES // 8))
    assert teed.endswith(b"\na line\nthe last words")
    assert len(teed) + report.left_out == len(result.stdout)
    assert report.told == [
        (
            f"{report.left_out} bytes of the command's output are not on the tape: it prints more"
            " than is taped"
        )
    ]


ROOM = BURST_BYTES


@pytest.mark.parametrize(
    ("pieces", "taken"),
    [
        pytest.param([(0.0, b"a\n", ROOM)], [(b"a\n", 0)], id="within the budget"),
        pytest.param([(0.0, b"a\nbcd", 3)], [], id="no room for it"),
        pytest.param(
            [(0.0, b"a\nb", 2), (0.1, b"c\n", ROOM)],
            [(b"a\nbc\n", 0)],
            id="what had no room comes with what has",
        ),
        pytest.param(
            [(0.0, b"x" * BURST_BYTES, ROOM), (0.5, b"y" * (BYTES_PER_S // 2), ROOM)],
            [(b"x" * BURST_BYTES, 0), (b"y" * (BYTES_PER_S // 2), 0)],
            id="time brings more",
        ),
        pytest.param(
            [
                (0.0, b"x" * BURST_BYTES, ROOM),
                (0.1, b"y" * LAST_BYTES + b"z\nlast\n" + b"." * (LAST_BYTES - 10), ROOM),
                (9.0, b"\n", ROOM),
            ],
            [
                (b"x" * BURST_BYTES, 0),
                (b"last\n" + b"." * (LAST_BYTES - 10) + b"\n", LAST_BYTES + 2),
            ],
            id="the last of a flood, from the beginning of a line",
        ),
        pytest.param(
            [
                (0.0, b"x" * BURST_BYTES, ROOM),
                (0.1, b"y" * 2 * LAST_BYTES, ROOM),
                (9.0, b"z", ROOM),
            ],
            [(b"x" * BURST_BYTES, 0), (b"", 2 * LAST_BYTES + 1)],
            id="nothing of a line whose beginning was left out",
        ),
    ],
)
def test_a_budget(pieces: list[tuple[float, bytes, int]], taken: list[tuple[bytes, int]]) -> None:
    budget = LogBudget(0.0)
    assert [budget.take() for at, data, room in pieces if budget.add(data, at, room)] == taken


def test_a_pause_ends_a_flood() -> None:
    budget = LogBudget(0.0)
    assert budget.pause_s(1.0) == math.inf
    budget.add(b"x", 1.0, 0)
    assert budget.pause_s(1.0) == pytest.approx(PAUSE_S)
    assert budget.pause_s(1.0 + PAUSE_S) == 0


def test_what_waits_at_a_pause_is_teed_while_the_command_goes_on(tmp_path: Path) -> None:
    script = "print('a line\\n' * 1_000_000, end='question?', flush=True); input()"
    with started(tmp_path, PYTHON, "-c", script) as running:
        assert running.process.stdout is not None
        assert len(running.process.stdout.read(7_000_009)) == 7_000_009
        running.wait_for("stdout", b"question?")


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
    assert time.monotonic() - begun > 0.9
    assert report.told == [
        (
            "the command has ended, but a process that it started holds its stdout and stderr"
            " open; what that writes from now on is not taken"
        )
    ]


def test_a_process_that_goes_on_writing_does_not_hold_us(tmp_path: Path) -> None:
    result, report = run(tmp_path, "sh", "-c", "(sleep 0.8; exec yes >&2) & exit 6")
    assert result.returncode == 6
    assert "holds its stderr open" in report.told[-1]
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
        taken = at_once = most = 0

        def tee(_: LogStream, data: bytes, left_out: int) -> None:
            assert not left_out
            nonlocal taken, at_once, most
            taken += len(data)
            at_once += len(data)
            most = max(most, at_once)
            busy_until = time.perf_counter() + len(data) * 2e-6
            while time.perf_counter() < busy_until:
                pass

        async def take_turns() -> None:
            nonlocal at_once
            while True:
                at_once = 0
                await asyncio.sleep(0)

        turns = asyncio.ensure_future(take_turns())
        argv = (sys.executable, "-c", "import sys; sys.stdout.write('y\\n' * 250_000)")
        code = await run_child(argv, dict(os.environ), tee=tee, tell=print)
        turns.cancel()
        assert code == 0
        return taken, most

    taken, most = asyncio.run(scenario())
    assert taken == 500_000
    # A few milliseconds of work, and the rest of a slice; on a busy machine they are fewer bytes.
    assert most < 16 * 1024


def test_output_that_cannot_be_teed_is_an_error_that_names_the_way_out(tmp_path: Path) -> None:
    result, _ = run(tmp_path, "true", mode="log+files=5")
    assert result.returncode == 1
    assert b"UsageError: stderr: no pipe for the command's output: Too many open" in result.stderr
    assert b"--no-log runs it on your own" in result.stderr


def test_a_closed_stdout_stays_closed_and_stderr_is_teed(tmp_path: Path) -> None:
    command = ["sh", "-c", 'exec "$@" >&-', "sh"]
    script = "echo lost || echo kept >&2"
    result = subprocess.run(
        [*command, *arguments(tmp_path / "report", "log", "sh", "-c", script)],
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert result.returncode == 0
    assert b"kept\n" in result.stderr
    assert b"kept\n" in Report(tmp_path / "report").teed("stderr")


def test_both_streams_are_one_terminal_where_ours_are(tmp_path: Path) -> None:
    script = """
import os, sys
print("out", [os.isatty(fd) for fd in (0, 1, 2)], os.ttyname(1) == os.ttyname(2))
print("\\x1b[31merr\\x1b[0m", file=sys.stderr)
"""
    with terminal(tmp_path, PYTHON, "-c", script) as user:
        assert user.end() == 0
    expected = b"out [True, True, True] True\n\x1b[31merr\x1b[0m\n"
    assert user.report.teed("output") == expected
    assert user.report.teed("stdout") == user.report.teed("stderr") == b""
    assert b"out [True, True, True] True\r\n" in user.screen
    assert b"\x1b[31merr\x1b[0m\r\n" in user.screen
    assert b"\r\r" not in user.screen


TURNS = """
import sys
for number in range(300):
    print("out", number, flush=True)
    print("err", number, file=sys.stderr, flush=True)
"""
IN_TURN = "".join(f"out {number}\nerr {number}\n" for number in range(300)).encode()


def test_the_order_on_a_terminal_is_that_of_the_writes(tmp_path: Path) -> None:
    with terminal(tmp_path, PYTHON, "-c", TURNS) as user:
        assert user.end() == 0
    assert user.report.teed("output") == IN_TURN
    assert user.screen.replace(b"\r\n", b"\n") == IN_TURN


def test_the_order_in_one_pipe_is_that_of_the_writes(tmp_path: Path) -> None:
    result = subprocess.run(
        arguments(tmp_path / "report", "log", PYTHON, "-c", TURNS),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=LIMIT_S,
        check=True,
    )
    assert result.stdout == IN_TURN
    assert Report(tmp_path / "report").teed("output") == IN_TURN


def test_two_pipes_stay_two(tmp_path: Path) -> None:
    result, report = run(tmp_path, PYTHON, "-c", TURNS)
    assert result.stdout + result.stderr == report.teed("stdout") + report.teed("stderr")
    assert (result.stdout.count(b"\n"), result.stderr.count(b"\n")) == (300, 300)
    assert report.teed("output") == b""


def test_without_a_log_the_terminal_is_the_users_own(tmp_path: Path) -> None:
    script = "import os; print(os.ttyname(0) == os.ttyname(1) == os.ttyname(2))"
    with terminal(tmp_path, PYTHON, "-c", script, mode="no-log+tty") as user:
        assert user.end() == 0
    assert user.screen == b"True\r\n"


def test_only_the_stream_that_goes_to_a_terminal_gets_one(tmp_path: Path) -> None:
    script = "import os; os.write(2, str([os.isatty(fd) for fd in (1, 2)]).encode())"
    out = tmp_path / "out"
    shell = f'"$@" > {out}; exit 0'
    supervisor = arguments(tmp_path / "report", "log", PYTHON, "-c", script)
    with terminal(tmp_path, "sh", "-c", shell, "sh", *supervisor, mode="no-log+tty") as user:
        assert user.end() == 0
    assert b"[False, True]" in user.screen


def test_a_prompt_without_a_newline_is_shown_at_once(tmp_path: Path) -> None:
    with terminal(tmp_path, PYTHON, "-c", "print('hello', input('name? '))") as user:
        user.wait_for(b"name? ")
        user.type(b"ann\n")
        assert user.end() == 0
    assert b"hello ann\r\n" in user.screen


def test_a_password_prompt_is_the_terminals_and_not_teed(tmp_path: Path) -> None:
    script = "import getpass; print(len(getpass.getpass('secret: ')))"
    with terminal(tmp_path, PYTHON, "-c", script) as user:
        user.wait_for(b"secret: ")
        user.type(b"hidden\n")
        assert user.end() == 0
    assert b"hidden" not in user.screen
    assert user.report.teed("output") == b"6\n"


SIZES = """
import os, signal, sys
def show(*_):
    print(tuple(os.get_terminal_size(1)), tuple(os.get_terminal_size(2)), flush=True)
signal.signal(signal.SIGWINCH, show)
show()
sys.stdin.readline()
"""


def test_the_size_of_the_terminal_is_followed(tmp_path: Path) -> None:
    with terminal(tmp_path, PYTHON, "-c", SIZES, size=(30, 100)) as user:
        user.wait_for(b"(100, 30) (100, 30)")
        user.resize(40, 120)
        user.wait_for(b"(120, 40) (120, 40)")
        user.type(b"\n")
        assert user.end() == 0


def test_how_keys_arrive_may_be_set_through_stdout(tmp_path: Path) -> None:
    script = """
import sys, termios, tty
before = termios.tcgetattr(1)
tty.setcbreak(1)
print("press", flush=True)
key = sys.stdin.read(1)
termios.tcsetattr(1, termios.TCSANOW, before)
print("got", key, flush=True)
print("line", sys.stdin.readline().strip())
"""
    with terminal(tmp_path, PYTHON, "-c", script) as user:
        user.wait_for(b"press")
        user.type(b"k")  # no Enter
        user.wait_for(b"got k")
        assert user.screen.count(b"k") == 1  # and no echo
        user.type(b"whole\n")
        assert user.end() == 0
    assert b"line whole" in user.screen
