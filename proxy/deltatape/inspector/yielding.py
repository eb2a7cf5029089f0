"""Lets a process of the page give way while it computes, so that no stream waits for the page.

Linux lets a process that computes run until the end of its time slice, which lasts some
milliseconds, even if another one has been woken meanwhile, such as a recorder by a delta. Niceness
does not change that: it decides who gets how much time, not who waits. So the processor is offered
to the others again and again, which costs some percent of the time where nobody takes it.

Beside programs that always compute, offers come seldom: who gives up its slices faster than it gets
them never runs again.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from deltatape.clock import SystemClock

INTERVAL_S = 0.00025
"""How long a stream waits for the processor at most, unless one call of C code takes longer."""


@contextmanager
def yielding() -> Iterator[None]:
    """Offer the processor to others while this computes; only in the main thread of a process."""
    over = False

    def offer(_signal: int, _frame: object) -> None:
        if over:
            return
        began_ns = SystemClock.now_ns()
        os.sched_yield()
        taken_ns = SystemClock.now_ns() - began_ns
        # Once, not at intervals: the next offer must not interrupt this one.
        signal.setitimer(signal.ITIMER_REAL, max(INTERVAL_S, taken_ns / 1e9))

    signal.signal(signal.SIGALRM, offer)
    signal.setitimer(signal.ITIMER_REAL, INTERVAL_S)
    try:
        yield
    finally:
        over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
