"""A process that runs a command by `run_child`, as `deltatape record -- CMD` does.

Run as a program it takes `REPORT MODE COMMAND...`. MODE is `log`, `no-log`, or `exec` to become the
command itself; with `+tty` stdin becomes its controlling terminal first, with `+fail` its own work
fails after a second, with `+files=N` it can open about N files more. What is teed and told goes to
REPORT, a line each.
"""

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import resource
import select
import signal
import subprocess
import sys
import termios
import time  # noqa: TID251 - waits are bounded
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deltatape.child.child import run_child
from deltatape.child.screen import Screen
from deltatape.model.tape_summary import LogStream

LIMIT_S = 20.0


@dataclass
class Report:
    """What a supervisor noted."""

    path: Path

    def lines(self) -> list[tuple[str, str]]:
        """A stream, or `told`, and what came, in order."""
        text = self.path.read_text() if self.path.exists() else ""
        text = text[: text.rfind("\n") + 1]  # without what is still being written
        return [(name, value) for name, value in map(json.loads, text.splitlines())]

    def teed(self, stream: str) -> bytes:
        """All that came for a stream."""
        return b"".join(v.encode("latin-1") for name, v in self.lines() if name == stream)

    @property
    def left_out(self) -> int:
        """How many bytes did not come."""
        return sum(int(value) for name, value in self.lines() if name == "left out")

    @property
    def told(self) -> list[str]:
        """The lines for the user."""
        return [value for name, value in self.lines() if name == "told"]


def arguments(report: Path, mode: str, *command: str) -> list[str]:
    """The command line of a supervisor."""
    return [sys.executable, __file__, str(report), mode, *command]


class Supervised:
    """A supervisor without a terminal."""

    def __init__(self, process: subprocess.Popen[bytes], report: Report) -> None:
        self.process = process
        self.report = report

    def wait_for(self, stream: str, text: bytes) -> None:
        """Wait until `text` was teed."""
        limit = time.monotonic() + LIMIT_S
        while text not in self.report.teed(stream):
            assert time.monotonic() < limit, self.report.path.read_text()[-500:]
            time.sleep(0.01)


@contextlib.contextmanager
def start(folder: Path, *command: str, mode: str = "log") -> Iterator[Supervised]:
    """A supervisor with pipes, in a session of its own."""
    report = Report(folder / "report")
    process = subprocess.Popen(
        arguments(report.path, mode, *command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        start_new_session=True,
    )
    with process:
        try:
            yield Supervised(process, report)
        finally:
            end(process)


def run(
    folder: Path, *command: str, mode: str = "log", stdin: bytes = b""
) -> tuple[subprocess.CompletedProcess[bytes], Report]:
    """Run a supervisor with pipes to its end."""
    report = Report(folder / "report")
    result = subprocess.run(
        arguments(report.path, mode, *command),
        input=stdin,
        capture_output=True,
        cwd=folder,
        timeout=LIMIT_S,
        check=False,
        start_new_session=True,
    )
    return result, report


def wait_for_the_childs_end(running: Supervised) -> None:
    """Wait until a command that printed zeros has ended."""
    running.wait_for("stdout", b"\0")
    limit = time.monotonic() + LIMIT_S
    while _children(running.process):
        assert time.monotonic() < limit
        time.sleep(0.01)
    time.sleep(0.1)  # until the loop has heard of it


def _children(process: subprocess.Popen[bytes]) -> list[str]:
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


def wait_for_state(pid: int, state: str) -> None:
    """Wait until a process sleeps ("S"), is stopped ("T"), ...; see proc(5)."""
    limit = time.monotonic() + LIMIT_S
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != state:
        assert time.monotonic() < limit
        time.sleep(0.001)


class Terminal:
    """A user's terminal with a supervisor in it."""

    def __init__(self, process: subprocess.Popen[bytes], keyboard: int, report: Report) -> None:
        self.process = process
        self.keyboard = keyboard
        self.report = report
        self.screen = b""

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self.keyboard, keys)

    def resize(self, rows: int, columns: int) -> None:
        """Change its size."""
        termios.tcsetwinsize(self.keyboard, (rows, columns))

    def wait_until_told(self, text: str) -> None:
        """Wait until a line for the user had `text` in it."""
        end = time.monotonic() + LIMIT_S
        while not any(text in line for line in self.report.told):
            assert time.monotonic() < end, self.report.told
            time.sleep(0.01)

    def hang_up(self) -> None:
        """Close it."""
        os.close(self.keyboard)
        self.keyboard = -1

    def wait_for_a_reader(self) -> None:
        """Wait until the command sleeps: what has prompted may not listen to signals yet."""
        (child,) = _children(self.process)
        wait_for_state(int(child), "S")

    def wait_for(self, text: bytes, count: int = 1) -> None:
        """Wait until the screen has shown `text`."""
        end = time.monotonic() + LIMIT_S
        while self.screen.count(text) < count:
            left = end - time.monotonic()
            if left <= 0 or not self._read(left):
                raise AssertionError(f"{text!r} not in {self.screen!r}")

    def end(self) -> int:
        """Wait for the supervisor's end; its exit code."""
        while self._read(LIMIT_S):
            pass
        return self.process.wait(LIMIT_S)

    def _read(self, limit_s: float) -> bool:
        if not select.select([self.keyboard], [], [], limit_s)[0]:
            raise AssertionError(f"nothing more after {self.screen!r}")
        try:
            data = os.read(self.keyboard, 65536)
        except OSError:  # nobody has the terminal open any more
            return False
        self.screen += data
        return bool(data)


