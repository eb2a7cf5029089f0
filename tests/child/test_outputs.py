"""What the command has for stdout and stderr."""

import subprocess
import sys
from pathlib import Path

from helpers.supervisor import LIMIT_S, Report, arguments, run, terminal

PYTHON = sys.executable


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
