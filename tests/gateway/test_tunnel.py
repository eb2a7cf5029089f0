"""What an application sends past the gateway is told, and only this application can use it."""

import asyncio
import base64
import contextlib
import hashlib
import os
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest
import trustme

from deltatape.clock import SystemClock
from deltatape.gateway import peer as peer_module
from deltatape.gateway.dial import Connector
from deltatape.gateway.outbound import OutboundSettings, outbound_from
from deltatape.gateway.tunnel import Tunnel, TunnelledConnection
from helpers.conformance import HTTP_2
from helpers.corporate import PASSWORD, USER, corporate_proxy, server_context
from helpers.upstream import Peer, connect, eventually, free_port, provider, run

TELLS = pytest.mark.skipif(
    not Path("/proc/net/tcp").exists(), reason="this system does not tell whose a connection is"
)

# A tunnel in the test's own loop, and the connections that it reported.


@dataclass
class Tunnelling:
    """A running tunnel."""

    tunnel: Tunnel
    passed: list[TunnelledConnection] = field(default_factory=list)

    @property
    def credentials(self) -> bytes:
        """The field that the tunnel's URL stands for; b"" where it needs none."""
        parts = urlsplit(self.tunnel.url)
        if parts.username is None:
            return b""
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
    outbound: OutboundSettings | None = None, *, gateway_ports: tuple[int, ...] = ()
) -> AsyncIterator[Tunnelling]:
    """A tunnel that reaches out as `outbound` says; nothing may be open after it."""
    passed: list[TunnelledConnection] = []
    tunnel = Tunnel(Connector(outbound or outbound_from({}), SystemClock()), passed.append)
    await tunnel.start(gateway_ports=gateway_ports)
    try:
        yield Tunnelling(tunnel, passed)
    finally:
        await tunnel.stop()
        await asyncio.sleep(0)
        assert not tunnel._sides


async def echo(peer: Peer) -> None:
    got, _ = await peer.rest()
    await peer.send(got)
    peer.close()


def open_descriptors() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


# What is told.


def test_an_llm_host_is_told_with_its_provider() -> None:
    async def scenario() -> None:
        async with provider(echo) as port, corporate_proxy({"openrouter.ai": port}) as proxy:
            outbound = outbound_from({"HTTPS_PROXY": f"http://127.0.0.1:{proxy.port}"})
            async with tunnelling(outbound) as t:
                await t.through(443, "openrouter.ai")
                assert t.passed == [
                    TunnelledConnection(host="openrouter.ai", port=443, llm="openrouter")
                ]

    run(scenario())


def test_what_could_not_be_opened_is_told_with_the_reason() -> None:
    async def scenario() -> None:
        async with tunnelling() as t:
            peer = await t.ask(f"127.0.0.1:{free_port()}")
            answer, ending = await peer.rest()
            assert answer.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
            assert b"Connection refused" in answer
            assert ending == "eof"
            (tried,) = t.passed
            assert "Connection refused" in tried.failure

    run(scenario())


# What is refused.


async def refused(t: Tunnelling, request: bytes) -> bytes:
    peer = Peer(*await asyncio.open_connection("127.0.0.1", t.tunnel.port))
    await peer.send(request)
    answer, _ = await asyncio.wait_for(peer.rest(), 5)
    peer.close()
    assert not t.passed
    return answer


def test_other_methods_are_refused_with_what_to_do() -> None:
    async def scenario() -> None:
        async with tunnelling() as t:
            for line in (b"GET http://api.test/ HTTP/1.1", b"POST / HTTP/1.1"):
                answer = await refused(
                    t, line + b"\r\nHost: api.test\r\n" + t.credentials + b"\r\n"
                )
                assert answer.startswith(b"HTTP/1.1 405 Method Not Allowed\r\n")
                assert b"\r\nAllow: CONNECT\r\n" in answer
                assert b"unset http_proxy" in answer

    run(scenario())


