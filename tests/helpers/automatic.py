"""A machine of `--mode auto` in the test's loop, and its provider, which repeats what it gets."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from deltatape.clock import SystemClock
from deltatape.gateway.outbound import outbound_from
from deltatape.gateway.routes import parse_upstream
from deltatape.http1.listener import Address
from deltatape.match.schedule import Tempo
from deltatape.model.exchange import Exchange
from deltatape.player.playing import Ended, Missed, Played, Playing
from deltatape.replay.auto import AutoPlayer, Ways
from deltatape.replay.playback import end
from deltatape.store.reader import open_tape
from helpers.upstream import SSE_HEAD, Peer, chunk, connect, post, provider

ANY = Address("127.0.0.1", 0)
KEY = "Authorization: Bearer sk-fake-000000\r\n"
CLOSE = "Connection: close\r\n"


@dataclass
class Told:
    """What a machine told, and what the provider was asked."""

    what: list[Played | Missed | Ended] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    asked: list[tuple[bytes, bytes]] = field(default_factory=list)

    async def serve(self, peer: Peer) -> None:
        """A provider that repeats the body."""
        while True:
            head, body = await peer.request()
            self.asked.append((head, body))
            if b"hang" in body:
                await peer.send(SSE_HEAD)
                await asyncio.sleep(60)
            await peer.send(SSE_HEAD + chunk(b"data: " + body + b"\n\n") + chunk(b""))


@asynccontextmanager
async def auto(
    tape: Path, told: Told, environment: Mapping[str, str] | None = None, upstream: str = ""
) -> AsyncIterator[AutoPlayer]:
    """A machine for `tape`, before a provider at `/openai`."""
    async with provider(told.serve) as port:
        ways = Ways(
            upstreams=(parse_upstream(upstream or f"openai=http://127.0.0.1:{port}"),),
            outbound=outbound_from({}),
            environment=environment or {},
            folder=tape.parent,
            mask_key=b"k" * 32,
            clock=SystemClock(),
            say=told.lines.append,
        )
        playing = Playing(tempo=Tempo(factor=0.0))
        machine = AutoPlayer(tape, on(tape), playing, told.what.append, ways)
        await machine.start(ANY)
        try:
            yield machine
        finally:
            await end(machine)


def on(tape: Path) -> list[Exchange]:
    """What is on a tape, if there is one."""
    return list(open_tape(tape)) if tape.exists() else []


async def asked(machine: AutoPlayer, body: bytes, extra: str = KEY) -> bytes:
    """What a client gets."""
    client = await connect(machine.listener.port)
    await client.send(post(body, "/openai/v1/chat/completions", extra + CLOSE))
    return (await client.rest())[0]
