"""Each failure of a connection has a name, and the upstream is named with it."""

import asyncio
import base64
import contextlib
import errno
import os
import socket
import ssl
from asyncio import sslproto
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme

from deltatape.clock import SystemClock
from deltatape.gateway import dial
from deltatape.gateway import dial as dialling
from deltatape.gateway.dial import (
    Address,
    ConnectionFailedError,
    Connector,
    OpenConnection,
    ProxyError,
    connect,
    connect_first,
    connect_through_proxy,
)
from deltatape.gateway.outbound import OutboundSettings, Proxy, outbound_from
from deltatape.gateway.routes import Origin
from deltatape.http1.body import BodyScan
from deltatape.http1.client import ConnectionLost
from deltatape.http1.head import Fields, ParsedResponseHead
from deltatape.http1.tls import TLS_BUFFER_BYTES, ReadableTLS
from helpers.corporate import PASSWORD, USER, corporate_proxy, server_context
from helpers.upstream import Peer, Script, free_port, provider, run

# A dialler in the test's own loop, and what can be reached with it.


async def hello(peer: Peer) -> None:
    """Answer one request."""
    await peer.request()
    await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
    for letter in b"hello":
        await asyncio.sleep(0.005)  # so that they come in several reads
        await peer.send(bytes([letter]))
    await peer.rest()


def dialler(ca: Path | None = None, **environment: str) -> Connector:
    """One for this environment."""
    return Connector(outbound_from(environment, ca=ca), SystemClock())


async def try_dial(how: Connector, origin: Origin) -> OpenConnection | ConnectionFailedError:
    """What comes of it; a connection is dropped."""
    try:
        dialled = await how.dial(origin)
    except ConnectionFailedError as error:
        return error
    dialled.connection.abort()
    return dialled


async def failure(how: Connector, origin: Origin) -> ConnectionFailedError:
    """The error that must come of it."""
    outcome = await try_dial(how, origin)
    assert isinstance(outcome, ConnectionFailedError)
    return outcome


class Answer:
    """A handler that keeps a response's body; see `http1.client.ResponseHandler`."""

    def __init__(self) -> None:
        self.body = b""
        self.over: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def on_informational(self, head: ParsedResponseHead) -> None:
        raise AssertionError(head)

    def on_response(self, head: ParsedResponseHead) -> None:
        assert head.status == 200

    def on_response_data(self, raw: bytes, scan: BodyScan) -> None:
        assert raw == scan.data
        self.body += scan.data

    def on_response_note(self, text: str) -> None:
        raise AssertionError(text)

    def on_response_debris(self, raw: bytes) -> None:
        raise AssertionError(raw)

    def on_response_end(self, trailers: Fields) -> None:
        assert not trailers
        self.over.set_result("complete")

    def on_upstream_lost(self, how: ConnectionLost, detail: str) -> None:
        self.over.set_result(f"{how.value} {detail}")

    def on_upstream_writable(self, *, writable: bool) -> None:
        raise AssertionError(writable)


async def get(how: Connector, origin: Origin) -> bytes:
    """The body of one response."""
    dialled = await how.dial(origin)
    answer = Answer()
    dialled.connection.start(answer, "GET")
    dialled.connection.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert await asyncio.wait_for(answer.over, 10) == "complete"
    assert dialled.connect_ns > 0
    assert (dialled.tls_ns > 0) == (origin.scheme == "https")
    transport = dialled.connection._transport
    assert transport is not None
    tls = transport.get_extra_info("ssl_object")
    assert isinstance(tls, ReadableTLS if origin.scheme == "https" else ReadableTLS | None)
    dialled.connection.abort()
    return answer.body


async def speak_http(peer: Peer) -> None:
    """Not TLS."""
    await peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    await peer.rest()


async def hang_up(peer: Peer) -> None:
    """End instead of answering."""
    await peer.reader.read(65536)
    peer.close()


async def say_nothing(peer: Peer) -> None:
    """Wait for what never comes."""
    await peer.rest()


@pytest.fixture
def authority(tmp_path: Path) -> trustme.CA:
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return made


def test_a_refused_connection() -> None:
    port = free_port()
    error = run(failure(dialler(), Origin("http", "127.0.0.1", port)))
    assert error.code == "upstream_refused"
    assert f"http://127.0.0.1:{port}: no connection: Connection refused" in str(error)


def test_an_unknown_name() -> None:
    error = run(failure(dialler(), Origin("http", "no-such-host.invalid", 80)))
    assert error.code == "upstream_unknown"
    assert "no-such-host.invalid" in str(error)


