"""Has a function done on many items by processes of this machine, in the order of the items.

Workers are started with `spawn`, so they inherit nothing, and end with their parent, however it
ends. Each has only a few items in progress, so that results do not pile up behind a large one.
"""

import contextlib
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from deltatape.errors import DeltatapeError
from deltatape.garbage import YOUNG_OBJECTS, collect_seldom, collecting_seldom

if TYPE_CHECKING:
    from concurrent.futures import Future

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_WORTH_BYTES = 8_000_000
"""Tapes of fewer bytes are read before another process would have begun."""
_AHEAD = 4
"""Items under way for each worker."""


def cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def worthwhile(tapes: Sequence[str | Path]) -> int:
    """Return how many processes are worth starting for tapes of this size: small ones, none."""
    return min(cores(), sum(map(_size, tapes)) // _WORTH_BYTES)


def _size(tape: str | Path) -> int:
    try:
        return Path(tape).stat().st_size
    except (OSError, ValueError):
        return 0


def in_order(
    function: Callable[[_Item], _Result],
    items: Sequence[_Item],
    processes: int,
    *,
    doing: str,
    here: Callable[[_Item], bool] = lambda _: False,
) -> Iterator[_Result]:
    """Yield what a function returns for items, in their order.

    Args:
        function: can be pickled.
        items: those of workers can be pickled.
        processes: how many workers; up to 1: this process does it.
        doing: what a worker does, for an error: `checks tapes`.
        here: whether this process does an item in any case.

    Raises:
        DeltatapeError: a worker was ended.
    """
    if processes > 1:
        yield from _by_workers(function, items, processes, doing, here)
        return
    with collecting_seldom(YOUNG_OBJECTS):
        yield from map(function, items)


def _by_workers(
    function: Callable[[_Item], _Result],
    items: Sequence[_Item],
    processes: int,
    doing: str,
    here: Callable[[_Item], bool],
) -> Iterator[_Result]:
    # Few commands need these.
    import multiprocessing  # noqa: PLC0415
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415
    from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415

    executor = ProcessPoolExecutor(
        processes, multiprocessing.get_context("spawn"), initializer=_prepare
    )
    work = partial(_leaving_nothing, function)
    waiting: deque[tuple[_Item, Future[_Result] | None]] = deque()

    def result() -> _Result:
        item, future = waiting.popleft()
        return function(item) if future is None else future.result()

    try:
        for item in items:
            with _interrupted_later():
                waiting.append((item, None if here(item) else executor.submit(work, item)))
            if len(waiting) > processes * _AHEAD:
                yield result()
        while waiting:
            yield result()
    except BrokenProcessPool:
        raise DeltatapeError(f"a process that {doing} was ended; try --jobs 1") from None
    except BaseException:
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _interrupted_later() -> Iterator[None]:
    """Defer Ctrl-C until the end: a worker that is started only in part prints a traceback."""
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupted = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if interrupted.is_set():
            signal.raise_signal(signal.SIGINT)


class _Ended(BaseException):
    """This worker is to end."""


class _Ending:
    """Ends this worker on a signal: at once, or once what it does has removed unfinished files."""

    def __init__(self) -> None:
        self.busy = False
        self._ended = False

    def __call__(self, *_: object) -> None:
        if not self.busy:
            os._exit(1)
        if not self._ended:  # Ctrl-C brings two signals
            self._ended = True
            raise _Ended


_ending = _Ending()


def _prepare() -> None:
    from deltatape.scan.engine import follow_parent  # noqa: PLC0415 - few commands need it

    collect_seldom(YOUNG_OBJECTS)
    follow_parent()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _ending)


def _leaving_nothing(function: Callable[[_Item], _Result], item: _Item) -> _Result:
    """Do an item in a worker."""
    try:
        try:
            _ending.busy = True
            return function(item)
        finally:
            _ending.busy = False
    except _Ended:
        pass  # dropped here, its traceback closes generators, which remove their files
    os._exit(1)
