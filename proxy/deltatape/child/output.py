"""Copies the child's output to ours at once, and hands a copy to the event loop.

It runs in its own thread, because writing to a stopped terminal blocks, and no gateway stream may
wait for that. It writes only where there is room, so that one unread stream does not delay the
other. Of a child that prints more than a `LogBudget` allows, the loop gets a part.

One thread reads both streams in turns. If our stdout and stderr are the same file, the child gets
one stream and the order is exact. If they differ, output that the child writes to both before this
thread wakes up loses its order: stdout comes first.

Invariants: our output gets every byte, unchanged. At most one piece of each stream waits for it,
then the child waits as it would without us. It never waits for the loop, for which at most
`MAX_WAITING_BYTES` wait.
"""

import asyncio
import contextlib
import errno
import math
import os
import select
import signal
import stat
import sys
import termios
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from deltatape.child.screen import Screen
from deltatape.errors import UsageError
from deltatape.model.tape_summary import LogStream

Tee = Callable[[LogStream, bytes, int], None]
"""Takes the stream, the bytes that the child wrote, and how many before them were left out."""
MAX_WAITING_BYTES = 8 * 1024 * 1024
MAX_LATE_BYTES = 1024 * 1024
"""What is still read at the end: as much as the largest pipe holds, so all that the child wrote."""
_PIECE = 64 * 1024
_SLICE = 8 * 1024
_TURN_S = 0.003
_ATOMIC = 4096
"""`poll` promises room for this many bytes in a pipe (PIPE_BUF)."""


# The child's replacements for our stdout and stderr: a terminal for a terminal, else a pipe.
#
# Where our two are one file (a terminal, or a pipe or file by `2>&1`), the child has one for both,
# so that what it writes comes out in the order in which it wrote it: that of two pipes or terminals
# is known only as far as they are read one by one. The price is that nobody can tell the two apart,
# as nobody can without us.
#
# The child's terminal has the settings and the size of the user's, but passes output unprocessed:
# turning `\n` into `\r\n` is what the user's terminal does, once. It is not the child's controlling
# terminal: `/dev/tty`, Ctrl-C and job control go on being the user's own terminal's.
#
# A program that changes settings through its stdout (curses does) means the terminal it sees; such
# a change is passed on to the user's terminal, so that keys arrive as it wants them.

_INPUT, _OUTPUT, _CONTROL, _LOCAL = range(4)
_FLAGS = (_INPUT, _LOCAL)
"""The settings that decide how keys arrive."""
_BOTH = ("stdout", "stderr")


class Output:
    """One output stream of the child, or both in one.

    Attributes:
        name: which.
        streams: `stdout`, `stderr` or both.
        sink: our own descriptor, where the bytes go.
        source: where we read them; -1 once closed.
        child: what the child writes to; -1 once closed.
    """

    def __init__(self, name: LogStream, sink: int) -> None:
        """Create the pair of ends.

        Raises:
            UsageError: none is available.
        """
        self.name = name
        self.streams = _BOTH if name is LogStream.BOTH else (name.value,)
        self.sink = sink
        self.is_terminal = os.isatty(sink)
        try:
            if self.is_terminal:
                self.source, self.child = os.openpty()
                self._resemble()
            else:
                self.source, self.child = os.pipe()
        except OSError as error:
            kind = "pseudo-terminal" if self.is_terminal else "pipe"
            raise UsageError(
                f"{self.shown}: no {kind} for the command's output: {error.strerror};"
                " --no-log runs it on your own"
            ) from None

    @property
    def shown(self) -> str:
        """Return its name for people."""
        return " and ".join(self.streams)

    def _resemble(self) -> None:
        attributes = termios.tcgetattr(self.sink)
        attributes[_OUTPUT] &= ~termios.OPOST
        termios.tcsetattr(self.child, termios.TCSANOW, attributes)
        self._seen = [attributes[flags] for flags in _FLAGS]
        self.resize()

    def resize(self) -> bool:
        """Apply the size of the user's terminal; return whether it changed."""
        with contextlib.suppress(termios.error):  # it is gone; then nobody looks
            size = termios.tcgetwinsize(self.sink)
            if self.source >= 0 and size != termios.tcgetwinsize(self.source):
                termios.tcsetwinsize(self.source, size)
                return True
        return False

    def follow(self) -> None:
        """Apply the child's terminal mode for keys to the user's terminal."""
        if not self.is_terminal or self.source < 0:
            return
        with contextlib.suppress(termios.error):
            now = [termios.tcgetattr(self.source)[flags] for flags in _FLAGS]
            if now == self._seen:
                return
            seen, self._seen = self._seen, now
            # From the background this would stop us instead.
            if os.tcgetpgrp(self.sink) != os.getpgrp():
                return
            attributes = termios.tcgetattr(self.sink)
            for flags, before, after in zip(_FLAGS, seen, now, strict=True):
                changed = before ^ after
                attributes[flags] = (attributes[flags] & ~changed) | (after & changed)
            termios.tcsetattr(self.sink, termios.TCSANOW, attributes)

    def close_source(self) -> None:
        """Stop reading: further writes to it fail, as they would on our own output."""
        if self.source >= 0:
            os.close(self.source)
            self.source = -1

    def close_child(self) -> None:
        """Close our copy of the child's end."""
        if self.child >= 0:
            os.close(self.child)
            self.child = -1