def test_a_name_that_dns_cannot_hold() -> None:
    error = run(failure(dialler(), Origin("http", "x" * 64 + ".invalid", 80)))
    assert error.code == "upstream_refused"


def test_a_plain_connection_has_no_time_for_tls() -> None:
    async def scenario() -> bytes:
        async with provider(hello) as port:
            return await get(dialler(), Origin("http", "localhost", port))

    assert run(scenario()) == b"hello"


def test_a_trusted_connection_has_both_times(authority: trustme.CA, tmp_path: Path) -> None:
    async def scenario() -> bytes:
        async with provider(hello, tls=server_context(authority, "127.0.0.1")) as port:
            how = dialler(tmp_path / "ca.pem")
            return await get(how, Origin("https", "127.0.0.1", port))

    assert run(scenario()) == b"hello"


def test_a_certificate_of_nobody_we_trust() -> None:
    async def scenario() -> ConnectionFailedError:
        async with provider(say_nothing, tls=server_context(trustme.CA(), "127.0.0.1")) as port:
            return await failure(dialler(), Origin("https", "127.0.0.1", port))

    error = run(scenario())
    assert error.code == "upstream_tls"
    assert "--ca FILE or SSL_CERT_FILE" in str(error)


def test_a_certificate_for_another_name(authority: trustme.CA, tmp_path: Path) -> None:
    async def scenario() -> ConnectionFailedError:
        async with provider(say_nothing, tls=server_context(authority, "api.test")) as port:
            how = dialler(tmp_path / "ca.pem")
            return await failure(how, Origin("https", "127.0.0.1", port))

    error = run(scenario())
    assert error.code == "upstream_tls"
    assert "mismatch" in str(error)


def test_a_client_certificate_is_shown_to_who_asks(authority: trustme.CA, tmp_path: Path) -> None:
    cert = tmp_path / "ann.pem"
    authority.issue_cert("ann.test").private_key_and_cert_chain_pem.write_to_path(str(cert))

    async def scenario() -> bytes:
        context = server_context(authority, "127.0.0.1")
        authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
        async with provider(hello, tls=context) as port:
            outbound = outbound_from({}, ca=tmp_path / "ca.pem", client_cert=cert)
            return await get(Connector(outbound, SystemClock()), Origin("https", "127.0.0.1", port))

    assert run(scenario()) == b"hello"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (speak_http, "is it plain http://?"),
        (hang_up, "closed the connection"),
        (say_nothing, "does it speak plain http://?"),
    ],
)
def test_an_upstream_without_tls_is_told_soon(
    script: Script, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialling, "TLS_TIMEOUT_S", 0.3)

    async def scenario() -> ConnectionFailedError:
        async with provider(script) as port:
            return await failure(dialler(), Origin("https", "127.0.0.1", port))

    error = run(scenario(), limit_s=5)
    assert error.code == "upstream_tls"
    assert words in str(error)


def test_a_connection_that_nobody_accepts_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialling, "CONNECT_TIMEOUT_S", 0.2)

    async def scenario() -> ConnectionFailedError:
        async with provider(say_nothing) as port:
            return await failure(dialler(), Origin("https", "127.0.0.1", port))

    assert run(scenario()).code == "upstream_timeout"


def test_a_file_that_has_gone_bad_since_the_start_is_told(
    authority: trustme.CA, tmp_path: Path
) -> None:
    assert authority.cert_pem
    ca = tmp_path / "ca.pem"

    async def scenario() -> tuple[ConnectionFailedError, ConnectionFailedError]:
        async with provider(say_nothing) as port:
            direct = dialler(ca)
            proxied = dialler(ca, HTTPS_PROXY=f"https://127.0.0.1:{port}")
            ca.unlink()
            return (
                await failure(direct, Origin("https", "127.0.0.1", port)),
                await failure(proxied, Origin("https", "api.test", port)),
            )

    direct, proxied = run(scenario())
    assert direct.code == "upstream_tls"
    assert proxied.code == "proxy_refused"
    assert "No such file" in str(direct)
    assert "No such file" in str(proxied)


