"""Each failure of a connection has a name, and the upstream is named with it."""

import asyncio
import ssl

import pytest
import trustme

from deltatape.clock import SystemClock
from deltatape.gateway import dial as dialling
from deltatape.gateway.dial import DialError, Dialled, dial
from deltatape.gateway.routes import Origin
from helpers.upstream import Peer, free_port, provider, run


async def nothing(peer: Peer) -> None:
    await peer.rest()


def server_context(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


async def try_dial(origin: Origin, context: ssl.SSLContext) -> Dialled | DialError:
    try:
        dialled = await dial(origin, context, SystemClock())
    except DialError as error:
        return error
    dialled.connection.abort()
    return dialled


def outcome(origin: Origin) -> Dialled | DialError:
    return run(try_dial(origin, ssl.create_default_context()))


def test_a_refused_connection() -> None:
    port = free_port()
    error = outcome(Origin("http", "127.0.0.1", port))
    assert isinstance(error, DialError)
    assert error.code == "upstream_refused"
    assert f"http://127.0.0.1:{port}: no connection" in str(error)


def test_an_unknown_name() -> None:
    error = outcome(Origin("http", "no-such-host.invalid", 80))
    assert isinstance(error, DialError)
    assert error.code == "upstream_unknown"
    assert "no-such-host.invalid" in str(error)


def test_a_certificate_of_nobody_we_trust() -> None:
    async def scenario() -> Dialled | DialError:
        context = server_context(trustme.CA(), "127.0.0.1")
        async with provider(nothing, tls=context) as port:
            origin = Origin("https", "127.0.0.1", port)
            return await try_dial(origin, ssl.create_default_context())

    error = run(scenario())
    assert isinstance(error, DialError)
    assert error.code == "upstream_tls"
    assert "SSL_CERT_FILE" in str(error)


def test_an_upstream_that_does_not_speak_tls() -> None:
    async def garbage(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async def scenario() -> Dialled | DialError:
        async with provider(garbage) as port:
            origin = Origin("https", "127.0.0.1", port)
            return await try_dial(origin, ssl.create_default_context())

    error = run(scenario())
    assert isinstance(error, DialError)
    assert error.code == "upstream_tls"


def test_a_trusted_connection_has_both_times() -> None:
    async def scenario() -> Dialled | DialError:
        authority = trustme.CA()
        trust = ssl.create_default_context()
        authority.configure_trust(trust)
        async with provider(nothing, tls=server_context(authority, "127.0.0.1")) as port:
            return await try_dial(Origin("https", "127.0.0.1", port), trust)

    dialled = run(scenario())
    assert isinstance(dialled, Dialled)
    assert dialled.connect_ns > 0
    assert dialled.tls_ns > 0


def test_a_connection_that_nobody_accepts_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialling, "CONNECT_TIMEOUT_S", 0.2)

    async def scenario() -> Dialled | DialError:
        hang = asyncio.Event()

        async def silent(_: Peer) -> None:
            await hang.wait()

        async with provider(silent) as port:  # accepts, but never answers the TLS hello
            return await try_dial(Origin("https", "127.0.0.1", port), ssl.create_default_context())

    error = run(scenario())
    assert isinstance(error, DialError)
    assert error.code == "upstream_timeout"
