"""A provider on loopback for SDKs: what is asked for below `/N/` is answered with exchange N.

What an SDK asks is not looked at: it is to make something of the answer. The bytes, their reads
and their ending are the tape's, played by `deltatape.player`.
"""

import contextlib
import re
from collections.abc import AsyncIterator, Sequence

from deltatape.http1.access import check_origin
from deltatape.http1.answer import error_answer
from deltatape.http1.head import RequestHead
from deltatape.http1.listener import Address, Listener
from deltatape.http1.server import Handler, ServerConnection
from deltatape.http1.unread import Unread
from deltatape.match.request import Asking, Miss
from deltatape.match.schedule import Tempo
from deltatape.model.exchange import Exchange
from deltatape.player.play import Play
from deltatape.player.rendition import Renditions

_NUMBER = re.compile(rb"(?:https?://[^/]*)?/([0-9]+)(?:[/?]|$)")
HOLD_S = 0.2
"""Where a tape does not tell how the provider would have gone on, the SDK sees a cut."""
LONGEST = 16 * 1024 * 1024
"""No SDK is made to ask more, in bytes."""
AT_ONCE = Tempo(factor=0.0)
_NO_RETRY = ((b"x-should-retry", b"false"),)


class Stand:
    """See `http1.server.Owner` and `player.play.Shelf`."""

    def __init__(self, exchanges: Sequence[Exchange], tempo: Tempo, hold_s: float) -> None:
        self.renditions = Renditions(tempo)
        self.unread = Unread()
        self.hold_s = hold_s
        self.longest = LONGEST
        self._exchanges = tuple(exchanges)
        self._plays: set[Play] = set()
        self._listener = Listener()

    def url(self, number: int) -> str:
        """The base URL of an exchange, by its place in the list."""
        return f"http://127.0.0.1:{self._listener.port}/{number}"

    async def open(self) -> None:
        """Listen on a free port."""
        await self._listener.open(Address("127.0.0.1"), lambda: ServerConnection(self))

    def close(self) -> None:
        """Accept nothing more, and cut what is playing."""
        self._listener.close()
        for play in tuple(self._plays):
            play.stop()
        self.unread.close()

    # What connections ask (`http1.server.Owner`).

    def handler(self, connection: ServerConnection) -> Handler:
        """See `Owner.handler`."""
        return Play(self, connection)

    def opened(self, connection: ServerConnection) -> None:
        """See `Owner.opened`."""
        self._listener.opened(connection)

    def closed(self, connection: ServerConnection) -> None:
        """See `Owner.closed`."""
        self._listener.closed(connection)

    def refused_bytes(self, problem: str) -> bytes:
        """See `Owner.refused_bytes`."""
        return error_answer(400, "bad_request", f"not an HTTP/1 request: {problem}")

    # What plays ask (`player.play.Shelf`).

    def refused(self, head: RequestHead) -> bytes | None:
        """See `Shelf.refused`."""
        foreign = check_origin(head)
        return None if foreign is None else error_answer(403, foreign.code, foreign.message)

    def continues(self, head: RequestHead) -> bool:  # noqa: ARG002 - part of the protocol
        """See `Shelf.continues`."""
        return True

    def find(self, asking: Asking, play: Play) -> Exchange | Miss:  # noqa: ARG002 - none is read back
        """See `Shelf.find`."""
        named = _NUMBER.match(asking.target)
        if named is None or int(named[1]) >= len(self._exchanges):
            return Miss(
                nearest=None, problem="no number of an exchange in the path", differences=()
            )
        return self._exchanges[int(named[1])]

    def missed(self, asking: Asking, miss: Miss) -> bytes:
        """See `Shelf.missed`."""
        path = asking.target.decode("latin-1")
        return error_answer(404, "not_on_tape", f"{path}: {miss.problem}", fields=_NO_RETRY)

    def begun(self, play: Play) -> None:
        """See `Shelf.begun`."""
        self._plays.add(play)

    def ended(self, play: Play) -> None:
        """See `Shelf.ended`."""
        self._plays.discard(play)


@contextlib.asynccontextmanager
async def standing(
    exchanges: Sequence[Exchange], *, tempo: Tempo = AT_ONCE, hold_s: float = HOLD_S
) -> AsyncIterator[Stand]:
    """A stand that listens; it does not wait where the provider did, unless `tempo` tells to.

    Args:
        exchanges: what it plays.
        tempo: how time passes.
        hold_s: how long it stays silent where the tape does not tell how the provider went on.
    """
    stand = Stand(exchanges, tempo, hold_s)
    await stand.open()
    try:
        yield stand
    finally:
        stand.close()