def test_a_tls_connection_holds_a_small_buffer(authority: trustme.CA, tmp_path: Path) -> None:
    """On the Python that runs, the attribute exists and is what a connection allocates by."""

    async def scenario() -> None:
        assert Connector(OutboundSettings(), SystemClock())
        context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
        async with provider(say_nothing, tls=server_context(authority, "127.0.0.1")) as port:
            transport, _ = await asyncio.get_running_loop().create_connection(
                asyncio.Protocol, "127.0.0.1", port, ssl=context
            )
            inner = vars(transport)["_ssl_protocol"] if hasattr(transport, "__dict__") else None
            assert isinstance(inner, sslproto.SSLProtocol)
            assert len(inner._ssl_buffer) <= TLS_BUFFER_BYTES  # type: ignore[attr-defined]
            transport.abort()

    run(scenario())
    assert sslproto.SSLProtocol.max_size == TLS_BUFFER_BYTES


PAIR = b"Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode())


def proxy_at(port: int, *, scheme: str = "http", authorization: bytes | None = None) -> Proxy:
    return Proxy(
        scheme=scheme,
        host="127.0.0.1",
        port=port,
        authorization=authorization,
        variable="HTTPS_PROXY",
    )


@asynccontextmanager
async def raw_proxy(says: bytes) -> AsyncIterator[int]:
    """Something that reads a request and says `says`, whatever that is, then ends."""

    async def script(peer: Peer) -> None:
        await peer.until(b"\r\n\r\n")
        await peer.send(says)
        peer.close()

    async with provider(script) as port:
        yield port


async def refusal(
    proxy: Proxy, host: str = "api.test", context: ssl.SSLContext | None = None
) -> ProxyError:
    with pytest.raises(ProxyError) as caught:
        await connect_through_proxy(proxy, host, 443, context)
    return caught.value


def answered(says: bytes) -> ProxyError:
    async def scenario() -> ProxyError:
        async with raw_proxy(says) as port:
            return await refusal(proxy_at(port))

    return run(scenario())


def guarded(authorization: bytes | None, scheme: str = "Basic") -> ProxyError:
    async def scenario() -> ProxyError:
        async with corporate_proxy(guarded=True, scheme=scheme) as proxy:
            return await refusal(proxy_at(proxy.port, authorization=authorization))

    return run(scenario())


def test_the_way_is_open_behind_credentials_and_early_hints() -> None:
    async def speak_first(peer: Peer) -> None:
        await peer.send(b"220 hello\r\n")
        await peer.rest()

    async def scenario() -> None:
        async with (
            provider(speak_first) as port,
            corporate_proxy({"api.test": port}, guarded=True) as proxy,
        ):
            passage = await connect_through_proxy(
                proxy_at(proxy.port, authorization=PAIR), "api.test", 443, None
            )
            assert not passage.transport.is_reading()
            assert b"220 hello\r\n".startswith(passage.rest)
            assert proxy.asked[0].startswith(
                b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n"
            )
            passage.transport.abort()

    run(scenario())


def test_what_came_behind_the_answer_is_kept() -> None:
    async def scenario() -> None:
        async with raw_proxy(b"HTTP/1.1 200 OK\r\n\r\n220 hello\r\n") as port:
            passage = await connect_through_proxy(proxy_at(port), "api.test", 443, None)
            assert passage.rest == b"220 hello\r\n"
            passage.transport.abort()

    run(scenario())


@pytest.mark.parametrize(
    ("host", "authority"),
    [("2001:db8::1", b"[2001:db8::1]:443"), ("bücher.test", b"xn--bcher-kva.test:443")],
)
def test_a_host_is_written_as_an_authority(host: str, authority: bytes) -> None:
    async def scenario() -> None:
        async with corporate_proxy(answer=b"HTTP/1.1 403 No\r\n\r\n") as proxy:
            await refusal(proxy_at(proxy.port), host)
            assert proxy.asked[0].startswith(b"CONNECT %b HTTP/1.1\r\n" % authority)

    run(scenario())


def test_a_name_that_dns_cannot_hold_is_unknown() -> None:
    async def scenario() -> ProxyError:
        async with corporate_proxy() as proxy:
            return await refusal(proxy_at(proxy.port), "x" * 64 + "ü.test")

    assert run(scenario()).code == "proxy_unknown"


def test_missing_credentials_are_asked_for_with_the_variable() -> None:
    error = guarded(None)
    assert error.code == "proxy_auth"
    assert "407 Proxy Authentication Required" in str(error)
    assert "HTTPS_PROXY=http://USER:PASSWORD@127.0.0.1:" in str(error)


