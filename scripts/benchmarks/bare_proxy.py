"""A proxy that does nothing but pass bytes on, a program: what asyncio costs by itself.

The floor of every proxy that is written with asyncio's own transports: one connection upstream for
each connection of a client, no parser, no tape. It is ended by a signal.
"""

import argparse
import asyncio


class Side(asyncio.Protocol):
    """One side of a connection; what comes is written to the other."""

    def __init__(self, peer: "Side | None" = None, upstream: int = 0) -> None:
        self._peer = peer
        self._upstream = upstream
        self._early = b""
        self.transport: asyncio.Transport | None = None
        self._dialling: asyncio.Task[object] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        if self._peer is None:
            loop = asyncio.get_running_loop()
            dial = loop.create_connection(lambda: Side(self), "127.0.0.1", self._upstream)
            self._dialling = loop.create_task(dial)
        else:
            self._peer.joined(self)

    def joined(self, peer: "Side") -> None:
        """The upstream side is connected."""
        self._peer = peer
        peer.write(self._early)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if self._peer is None:
            self._early += data
        else:
            self._peer.write(data)

    def write(self, data: bytes) -> None:
        """Pass bytes on."""
        if self.transport is not None:
            self.transport.write(data)

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`."""
        if self._peer is not None and self._peer.transport is not None:
            self._peer.transport.pause_reading()

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        if self._peer is not None and self._peer.transport is not None:
            self._peer.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - both are an end
        """See `asyncio.Protocol`."""
        self.transport = None
        if self._peer is not None and self._peer.transport is not None:
            self._peer.transport.close()


async def serve(port: int, upstream: int) -> None:
    """Until the end of the process."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Side(upstream=upstream), "127.0.0.1", port, backlog=4096
    )
    await server.serve_forever()


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="bare_proxy")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--upstream", type=int, required=True)
    options = parser.parse_args()
    asyncio.run(serve(options.port, options.upstream))


if __name__ == "__main__":
    main()
