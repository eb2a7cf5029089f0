"""Seals tapes, and turns sealed ones back into journals.

Strategy: several passes over the journal, so that memory holds one frame, and a few numbers for
each exchange and each run of lines:
1. read all exchanges, make their rows in a temporary file, and group them into conversations;
2. note the exchange of every line;
3. write the frames, conversation by conversation, then the index;
4. read the whole sealed tape, and compare it with the digest from pass 2.

The new file has a hidden name until it is synced and compared. The caller then decides whether to
delete the journal: `remove_journal` first checks that it is still what was sealed.

Format: docs/sealed.md.
"""

import contextlib
import fcntl
import glob
import hashlib
import json
import os
import re
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

import zstandard

from deltatape import __version__
from deltatape.errors import TapeFormatError, UsageError
from deltatape.model.exchange import Exchange, header
from deltatape.model.finding import Finding, Severity
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.model.tape_summary import LogEntry
from deltatape.render.exchange_rows import row_object
from deltatape.render.json_document import finding_object
from deltatape.store.names import SEALED_SUFFIX, SUFFIX, without_suffix
from deltatape.store.reader import MAX_LINE, Tape, open_tape
from deltatape.store.rewrite import as_named, stamp
from deltatape.store.rule_set import rule_set
from deltatape.store.sealed import FileRanges, SealedTape, digest_of, open_sealed, verify
from deltatape.store.surroundings import surroundings
from deltatape.tape.assemble import NO_PART
from deltatape.tape.decode import CODES, decode_record
from deltatape.tape.fields import MAX_INT, MalformedError
from deltatape.tape.payload import ClientRecord, LogLine, ParsedAs, Stop
from deltatape.tape.sealed import (
    SKIPPABLE_HEAD,
    Entry,
    EntryChunk,
    OrderChunk,
    Part,
    Run,
    SealedSummary,
    Spans,
    Stored,
    Table,
    add_part,
    plan_frames,
    skippable,
    trailer,
    write_order,
)
from deltatape.why.exchange_index import index_rows
from deltatape.why.overview import app_of, overview

_SHARED_BYTES = 256 << 10
"""Small conversations share a frame up to this size: alone they would compress badly."""
_RUN_BYTES = 1 << 20
_ENTRIES = 2048
"""Entries in a chunk: all are read to find one."""
_RUNS = 4096
_SECTION_BYTES = 1 << 20
"""The most runs, and about the most bytes of the journal, in a chunk of the order."""
_NAMED = 1000
"""The most apps, and the most models, that a summary names."""
_SUMMARISED_BYTES = 2 << 20
"""The largest tape that is read once more for its summary."""
_COPIED = 1 << 20
_PART = ".part"
_LEVEL = 9
_LARGE_LEVEL = 6
_LARGE = 8 << 20
"""The smallest frame that is searched for long repetitions, such as repeated histories."""
_LEAST_WINDOW = 10
_START = re.compile(rb'\[([0-9]{1,19}),([0-9]{1,19}),"([a-z-]+)",')
_NOT_OF_EXCHANGES = frozenset(
    each.code.encode() for each in (ParsedAs, ClientRecord, LogLine, Stop)
)
_OF_EXCHANGES = frozenset(code.encode() for code in CODES) - _NOT_OF_EXCHANGES


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """A sealed tape beside its journal."""

    path: Path
    journal: Path
    journal_bytes: int
    bytes: int
    exchanges: int
    stamp: tuple[int, int, int]
    """Identifies the journal as it was sealed: see `rewrite.stamp`."""

    def remove_journal(self) -> None:
        """Delete the journal.

        Raises:
            UsageError: it was changed after it was sealed, or cannot be deleted.
        """
        _remove(self.journal, self.stamp)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """A journal beside its sealed tape."""

    path: Path
    sealed: Path
    stamp: tuple[int, int, int]
    """Identifies the sealed tape as it was read: see `rewrite.stamp`."""

    def remove_sealed(self) -> None:
        """Delete the sealed tape.

        Raises:
            UsageError: it was changed meanwhile, or cannot be deleted.
        """
        _remove(self.sealed, self.stamp)


