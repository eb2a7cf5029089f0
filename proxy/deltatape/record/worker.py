"""One of the processes that share a port: it records, and leaves everything else to its session.

It has a `Recording` of its own, for which it is the analysis and the user: what they would be told
goes to the session, over a pipe on which nothing waits. If the session is gone, it ends its tapes.
"""

import asyncio
import contextlib
import gc
import os
import pickle
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from deltatape.clock import SystemClock
from deltatape.errors import UsageError
from deltatape.gateway.routes import Refusal
from deltatape.gateway.tapes import OpenTape
from deltatape.http1.event_loop import StreamingEventLoop
from deltatape.model.tape_summary import TapeSummary
from deltatape.record.recording import Recording, RecordingCounts, RunEnvironment, Shared
from deltatape.record.worker_messages import (
    Closing,
    Counted,
    Drained,
    Ended,
    Failed,
    FromWorker,
    Hurry,
    Listening,
    Parsed,
    Pin,
    Pinned,
    Refused,
    Report,
    Said,
    Start,
    Stop,
    Taped,
    Taping,
    decode,
    encode,
)

REPORT_S = 0.02
"""How long an end may wait for others: a message for each costs more than the exchange."""
LOOK_S = 0.5
ORPHANED = "orphaned"
"""Why a tape ends whose session was killed."""
_LENGTH = 8
_SELDOM = (5_000, 20, 100)
"""Thresholds of Python's garbage collector, as without workers."""
_OWN = 40
"""Numbers of exchanges beyond 2 to the power of this are those of a worker that got none."""


@dataclass(slots=True)
class _ReportedTape:
    key: int
    path: str | None = None
    """As the session knows it."""
    ended: list[int] = field(default_factory=list)
    """The exchanges of which the session does not know yet."""


class Worker:
    """The analysis of its recording (`gateway.recorder.Analysis`), and its observer."""

    def __init__(self, start: Start, send: Callable[[bytes], object]) -> None:
        self._begin = start
        self._write = send
        self._loop = asyncio.get_running_loop()
        self._tapes: dict[OpenTape, _ReportedTape] = {}
        self._next_key = 1
        self._timer: asyncio.TimerHandle | None = None
        self._released = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None
        self._unnumbered = 0
        self._until_ns = 0
        """All exchanges that ended by then are reported."""
        self._clock = SystemClock()
        self._counted = RecordingCounts()
        around = RunEnvironment(
            environment=start.environment,
            folder=Path(start.folder),
            clock=self._clock,
            mask_key=start.mask_key,
            tell=self.remark,
        )
        shared = Shared(origin=start.origin, number=self._number)
        self._recording = Recording(start.options, around, self, self, shared=shared)

    async def run(self, messages: asyncio.StreamReader) -> None:
        """Record until the session says otherwise, or is gone."""
        try:
            await self._recording.start(self._begin.routes)
        except UsageError as error:
            self._recording.discard()
            self._send(Failed(problem=str(error)))
            return
        self._send(Listening(tape=self._recording.tapes[0]))
        self._report()
        looking = self._loop.create_task(self._look())
        while (line := await messages.readline()).endswith(b"\n"):
            self._handle(decode(line))
        if self._stopping is None:
            self._stop(ORPHANED)
        self._released.set()
        looking.cancel()
        assert self._stopping is not None
        await self._stopping
        await self._recording.close()

    async def _look(self) -> None:
        """Tell the session of clients, which nothing else tells of."""
        while True:
            await asyncio.sleep(LOOK_S)
            if self._recording.counts() != self._counted:
                self._report()

    def _handle(self, message: object) -> None:
        match message:
            case Parsed(key=key, number=number, parsed=parsed):
                for tape, reported in self._tapes.items():
                    if reported.key == key:
                        self._recording.parsed(tape, number, parsed)
                        break
            case Pin(ticket=ticket, wall_ns=wall_ns):
                self._recording.pin(wall_ns, lambda: self._pinned(ticket))
            case Report():
                self._report()
            case Stop(reason=reason) if self._stopping is None:
                self._stop(reason)
            case Hurry():
                self._recording.hurry()
            case _:
                pass

    def _stop(self, reason: str) -> None:
        self._stopping = self._loop.create_task(self._finish(reason))

    async def _finish(self, reason: str) -> None:
        await self._recording.stop(reason, None)
        self._report()

    def _pinned(self, ticket: int) -> None:
        self._report()
        self._send(Pinned(ticket=ticket))

    def _number(self) -> int:
        """Return the next number of all workers; never wait for a session that is busy."""
        self._report_soon()
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._begin.numbers, _LENGTH)
            if len(data) == _LENGTH:
                return int.from_bytes(data)
        self._unnumbered += 1
        return (self._begin.origin.index << _OWN) + self._unnumbered

    def _send(self, message: FromWorker) -> None:
        self._write(encode(message))

    def _send_from_anywhere(self, message: FromWorker) -> None:
        """Send from a thread that may be another one; the loop may have ended."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._send, message)

    # What the session is told.

    def _reported(self, tape: OpenTape) -> _ReportedTape:
        if tape not in self._tapes:
            self._tapes[tape] = _ReportedTape(self._next_key)
            self._next_key += 1
        return self._tapes[tape]

    def _report_soon(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(REPORT_S, self._report)

    def _report(self) -> None:
        """Report what has ended, and where tapes are now."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        pending = [tape for tape in self._tapes if tape.pending]
        if pending:
            self._report_soon()
        else:
            self._until_ns = self._clock.now_ns() - self._begin.origin.zero_ns
        for tape, reported in self._tapes.items():
            if tape not in pending:
                self._report_tape(tape, reported)
        self._counted = self._recording.counts()
        self._send(Counted(counts=self._counted, until_ns=self._until_ns))

    def _report_tape(self, tape: OpenTape, reported: _ReportedTape) -> None:
        if reported.path != tape.path:
            reported.path = tape.path
            self._send(Taped(key=reported.key, path=tape.path, name=tape.name))
        if reported.ended:
            self._send(Ended(key=reported.key, numbers=reported.ended))
            reported.ended = []

    # What its recording asks of an analysis.

    def start(self) -> None:
        pass

    def ended(self, tape: OpenTape, number: int) -> None:
        self._reported(tape).ended.append(number)
        self._report_soon()

    def close(self, tape: OpenTape, watch: TapeSummary) -> None:
        reported = self._tapes.get(tape)
        if reported is not None:
            self._report_tape(tape, reported)
            if self._stopping is None:
                del self._tapes[tape]
            reason = watch.stop or ""
            self._send(Closing(key=reported.key, until_ns=watch.until_ns, reason=reason))

    async def finish(self) -> None:
        self._report()
        self._send(Drained())
        await self._released.wait()

    def hurry(self) -> None:
        self._released.set()

    # What its recording has to say.

    def refused(self, refusal: Refusal) -> None:
        self._send(Refused(status=refusal.status, code=refusal.code, message=refusal.message))
        self._report_soon()

    def alarm(self, problem: str) -> None:
        self._send_from_anywhere(Said(text=problem, how="alarm"))

    def lasting_alarm(self, problem: str) -> None:
        self._send_from_anywhere(Said(text=problem, how="lasting_alarm"))

    def taping(self, *, works: bool) -> None:
        self._send(Taping(works=works))

    def remark(self, text: str) -> None:
        self._send_from_anywhere(Said(text=text, how="remark"))


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
    """Read from the session, and not a byte more."""
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