@contextlib.contextmanager
def terminal(
    folder: Path, *command: str, mode: str = "log+tty", size: tuple[int, int] = (24, 80)
) -> Iterator[Terminal]:
    """A supervisor with the terminal as stdin, stdout, stderr and controlling terminal."""
    report = Report(folder / "report")
    with on_terminal(arguments(report.path, mode, *command), folder, report, size=size) as user:
        yield user


@contextlib.contextmanager
def on_terminal(
    command: Sequence[str],
    folder: Path,
    report: Report,
    *,
    size: tuple[int, int],
    env: Mapping[str, str] | None = None,
) -> Iterator[Terminal]:
    """A program with the terminal as stdin, stdout, stderr and controlling terminal."""
    keyboard, screen = pty.openpty()
    termios.tcsetwinsize(screen, size)
    process = subprocess.Popen(
        command,
        stdin=screen,
        stdout=screen,
        stderr=screen,
        cwd=folder,
        env=env,
        start_new_session=True,
    )
    os.close(screen)
    user = Terminal(process, keyboard, report)
    try:
        yield user
    finally:
        if user.keyboard >= 0:
            user.hang_up()
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a supervisor that is a session's leader, with all in its group."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(LIMIT_S)


def _main(report: str, mode: str, *command: str) -> int:
    if mode.endswith("+tty"):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if mode.startswith("exec"):
        os.execvp(command[0], command)  # noqa: S606 - a program of the test's
    with Path(report).open("a") as file:

        def note(name: str, value: str) -> None:
            file.write(json.dumps([name, value]) + "\n")
            file.flush()

        def tee(name: LogStream, data: bytes, left_out: int) -> None:
            if left_out:
                note("left out", f"{left_out}")
            note(name, data.decode("latin-1"))

        screen = Screen()

        def leave_line() -> None:
            with screen.held_by_us() as is_mid_line:
                if is_mid_line:
                    note("told", "")

        def tell(line: str) -> None:
            leave_line()
            note("told", line)

        log = tee if mode.startswith("log") else None
        running = run_child(command, os.environ, tee=log, tell=tell, screen=screen)
        _, limited, more = mode.partition("+files=")
        if limited:
            limit = len(list(Path("/proc/self/fd").iterdir())) + int(more)
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        code = asyncio.run(_failing(running) if mode.endswith("+fail") else running)
        leave_line()
        return code


async def _failing(running: Coroutine[object, object, int]) -> int:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(running, 1.0)
    return 1


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
