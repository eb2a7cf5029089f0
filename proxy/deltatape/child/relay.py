r"""Passes signals on to the child, unless it has them already.

Ctrl-C and Ctrl-\ go from the terminal to its whole foreground process group, which the child is in
as we are: then it is the child that decides, and we wait for it, with `patience`. A child that has
moved to a group of its own, as timeout(1) does, gets them from us. Where we are not in the
foreground (CI, systemd, another program's child) only we get them, and pass them on, as we do with
the others. Ctrl-Z stops us together with the child, since we leave it alone.

A signal that was ignored when we were started (`nohup`) is left ignored, and the child inherits it.
"""

import asyncio
import os
import signal
from collections.abc import Callable

from deltatape.child.patience import Patience, is_apart, send

_BY_KEY = frozenset({signal.SIGINT, signal.SIGQUIT})
_ENDING = frozenset({signal.SIGINT, signal.SIGTERM})
_LAST = _ENDING | {signal.SIGHUP, signal.SIGQUIT}
"""After which an application is about to end, unless it reads its settings again (SIGHUP)."""
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


class Relay:
    """From its making to its end, signals are the child's."""

    def __init__(
        self, hurry: Callable[[], None], echoed: Callable[[], None], ending: Callable[[], None]
    ) -> None:
        """Start to catch.

        Args:
            hurry: called when one asks for the end and the child has ended already.
            echoed: called when the user's terminal has shown a key that is a signal.
            ending: called when one asks for the end, or tells that the terminal is gone.
        """
        self._loop = asyncio.get_running_loop()
        self._hurry = hurry
        self._echoed = echoed
        self._ending = ending
        self._process: asyncio.subprocess.Process | None = None
        self._patience: Patience | None = None
        self._early: list[signal.Signals] = []
        self._asked: float | None = None
        self._caught = [n for n in _PASSED_ON if signal.getsignal(n) is not signal.SIG_IGN]
        for number in self._caught:
            self._loop.add_signal_handler(number, self._catch, number)

    def attach(self, process: asyncio.subprocess.Process, patience: Patience) -> None:
        """The child is there; it gets what came before it."""
        self._process, self._patience = process, patience
        for number in self._early:
            send(process, number)

    def end(self) -> None:
        """From now on signals do what they did before the relay."""
        for number in self._caught:
            self._loop.remove_signal_handler(number)
        if self._patience is not None:
            self._patience.end()

    def _catch(self, number: signal.Signals) -> None:
        if number in _LAST:
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
        self, process: asyncio.subprocess.Process, patience: Patience, number: signal.Signals
    ) -> None:
        self._echoed()
        if is_apart(process):  # else the terminal has sent it to the child as well
            send(process, number)
        if number == signal.SIGINT:
            patience.pressed()

    def _insists(self) -> bool:
        """Whether an end was asked for before."""
        now = self._loop.time()
        if self._asked is None:
            self._asked = now
        return now - self._asked >= PATIENCE_S


def in_foreground() -> bool:
    """Whether keys of the controlling terminal send signals to our process group."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    finally:
        os.close(terminal)
