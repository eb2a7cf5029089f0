"""Reads tapes into a dataset: new and changed ones, and all once the rules have changed."""

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path

from deltatape import __version__
from deltatape.clock import SystemClock
from deltatape.errors import DeltatapeError, TapeFormatError, UsageError
from deltatape.garbage import YOUNG_OBJECTS, collecting_seldom
from deltatape.model.exchange import wall_time
from deltatape.model.rule_settings import Settings
from deltatape.model.tape_summary import LogEntry
from deltatape.objects.urls import is_store_url
from deltatape.scan.dataset import (
    Files,
    FoundFile,
    StoredRows,
    TapeWriter,
    open_files,
    stored_rows,
)
from deltatape.scan.engine import Engine, Lost
from deltatape.scan.join import is_joined, join
from deltatape.scan.rows import Row, TapeRows, began_us, tape_rows
from deltatape.scan.schema import EXCHANGES, FINDINGS, NO_DAY, TAPES, rules_key
from deltatape.secret_text.search import without_secrets
from deltatape.store.listing import OnUnreadable, Unreadable, check_folder, unheeded
from deltatape.store.names import is_tape_name, without_suffix
from deltatape.store.reader import Tape, open_tape
from deltatape.store.rule_set import rule_set
from deltatape.tape.record import Header

_ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
_GATEWAY = re.compile(r"(?:^|/)gateway=([^/]+)/")
_DAY = re.compile(r"(?:^|/)dt=(\d{4}-\d\d-\d\d)/")
_US_NS = 1000
_KEY_DIGITS = 16
_RUN_DIGITS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class TapeToScan:
    """A tape, and its files in the dataset."""

    key: str
    """In the dataset."""
    file: FoundFile
    before: tuple[StoredRows, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanJob:
    """Settings of a scan that all its tapes share; sent to workers."""

    id: str
    """Names the run."""
    source: str
    """The folder or URL with the tapes."""
    out: str
    """The folder or URL of the dataset."""
    settings: Settings
    rules: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedTape:
    """The result for a tape."""

    exchanges: int = 0
    findings: int = 0
    problem: str = ""
    """Why it could not be read."""
    again: bool = False
    """Whether the next scan reads it again: it is being recorded, or could not be read now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanProgress:
    """The progress of a scan."""

    tapes: int
    """How many are read."""
    of_tapes: int
    bytes: int
    of_bytes: int
    exchanges: int
    ns: int
    """How long it has taken."""

    @property
    def rate(self) -> float:
        """Exchanges per second."""
        return self.exchanges / (self.ns / 1e9) if self.ns else 0.0

    @property
    def left_ns(self) -> int | None:
        """The estimated time left, by the bytes left; None if unknown."""
        return self.ns * (self.of_bytes - self.bytes) // self.bytes if self.bytes else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanSummary:
    """The totals of a scan."""

    tapes: int = 0
    known: int = 0
    """Tapes that the dataset had already."""
    recording: int = 0
    """Tapes that are still being recorded."""
    exchanges: int = 0
    findings: int = 0
    across: int = 0
    """Findings that only several tapes of the dataset together show, new ones and known ones."""
    withdrawn: int = 0
    """Findings of tapes that others refute."""
    bytes: int = 0
    ns: int = 0
    problems: tuple[tuple[str, str], ...] = ()
    """Tapes and folders that could not be read, each with the reason."""
    rules: str = ""


def scan(
    source: str,
    out: str,
    engine: Engine,
    settings: Settings,
    progress: Callable[[ScanProgress], object] = lambda _: None,
) -> ScanSummary:
    """Read the tapes of a folder or store that are new to the dataset, or have changed.

    Then join the conversations of all its tapes.

    Args:
        source: the folder or URL with the tapes.
        out: the folder or URL of the dataset.
        engine: runs the work.
        settings: the settings of the rules.
        progress: called for each tape.

    Raises:
        UsageError: the folder does not exist, or the workers have another version.
    """
    clock = SystemClock()
    began_ns = clock.now_ns()
    rules = rules_key(rule_set(settings))
    run = hashlib.sha256(f"{clock.wall_ns()} {os.getpid()}".encode()).hexdigest()[:_RUN_DIGITS]
    job = ScanJob(id=run, source=source, out=out, settings=settings, rules=rules)
    if not is_store_url(source):
        check_folder(Path(source))
    unreadable: list[Unreadable] = []
    found = tapes_of(open_files(source), unreadable.append)
    files = open_files(out)
    tapes = _to_scan(found, files, rules)
    so_far = ScanSummary(
        known=len(found) - len(tapes),
        problems=tuple((str(folder.path), folder.reason) for folder in unreadable),
        rules=rules,
    )
    of_bytes = sum(tape.file.size for tape in tapes)
    done = read_bytes = 0
    try:
        for tape, given in engine.map(partial(scan_tape, job), tapes):
            result = _without_rows(job, tape, given.why) if isinstance(given, Lost) else given
            done += 1
            read_bytes += tape.file.size
            so_far = _with(so_far, tape, result)
            progress(
                ScanProgress(
                    tapes=done,
                    of_tapes=len(tapes),
                    bytes=read_bytes,
                    of_bytes=of_bytes,
                    exchanges=so_far.exchanges,
                    ns=clock.now_ns() - began_ns,
                )
            )
        if not is_joined(files, rules):
            across = join(out, engine, run, rules, settings)
            so_far = replace(so_far, across=across.findings, withdrawn=across.withdrawn)
    finally:
        files.clear(run, clock.wall_ns() // _US_NS)
    return replace(so_far, ns=clock.now_ns() - began_ns)


def _with(summary: ScanSummary, tape: TapeToScan, result: ScannedTape) -> ScanSummary:
    if result.again and not result.problem:
        return replace(summary, recording=summary.recording + 1)
    problems = ((tape.file.path, result.problem),) if result.problem else ()
    return replace(
        summary,
        tapes=summary.tapes + 1,
        exchanges=summary.exchanges + result.exchanges,
        findings=summary.findings + result.findings,
        bytes=summary.bytes + tape.file.size,
        problems=(*summary.problems, *problems),
    )


def tapes_of(files: Files, on_unreadable: OnUnreadable = unheeded) -> dict[str, FoundFile]:
    """Return the tapes in a folder or a store, by their keys in a dataset.

    Calls `on_unreadable` for each folder whose tapes are left out.

    The key is the tape's id if the file is named after it, since then no other tape has it; else it
    is made of the path, since copies share the id of their original. If a tape is there both sealed
    and not, the unsealed one counts.
    """
    found: dict[str, FoundFile] = {}
    for each in sorted(files.found("", on_unreadable), key=attrgetter("path")):
        if is_tape_name(each.path):
            stem = without_suffix(each.path)
            name = stem.rpartition("/")[2]
            hashed = hashlib.sha256(stem.encode("utf-8", "surrogateescape")).hexdigest()
            key = name if _ULID.fullmatch(name) else hashed[:_KEY_DIGITS]
            found.setdefault(key, each)
    return found


def _to_scan(found: Mapping[str, FoundFile], files: Files, rules: str) -> list[TapeToScan]:
    """Return the tapes whose rows are missing or outdated in the dataset, the largest first."""
    current = {
        each.tape: each.modified_us
        for each in stored_rows(files, [TAPES.name])
        if each.rules == rules
    }
    new = {
        key: file
        for key, file in found.items()
        if key not in current or current[key] < file.modified_us
    }
    before: dict[str, list[StoredRows]] = {}
    for each in stored_rows(files) if new else ():
        if each.tape in new:
            before.setdefault(each.tape, []).append(each)
    ordered = sorted(new.items(), key=lambda item: (-item[1].size, item[0]))
    return [
        TapeToScan(key=key, file=file, before=tuple(before.get(key, ()))) for key, file in ordered
    ]


def scan_tape(job: ScanJob, tape: TapeToScan) -> ScannedTape:
    """Read one tape into the dataset.

    Writes all of its rows or none; the result is the same each time.

    Raises:
        UsageError: this is another version of deltatape than that of the scan.
        DeltatapeError: the dataset cannot be written.
    """
    if rules_key(rule_set(job.settings)) != job.rules:
        raise UsageError(
            f"this worker has deltatape {__version__}, or other rules than the scan has; install"
            " the same version everywhere"
        )
    writer = TapeWriter(open_files(job.out), job.id, tape.key, job.rules)
    with contextlib.closing(writer), collecting_seldom(YOUNG_OBJECTS):
        reading = _Reading(job, tape)
        for rows in reading:
            writer.write(rows)
        if reading.result.again:
            return reading.result
        if reading.result.problem:
            writer.restart()
        writer.publish(reading.day, reading.row(), tape.before)
        return reading.result


class _Reading:
    """Reads a tape; a defect of the file ends the rows, and is stated in the result."""

    def __init__(self, job: ScanJob, tape: TapeToScan) -> None:
        self._job = job
        self._tape = tape
        self._header: Header | None = None
        self.result = ScannedTape()

    def __iter__(self) -> Iterator[TapeRows]:
        exchanges = findings = 0
        try:
            with open_files(self._job.source).local(self._tape.file.path) as path:
                tape = open_tape(path)
                self._header = tape.header
                if tape.recording:
                    self.result = ScannedTape(again=True)
                    return
                for rows in self._rows(tape):
                    exchanges += len(rows.get(EXCHANGES.name, ()))
                    findings += len(rows.get(FINDINGS.name, ()))
                    yield rows
        except TapeFormatError as error:
            place = f"line {error.line}: " if error.line else ""
            self.result = ScannedTape(problem=f"{place}{error.problem}")
        except DeltatapeError as error:
            self.result = ScannedTape(problem=str(error), again=True)
        except OSError as error:
            self.result = ScannedTape(problem=error.strerror or str(error), again=True)
        except Exception as error:  # noqa: BLE001 - one strange tape does not end the others' scan
            self.result = ScannedTape(problem=f"deltatape failed: {error!r}")
        else:
            self.result = ScannedTape(exchanges=exchanges, findings=findings)

    def _rows(self, tape: Tape) -> Iterator[TapeRows]:
        job, shard = self._job, tape.header.shard
        return tape_rows(
            tape.exchanges(),
            self._tape.key,
            job.rules,
            job.settings,
            _logs(tape),
            # Requests of the conversations are on the tapes of other workers.
            alone=shard is not None and shard.count > 1,
        )

    @property
    def day(self) -> str:
        """The day of the tape's rows."""
        at = wall_time(self._header.recorded_at, 0) if self._header else None
        return at.date().isoformat() if at is not None else day_of(self._tape.file.path)

    def row(self) -> Row:
        """Return the row in table `tapes`."""
        return tape_row(self._job, self._tape, self._header, self.result)


def _logs(tape: Tape) -> Iterator[LogEntry]:
    """Yield the app's output; reads the tape only when iterated."""
    yield from tape.logs


def day_of(path: str) -> str:
    """Return the day that the folders of a tape name."""
    match = _DAY.search(path)
    return match[1] if match else NO_DAY


def tape_row(job: ScanJob, tape: TapeToScan, header: Header | None, result: ScannedTape) -> Row:
    """Return the row of a tape in table `tapes`."""
    gateway = _GATEWAY.search(tape.file.path)
    return (
        tape.key,
        header.id if header else None,
        f"{job.source.rstrip('/')}/{tape.file.path}",
        tape.file.etag,
        tape.file.size,
        began_us(header.recorded_at) if header else None,
        gateway[1] if gateway else None,
        header.tool or None if header else None,
        job.rules,
        result.exchanges,
        result.findings,
        without_secrets(result.problem) or None,
        SystemClock().wall_ns() // _US_NS,
    )


def _without_rows(job: ScanJob, tape: TapeToScan, problem: str) -> ScannedTape:
    """Write only the row with the reason why a tape could not be read."""
    result = ScannedTape(problem=problem)
    writer = TapeWriter(open_files(job.out), job.id, tape.key, job.rules)
    with contextlib.closing(writer):
        row = tape_row(job, tape, None, result)
        writer.publish(day_of(tape.file.path), row, tape.before)
    return result
