"""The tapes of a ring, identified by their names.

Any number of recorders may work in a folder, so nothing is deleted or renamed unless its lock was
got, and unless it still is what has that name then. A tape gets its header after its lock: an
empty file is somebody's who is about to lock it, and is left alone.
"""

import calendar
import contextlib
import fcntl
import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deltatape.errors import DeltatapeError
from deltatape.store.names import SUFFIX
from deltatape.store.reader import open_tape

_NS = 1_000_000_000
_SEGMENT = re.compile(r"(.+)\.ring((?:-[0-9]+)?)\.tape", re.DOTALL)
_STAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)\.(\d{9})Z", re.ASCII)

MARK = ".ring"
"""What the stem of a segment ends in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TapeSegment:
    """A tape that the ring may delete."""

    path: Path
    size: int
    modified_ns: int
    """When it was last written to, since 1970-01-01T00:00:00Z."""

    @property
    def begun_ns(self) -> int:
        """When it was started, by its header, or last written if the header is damaged."""
        try:
            return wall_of(open_tape(self.path).header.recorded_at)
        except DeltatapeError:
            return self.modified_ns


def is_segment(path: Path) -> bool:
    """Check by name whether a ring may delete this tape."""
    return _SEGMENT.fullmatch(path.name) is not None


def list_segments(folder: Path) -> tuple[TapeSegment, ...]:
    """Return the segments in a folder.

    Raises:
        OSError: it cannot be listed.
    """
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            # Links may lead anywhere, and opening a named pipe would wait.
            if _SEGMENT.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                    status = entry.stat(follow_symlinks=False)
                    found.append(
                        TapeSegment(
                            path=Path(entry.path),
                            size=status.st_size,
                            modified_ns=status.st_mtime_ns,
                        )
                    )
    return tuple(found)


def wall_of(recorded_at: str) -> int:
    """A header's `recorded_at` as nanoseconds since 1970-01-01T00:00:00Z; 0 if it is none."""
    match = _STAMP.fullmatch(recorded_at)
    if match is None:
        return 0
    *moment, fraction = map(int, match.groups())
    try:
        return calendar.timegm(tuple(moment)) * _NS + fraction
    except ValueError:  # a month 13: the header of a tape is untrusted
        return 0


@contextlib.contextmanager
def held(path: Path) -> Iterator[bool]:
    """Yield whether no recorder is writing it, and lock it against other rings."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        yield os.fstat(fd).st_size > 0 and _lock(fd, path)
    finally:
        os.close(fd)


def is_finished(path: Path) -> bool:
    """Check whether no recorder is writing it."""
    with held(path) as free:
        return free


def _lock(fd: int, path: Path) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return _stopped(path)
    try:
        # Another ring may have deleted it, and another recorder have taken the name.
        return os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False


def _stopped(path: Path) -> bool:
    try:
        return open_tape(path).stopped
    except DeltatapeError:
        return False


def claim(path: Path) -> Path:
    """Reserve the name of a pinned segment, as an empty file.

    Raises:
        OSError: it cannot be made.
    """
    match = _SEGMENT.fullmatch(path.name)
    assert match is not None
    stem = f"{match[1]}{match[2]}"
    for count in itertools.count(2):
        pinned = path.with_name(f"{stem}{SUFFIX}")
        with contextlib.suppress(FileExistsError):
            os.close(os.open(pinned, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            return pinned
        stem = f"{stem.removesuffix(f'-{count - 1}')}-{count}"
    raise AssertionError  # pragma: no cover - count() never ends


def unmark(path: Path) -> Path:
    """Rename a segment so that the ring no longer owns it; return the new name.

    Raises:
        OSError: it cannot be renamed.
    """
    pinned = claim(path)
    try:
        return path.rename(pinned)
    except OSError:
        pinned.unlink()
        raise
