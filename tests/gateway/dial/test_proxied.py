"""Through a corporate proxy, and without TLS of ours: who said no is told with both names."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme

from deltatape.gateway import dial as dialling
from deltatape.gateway.dial import ConnectionFailedError
from deltatape.gateway.routes import Origin
from helpers.corporate import PASSWORD, USER, corporate_proxy, server_context
from helpers.dialling import dialler, failure, get, hang_up, hello, say_nothing, speak_http
from helpers.upstream import Peer, Script, free_port, provider, run

LOGIN = f"{USER}:{PASSWORD.replace(':', '%3A')}"


@pytest.fixture
def authority(tmp_path: Path) -> trustme.CA:
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return made


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
