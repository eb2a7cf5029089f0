"""Checks many tapes on all cores; reports in the order of the arguments.

Each task is one tape. A few small tapes are checked in this process, because starting workers would
take longer. Workers are started with `spawn`, so they inherit nothing, and end with their parent,
however it ends. Each worker has only a few tapes in progress, so that reports do not pile up behind
a large one.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from deltatape.cli.tapes import is_tape, named
from deltatape.diagnose.check_tape import TapeReport, check_exchanges
from deltatape.errors import DeltatapeError
from deltatape.garbage import YOUNG_OBJECTS, collect_seldom, collecting_seldom
from deltatape.model.rule_settings import Settings
from deltatape.model.tape_summary import LogEntry
from deltatape.store.listing import locate
from deltatape.store.reader import Tape
from deltatape.store.shards import ShardedTape, open_recording

if TYPE_CHECKING:
    from concurrent.futures import Future

STDIN = "-"
_WORTH_BYTES = 8_000_000
"""Tapes of fewer bytes are checked before another process would have begun."""
_AHEAD = 4
"""Tapes under way for each worker."""


def check_one(name: str, settings: Settings, *, excerpts: bool = True) -> TapeReport:
    """Check what `name` refers to; if it cannot be read, the report says so.

    Args:
        name: as on the command line, but for folders of tapes.
        settings: of the rules.
        excerpts: whether the report shows the wire.
    """
    try:
        return _checked(name, settings, excerpts=excerpts)
    except DeltatapeError as error:
        return TapeReport(name=name, problem=str(error))
    except OSError as error:  # gone or changed while it was read
        return TapeReport(name=name, problem=f"{name}: {error.strerror or error}")


def _checked(name: str, settings: Settings, *, excerpts: bool) -> TapeReport:
    if name == STDIN:
        return _imported(name, settings, excerpts=excerpts)
    place = locate(name)
    if not is_tape(place.path):
        return _imported(name, settings, excerpts=excerpts)
    tape = open_recording(place.path)
    if place.exchange is None and _is_clean(tape, settings):
        return TapeReport(name=str(place.path), exchanges=tuple(sorted(tape.numbers())))
    logs = _logs(tape)
    report = check_exchanges(
        tape.path,
        tape.exchanges(),
        settings,
        place.exchange,
        logs,
        excerpts=excerpts,
        alone=isinstance(tape, ShardedTape) and bool(tape.missing),
    )
    if place.exchange is not None and not report.exchanges:
        tape[place.exchange]  # says which there are
    if isinstance(tape, ShardedTape):
        located = (
            each._replace(finding=tape.on_its_tape(each.finding)) for each in report.reported
        )
        shards = frozenset(each.path for each in tape.shards)
        report = replace(report, reported=tuple(located), shards=shards).noted(tape.note)
    if tape.torn and not tape.recording:
        return report.noted(f"{tape.path}: left out a truncated last record of {tape.torn} bytes")
    return report


def _is_clean(tape: Tape, settings: Settings) -> bool:
    """Check whether the index of a sealed tape says that these rules find nothing on it."""
    if not tape.is_sealed or tape.torn:
        return False
    from deltatape.store.rule_set import rule_set  # noqa: PLC0415 - few tapes are sealed
    from deltatape.store.sealed import SealedTape  # noqa: PLC0415

    assert isinstance(tape, SealedTape)
    table = tape.sealed.table
    clean = table.summary is not None and table.summary.findings == 0
    return clean and table.rules == rule_set(settings)


def _logs(tape: Tape) -> Iterator[LogEntry]:
    """Yield the app's output; reads the tape only when iterated."""
    yield from tape.logs


def _imported(name: str, settings: Settings, *, excerpts: bool) -> TapeReport:
    source = named(name)
    report = check_exchanges(
        source.name, source.exchanges, settings, source.number, excerpts=excerpts
    )
    unknown = [f"#{each.number}" for each in source.exchanges if each.response is None]
    if not unknown:
        return report
    return report.noted(f"{source.name}: no response of {', '.join(unknown)} is in the file")


def check_all(
    names: Sequence[str | TapeReport],
    settings: Settings,
    jobs: int | None,
    *,
    excerpts: bool = True,
) -> Iterator[TapeReport]:
    """Check everything, in order.

    Args:
        names: what to check, and reports that exist already.
        settings: of the rules.
        jobs: how many processes; None: as many as are worth starting.
        excerpts: whether the report shows the wire.
    """
    check = partial(check_one, settings=settings, excerpts=excerpts)
    files = [name for name in names if isinstance(name, str) and name != STDIN]
    processes = min(jobs or _worthwhile(files), len(files))
    if processes > 1:
        yield from _by_workers(names, check, processes)
        return
    with collecting_seldom(YOUNG_OBJECTS):
        for name in names:
            yield name if isinstance(name, TapeReport) else check(name)


def _worthwhile(names: Sequence[str]) -> int:
    """Return how many processes are worth starting."""
    return min(_cores(), sum(map(_size, names)) // _WORTH_BYTES)


def _cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _size(name: str) -> int:
    try:
        return Path(name).stat().st_size
    except (OSError, ValueError):
        return 0


def _by_workers(
    names: Sequence[str | TapeReport], check: Callable[[str], TapeReport], processes: int
) -> Iterator[TapeReport]:
    """Yield the reports for names, and reports that exist already, in order.

    Args:
        names: what to check; what comes from stdin is checked here.
        check: makes the report of a name; called in a worker.
        processes: how many workers.
    """
    # Few checks need these.
    import multiprocessing  # noqa: PLC0415
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415
    from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415

    executor = ProcessPoolExecutor(
        processes, multiprocessing.get_context("spawn"), initializer=_prepare
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


def _result(
    name: str | TapeReport,
    future: "Future[TapeReport] | None",
    check: Callable[[str], TapeReport],
) -> TapeReport:
    if future is not None:
        return future.result()
    return name if isinstance(name, TapeReport) else check(name)


def _prepare() -> None:
    from deltatape.scan.engine import follow_parent  # noqa: PLC0415 - few checks need it

    collect_seldom(YOUNG_OBJECTS)
    follow_parent()
