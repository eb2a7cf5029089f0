"""A company's network: a provider behind a proxy with a login, and the company's own authority."""

import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import trustme

from helpers.corporate import USER, CorporateProxy, corporate_proxy, server_context
from helpers.mitm import call_events
from helpers.upstream import SSE_HEAD, Peer, chunk, provider

EVENTS = call_events()
LLM = "llm.company.test"
OTHER = "wiki.company.test"
LOGIN = f"{USER}:s3cret%3Ax"


@dataclass(frozen=True)
class CorporateNetwork:
    """A network out of which only the proxy leads."""

    proxy: CorporateProxy
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
        await peer.request()
        await peer.send(SSE_HEAD + b"".join(map(chunk, EVENTS)) + b"0\r\n\r\n")


@contextlib.asynccontextmanager
async def corporate_network(
    folder: Path, clients: trustme.CA | None = None
) -> AsyncIterator[CorporateNetwork]:
    """`LLM` and `OTHER` behind a proxy with a login; `clients`: who issues their certificates."""
    ca = trustme.CA(organization_name="the company")
    path = folder / "company.pem"
    ca.cert_pem.write_to_path(str(path))
    context = server_context(ca, LLM, OTHER)
    if clients is not None:
        clients.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    async with (
        provider(stream, tls=context) as port,
        provider(stream) as local,
        # mitmproxy takes an interim response for a refusal.
        corporate_proxy({LLM: port, OTHER: port}, guarded=True, interim=False) as proxy,
    ):
        yield CorporateNetwork(proxy, ca, path, local)