def seal(path: str | Path, into: Path | None = None, settings: Settings = DEFAULTS) -> Sealed:
    """Write the sealed form of a tape, and compare it with the tape, which stays.

    Args:
        path: the tape.
        into: the new file; None: `NAME.tape.zst` beside it. If it exists with the same tape, it
            is kept.
        settings: the thresholds of the rules.

    Raises:
        UsageError: the tape is being recorded, is sealed already, or changed meanwhile; `into`
            exists with another tape, or cannot be written.
        TapeFormatError: it is no tape, or has a line that is too long.
    """
    tape = open_tape(path)
    if isinstance(tape, SealedTape):
        raise UsageError(f"{tape.path}: is sealed already")
    if tape.recording:
        raise UsageError(f"{tape.path}: is still being recorded; stop its recorder first")
    journal = Path(tape.path)
    target = into or journal.with_name(f"{without_suffix(journal.name)}{SEALED_SUFFIX}")
    before = stamp(tape)
    try:
        if os.path.lexists(target):
            _remove_left(target)  # a second name of it, if its maker was killed
            same = _same_journal(tape, target)
        else:
            with _draft(target, journal) as draft:
                _write(draft, tape, settings)
                _finish(draft, journal)
                same = open_sealed(str(draft.path), FileRanges(draft.path))
                verify(same)
                with _kept_in_place(journal):
                    if stamp(tape) != before:
                        raise UsageError(f"{tape.path}: was changed while it was read; try again")
                    try:
                        _name(draft, target)
                    except FileExistsError:  # another process was faster
                        same = _same_journal(tape, target)
        return Sealed(
            path=target,
            journal=journal,
            journal_bytes=same.size,
            bytes=target.stat().st_size,
            exchanges=len(same),
            stamp=before,
        )
    except OSError as error:
        raise UsageError(f"{target}: {error.strerror or error}") from error


def unpack(path: str | Path, into: Path | None = None) -> Unpacked:
    """Write the journal of a sealed tape, which stays.

    Args:
        path: the sealed tape.
        into: the new file; None: `NAME.tape` beside it.

    Raises:
        UsageError: it is not sealed; `into` exists already, or cannot be written.
        TapeFormatError: it is no tape, or damaged.
    """
    tape = open_tape(path)
    if not isinstance(tape, SealedTape):
        raise UsageError(f"{tape.path}: is not sealed")
    origin = Path(tape.path)
    target = into or origin.with_name(f"{without_suffix(origin.name)}{SUFFIX}")
    before = stamp(tape)
    verify(tape)
    try:
        with _draft(target, origin) as draft:
            with tape.open() as journal:
                while data := journal.read(_COPIED):
                    draft.file.write(data)
            _finish(draft, origin)
            _name(draft, target)
    except FileExistsError:
        raise UsageError(f"{target}: is there already; a tape is never overwritten") from None
    except OSError as error:
        raise UsageError(f"{target}: {error.strerror or error}") from error
    return Unpacked(path=target, sealed=origin, stamp=before)


def _remove(path: Path, before: tuple[int, int, int]) -> None:
    try:
        status = path.lstat()
        if (status.st_ino, status.st_size, status.st_mtime_ns) != before:
            raise UsageError(f"{path}: was changed meanwhile, and stays")
        path.unlink()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}; it stays") from error


class _Draft(NamedTuple):
    """A new file without its final name."""

    file: BinaryIO
    path: Path


@contextlib.contextmanager
def _draft(target: Path, like: Path) -> Iterator[_Draft]:
    """Yield a hidden draft of `target`, deleted at the end; `_name` publishes it before.

    It is locked, to tell drafts that are being written from those of killed processes.

    Args:
        target: its final name.
        like: the file whose mode it gets.
    """
    _remove_left(target)
    path = target.parent / f".{target.name}.{os.urandom(4).hex()}{_PART}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    mode = like.stat().st_mode & 0o777
    try:  # before it is there: a signal may come right after that
        with os.fdopen(os.open(path, flags, mode), "w+b") as file:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield _Draft(file, path)
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


def _remove_left(target: Path) -> None:
    """Delete drafts of `target` that killed processes left behind."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.*{_PART}"):
        with contextlib.suppress(OSError):  # locked by a process that lives, or gone
            _remove_unlocked(left)


def _remove_unlocked(path: Path) -> None:
    """Delete a draft.

    Raises:
        OSError: a process has locked it, or it is gone.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    finally:
        os.close(fd)


@contextlib.contextmanager
def _kept_in_place(journal: Path) -> Iterator[None]:
    """Keep rings from renaming and deleting a journal, by its lock.

    They rename it together with its sealed form, so that must not appear in between. The lock is a
    shared one, since a shipper may hold another; rings have it for moments only.

    Raises:
        OSError: the journal was renamed or deleted before.
    """
    with journal.open("rb") as file:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_SH)
        yield