def test_wrong_credentials_are_not_repeated() -> None:
    wrong = b"Basic " + base64.b64encode(b"ann:wrong")
    error = guarded(wrong)
    assert error.code == "proxy_auth"
    assert "user or password in HTTPS_PROXY is not accepted" in str(error)
    assert "wrong" not in str(error)


def test_a_scheme_that_is_not_spoken_is_named() -> None:
    error = guarded(None, scheme="Negotiate")
    assert error.code == "proxy_auth"
    assert "'Negotiate'" in str(error)
    assert "only Basic" in str(error)


def test_another_status_is_shown_escaped() -> None:
    error = answered(b"HTTP/1.1 502 No \x1b[31m\xffway\r\nContent-Length: 3\r\n\r\nbad")
    assert error.code == "proxy_denied"
    assert r"502 No \x1b[31m\xffway" in str(error)
    assert "\x1b" not in str(error)


@pytest.mark.parametrize(
    ("says", "words"),
    [
        (b"", "without an answer"),
        (b"HTTP/1.1 20", "without an answer after b'HTTP/1.1 20'"),
        (b"SSH-2.0-x\r\n\r\n", "not HTTP/1"),
        (b"HTTP/1.1 200 OK\nA: b\n\n", "not HTTP/1"),
    ],
)
def test_what_is_no_proxy_is_refused(says: bytes, words: str) -> None:
    error = answered(says)
    assert error.code == "proxy_refused"
    assert words in str(error)


def test_a_proxy_that_is_not_there() -> None:
    error = run(refusal(proxy_at(free_port())))
    assert error.code == "proxy_refused"
    assert "Connection refused" in str(error)


def test_a_proxy_without_an_address() -> None:
    nowhere = Proxy(scheme="http", host="no-such.invalid", port=1, variable="ALL_PROXY")
    assert run(refusal(nowhere)).code == "proxy_unknown"


def test_a_proxy_with_tls_of_nobody_we_trust() -> None:
    async def scenario() -> ProxyError:
        async with corporate_proxy(tls=server_context(trustme.CA(), "127.0.0.1")) as proxy:
            return await refusal(
                proxy_at(proxy.port, scheme="https"), context=ssl.create_default_context()
            )

    error = run(scenario())
    assert error.code == "proxy_refused"
    assert "--ca" in str(error)


def test_a_proxy_that_speaks_no_tls() -> None:
    async def garbage(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async def scenario() -> ProxyError:
        async with provider(garbage) as port:
            return await refusal(
                proxy_at(port, scheme="https"), context=ssl.create_default_context()
            )

    error = run(scenario())
    assert error.code == "proxy_refused"
    assert "TLS failed" in str(error)


def test_asking_is_given_up_when_it_is_cancelled() -> None:
    async def scenario() -> None:
        left = asyncio.Event()

        async def silent(peer: Peer) -> None:
            await peer.until(b"\r\n\r\n")
            await peer.rest()
            left.set()

        async with provider(silent) as port:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await connect_through_proxy(proxy_at(port), "api.test", 443, None)
            await asyncio.wait_for(left.wait(), 5)

    run(scenario())


async def nothing(peer: Peer) -> None:
    await peer.rest()


def tcp(host: str, port: int) -> Address:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return family, socket.SOCK_STREAM, 0, (host, port)


@contextlib.contextmanager
def silent(host: str) -> Iterator[int]:
    """A port whose queue of connections is full, so that the kernel ignores further ones."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket(family))
        listener.bind((host, 0))
        listener.listen(0)
        for _ in range(8):
            filler = stack.enter_context(socket.socket(family))
            filler.settimeout(0)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def open_descriptors() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


async def reached(*addresses: Address) -> tuple[object, float]:
    """Where we got to, and after how many seconds."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    with await connect_first(addresses) as sock:
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        return sock.getpeername()[1], loop.time() - started


def test_a_name_is_resolved() -> None:
    async def scenario() -> object:
        async with provider(nothing) as port:
            with await connect("localhost", port) as sock:
                return sock.getpeername()[1] == port

    assert run(scenario())


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_silent_address_is_overtaken_after_a_quarter_of_a_second(host: str) -> None:
    async def scenario(mute: int) -> None:
        async with provider(nothing) as port:
            got, seconds = await reached(tcp(host, mute), tcp("127.0.0.1", port))
            assert got == port
            assert seconds >= 0.2

    with silent(host) as mute:
        before = open_descriptors()
        run(scenario(mute))
        assert open_descriptors() == before


def test_a_refusal_is_followed_by_the_next_address_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dial, "STAGGER_S", 60.0)  # more than the test has

    async def scenario() -> None:
        async with provider(nothing) as port:
            got, _ = await reached(tcp("::1", free_port()), tcp("127.0.0.1", port))
            assert got == port

    run(scenario())


