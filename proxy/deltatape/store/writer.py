"""Writes a tape while its streams are in progress.

Strategy: everything that may wait for a disk happens in other threads. Lines wait in memory for a
`WriterThread`, which writes all that have come since its last write by one `writev`; syncing has
a thread of its own, since lines must not wait for it.

Invariants: no method but `flush` and `close` waits for a disk, and none raises for disk errors;
losses are counted and reported; the file is readable at every moment.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from deltatape import __version__
from deltatape.clock import Clock, rfc3339
from deltatape.model.exchange import Source
from deltatape.store.names import check_stem, open_new, prepare_folder, ulid
from deltatape.store.tape_file import (
    Line,
    LossCounter,
    SyncThread,
    TapeFile,
    WriterThread,
    is_end,
)
from deltatape.tape.encode import header_line
from deltatape.tape.record import Header, Shard

WAITING_BYTES = 64 << 20
"""How much may wait for a slow disk before records are lost."""
TOO_SLOW = "the disk is too slow"
_HANGING_NS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardOrigin:
    """What the tapes of one of several processes that record together have in common."""

    recording: str
    """See `Shard`, also for `index` and `count`."""
    index: int
    count: int
    zero_ns: int
    """The instant from which all times count, by the monotonic clock, which processes share."""
    wall_ns: int
    """The same instant since 1970-01-01T00:00:00Z."""

    def shard(self, now_ns: int, name: str | None) -> Shard:
        """Return what the header of a tape called `name` says that begins at `now_ns`."""
        return Shard(
            recording=self.recording,
            index=self.index,
            count=self.count,
            begun_ns=now_ns - self.zero_ns,
            name=name,
        )


TOOL = f"deltatape {__version__}"
_NO_TAPE = "there is no tape"


class TapeWriter:
    """A tape being written. Use `create`.

    Attributes:
        header: its first line.
    """

    def __init__(
        self,
        file: TapeFile | None,
        header: Header,
        clock: Clock,
        zero_ns: int,
        ledger: LossCounter,
        thread: WriterThread | None = None,
    ) -> None:
        self.header = header
        self._clock = clock
        self._zero_ns = zero_ns
        self._ledger = ledger
        self._own_thread = thread is None
        self._closed = False
        self._abandoned = False  # whether a disk that hangs was given up
        self._thread = thread or WriterThread()
        self._lines: list[Line] = []
        self._queued = False  # whether the thread has yet to take the latest lines
        self._unsynced = False  # whether it is to ask for a sync then
        self._room = WAITING_BYTES  # -1: there is no tape
        self._full: set[int] = set()  # exchanges that are marked as lossy in `_lines`
        self._use(file)

    def _use(self, file: TapeFile | None) -> None:
        self._file = file
        self._sync = SyncThread(file.sync) if file is not None else None

    @classmethod
    def create(
        cls,
        folder: Path,
        stem: str,
        *,
        clock: Clock,
        tool: str = TOOL,
        source: Source = Source.GATEWAY,
        alarm: Callable[[str], None],
        thread: WriterThread | None = None,
        origin: ShardOrigin | None = None,
        name: str | None = None,
    ) -> Self:
        """Create a tape `FOLDER/STEM.tape` (or `STEM-2.tape`, ...) with its header.

        Args:
            folder: made if missing, for its owner only.
            stem: see `names.check_stem`.
            clock: times on the tape count from now.
            tool: what writes the tape.
            source: what kind of recorder feeds it.
            alarm: gets one line per kind of trouble; may be called from another thread.
            thread: creates and writes the tape; None: one of its own, which is waited for.
            origin: the recording that the tape is a shard of; then times count from its beginning.
            name: what requests call the tape, if it is a shard.

        Raises:
            UsageError: `stem` is not a valid name. Disk errors are not raised: see `path`.
        """
        check_stem(stem)
        zero_ns, recorded_at = clock.now_ns(), rfc3339(clock.wall_ns())
        shard = None
        if origin is not None:
            shard = origin.shard(zero_ns, name)
            zero_ns, recorded_at = origin.zero_ns, rfc3339(origin.wall_ns)
        header = Header(
            id=ulid(clock), tool=tool, recorded_at=recorded_at, source=source, shard=shard
        )
        writer = cls(None, header, clock, zero_ns, LossCounter(alarm), thread)
        writer._thread.put(lambda: writer._open(folder, stem))
        if thread is None:
            writer.flush()
        return writer

    def _open(self, folder: Path, stem: str) -> None:
        try:
            prepare_folder(folder)
            fd, path = open_new(folder, stem)
            if self._abandoned:
                os.close(fd)
                path.unlink()
                return
        except OSError as error:
            reason = error.strerror or str(error)
            problem = f"nothing will be taped: {folder}: {reason}; the streams go on unrecorded"
            if problem != self._thread.uncreated:
                self._thread.uncreated = problem
                self._ledger.trouble(reason, problem)
            self._room = -1
        else:
            self._thread.uncreated = ""
            self._use(TapeFile(fd, path, header_line(self.header), self._ledger))
        self._write()

    @property
    def path(self) -> Path | None:
        """Where the tape is now, also after it was renamed; None if there is no file."""
        return self._file.path if self._file is not None else None

    @property
    def pending(self) -> bool:
        """Whether the tape is yet to be created."""
        return self._file is None and self._room >= 0

    @property
    def broken(self) -> bool:
        """Whether nothing more can be taped: the tape could not be created, or was deleted."""
        return self._room < 0 or (self._file is not None and self._file.gone)

    def now_ns(self) -> int:
        """Return the time on the tape: nanoseconds since `recorded_at`."""
        return self._clock.now_ns() - self._zero_ns

    @property
    def age_ns(self) -> int:
        """How long ago the tape was begun."""
        shard = self.header.shard
        return self.now_ns() - (shard.begun_ns if shard is not None else 0)

    def put(self, exchange: int, line: bytes) -> None:
        """Take a line of an exchange, with its line feed; it is written at once, but elsewhere."""
        thread = self._thread
        size = len(line)
        if thread.put_bytes - thread.done_bytes + size > self._room:
            self._refuse(exchange, line)
            return
        thread.put_bytes += size
        # The order matters: the thread first unsets `_queued` and `_unsynced`, then takes the
        # lines.
        self._lines.append((exchange, line))
        if not self._queued:
            self._wake()

    def _wake(self) -> None:
        self._queued = True
        self._thread.put(self._write)

    def _refuse(self, exchange: int, line: bytes) -> None:
        """Lose a line for which there is no room; only the `end` of an exchange is kept."""
        if self._room < 0:
            self._ledger.lost([(exchange, line)], _NO_TAPE)
            return
        self._ledger.trouble(TOO_SLOW, f"taping fails: {TOO_SLOW}; the tape loses records")
        if is_end(line):
            self._thread.put_bytes += len(line)
            self._lines.append((exchange, line))
        else:
            self._ledger.lost([(exchange, line)], TOO_SLOW)
            if exchange not in self._full:
                self._full.add(exchange)
                self._lines.append((exchange, b""))
        if not self._queued:
            self._wake()

    def _write(self) -> None:
        self._queued = False
        unsynced, self._unsynced = self._unsynced, False
        count = len(self._lines)
        lines = self._lines[:count]
        del self._lines[:count]
        self._full.clear()
        try:
            if self._file is None:
                self._ledger.lost(lines, _NO_TAPE)
            else:
                self._file.append(lines, self._clock.now_ns())
        except Exception as error:  # noqa: BLE001 - without its thread nothing is taped any more
            self._ledger.trouble(repr(error), f"taping fails: {self.path}: {error!r}")
            self._ledger.lost(lines, repr(error))
        self._thread.done_bytes += sum([len(line) for _, line in lines])
        if unsynced and self._sync is not None and not self._closed:
            self._sync.request()

    @property
    def in_trouble(self) -> bool:
        """Whether the tape loses records now, or they wait for a disk."""
        ledger, waiting = self._ledger, self._thread.put_bytes - self._thread.done_bytes
        slow = self._hangs or waiting > max(self._room, 0) // 2
        return ledger.failing or ledger.unsynced or self.broken or slow

    @property
    def _hangs(self) -> bool:
        return self._thread.busy_ns > _HANGING_NS

    def settle(self) -> None:
        """Note that it is not in trouble: what comes next is reported again."""
        self._ledger.settle()

    def watch(self) -> None:
        """Report a disk that hangs; to be called now and then."""
        if self._hangs:
            self._ledger.trouble(
                "hanging",
                f"taping waits: {self.path}: the disk takes no bytes; the streams go on, and"
                f" {self._room >> 20} MiB at most wait in memory",
            )

    @property
    def lost_records(self) -> int:
        return self._ledger.records

    @property
    def lost_bytes(self) -> int:
        return self._ledger.bytes

    @property
    def size(self) -> int:
        """The size of the tape so far, in bytes."""
        return self._file.size if self._file is not None else 0

    def rename(self, path: Path) -> bool:
        """Rename the tape while it is written; return False if impossible. May wait for the disk.

        Args:
            path: in the same file system; an existing file is replaced.
        """
        file = self._file
        if file is None:
            return False
        try:
            file.path.rename(path)
        except OSError as error:
            reason = error.strerror or str(error)
            self._ledger.trouble(
                f"rename: {reason}", f"{self.path}: cannot be called {path.name}: {reason}"
            )
            return False
        file.path = path
        return True

    def flush(self) -> bool:
        """Wait until what was put is written; return False if the disk is too slow."""
        return self._closed or self._thread.drain()

    def durable(self) -> None:
        """Request a sync of what was put, without waiting."""
        self._unsynced = True
        if not self._queued:
            self._wake()

    def close(self) -> None:
        """Write, sync and close the tape; wait some seconds at most for a slow disk."""
        if self._closed:
            return
        self._closed = True
        self._thread.put(self._finish)
        written = self._thread.drain()
        self._room = -1
        if not written:
            self._abandoned = True
            waiting, self._lines = self._lines, []
            self._ledger.lost(waiting, TOO_SLOW)
        elif self._file is not None and self._sync is not None and self._sync.close():
            # A thread that still hangs in a write must not find another file under this number.
            self._file.close()
        if self._own_thread:
            self._thread.close()

    def _finish(self) -> None:
        if self._file is not None:
            self._file.finish(self._clock.now_ns())
