"""Signals and keys reach the command, once."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import time  # noqa: TID251 - that nothing waits too long is the point
from pathlib import Path

import pytest

from deltatape.child.signals import Signals
from helpers.needed import skip_unless
from helpers.supervisor import (
    LIMIT_S,
    Terminal,
    arguments,
    terminal,
    wait_for_state,
    wait_for_the_childs_end,
)
from helpers.supervisor import start as started
from helpers.upstream import eventually, run

PYTHON = sys.executable
COUNTING = """
import os, signal, sys, time
caught = []
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT):
    signal.signal(number, lambda number, frame: caught.append(number))
print("ready", flush=True)
while not caught:
    time.sleep(0.01)
time.sleep(0.3)
print("caught", *map(int, caught), flush=True)
sys.exit(9)
"""
"""A Python program that prints which signals it caught, and exits with 9."""


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
    skip_unless(shutil.which("timeout"), "no timeout(1)")
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
    skip_unless(shutil.which("bash"), "no bash")
    script = 'echo "begun by $$"; read line; echo read $line'
    inner = arguments(tmp_path / "report", "log", "sh", "-c", script)
    (tmp_path / "inner").write_text(f"exec {' '.join(repr(each) for each in inner)}\n")
    shell = ("bash", "--norc", "--noprofile", "-i")
    with terminal(tmp_path, *shell, mode="exec+tty") as user:
        user.type(b"PS1='at the'' prompt> '; sh inner\n")
        user.wait_for(b"begun by")
        user.type(b"\x1a")
        user.wait_for(b"Stopped")
        user.wait_for(b"at the prompt> ")  # before it, the shell drops what is typed
        (command,) = re.findall(rb"begun by (\d+)", user.screen)
        wait_for_state(int(command), "T")  # until then it reads what is typed
        user.type(b"fg\n")
        user.wait_for(b"fg\r\n")
        user.type(b"text\n")
        user.wait_for(b"read text\r\n")
        user.type(b"exit\n")
        assert user.end() == 0


NAME = Path(PYTHON).name
DEAF = """
import os, signal, time
for number in {ignored}:
    signal.signal(number, signal.SIG_IGN)
print("ready", os.getpid(), flush=True)
while True:
    time.sleep(1)
"""
TO_CTRL_C = DEAF.format(ignored="[signal.SIGINT]")
TO_ALL = DEAF.format(ignored="[signal.SIGINT, signal.SIGTERM]")


def press(user: Terminal, times: int) -> None:
    """Ctrl-C, each as a signal of its own."""
    for _ in range(times):
        time.sleep(0.4)  # so that what was printed before is no answer
        user.type(b"\x03")


def test_one_that_is_not_answered_is_said_once_with_the_way_out(tmp_path: Path) -> None:
    with terminal(tmp_path, PYTHON, "-c", TO_CTRL_C) as user:
        user.wait_for(b"ready")
        press(user, 1)
        user.wait_until_told("waiting")
        pid = int(user.report.teed("output").split()[1])
        press(user, 1)
        time.sleep(1.3)
        waiting = f"waiting for {NAME} (pid {pid}) to end; Ctrl-C twice more sends it SIGTERM"
        assert user.report.told == ["", waiting]
        press(user, 1)
        assert user.end() == 128 + signal.SIGTERM
    sent = f"{NAME} (pid {pid}) has not answered and is sent SIGTERM;"
    assert user.report.told[2:] == ["", f"{sent} Ctrl-C again within 10 s kills it"]


def test_after_sigterm_one_more_kills(tmp_path: Path) -> None:
    with terminal(tmp_path, PYTHON, "-c", TO_ALL) as user:
        user.wait_for(b"ready")
        press(user, 3)
        user.wait_until_told("SIGTERM;")
        press(user, 1)
        assert user.end() == 128 + signal.SIGKILL
    assert user.report.told[-1].endswith("is killed")


def test_a_command_in_a_group_of_its_own_is_killed_with_its_group(tmp_path: Path) -> None:
    skip_unless(shutil.which("timeout"), "no timeout(1)")
    with terminal(tmp_path, "timeout", "60", PYTHON, "-c", TO_ALL) as user:
        user.wait_for(b"ready")
        press(user, 3)
        user.wait_until_told("SIGTERM;")
        press(user, 1)
        assert user.end() == 128 + signal.SIGKILL
    pid = int(user.report.teed("output").split()[1])
    end = time.monotonic() + LIMIT_S
    while is_running(pid):
        assert time.monotonic() < end
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    """Whether it is there and no zombie that nobody has asked for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_console_that_answers_each_is_left_alone(tmp_path: Path) -> None:
    with terminal(tmp_path, PYTHON, "-i", "-c", "") as user:
        for count in range(1, 16):
            user.wait_for(b">>> ", count)
            user.wait_for_a_reader()
            user.type(b"\x03")
            user.wait_for(b"\r\nKeyboardInterrupt\r\n", count)
        time.sleep(1.3)
        user.type(b"exit(7)\n")
        assert user.end() == 7
    assert not any(user.report.told)


