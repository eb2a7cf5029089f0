"""An open tape: lines go in whole, or not at all.

Strategy: all lines of a call go out in one `writev`; a short write is continued. When the disk
refuses, what stands of a line is cut off again, so that a reader never meets a torn line before
the last one. Where not even cutting works, the rest of that line is written first as soon as the
disk takes bytes again. Nothing here raises: losses go to the ledger.

Invariant: the file is the header and whole lines, plus at most one torn line at the end.
"""

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from deltatape.store.ledger import Ledger

_BATCH = 1024
"""IOV_MAX of Linux and macOS."""

_LOOK_NS = 1_000_000_000
"""How often to look whether the file still has a name."""

GONE = "the tape was deleted while it was written"


class TapeFile:
    """A tape that is being written.

    Args:
        fd: a new, empty file, opened with O_APPEND.
        path: its name, for messages; may be set when it gets another one.
        header: the line that every other line has to come after.
        ledger: where losses go.
    """

    def __init__(self, fd: int, path: Path, header: bytes, ledger: Ledger) -> None:
        self._fd = fd
        self.path = path
        self._header = header
        self._ledger = ledger
        self._records = 0
        self.size = 0
        """Of all whole lines, in bytes."""
        self._rest = b""  # of the line that stands torn at the end
        self._looked_ns: int | None = None
        self._gone = False

    def append(self, exchanges: Sequence[int], lines: Sequence[bytes], now_ns: int) -> None:
        """Write `lines`; each belongs to the exchange at the same place of `exchanges`."""
        if self._looked_ns is None or now_ns - self._looked_ns > _LOOK_NS:
            self._looked_ns = now_ns
            self.look()
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
            self._refused(error)
            self._ledger.lost(exchanges[done:], lines[done:], _reason(error))

    def _write(self, lines: Sequence[bytes]) -> int:
        """One `writev`; how many lines are whole in the file after it."""
        batch = [lines[0][-len(self._rest) :], *lines[1:]] if self._rest else lines
        count = os.writev(self._fd, batch)
        if count == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        whole = 0
        for line, part in zip(lines, batch, strict=True):
            if count < len(part):
                self._rest = part[count:] if count else self._rest
                break
            count -= len(part)
            self._rest = b""
            self.size += len(line)
            whole += 1
        self._records += whole
        return whole

    def _cut(self) -> None:
        """Cut off the torn line, if there is one."""
        if self._rest:
            try:
                os.ftruncate(self._fd, self.size)
            except OSError as error:
                self._refused(error)
            else:
                self._rest = b""

    def _mend(self) -> None:
        """Make the end of the file the end of a line; raises OSError when that is refused."""
        self._cut()
        while self._rest:
            count = os.write(self._fd, self._rest)
            self._rest = self._rest[count:]
            if not self._rest:
                self.size = os.fstat(self._fd).st_size
        while self.size == 0:
            self._write((self._header,))
            self._records = 0

    def _refused(self, error: OSError) -> None:
        self._ledger.trouble(
            _reason(error),
            f"taping fails: {self.path}: {_reason(error)}; "
            "the stream goes on, the tape loses records",
        )

    def look(self) -> None:
        """Notice that the file has been deleted: what was written is lost, and what follows."""
        try:
            gone = not self._gone and os.fstat(self._fd).st_nlink == 0
        except OSError as error:
            self._refused(error)
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
        """Let go of the file."""
        try:
            os.close(self._fd)
        except OSError as error:
            self._refused(error)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
