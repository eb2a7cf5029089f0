"""Ships finished tapes to an object store, one after another, the oldest first.

Strategy: a tape's key is computed from its header, so the same tape always gets the same key, and
only the store records what was shipped. Two tapes are equal if their lines are: the same tape,
sealed by another version, has other bytes. Every step can be repeated: hash the lines, ask the
store, seal and send them, ask again, delete the local copy. A shipper that is killed between any
two steps loses nothing, and the next one stores nothing twice.

Invariants: no object is ever replaced by another tape. A local copy is deleted only after the whole
object was read back and is equal to it.
"""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Protocol

from deltatape.clock import Clock, parse_rfc3339
from deltatape.errors import (
    DeltatapeError,
    StoreRefusedError,
    StoreUnreachableError,
    TapeFormatError,
    UsageError,
)
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.objects.store import PART_BYTES, ObjectRanges, ObjectStore, StoredObject
from deltatape.printable import count
from deltatape.render.numbers import size as size_text
from deltatape.ship.state import Identity, ShipState, finished, identity
from deltatape.store.listing import ListedTape, Unreadable, list_tapes
from deltatape.store.names import SEALED_SUFFIX, SUFFIX
from deltatape.store.packing import seal
from deltatape.store.reader import open_tape
from deltatape.store.sealed import SealedTape, open_sealed, verify
from deltatape.tape.record import Header

JOURNAL = "journalsha256"
"""The metadata key of the SHA-256 of a tape's lines; the object's own SHA-256 is stored, too."""
_BLOCK = 1 << 18
_LOOK_S = 5.0
"""The interval between two searches of the folder."""
_FIRST_S = 1.0
_LONGEST_S = 60.0
"""The wait after the first failure, which doubles each time, and the longest one."""
_NS = 1_000_000_000
_ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")


class Stop(Protocol):
    """A request to stop, such as a `threading.Event`."""

    def is_set(self) -> bool: ...

    def wait(self, timeout: float) -> bool:
        """Wait until it is set; return whether it was."""


class _StoppedError(Exception):
    """The shipper was stopped in the middle of a tape."""


class _LeftError(Exception):
    """A tape was not shipped, with the reason."""


@dataclass(frozen=True, slots=True)
class _LocalTape:
    """A tape to ship."""

    path: Path
    key: str
    """Where it goes, without the suffix."""
    size: int
    """Bytes of its lines."""
    sha256: str
    """The hash of its lines."""
    is_sealed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShipOptions:
    """What to ship, and the limits on it."""

    folder: Path
    """The folder with the tapes, searched with all folders below."""
    gateway: str
    """The recorder's name in the keys."""
    seal: bool = True
    """Whether to seal tapes before sending."""
    rules: Settings = DEFAULTS
    """The thresholds for the rows in the index of a sealed tape."""
    delete: bool = False
    """Whether to delete local copies once they are verified."""
    memory: int = 4 * PART_BYTES
    """The most bytes of tapes in memory."""
    bandwidth: int | None = None
    """The most bytes a second, sent and read back; None: no limit."""
    patience_s: float | None = None
    """How long to retry when the store does not answer; None: for ever."""


def key_of(header: Header, gateway: str) -> str:
    """Return a tape's key, without the suffix: `dt=2026-11-21/gateway=NAME/ULID`.

    Raises:
        UsageError: its header has no ULID or no time.
    """
    if not _ULID.fullmatch(header.id):
        raise UsageError(f"its id {header.id[:40]!a} is no ULID")
    if not parse_rfc3339(header.recorded_at):
        raise UsageError(f"its time {header.recorded_at[:40]!a} is none in RFC 3339")
    return f"dt={header.recorded_at[:10]}/gateway={gateway}/{header.id}"


class Bandwidth:
    """Limits the rate of bytes.

    Args:
        rate: bytes a second; None: no limit.
        clock: tells the time.
        stop: ends waiting.
    """

    def __init__(self, rate: int | None, clock: Clock, stop: Stop) -> None:
        self._rate = rate
        self._clock = clock
        self._stop = stop
        self._free_ns = 0

    def take(self, size: int) -> None:
        """Wait until `size` more bytes may be sent.

        Raises:
            _StoppedError: the shipper was stopped.
        """
        if self._stop.is_set():
            raise _StoppedError
        if self._rate is None:
            return
        now = self._clock.now_ns()
        wait_ns = self._free_ns - now
        self._free_ns = max(self._free_ns, now) + size * _NS // self._rate
        if wait_ns > 0 and self._stop.wait(wait_ns / _NS):
            raise _StoppedError


