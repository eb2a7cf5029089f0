"""CONNECT to a real proxy: what it lets pass, what it refuses, and what is said of it."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trustme

from deltatape.gateway.outbound import Proxy
from deltatape.gateway.via_proxy import ProxyError, pass_through
from helpers.corporate import PASSWORD, USER, corporate_proxy, server_context
from helpers.upstream import Peer, free_port, provider, run

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
        await pass_through(proxy, host, 443, context)
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
            passage = await pass_through(
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
            passage = await pass_through(proxy_at(port), "api.test", 443, None)
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
                    await pass_through(proxy_at(port), "api.test", 443, None)
            await asyncio.wait_for(left.wait(), 5)

    run(scenario())
