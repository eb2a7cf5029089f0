"""Writes a tape while the streams it records go on.

Strategy: the lines of one turn of the event loop are written by one `writev`, after their bytes
went to the application. Syncing happens in a thread. After a write of more than 100 ms, or a sync
of more than a second, all further writes of the run happen in a thread, too: a hanging disk usually
delays a sync first, while writes still go to memory.

Invariants: no method raises for disk errors, or waits for the disk longer than one write; losses
are counted and reported; the file is readable at every moment.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from deltatape import __version__
from deltatape.clock import Clock, rfc3339
from deltatape.model.exchange import Source
from deltatape.store.names import check_stem, open_new, prepare_folder, ulid
from deltatape.store.tape_file import LossCounter, SyncThread, TapeFile, WriterThread
from deltatape.tape.encode import header_line
from deltatape.tape.record import Header

_SLOW_NS = 100_000_000
_HANGING_NS = 1_000_000_000

TOOL = f"deltatape {__version__}"
_NO_TAPE = "there is no tape"


class TapeWriter:
    """A tape being written. Use `create`.

    Attributes:
        path: the tape; None if it could not be created: then everything is counted as lost.
        header: its first line.
        on_dirty: called when the first line of a turn is waiting; it must have `flush` called at
            the end of the turn. If it is not set, every line is written at once.
    """

    def __init__(
        self, file: TapeFile | None, header: Header, clock: Clock, zero_ns: int, ledger: LossCounter
    ) -> None:
        self.path = file.path if file is not None else None
        self.header = header
        self.on_dirty: Callable[[], None] = self.flush
        self._file = file
        self._clock = clock
        self._zero_ns = zero_ns
        self._ledger = ledger
        self._exchanges: list[int] = []
        self._lines: list[bytes] = []
        self._thread: WriterThread | None = None
        self._sync = SyncThread(file.sync, clock) if file is not None else None

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
    ) -> Self:
        """Create a tape `FOLDER/STEM.tape` (or `STEM-2.tape`, ...) with its header.

        Args:
            folder: made if missing, for its owner only.
            stem: see `names.check_stem`.
            clock: times on the tape count from now.
            tool: what writes the tape.
            source: what kind of recorder feeds it.
            alarm: gets one line per kind of trouble; may be called from another thread.

        Raises:
            UsageError: `stem` is not a valid name. Disk errors are not raised: see `path`.
        """
        check_stem(stem)
        zero_ns, recorded_at = clock.now_ns(), rfc3339(clock.wall_ns())
        header = Header(id=ulid(clock), tool=tool, recorded_at=recorded_at, source=source)
        ledger = LossCounter(alarm)
        try:
            prepare_folder(folder)
            fd, path = open_new(folder, stem)
        except OSError as error:
            reason = error.strerror or str(error)
            ledger.trouble(
                reason,
                f"nothing will be taped: {folder}: {reason}; the streams go on unrecorded",
            )
            return cls(None, header, clock, zero_ns, ledger)
        file = TapeFile(fd, path, header_line(header), ledger)
        file.append((), (), zero_ns)
        return cls(file, header, clock, zero_ns, ledger)

    def now_ns(self) -> int:
        """Return the time on the tape: nanoseconds since `recorded_at`."""
        return self._clock.now_ns() - self._zero_ns

    def put(self, exchange: int, line: bytes) -> None:
        """Take a line of an exchange, with its line feed; `flush` writes it."""
        first = not self._lines
        self._exchanges.append(exchange)
        self._lines.append(line)
        if first:
            self.on_dirty()

    def flush(self) -> None:
        """Write what was put."""
        if not self._lines:
            return
        exchanges, lines = self._exchanges, self._lines
        self._exchanges, self._lines = [], []
        if self._file is None:
            self._ledger.lost(exchanges, lines, _NO_TAPE)
        elif self._thread is not None:
            self._thread.put(exchanges, lines)
        else:
            self._write(self._file, exchanges, lines)

    def _write(self, file: TapeFile, exchanges: Sequence[int], lines: Sequence[bytes]) -> None:
        start_ns = self._clock.now_ns()
        syncing_ns = self._sync.busy_since_ns if self._sync is not None else None
        hanging = syncing_ns is not None and start_ns - syncing_ns > _HANGING_NS
        if not hanging:
            file.append(exchanges, lines, start_ns)
        if hanging or self._clock.now_ns() - start_ns > _SLOW_NS:
            now_ns = self._clock.now_ns
            self._thread = WriterThread(
                lambda exchanges, lines: file.append(exchanges, lines, now_ns()), self._ledger
            )
            if hanging:
                self._thread.put(exchanges, lines)

    def losses(self, exchange: int) -> dict[str, object]:
        """Return what the tape lacks of an exchange, for `ExchangeTap.end`; empty if nothing.

        Shape: `{"lost_records": 3, "lost_bytes": 1200, "error": "No space left on device"}`. Lines
        that wait for a slow disk are not included.
        """
        self.flush()
        return self._ledger.of(exchange)

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
        """Rename the tape while it is written; return False if impossible.

        Args:
            path: in the same file system; an existing file is replaced.
        """
        if self.path is None:
            return False
        try:
            self.path.rename(path)
        except OSError as error:
            reason = error.strerror or str(error)
            self._ledger.trouble(
                f"rename: {reason}", f"{self.path}: cannot be called {path.name}: {reason}"
            )
            return False
        self.path = path
        if self._file is not None:
            self._file.path = path
        return True

    def durable(self) -> None:
        """Write what was put, and request a sync without waiting."""
        self.flush()
        if self._sync is not None:
            self._sync.request()

    def close(self) -> None:
        """Write, sync and close the tape; wait some seconds at most for a slow disk."""
        self.flush()
        file, self._file = self._file, None
        if file is None or self._sync is None:
            return
        written = self._thread is None or self._thread.close()
        file.check_deleted()
        synced = written and self._sync.close()
        if synced:
            # A thread that still hangs in a write must not find another file under this number.
            file.close()
