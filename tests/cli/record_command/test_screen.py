"""What `deltatape record -- CMD` prints on the terminal of a command, and when."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.console import called
from helpers.program import environment
from helpers.supervisor import Report, Terminal, on_terminal

# A request that is refused is told at once, before its answer.
APP = """
import os, sys, termios, tty, urllib.error, urllib.request

def show(text):
    sys.stdout.write(text)
    sys.stdout.flush()

def refused():
    for _ in range(20):  # long enough for a line to be printed
        try:
            urllib.request.urlopen(os.environ["DELTATAPE_URL"] + "/nowhere/x")
        except urllib.error.HTTPError as error:
            error.close()

def key():
    os.read(0, 1)

"""
ALTERNATE = """
show("\\x1b[?1049h[taken]")
key()
refused()
show("[still]")
key()
show("[left]\\x1b[?1049l")
key()
"""
KEYS = """
before = termios.tcgetattr(0)
tty.setcbreak(0)
show("[taken]")
key()
refused()
show("[still]")
key()
show("[left]")
termios.tcsetattr(0, termios.TCSADRAIN, before)
key()
"""
UNFINISHED = """
show("fine")
refused()
key()
"""
TOLD = b"refused a request"


@contextlib.contextmanager
def recording(folder: Path, code: str, *options: str) -> Iterator[Terminal]:
    """A terminal in which `deltatape record -- CMD` runs a program."""
    (folder / "app.py").write_text(APP + code)
    command = (
        *(sys.executable, "-m", "deltatape", "record", "--to", "tapes", *options),
        *("--", sys.executable, "app.py"),
    )
    env = {**environment(folder), "NO_COLOR": "1", "TERM": "xterm"}
    report = Report(folder / "none")
    with on_terminal(command, folder, report, size=(24, 100), env=env) as user:
        yield user


@pytest.mark.parametrize(("code", "options"), [(ALTERNATE, ()), (KEYS, ()), (KEYS, ("--no-log",))])
def test_a_program_that_takes_over_the_screen_is_left_alone(
    tmp_path: Path, code: str, options: tuple[str, ...]
) -> None:
    with recording(tmp_path, code, *options) as user:
        user.wait_for(b"[taken]")  # before that it may print what it likes
        user.type(b"\n")
        user.wait_for(b"[still]")
        user.type(b"\n")
        user.wait_for(b"[left]")
        user.wait_for(TOLD)
        user.type(b"\n")
        assert user.end() == 0
    taken, left = user.screen.index(b"[taken]"), user.screen.index(b"[left]")
    assert user.screen[taken:left].replace(b"\r\n", b"") == b"[taken][still]"
    assert user.screen.index(TOLD) > left


def test_no_line_is_glued_to_an_unfinished_line_of_the_program(tmp_path: Path) -> None:
    with recording(tmp_path, UNFINISHED) as user:
        user.wait_for(TOLD)
        user.type(b"\n")
        assert user.end() == 0
    assert b"fine\r\n" + TOLD in user.screen


def test_when_quiet_only_problems_are_told(tmp_path: Path) -> None:
    given = ("record", "--quiet", "--to", "tapes")
    result = called(*given, "--", "sh", "-c", "printf out; printf err >&2", folder=tmp_path)
    assert (result.returncode, result.stderr) == (0, b"")
    result = called(*given, "--", "./no-such-program", folder=tmp_path)
    assert result.returncode == 127
    assert result.stderr == b"./no-such-program: No such file or directory\n"
    assert len(list(tmp_path.glob("tapes/*.tape"))) == 2
