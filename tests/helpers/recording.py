"""A gateway in the test's own loop, and what it taped."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from deltatape.clock import SystemClock
from deltatape.gateway.analysis import Ended
from deltatape.gateway.gateway import Gateway
from deltatape.gateway.routes import Refusal, Routes, parse_upstream
from deltatape.model.exchange import Exchange, Source
from deltatape.store.reader import open_tape
from deltatape.store.writer import TapeWriter
from deltatape.tape.mask import Masker
from helpers.upstream import Peer, connect


@dataclass
class Seen:
    """What an observer was told."""

    ended: list[Ended] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)

    def exchange(self, ended: Ended) -> None:
        """See `Observer.exchange`."""
        self.ended.append(ended)

    def refused(self, refusal: Refusal) -> None:
        """See `Observer.refused`."""
        self.refusals.append(refusal)

    def alarm(self, problem: str) -> None:
        """See `Observer.alarm`."""
        self.alarms.append(problem)


class Recording:
    """A running gateway."""

    def __init__(self, gateway: Gateway, writer: TapeWriter, seen: Seen) -> None:
        self.gateway = gateway
        self.writer = writer
        self.seen = seen
        self.grace_s = 0.0

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.gateway.listener.port

    async def client(self) -> Peer:
        """A raw connection to it."""
        return await connect(self.port)

    async def stop(self, reason: str = "test") -> None:
        """End it in good order."""
        await self.gateway.stop(reason, grace_s=self.grace_s)

    def tape(self) -> list[Exchange]:
        """What is on the tape now."""
        self.writer.flush()
        assert self.writer.path is not None
        return list(open_tape(self.writer.path))

    async def ended(self, count: int = 1) -> list[Exchange]:
        """The tape once `count` exchanges have ended."""
        for _ in range(500):
            done = [e for e in self.tape() if e.end is not None]
            if len(done) >= count:
                return sorted(done, key=lambda e: e.number)
            await asyncio.sleep(0.01)
        raise AssertionError(f"{count} exchanges did not end")


@contextlib.asynccontextmanager
async def recording(folder: Path, *upstreams: str | int) -> AsyncIterator[Recording]:
    """A gateway in front of `upstreams`: URLs, or the port of a plain one on loopback."""
    urls = [f"http://127.0.0.1:{u}" if isinstance(u, int) else u for u in upstreams]
    seen = Seen()
    clock = SystemClock()
    writer = TapeWriter.create(
        folder, "test", clock=clock, tool="deltatape", source=Source.GATEWAY, alarm=seen.alarm
    )
    gateway = Gateway(
        Routes(parse_upstream(url) for url in urls), writer, Masker(b"key"), clock, seen
    )
    await gateway.start("127.0.0.1", 0)
    running = Recording(gateway, writer, seen)
    stopped = False
    try:
        yield running
        await running.stop()
        stopped = True
    finally:
        if not stopped:
            gateway.hurry()
            gateway.listener.close()
            writer.close()
