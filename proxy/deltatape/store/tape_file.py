"""An open tape file: lines are written whole or not at all.

Strategy: all lines of a call go out in one `writev`; a short write is continued. After a failed
write the incomplete line is cut off, so that only the last line can be torn. If that fails, too,
the rest of the line is written as soon as the disk accepts bytes again. Nothing here raises: losses
are counted.

Invariant: the file is the header and whole lines, plus at most one torn line at the end.
"""

import errno
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from deltatape.clock import Clock

_BATCH = 1024
"""IOV_MAX of Linux and macOS."""
_CHECK_NS = 1_000_000_000
"""How often to check whether the file still has a name."""
GONE = "the tape was deleted while it was written"


# What taping lost, per exchange and in all, and the alarms about it.
#
# Losing records must be loud and must stay cheap: one alarm per kind of trouble, counts for the
# rest. Safe to use from the writing thread and from the recorder's own.

_REMEMBERED = 4096
"""Exchanges whose losses are kept: with a dead disk every exchange has some, for ever."""


class LossCounter:
    """Counts losses; `alarm` gets one line per kind of problem, from any thread."""

    def __init__(self, alarm: Callable[[str], None]) -> None:
        self._alarm = alarm
        self._lock = threading.Lock()
        self._reported: set[str] = set()
        self._by_exchange: dict[int, tuple[int, int, str]] = {}
        self.records = 0
        self.bytes = 0

    def trouble(self, kind: str, message: str) -> None:
        """Report a problem unless one of this kind was reported."""
        with self._lock:
            if kind in self._reported:
                return
            self._reported.add(kind)
        self._alarm(message)

    def lost(self, exchanges: Sequence[int], lines: Sequence[bytes], error: str) -> None:
        """Count `lines`, each of the exchange at the same position, as lost."""
        with self._lock:
            for exchange, line in zip(exchanges, lines, strict=True):
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

    Args:
        fd: a new, empty file, opened with O_APPEND.
        path: its name, for messages; may be set when it gets another one.
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
        """Of all whole lines, in bytes."""
        self._rest = b""  # of the line that stands torn at the end
        self._checked_ns: int | None = None
        self._gone = False

    def append(self, exchanges: Sequence[int], lines: Sequence[bytes], now_ns: int) -> None:
        """Write `lines`, each of the exchange at the same position."""
        if self._checked_ns is None or now_ns - self._checked_ns > _CHECK_NS:
            self._checked_ns = now_ns
            self.check_deleted()
        if self._gone:
            self._ledger.lost(exchanges, lines, GONE)
            return
        done = 0
        try:
            self._mend()
            while done < len(lines):
                done += self._write(lines[done : done + _BATCH])
        except OSError as error:
            self._cut()
            self._report_error(error)
            self._ledger.lost(exchanges[done:], lines[done:], _reason(error))

    def _write(self, lines: Sequence[bytes]) -> int:
        """Call `writev` once; return the number of complete lines after it."""
        batch = [lines[0][-len(self._rest) :], *lines[1:]] if self._rest else lines
        count = os.writev(self._fd, batch)
        if count == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
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

    def check_deleted(self) -> None:
        """Notice that the file was deleted: its content and what follows are lost."""
        try:
            gone = not self._gone and os.fstat(self._fd).st_nlink == 0
        except OSError as error:
            self._report_error(error)
            return
        if gone:
            self._gone = True
            self._ledger.lost_after_all(self._records, self.size)
            self._ledger.trouble(GONE, f"taping fails: {self.path}: {GONE}; the stream goes on")

    def sync(self) -> None:
        """Wait until the disk has what was written."""
        try:
            os.fsync(self._fd)
        except OSError as error:
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


# The two things about a tape that may wait for a disk: syncing, and writing to a slow one.
#
# Both threads are daemons and are waited for at most `_PATIENCE_S` at the end: a disk that hangs
# must not keep the recorder, and with it the user's program, from ending.

_PATIENCE_S = 10.0
_WAITING_BYTES = 64 << 20
"""How much may wait for a slow disk before records are lost."""
TOO_SLOW = "the disk is too slow"


def _start(run: Callable[[], None], name: str) -> threading.Thread | None:
    """Start a daemon thread; return None if the system or the interpreter refuses."""
    thread = threading.Thread(target=run, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return None
    return thread


class SyncThread:
    """Syncs on demand: at most one running and one waiting; the caller never waits.

    Attributes:
        busy_since_ns: when the running sync began; None if none is running.
    """

    def __init__(self, sync: Callable[[], None], clock: Clock) -> None:
        self.busy_since_ns: int | None = None
        self._sync = sync
        self._clock = clock
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
            self.busy_since_ns = self._clock.now_ns()
            self._sync()
            self.busy_since_ns = None


class WriterThread:
    """Writes lines in a thread once writing has become slow.

    Args:
        write: writes lines of exchanges; called in the thread only.
        ledger: counts lines that do not fit into the queue.
    """

    def __init__(
        self, write: Callable[[Sequence[int], Sequence[bytes]], None], ledger: LossCounter
    ) -> None:
        self._write = write
        self._ledger = ledger
        self._changed = threading.Condition()
        self._exchanges: list[int] = []
        self._lines: list[bytes] = []
        self._waiting = 0
        self._closing = False
        self._thread = _start(self._run, "tape-writer")

    def put(self, exchanges: Sequence[int], lines: Sequence[bytes]) -> None:
        """Queue lines; count them as lost if too much is waiting."""
        size = sum(map(len, lines))
        with self._changed:
            fits = self._waiting + size <= _WAITING_BYTES
            if fits:
                self._waiting += size
                self._exchanges.extend(exchanges)
                self._lines.extend(lines)
                self._changed.notify()
        if not fits:
            self._ledger.trouble(TOO_SLOW, f"taping fails: {TOO_SLOW}; the tape loses records")
            self._ledger.lost(exchanges, lines, TOO_SLOW)

    def close(self) -> bool:
        """Write what is waiting; return False, and lose it, if the disk is too slow."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is None:
            self._run()
            return True
        self._thread.join(_PATIENCE_S)
        with self._changed:
            self._ledger.lost(self._exchanges, self._lines, TOO_SLOW)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lines or self._closing)
                if not self._lines:
                    return
                exchanges, lines = self._exchanges, self._lines
                self._exchanges, self._lines = [], []
                self._waiting = 0
            self._write(exchanges, lines)
