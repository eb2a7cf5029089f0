"""A company's proxy as most are, a provider behind it, and the company's own authority."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import trustme

from helpers.corporate import PASSWORD, USER, CorporateProxy, _splice
from helpers.mitm import call_events
from helpers.upstream import SSE_HEAD, Peer, chunk, provider

EVENTS = call_events()
LLM = "llm.company.test"
OTHER = "wiki.company.test"
LOGIN = f"{USER}:s3cret%3Ax"
assert PASSWORD == "s3cret:x"  # noqa: S105 - a fake


class FinalProxy(CorporateProxy):
    """Answers once: mitmproxy takes an interim response for a refusal."""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(head)
        if self.guarded and not self._may(head):
            writer.write(b"HTTP/1.1 407 Login Required\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            return
        authority = head.split()[1].decode()
        far = await asyncio.open_connection("127.0.0.1", self.hosts[authority.rpartition(":")[0]])
        self.passed.append(authority)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await _splice((reader, writer), far)


@dataclass(frozen=True)
class CorporateNetwork:
    """A network out of which only the proxy leads."""

    proxy: FinalProxy
    ca: trustme.CA
    ca_file: Path
    port: int
    """A service on loopback, without TLS."""

    @property
    def url(self) -> str:
        """Of the proxy, with the login."""
        return f"http://{LOGIN}@127.0.0.1:{self.proxy.port}"


async def stream(peer: Peer) -> None:
    """A provider with a call for everybody."""
    while True:
        head = await peer.until(b"\r\n\r\n")
        length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-len")]
        await peer.reader.readexactly(int(length[0].split(b":")[1]) if length else 0)
        await peer.send(SSE_HEAD + b"".join(map(chunk, EVENTS)) + b"0\r\n\r\n")


@contextlib.asynccontextmanager
async def corporate_network(
    folder: Path, clients: trustme.CA | None = None
) -> AsyncIterator[CorporateNetwork]:
    """`LLM` and `OTHER` behind a proxy with a login; `clients`: who issues their certificates."""
    ca = trustme.CA(organization_name="the company")
    path = folder / "company.pem"
    ca.cert_pem.write_to_path(str(path))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(LLM, OTHER).configure_cert(context)
    if clients is not None:
        clients.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    async with provider(stream, tls=context) as port, provider(stream) as local:
        proxy = FinalProxy({LLM: port, OTHER: port}, guarded=True)
        server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
        proxy.port = server.sockets[0].getsockname()[1]
        try:
            yield CorporateNetwork(proxy, ca, path, local)
        finally:
            server.close()
