"""A gateway in the test's own loop, and what it taped."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from deltatape.clock import SystemClock
from deltatape.gateway.dial import Connector
from deltatape.gateway.gateway import Gateway, TapPolicy, stop_recording
from deltatape.gateway.outbound import outbound_from
from deltatape.gateway.recorder import Recorder, RecorderOptions
from deltatape.gateway.routes import Refusal, Routes, parse_upstream
from deltatape.gateway.tapes import OpenTape, TapeBook
from deltatape.http1.listener import Address
from deltatape.model.exchange import Exchange, Source
from deltatape.model.tape_summary import TapeSummary
from deltatape.store.reader import open_tape
from deltatape.store.tape_file import WriterThread
from deltatape.store.writer import TapeWriter
from deltatape.tape.mask import Masker
from helpers.upstream import Peer, connect


@dataclass
class Seen:
    """A `RecorderObserver` and an `Analysis` that keep what they are notified of."""

    exchanges: list[tuple[str, int]] = field(default_factory=list)
    """The name of its tape, and the number, of each exchange that has ended."""
    refusals: list[Refusal] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)
    works: bool | None = None
    """Whether everything could be taped when that was last looked at."""

    def start(self) -> None:
        pass

    def ended(self, tape: OpenTape, number: int) -> None:
        self.exchanges.append((tape.name or "", number))

    def close(self, tape: OpenTape, watch: TapeSummary) -> None:
        pass

    async def finish(self) -> None:
        pass

    def hurry(self) -> None:
        pass

    def refused(self, refusal: Refusal) -> None:
        self.refusals.append(refusal)

    def alarm(self, problem: str) -> None:
        self.alarms.append(problem)

    def taping(self, *, works: bool) -> None:
        self.works = works


class Recording:
    """A running gateway."""

    def __init__(self, gateway: Gateway, recorder: Recorder, seen: Seen) -> None:
        self.gateway = gateway
        self.recorder = recorder
        self.seen = seen
        self.grace_s = 0.0

    @property
    def writer(self) -> TapeWriter:
        """Of the tape for traffic without a name."""
        return self.recorder.book.current.writer

    @property
    def path(self) -> Path:
        """Where that tape lies."""
        assert self.writer.path is not None
        return self.writer.path

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.gateway.listener.port

    async def client(self) -> Peer:
        """A raw connection to it."""
        return await connect(self.port)

    async def stop(self, reason: str = "test") -> None:
        """End it in good order."""
        await stop_recording(self.recorder, (self.gateway,), reason, grace_s=self.grace_s)

    def tape(self) -> list[Exchange]:
        """What is on the tape now."""
        self.writer.flush()
        return list(open_tape(self.path))

    async def ended(self, count: int = 1) -> list[Exchange]:
        """The tape once `count` exchanges have ended."""
        for _ in range(500):
            done = [e for e in self.tape() if e.end is not None]
            if len(done) >= count:
                return sorted(done, key=lambda e: e.number)
            await asyncio.sleep(0.01)
        raise AssertionError(f"{count} exchanges did not end")


@contextlib.asynccontextmanager
async def recording(
    folder: Path,
    *upstreams: str | int,
    policy: TapPolicy | None = None,
    at: Address = Address("127.0.0.1", 0),  # noqa: B008 - a value
    bodies: bool = True,
    ca: Path | None = None,
) -> AsyncIterator[Recording]:
    """A gateway in front of `upstreams`: URLs, or the port of a plain one on loopback.

    `ca` is trusted besides the system's authorities.
    """
    urls = [f"http://127.0.0.1:{u}" if isinstance(u, int) else u for u in upstreams]
    seen = Seen()
    clock = SystemClock()

    def create(name: str | None, thread: WriterThread) -> TapeWriter:
        return TapeWriter.create(
            folder,
            name or "test",
            clock=clock,
            tool="deltatape",
            source=Source.GATEWAY,
            alarm=seen.alarm,
            thread=thread,
        )

    masker = Masker(b"key")
    recorder = Recorder(
        TapeBook(create, masker), masker, clock, seen, RecorderOptions(bodies=bodies), seen
    )
    dialler = Connector(outbound_from({}, ca=ca), clock)
    gateway = Gateway(recorder, Routes(parse_upstream(url) for url in urls), dialler.dial, policy)
    recorder.start()
    await gateway.start(at)
    running = Recording(gateway, recorder, seen)
    stopped = False
    try:
        yield running
        await running.stop()
        stopped = True
    finally:
        if not stopped:
            recorder.hurry()
            gateway.listener.close()
            recorder.book.stop("test", None)
