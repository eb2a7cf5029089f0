"""Runs a function on many items: in processes of this machine, or on a Dask cluster.

Engines keep a few items in progress for each worker, so that memory does not grow with their
number. If a worker dies, another one repeats its items; an item with which workers die each time
comes back as `Lost`.
"""

import contextlib
import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, TypeVar

from deltatape.errors import UsageError

if TYPE_CHECKING:
    from distributed import Client

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_AHEAD = 2
"""Items in progress for each worker: a current one and the next one."""
_CONNECT_S = 30


class Lost(NamedTuple):
    """Stands in for a result: every worker that had the item died."""

    why: str


class Engine(Protocol):
    """Runs a function on many items."""

    def map(
        self, function: Callable[[_Item], _Result], items: Iterable[_Item]
    ) -> Iterator[tuple[_Item, _Result | Lost]]:
        """Yield each item with its result, in the order of completion.

        Args:
            function: must be picklable, and return the same for an item each time.
            items: must be picklable.
        """


class LocalEngine:
    """Processes of this machine; with one, this process itself.

    As a context manager it keeps its processes from one `map` to the next, since each takes half a
    second to start; otherwise they end with the `map` that started them.

    Args:
        processes: how many, >= 1.
    """

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._keeps = False
        self._executor: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        self._keeps = True
        return self

    def __exit__(self, *_: object) -> None:
        self._keeps = False
        self._end()

    def _end(self) -> None:
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(cancel_futures=True)

    def map(
        self, function: Callable[[_Item], _Result], items: Iterable[_Item]
    ) -> Iterator[tuple[_Item, _Result | Lost]]:
        if self._processes == 1:
            for item in items:
                yield item, function(item)
            return
        left = iter(items)
        while True:
            again: list[_Item] = []
            yield from self._until_one_dies(function, left, again)
            if not again:
                return
            # Which of them it died of shows only if each has a process of its own.
            for item in again:
                yield item, _alone(function, item)

    def _until_one_dies(
        self,
        function: Callable[[_Item], _Result],
        items: Iterator[_Item],
        again: list[_Item],
    ) -> Iterator[tuple[_Item, _Result | Lost]]:
        """Yield results; if a process dies, put the items in progress into `again`."""
        executor = self._executor = self._executor or _started(self._processes)
        running: dict[Future[_Result], _Item] = {}

        def submit(item: _Item) -> None:
            try:
                running[executor.submit(function, item)] = item
            except BrokenProcessPool:
                again.append(item)

        try:
            for item in itertools.islice(items, self._processes * _AHEAD):
                submit(item)
            while running:
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for each in done:
                    item = running.pop(each)
                    try:
                        result = each.result()
                    except BrokenProcessPool:
                        again.append(item)
                        continue
                    yield item, result
                    for following in itertools.islice(items, 0 if again else 1):
                        submit(following)
        except BaseException:
            _terminate()
            self._end()
            raise
        if again or not self._keeps:
            self._end()


def _alone(function: Callable[[_Item], _Result], item: _Item) -> _Result | Lost:
    executor = _started(1)
    try:
        return executor.submit(function, item).result()
    except BrokenProcessPool:
        return Lost("the process that read it was ended, twice")
    except BaseException:
        _terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


def _started(processes: int) -> ProcessPoolExecutor:
    """Return an executor, which starts its processes when they are needed."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(processes, context, initializer=follow_parent)


def _terminate() -> None:
    for process in multiprocessing.active_children():
        process.terminate()


def follow_parent() -> None:
    """Make this process end with its parent, silently on Ctrl-C, and at once on SIGTERM.

    A handler that something else installed, such as coverage's, may wait for a lock that the
    interrupted code holds: then the process never ends, nor does the program that waits for it.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        with contextlib.suppress(OSError):
            parent.join()
        os._exit(1)


class DaskEngine:
    """Workers of a Dask cluster.

    Args:
        client: the cluster's client.
    """

    def __init__(self, client: "Client") -> None:
        self._client = client

    def map(
        self, function: Callable[[_Item], _Result], items: Iterable[_Item]
    ) -> Iterator[tuple[_Item, _Result | Lost]]:
        from distributed import as_completed  # noqa: PLC0415 - an extra, and slow to import
        from distributed.scheduler import KilledWorker  # noqa: PLC0415

        left = iter(items)
        tried: set[str] = set()
        running: dict[str, _Item] = {}
        results = as_completed(loop=self._client.loop)

        def submit(item: _Item) -> str:
            future = self._client.submit(function, item, pure=False)
            running[future.key] = item
            results.add(future)
            return str(future.key)

        def fill() -> None:
            room = max(1, sum(self._client.nthreads().values())) * _AHEAD - len(running)
            for item in itertools.islice(left, max(room, 0)):
                submit(item)

        fill()
        for future in results:
            item = running.pop(future.key)
            try:
                result: _Result | Lost = future.result()
            except KilledWorker as error:
                if future.key not in tried:
                    # It may only have been on workers that died of others.
                    tried.add(submit(item))
                    continue
                result = Lost(f"the workers that read it died: {error}".partition("\n")[0])
            fill()
            yield item, result


def _connected(scheduler: str) -> "Client":
    """Return a client of a cluster.

    Raises:
        UsageError: nothing answers there, or it is no address.
    """
    from distributed import Client  # noqa: PLC0415 - an extra

    class OwnClient(Client):  # type: ignore[misc]  # Dask has no types
        """Is closed if it cannot connect: else its thread keeps the program from ending."""

        def start(self, **kwargs: object) -> None:
            try:
                super().start(**kwargs)
            except BaseException:  # Ctrl-C, too
                self.close()
                raise

    try:
        client: Client = OwnClient(scheduler, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise UsageError(f"--scheduler {scheduler}: {error}") from None
    return client


@contextlib.contextmanager
def dask_engine(scheduler: str | None, workers: int) -> Iterator[DaskEngine]:
    """Connect to a cluster, or start one on this machine while it is used.

    Args:
        scheduler: its address; None: start one.
        workers: how many to start.

    Raises:
        UsageError: Dask is not installed, or nothing answers there.
    """
    try:
        from distributed import Client, LocalCluster  # noqa: PLC0415 - an extra
    except ImportError:
        raise UsageError(MISSING) from None
    if scheduler is not None:
        with _connected(scheduler) as client:
            yield DaskEngine(client)
        return
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield DaskEngine(client)


MISSING = 'this needs more packages: pip install "deltatape[fleet]"'
