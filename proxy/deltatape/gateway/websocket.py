"""A WebSocket: what both sides send, passed on as it is read, and taped.

Nothing of it is parsed before it has left: whatever the sides agreed upon, and whatever they break,
is between them. There is no limit of time; a slow side slows the other.
"""

from collections.abc import Callable

from deltatape.gateway.recorder import ExchangeTaping
from deltatape.http1.client import UpstreamConnection
from deltatape.http1.relay import RelaySide
from deltatape.http1.server import ServerConnection
from deltatape.model.exchange import EndReason
from deltatape.model.websocket import Side


class SocketSide(RelaySide):
    """One side of a WebSocket."""

    def __init__(self, relay: "SocketRelay", side: Side) -> None:
        super().__init__()
        self._relay = relay
        self.side = side

    def data_received(self, data: bytes) -> None:
        """The other side first, the tape after."""
        taping = self._relay.taping
        taping.arrived()
        super().data_received(data)
        taping.frames(self.side, data)

    def eof_received(self) -> bool:
        self._relay.leaves(self.side, None)
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._relay.leaves(self.side, exc)
        super().connection_lost(exc)
        self._relay.lost(self.side, exc)


class SocketRelay:
    """Both sides of a WebSocket, of connections that were used for its handshake.

    Args:
        taping: records the exchange.
        client: the application's side.
        upstream: the provider's side.
        on_end: called when both connections have ended, with what ended them and a detail.
    """

    def __init__(
        self,
        taping: ExchangeTaping,
        client: ServerConnection,
        upstream: UpstreamConnection,
        on_end: Callable[[EndReason, str], None],
    ) -> None:
        self.taping = taping
        self._client = client
        self._on_end = on_end
        self._end: tuple[EndReason, str] | None = None
        self._sides = {side: SocketSide(self, side) for side in Side}
        here, there = self._sides[Side.CLIENT], self._sides[Side.SERVER]
        here.peer, there.peer = there, here
        self._open = set(Side)
        upstream.detach(there)
        early = client.detach(here)
        if early:
            here.data_received(early)

    def leaves(self, side: Side, error: Exception | None) -> None:
        """Note that a side ends the connection; what the other one does then is the consequence."""
        if self._end is not None:
            return
        if side is Side.CLIENT:
            detail = "" if error is None else "the client reset its connection"
            self._end = EndReason.CLIENT_CLOSED, detail
        elif error is None:
            self._end = EndReason.UPSTREAM_CLOSED, ""
        else:
            self._end = EndReason.UPSTREAM_RESET, str(error)

    def lost(self, side: Side, error: Exception | None) -> None:
        """Note that the connection of a side has ended."""
        self._open.discard(side)
        if side is Side.CLIENT:
            self._client.connection_lost(error)
        if not self._open and self._end is not None:
            self._on_end(*self._end)

    def close(self) -> None:
        """End both connections after everything written was sent."""
        for side in self._sides.values():
            side.close()
