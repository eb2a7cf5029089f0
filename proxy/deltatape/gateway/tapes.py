"""The tapes of a run: the main one, those requested by name, and the ring that deletes old ones.

Each tape records the client connections that were open while it was written: without them, an
application that has hung up looks like one that is silent. Rotation affects new exchanges only: a
tape that was replaced is closed when its last exchange has ended.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from deltatape.model.tape_summary import ROTATED, LogStream
from deltatape.store.ring import SegmentRing
from deltatape.store.tape_file import WriterThread
from deltatape.store.writer import TapeWriter
from deltatape.tape.encode import json_record
from deltatape.tape.mask import Masker
from deltatape.tape.payload import ClientState, ParsedAs
from deltatape.tape.tap import TapeTap

MAX_NAMED = 256
"""How many named tapes stay open; beyond that, the one idle for longest is closed."""

Create = Callable[[str | None, WriterThread], TapeWriter]
"""Creates the tape of that name, in that thread; None: the tape for requests that name none."""


@dataclass(slots=True, eq=False)
class OpenTape:
    """A tape being written."""

    name: str | None
    writer: TapeWriter
    tap: TapeTap
    exchanges: int = 0
    """Exchanges so far, and so the number of the latest."""
    active: int = 0
    """Exchanges in progress."""
    clients: set[int] = field(default_factory=set)
    """Connections that the tape records as open."""
    watched_ns: int = 0
    """When the tape last showed that it was being recorded."""

    @property
    def path(self) -> str:
        """Its path; "" if it could not be created."""
        return str(self.writer.path or "")

    @property
    def pending(self) -> bool:
        """Whether it is yet to be created."""
        return self.writer.pending

    def client(self, connection: int, state: ClientState) -> None:
        """Record that a client connection was opened or closed, once."""
        if (connection in self.clients) is (state is ClientState.OPENED):
            return
        self.clients ^= {connection}
        self.tap.client(self.writer.now_ns(), connection=connection, state=state)


class TapeBook:
    """All tapes of a run."""

    def __init__(self, create: Create, masker: Masker) -> None:
        self._create = create
        self._masker = masker
        self._named: dict[str, OpenTape] = {}
        self._retired: set[OpenTape] = set()
        self._closing: set[OpenTape] = set()
        self._writing = 1  # this run, and the tapes that are being closed: they need the thread
        self._writing_lock = threading.Lock()
        self.pool = ThreadPoolExecutor(2, "deltatape-tapes")
        """For work that may wait for a disk: the loop's own pool must be free to resolve names."""
        self._clients: set[int] = set()
        self._lost = (0, 0)
        self._stopped = False
        self._thread = WriterThread()
        self._next: OpenTape | None = None  # which is to replace the current one
        self.current = self._open(None)
        self.current.writer.flush()
        self.on_closed: Callable[[OpenTape], None] | None = None
        """Called with each tape that is complete before the run ends."""
        self.on_closing: Callable[[OpenTape, str], None] | None = None
        """Called with each tape that ends before the run does, and the reason."""

    def _open(self, name: str | None) -> OpenTape:
        writer = self._create(name, self._thread)
        return OpenTape(name, writer, TapeTap(writer.put, self._masker))

    def all(self) -> Iterator[OpenTape]:
        """Yield every open tape."""
        yield from self.written()
        yield from self._retired

    def named(self, name: str | None) -> OpenTape:
        """Return the tape for an exchange."""
        if name is None:
            return self.current
        tape = self._named.pop(name, None)
        if tape is not None and tape.writer.broken and not tape.active:
            self._close_in_background(tape)
            tape = None
        if tape is None:
            self._make_room()
            tape = self._open(name)
        self._named[name] = tape  # the latest is last
        return tape

    def _make_room(self) -> None:
        if len(self._named) >= MAX_NAMED:
            longest_idle = next((each for each in self._named.values() if not each.active), None)
            if longest_idle is not None and longest_idle.name is not None:
                del self._named[longest_idle.name]
                self._close_in_background(longest_idle)

    def written(self) -> Iterator[OpenTape]:
        """Yield every tape that takes new exchanges."""
        yield self.current
        yield from self._named.values()

    async def rotate(self, old: OpenTape) -> bool:
        """Replace `old` for new exchanges; return False if that is impossible."""
        if self._next is not None:
            return False
        if old is self.current:
            new = self._next = self._open(None)
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self.pool, new.writer.flush)
            if self._stopped:
                return False
            self._next = None
            if new.writer.path is None:
                await loop.run_in_executor(self.pool, new.writer.close)
                self._lost = _add_losses(self._lost, new.writer)
                return False
            self.current = new
            for connection in self._clients:
                self.current.client(connection, ClientState.OPENED)
        elif old.name is not None and self._named.get(old.name) is old:
            del self._named[old.name]  # made again when it is asked for
        else:
            return True  # it was closed meanwhile
        self._retired.add(old)
        self.release(old)
        return True

    def release(self, tape: OpenTape) -> None:
        """Close a replaced tape after its last exchange."""
        if tape in self._retired and not tape.active:
            self._retired.discard(tape)
            self._close_in_background(tape)

    def client(self, connection: int, state: ClientState) -> None:
        """Record a client connection; nothing follows a tape's `stop` record."""
        if self._stopped:
            return
        if state is ClientState.OPENED:
            self._clients.add(connection)
            self.current.client(connection, state)
            return
        self._clients.discard(connection)
        for tape in tuple(self.all()):
            tape.client(connection, state)

    def watch(self, every_ns: int) -> None:
        """Record on quiet tapes that the recorder is still running; report a hanging disk."""
        self.current.writer.watch()
        for tape in self.all():
            now = tape.writer.now_ns()
            if tape.active:
                tape.watched_ns = now
            elif now - tape.watched_ns >= every_ns:
                tape.tap.idle(now)
                tape.watched_ns = now

    @property
    def in_trouble(self) -> bool:
        """Whether anything is known not to be taped now."""
        return any(
            tape.writer.in_trouble
            for tape in self.all()
            # Without a file it is made anew when an exchange asks for it.
            if tape.active or tape is self.current or not tape.writer.broken
        )

    def settle(self) -> None:
        """Note that all can be taped: what comes next is reported again."""
        for tape in self.all():
            tape.writer.settle()

    def log(self, stream: LogStream, data: bytes, left_out: int = 0) -> None:
        """Record output of the application; `left_out` bytes before it are not recorded."""
        self.current.tap.log(self.current.writer.now_ns(), stream, data, left_out)

    def log_end(self) -> None:
        """Record that the application closed its output."""
        self.current.tap.log_end(self.current.writer.now_ns())

    def note(self, text: str) -> None:
        """Write a note on the main tape."""
        self.current.tap.note(self.current.writer.now_ns(), text)

    def parsed(self, tape: OpenTape, number: int, parsed: Mapping[str, object]) -> None:
        """Record what was parsed of an ended exchange, a `ParsedAs`, unless its tape is closed."""
        if not self._stopped and tape in self.all():
            now = tape.writer.now_ns()
            tape.writer.put(number, json_record(now, number, ParsedAs.code, parsed))

    def stop(self, reason: str, code: int | None) -> None:
        """End all tapes; `code` is the child's exit code, if any."""
        self._stopped = True
        for tape in self.all():
            tape.tap.stop(tape.writer.now_ns(), reason, code)
            tape.writer.close()
        if self._next is not None:
            self._next.writer.close()
            if self._next.writer.path is not None:
                self._next.writer.path.unlink(missing_ok=True)
        self._written()

    def _close_in_background(self, tape: OpenTape) -> None:
        """End a tape in the background: its last sync must not delay a stream."""
        tape.tap.stop(tape.writer.now_ns(), ROTATED, None)
        if self.on_closing is not None:
            self.on_closing(tape, ROTATED)
        self._closing.add(tape)
        with self._writing_lock:
            self._writing += 1
        closing = asyncio.get_running_loop().run_in_executor(self.pool, self._close, tape)
        closing.add_done_callback(lambda _: self._closed(tape))

    def _close(self, tape: OpenTape) -> None:
        tape.writer.close()
        self._written()

    def _written(self) -> None:
        """End the thread after the last write, even if the event loop has ended."""
        with self._writing_lock:
            self._writing -= 1
            last = self._writing == 0
        if last:
            self._thread.close()

    def _closed(self, tape: OpenTape) -> None:
        self._closing.discard(tape)
        self._lost = _add_losses(self._lost, tape.writer)
        if self.on_closed is not None:
            self.on_closed(tape)

    def losses(self) -> tuple[int, int]:
        """Count records and bytes that all tapes of the run lack."""
        lost = self._lost
        for tape in (*self.all(), *self._closing):
            lost = _add_losses(lost, tape.writer)
        return lost


