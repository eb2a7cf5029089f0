"""The player: holds the tapes, matches requests, counts what was played, missed and left over."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from deltatape.http1.answer import error_answer
from deltatape.http1.listener import Address, Listener
from deltatape.http1.server import Handler, ServerConnection
from deltatape.match.request import Asking, Ladder, Match, Miss, Rung
from deltatape.match.schedule import Tempo
from deltatape.model.exchange import Exchange
from deltatape.player.play import Play

NO_RETRY = ((b"x-should-retry", b"false"),)
"""Read by SDKs: asking again would miss again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A request that was answered."""

    exchange: Exchange
    rung: Rung


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """A request that was not, with the message it got."""

    asking: Asking
    message: str


class Player:
    """See `http1.server.Owner` and `play.Shelf`."""

    def __init__(
        self,
        exchanges: Sequence[Exchange],
        tell: Callable[[Played | Missed], None],
        *,
        tempo: Tempo,
        hold_s: float = 30.0,
        repeat: bool = False,
        volatile: Sequence[str] = (),
    ) -> None:
        """Args: tell: called when a request was matched or missed."""
        self.tempo = tempo
        self.hold_s = hold_s
        self._exchanges = tuple(exchanges)
        self._ladder = Ladder(self._exchanges, volatile)
        self._tell = tell
        self._repeat = repeat
        self._spent: set[int] = set()
        self._plays: set[Play] = set()
        self._drained = asyncio.Event()
        self.played = 0
        self.missed_count = 0
        self.listener = Listener()

    async def start(self, address: Address) -> None:
        """Listen.

        Raises:
            UsageError: the address cannot be had.
        """
        await self.listener.open(address, lambda: ServerConnection(self))

    async def stop(self, *, grace_s: float = 0.0) -> None:
        """Accept nothing more, let what is playing end for `grace_s`, cut the rest."""
        self.listener.close()
        if self._plays and grace_s:
            self._drained.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._drained.wait(), grace_s)
        for play in tuple(self._plays):
            play.stop()

    @property
    def unplayed(self) -> tuple[Exchange, ...]:
        """The recorded exchanges that nobody asked for."""
        return tuple(e for at, e in enumerate(self._exchanges) if at not in self._spent)

    # What connections ask (`http1.server.Owner`).

    def handler(self, connection: ServerConnection) -> Handler:
        """See `Owner.handler`."""
        return Play(self, connection)

    def opened(self, connection: ServerConnection) -> None:
        """See `Owner.opened`."""
        self.listener.opened(connection)

    def closed(self, connection: ServerConnection) -> None:
        """See `Owner.closed`."""
        self.listener.closed(connection)

    def refused_bytes(self, problem: str) -> bytes:
        """See `Owner.refused_bytes`."""
        return error_answer(400, "bad_request", f"not an HTTP/1 request: {problem}")

    # What plays ask (`play.Shelf`).

    def find(self, asking: Asking) -> Match | Miss:
        """See `Shelf.find`."""
        found = self._ladder.match(asking, frozenset(self._spent))
        if isinstance(found, Miss) and self._repeat:
            found = self._ladder.match(asking, frozenset())
        if isinstance(found, Match):
            self._spent.add(found.position)
            self.played += 1
            self._tell(Played(exchange=self._exchanges[found.position], rung=found.rung))
        return found

    def exchange(self, position: int) -> Exchange:
        """See `Shelf.exchange`."""
        return self._exchanges[position]

    def missed(self, asking: Asking, miss: Miss) -> bytes:
        """See `Shelf.missed`."""
        self.missed_count += 1
        near = self._exchanges[miss.nearest] if miss.nearest is not None else None
        where = f" (nearest: {near.tape}#{near.number})" if near else ""
        message = f"not on the tape: {miss.problem}{where}"
        if miss.differences:
            first = miss.differences[0]
            message += f"; {first.path}: recorded {first.recorded}, received {first.received}"
        self._tell(Missed(asking=asking, message=message))
        detail = {
            "nearest": f"{near.tape}#{near.number}" if near else None,
            "differences": [
                {"path": d.path, "recorded": d.recorded, "received": d.received}
                for d in miss.differences
            ],
        }
        return error_answer(
            400,
            "not_on_tape",
            message,
            detail=detail,
            fields=NO_RETRY,
            head_only=asking.method == "HEAD",
        )

    def begun(self, play: Play) -> None:
        """See `Shelf.begun`."""
        self._plays.add(play)

    def ended(self, play: Play) -> None:
        """See `Shelf.ended`."""
        self._plays.discard(play)
        if not self._plays:
            self._drained.set()
