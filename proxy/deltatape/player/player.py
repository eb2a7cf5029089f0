"""The player: holds the tapes, matches requests, counts what was played, missed and left over."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from http import HTTPStatus

from deltatape.http1.access import check_origin
from deltatape.http1.answer import error_answer
from deltatape.http1.head import RequestHead
from deltatape.http1.listener import Address, Listener
from deltatape.http1.server import Handler, ServerConnection
from deltatape.http1.unread import Unread
from deltatape.match.place import shown
from deltatape.match.request import Asking, Ladder, Match, Miss
from deltatape.model.exchange import Exchange, header
from deltatape.player.hiding import hider
from deltatape.player.play import Play
from deltatape.player.playing import Missed, Played, Playing, Report, Staged
from deltatape.player.rendition import Renditions

NO_RETRY = ((b"x-should-retry", b"false"),)
"""Read by SDKs: asking again would miss again."""

MARGIN_BYTES = 16 * 1024 * 1024
"""By how much a request may be longer than any on the tape, to be told what differs."""
_MOST_TARGET = 4096
"""How much of a target the report keeps."""


class Player:
    """See `http1.server.Owner` and `play.Shelf`."""

    def __init__(
        self,
        exchanges: Sequence[Exchange],
        tell: Callable[[Played | Missed], None],
        playing: Playing,
    ) -> None:
        """Args: tell: called when a request was matched or missed."""
        self.hold_s = playing.hold_s
        self.renditions = Renditions(playing.tempo)
        self.unread = Unread()
        self.longest = MARGIN_BYTES + max(
            (len(exchange.request.body) for exchange in exchanges), default=0
        )
        self._exchanges = tuple(exchanges)
        self.hide = hider(playing.secrets)
        """Overwrites in text what must not be told of a request."""
        self._ladder = Ladder(
            self._exchanges, playing.volatile, repeat=playing.repeat, hide=self.hide
        )
        self._tell = tell
        self._stage = playing.stage
        self._bodies = playing.bodies
        self._asked_for: set[int] = set()
        self._told: list[Played | Missed] = []
        self._plays: set[Play] = set()
        self._drained = asyncio.Event()
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
        self.unread.close()

    @property
    def report(self) -> Report:
        """What became of the requests so far, and what nobody asked for."""
        return Report(
            played=tuple(one for one in self._told if isinstance(one, Played)),
            missed=tuple(one for one in self._told if isinstance(one, Missed)),
            unplayed=tuple(
                exchange
                for position, exchange in enumerate(self._exchanges)
                if position not in self._asked_for and _can_be_asked_for(exchange)
            ),
        )

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

    def refused(self, head: RequestHead) -> bytes | None:
        """See `Shelf.refused`: what is not of this machine."""
        foreign = check_origin(head, local=not self.listener.address.path)
        if foreign is None:
            return None
        asking = Asking(method=head.method, target=head.target, body=b"")
        miss = Miss(nearest=None, problem=foreign.message, differences=())
        self._say(
            Missed(asking=self._hidden(asking), miss=miss, nearest=None, message=foreign.message)
        )
        return error_answer(
            HTTPStatus.FORBIDDEN,
            foreign.code,
            foreign.message,
            fields=NO_RETRY,
            head_only=head.method == "HEAD",
        )

    def continues(self, head: RequestHead) -> bool:
        """See `Shelf.continues`: as the provider did, if it was ever asked here."""
        waited = [
            exchange
            for position in self._ladder.here(head.method, head.target)
            if header((exchange := self._exchanges[position]).request.headers, "expect") is not None
        ]
        return not waited or any(
            one.status == HTTPStatus.CONTINUE for each in waited for one in each.informational
        )

    def find(self, asking: Asking) -> Exchange | Miss:
        """See `Shelf.find`."""
        found = self._ladder.match(asking)
        if isinstance(found, Match):
            return self._played(asking, found)
        return found

    def _played(self, asking: Asking, found: Match) -> Exchange:
        recorded = self._exchanges[found.position]
        staged = Staged(exchange=recorded)
        if self._stage is not None:
            staged = self._stage(found.position, recorded)
        self._asked_for.add(found.position)
        self._ladder.play(found.position, spent=staged.spent)
        asking = self._kept(asking, recorded.request.body)
        self._say(Played(asking=asking, exchange=recorded, rung=found.rung, note=staged.note))
        return staged.exchange

    def _kept(self, asking: Asking, recorded: bytes | None = None) -> Asking:
        """A request as the report has it; `recorded` is a body that is kept anyway."""
        body = asking.body if self._bodies else b""
        if self._bodies and body == recorded:
            body = recorded
        return replace(asking, target=asking.target[:_MOST_TARGET], body=body)

    def _hidden(self, asking: Asking) -> Asking:
        """A request as the report has it that was not answered, and so will be told."""
        target = shown(asking.target, _MOST_TARGET, self.hide).encode()
        return self._kept(replace(asking, target=target))

    def _say(self, what: Played | Missed) -> None:
        self._told.append(what)
        self._tell(what)

    def missed(self, asking: Asking, miss: Miss) -> bytes:
        """See `Shelf.missed`."""
        near = self._exchanges[miss.nearest] if miss.nearest is not None else None
        where = f" (nearest: {near.tape}#{near.number})" if near else ""
        message = f"not on the tape: {miss.problem}{where}"
        if miss.differences:
            first = miss.differences[0]
            message += f"; {first.path}: recorded {first.recorded}, received {first.received}"
        kept = self._hidden(asking)
        self._say(Missed(asking=kept, miss=miss, nearest=near, message=message))
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


def _can_be_asked_for(exchange: Exchange) -> bool:
    """Whether its request was whole: half a one comes to an end only when its client leaves."""
    return exchange.request.t_end_ns is not None or not exchange.timed
