"""Copies the child's output to ours at once, and hands a copy to the event loop.

A thread of its own, since writing to a terminal that is stopped blocks, and no stream of the
gateway may wait for that. It writes only where `poll` says that there is room, so that one stream
that nobody takes does not hold up the other.

One thread for both streams, so that they come out in the order in which the child wrote them, as
far as two terminals can tell it: what is read first is written first, a line that comes in pieces
is not torn by the other stream, and where both have something stderr is first, since the child does
not hold that back.

Invariants: bytes are neither changed nor dropped. At most one piece of each stream waits for our
output, then the child waits as it would without us. At most `MAX_WAITING_BYTES` wait for the loop.
"""

import asyncio
import contextlib
import errno
import itertools
import os
import select
import stat
import threading
from collections.abc import Callable, Sequence

from deltatape.harness.outputs import Output

Tee = Callable[[str, bytes], None]
"""Takes the name of a stream and bytes that the child wrote to it."""

MAX_WAITING_BYTES = 4 * 1024 * 1024
MAX_LATE_BYTES = 1024 * 1024
"""What is still read at the end: as much as the largest pipe holds, so all that the child wrote."""

LINE_MS = 2
"""How long the rest of a line is waited for when the other stream has something."""
MAX_LINE_PIECES = 16
"""After so many pieces without the other stream, a line is torn after all."""

_PIECE = 64 * 1024
_ATOMIC = 4096
"""`poll` promises room for this many bytes in a pipe (PIPE_BUF)."""


