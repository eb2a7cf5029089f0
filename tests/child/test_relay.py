"""Signals and keys reach the command, once."""

import shutil
import signal
import subprocess
import sys
import time  # noqa: TID251 - that nothing waits too long is the point
from pathlib import Path

import pytest

from helpers.supervisor import COUNTING, LIMIT_S, arguments, terminal, wait_for_the_childs_end
from helpers.supervisor import start as started

PYTHON = sys.executable


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGQUIT"])
def test_signals_are_passed_on_once_where_there_is_no_terminal(tmp_path: Path, name: str) -> None:
    number = signal.Signals[name]
    with started(tmp_path, PYTHON, "-c", COUNTING) as running:
        running.wait_for("stdout", b"ready")
        running.process.send_signal(number)
        assert running.process.wait(LIMIT_S) == 9
    assert running.report.teed("stdout") == b"ready\ncaught %d\n" % number


def test_a_second_sigterm_kills(tmp_path: Path) -> None:
    script = "import signal, time; signal.signal(signal.SIGTERM, lambda *_: None)\n"
    script += "print('ready', flush=True)\nwhile True: time.sleep(1)"
    with started(tmp_path, PYTHON, "-c", script) as running:
        running.wait_for("stdout", b"ready")
        running.process.send_signal(signal.SIGTERM)
        time.sleep(0.1)  # as timeout(1) sends it twice: that is one wish
        running.process.send_signal(signal.SIGTERM)
        time.sleep(0.7)
        assert running.process.poll() is None
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(LIMIT_S) == 128 + signal.SIGKILL


def test_a_signal_that_was_ignored_before_stays_ignored(tmp_path: Path) -> None:
    script = "import signal; print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"
    result = subprocess.run(
        ["nohup", *arguments(tmp_path / "report", "log", PYTHON, "-c", script)],
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert result.stdout == b"True\n"


def test_a_signal_ends_the_wait_for_a_reader(tmp_path: Path) -> None:
    with started(tmp_path, "sh", "-c", "head -c 100000 /dev/zero; printf end") as running:
        wait_for_the_childs_end(running)
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(LIMIT_S) == 0


def test_ctrl_c_ends_the_command_once_and_not_us(tmp_path: Path) -> None:
    with terminal(tmp_path, PYTHON, "-c", COUNTING) as user:
        user.wait_for(b"ready")
        user.type(b"\x03")
        assert user.end() == 9
    assert user.report.teed("output") == b"ready\ncaught 2\n"


def test_ctrl_c_may_be_pressed_as_often_as_the_command_likes(tmp_path: Path) -> None:
    with terminal(tmp_path, PYTHON, "-i", "-c", "") as user:
        for count in (1, 2, 3):
            user.wait_for(b">>> ", count)
            time.sleep(0.6)
            user.type(b"\x03")
            user.wait_for(b"\r\nKeyboardInterrupt\r\n", count)
        user.type(b"exit(7)\n")
        assert user.end() == 7


def test_ctrl_c_reaches_a_command_in_a_group_of_its_own(tmp_path: Path) -> None:
    if shutil.which("timeout") is None:
        pytest.skip("needs timeout")
    with terminal(tmp_path, "timeout", "30", PYTHON, "-c", COUNTING) as user:
        user.wait_for(b"ready")
        user.type(b"\x03")
        assert user.end() == 9
    assert b"caught 2" in user.report.teed("output")


def test_ctrl_backslash_ends_the_command_once(tmp_path: Path) -> None:
    with terminal(tmp_path, PYTHON, "-c", COUNTING) as user:
        user.wait_for(b"ready")
        user.type(b"\x1c")
        assert user.end() == 9
    assert user.report.teed("output") == b"ready\ncaught 3\n"


def test_the_users_shell_can_stop_and_continue_both(tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("needs bash")
    script = "echo begun; read line; echo read $line"
    inner = arguments(tmp_path / "report", "log", "sh", "-c", script)
    (tmp_path / "inner").write_text(f"exec {' '.join(repr(each) for each in inner)}\n")
    shell = ("bash", "--norc", "--noprofile", "-i")
    with terminal(tmp_path, *shell, mode="exec+tty") as user:
        user.type(b"PS1='$ '; sh inner\n")
        user.wait_for(b"begun\r\n")
        user.type(b"\x1a")
        user.wait_for(b"Stopped")
        user.type(b"fg\n")
        user.wait_for(b"fg\r\n")
        user.type(b"text\n")
        user.wait_for(b"read text\r\n")
        user.type(b"exit\n")
        assert user.end() == 0