@contextlib.contextmanager
def opened_outputs() -> Iterator[tuple[Output, ...]]:
    """Open one per open stdout and stderr, or one for both if they are the same file.

    At an exception all ends are closed.

    Raises:
        UsageError: see `Output`.
    """
    outputs: list[Output] = []
    try:
        for name, sink in _sinks():
            outputs.append(Output(name, sink))
        yield tuple(outputs)
    except BaseException:
        for output in outputs:
            output.close_child()
            output.close_source()
        raise


def _sinks() -> tuple[tuple[LogStream, int], ...]:
    # A program may be started without them; the numbers then belong to something else.
    ours = ((LogStream.STDOUT, sys.__stdout__, 1), (LogStream.STDERR, sys.__stderr__, 2))
    sinks = tuple((name, sink) for name, stream, sink in ours if stream is not None)
    if len(sinks) == len(ours) and _file(1) == _file(2):
        return ((LogStream.BOTH, 1),)
    return sinks


def _file(fd: int) -> tuple[int, int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino, status.st_rdev


def follow_size(outputs: Sequence[Output]) -> None:
    """Handle SIGWINCH: resize the child's terminals, and notify children that checked too early.

    The system signals our whole process group at once, so the child may have asked for the size
    before its terminals had it. Telling it again ends with the first time that nothing changes.
    """
    resized = [output for output in outputs if output.is_terminal and output.resize()]
    if resized:
        os.killpg(os.getpgrp(), signal.SIGWINCH)


# How much of a child's output is kept for the tape.
#
# Every line of a program that prints at a pace at which somebody could read it later, stack traces
# and dumps of bodies included. Of a flood, its beginning, a sample of its middle, and what came
# last before it paused or ended: the words of a program that crashes.

BURST_BYTES = 4 * 1024 * 1024
"""What a stream may have at once."""
BYTES_PER_S = 256 * 1024
"""What it may have in the long run."""
LAST_BYTES = 64 * 1024
"""What is kept of the end of a flood."""
PAUSE_S = 0.2
"""After so long without output a flood has ended."""


class LogBudget:
    """What is kept of one stream; times are in seconds."""

    def __init__(self, now_s: float) -> None:
        self._allowed = float(BURST_BYTES)
        self._at_s = now_s
        self._held = bytearray()
        self._left_out = 0

    def add(self, data: bytes, now_s: float, room: int) -> bool:
        """Hold `data`; return whether to `take` it now: the budget and `room` allow it."""
        earned = (now_s - self._at_s) * BYTES_PER_S
        self._allowed = min(self._allowed + earned, BURST_BYTES)
        self._at_s = now_s
        self._held += data
        if len(self._held) <= min(self._allowed, room):
            return True
        excess = max(len(self._held) - LAST_BYTES, 0)
        self._left_out += excess
        del self._held[:excess]
        return False

    def pause_s(self, now_s: float) -> float:
        """Return how much longer the stream must pause for the end of a flood to be taken."""
        return max(self._at_s + PAUSE_S - now_s, 0.0) if self._held else math.inf

    def take(self) -> tuple[bytes, int]:
        """Return what is held, and how many bytes before it were left out.

        After a gap it begins with a line: the rest of one could be that of a credential.
        """
        data, left_out = bytes(self._held), self._left_out
        self._held.clear()
        self._left_out = 0
        self._allowed -= len(data)
        if left_out:
            cut = data.find(b"\n") + 1 or len(data)
            data, left_out = data[cut:], left_out + cut
        return data, left_out


class _Flow:
    """One stream inside the thread."""

    def __init__(self, output: Output, now_s: float, screen: Screen) -> None:
        self.output = output
        self._screen = screen if "stderr" in output.streams else None
        self.budget = LogBudget(now_s)
        self.unwritten = memoryview(b"")
        self.late = MAX_LATE_BYTES
        self.sink, self.step = _unblocked(output.sink)

    @property
    def is_open(self) -> bool:
        return self.output.source >= 0

    def read(self) -> bytes:
        """Read from the child; b"" at its end."""
        try:
            data = os.read(self.output.source, _PIECE)
        except OSError:  # EIO: how Linux says that nobody has the terminal open any more
            data = b""
        self.unwritten = memoryview(data)
        return data

    def has_room(self) -> bool:
        """Return whether a piece can be written without waiting."""
        poll = select.poll()
        poll.register(self.sink, select.POLLOUT)
        return bool(poll.poll(0))

    def write(self) -> OSError | None:
        """Write a piece, if there is room; return the error if our output does not take it."""
        if self._screen is None:
            return self._write()
        with self._screen.held_by_command() as held:
            return self._write() if held else None

    def _write(self) -> OSError | None:
        try:
            written = os.write(self.sink, self.unwritten[: self.step])
            if self._screen is not None:
                data = bytes(self.unwritten[:written])
                self._screen.wrote(data, to_terminal=self.output.is_terminal)
        except BlockingIOError:
            return None
        except OSError as error:
            self.unwritten = memoryview(b"")
            return error
        self.unwritten = self.unwritten[written:]
        return None

    def close_sink(self) -> None:
        """Close our second descriptor of it, if there is one."""
        if self.sink != self.output.sink:
            os.close(self.sink)


def _unblocked(sink: int) -> tuple[int, int]:
    """Return a descriptor of `sink`, and how much may be written to it at once."""
    mode = os.fstat(sink).st_mode
    if stat.S_ISFIFO(mode):
        # Opened again it can be non-blocking for us alone, and takes as much as there is room for.
        with contextlib.suppress(OSError):  # no /proc, or somebody else's pipe
            again = os.open(f"/proc/self/fd/{sink}", os.O_WRONLY | os.O_NONBLOCK)
            return again, _PIECE
    return sink, _PIECE if stat.S_ISREG(mode) else _ATOMIC  # a file always has room


class OutputPump:
    """Copies until the child's outputs are closed, or `finish` was called and they are empty."""

    def __init__(
        self, outputs: Sequence[Output], tee: Tee, tell: Callable[[str], None], screen: Screen
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._tee = tee
        self._tell = tell
        self._flows = [_Flow(output, self._loop.time(), screen) for output in outputs]
        self._held: list[str] = []
        self._taken_s = -math.inf
        self._left_out = 0
        self._waiting: deque[tuple[LogStream, bytes, int]] = deque()
        self._waiting_bytes = 0
        self._delivering = False
        self._read_all = False
        self._lock = threading.Lock()
        self._finishing = False
        self._abandoned = False
        self._wake_read, self._wake_write = os.pipe()
        self.done: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, name="deltatape pump", daemon=True)
        self._thread.start()

    @property
    def held(self) -> tuple[str, ...]:
        """The streams that another process still holds open after everything was read."""
        return tuple(self._held)

    @property
    def taken_s(self) -> float:
        """When the child's output was last read, in the loop's time."""
        return self._taken_s

    @property
    def left_out(self) -> int:
        """How many bytes the tee did not get."""
        return self._left_out

    def finish(self) -> None:
        """Read what is there and stop."""
        with self._lock:
            self._finishing = True
            if self._wake_write >= 0:
                os.write(self._wake_write, b".")

    def abandon(self) -> None:
        """Stop waiting, even for our own output."""
        with self._lock:
            self._abandoned = True
        self.finish()
        self._ended()

    def _run(self) -> None:
        try:
            while any(flow.is_open or flow.unwritten for flow in self._flows):
                ready = self._poll()
                for flow in self._flows:
                    self._step(flow, ready)
        finally:
            for flow in self._flows:
                flow.close_sink()
            with self._lock:
                os.close(self._wake_read)
                os.close(self._wake_write)
                self._wake_write = -1
            self._soon(self._ended)

    def _poll(self) -> frozenset[int]:
        """Wait for descriptors, and return those that are ready."""
        pause_s = math.inf
        now_s = self._loop.time()
        poll = select.poll()
        poll.register(self._wake_read, select.POLLIN)
        for flow in self._flows:
            if flow.unwritten:
                poll.register(flow.sink, select.POLLOUT)
            elif flow.is_open:
                poll.register(flow.output.source, select.POLLIN)
                pause_s = 0.0 if self._finishing else min(pause_s, flow.budget.pause_s(now_s))
        timeout_ms = None if pause_s == math.inf else math.ceil(pause_s * 1000)
        ready = frozenset(fd for fd, _ in poll.poll(timeout_ms))
        if self._wake_read in ready:
            os.read(self._wake_read, 1)
        return ready

    def _step(self, flow: _Flow, ready: frozenset[int]) -> None:
        if flow.unwritten:
            if flow.sink in ready:
                self._write(flow)
        elif flow.is_open:
            if flow.output.source in ready:
                self._read(flow)
            elif self._finishing:
                self._hold(flow)
            elif flow.budget.pause_s(self._loop.time()) == 0:
                self._pass_on(flow)

    def _read(self, flow: _Flow) -> None:
        data = flow.read()
        self._taken_s = self._loop.time()
        flow.output.follow()  # first, so that who sees a prompt can answer it
        if not data:
            self._close(flow)
            return
        room = MAX_WAITING_BYTES - self._waiting_bytes
        is_allowed = flow.budget.add(data, self._taken_s, room)
        if flow.has_room():
            self._write(flow)
        if is_allowed:
            self._pass_on(flow)
        if self._finishing:
            flow.late -= len(data)
            if flow.late <= 0:
                self._hold(flow)

    def _hold(self, flow: _Flow) -> None:
        """Leave a stream that another process keeps open."""
        self._held.append(flow.output.shown)
        self._close(flow)

    def _close(self, flow: _Flow) -> None:
        self._pass_on(flow)
        flow.output.close_source()

    def _write(self, flow: _Flow) -> None:
        error = flow.write()
        if error is None:
            return
        self._close(flow)
        # As without us, a reader that left is a matter between it and the child.
        if error.errno not in {errno.EPIPE, errno.EIO}:
            problem = f"{flow.output.shown}: {error.strerror}: closed to the command"
            self._soon(self._tell, problem)

    def _pass_on(self, flow: _Flow) -> None:
        data, left_out = flow.budget.take()
        if not data and not left_out:
            return
        self._left_out += left_out
        with self._lock:
            self._waiting.append((flow.output.name, data, left_out))
            self._waiting_bytes += len(data)
            is_first, self._delivering = not self._delivering, True
        if is_first:
            self._soon(self._deliver)

    def _soon(self, call: Callable[..., None], *arguments: str) -> None:
        with contextlib.suppress(RuntimeError):  # abandoned, and the loop is closed since
            self._loop.call_soon_threadsafe(call, *arguments)

    def _deliver(self) -> None:
        """Copy waiting bytes to the tape for a moment, then give the loop's streams their turn."""
        until = self._loop.time() + _TURN_S
        while (piece := self._take()) is not None:
            self._tee(*piece)
            if self._loop.time() >= until:
                self._loop.call_soon(self._deliver)
                return
        if self._read_all:
            self._ended()

    def _take(self) -> tuple[LogStream, bytes, int] | None:
        """Return the next few bytes to tape: many short lines are many records."""
        with self._lock:
            if self._abandoned or not self._waiting:
                self._delivering = False
                return None
            name, data, left_out = self._waiting.popleft()
            if len(data) > _SLICE:
                self._waiting.appendleft((name, data[_SLICE:], 0))
            self._waiting_bytes -= min(len(data), _SLICE)
            return name, data[:_SLICE], left_out

    def _ended(self) -> None:
        """Finish after everything was delivered."""
        self._read_all = True
        with self._lock:
            is_done = self._abandoned or not self._delivering
        if is_done and not self.done.done():
            self.done.set_result(None)
