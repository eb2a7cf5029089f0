"""Checks many tapes on all cores; reports in the order of the arguments.

Strategy: a tape is the unit of work, and no process is started that does not pay: a few small tapes
are checked here.
"""

import contextlib
import gc
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from deltatape.cli.tapes import is_tape, named
from deltatape.diagnose.check_tape import TapeReport, check_exchanges
from deltatape.errors import DeltatapeError
from deltatape.model.tape_summary import LogEntry
from deltatape.rules.settings import Settings
from deltatape.store.listing import locate
from deltatape.store.reader import Tape, open_tape

STDIN = "-"
_WORTH_BYTES = 8_000_000
"""Tapes of fewer bytes are checked before another process would have begun."""
_SELDOM = (400_000, 20, 100)
"""Thresholds of Python's garbage collector."""


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
    tape = open_tape(place.path)
    logs = _logs(tape)
    report = check_exchanges(
        str(place.path), tape.exchanges(), settings, place.exchange, logs, excerpts=excerpts
    )
    if place.exchange is not None and not report.exchanges:
        tape[place.exchange]  # says which there are
    return report.noted(_torn(tape.path, tape.torn)) if tape.torn and not tape.recording else report


def _logs(tape: Tape) -> Iterator[LogEntry]:
    """Yield the app's output; reads the tape only when iterated."""
    yield from tape.logs


def _imported(name: str, settings: Settings, *, excerpts: bool) -> TapeReport:
    source = named(name)
    return check_exchanges(source.name, source.exchanges, settings, excerpts=excerpts)


def _torn(path: str, size: int) -> str:
    return f"{path}: left out a truncated last record of {size} bytes"


def check_all(
    names: Sequence[str | TapeReport],
    settings: Settings,
    jobs: int | None,
    *,
    excerpts: bool = True,
) -> Iterator[TapeReport]:
    """Check everything, in order.

    Args:
        names: what to check, and reports that there are already.
        settings: of the rules.
        jobs: how many processes; None: as many as pay.
        excerpts: whether the report shows the wire.
    """
    check = partial(check_one, settings=settings, excerpts=excerpts)
    wanted = [name for name in names if isinstance(name, str) and name != STDIN]
    processes = min(jobs or _paying(wanted), len(wanted))
    if processes > 1:
        from deltatape.cli.workers import by_workers  # noqa: PLC0415 - few checks need it

        yield from by_workers(names, check, processes)
        return
    with _collecting_seldom():
        for name in names:
            yield name if isinstance(name, TapeReport) else check(name)


def collect_seldom() -> None:
    """Run the garbage collector rarely: exchanges leave no cycles behind."""
    gc.freeze()
    gc.set_threshold(*_SELDOM)


@contextlib.contextmanager
def _collecting_seldom() -> Iterator[None]:
    before = gc.get_threshold()
    collect_seldom()
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _paying(names: Sequence[str]) -> int:
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
