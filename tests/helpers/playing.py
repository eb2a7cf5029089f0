"""A player in the test's own loop, and what it told."""

import contextlib
from collections.abc import AsyncIterator, Sequence

from deltatape.http1.listener import Address
from deltatape.match.schedule import ReplayTempo
from deltatape.model.exchange import Exchange
from deltatape.player.play_options import PlayOptions, RequestOutcome
from deltatape.player.player import Player
from helpers.upstream import Peer, connect, post, run


class Stage:
    """A running player and what it told."""

    def __init__(self, player: Player, told: list[RequestOutcome]) -> None:
        self.player = player
        self.told = told

    async def client(self) -> Peer:
        """A raw connection to it."""
        return await connect(self.player.listener.port)


@contextlib.asynccontextmanager
async def playing(
    *exchanges: Exchange,
    factor: float = 0.0,
    hold_s: float = 30.0,
    repeat: bool = False,
    volatile: Sequence[str] = (),
) -> AsyncIterator[Stage]:
    """A player of `exchanges` on a free port; `factor` 0.0 does not wait."""
    told: list[RequestOutcome] = []
    player = Player(
        exchanges,
        told.append,
        PlayOptions(
            tempo=ReplayTempo(factor=factor), hold_s=hold_s, repeat=repeat, volatile=tuple(volatile)
        ),
    )
    await player.start(Address("127.0.0.1", 0))
    try:
        yield Stage(player, told)
    finally:
        await player.stop()


def answer(exchange: Exchange, request: bytes = b"", **how: float) -> tuple[bytes, str]:
    """All that a client gets to one request, and how the connection ends."""

    async def scenario() -> tuple[bytes, str]:
        async with playing(exchange, hold_s=how.get("hold_s", 30.0)) as stage:
            client = await stage.client()
            await client.send(request or post(extra="Connection: close\r\n"))
            return await client.rest()

    return run(scenario())
