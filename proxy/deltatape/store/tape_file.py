"""An open tape file: lines are written whole or not at all.

Strategy: all lines of a call go out in one `writev`; a short write is continued. After a failed
write the incomplete line is cut off, so that only the last line can be torn. If that fails, too,
the rest of the line is written as soon as the disk accepts bytes again. Nothing here raises: losses
are counted, and told on the tape as soon as it accepts bytes: by a `note` at their place, and in
the `end` of the exchange. An `end` that was refused is written then.

Invariant: the file is the header and whole lines, plus at most one torn line at the end.
"""

import contextlib
import errno
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from time import sleep  # noqa: TID251 - it reads no clock

from deltatape.clock import SystemClock
from deltatape.tape.decode import decode_record
from deltatape.tape.encode import payload_record
from deltatape.tape.payload import LOSS_NOTE, EndRecord, RemarkRecord

_BATCH = 1024
"""IOV_MAX of Linux and macOS."""
_CHECK_NS = 1_000_000_000
"""How often to check whether the file still has a name."""
GONE = "the tape was deleted while it was written"
_REFUSED = "the disk refused it"

Line = tuple[int, bytes]
"""A line with its line feed, after the number of its exchange; empty: lines were lost here."""
_OWN_NOTE = f',"note",{{"text":"{LOSS_NOTE}'.encode()


def is_end(line: bytes) -> bool:
    """Check whether a line is the `end` of its exchange."""
    return line.split(b",", 3)[2:3] == [b'"end"']


# What taping lost, per exchange and in all, and the alarms about it.
#
# Losing records must be loud and must stay cheap: one alarm per kind of trouble, counts for the
# rest. Safe to use from the writing thread and from the recorder's own.

_REMEMBERED = 4096
"""Exchanges whose losses are kept: with a dead disk every exchange has some, for ever."""


class LossCounter:
    """Counts losses; `alarm` gets one line per kind of problem, from any thread.

    Attributes:
        records: how many were lost.
        bytes: how many those have.
        failing: whether lines were lost or had to wait, and none was written since.
        unsynced: whether the last sync failed.
    """

    def __init__(self, alarm: Callable[[str], None]) -> None:
        self._alarm = alarm
        self._lock = threading.Lock()
        self._reported: set[str] = set()
        self._by_exchange: dict[int, tuple[int, int, str]] = {}
        self.records = 0
        self.bytes = 0
        self.failing = False
        self.unsynced = False

    def trouble(self, kind: str, message: str) -> None:
        """Report a problem unless one of this kind was reported since all was well."""
        self.failing = True
        with self._lock:
            if kind in self._reported:
                return
            self._reported.add(kind)
        self._alarm(message)

    def settle(self) -> None:
        """Note that all is well, so that further problems are reported."""
        with self._lock:
            self._reported.clear()

    def lost(self, lines: Sequence[Line], error: str) -> None:
        """Count `lines` as lost."""
        with self._lock:
            for exchange, line in lines:
                if line:
                    self.failing = True
                    records, size, _ = self._by_exchange.pop(exchange, (0, 0, ""))
                    self._by_exchange[exchange] = (records + 1, size + len(line), error)
                    self.records += 1
                    self.bytes += len(line)
            while len(self._by_exchange) > _REMEMBERED:
                del self._by_exchange[next(iter(self._by_exchange))]

    def lost_after_all(self, records: int, size: int) -> None:
        """Count lost records that had been written."""
        with self._lock:
            self.records += records
            self.bytes += size

    def of(self, exchange: int) -> dict[str, object]:
        """Return the losses of one exchange for `end.recorder`; empty if none."""
        with self._lock:
            losses = self._by_exchange.get(exchange)
        if losses is None:
            return {}
        records, size, error = losses
        return {"lost_records": records, "lost_bytes": size, "error": error}