def _finish(draft: _Draft, like: Path) -> None:
    """Flush and sync a draft; give it the times of another file."""
    draft.file.flush()
    os.fsync(draft.file.fileno())
    status = like.stat()
    # What counts is when it was recorded.
    os.utime(draft.path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _name(draft: _Draft, target: Path) -> None:
    """Give a draft its final name, durably.

    Raises:
        OSError: `target` exists, or the system refuses.
    """
    try:
        target.hardlink_to(draft.path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        as_named(draft.path, target)
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system supports it."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _same_journal(tape: Tape, target: Path) -> SealedTape:
    """Return the sealed tape at `target`, which exists.

    Raises:
        UsageError: it is not the sealed form of `tape`.
    """
    try:
        there = open_tape(target)
    except TapeFormatError as error:
        raise UsageError(f"{target}: is there already, and is no tape: {error}") from error
    with tape.open() as journal:
        digest = digest_of(journal)
    if not isinstance(there, SealedTape) or there.sealed.table.sha256 != digest:
        raise UsageError(f"{target}: is there already, and is another tape; rename one of them")
    verify(there)
    # Whoever made it may have been killed before it was durable, and the journal may go now.
    with target.open("rb") as file:
        os.fsync(file.fileno())
    _sync_folder(target.parent)
    return there


# The rows, and which exchanges belong to one conversation.


class _Rows:
    """Keeps the rows of a tape in a temporary file, with what pass 1 learns of each exchange.

    Attributes:
        threads: by exchange, the first exchange of its conversation.
        ids: by exchange, its id.
        damaged: whether the tape is damaged: there are rows only for what precedes the damage.
    """

    def __init__(self, folder: Path) -> None:
        self.threads: dict[int, int] = {}
        self.ids: dict[int, str] = {}
        self._apps: dict[str, None] = {}
        self.damaged = False
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed below
        self._places: dict[int, tuple[int, int]] = {}

    def close(self) -> None:
        self._file.close()

    def read(self, tape: Tape, settings: Settings) -> None:
        """Make the rows of all exchanges of the tape."""
        at = 0
        try:
            for row in index_rows(self._noted(tape), settings, _logs(tape)):
                self.threads[row.exchange] = row.thread
                found = row_object(row)
                del found["tape"], found["exchange"]
                line = json.dumps(found, separators=(",", ":")).encode()
                self._file.write(line)
                self._places[row.exchange] = (at, len(line))
                at += len(line)
        except TapeFormatError:
            self.damaged = True
        self._file.flush()

    def _noted(self, tape: Tape) -> Iterator[Exchange]:
        for exchange in tape:
            self.ids[exchange.number] = exchange.id
            app = app_of(header(exchange.request.headers, "user-agent") or b"")
            if app and len(self._apps) < _NAMED:
                self._apps[app] = None
            yield exchange

    def row(self, exchange: int) -> dict[str, Any] | None:
        """Return the row of an exchange."""
        place = self._places.get(exchange)
        if place is None:
            return None
        row: dict[str, Any] = json.loads(os.pread(self._file.fileno(), place[1], place[0]))
        return row

    def summary(self, tape: Tape, settings: Settings) -> SealedSummary:
        """Return the summary for lists of tapes; equal to that of `overview` if it is small."""
        models: dict[str, None] = {}
        findings = 0
        ranked: list[tuple[int, int]] = []
        for exchange in sorted(self._places):
            row = self.row(exchange) or {}
            model, worst = row["model"], row["worst"]
            if model is not None and len(models) < _NAMED:
                models[model] = None
            findings += row["findings"]
            if worst is not None:
                ranked = [min([*ranked, (Severity(worst["severity"]).rank, exchange)])]
        if tape.size <= _SUMMARISED_BYTES:
            seen = overview(tape, settings)
            models, findings, worst = dict.fromkeys(seen.models), seen.findings, seen.worst
        elif ranked:
            around = surroundings(tape, ranked[0][1], settings.app)
            worst = overview(around.exchanges, settings).worst
        else:
            worst = None
        return SealedSummary(
            apps=tuple(self._apps),
            models=tuple(models),
            findings=findings,
            worst=finding_object(worst) if isinstance(worst, Finding) else None,
        )


def _logs(tape: Tape) -> Iterator[LogEntry]:
    """Yield the app's output; reads the tape only when iterated."""
    yield from tape.logs


# The frames and the index.


def _write(draft: _Draft, tape: Tape, settings: Settings) -> None:
    """Write the sealed form of a tape."""
    rows = _Rows(draft.path.parent)
    try:
        rows.read(tape, settings)
        with tape.open() as journal:
            first = journal.readline(MAX_LINE)
            scan = _Scan(tape, first, journal)
            damaged = rows.damaged or scan.unclear
            writer = _Writer(draft.file, journal, scan)
            writer.frame(first)
            for frame in scan.frames(rows.threads):
                writer.runs(frame)
            # A shard is judged with others.
            if damaged or tape.header.shard is not None:
                writer.end(rows, "", None, torn=tape.torn, damaged=damaged)
            else:
                summary = rows.summary(tape, settings)
                writer.end(rows, rule_set(settings), summary, torn=tape.torn, damaged=False)
    finally:
        rows.close()


class _Scan:
    """Notes the exchange of every line, in runs of adjacent lines.

    A line that is no record, or whose exchange has only records of unknown codes, belongs to the
    tape itself: exchange 0.
    """

    def __init__(self, tape: Tape, first: bytes, journal: BinaryIO) -> None:
        self.spans = Spans(len(first), _RUN_BYTES)
        self.lines = 1
        self.begun_ns: dict[int, int] = {}
        """The time of the first record of each exchange."""
        self.unclear = False
        """Whether the last line is a record without a line feed."""
        self.runs: dict[int, array[int]] = {}
        digest = hashlib.sha256(first)
        numbers: set[int] = set()
        for line in iter(lambda: journal.readline(MAX_LINE + 1), b""):
            if len(line) > MAX_LINE:
                problem = f"longer than {MAX_LINE} bytes, the most that a line may have"
                raise TapeFormatError(tape.path, self.lines + 1, problem)
            digest.update(line)
            self._add(line, numbers)
        self.sha256 = digest.hexdigest()
        self.exchanges = sorted(numbers)
        spans = self.spans
        known = frozenset(numbers)
        for run, exchange in enumerate(spans.exchange):
            owner = exchange if exchange in known else 0
            spans.exchange[run] = owner
            self.runs.setdefault(owner, array("Q")).append(run)

    def _add(self, line: bytes, numbers: set[int]) -> None:
        start = _START.match(line)
        if start is not None and line.endswith(b"\n"):
            t_ns, exchange, of_exchange = int(start[1]), int(start[2]), start[3] in _OF_EXCHANGES
        else:
            t_ns, exchange, of_exchange = _unusual(line)
            if exchange and not line.endswith(b"\n"):
                exchange, self.unclear = 0, True
        if max(t_ns, exchange) > MAX_INT:
            exchange = 0  # no record
        self.spans.add(exchange, len(line))
        self.lines += 1
        if exchange:
            self.begun_ns.setdefault(exchange, t_ns)
            if of_exchange:
                numbers.add(exchange)

    def place(self, exchange: int) -> tuple[int, int]:
        """Return where an exchange begins and ends in the journal."""
        runs, spans = self.runs[exchange], self.spans
        return spans.at[runs[0]], spans.at[runs[-1]] + spans.sizes[runs[-1]]

    def conversations(self, threads: dict[int, int]) -> Iterator[list[Sequence[int]]]:
        """Yield the runs of the exchanges of each conversation."""
        found: dict[int, list[int]] = {}
        for exchange in self.exchanges:
            found.setdefault(threads.get(exchange, exchange), []).append(exchange)
        for exchanges in found.values():
            yield [self.runs[exchange] for exchange in exchanges]

    def frames(self, threads: dict[int, int]) -> Iterator[list[int]]:
        """Yield the runs of each frame; the tape's own lines come last, since one may be torn."""
        sizes = self.spans.sizes
        yield from plan_frames(self.conversations(threads), sizes, shared=_SHARED_BYTES)
        if 0 in self.runs:
            yield from plan_frames([[self.runs[0]]], sizes, shared=0)


def _unusual(line: bytes) -> tuple[int, int, bool]:
    """Return a line's time, exchange, and whether it proves that exchange, by decoding it."""
    try:
        record = decode_record(line)
    except MalformedError:
        return 0, 0, False
    return record.t_ns, record.exchange, not isinstance(record.payload, NO_PART)


class _Writer:
    """Writes frames, then the index."""

    def __init__(self, file: BinaryIO, journal: BinaryIO, scan: _Scan) -> None:
        self._file = file
        self._journal = journal
        self._scan = scan
        self._at = 0
        self._frames: list[Stored] = []
        self._places = [array("Q", bytes(8 * len(scan.spans))) for _ in range(2)]
        """The frame of each run, and its offset in that frame."""

    def frame(self, data: bytes) -> None:
        """Write a frame."""
        self._frames.append(self._stored(_compressed(data), len(data)))

    def runs(self, runs: list[int]) -> None:
        """Write a frame of runs."""
        spans = self._scan.spans
        frames, offsets = self._places
        size = sum([spans.sizes[run] for run in runs])
        coder = _coder(size).compressobj(size=size)
        at, begun, offset = self._at, self._at, 0
        for run in runs:
            frames[run], offsets[run] = len(self._frames), offset
            offset += spans.sizes[run]
            at += self._put(coder.compress(self._read(spans.at[run], spans.sizes[run])))
        at += self._put(coder.flush())
        self._frames.append(Stored(begun, at - begun, size))
        self._at = at

    def _put(self, data: bytes) -> int:
        self._file.write(data)
        return len(data)

    def _read(self, at: int, size: int) -> bytes:
        data = os.pread(self._journal.fileno(), size, at)
        if len(data) != size:
            raise UsageError(f"{self._journal.name}: was changed while it was read; try again")
        return data

    def _stored(self, data: bytes, size: int) -> Stored:
        stored = Stored(self._at, len(data), size)
        self._at += self._put(data)
        return stored

    def _skipped(self, data: bytes) -> Stored:
        """Write a part of the index."""
        coded = _compressed(data)
        stored = Stored(self._at + SKIPPABLE_HEAD, len(coded), len(data))
        self._at += self._put(skippable(coded))
        return stored

    def end(
        self, rows: _Rows, rules: str, summary: SealedSummary | None, *, torn: int, damaged: bool
    ) -> None:
        """Write the index."""
        scan = self._scan
        table = Table(
            tool=f"deltatape {__version__}",
            rules=rules,
            damaged=damaged,
            size=scan.spans.end,
            lines=scan.lines,
            torn=torn,
            sha256=scan.sha256,
            exchanges=len(scan.exchanges),
            entries=tuple(self._entries(rows, judged=bool(rules))),
            order=tuple(self._order()),
            frames=tuple(self._frames),
            rest=self._parts(0),
            summary=summary,
        )
        stored = self._skipped(table.to_json())
        self._put(trailer(stored.at, stored.length))

    def _entries(self, rows: _Rows, *, judged: bool) -> Iterator[EntryChunk]:
        scan = self._scan
        for start in range(0, len(scan.exchanges), _ENTRIES):
            numbers = scan.exchanges[start : start + _ENTRIES]
            lines = []
            for number in numbers:
                begin, end = scan.place(number)
                entry = Entry(
                    exchange=number,
                    id=rows.ids.get(number, ""),
                    t_ns=scan.begun_ns[number],
                    begin=begin,
                    end=end,
                    parts=self._parts(number),
                    row=rows.row(number) if judged else None,
                )
                lines.append(entry.to_line())
            stored = self._skipped(b"".join(lines))
            yield EntryChunk(stored, numbers[0], numbers[-1], len(numbers))

    def _parts(self, exchange: int) -> tuple[Part, ...]:
        frames, offsets = self._places
        parts: list[Part] = []
        for run in self._scan.runs.get(exchange, ()):
            add_part(parts, Part(frames[run], offsets[run], self._scan.spans.sizes[run]))
        return tuple(parts)

    def _order(self) -> Iterator[OrderChunk]:
        spans = self._scan.spans
        frames, offsets = self._places
        section: list[Run] = []
        line = 2
        for number in range(len(spans)):
            if section and (
                len(section) == _RUNS or spans.at[number] - section[0].at >= _SECTION_BYTES
            ):
                yield self._order_chunk(section)
                section = []
            run = Run(
                at=spans.at[number],
                line=line,
                lines=spans.lines[number],
                size=spans.sizes[number],
                exchange=spans.exchange[number],
                frame=frames[number],
                offset=offsets[number],
            )
            section.append(run)
            line += run.lines
        if section:
            yield self._order_chunk(section)

    def _order_chunk(self, section: list[Run]) -> OrderChunk:
        return OrderChunk(self._skipped(write_order(section)), section[0].at, section[0].line)


def _compressed(data: bytes) -> bytes:
    return _coder(len(data)).compress(data)


def _coder(size: int) -> zstandard.ZstdCompressor:
    """Return a compressor for `size` bytes whose window spans all of them."""
    large = size >= _LARGE
    parameters = zstandard.ZstdCompressionParameters.from_level(
        _LARGE_LEVEL if large else _LEVEL,
        window_log=max(_LEAST_WINDOW, (max(1, size) - 1).bit_length()),
        enable_ldm=large,
        write_checksum=True,
        write_content_size=True,
    )
    return zstandard.ZstdCompressor(compression_params=parameters)
