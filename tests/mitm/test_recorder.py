"""A proxy that apps are told of: LLM hosts are decrypted and taped, all else passes untouched."""

import asyncio
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from deltatape.diagnose.rebuild import rebuild
from deltatape.mitm.environment import ca_bundle, proxy_variables
from deltatape.model.exchange import EndReason, Exchange
from deltatape.store.reader import Tape
from helpers.mitm import (
    VENVS,
    Authority,
    Running,
    authority,
    call_events,
    installed,
    mitmproxy,
    own_mitmproxy,
    ran,
)
from helpers.mitm import variables as venv_variables
from helpers.program import environment
from helpers.upstream import SSE_HEAD, Peer, chunk, connect, provider, run

LIMIT_S = 90
EVENTS = call_events()


BODY = '{"model":"m","stream":true}'


async def stream(peer: Peer) -> None:
    while True:
        await peer.request()
        await peer.send(SSE_HEAD + b"".join(map(chunk, EVENTS)) + b"0\r\n\r\n")


def led(folder: Path, running: Running, upstream: Authority) -> dict[str, str]:
    """An environment whose programs come through mitmproxy, and trust the upstream itself."""
    env = {**environment(folder), "SSL_CERT_FILE": str(upstream.path)}
    bundle = ca_bundle(running.started.ca, folder / "state", env)
    return {**env, **proxy_variables(running.started.url, bundle, env)}


