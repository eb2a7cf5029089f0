"""Two connections as one: what comes in on one side leaves on the other, unread.

Endings stay what they are: a half-close is a half-close, RST becomes RST once what came before it
has left. TLS as asyncio has it knows no half-close: where one side is spoken to with TLS, either
end ends both. The side that lags stops the other; a peer that resets while it is stopped is noticed
when it is read again.
"""

import asyncio
import contextlib
from typing import Protocol

from deltatape.http1.socket import leftovers, reset


class Owner(Protocol):
    """Who keeps count of the ends."""

    def joined(self, end: "End") -> None:
        """A connection is open."""

    def left(self, end: "End") -> None:
        """A connection is gone."""


class End(asyncio.Protocol):
    """One side."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self.transport: asyncio.Transport | None = None
        self.peer: End | None = None
        self.finished = False
        """Whether it has sent its FIN."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._owner.joined(self)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if self.peer is not None:
            self.peer.write(data)

    def eof_received(self) -> bool:
        """See `asyncio.Protocol`."""
        self.finished = True
        peer, transport = self.peer, self.transport
        if peer is None or transport is None:
            return False
        if peer.finished:
            peer.close()
            self.close()
        elif peer.transport is not None and peer.transport.can_write_eof():
            with contextlib.suppress(OSError):  # a peer that is quick has gone already
                peer.transport.write_eof()
        else:
            peer.close()
        return transport.can_write_eof()  # TLS cannot, and is over with its close_notify

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`."""
        if self.peer is not None and self.peer.transport is not None:
            self.peer.transport.pause_reading()

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        if self.peer is not None and self.peer.transport is not None:
            self.peer.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        transport, self.transport = self.transport, None
        peer, self.peer = self.peer, None
        if peer is not None and peer.transport is not None:
            if exc is not None and transport is not None:
                for data in leftovers(transport):
                    peer.write(data)
                reset(peer.transport)
            else:
                peer.close()
        self._owner.left(self)

    def write(self, data: bytes) -> None:
        """Send; nothing happens once the connection is gone."""
        if self.transport is not None:
            self.transport.write(data)

    def close(self) -> None:
        """End it once all that was written has left."""
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """End it now."""
        if self.transport is not None:
            self.transport.abort()
