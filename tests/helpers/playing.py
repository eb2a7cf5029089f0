"""Players, in the test's own loop or in another thread or process, and their clients."""

import contextlib
import http.client
from collections.abc import AsyncIterator, Mapping, Sequence
from urllib.parse import urlsplit

from deltatape.http1.listener import Address
from deltatape.match.schedule import ReplayTempo
from deltatape.model.exchange import Exchange
from deltatape.player.play_options import PlayOptions, RequestOutcome
from deltatape.player.player import Player
from helpers.upstream import Peer, connect, post, run

LIMIT_S = 20.0
PATH = "/v1/chat/completions"


class Stage:
    """A running player and the outcomes of requests to it."""

    def __init__(self, player: Player, outcomes: list[RequestOutcome]) -> None:
        self.player = player
        self.outcomes = outcomes

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
    outcomes: list[RequestOutcome] = []
    player = Player(
        exchanges,
        outcomes.append,
        PlayOptions(
            tempo=ReplayTempo(factor=factor), hold_s=hold_s, repeat=repeat, volatile=tuple(volatile)
        ),
    )
    await player.start(Address("127.0.0.1", 0))
    try:
        yield Stage(player, outcomes)
    finally:
        await player.stop()


def answer(exchange: Exchange, request: bytes = b"", **how: float) -> tuple[bytes, str]:
    """The whole response to one request, and how the connection ends."""

    async def scenario() -> tuple[bytes, str]:
        async with playing(exchange, hold_s=how.get("hold_s", 30.0)) as stage:
            client = await stage.client()
            await client.send(request or post(extra="Connection: close\r\n"))
            return await client.rest()

    return run(scenario())


def ask(
    url: str, body: bytes, path: str = PATH, headers: Mapping[str, str] | None = None
) -> tuple[int, bytes]:
    """Send a POST without an event loop; return status and body, whose cut chunk is left out."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=LIMIT_S)
    try:
        fields = {"Content-Type": "application/json", **(headers or {})}
        connection.request("POST", path, body, fields)
        response = connection.getresponse()
        try:
            return response.status, response.read()
        except http.client.IncompleteRead as cut:
            return response.status, cut.partial
    finally:
        connection.close()