class _Flow:
    """One stream inside of the thread."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.unwritten = memoryview(b"")
        self.late = MAX_LATE_BYTES
        self.is_mid_line = False
        # A file always has room.
        is_file = stat.S_ISREG(os.fstat(output.sink).st_mode)
        self.step = _PIECE if is_file else _ATOMIC

    @property
    def is_open(self) -> bool:
        return self.output.source >= 0

    def read(self) -> bytes:
        """What the child wrote; b"" at its end."""
        try:
            data = os.read(self.output.source, _PIECE)
        except OSError:  # EIO: how Linux says that nobody has the terminal open any more
            data = b""
        self.unwritten = memoryview(data)
        self.is_mid_line = self.output.is_terminal and bool(data) and not data.endswith(b"\n")
        return data

    def has_room(self) -> bool:
        """Whether a piece can be written without waiting."""
        return _is_ready(self.output.sink, select.POLLOUT, 0)

    def has_more(self, timeout_ms: int) -> bool:
        """Whether there is something to read, waited for."""
        return _is_ready(self.output.source, select.POLLIN, timeout_ms)

    def write(self) -> OSError | None:
        """Write a piece; the error when our output takes nothing any more."""
        try:
            written = os.write(self.output.sink, self.unwritten[: self.step])
        except BlockingIOError:  # somebody who shares it has made it non-blocking
            return None
        except OSError as error:
            self.unwritten = memoryview(b"")
            self.output.close_source()
            return error
        self.unwritten = self.unwritten[written:]
        return None


def _is_ready(fd: int, event: int, timeout_ms: int) -> bool:
    poll = select.poll()
    poll.register(fd, event)
    return bool(poll.poll(timeout_ms))


class Pump:
    """Runs until the child's outputs are closed, or `finish` was called and they are empty."""

    def __init__(self, outputs: Sequence[Output], tee: Tee, tell: Callable[[str], None]) -> None:
        """Start it.

        Args:
            outputs: whose child's ends are closed here already.
            tee: called in the event loop, in order.
            tell: called in the event loop with a line for the user.
        """
        self._loop = asyncio.get_running_loop()
        self._tee = tee
        self._tell = tell
        self._flows = [_Flow(output) for output in sorted(outputs, key=lambda each: each.name)]
        self._held: list[str] = []
        self._line: _Flow | None = None
        self._line_pieces = 0
        self._waiting: list[tuple[str, bytes]] = []
        self._waiting_bytes = 0
        self._lock = threading.Condition()
        self._finishing = False
        self._abandoned = False
        self._wake_read, self._wake_write = os.pipe()
        self.done: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, name="deltatape pump", daemon=True)
        self._thread.start()

    @property
    def held(self) -> tuple[str, ...]:
        """The streams that were still open to somebody when all was read, once that is so."""
        return tuple(self._held)

    def finish(self) -> None:
        """Read what is there and no more."""
        with self._lock:
            self._finishing = True
            if self._wake_write >= 0:
                os.write(self._wake_write, b".")

    def abandon(self) -> None:
        """Wait for nothing any more, not even for our own output."""
        with self._lock:
            self._abandoned = True
            self._lock.notify_all()
        self.finish()
        self._ended()

    def _run(self) -> None:
        try:
            while any(flow.is_open or flow.unwritten for flow in self._flows):
                self._turn(self._ready())
        finally:
            with self._lock:
                os.close(self._wake_read)
                os.close(self._wake_write)
                self._wake_write = -1
            self._soon(self._ended)

    def _ready(self) -> frozenset[int]:
        """The descriptors with something to do, waited for."""
        if self._line is not None:
            ready = self._poll(LINE_MS)
            if ready:
                return ready
            self._line = None  # a pause: no piece of a line, but all that there is for now
        return self._poll(None)

    def _poll(self, timeout_ms: int | None) -> frozenset[int]:
        poll = select.poll()
        poll.register(self._wake_read, select.POLLIN)
        for flow in self._flows:
            if flow.unwritten:
                poll.register(flow.output.sink, select.POLLOUT)
            elif flow.is_open:
                poll.register(flow.output.source, select.POLLIN)
                timeout_ms = 0 if self._finishing else timeout_ms
        ready = frozenset(fd for fd, _ in poll.poll(timeout_ms))
        if self._wake_read in ready:
            os.read(self._wake_read, 1)
        return ready

    def _turn(self, ready: frozenset[int]) -> None:
        line = self._line
        if line is not None and self._continues(line, ready):
            self._step(line, frozenset({line.output.source}))
            return
        self._line = None
        for flow in sorted(self._flows, key=lambda each: each is line):
            self._step(flow, ready)
            if self._line is not None:
                return

    def _continues(self, line: _Flow, ready: frozenset[int]) -> bool:
        """Whether the rest of a line comes before what the other stream has."""
        if line.unwritten or not line.is_open or self._line_pieces >= MAX_LINE_PIECES:
            return False
        return line.output.source in ready or line.has_more(LINE_MS)

    def _step(self, flow: _Flow, ready: frozenset[int]) -> None:
        if flow.unwritten:
            if flow.output.sink in ready:
                self._write(flow)
        elif flow.is_open:
            if flow.output.source in ready:
                self._read(flow)
            elif self._finishing:
                self._hold(flow)

    def _read(self, flow: _Flow) -> None:
        data = flow.read()
        self._line_pieces = self._line_pieces + 1 if flow is self._line else 0
        self._line = flow if flow.is_mid_line else None
        flow.output.follow()  # first, so that who sees a prompt can answer it
        if data and flow.has_room():
            self._write(flow)
        if not data:
            flow.output.close_source()
            return
        self._pass_on(flow.output.name, data)
        if self._finishing:
            flow.late -= len(data)
            if flow.late <= 0:
                self._hold(flow)

    def _hold(self, flow: _Flow) -> None:
        """Leave a stream that somebody keeps open."""
        self._held.append(flow.output.name)
        flow.output.close_source()

    def _write(self, flow: _Flow) -> None:
        error = flow.write()
        # As without us, a reader that left is a matter between it and the child.
        if error is not None and error.errno not in {errno.EPIPE, errno.EIO}:
            problem = f"{flow.output.name}: {error.strerror}: closed to the command"
            self._soon(self._tell, problem)

    def _pass_on(self, name: str, data: bytes) -> None:
        with self._lock:
            self._lock.wait_for(lambda: self._abandoned or self._waiting_bytes < MAX_WAITING_BYTES)
            self._waiting.append((name, data))
            self._waiting_bytes += len(data)
            is_first = len(self._waiting) == 1
        if is_first:
            self._soon(self._deliver)

    def _soon(self, call: Callable[..., None], *arguments: str) -> None:
        with contextlib.suppress(RuntimeError):  # abandoned, and the loop is closed since
            self._loop.call_soon_threadsafe(call, *arguments)

    def _deliver(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
            self._waiting_bytes = 0
            self._lock.notify_all()
            if self._abandoned:
                return
        for name, pieces in itertools.groupby(waiting, key=lambda each: each[0]):
            self._tee(name, b"".join(data for _, data in pieces))

    def _ended(self) -> None:
        if not self.done.done():
            self.done.set_result(None)