async def issuer(proxy: int, host: str, port: int, trusted: Path) -> str:
    """Who issued the certificate that a client meets at a host behind the proxy."""
    peer = await connect(proxy)
    await peer.send(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    await peer.until(b"\r\n\r\n")
    await peer.writer.start_tls(ssl.create_default_context(cafile=trusted), server_hostname=host)
    certificate = peer.writer.get_extra_info("peercert")
    names: dict[str, str] = {key: value for part in certificate["issuer"] for key, value in part}
    return names["organizationName"]


@dataclass(frozen=True)
class Led:
    """What a mitmproxy did that apps were led to."""

    running: Running
    port: int
    """Of the provider, which is listed as `localhost` only."""
    printed: dict[str, tuple[int, str]]
    """How each request by curl ended, and what it printed."""
    issuers: dict[str, str]
    """Who issued the certificate that a client met at a host."""
    exchanges: list[Exchange]


LLM = "bedrock-runtime.nowhere-1.amazonaws.com"


@pytest.fixture(scope="module", params=VENVS)
def taped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Led:
    folder = tmp_path_factory.mktemp("led")
    upstream = authority(folder)

    async def scenario() -> Led:
        more = upstream.trusted
        async with (
            provider(stream, tls=upstream.context) as port,
            provider(early) as plain,
            mitmproxy(
                folder, request.param, hosts=("local*",), more=more, measured=True
            ) as running,
        ):
            env, url = led(folder, running, upstream), f"https://localhost:{port}"
            proxied = ("--proxy", running.started.url)
            trusting = (*proxied, "--cacert", running.started.ca, "--max-time", "20")
            asking = ("-N", "-H", "Authorization: Bearer sk-fake-000000", "-d", BODY)
            printed = {}
            for name, arguments, variables in (
                ("listed", (*asking, f"{url}/v1/chat/completions"), env),
                ("passed", (f"https://127.0.0.1:{port}/",), env),
                ("default", (*trusting, f"https://{LLM}/model"), environment(folder)),
                ("distrusting", (*proxied, "https://localhost:9/"), environment(folder)),
            ):
                code, out, _ = await ran("curl", "-sS", *arguments, env=variables)
                printed[name] = code, out
            issuers = {
                "127.0.0.1": await issuer(running.port, "127.0.0.1", port, upstream.path),
                "localhost": await issuer(running.port, "localhost", port, running.started.ca),
            }
            peer = await connect(running.port)
            head = f"POST http://127.0.0.1:{plain}/x HTTP/1.1\r\nHost: 127.0.0.1:{plain}\r\n"
            await peer.send(head.encode() + b"Content-Length: 100\r\n\r\nfirst")
            await peer.until(b"early")  # while the rest of the request is to come
            peer.close()
            await running.until(lambda observed: any("trust" in line for line in observed.lines))
            exchanges = await running.ended(2)
            await running.stop()
            assert len(list(running.tape())) == len(exchanges)
        return Led(running, port, printed, issuers, exchanges)

    return run(scenario(), limit_s=LIMIT_S)


async def early(peer: Peer) -> None:
    """Answers when it has got the beginning of a request."""
    await peer.until(b"\r\n\r\n")
    await peer.until(b"first")
    await peer.send(SSE_HEAD + chunk(b"early"))
    await peer.rest()


def test_a_listed_host_is_decrypted_and_taped(taped: Led) -> None:
    assert taped.printed["listed"] == (0, b"".join(EVENTS).decode())
    assert taped.issuers["localhost"] == "mitmproxy"
    exchange = taped.exchanges[0]
    assert exchange.body == b"".join(EVENTS)
    assert exchange.request.upstream == f"https://localhost:{taped.port}"
    assert exchange.sent is not None
    assert exchange.sent.tls_ns > 0
    assert [call.arguments for call in rebuild(exchange).tool_calls] == ['{"a": 1}']
    assert taped.running.observed.connected


def test_a_host_that_is_not_listed_passes_with_its_own_certificate(taped: Led) -> None:
    assert taped.printed["passed"] == (0, b"".join(EVENTS).decode())
    assert taped.issuers["127.0.0.1"] == "deltatape tests"
    assert taped.running.observed.hosts == ["127.0.0.1"]
    assert not any("127.0.0.1" in each.request.upstream for each in taped.exchanges)


def test_hosts_of_llm_providers_are_taped_by_default(taped: Led) -> None:
    code, out = taped.printed["default"]
    assert code == 0
    assert "502" in out
    exchange = taped.exchanges[1]
    assert exchange.request.upstream == f"https://{LLM}"
    assert exchange.end is not None
    assert exchange.end.reason is EndReason.REFUSED


def test_plain_http_to_other_hosts_passes_as_it_comes_and_is_not_taped(taped: Led) -> None:
    # That it came at all, `taped` has waited for.
    assert [urlsplit(each.request.upstream).scheme for each in taped.exchanges] == ["https"] * 2


def test_an_app_that_does_not_trust_the_ca_is_reported(taped: Led) -> None:
    assert taped.printed["distrusting"][0] == 60
    (line,) = (line for line in taped.running.observed.lines if "trust" in line)
    assert line.startswith("localhost: the app broke off the TLS handshake")
    assert str(taped.running.started.ca.parent) in line


@dataclass(frozen=True)
class UsersOwn:
    """What a user's own mitmproxy did."""

    printed: str
    tape: Tape
    issuer: str
    """Of the certificate that a client met at a host that is not taped."""


@pytest.fixture(scope="module", params=VENVS)
def own(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> UsersOwn:
    folder, venv = tmp_path_factory.mktemp("own"), installed(request.param)
    upstream = authority(folder)
    ca = folder / "conf" / "mitmproxy-ca-cert.pem"
    answers = iter((EVENTS, EVENTS[:3]))

    async def answering(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + b"".join(map(chunk, next(answers))) + b"0\r\n\r\n")

    async def scenario() -> UsersOwn:
        env = venv_variables(folder, venv, measured=True)
        options = ("deltatape_keep=5GB", "deltatape_decrypt_others=true")
        async with (
            provider(answering, tls=upstream.context) as port,
            own_mitmproxy(
                *(folder, (str(venv / "bin" / "mitmdump"),)),
                {**env, "DELTATAPE_MITM_HOSTS": "localhost"},
                *(part for option in options for part in ("--set", option)),
                *upstream.trusted,
            ) as running,
        ):
            met = await issuer(running.port, "127.0.0.1", port, ca)
            for events in (EVENTS, EVENTS[:3]):
                code, out, _ = await ran(
                    *("curl", "-sSN", "--proxy", f"http://127.0.0.1:{running.port}", "-d", "{}"),
                    *("--cacert", ca, f"https://localhost:{port}/v1/chat/completions"),
                    env=environment(folder),
                )
                assert (code, out.encode()) == (0, b"".join(events))
            return UsersOwn(await running.stop(), running.tape(), met)

    return run(scenario(), limit_s=LIMIT_S)


def test_a_user_s_own_mitmproxy_tapes_by_options_and_variables(own: UsersOwn) -> None:
    assert [exchange.body for exchange in own.tape] == [b"".join(EVENTS), b"".join(EVENTS[:3])]
    assert "deltatape is taping: " in own.printed
    assert "#1 POST /v1/chat/completions 200" in own.printed
    assert "deltatape taped 2 exchanges" in own.printed


def test_what_is_not_taped_can_be_left_to_the_user_s_own_mitmproxy(own: UsersOwn) -> None:
    assert own.issuer == "mitmproxy"
    assert not any("127.0.0.1" in exchange.request.upstream for exchange in own.tape)


def test_the_user_s_own_mitmproxy_keeps_what_has_findings(own: UsersOwn) -> None:
    assert "error T003" in own.printed
    assert ".ring" not in Path(own.tape.path).name


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("deltatape_hosts=https://x/", "invalid host pattern"),
        ("deltatape_keep=soon", "'soon': invalid limit"),
    ],
)
def test_a_wrong_option_is_refused_when_mitmproxy_starts(
    tmp_path: Path, option: str, problem: str
) -> None:
    venv = installed("11")

    async def scenario() -> str:
        env = venv_variables(tmp_path, venv)
        more = ("--set", option)
        async with own_mitmproxy(tmp_path, (str(venv / "bin" / "mitmdump"),), env, *more) as own:
            out, _ = await asyncio.wait_for(own.process.communicate(), 20)
            return out.decode()

    assert problem in run(scenario(), limit_s=LIMIT_S)
