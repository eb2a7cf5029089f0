"""Worker processes that check tapes.

Strategy: each worker is a process of its own (`spawn`: nothing of ours is inherited) and follows
us, however we end: a pipe that nobody writes to any more would keep it waiting for ever. Only a few
tapes per worker are under way, so that reports do not pile up behind a large one.
"""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeAlias

from deltatape.cli.parallel_check import STDIN, collect_seldom
from deltatape.diagnose.check_tape import TapeReport
from deltatape.errors import DeltatapeError

_AHEAD = 4
"""Tapes under way for each worker."""

Check: TypeAlias = Callable[[str], TapeReport]
"""Makes a report of what a name means."""


def by_workers(
    names: Sequence[str | TapeReport], check: Check, processes: int
) -> Iterator[TapeReport]:
    """Yield the reports for names, and reports that exist already, in order.

    Args:
        names: what to check; what comes from stdin is checked here.
        check: to be called in a worker.
        processes: how many workers.
    """
    executor = ProcessPoolExecutor(
        processes, multiprocessing.get_context("spawn"), initializer=_follow
    )
    waiting: deque[tuple[str | TapeReport, Future[TapeReport] | None]] = deque()
    try:
        for name in names:
            if isinstance(name, TapeReport) or name == STDIN:
                waiting.append((name, None))
            else:
                waiting.append((name, executor.submit(check, name)))
            if len(waiting) > processes * _AHEAD:
                yield _result(*waiting.popleft(), check)
        while waiting:
            yield _result(*waiting.popleft(), check)
    except BrokenProcessPool:
        raise DeltatapeError("a process that checks tapes was ended; try --jobs 1") from None
    except BaseException:
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


def _result(name: str | TapeReport, future: Future[TapeReport] | None, check: Check) -> TapeReport:
    if future is not None:
        return future.result()
    return name if isinstance(name, TapeReport) else check(name)


def _follow() -> None:
    """End with the parent process, silently on Ctrl-C, and at once on SIGTERM.

    A handler that something else installed, such as coverage's, may wait for a lock that the
    interrupted code holds: then the worker never ends, nor does the program that waits for it.
    """
    collect_seldom()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        with contextlib.suppress(OSError):
            parent.join()
        os._exit(1)
