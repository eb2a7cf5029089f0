"""The flight recorder: keeps the last hours or gigabytes of tapes, and those around findings.

Strategy: the recorder starts a new tape, a *segment*, whenever `segment_due` says so, and lets
`sweep` delete the oldest ones beyond the budget. A segment is recognised by its name,
`STAMP.ring.tape`, or `STAMP.ring.tape.zst` if it was sealed. Pinning removes `.ring` from the name,
so that pins survive restarts, users can pin by hand, and other tapes in the folder are never
touched. Around the time of a finding all segments are pinned: finished ones and those being written
are renamed, those that begin soon after get a pinned name (`stem`). Processes that record together
have smaller segments, so that what they write at the same time fits in the budget.

Invariants: a tape that any process is writing is never deleted, nor, for its size, the one that was
finished last; no method raises for disk errors; nothing is overwritten. Budgets count segments that
are not pinned, also those being written. Recorders that share a folder share one budget.
"""

import contextlib
import fcntl
import os
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import sleep  # noqa: TID251 - it reads no clock

from deltatape.clock import Clock, parse_rfc3339
from deltatape.errors import DeltatapeError, UsageError
from deltatape.store.names import RING, SEALED_SUFFIX, has_journal, open_new, without_suffix
from deltatape.store.reader import open_tape
from deltatape.store.writer import TapeWriter
from deltatape.tape.record import Header

_NS = 1_000_000_000
_TIMES = {"s": _NS, "m": 60 * _NS, "h": 3600 * _NS, "d": 86400 * _NS}
_SIZES = {
    **{unit: 1000**power for power, unit in enumerate(("kb", "mb", "gb", "tb"), 1)},
    **{unit: 1024**power for power, unit in enumerate(("kib", "mib", "gib", "tib"), 1)},
}
"""In lower case: sizes are accepted in any."""
_AMOUNT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?([A-Za-z]+)")

