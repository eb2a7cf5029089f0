"""One of the processes that share a port: it only records; its session does everything else.

It has its own `Recording`, and a `RemoteSession` in place of the analysis and the user interface,
which sends reports to the session over a pipe that nothing waits for. If the session dies, it ends
its tapes.
"""

import asyncio
import contextlib
import gc
import os
import pickle
import signal
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

from deltatape.clock import SystemClock
from deltatape.errors import UsageError
from deltatape.http1.event_loop import StreamingEventLoop
from deltatape.http1.listener import Bound
from deltatape.record.recording import Recording, RunEnvironment, Shared
from deltatape.record.remote import RemoteSession
from deltatape.record.worker_messages import (
    ConnectionsClosed,
    Drain,
    Failed,
    FromWorker,
    Hurry,
    Listening,
    Parsed,
    Pin,
    Report,
    Start,
    Stop,
    decode,
    encode,
)

LOOK_S = 0.5
ORPHANED = "orphaned"
"""Why a tape ends whose session was killed."""
_LENGTH = 8
_SELDOM = (5_000, 20, 100)
"""Thresholds of Python's garbage collector, as without workers."""
_OWN = 40
"""Exchanges with numbers above 2 to the power of this are of a worker that got none."""


class Worker:
    """A `Recording` for a session in another process."""

    def __init__(self, start: Start, send: Callable[[bytes], object]) -> None:
        self._begin = start
        self._write = send
        self._loop = asyncio.get_running_loop()
        self._draining: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._unnumbered = 0
        clock = SystemClock()
        self._session = RemoteSession(
            self._send, lambda: clock.now_ns() - self._begin.origin.zero_ns
        )
        around = RunEnvironment(
            environment=start.environment,
            folder=Path(start.folder),
            clock=clock,
            mask_key=start.mask_key,
            tell=self._session.remark,
        )
        shared = Shared(origin=start.origin, number=self._number)
        self._recording = Recording(
            start.options, around, self._session, self._session, shared=shared
        )
        self._session.counts = self._recording.counts

    async def run(self, messages: asyncio.StreamReader) -> None:
        """Record until the session says otherwise, or is gone."""
        try:
            await self._recording.start(self._begin.routes, self._sockets())
        except UsageError as error:
            self._recording.discard()
            self._send(Failed(problem=str(error)))
            return
        self._send(Listening(tape=self._recording.tapes[0]))
        self._session.report()
        looking = self._loop.create_task(self._look())
        while (line := await messages.readline()).endswith(b"\n"):
            self._handle(decode(line))
        if self._stopping is None:
            self._stop(ORPHANED)
        self._session.release()
        looking.cancel()
        assert self._stopping is not None
        await self._stopping
        await self._recording.close()

    def _sockets(self) -> Mapping[str, list[Bound]]:
        return {
            address: [tuple(socket.socket(fileno=each) for each in numbers)]
            for address, numbers in self._begin.sockets.items()
        }

    async def _look(self) -> None:
        """Report clients to the session regularly; no event does."""
        while True:
            await asyncio.sleep(LOOK_S)
            if self._session.has_news:
                self._session.report()

    def _handle(self, message: object) -> None:
        match message:
            case Parsed(key=key, number=number, parsed=parsed):
                if tape := self._session.tape(key):
                    self._recording.parsed(tape, number, parsed)
            case Pin(ticket=ticket, wall_ns=wall_ns):
                self._recording.pin(wall_ns, lambda: self._session.pinned(ticket))
            case Report():
                self._session.report()
            case Drain(timeout_s=timeout_s):
                self._draining = self._loop.create_task(self._drain(timeout_s))
            case Stop(reason=reason) if self._stopping is None:
                self._stop(reason)
            case Hurry():
                self._recording.hurry()
            case _:
                pass

    async def _drain(self, timeout_s: float) -> None:
        await self._recording.drain(timeout_s)
        self._send(ConnectionsClosed())

    def _stop(self, reason: str) -> None:
        if self._draining is not None:
            self._draining.cancel()
        self._session.stopping = True
        self._stopping = self._loop.create_task(self._finish(reason))

    async def _finish(self, reason: str) -> None:
        await self._recording.stop(reason, None)
        self._session.report()

    def _number(self) -> int:
        """Return the next number of all workers; never wait for a session that is busy."""
        self._session.report_soon()
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._begin.numbers, _LENGTH)
            if len(data) == _LENGTH:
                return int.from_bytes(data)
        self._unnumbered += 1
        return (self._begin.origin.index << _OWN) + self._unnumbered

    def _send(self, message: FromWorker) -> None:
        self._write(encode(message))


def main() -> None:
    """Serve the session on standard input and output until its end."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the session decides when it is over
    gc.freeze()
    gc.set_threshold(*_SELDOM)
    out = os.dup(1)
    os.dup2(2, 1)  # nothing else may print among the messages
    size = int.from_bytes(_read(_LENGTH))
    start = pickle.loads(_read(size))  # noqa: S301 - by the session that started this
    with asyncio.Runner(loop_factory=StreamingEventLoop) as runner:
        runner.run(_serve(start, out))


def _read(size: int) -> bytes:
    """Read `size` bytes from the session and none beyond; fewer only at the end of input."""
    data = b""
    while len(data) < size and (more := os.read(0, size - len(data))):
        data += more
    return data


class _Pipe(asyncio.BaseProtocol):
    """The way to the session; `lost` is done when it is closed."""

    def __init__(self) -> None:
        self.lost = asyncio.get_running_loop().create_future()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - it is gone
        if not self.lost.done():
            self.lost.set_result(None)


async def _serve(start: Start, out: int) -> None:
    loop = asyncio.get_running_loop()
    messages = asyncio.StreamReader()
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(messages), os.fdopen(0, "rb", buffering=0)
    )
    transport, pipe = await loop.connect_write_pipe(_Pipe, os.fdopen(out, "wb", buffering=0))
    await Worker(start, transport.write).run(messages)
    transport.close()
    await pipe.lost