class Shipper:
    """Ships the tapes of a folder until it is stopped.

    Args:
        store: receives them.
        options: see `ShipOptions`.
        clock: for the age of the backlog, waiting and the bandwidth.
        stop: stops it, also between the parts of a tape.
        tell: gets a line for each tape that was shipped.
        alarm: gets a line for each tape that was not, and when the store stops answering or
            answers again.
        state: its counters.
    """

    def __init__(
        self,
        store: ObjectStore,
        options: ShipOptions,
        *,
        clock: Clock,
        stop: Stop,
        tell: Callable[[str], None],
        alarm: Callable[[str], None],
        state: ShipState,
    ) -> None:
        self.state = state
        self._store = store
        self._options = options
        self._clock = clock
        self._stop = stop
        self._tell = tell
        self._alarm = alarm
        self._bandwidth = Bandwidth(options.bandwidth, clock, stop)
        self._known: set[Identity] = set()
        """The tapes that the store has."""
        self._settled: dict[ListedTape, Identity] = {}
        """Those, and the refused ones, as the folder lists them: they are not opened again."""
        self._failed: Counter[Identity] = Counter()
        self._told: type[DeltatapeError] | None = None
        """The kind of failure that was reported last; None: the store answers."""
        self._since_ns = 0
        """When it stopped answering."""
        self._answered = False
        """Whether it ever did, and refused nothing."""

    def run(self, *, once: bool) -> None:
        """Ship all finished tapes, and new ones, until it is stopped.

        Args:
            once: whether to end when no finished tape is left.

        Raises:
            StoreRefusedError, UsageError: the store refuses the very first request.
            StoreUnreachableError: it did not answer for as long as the options say.
        """
        delay_s = _FIRST_S
        while not self._stop.is_set():
            try:
                self._look()
                if not self._answered or not (self.state.reachable or self.state.backlog):
                    self._probe()
                self._ship_backlog()
            except _StoppedError:
                return
            except (StoreUnreachableError, StoreRefusedError, UsageError) as trouble:
                self._in_trouble(trouble)
                self._stop.wait(delay_s)
                delay_s = min(2 * delay_s, _LONGEST_S)
            else:
                delay_s = _FIRST_S
                if once:
                    return
                self._stop.wait(_LOOK_S)

    def _probe(self) -> None:
        """List a folder that no tape has, to see whether the store accepts requests."""
        for _ in self._store.list("dt=0000-00-00"):
            pass
        self._all_well()

    def _look(self) -> None:
        """Search the folder for tapes to ship."""
        backlog: list[tuple[int, ListedTape]] = []
        settled, self._settled = self._settled, {}
        present: set[Identity] = set()
        unreadable: list[Unreadable] = []
        recording = 0
        for tape in list_tapes((self._options.folder,), unreadable.append):
            own = settled.get(tape) or _finished(tape.path)
            if own is None:
                recording += 1
                continue
            present.add(own)
            if own in self._known or own in self.state.refused:
                self._settled[tape] = own
            else:
                backlog.append((self._failed[own], tape))
        for folder in unreadable:
            if folder not in self.state.unreadable:
                self._alarm(f"left: {folder.problem}")
        self.state.unreadable = frozenset(unreadable)
        self._known &= present
        for gone in self.state.refused.keys() - present:
            del self.state.refused[gone]
        for gone in self._failed.keys() - present:
            del self._failed[gone]
        self.state.recording = recording
        # One that fails again and again must not keep back the others.
        backlog.sort(key=lambda each: (each[0], each[1].modified_ns))
        self.state.found(tape for _, tape in backlog)

    def _ship_backlog(self) -> None:
        for done, tape in enumerate(self.state.looked_at, 1):
            if self._stop.is_set():
                raise _StoppedError
            with finished(tape.path) as file:
                if file is None:  # renamed or deleted since
                    continue
                own = identity(os.fstat(file.fileno()))
                try:
                    self._ship(tape.path, file)
                except (_LeftError, OSError) as problem:
                    if not os.path.lexists(tape.path):  # another shipper was quicker
                        continue
                    reason = getattr(problem, "strerror", None) or str(problem)
                    self.state.refused[own] = reason
                    self._alarm(f"left: {tape.path}: {reason}")
                except (StoreUnreachableError, StoreRefusedError, UsageError):
                    self._failed[own] += 1
                    raise
                else:
                    self._known.add(own)
            self.state.done = done

    def _ship(self, path: Path, file: FileIO) -> None:
        """Ship a tape, and verify the object.

        Raises:
            _LeftError: it cannot be shipped.
            OSError: it cannot be read.
        """
        local = self._local(path, file)
        found = self._find(local)
        sent = found is None
        if found is None:
            _check(path)
            found = self._send(file, local)
        elif not self._holds(found, local):
            raise _LeftError(f"the store has another tape of its id, {self._store.url}/{found.key}")
        self._all_well()
        if self._options.delete:
            self._delete(file, local, found)
        if sent:
            self.state.shipped += 1
            self.state.shipped_bytes += found.size
        what = "shipped" if sent else "in the store already"
        then = "; the local copy is deleted" if self._options.delete else ""
        self._tell(f"{what}: {path} ({size_text(found.size)}) as {found.key}{then}")

    def _local(self, path: Path, file: FileIO) -> _LocalTape:
        """Return a tape to ship, with the hash of its lines.

        Raises:
            _LeftError: it is no tape.
        """
        try:
            tape = open_tape(path)
            key = key_of(tape.header, self._options.gateway)
            if isinstance(tape, SealedTape):
                table = tape.sealed.table
                return _LocalTape(path, key, table.size, table.sha256, is_sealed=True)
        except (TapeFormatError, UsageError) as problem:
            raise _LeftError(_without(path, problem)) from None
        return _LocalTape(path, key, os.fstat(file.fileno()).st_size, _hashed(file))

    def _find(self, local: _LocalTape) -> StoredObject | None:
        """Return the object of a tape in the store, sealed or not; None if there is none."""
        keys = [f"{local.key}{SEALED_SUFFIX}", f"{local.key}{SUFFIX}"]
        if not (local.is_sealed or self._options.seal):
            keys.reverse()
        return next(filter(None, map(self._store.head, keys)), None)

    def _holds(self, found: StoredObject, local: _LocalTape) -> bool:
        """Check whether an object is the tape; reads it all if the local copy is deleted then."""
        recorded = found.metadata.get(JOURNAL)
        if recorded is not None and not self._options.delete:
            return recorded == local.sha256
        if found.key.endswith(SUFFIX):
            return found.size == local.size and self._hash_of(found) == local.sha256
        name = f"{self._store.url}/{found.key}"
        try:
            if not self._options.delete:
                tape = open_sealed(name, ObjectRanges(self._store, found.key))
                return tape.sealed.table.sha256 == local.sha256
            with TemporaryFile() as copy:
                for block in self._read_back(found):
                    copy.write(block)
                copy.flush()
                tape = open_sealed(name, _Copy(copy.fileno()))
                verify(tape)
                return tape.sealed.table.sha256 == local.sha256
        except TapeFormatError:
            return False

    def _send(self, file: FileIO, local: _LocalTape) -> StoredObject:
        """Send a tape, sealed if the options say so, and verify the object.

        Raises:
            _LeftError: it cannot be sealed, or changed meanwhile.
        """
        if local.is_sealed:
            return self._put(file, f"{local.key}{SEALED_SUFFIX}", _hashed(file), local)
        if not self._options.seal:
            return self._put(file, f"{local.key}{SUFFIX}", local.sha256, local)
        with TemporaryDirectory(prefix="deltatape-ship-") as folder:
            try:
                made = seal(local.path, Path(folder, f"x{SEALED_SUFFIX}"), self._options.rules)
            except (TapeFormatError, UsageError) as problem:
                raise _LeftError(_without(local.path, problem)) from None
            sealed = FileIO(made.path)
        with sealed:  # which has no name any more: a shipper killed while it sends leaves no copy
            return self._put(sealed, f"{local.key}{SEALED_SUFFIX}", _hashed(sealed), local)

    def _put(self, file: FileIO, key: str, sha256: str, local: _LocalTape) -> StoredObject:
        size = os.fstat(file.fileno()).st_size
        self._store.put(
            key,
            self._blocks(file, sha256),
            size=size,
            sha256=sha256,
            metadata={JOURNAL: local.sha256},
            memory=self._options.memory,
        )
        found = self._store.head(key)
        if found is not None and found.size == size:
            recorded = None if self._options.delete else found.metadata.get("sha256")
            if (recorded or self._hash_of(found)) == sha256:
                return found
        raise StoreUnreachableError(f"{self._store.url}/{key}: is not what was sent")

    def _blocks(self, file: FileIO, sha256: str) -> Iterator[bytes]:
        """Yield a file that must be as it was when it was hashed.

        Raises:
            _LeftError: it has changed.
        """
        seen = hashlib.sha256()
        try:
            file.seek(0)
            while block := file.read(_BLOCK):
                self._bandwidth.take(len(block))
                seen.update(block)
                yield block
        except OSError as error:  # not the store's
            raise _LeftError(error.strerror or str(error)) from None
        if seen.hexdigest() != sha256:
            raise _LeftError("it changed while it was sent")

    def _read_back(self, found: StoredObject) -> Iterator[bytes]:
        for block in self._store.blocks(found):
            self._bandwidth.take(len(block))
            yield block

    def _hash_of(self, found: StoredObject) -> str:
        stored = hashlib.sha256()
        for block in self._read_back(found):
            stored.update(block)
        return stored.hexdigest()

    def _delete(self, file: FileIO, local: _LocalTape, found: StoredObject) -> None:
        """Delete the local copy of a tape, unless it is the stored object itself.

        Raises:
            _LeftError: it is, or the name belongs to another file now.
        """
        own = os.fstat(file.fileno())
        if self._store.folder is not None and os.path.samestat(
            own, (self._store.folder / found.key).stat()
        ):
            raise _LeftError("it is the very file that is in the store")
        try:
            if not os.path.samestat(own, local.path.lstat()):
                raise _LeftError("another file has its name by now")
            local.path.unlink()
        except FileNotFoundError:  # another shipper was quicker
            return
        self.state.deleted += 1

    def _all_well(self) -> None:
        self._answered = self.state.reachable = True
        if self._told is not None:
            self._told = None
            self._alarm(f"{self._store.url}: answers again")

    def _in_trouble(self, trouble: DeltatapeError) -> None:
        """Report each kind of failure once; raise one that has lasted as long as `patience_s`."""
        if not self._answered and not isinstance(trouble, StoreUnreachableError):
            raise trouble
        self.state.failures += 1
        now_ns = self._clock.now_ns()
        if self.state.reachable:
            self._since_ns = now_ns
        self.state.reachable = False
        patience_s = self._options.patience_s
        if patience_s is not None and now_ns - self._since_ns >= patience_s * _NS:
            raise trouble
        if self._told is not type(trouble):
            self._told = type(trouble)
            left = count(len(self.state.backlog), "tape")
            self._alarm(f"{trouble}; {left} to ship, trying again until it works")


def _finished(path: Path) -> Identity | None:
    """Return the identity of a finished tape; None if a recorder is writing it."""
    with finished(path) as file:
        return None if file is None else identity(os.fstat(file.fileno()))


def _hashed(file: FileIO) -> str:
    """Return the SHA-256 of a file."""
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()


class _Copy:
    """A temporary file, read as a sealed tape is."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def read(self, offset: int, length: int) -> bytes:
        return os.pread(self._fd, length, offset)


def _check(path: Path) -> None:
    """Read a tape to its end.

    Raises:
        _LeftError: it is damaged.
    """
    try:
        tape = open_tape(path)
        if isinstance(tape, SealedTape):
            verify(tape)
        for _ in tape.records():
            pass
    except (TapeFormatError, UsageError) as problem:
        raise _LeftError(_without(path, problem)) from None


def _without(path: Path, problem: DeltatapeError) -> str:
    """Return the message of an error without the name of the tape."""
    if isinstance(problem, TapeFormatError):
        return f"line {problem.line}: {problem.problem}" if problem.line else problem.problem
    return str(problem).removeprefix(f"{path}: ")