class TapeFile:
    """A tape that is being written.

    Attributes:
        path: its name; may be set when it gets another one.
        gone: whether it was deleted.

    Args:
        fd: a new, empty file, opened with O_APPEND.
        path: its name.
        header: the first line.
        ledger: where losses go.
    """

    def __init__(self, fd: int, path: Path, header: bytes, ledger: LossCounter) -> None:
        self._fd = fd
        self.path = path
        self._header = header
        self._ledger = ledger
        self._records = 0
        self.size = 0
        """Bytes of all whole lines."""
        self._rest = b""  # of the torn line at the end
        self._refused_ends: list[Line] = []
        self._lossy: set[int] = set()  # exchanges whose latest lines are missing
        self._checked_ns: int | None = None
        self.gone = False

    def append(self, lines: Sequence[Line], now_ns: int) -> None:
        """Write `lines`."""
        if self._checked_ns is None or now_ns - self._checked_ns > _CHECK_NS:
            self._checked_ns = now_ns
            self.check_place()
        if self.gone:
            self._ledger.lost(lines, GONE)
            return
        if self._ledger.records or self._refused_ends:
            lines = self._with_losses(lines)
        done = 0
        try:
            self._mend()
            while done < len(lines):
                done += self._write([line for _, line in lines[done : done + _BATCH]])
                self._ledger.failing = False
        except OSError as error:
            self._cut()
            self._report_error(error)
            self._lose(lines[done:], _reason(error))

    def _with_losses(self, lines: Sequence[Line]) -> Sequence[Line]:
        """Return `lines` with notes on the losses; the `end`s that were refused come first."""
        told: list[Line] = []
        for exchange, line in chain(self._refused_ends, lines):
            losses = self._ledger.of(exchange)
            if not line:
                self._lossy.add(exchange)
            elif not losses:
                told.append((exchange, line))
            elif is_end(line):
                told.append((exchange, _end_with(line, losses)))
            else:
                if exchange in self._lossy:
                    told.append((exchange, _loss_note(line, losses)))
                told.append((exchange, line))
                self._lossy.discard(exchange)
        self._refused_ends = []
        return told

    def _lose(self, lines: Sequence[Line], error: str) -> None:
        """Count lines that were refused; keep the ends of exchanges."""
        ends = [each for each in lines if is_end(each[1])]
        kept = _REMEMBERED - len(self._refused_ends)
        self._refused_ends += ends[:kept]
        others = [each for each in lines if not is_end(each[1]) and _OWN_NOTE not in each[1]]
        self._lossy.update(exchange for exchange, _ in others)
        self._ledger.lost([*others, *ends[kept:]], error)

    def _write(self, lines: Sequence[bytes]) -> int:
        """Call `writev` once; return the number of complete lines after it."""
        batch = [lines[0][-len(self._rest) :], *lines[1:]] if self._rest else lines
        count = os.writev(self._fd, batch)
        if count == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if not self._rest and count == sum(map(len, lines)):  # as nearly always
            self.size += count
            self._records += len(lines)
            return len(lines)
        if not self._rest and count == sum(map(len, lines)):  # as nearly always
            self.size += count
            self._records += len(lines)
            return len(lines)
        complete = 0
        for line, part in zip(lines, batch, strict=True):
            if count < len(part):
                self._rest = part[count:] if count else self._rest
                break
            count -= len(part)
            self._rest = b""
            self.size += len(line)
            complete += 1
        self._records += complete
        return complete

    def _cut(self) -> None:
        """Cut off an incomplete line."""
        if self._rest:
            try:
                os.ftruncate(self._fd, self.size)
            except OSError as error:
                self._report_error(error)
            else:
                self._rest = b""

    def _mend(self) -> None:
        """Make the file end with a complete line; raise OSError if that fails."""
        self._cut()
        while self._rest:
            count = os.write(self._fd, self._rest)
            self._rest = self._rest[count:]
            if not self._rest:
                self.size = os.fstat(self._fd).st_size
        while self.size == 0:
            self._write((self._header,))
            self._records = 0

    def _report_error(self, error: OSError) -> None:
        self._ledger.trouble(
            _reason(error),
            f"taping fails: {self.path}: {_reason(error)}; "
            "the stream goes on, the tape loses records",
        )

    def finish(self, now_ns: int) -> None:
        """Write what was refused, or count it as lost; no line follows."""
        self.append((), now_ns)
        self._ledger.lost(self._refused_ends, _REFUSED)
        self.check_place()

    def check_place(self) -> None:
        """Notice that the file was moved, or deleted, which loses it and what follows."""
        try:
            status = os.fstat(self._fd)
        except OSError as error:
            self._report_error(error)
            return
        if status.st_nlink == 0:
            if not self.gone:
                self.gone = True
                self._ledger.lost_after_all(self._records, self.size)
                self._ledger.trouble(GONE, f"taping fails: {self.path}: {GONE}; the stream goes on")
            return
        try:
            moved = not os.path.samestat(status, self.path.lstat())
        except OSError:
            moved = True
        if moved:
            with contextlib.suppress(OSError):  # only Linux tells
                self.path = Path(f"/proc/self/fd/{self._fd}").readlink()

    def sync(self) -> None:
        """Wait until the disk has what was written."""
        try:
            os.fsync(self._fd)
            self._ledger.unsynced = False
        except OSError as error:
            self._ledger.unsynced = True
            self._ledger.trouble(
                f"sync: {_reason(error)}",
                f"{self.path}: cannot be synced: {_reason(error)}; a power loss may cost records",
            )

    def close(self) -> None:
        """Close the file."""
        try:
            os.close(self._fd)
        except OSError as error:
            self._report_error(error)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _end_with(line: bytes, losses: dict[str, object]) -> bytes:
    """Return the `end` of an exchange with its losses."""
    record = decode_record(line)
    assert isinstance(record.payload, EndRecord)
    end = replace(record.payload, recorder=losses)
    return payload_record(record.t_ns, record.exchange, end)