def test_families_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dial, "STAGGER_S", 1.0)

    async def scenario(mute: int) -> None:
        async with provider(nothing) as port:
            got, seconds = await reached(
                tcp("::1", mute), tcp("::1", mute), tcp("::1", mute), tcp("127.0.0.1", port)
            )
            assert got == port
            assert seconds < 3.0  # one turn takes 1 s; without turns it would be three

    with silent("::1") as mute:
        run(scenario(mute))


def test_two_that_answer_leave_one_open() -> None:
    async def scenario() -> None:
        async with provider(nothing) as one, provider(nothing) as other:
            before = open_descriptors()
            with await connect_first([tcp("127.0.0.1", one), tcp("127.0.0.1", other)]):
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.05)
            assert open_descriptors() <= before + 1  # the provider's own end

    run(scenario())


def test_winners_of_the_same_moment_leave_one_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dial, "STAGGER_S", 0.0)

    async def scenario() -> None:
        async with provider(nothing) as one, provider(nothing) as other:
            for _ in range(20):
                with await connect_first([tcp("127.0.0.1", one), tcp("127.0.0.1", other)]):
                    pass

    before = open_descriptors()
    run(scenario())
    assert open_descriptors() == before


def test_one_reason_for_all_is_said_once() -> None:
    port = free_port()
    with pytest.raises(OSError, match=f"^{os.strerror(errno.ECONNREFUSED)}$"):
        run(connect_first([tcp("127.0.0.1", port), tcp("::1", port)]))


def test_different_reasons_are_said_with_their_addresses() -> None:
    with pytest.raises(OSError, match=r"127\.0\.0\.1: Connection refused; 255\.255\.255\.255: "):
        run(connect_first([tcp("127.0.0.1", free_port()), tcp("255.255.255.255", 9)]))


def test_no_address_at_all_is_an_error() -> None:
    with pytest.raises(OSError, match="no address"):
        run(connect_first([]))


def test_an_attempt_that_is_cancelled_closes_its_sockets() -> None:
    async def scenario(mute: int) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await connect_first([tcp("127.0.0.1", mute)])

    with silent("127.0.0.1") as mute:
        before = open_descriptors()
        run(scenario(mute))
        assert open_descriptors() == before


# Through a corporate proxy, and without TLS of ours: who said no is told with both names.


LOGIN = f"{USER}:{PASSWORD.replace(':', '%3A')}"


@asynccontextmanager
async def behind(
    authority: trustme.CA, scheme: str, proxy_scheme: str
) -> AsyncIterator[tuple[Origin, str]]:
    """An upstream called api.test that only a proxy can reach, and the proxy's authority."""
    upstream_tls = server_context(authority, "api.test") if scheme == "https" else None
    proxy_tls = server_context(authority, "127.0.0.1") if proxy_scheme == "https" else None
    async with (
        provider(hello, tls=upstream_tls) as port,
        corporate_proxy({"api.test": port}, guarded=True, tls=proxy_tls) as proxy,
    ):
        yield Origin(scheme, "api.test", 8443), f"127.0.0.1:{proxy.port}"
        assert proxy.passed == ["api.test:8443"]


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("proxy_scheme", ["http", "https"])
def test_a_proxy_with_credentials_is_passed(
    authority: trustme.CA, tmp_path: Path, scheme: str, proxy_scheme: str
) -> None:
    async def scenario() -> bytes:
        async with behind(authority, scheme, proxy_scheme) as (origin, proxy):
            variables = {f"{scheme.upper()}_PROXY": f"{proxy_scheme}://{LOGIN}@{proxy}"}
            return await get(dialler(tmp_path / "ca.pem", **variables), origin)

    assert run(scenario()) == b"hello"


def test_no_proxy_and_loopback_go_past_the_proxy() -> None:
    async def scenario() -> bytes:
        async with provider(hello) as port:
            how = dialler(HTTP_PROXY=f"http://127.0.0.1:{free_port()}")
            return await get(how, Origin("http", "localhost", port))

    assert run(scenario()) == b"hello"


