"""A tunnel in the test's own loop, and the connections that it reported."""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from deltatape.clock import SystemClock
from deltatape.gateway.dial import Connector
from deltatape.gateway.outbound import OutboundSettings, outbound_from
from deltatape.gateway.tunnel import Tunnel, TunnelledConnection
from helpers.upstream import Peer, connect


@dataclass
class Tunnelling:
    """A running tunnel."""

    tunnel: Tunnel
    passed: list[TunnelledConnection] = field(default_factory=list)

    @property
    def credentials(self) -> bytes:
        """The field that the tunnel's URL stands for."""
        parts = urlsplit(self.tunnel.url)
        pair = base64.b64encode(f"{parts.username}:{parts.password}".encode())
        return b"Proxy-Authorization: Basic %b\r\n" % pair

    async def ask(self, authority: str, *, fields: bytes | None = None, http: str = "1.1") -> Peer:
        """Send a CONNECT."""
        peer = await connect(self.tunnel.port)
        fields = self.credentials if fields is None else fields
        await peer.send(
            f"CONNECT {authority} HTTP/{http}\r\nHost: {authority}\r\n".encode() + fields + b"\r\n"
        )
        return peer

    async def through(self, port: int, host: str = "127.0.0.1") -> Peer:
        """A connection through the tunnel, past its answer."""
        peer = await self.ask(f"{host}:{port}")
        head = await peer.until(b"\r\n\r\n")
        assert head == b"HTTP/1.1 200 Connection established\r\n\r\n", head
        return peer


@contextlib.asynccontextmanager
async def tunnelling(
    outbound: OutboundSettings | None = None, *, own_ports: tuple[int, ...] = ()
) -> AsyncIterator[Tunnelling]:
    """A tunnel that reaches out as `outbound` says; nothing may be open after it."""
    passed: list[TunnelledConnection] = []
    tunnel = Tunnel(Connector(outbound or outbound_from({}), SystemClock()), passed.append)
    await tunnel.start(own_ports=own_ports)
    try:
        yield Tunnelling(tunnel, passed)
    finally:
        await tunnel.stop()
        await asyncio.sleep(0)
        assert not tunnel._sides
