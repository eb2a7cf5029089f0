"""The flight recorder: keeps the last hours or gigabytes of tapes, and those around findings.

Strategy: the recorder starts a new tape, a *segment*, whenever `segment_due` says so, and lets
`sweep` delete the oldest ones beyond the budget. A segment is recognised by its name,
`STAMP.ring.tape`. To pin one is to take the `.ring` away, so that pins survive restarts, a user can
pin by hand, and other tapes in the folder are never touched. Around the time of a finding
everything is pinned: what is finished at once, what is being written by renaming it as it is, what
begins soon after by giving it a pinned name in the first place (`stem`).

Invariants: a tape that is being written is never deleted, by whichever process it is written; no
method raises for what a disk does; nothing is overwritten. Budgets are for segments that are not
pinned. Several recorders may share a folder: they keep one budget together.
"""

import contextlib
import os
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from deltatape.clock import Clock
from deltatape.errors import UsageError
from deltatape.store.segment import (
    MARK,
    TapeSegment,
    claim,
    held,
    is_finished,
    is_segment,
    list_segments,
    unmark,
    wall_of,
)
from deltatape.store.writer import TapeWriter

_NS = 1_000_000_000
_TIMES = {"s": _NS, "m": 60 * _NS, "h": 3600 * _NS, "d": 86400 * _NS}
_SIZES = {
    **{unit: 1000**power for power, unit in enumerate(("KB", "MB", "GB", "TB"), 1)},
    **{unit: 1024**power for power, unit in enumerate(("KiB", "MiB", "GiB", "TiB"), 1)},
}
_AMOUNT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?([A-Za-z]+)")

_SHARE = 8
"""A segment is this part of the budget: so much more, or less, than requested is kept."""
_LEAST_BYTES = 1 << 20
_LEAST_NS = _NS
_AROUND_NS = 300 * _NS
"""How long before and after a finding segments are pinned, at most."""
_WINDOWS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPolicy:
    """What a ring keeps; with both limits, the first one reached decides."""

    age_ns: int | None = None
    """For how long after it was last written to a segment is kept."""
    bytes: int | None = None
    """How large all segments together may be."""


def parse_keep(text: str) -> RetentionPolicy:
    """Return `2h`, `5GB`, or both as `2h,5GB`.

    Raises:
        UsageError: neither a time nor a size, two of one kind, or nothing.
    """
    found: dict[str, int] = {}
    for part in text.split(","):
        match = _AMOUNT.fullmatch(part.strip())
        unit = match[2] if match else ""
        kind, factor = ("age", _TIMES[unit]) if unit in _TIMES else ("size", _size_unit(unit))
        amount = round(float(match[1]) * factor) if match and factor else 0
        if not amount or kind in found:
            raise UsageError(
                f"--keep {text!r}: not what to keep; a time such as 90m or 2h (s m h d), a size"
                " such as 500MB or 5GiB (KB MB GB TB KiB MiB GiB TiB), or one of each: 2h,5GB"
            )
        found[kind] = amount
    return RetentionPolicy(age_ns=found.get("age"), bytes=found.get("size"))


def _size_unit(unit: str) -> int:
    """Its bytes, in any case of letters; 0 if there is no such unit."""
    return next((size for name, size in _SIZES.items() if name.lower() == unit.lower()), 0)


