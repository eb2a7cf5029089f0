"""Two connections as one: what comes in on one side leaves on the other.

Endings stay what they are: a half-close stays one, and RST becomes RST once the bytes before it
have left. asyncio's TLS has no half-close: if one side uses TLS, the end of either side ends both.
A slow side pauses the other; that one's RST is noticed all the same.
"""

import asyncio
import contextlib

from deltatape.http1.socket import RESET, HangupWatch, break_cycle, leftovers, reset


class RelaySide(asyncio.Protocol):
    """One side; it relays once it has a `peer`."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.peer: RelaySide | None = None
        self.finished = False
        """Whether it has sent its FIN."""
        self._watch: HangupWatch | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        # What it sent before its RST is read, and then the RST.
        self._watch = HangupWatch(transport, transport.resume_reading, RESET)

    def data_received(self, data: bytes) -> None:
        if self.peer is not None:
            self.peer.write(data)

    def eof_received(self) -> bool:
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
        if self.peer is not None:
            self.peer.pause()

    def resume_writing(self) -> None:
        if self.peer is not None:
            self.peer.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        transport, self.transport = self.transport, None
        peer, self.peer = self.peer, None
        if self._watch is not None:
            self._watch.stop()
        if peer is not None and peer.transport is not None:
            if exc is not None and transport is not None:
                for data in leftovers(transport):
                    self.peer = peer
                    self.data_received(data)
                self.peer = None
                reset(peer.transport)
            else:
                peer.close()
        if transport is not None:
            break_cycle(transport)

    def pause(self) -> None:
        """Read no more until `resume`: the other side is slow."""
        if self.transport is not None and self._watch is not None:
            self.transport.pause_reading()
            self._watch.start()

    def resume(self) -> None:
        if self.transport is not None and self._watch is not None:
            self._watch.stop()
            self.transport.resume_reading()

    def write(self, data: bytes) -> None:
        """Send; ignored after the end of the connection."""
        if self.transport is not None:
            self.transport.write(data)

    def close(self) -> None:
        """Close after everything written was sent."""
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self.transport is not None:
            self.transport.abort()
