"""What happens when a person presses Ctrl-C and nothing comes of it.

A child that prints something or ends has answered, and may be asked again as often as one likes: a
console that has a new prompt for each Ctrl-C goes on. One that does neither for `ANSWER_S` is said
to be waited for, and how to get out. Of Ctrl-Cs in a row, each within `ROW_S` of the one before and
none answered, the third has the child sent SIGTERM once it has been silent for `ANSWER_S`, and one
more, within `KILL_S` of that, kills it.

Where we do not see what the child prints, it may have answered: then nothing is sent at all, and
the third in a row tells how to send SIGTERM.
"""

import asyncio
import contextlib
import math
import os
import signal
from collections.abc import Callable

ANSWER_S = 1.0
"""So long a child may take to answer."""
NOTICE_S = 0.25
"""So long we may take to notice a key; the child may have answered it by then."""
ROW_S = 5.0
ROW = 3
KILL_S = 10.0

_MORE = {1: "Ctrl-C twice more sends it SIGTERM", 2: "Ctrl-C once more sends it SIGTERM"}


class Patience:
    """With one child, from its start."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        name: str,
        tell: Callable[[str], None],
        printed: Callable[[], float | None],
    ) -> None:
        """Start with it.

        Args:
            process: the child.
            name: what it is called.
            tell: gets lines for the user.
            printed: when it has last printed something, in the loop's time; None where that is not
                known.
        """
        self._loop = asyncio.get_running_loop()
        self._process = process
        self._who = f"{name} (pid {process.pid})"
        self._tell = tell
        self._printed = printed
        self._row = 0
        self._last_s = -math.inf
        self._answer_from_s = -math.inf
        self._is_told = False
        self._killing_until_s: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def pressed(self) -> None:
        """The child has been sent SIGINT by a key."""
        now = self._loop.time()
        if self._killing_until_s is not None and now <= self._killing_until_s:
            self._tell(f"{self._who} is killed")
            _kill(self._process)
            return
        if now - self._last_s > ROW_S or self._has_answered():
            self._row, self._is_told = 0, False
        self._row += 1
        self._wait(self._unanswered, NOTICE_S)

    def passed_on(self) -> None:
        """The child has been sent SIGINT or SIGTERM by us, and the next one will kill it."""
        self._wait(self._not_ended, 0.0)

    def end(self) -> None:
        """The child has ended."""
        if self._timer is not None:
            self._timer.cancel()

    def _wait(self, then: Callable[[], None], notice_s: float) -> None:
        self.end()
        self._last_s = self._loop.time()
        self._answer_from_s = self._last_s - notice_s
        self._timer = self._loop.call_later(ANSWER_S, then)

    def _has_answered(self) -> bool:
        printed_s = self._printed()
        if self._process.returncode is not None:
            return True
        return printed_s is not None and printed_s >= self._answer_from_s

    def _unanswered(self) -> None:
        if self._has_answered():
            return
        if self._printed() is None:
            if self._row == ROW:
                pid = self._process.pid
                self._tell(f"waiting for {self._who} to end; `kill {pid}` sends it SIGTERM")
        elif self._row >= ROW:
            self._terminate()
        elif not self._is_told:
            self._is_told = True
            self._tell(f"waiting for {self._who} to end; {_MORE[self._row]}")

    def _terminate(self) -> None:
        self._killing_until_s = self._loop.time() + KILL_S
        self._tell(
            f"{self._who} has not answered and is sent SIGTERM;"
            f" Ctrl-C again within {KILL_S:g} s kills it"
        )
        send(self._process, signal.SIGTERM)

    def _not_ended(self) -> None:
        if not self._has_answered() and not self._is_told:
            self._is_told = True
            self._tell(f"waiting for {self._who} to end; SIGINT or SIGTERM again kills it")


def send(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Send a signal to a child that has not been seen to end."""
    # Not by Process.send_signal: it asks for the exit code first, which asyncio then misses.
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, number)


def is_apart(process: asyncio.subprocess.Process) -> bool:
    """Whether a child has moved to another process group than ours."""
    with contextlib.suppress(ProcessLookupError):
        return os.getpgid(process.pid) != os.getpgrp()
    return False


def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill a child, and the group if it has made one: nobody else is left who could end that."""
    with contextlib.suppress(ProcessLookupError):
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            os.kill(process.pid, signal.SIGKILL)
