"""Runs a Python program and times the turns of its event loop: a program.

    timed_loop.py FILE -m MODULE ARGUMENT...
    timed_loop.py FILE PROGRAM ARGUMENT...

A turn lasts from the moment epoll tells the loop what has happened to the moment when the loop
waits again: meanwhile no other stream goes on. The program itself is not touched: what it finds as
`select.epoll` looks at the clocks around each call, which costs some microseconds a turn. The
turns are counted in FILE, which `turns` reads while the program runs.
"""

import mmap
import runpy
import select
import sys
import time  # noqa: TID251 - it times
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_STEP_NS = 10_000
_STEPS = 20_000
"""Turns are told apart by their length in steps; longer ones count as 0.2 s."""
_PERCENTILE = 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """How many turns there were of each length, in steps: by the clock, and in CPU time.

    The CPU time of the loop's thread does not count how long other processes, or other threads of
    the program, kept it from running.
    """

    wall: Sequence[int]
    cpu: Sequence[int]

    def since(self, earlier: "Turns") -> "Turns":
        """Return the turns that `earlier` had not counted."""
        return Turns(
            wall=[now - then for now, then in zip(self.wall, earlier.wall, strict=True)],
            cpu=[now - then for now, then in zip(self.cpu, earlier.cpu, strict=True)],
        )


def turns(file: Path) -> Turns:
    """What has been counted so far."""
    found = memoryview(file.read_bytes()).cast("Q").tolist()
    return Turns(wall=found[:_STEPS], cpu=found[_STEPS:])


def longest_us(counted: Sequence[int]) -> tuple[float, float]:
    """The 99th percentile of the turns and the longest one, each rounded up to a step."""
    rest = sum(counted) * (1 - _PERCENTILE)
    reached = [step for step, number in enumerate(counted, 1) if number]
    percentile = longest = reached[-1] if reached else 0
    for step in reversed(reached):
        if rest < counted[step - 1]:
            percentile = step
            break
        rest -= counted[step - 1]
    return percentile * _STEP_NS / 1000, longest * _STEP_NS / 1000


class _TimedEpoll:
    """A `select.epoll` that counts what its user does between two calls."""

    def __init__(self, real: select.epoll, wall: memoryview, cpu: memoryview) -> None:
        self._real = real
        self._wall, self._cpu = wall, cpu
        self._wall_ns = self._cpu_ns = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def poll(self, timeout: float | None = None, maxevents: int = -1) -> list[tuple[int, int]]:
        """See `select.epoll`."""
        wall_ns, cpu_ns = time.monotonic_ns(), time.thread_time_ns()
        if self._wall_ns:
            self._wall[_step(wall_ns - self._wall_ns)] += 1
            self._cpu[_step(cpu_ns - self._cpu_ns)] += 1
        events = self._real.poll(timeout, maxevents)
        self._wall_ns, self._cpu_ns = time.monotonic_ns(), time.thread_time_ns()
        return events


def _step(ns: int) -> int:
    return min(ns // _STEP_NS, _STEPS - 1)


class _TimedEpolls:
    """What the program finds as `select.epoll`."""

    def __init__(self, file: Path) -> None:
        self._real = select.epoll
        with file.open("w+b") as shared:
            shared.truncate(2 * _STEPS * 8)
            counted = memoryview(mmap.mmap(shared.fileno(), 0)).cast("Q")
        self._wall, self._cpu = counted[:_STEPS], counted[_STEPS:]

    def __call__(self, sizehint: int = -1, flags: int = 0) -> _TimedEpoll:
        return _TimedEpoll(self._real(sizehint, flags), self._wall, self._cpu)

    def fromfd(self, fd: int) -> _TimedEpoll:
        return _TimedEpoll(self._real.fromfd(fd), self._wall, self._cpu)


def main() -> None:
    """Run the program."""
    own, file, *command = sys.argv
    sys.path.remove(str(Path(own).resolve().parent))
    select.epoll = _TimedEpolls(Path(file))  # type: ignore[assignment,misc]
    if command[0] == "-m":
        sys.argv = command[1:]
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = command
        runpy.run_path(command[0], run_name="__main__")


if __name__ == "__main__":
    main()