@pytest.fixture
def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that does not tell whose a connection is."""
    monkeypatch.setattr(peer_module, "_LISTS", (Path("/no/such/list"), Path("/no/such/list")))


@TELLS
def test_where_the_system_tells_the_user_no_password_is_in_the_variable() -> None:
    async def scenario() -> None:
        async with provider(echo) as port, tunnelling() as t:
            assert t.tunnel.url == f"http://127.0.0.1:{t.tunnel.port}"
            assert t.tunnel.token == ""
            await t.through(port)

    run(scenario())


@TELLS
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start programs of another user")
def test_a_program_of_another_user_is_refused() -> None:
    async def scenario() -> None:
        async with provider(echo) as port, tunnelling() as t:
            answer = await asyncio.to_thread(
                subprocess.run,
                ("curl", "-s", "-i", "-p", "-x", t.tunnel.url, f"http://127.0.0.1:{port}/"),
                capture_output=True,
                check=False,
                user=65534,
            )
            assert answer.stdout.startswith(b"HTTP/1.1 403 Forbidden\r\n")
            assert not t.passed

    run(scenario())


@pytest.mark.usefixtures("untold")
@pytest.mark.parametrize(
    "fields",
    [
        b"",
        b"Proxy-Authorization: Basic ZGVsdGF0YXBlOndyb25n\r\n",
        b"Proxy-Authorization: Basic \xff\r\n",
        b"Proxy-Authorization: Bearer x\r\n",
        b"Authorization: Basic x\r\n",
    ],
)
def test_without_the_credentials_nothing_opens(fields: bytes) -> None:
    async def scenario() -> None:
        async with provider(echo) as port, tunnelling() as t:
            peer = await t.ask(f"127.0.0.1:{port}", fields=fields)
            answer, _ = await peer.rest()
            assert answer.startswith(b"HTTP/1.1 407 Proxy Authentication Required\r\n")
            assert b"\r\nProxy-Authenticate: Basic " in answer
            assert not t.passed

    run(scenario())


@pytest.mark.parametrize("authority", ["127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "a@b:443"])
def test_what_is_no_authority_is_refused(authority: str) -> None:
    async def scenario() -> None:
        async with tunnelling() as t:
            peer = await t.ask(authority)
            answer, _ = await peer.rest()
            assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")

    run(scenario())


def test_what_is_no_request_is_refused() -> None:
    async def scenario() -> None:
        async with tunnelling() as t:
            for raw in (b"\x16\x03\x01\x02\x00", b"SSH-2.0-x\r\n\r\n", b"CONNECT\n\n"):
                assert (await refused(t, raw)).startswith(b"HTTP/1.1 400 Bad Request\r\n")

    run(scenario())


def test_http_2_is_refused_in_its_own_frames() -> None:
    async def scenario() -> bytes:
        async with tunnelling() as t:
            return await refused(t, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

    answered = run(scenario())
    assert answered.startswith(HTTP_2)
    assert b"switch HTTP/2 off in the client" in answered


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::]"])
def test_the_tunnel_does_not_lead_to_itself(host: str) -> None:
    async def scenario() -> None:
        async with tunnelling() as t:
            peer = await t.ask(f"{host}:{t.tunnel.port}")
            answer, _ = await peer.rest()
            assert answer.startswith(b"HTTP/1.1 403 Forbidden\r\n")
            assert b"is this tunnel itself" in answer

    run(scenario())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_who_ignores_no_proxy_reaches_the_gateway_and_is_not_reported(host: str) -> None:
    async def scenario() -> None:
        async with provider(echo) as port, tunnelling(gateway_ports=(port,)) as t:
            peer = await t.through(port, host)
            await peer.send(b"hello")
            peer.writer.write_eof()
            assert await peer.rest() == (b"hello", "eof")
            assert not t.passed

    run(scenario())


def test_the_same_port_of_another_host_is_not_deltatape() -> None:
    async def scenario() -> None:
        async with tunnelling() as t:
            peer = await t.ask(f"no-such-host.invalid:{t.tunnel.port}")
            answer, _ = await peer.rest()
            assert answer.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
            assert b"has no address" in answer

    run(scenario())


def test_a_request_of_http_1_0_is_served() -> None:
    async def scenario() -> None:
        async with provider(echo) as port, tunnelling() as t:
            peer = await t.ask(f"127.0.0.1:{port}", http="1.0")
            assert b" 200 " in await peer.until(b"\r\n\r\n")

    run(scenario())


# Life.


def test_bytes_behind_the_request_are_not_lost() -> None:
    async def scenario() -> None:
        async with provider(echo) as port, tunnelling() as t:
            peer = Peer(*await asyncio.open_connection("127.0.0.1", t.tunnel.port))
            early = b"x" * 300_000
            await peer.send(
                b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: x\r\n%b\r\n%b"
                % (port, t.credentials, early)
            )
            peer.writer.write_eof()
            await peer.until(b"\r\n\r\n")
            assert await peer.rest() == (early, "eof")
            peer.close()

    run(scenario())


def test_a_client_that_leaves_early_ends_the_dialling() -> None:
    async def scenario() -> None:
        asked, left = asyncio.Event(), asyncio.Event()

        async def silent(peer: Peer) -> None:
            asked.set()
            await peer.rest()
            left.set()

        async with provider(silent) as port:
            outbound = outbound_from({"HTTPS_PROXY": f"http://127.0.0.1:{port}"})
            async with tunnelling(outbound) as t:
                peer = await t.ask("api.test:443")
                await asyncio.wait_for(asked.wait(), 5)
                peer.close()
                await asyncio.wait_for(left.wait(), 5)
                assert not t.passed

    run(scenario())


def test_fifty_at_once_do_not_mix() -> None:
    async def scenario() -> None:
        async with provider(echo) as port, tunnelling() as t:

            async def one(number: int) -> bool:
                data = bytes([number]) * 200_000
                peer = await t.through(port)
                peer.writer.write(data)
                peer.writer.write_eof()
                return await peer.rest() == (data, "eof")

            assert all(await asyncio.gather(*(one(number) for number in range(50))))
            assert len(t.passed) == 50
            await eventually(lambda: not t.tunnel._sides, "all are closed")

    run(scenario())


def test_stopping_cuts_what_is_open_and_leaves_nothing() -> None:
    async def scenario() -> None:
        gone = asyncio.Event()

        async def waiting(peer: Peer) -> None:
            await peer.rest()
            gone.set()

        before = open_descriptors()
        async with provider(waiting) as port:
            async with tunnelling() as t:
                peer = await t.through(port)
                idle = await asyncio.open_connection("127.0.0.1", t.tunnel.port)
            await asyncio.wait_for(peer.rest(), 5)
            await asyncio.wait_for(gone.wait(), 5)
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", t.tunnel.port)
            peer.close()
            idle[1].close()
            await idle[1].wait_closed()
        await eventually(lambda: open_descriptors() <= before, "no descriptor is left")

    run(scenario())


@pytest.mark.usefixtures("untold")
def test_each_tunnel_has_credentials_of_its_own() -> None:
    async def scenario() -> None:
        async with tunnelling() as one, tunnelling() as other:
            assert one.tunnel.token != other.tunnel.token
            assert len(one.tunnel.token) >= 32
            assert one.tunnel.url == (
                f"http://deltatape:{one.tunnel.token}@127.0.0.1:{one.tunnel.port}"
            )
            async with provider(echo) as port:
                await one.through(port)

    run(scenario())


BIG = 8 * 1024 * 1024


def test_a_half_close_is_passed_on_and_the_answer_comes_back() -> None:
    async def scenario() -> None:
        data = os.urandom(BIG)
        async with provider(echo) as port, tunnelling() as t:
            peer = await t.through(port)
            peer.writer.write(data)
            peer.writer.write_eof()
            got, ending = await peer.rest()
            assert hashlib.sha256(got).digest() == hashlib.sha256(data).digest()
            assert ending == "eof"
            await eventually(lambda: not t.tunnel._sides, "both sides are closed")

    run(scenario())


def test_a_server_may_finish_first() -> None:
    received = bytearray()

    async def speak_then_listen(peer: Peer) -> None:
        await peer.send(b"220 hello\r\n")
        peer.writer.write_eof()
        received.extend((await peer.rest())[0])
        peer.close()

    async def scenario() -> None:
        async with provider(speak_then_listen) as port, tunnelling() as t:
            peer = await t.through(port)
            assert await peer.rest() == (b"220 hello\r\n", "eof")
            await peer.send(b"more")
            peer.close()
            await eventually(lambda: received == b"more", "the rest arrives")
            await eventually(lambda: not t.tunnel._sides, "both sides are closed")

    run(scenario())


@pytest.mark.parametrize("side", ["server", "client"])
def test_a_reset_arrives_as_a_reset(side: str) -> None:
    seen: asyncio.Queue[str] = asyncio.Queue()

    async def script(peer: Peer) -> None:
        await peer.send(b"hello")
        if side == "server":
            await peer.until(b"go")
            peer.reset()
        else:
            seen.put_nowait((await peer.rest())[1])

    async def scenario() -> None:
        async with provider(script) as port, tunnelling() as t:
            peer = await t.through(port)
            assert await peer.until(b"hello") == b"hello"
            if side == "server":
                await peer.send(b"go")
                assert (await peer.rest())[1] == "reset"
            else:
                peer.reset()
                assert await asyncio.wait_for(seen.get(), 5) == "reset"
            await eventually(lambda: not t.tunnel._sides, "both sides are closed")

    run(scenario())


def test_a_side_that_does_not_read_stops_the_other() -> None:
    async def scenario() -> None:
        sent: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def pour(peer: Peer) -> None:
            """Write until nobody takes it any more."""
            for count in range(1, 4096):
                peer.writer.write(bytes(65536))
                try:
                    await asyncio.wait_for(peer.writer.drain(), 0.5)
                except TimeoutError:
                    sent.set_result(count * 65536)
                    await peer.rest()

        async with provider(pour) as port, tunnelling() as t:
            peer = await t.through(port)
            transport = peer.writer.transport
            assert isinstance(transport, asyncio.Transport)
            transport.pause_reading()
            total = await asyncio.wait_for(sent, 15)
            held = sum(
                end.transport.get_write_buffer_size() for end in t.tunnel._sides if end.transport
            )
            assert held < 1024 * 1024
            transport.resume_reading()
            assert len(await peer.reader.readexactly(total)) == total

    run(scenario(), limit_s=40)


# With TLS on one side: a corporate proxy that is spoken to with it.


@asynccontextmanager
async def secured(folder: Path, port: int) -> AsyncIterator[Tunnelling]:
    """A tunnel whose way to api.test leads through TLS to a proxy."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    context = server_context(authority, "127.0.0.1")
    async with corporate_proxy({"api.test": port}, tls=context) as proxy:
        environment = {"HTTPS_PROXY": f"https://127.0.0.1:{proxy.port}"}
        async with tunnelling(outbound_from(environment, ca=folder / "ca.pem")) as t:
            yield t


