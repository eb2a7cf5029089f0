"""Each failure of a connection has a name, and the upstream is named with it."""

import asyncio
import ssl
from asyncio import sslproto
from pathlib import Path

import pytest
import trustme

from deltatape.clock import SystemClock
from deltatape.gateway import dial as dialling
from deltatape.gateway.dial import TLS_BUFFER_BYTES, DialError, Dialler
from deltatape.gateway.outbound import Outbound, outbound_from
from deltatape.gateway.routes import Origin
from helpers.corporate import server_context
from helpers.dialling import dialler, failure, get, hang_up, hello, say_nothing, speak_http
from helpers.upstream import Script, free_port, provider, run


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
    async def scenario() -> DialError:
        async with provider(say_nothing, tls=server_context(trustme.CA(), "127.0.0.1")) as port:
            return await failure(dialler(), Origin("https", "127.0.0.1", port))

    error = run(scenario())
    assert error.code == "upstream_tls"
    assert "--ca FILE or SSL_CERT_FILE" in str(error)


def test_a_certificate_for_another_name(authority: trustme.CA, tmp_path: Path) -> None:
    async def scenario() -> DialError:
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
            return await get(Dialler(outbound, SystemClock()), Origin("https", "127.0.0.1", port))

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

    async def scenario() -> DialError:
        async with provider(script) as port:
            return await failure(dialler(), Origin("https", "127.0.0.1", port))

    error = run(scenario(), limit_s=5)
    assert error.code == "upstream_tls"
    assert words in str(error)


def test_a_connection_that_nobody_accepts_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialling, "CONNECT_TIMEOUT_S", 0.2)

    async def scenario() -> DialError:
        async with provider(say_nothing) as port:
            return await failure(dialler(), Origin("https", "127.0.0.1", port))

    assert run(scenario()).code == "upstream_timeout"


def test_a_file_that_has_gone_bad_since_the_start_is_told(
    authority: trustme.CA, tmp_path: Path
) -> None:
    assert authority.cert_pem
    ca = tmp_path / "ca.pem"

    async def scenario() -> tuple[DialError, DialError]:
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
        assert Dialler(Outbound(), SystemClock())
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
