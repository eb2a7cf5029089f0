"""The counters of a shipper: what was shipped and what is left. `/metrics` reads them.

Only the store records what was shipped; nothing is written on this machine, so a shipper can be
killed, moved or run twice. Within a process, no tape is looked up again once the store has it.
"""

import contextlib
import fcntl
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING

from deltatape.clock import Clock
from deltatape.errors import DeltatapeError, UsageError
from deltatape.store.listing import ListedTape, Unreadable
from deltatape.store.reader import open_tape

if TYPE_CHECKING:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

_NS = 1_000_000_000
_GATEWAY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")

Identity = tuple[int, int, int, int]
"""Device, inode, size and time of the last write of a file; its name does not count."""


def identity(status: os.stat_result) -> Identity:
    """Return a value that differs for each file, and after each change of one."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def check_gateway(name: str) -> str:
    """Check that a name can be part of a key.

    Raises:
        UsageError: it has other characters, begins with a dot, or is too long.
    """
    if not _GATEWAY.fullmatch(name):
        raise UsageError(
            f"--gateway {name!a}: 1 to 128 letters, digits, '.', '_', '-' are accepted, the first"
            " not a dot"
        )
    return name


@contextlib.contextmanager
def finished(path: Path) -> Iterator[FileIO | None]:
    """Open a tape unless a recorder is writing it; None: one is, or the file is gone.

    While it is open, no ring deletes or renames it. Other processes can read it, and do not take it
    for one that is being recorded.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    with FileIO(fd) as file:
        status = os.fstat(fd)
        # A tape gets its header after its lock: an empty one is about to be locked.
        usable = stat.S_ISREG(status.st_mode) and status.st_size > 0
        yield file if usable and _lock(fd, path) else None


def _lock(fd: int, path: Path) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: the tape itself may tell
        return _stopped(path)
    with contextlib.suppress(FileNotFoundError):  # deleted meanwhile, or renamed
        return os.path.samestat(os.fstat(fd), path.lstat())
    return False


def _stopped(path: Path) -> bool:
    try:
        return open_tape(path).stopped
    except DeltatapeError:
        return False


@dataclass(slots=True)
class ShipState:
    """Counters of a shipper; the backlog is as of its last search of the folder."""

    looked_at: tuple[ListedTape, ...] = ()
    """Finished tapes that were not known to be in the store then, in the order of shipping."""
    done: int = 0
    """How many of those were tried since."""
    recording: int = 0
    """Tapes that are being written, which are not shipped."""
    refused: dict[Identity, str] = field(default_factory=dict)
    """Why tapes cannot be shipped: they are damaged, or their key belongs to another tape."""
    unreadable: frozenset[Unreadable] = frozenset()
    """Folders whose tapes are not shipped, since they cannot be searched."""
    shipped: int = 0
    shipped_bytes: int = 0
    deleted: int = 0
    failures: int = 0
    """Attempts that failed: the store did not answer, or refused."""
    reachable: bool = True
    """Whether the store answered the last attempt."""

    def found(self, tapes: Iterable[ListedTape]) -> None:
        """Take the result of a search of the folder."""
        self.looked_at, self.done = (), 0  # in this order: another thread reads them
        self.looked_at = tuple(tapes)

    @property
    def backlog(self) -> tuple[ListedTape, ...]:
        """Finished tapes that are not known to be in the store."""
        return self.looked_at[self.done :]

    @property
    def backlog_bytes(self) -> int:
        return sum(tape.size for tape in self.backlog)

    def lag_s(self, wall_ns: int) -> float:
        """Return how long ago the oldest tape of the backlog was finished, in seconds."""
        oldest = min((tape.modified_ns for tape in self.backlog), default=wall_ns)
        return max(0, wall_ns - oldest) / _NS


class ShipCollector:
    """Gives the state to prometheus-client."""

    def __init__(self, state: ShipState, clock: Clock) -> None:
        self._state = state
        self._clock = clock

    def collect(self) -> "Iterator[CounterMetricFamily | GaugeMetricFamily]":
        """Yield every metric; called by prometheus-client."""
        from prometheus_client.core import (  # noqa: PLC0415 - most commands need none
            CounterMetricFamily,
            GaugeMetricFamily,
        )

        state = self._state
        gauges = (
            ("backlog_tapes", "Finished tapes that are not in the store yet", len(state.backlog)),
            ("backlog_bytes", "The size of the backlog", state.backlog_bytes),
            (
                "lag_seconds",
                "How long ago the oldest tape of the backlog was finished",
                state.lag_s(self._clock.wall_ns()),
            ),
            ("recording_tapes", "Tapes that are being written", state.recording),
            ("refused_tapes", "Tapes that are left: damaged, or in conflict", len(state.refused)),
            ("store_reachable", "Whether the store answered at last", int(state.reachable)),
        )
        for name, text, value in gauges:
            yield GaugeMetricFamily(f"deltatape_ship_{name}", text, value)
        counters = (
            ("shipped_tapes", "Tapes that were stored and verified", state.shipped),
            ("shipped_bytes", "What was sent of those", state.shipped_bytes),
            ("deleted_tapes", "Local copies that were deleted", state.deleted),
            ("failures", "Attempts that the store refused or did not answer", state.failures),
        )
        for name, text, number in counters:
            yield CounterMetricFamily(f"deltatape_ship_{name}", text, number)


def serve_metrics(state: ShipState, clock: Clock, host: str, port: int) -> int:
    """Answer `/metrics` from a thread; return the port.

    Raises:
        UsageError: prometheus-client is not installed, or the address is not available.
    """
    try:
        from prometheus_client import CollectorRegistry, start_http_server  # noqa: PLC0415
    except ImportError:
        raise UsageError(
            '--metrics needs prometheus-client: pip install "deltatape[fleet]"'
        ) from None
    registry = CollectorRegistry()
    registry.register(ShipCollector(state, clock))
    try:
        server, _ = start_http_server(port, host, registry)
    except OSError as error:
        raise UsageError(f"--metrics {host}:{port}: {error.strerror or error}") from None
    return int(server.server_port)
