"""Real programs go through the tunnel to a server with TLS, also behind a corporate proxy."""

import asyncio
import os
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import trustme

from deltatape.gateway.outbound import outbound_from
from deltatape.gateway.tunnel import TunnelledConnection
from helpers.corporate import PASSWORD, USER, corporate_proxy, server_context
from helpers.tunnelling import tunnelling
from helpers.upstream import Peer, eventually, provider, run


async def hello(peer: Peer) -> None:
    await peer.request()
    await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    await peer.rest()


@asynccontextmanager
async def tls_provider(folder: Path) -> AsyncIterator[int]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    async with provider(hello, tls=server_context(authority, "localhost", "127.0.0.1")) as port:
        yield port


async def program(*argv: str, **environment: str) -> tuple[int, bytes, bytes]:
    """Run a program with nothing of ours in its environment: code, stdout, stderr."""
    clean = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
    process = await asyncio.create_subprocess_exec(
        *argv,
        env=clean | environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), 15)
    finally:
        if process.returncode is None:
            process.kill()
    return process.returncode or 0, out, err


def test_curl_goes_through(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tls_provider(tmp_path) as port, tunnelling() as t:
            url = f"https://localhost:{port}/"
            ca = str(tmp_path / "ca.pem")
            code, out, err = await program("curl", "-sS", "-x", t.tunnel.url, "--cacert", ca, url)
            assert (code, out) == (0, b"hello"), err
            code, out, err = await program(
                "curl", "-sS", "--proxy1.0", urlsplit(t.tunnel.url).netloc, "--cacert", ca, url
            )
            assert (code, out) == (0, b"hello"), err
            assert t.passed == [TunnelledConnection(host="localhost", port=port, llm=None)] * 2

    run(scenario())


def test_pythons_standard_library_goes_through(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tls_provider(tmp_path) as port, tunnelling() as t:
            code, out, err = await program(
                sys.executable,
                "-c",
                "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())",
                f"https://localhost:{port}/",
                HTTPS_PROXY=t.tunnel.url,
                SSL_CERT_FILE=str(tmp_path / "ca.pem"),
            )
            assert (code, out.strip()) == (0, b"hello"), err
            assert [(p.host, p.port) for p in t.passed] == [("localhost", port)]

    run(scenario())


def test_aiohttp_goes_through(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tls_provider(tmp_path) as port, tunnelling() as t:
            context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
            async with (
                aiohttp.ClientSession() as session,
                session.get(
                    f"https://localhost:{port}/", proxy=t.tunnel.url, ssl=context
                ) as response,
            ):
                assert await response.read() == b"hello"

    run(scenario())


def test_curl_goes_through_a_corporate_proxy_behind_the_tunnel(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            tls_provider(tmp_path) as port,
            corporate_proxy({"api.test": port}, guarded=True) as proxy,
        ):
            login = f"{USER}:{PASSWORD.replace(':', '%3A')}"
            outbound = outbound_from({"HTTPS_PROXY": f"http://{login}@127.0.0.1:{proxy.port}"})
            async with tunnelling(outbound) as t:
                code, out, err = await program(
                    "curl", "-sSk", "-x", t.tunnel.url, "https://api.test/"
                )
                assert (code, out) == (0, b"hello"), err
            assert proxy.passed == ["api.test:443"]
            await eventually(lambda: proxy.open == 0, "the corporate proxy is left")

    run(scenario())


def test_the_corporate_proxy_s_refusal_reaches_the_client() -> None:
    async def scenario() -> None:
        async with corporate_proxy(guarded=True) as proxy:
            outbound = outbound_from({"HTTPS_PROXY": f"http://127.0.0.1:{proxy.port}"})
            async with tunnelling(outbound) as t:
                code, out, err = await program(
                    "curl", "-sS", "-i", "-x", t.tunnel.url, "https://api.test/"
                )
                assert code == 56, err
                assert b"502 Bad Gateway" in out
                peer = await t.ask("api.test:443")
                answer, _ = await peer.rest()
                assert b"407 Proxy Authentication Required" in answer
                assert b"HTTPS_PROXY=http://USER:PASSWORD@127.0.0.1:" in answer
                assert all("407" in tried.failure for tried in t.passed)

    run(scenario())