class SegmentRing:
    """The segments of a folder. May be used from any thread.

    Args:
        folder: where the segments lie; others of its tapes are left alone.
        keep: the budget.
        clock: for the age of segments.
        alarm: gets one line per kind of trouble.
    """

    def __init__(
        self, folder: Path, keep: RetentionPolicy, clock: Clock, alarm: Callable[[str], None]
    ) -> None:
        self._folder = folder
        self._keep = keep
        self._clock = clock
        self._alarm = alarm
        self._told: set[str] = set()
        self._lock = threading.Lock()
        self._windows: deque[tuple[int, int]] = deque(maxlen=_WINDOWS)
        age = keep.age_ns if keep.age_ns is not None else _SHARE * _AROUND_NS
        self._around_ns = min(_AROUND_NS, age // _SHARE)

    def stem(self, name: str) -> str:
        """Return the name of the next segment; it is pinned at once near a finding."""
        now = self._clock.wall_ns()
        pinned = any(first <= now <= last for first, last in tuple(self._windows))
        return name if pinned else f"{name}{MARK}"

    def segment_due(self, size: int, age_ns: int) -> bool:
        """Check whether a segment should be followed by a new one."""
        keep = self._keep
        if keep.age_ns is not None and age_ns >= max(keep.age_ns // _SHARE, _LEAST_NS):
            return True
        return keep.bytes is not None and size >= _segment_bytes(keep.bytes)

    def finding(self, wall_ns: int, running: Iterable[TapeWriter] = ()) -> tuple[Path, ...]:
        """Pin what was taped around a finding.

        Args:
            wall_ns: when it showed, since 1970-01-01T00:00:00Z.
            running: the tapes that are being written; they get their new name while they are.

        Returns:
            The tapes that have been pinned now, by their new names.
        """
        window = (wall_ns - self._around_ns, wall_ns + self._around_ns)
        with self._lock:
            self._remember(window)
            pinned = [
                path
                for writer in running
                if wall_of(writer.header.recorded_at) <= window[1]
                and (path := self._pin_running(writer)) is not None
            ]
            return (*pinned, *self._pin_around())

    def _remember(self, window: tuple[int, int]) -> None:
        """Extend the latest window if it overlaps: findings often come together."""
        if self._windows and self._windows[-1][0] <= window[0] <= self._windows[-1][1]:
            first, last = self._windows.pop()
            window = (first, max(last, window[1]))
        self._windows.append(window)

    def _pin_around(self) -> Iterator[Path]:
        """Pin the finished segments written in one of the windows."""
        for segment in self._segments():
            if any(_meets(segment, window) for window in self._windows):
                path = self._pin(segment.path)
                if path is not None:
                    yield path

    def pin(self, path: Path) -> Path | None:
        """Keep a finished segment for good; return its new name, None if impossible.

        A tape that is no segment is kept anyway, by the name that it has.
        """
        if not is_segment(path):
            return path
        with self._lock:
            return self._pin(path)

    def _pin(self, path: Path) -> Path | None:
        with held(path) as free, self._telling(f"{path}: cannot be pinned"):
            if free:
                return unmark(path)
        return None

    def _pin_running(self, writer: TapeWriter) -> Path | None:
        if writer.path is None or not is_segment(writer.path):
            return None
        with self._telling(f"{writer.path}: cannot be pinned"):
            pinned = claim(writer.path)
            if writer.rename(pinned):
                return pinned
            pinned.unlink()
        return None

    def sweep(self, running: Iterable[Path] = ()) -> tuple[Path, ...]:
        """Delete the oldest segments beyond the budget; return them.

        May take a while for large files: a matter for a thread.

        Args:
            running: tapes that are being written by this process; those of others are known by
                their locks.
        """
        mine = frozenset(running)
        with self._lock:
            for _ in self._pin_around():
                pass  # what was still being written when the finding came
            finished = [
                segment
                for segment in self._segments()
                if segment.path not in mine and is_finished(segment.path)
            ]
            return tuple(path for path in self._beyond(finished) if self._delete(path))

    def _beyond(self, finished: Iterable[TapeSegment]) -> Iterator[Path]:
        oldest_ns, left = None, None
        if self._keep.age_ns is not None:
            oldest_ns = self._clock.wall_ns() - self._keep.age_ns
        if self._keep.bytes is not None:
            # The one that is being written counts as it will be when it is full.
            left = self._keep.bytes - _segment_bytes(self._keep.bytes)
        for segment in sorted(finished, key=lambda each: each.modified_ns, reverse=True):
            if left is not None:
                left -= segment.size
            if (left is not None and left < 0) or (
                oldest_ns is not None and segment.modified_ns < oldest_ns
            ):
                yield segment.path

    def _delete(self, path: Path) -> bool:
        what = f"{path}: cannot be deleted, so more is kept than asked for"
        with held(path) as free, self._telling(what):
            if free:
                path.unlink()
                return True
        return False

    def _segments(self) -> tuple[TapeSegment, ...]:
        with self._telling(f"{self._folder}: cannot be listed"):
            return list_segments(self._folder)
        return ()

    @contextlib.contextmanager
    def _telling(self, what: str) -> Iterator[None]:
        """Report errors of the system once per kind; a missing file is not an error."""
        try:
            yield
        except FileNotFoundError:
            pass
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            if reason not in self._told:
                self._told.add(reason)
                self._alarm(f"{what}: {reason}")


def _segment_bytes(budget: int) -> int:
    return min(budget, max(budget // _SHARE, _LEAST_BYTES))


def _meets(segment: TapeSegment, window: tuple[int, int]) -> bool:
    first, last = window
    return segment.modified_ns >= first and segment.begun_ns <= last