def test_what_a_proxy_says_is_told_with_both_names() -> None:
    async def scenario() -> ConnectionFailedError:
        async with corporate_proxy(answer=b"HTTP/1.1 403 Not here\r\n\r\n") as proxy:
            how = dialler(https_proxy=f"http://{LOGIN}@127.0.0.1:{proxy.port}")
            return await failure(how, Origin("https", "api.test", 443))

    error = run(scenario())
    assert error.code == "proxy_denied"
    assert "https://api.test: the proxy http://127.0.0.1:" in str(error)
    assert "(https_proxy)" in str(error)
    assert "'HTTP/1.1 403 Not here'" in str(error)
    assert USER not in str(error)


def test_wrong_credentials_for_the_proxy() -> None:
    async def scenario() -> ConnectionFailedError:
        async with corporate_proxy(guarded=True) as proxy:
            how = dialler(HTTPS_PROXY=f"http://ann:wrong@127.0.0.1:{proxy.port}")
            return await failure(how, Origin("https", "api.test", 443))

    error = run(scenario())
    assert error.code == "proxy_auth"
    assert "wrong" not in str(error)


def test_an_upstream_behind_a_proxy_that_is_not_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialling, "TLS_TIMEOUT_S", 0.3)

    async def scenario(script: Script) -> ConnectionFailedError:
        async with (
            provider(script) as port,
            corporate_proxy({"api.test": port}) as proxy,
        ):
            how = dialler(HTTPS_PROXY=f"http://127.0.0.1:{proxy.port}")
            return await failure(how, Origin("https", "api.test", 443))

    for script in (speak_http, hang_up, say_nothing):
        error = run(scenario(script))
        assert error.code == "upstream_tls", script
        assert str(error).startswith("https://api.test: TLS failed: "), script


def test_a_proxy_that_sends_before_tls_is_refused() -> None:
    async def scenario() -> ConnectionFailedError:
        answer = b"HTTP/1.1 200 OK\r\n\r\n220 hello\r\n"
        async with corporate_proxy(answer=answer) as proxy:
            how = dialler(HTTPS_PROXY=f"http://127.0.0.1:{proxy.port}")
            return await failure(how, Origin("https", "api.test", 443))

    error = run(scenario())
    assert error.code == "upstream_tls"
    assert "220 hello" in str(error)


def test_a_proxy_that_never_answers_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialling, "CONNECT_TIMEOUT_S", 0.2)

    async def scenario() -> ConnectionFailedError:
        async with provider(say_nothing) as port:
            how = dialler(HTTPS_PROXY=f"http://127.0.0.1:{port}")
            return await failure(how, Origin("https", "api.test", 443))

    error = run(scenario())
    assert error.code == "upstream_timeout"
    assert "through the proxy http://127.0.0.1:" in str(error)


# Without TLS of ours.


class Collected(asyncio.Protocol):
    """Keeps what comes."""

    def __init__(self) -> None:
        self.got = b""
        self.ended = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.got += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set_result(exc)


async def greet(peer: Peer) -> None:
    await peer.send(b"220 hello\r\n")
    peer.close()


def test_a_bare_connection_is_had_directly_and_through_a_proxy() -> None:
    async def scenario() -> None:
        async with provider(greet) as port, corporate_proxy({"api.test": port}) as proxy:
            through = dialler(HTTPS_PROXY=f"http://127.0.0.1:{proxy.port}")
            for how, host in ((dialler(), "127.0.0.1"), (through, "api.test")):
                protocol = Collected()
                await how.tcp(host, port, protocol)
                await asyncio.wait_for(protocol.ended, 5)
                assert protocol.got == b"220 hello\r\n"
            assert proxy.passed == [f"api.test:{port}"]

    run(scenario())


def test_a_bare_connection_takes_what_came_behind_the_proxy_s_answer() -> None:
    async def scenario() -> bytes:
        answer = b"HTTP/1.1 200 OK\r\n\r\n220 hello\r\n"
        async with corporate_proxy(answer=answer) as proxy:
            protocol = Collected()
            how = dialler(HTTPS_PROXY=f"http://127.0.0.1:{proxy.port}")
            await how.tcp("api.test", 25, protocol)
            await asyncio.wait_for(protocol.ended, 5)
            return protocol.got

    assert run(scenario()) == b"220 hello\r\n"


def test_a_bare_connection_that_fails_names_its_target() -> None:
    async def scenario() -> ConnectionFailedError:
        port = free_port()
        with pytest.raises(ConnectionFailedError) as caught:
            await dialler().tcp("::1", port, Collected())
        assert f"[::1]:{port}: no connection" in str(caught.value)
        return caught.value

    assert run(scenario()).code == "upstream_refused"
