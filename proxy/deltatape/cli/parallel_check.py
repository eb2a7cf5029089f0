"""Checks many tapes on all cores; reports in the order of the arguments.

Each task is one tape. A few small tapes are checked in this process, because starting workers would
take longer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from deltatape.cli.tapes import is_tape, named
from deltatape.cli.workers import in_order, worthwhile
from deltatape.diagnose.check_tape import TapeReport, check_exchanges
from deltatape.errors import DeltatapeError
from deltatape.model.rule_settings import Settings
from deltatape.model.tape_summary import LogEntry
from deltatape.store.listing import locate
from deltatape.store.reader import Tape
from deltatape.store.shards import ShardedTape, open_recording

STDIN = "-"


def check_one(name: str, settings: Settings, *, excerpts: bool = True) -> TapeReport:
    """Check what `name` refers to; if it cannot be read, the report says so.

    Args:
        name: as on the command line, but for folders of tapes.
        settings: the settings of the rules.
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
        settings: the settings of the rules.
        jobs: how many processes; None: as many as are worth starting.
        excerpts: whether the report shows the wire.
    """
    files = [name for name in names if isinstance(name, str) and name != STDIN]
    processes = min(jobs or worthwhile(files), len(files))
    check = partial(_report_on, settings=settings, excerpts=excerpts)
    yield from in_order(check, names, processes, doing="checks tapes", here=_is_here)


def _report_on(name: str | TapeReport, settings: Settings, *, excerpts: bool) -> TapeReport:
    if isinstance(name, TapeReport):
        return name
    return check_one(name, settings, excerpts=excerpts)


def _is_here(name: str | TapeReport) -> bool:
    return isinstance(name, TapeReport) or name == STDIN