def test_after_an_answer_it_starts_anew(tmp_path: Path) -> None:
    script = """
import signal, sys, time
signal.signal(signal.SIGINT, lambda *_: None)
print("ready", flush=True)
sys.stdin.readline()
print("heard", flush=True)
while True: time.sleep(1)
"""
    with terminal(tmp_path, PYTHON, "-c", script) as user:
        user.wait_for(b"ready")
        press(user, 2)
        user.type(b"\n")
        user.wait_for(b"heard")
        press(user, 2)
        user.wait_until_told("waiting")
        time.sleep(0.5)
    assert "sent SIGTERM" not in "".join(user.report.told)


def test_a_command_whose_output_is_not_seen_is_sent_nothing(tmp_path: Path) -> None:
    with terminal(tmp_path, PYTHON, "-c", TO_CTRL_C, mode="no-log+tty") as user:
        user.wait_for(b"ready")
        press(user, 1)
        time.sleep(1.3)
        assert user.report.told == []
        press(user, 2)
        user.wait_until_told("waiting")
        user.wait_for(b"\n")
        pid = int(user.screen.split()[1])
        line = f"waiting for {NAME} (pid {pid}) to end; `kill {pid}` sends it SIGTERM"
        assert user.report.told == ["", line]
        time.sleep(0.2)
        os.kill(pid, signal.SIGTERM)
        assert user.end() == 128 + signal.SIGTERM


def test_a_command_that_ends_in_silence_leaves_no_half_line(tmp_path: Path) -> None:
    script = "trap 'exit 4' INT; echo ready; while :; do sleep 0.05; done"
    with terminal(tmp_path, "sh", "-c", script) as user:
        user.wait_for(b"ready")
        press(user, 1)
        assert user.end() == 4
    assert user.report.told == [""]  # after `^C`


def test_a_signal_that_is_not_answered_is_said_where_there_is_no_terminal(tmp_path: Path) -> None:
    with started(tmp_path, PYTHON, "-c", TO_ALL) as running:
        running.wait_for("stdout", b"\n")
        time.sleep(0.2)
        pid = int(running.report.teed("stdout").split()[1])
        running.process.send_signal(signal.SIGTERM)
        running.wait_for("told", b"waiting")
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(LIMIT_S) == 128 + signal.SIGKILL
    line = f"waiting for {NAME} (pid {pid}) to end; SIGINT or SIGTERM again kills it"
    assert running.report.told == [line]


@pytest.mark.parametrize(
    ("number", "name"),
    [(signal.SIGINT, "sigint"), (signal.SIGTERM, "sigterm"), (signal.SIGHUP, "sighup")],
)
def test_the_first_signal_is_told_by_name(number: signal.Signals, name: str) -> None:
    async def scenario() -> None:
        hurried: list[str] = []
        signals = Signals(lambda: hurried.append("now"))
        waiting = asyncio.ensure_future(signals.wait())
        await asyncio.sleep(0)
        os.kill(os.getpid(), number)
        assert await waiting == name
        assert hurried == []

    run(scenario())


def test_each_further_signal_hurries() -> None:
    async def scenario() -> None:
        hurried: list[str] = []
        signals = Signals(lambda: hurried.append("now"))
        os.kill(os.getpid(), signal.SIGTERM)
        assert await signals.wait() == "sigterm"
        for count, number in enumerate((signal.SIGINT, signal.SIGTERM), start=1):
            os.kill(os.getpid(), number)
            await eventually(lambda count=count: len(hurried) == count, "a hurry")  # type: ignore[misc]
        assert await signals.wait() == "sigterm"

    run(scenario())