def test_bytes_pass_through_tls_both_ways(tmp_path: Path) -> None:
    data = os.urandom(BIG)

    async def mirror(peer: Peer) -> None:
        await peer.send(await peer.reader.readexactly(BIG))
        peer.close()

    async def scenario() -> None:
        async with provider(mirror) as port, secured(tmp_path, port) as t:
            peer = await t.through(443, "api.test")
            peer.writer.write(data)
            got, ending = await peer.rest()
            assert hashlib.sha256(got).digest() == hashlib.sha256(data).digest()
            assert ending == "eof"
            await eventually(lambda: not t.tunnel._sides, "both sides are closed")

    run(scenario())


def test_a_client_that_ends_is_seen_behind_tls(tmp_path: Path) -> None:
    async def scenario() -> None:
        ended = asyncio.Event()

        async def wait(peer: Peer) -> None:
            await peer.rest()
            ended.set()

        async with provider(wait) as port, secured(tmp_path, port) as t:
            peer = await t.through(443, "api.test")
            peer.close()
            await asyncio.wait_for(ended.wait(), 5)
            await eventually(lambda: not t.tunnel._sides, "both sides are closed")

    run(scenario())


def test_a_refusal_of_an_upload_arrives_before_its_reset() -> None:
    """The server answers, stops reading and resets; what it said is not lost in the tunnel."""

    async def refuse(peer: Peer) -> None:
        await peer.until(b"begin")
        await peer.send(b"413 too large")
        await asyncio.sleep(0.2)
        peer.reset()

    async def scenario() -> None:
        async with provider(refuse) as port, tunnelling() as t:
            peer = await t.through(port)
            peer.writer.write(b"begin" + bytes(BIG))
            assert await peer.rest() == (b"413 too large", "reset")

    run(scenario())


# Real programs go through the tunnel to a server with TLS, also behind a corporate proxy.


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