def _loss_note(line: bytes, losses: dict[str, object]) -> bytes:
    """Return the note in place of lines that were lost before `line`."""
    record = decode_record(line)
    text = f"{LOSS_NOTE}{losses['error']}; {losses['lost_records']} so far"
    return payload_record(record.t_ns, record.exchange, RemarkRecord(text=text))


# The two things about a tape that may wait for a disk: syncing, and writing.
#
# Both threads are daemons and are waited for at most `_PATIENCE_S` at the end: a disk that hangs
# must not keep the recorder, and with it the user's program, from ending.

_PATIENCE_S = 10.0
_GAP_S = 0.003
"""How long to rest after a write. A thread that wakes for every record makes it wait for the
interpreter's lock, and doubles its cost; so records that come in quick succession share a write.
Models send the deltas of one stream farther apart than this."""


def _start(run: Callable[[], None], name: str) -> threading.Thread | None:
    """Start a daemon thread; return None if the system or the interpreter refuses."""
    thread = threading.Thread(target=run, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return None
    return thread


class SyncThread:
    """Syncs on demand: at most one running and one waiting; the caller never waits."""

    def __init__(self, sync: Callable[[], None]) -> None:
        self._sync = sync
        self._requested = threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None

    def request(self) -> None:
        """Request a sync; requests while one is waiting are merged."""
        self._requested.set()
        if self._thread is None:
            self._thread = _start(self._run, "tape-sync")

    def close(self) -> bool:
        """Sync once more; return False if the disk did not answer in time."""
        self._closing = True
        self.request()
        if self._thread is None:
            self._sync()
            return True
        self._thread.join(_PATIENCE_S)
        return not self._thread.is_alive()

    def _run(self) -> None:
        last = False
        while not last:
            self._requested.wait()
            self._requested.clear()
            last = self._closing
            self._sync()


class WriterThread:
    """Does what may wait for a disk, in order; one thread can write many tapes.

    All methods but `drain` are for one thread.

    Attributes:
        put_bytes: how much was ever given to it, as its users count.
        done_bytes: how much of that is done; only what runs in the thread may change it.
        uncreated: why the latest tape could not be created, which is reported once; "" if it was.
    """

    def __init__(self) -> None:
        self.put_bytes = 0
        self.done_bytes = 0
        self.uncreated = ""
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._busy_since_ns = 0
        self._gave_up = False
        self._thread: threading.Thread | None = None

    def put(self, job: Callable[[], None]) -> None:
        """Have a job done, which must not raise."""
        self._jobs.put(job)
        if self._thread is None:
            self._thread = _start(self._run, "tape-writer")

    @property
    def busy_ns(self) -> int:
        """For how long the present job has been running."""
        since_ns = self._busy_since_ns
        return since_ns and SystemClock.now_ns() - since_ns

    def drain(self) -> bool:
        """Wait until everything is done that was put; return False if the disk is too slow."""
        done = threading.Event()
        self.put(done.set)
        if self._thread is None:
            self._jobs.put(None)
            self._run()
        # Whoever closes many tapes on a disk that hangs waits once.
        if done.wait(0 if self._gave_up else _PATIENCE_S):
            return True
        self._gave_up = True
        return False

    def close(self) -> None:
        """End the thread after what was put; nothing may follow."""
        self._jobs.put(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._busy_since_ns = SystemClock.now_ns()
            job()
            self._busy_since_ns = 0
            self._gave_up = False
            if self._jobs.empty():
                sleep(_GAP_S)
