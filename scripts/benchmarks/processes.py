"""Processes of the benchmark: started, looked at through /proc, ended by their id.

CPU time is that of all threads of a process and its children, in nanoseconds
(`/proc/PID/task/TID/schedstat`); a thread that has ended takes its time with it, but no proxy here
ends threads while it works.
"""

import contextlib
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

END_S = 15.0
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """Time on a CPU, in nanoseconds: of what forwards and tapes, and of what analyses tapes."""

    proxy_ns: int
    analysis_ns: int

    @property
    def total_ns(self) -> int:
        """CPU time of all processes."""
        return self.proxy_ns + self.analysis_ns

    def since(self, earlier: "Cpu") -> "Cpu":
        """What was used since `earlier`."""
        return Cpu(
            proxy_ns=self.proxy_ns - earlier.proxy_ns,
            analysis_ns=self.analysis_ns - earlier.analysis_ns,
        )


def cpu(pid: int) -> Cpu:
    """Return the CPU time of a process and its descendants so far."""
    proxy = analysis = 0
    for each in _family(pid):
        used = sum(int(_read(task / "schedstat").partition(" ")[0] or 0) for task in _tasks(each))
        if _analyses(each):
            analysis += used
        else:
            proxy += used
    return Cpu(proxy_ns=proxy, analysis_ns=analysis)


def memory_kib(pid: int) -> int:
    """Resident memory of a process and its descendants."""
    return sum(map(resident_kib, _family(pid)))


def resident_kib(pid: int) -> int:
    """Resident memory of one process; 0 if it has ended."""
    found = re.search(r"^VmRSS:\s*(\d+)", _read(_PROC / str(pid) / "status"), re.MULTILINE)
    return int(found[1]) if found else 0


def descriptors(pid: int) -> int:
    """How many files and sockets one process has open; 0 if it has ended."""
    try:
        return sum(1 for _ in (_PROC / str(pid) / "fd").iterdir())
    except OSError:
        return 0


def analysts(pid: int) -> tuple[int, ...]:
    """Descendants that analyse what a recorder records."""
    return tuple(each for each in _family(pid) if _analyses(each))


def _analyses(pid: int) -> bool:
    return "deltatape.live" in _read(_PROC / str(pid) / "cmdline")


def _family(pid: int) -> Iterator[int]:
    waiting = [pid]
    while waiting:
        each = waiting.pop()
        yield each
        for task in _tasks(each):
            waiting += map(int, _read(task / "children").split())


def _tasks(pid: int) -> tuple[Path, ...]:
    try:
        return tuple((_PROC / str(pid) / "task").iterdir())
    except OSError:
        return ()


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it has ended meanwhile
        return ""


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens at now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def is_alive(process: subprocess.Popen[str], seconds: float) -> bool:
    """Whether it still runs, `seconds` from now."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


@contextlib.contextmanager
def started(
    command: Sequence[str | Path], folder: Path, environment: Mapping[str, str], *, log: str
) -> Iterator[subprocess.Popen[str]]:
    """A process whose output goes to `folder / log`; asked to end at the end, then killed."""
    with (folder / log).open("w") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=folder,
            env={**outside(), **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            text=True,
        )
        try:
            yield process
        finally:
            end(process)


def end(process: subprocess.Popen[str]) -> None:
    """Ask a process to end as Ctrl-C does; kill it if it does not."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        if is_alive(process, END_S):
            process.kill()
            process.wait()


@contextlib.contextmanager
def serving(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Iterator[int]:
    """A program of ours that listens, prints its port, and ends with its standard input."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        if is_alive(process, END_S):
            end(process)
        process.stdout.close()


def outside() -> dict[str, str]:
    """This process's environment without proxies, since nothing may leave the machine.

    Nor does it keep Python from writing bytecode: as installed, nothing is compiled at a start.
    """
    kept = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return kept