def _add_losses(lost: tuple[int, int], writer: TapeWriter) -> tuple[int, int]:
    return lost[0] + writer.lost_records, lost[1] + writer.lost_bytes


# The flight recorder at work: rotates the tapes of a run, pins what matters, sweeps the rest.

LOOK_S = 0.2
"""How often to look whether a tape is due."""
PINNING_S = 10.0
PATIENCE_S = 60.0
"""How long the old tape is used if no new one could be made."""


class RingRecording:
    """Keeps `book` within the budget of `ring`."""

    def __init__(self, ring: SegmentRing, book: TapeBook) -> None:
        self._ring = ring
        self._book = book
        self._looking: asyncio.Task[None] | None = None
        self._written = 0  # bytes of open tapes at the last sweep
        self._pinning: set[asyncio.Future[tuple[Path, ...]]] = set()
        book.on_closed = self._closed

    def start(self) -> None:
        """Start; needs a running loop."""
        self._sweep()
        self._looking = asyncio.get_running_loop().create_task(self._look())

    async def stop(self) -> None:
        """Stop rotating, and wait for running pins."""
        if self._looking is not None:
            self._looking.cancel()
        if self._pinning:
            await asyncio.wait(self._pinning, timeout=PINNING_S)

    def finding(self, wall_ns: int, then: Callable[[], None]) -> None:
        """Keep what was taped around an exchange with findings.

        Runs in a thread, since there may be many segments; `then` is called after they are renamed.
        """
        writers = [tape.writer for tape in self._book.all()]
        pinning = asyncio.get_running_loop().run_in_executor(
            self._book.pool, self._ring.finding, wall_ns, writers
        )
        self._pinning.add(pinning)
        pinning.add_done_callback(lambda done: self._pinned(done, then))

    def _pinned(self, done: "asyncio.Future[tuple[Path, ...]]", then: Callable[[], None]) -> None:
        self._pinning.discard(done)
        if not done.cancelled():
            then()

    async def _look(self) -> None:
        while True:
            due = [
                tape
                for tape in self._book.written()
                if self._ring.segment_due(tape.writer.size, tape.writer.age_ns)
            ]
            rotated = [await self._book.rotate(tape) for tape in due]
            if self._ring.segment_due(self._written_bytes() - self._written, 0):
                self._sweep()
            await asyncio.sleep(LOOK_S if all(rotated) else PATIENCE_S)

    def _closed(self, tape: OpenTape) -> None:  # noqa: ARG002 - which one does not matter
        self._sweep()

    def _sweep(self) -> None:
        """Delete old files in a thread: unlinking gigabytes takes time."""
        self._written = self._written_bytes()
        running = [tape.writer.path for tape in self._book.all() if tape.writer.path is not None]
        asyncio.get_running_loop().run_in_executor(self._book.pool, self._ring.sweep, running)

    def _written_bytes(self) -> int:
        return sum(tape.writer.size for tape in self._book.all())