_SHARE = 8
"""A segment is this part of the budget: so much more, or less, than requested is kept."""
_LEAST_BYTES = 1 << 20
_LEAST_NS = _NS
_AROUND_NS = 300 * _NS
"""How long before and after a finding segments are pinned, at most."""
_WINDOWS = 64
_TRIES = 50
_TRY_S = 0.1
"""How often, and after which time each, to pin again what another process uses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPolicy:
    """What a ring keeps; with both limits, the first one reached decides."""

    age_ns: int | None = None
    """For how long after it was last written to a segment is kept."""
    bytes: int | None = None
    """How large all segments together may be."""
    text: str = ""
    """As `parse_keep` reads it."""


def parse_size(text: str) -> int:
    """Return the bytes of `500MB` or `5GiB`; 0 for anything else."""
    match = _AMOUNT.fullmatch(text.strip())
    return round(float(match[1]) * _SIZES.get(match[2].lower(), 0)) if match else 0


def parse_keep(text: str) -> RetentionPolicy:
    """Return `2h`, `5GB`, or both as `2h,5GB`.

    Raises:
        UsageError: neither a time nor a size, two of one kind, or nothing.
    """
    found: dict[str, int] = {}
    for part in text.split(","):
        match = _AMOUNT.fullmatch(part.strip())
        unit = match[2] if match else ""
        kind = "age" if unit in _TIMES else "size"
        factor = _TIMES.get(unit) or _SIZES.get(unit.lower(), 0)
        amount = round(float(match[1]) * factor) if match and factor else 0
        if not amount or kind in found:
            raise UsageError(
                f"--keep {text!r}: invalid limit; use a time such as 90m or 2h (s m h d), a size"
                " such as 500MB or 5GiB (KB MB GB TB KiB MiB GiB TiB), or one of each: 2h,5GB"
            )
        found[kind] = amount
    return RetentionPolicy(age_ns=found.get("age"), bytes=found.get("size"), text=text)


# The tapes of a ring, identified by their names.
#
# Any number of recorders may work in a folder, so nothing is deleted or renamed unless its lock was
# got, and unless it still is what has that name then. A tape gets its header after its lock: an
# empty file belongs to a recorder that is about to lock it, and is left alone.

_SEGMENT = re.compile(r"(.+)\.ring((?:-[0-9]+)?)\.tape((?:\.zst)?)", re.DOTALL)


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
            return begun_ns(open_tape(self.path).header)
        except DeltatapeError:
            return self.modified_ns


def begun_ns(header: Header) -> int:
    """Return when a tape was begun, since 1970-01-01T00:00:00Z."""
    after_ns = header.shard.begun_ns if header.shard is not None else 0
    return parse_rfc3339(header.recorded_at) + after_ns


def is_segment(path: Path) -> bool:
    """Check by name whether a ring may delete this tape."""
    return _SEGMENT.fullmatch(path.name) is not None


def list_segments(folder: Path) -> tuple[TapeSegment, ...]:
    """Return the segments in a folder.

    Raises:
        OSError: it cannot be listed.
    """
    found = []
    with os.scandir(folder) as scanned:
        entries = [*scanned]
        names = {entry.name for entry in entries}
        for entry in entries:
            if has_journal(entry.name, names):
                continue  # it is being sealed: the tape itself counts
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
    """Reserve the name of a pinned segment that is not sealed, as an empty file.

    Raises:
        OSError: it cannot be created.
    """
    match = _SEGMENT.fullmatch(path.name)
    assert match is not None
    fd, pinned = open_new(path.parent, f"{match[1]}{match[2]}")
    os.close(fd)
    return pinned


def unmark(path: Path) -> Path:
    """Rename a segment so that the ring no longer owns it; return the new name.

    A journal and its sealed form, if that is there already, get the same new name: otherwise both
    would be kept.

    Raises:
        OSError: it cannot be renamed.
    """
    pinned = claim(path)
    # No tape has this name while the one without the suffix is reserved.
    pinned_sealed = _sealed_form(pinned)
    try:
        if path.name.endswith(SEALED_SUFFIX):
            path.rename(pinned_sealed)
        else:
            with contextlib.suppress(FileNotFoundError):
                _sealed_form(path).rename(pinned_sealed)
            path.rename(pinned)
            return pinned
    except OSError:
        pinned.unlink()
        raise
    pinned.unlink()
    return pinned_sealed


def _sealed_form(journal: Path) -> Path:
    return journal.with_name(f"{without_suffix(journal.name)}{SEALED_SUFFIX}")


class SegmentRing:
    """The segments of a folder. May be used from any thread.

    Args:
        folder: where the segments lie; others of its tapes are left alone.
        keep: the budget.
        clock: for the age of segments.
        alarm: gets one line per kind of trouble.
        note: gets a line when the budget cannot be kept for once.
        writers: how many processes write segments of this budget at the same time.
    """

    def __init__(
        self,
        folder: Path,
        keep: RetentionPolicy,
        clock: Clock,
        alarm: Callable[[str], None],
        note: Callable[[str], None],
        writers: int = 1,
    ) -> None:
        self._folder = folder
        self._keep = keep
        self._writers = writers
        self._full_bytes = _segment_bytes((keep.bytes or 0) // writers)
        self._clock = clock
        self._alarm = alarm
        self._note = note
        self._reported: set[str] = set()
        self._lock = threading.Lock()
        self._windows: deque[tuple[int, int]] = deque(maxlen=_WINDOWS)
        age = keep.age_ns if keep.age_ns is not None else _SHARE * _AROUND_NS
        self._around_ns = min(_AROUND_NS, age // _SHARE)

    def stem(self, name: str) -> str:
        """Return the name of the next segment; it is pinned at once near a finding."""
        now = self._clock.wall_ns()
        pinned = any(first <= now <= last for first, last in tuple(self._windows))
        return name if pinned else f"{name}{RING}"

    def segment_due(self, size: int, age_ns: int) -> bool:
        """Check whether a segment should be followed by a new one."""
        keep = self._keep
        if keep.age_ns is not None and age_ns >= max(keep.age_ns // _SHARE, _LEAST_NS):
            return True
        return keep.bytes is not None and size >= self._full_bytes

    def finding(self, wall_ns: int, running: Iterable[TapeWriter] = ()) -> tuple[Path, ...]:
        """Pin what was taped around a finding.

        Finished segments that another process uses just now are tried again for a few seconds.

        Args:
            wall_ns: when it was found, since 1970-01-01T00:00:00Z.
            running: the tapes being written; they are renamed while open.

        Returns:
            The tapes that have been pinned now, by their new names.
        """
        window = (wall_ns - self._around_ns, wall_ns + self._around_ns)
        with self._lock:
            self._remember(window)
            pinned = [
                path
                for writer in running
                if begun_ns(writer.header) <= window[1]
                and (path := self._pin_running(writer)) is not None
            ]
            finished, in_use = self._pin_around()
        for _ in range(_TRIES):
            if not in_use:
                break
            sleep(_TRY_S)
            with self._lock:
                more, in_use = self._pin_around()
            finished += more
        return (*pinned, *finished)

    def _remember(self, window: tuple[int, int]) -> None:
        """Extend the latest window if it overlaps: findings often come together."""
        if self._windows and self._windows[-1][0] <= window[0] <= self._windows[-1][1]:
            first, last = self._windows.pop()
            window = (first, max(last, window[1]))
        self._windows.append(window)

    def _pin_around(self) -> tuple[list[Path], bool]:
        """Pin the finished segments written in one of the windows.

        Returns:
            Their new names, and whether another process used one just now.
        """
        pinned, in_use = [], False
        for segment in self._segments():
            path = segment.path
            if not any(_overlaps(segment, window) for window in self._windows):
                continue
            with held(path) as free, self._reported_once(f"{path}: cannot be pinned"):
                if free:
                    pinned.append(unmark(path))
                else:
                    # Others lock a finished one, too, while they read, seal or ship it; a sealed
                    # one has another name.
                    in_use |= _stopped(path) or not path.exists()
        return pinned, in_use

    def _pin_running(self, writer: TapeWriter) -> Path | None:
        if writer.path is None or not is_segment(writer.path):
            return None
        with self._reported_once(f"{writer.path}: cannot be pinned"):
            pinned = claim(writer.path)
            if writer.rename(pinned):
                return pinned
            pinned.unlink()
        return None

    def sweep(self, running: Iterable[Path] = ()) -> tuple[Path, ...]:
        """Delete the oldest segments beyond the budget; return them.

        May take long for large files: call it in a thread.

        Args:
            running: tapes that are being written by this process; those of others are known by
                their locks.
        """
        mine = frozenset(running)
        with self._lock:
            self._pin_around()  # what was still being written when the finding came
            finished, written = [], []
            for segment in self._segments():
                if segment.path not in mine and is_finished(segment.path):
                    finished.append(segment)
                else:
                    written.append(segment.size)
            finished.sort(key=lambda segment: segment.modified_ns, reverse=True)
            self._report_excess(sum(written) + sum(each.size for each in finished[:1]))
            beyond = self._beyond(finished, written)
            return tuple(path for path in beyond if self._delete(path))

    def _beyond(self, finished: Iterable[TapeSegment], written: Sequence[int]) -> Iterator[Path]:
        """Yield which of `finished` to delete, the newest first.

        Args:
            finished: the newest first.
            written: the sizes of those that are being written.
        """
        oldest_ns, left = None, None
        if self._keep.age_ns is not None:
            oldest_ns = self._clock.wall_ns() - self._keep.age_ns
        if self._keep.bytes is not None:
            # One per process that is being written counts as it will be when it is full.
            sizes = [*sorted(written, reverse=True), *(0,) * self._writers]
            full = (max(size, self._full_bytes) for size in sizes[: self._writers])
            left = self._keep.bytes - sum(full) - sum(sizes[self._writers :])
        for number, segment in enumerate(finished):
            if left is not None:
                left -= segment.size
            # What has just ended is no rest of what is kept, however large it is.
            if (left is not None and left < 0 and number) or (
                oldest_ns is not None and segment.modified_ns < oldest_ns
            ):
                yield segment.path

    def _report_excess(self, least: int) -> None:
        """Report once that more is kept than the budget, since nothing may be deleted of it."""
        budget = self._keep.bytes
        if budget is not None and least > budget and "excess" not in self._reported:
            self._reported.add("excess")
            self._note(
                f"{least / 1e6:.1f} MB are kept, more than the {budget / 1e6:.1f} MB asked for:"
                " exchanges that go on at the same time share a tape, which is deleted as a whole,"
                " and not before a newer one has ended"
            )

    def _delete(self, path: Path) -> bool:
        what = f"{path}: cannot be deleted, so more is kept than asked for"
        with held(path) as free, self._reported_once(what):
            if free:
                path.unlink()
                return True
        return False

    def _segments(self) -> tuple[TapeSegment, ...]:
        with self._reported_once(f"{self._folder}: cannot be listed"):
            return list_segments(self._folder)
        return ()

    @contextlib.contextmanager
    def _reported_once(self, what: str) -> Iterator[None]:
        """Report errors of the system once per kind; a missing file is not an error."""
        try:
            yield
        except FileNotFoundError:
            pass
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            if reason not in self._reported:
                self._reported.add(reason)
                self._alarm(f"{what}: {reason}")


def _segment_bytes(budget: int) -> int:
    return min(budget, max(budget // _SHARE, _LEAST_BYTES))


def _overlaps(segment: TapeSegment, window: tuple[int, int]) -> bool:
    first, last = window
    return segment.modified_ns >= first and segment.begun_ns <= last
