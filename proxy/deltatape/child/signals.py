r"""Passes signals on to the child, unless the terminal has sent them already.

Ctrl-C and Ctrl-\ go from the terminal to its whole foreground process group, including the child:
the child decides, and we wait for it. A child that moved to its own group, as timeout(1) does, gets
them from us. Outside the foreground (CI, systemd, another program's child) only we get signals, and
pass them on. Ctrl-Z is not caught: it stops us together with the child.

A signal that was ignored when we were started (`nohup`) is left ignored, and the child inherits it.
"""

import asyncio
import contextlib
import math
import os
import signal
from collections.abc import Callable

_BY_KEY = frozenset({signal.SIGINT, signal.SIGQUIT})
_ENDING = frozenset({signal.SIGINT, signal.SIGTERM})
_LAST = _ENDING | {signal.SIGHUP, signal.SIGQUIT}
"""Signals that usually end an application; one that rereads its settings at SIGHUP goes on."""
_PASSED_ON = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
PATIENCE_S = 0.5
"""Signals this close together are one wish: timeout(1) sends each both to us and to our group."""


# What happens when a person presses Ctrl-C and nothing comes of it.
#
# A child that prints something or ends has answered, and may be asked again as often as one likes:
# a console that has a new prompt for each Ctrl-C goes on. One that does neither for `ANSWER_S` is
# said to be waited for, and how to get out. Of Ctrl-Cs in a row, each within `ROW_S` of the one
# before and none answered, the third has the child sent SIGTERM once it has been silent for
# `ANSWER_S`, and one more, within `KILL_S` of that, kills it.
#
# Where we do not see what the child prints, it may have answered: then nothing is sent at all, and
# the third in a row tells how to send SIGTERM.

ANSWER_S = 1.0
"""How long a child may take to answer."""
NOTICE_S = 0.25
"""How late we may notice a key; the child may have answered it by then."""
ROW_S = 5.0
ROW = 3
KILL_S = 10.0
_MORE = {1: "Ctrl-C twice more sends it SIGTERM", 2: "Ctrl-C once more sends it SIGTERM"}


class InterruptEscalation:
    """Escalates repeated interrupts of one child."""

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
        """Note that a key sent SIGINT to the child."""
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
        """Note that we sent SIGINT or SIGTERM to the child; the next one kills it."""
        self._wait(self._not_ended, 0.0)

    def end(self) -> None:
        """Note that the child ended."""
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
    """Send a signal to a child that is not known to have ended."""
    # Not by Process.send_signal: it asks for the exit code first, which asyncio then misses.
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, number)


def is_apart(process: asyncio.subprocess.Process) -> bool:
    """Check whether a child has moved to another process group."""
    with contextlib.suppress(ProcessLookupError):
        return os.getpgid(process.pid) != os.getpgrp()
    return False


def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill a child, and the process group it created, if any."""
    with contextlib.suppress(ProcessLookupError):
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            os.kill(process.pid, signal.SIGKILL)


class SignalRelay:
    """Directs signals to the child, from creation to `end`."""

    def __init__(
        self,
        hurry: Callable[[], None],
        echoed: Callable[[], None],
        ending: Callable[[], None] | None,
    ) -> None:
        """Start catching signals.

        Args:
            hurry: called when a signal asks for the end after the child has ended.
            echoed: called when the user's terminal echoed a signal key, such as `^C`.
            ending: called when a signal asks for the end or reports a closed terminal.
        """
        self._loop = asyncio.get_running_loop()
        self._hurry = hurry
        self._echoed = echoed
        self._ending = ending
        self._process: asyncio.subprocess.Process | None = None
        self._patience: InterruptEscalation | None = None
        self._early: list[signal.Signals] = []
        self._asked: float | None = None
        self._caught = [n for n in _PASSED_ON if signal.getsignal(n) is not signal.SIG_IGN]
        for number in self._caught:
            self._loop.add_signal_handler(number, self._catch, number)

    def attach(self, process: asyncio.subprocess.Process, patience: InterruptEscalation) -> None:
        """Set the child, and send it earlier signals."""
        self._process, self._patience = process, patience
        for number in self._early:
            send(process, number)

    def end(self) -> None:
        """Restore the previous signal handling."""
        for number in self._caught:
            self._loop.remove_signal_handler(number)
        if self._patience is not None:
            self._patience.end()

    def _catch(self, number: signal.Signals) -> None:
        if self._ending is not None and number in _LAST:
            self._ending()
        if self._process is None or self._patience is None:
            self._early.append(number)
        elif self._process.returncode is not None:
            if number in _ENDING:
                self._hurry()
        elif number in _BY_KEY and in_foreground():
            self._key(self._process, self._patience, number)
        elif number in _ENDING and self._insists():
            send(self._process, signal.SIGKILL)
        else:
            send(self._process, number)
            if number in _ENDING:
                self._patience.passed_on()

    def _key(
        self,
        process: asyncio.subprocess.Process,
        patience: InterruptEscalation,
        number: signal.Signals,
    ) -> None:
        self._echoed()
        if is_apart(process):  # else the terminal has sent it to the child as well
            send(process, number)
        if number == signal.SIGINT:
            patience.pressed()

    def _insists(self) -> bool:
        """Check whether an end was requested before."""
        now = self._loop.time()
        if self._asked is None:
            self._asked = now
        return now - self._asked >= PATIENCE_S


def in_foreground() -> bool:
    """Check whether terminal keys send signals to our process group."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    finally:
        os.close(terminal)


# Running a shell until a signal asks for its end.

_ASKING = {signal.SIGINT: "sigint", signal.SIGTERM: "sigterm", signal.SIGHUP: "sighup"}


class Signals:
    """Waits for SIGINT, SIGTERM or SIGHUP; a second one calls `hurry`, if that is set.

    A SIGHUP that was ignored at the start, as by nohup(1), stays ignored.
    """

    def __init__(self, hurry: Callable[[], None] | None = None) -> None:
        self._hurry = hurry
        self._first: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        loop = asyncio.get_running_loop()
        for number, name in _ASKING.items():
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._caught, name)

    def _caught(self, name: str) -> None:
        if not self._first.done():
            self._first.set_result(name)
        elif self._hurry is not None:
            self._hurry()

    async def wait(self) -> str:
        """Return the name of the first signal, such as `sigint`."""
        return await self._first
