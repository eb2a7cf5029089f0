"""A proxy that apps are told of: LLM hosts are decrypted and taped, all else passes untouched."""

import asyncio
import ssl
from pathlib import Path

import pytest

from deltatape.diagnose.rebuild import rebuild
from deltatape.mitm.environment import ca_bundle, proxy_variables
from deltatape.model.exchange import EndReason
from helpers.clients import PYTHON
from helpers.mitm import (
    NEWEST,
    OPENAI_APP,
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


@pytest.mark.parametrize("version", VENVS)
def test_a_listed_host_is_decrypted_and_taped_for_curl_and_the_python_sdk(
    tmp_path: Path, version: str
) -> None:
    upstream = authority(tmp_path)

    async def scenario() -> None:
        async with (
            provider(stream, tls=upstream.context) as port,
            mitmproxy(tmp_path, version, hosts=("local*",), more=upstream.trusted) as running,
        ):
            env = led(tmp_path, running, upstream)
            base = f"https://localhost:{port}/v1"
            body = '{"model":"m","stream":true}'
            code, out, err = await ran(
                *("curl", "-sSN", "-H", "Authorization: Bearer sk-fake-000000", "-d", body),
                f"{base}/chat/completions",
                env=env,
            )
            assert (code, err) == (0, "")
            assert out.encode() == b"".join(EVENTS)
            if PYTHON.exists():
                code, out, err = await ran(PYTHON, "-c", OPENAI_APP, base, env=env)
                assert (code, err) == (0, "")
                assert out == '{"a": 1}'
                await running.ended(2)
            first, *_ = await running.ended()
            assert first.body == b"".join(EVENTS)
            assert first.request.upstream == f"https://localhost:{port}"
            assert first.sent is not None
            assert first.sent.tls_ns > 0
            assert [call.arguments for call in rebuild(first).tool_calls] == ['{"a": 1}']
            assert running.observed.connected

    run(scenario(), limit_s=LIMIT_S)


@pytest.mark.parametrize("version", VENVS)
def test_a_host_that_is_not_listed_passes_with_its_own_certificate(
    tmp_path: Path, version: str
) -> None:
    upstream = authority(tmp_path)

    async def scenario() -> None:
        async with (
            provider(stream, tls=upstream.context) as port,
            mitmproxy(tmp_path, version, hosts=("localhost",), more=upstream.trusted) as running,
        ):
            found = await issuer(running.port, "127.0.0.1", port, upstream.path)
            assert found == upstream.issuer
            mitm = await issuer(running.port, "localhost", port, running.started.ca)
            assert mitm == "mitmproxy"
            code, out, _ = await ran(
                *("curl", "-sS", f"https://127.0.0.1:{port}/"), env=led(tmp_path, running, upstream)
            )
            assert (code, out.encode()) == (0, b"".join(EVENTS))
            await running.until(lambda observed: observed.hosts == ["127.0.0.1"])
            assert list(running.tape()) == []

    run(scenario(), limit_s=LIMIT_S)


@pytest.mark.parametrize("version", NEWEST)
def test_hosts_of_llm_providers_are_taped_by_default(tmp_path: Path, version: str) -> None:
    async def scenario() -> None:
        async with mitmproxy(tmp_path, version) as running:
            code, out, _ = await ran(
                *("curl", "-sS", "--proxy", running.started.url, "--cacert", running.started.ca),
                *("--max-time", "20", "https://bedrock-runtime.nowhere-1.amazonaws.com/model"),
                env=environment(tmp_path),
            )
            assert code == 0
            assert "502" in out
            (exchange,) = await running.ended()
            assert exchange.request.upstream == "https://bedrock-runtime.nowhere-1.amazonaws.com"
            assert exchange.end is not None
            assert exchange.end.reason is EndReason.REFUSED

    run(scenario(), limit_s=LIMIT_S)


def test_plain_http_to_other_hosts_passes_as_it_comes_and_is_not_taped(tmp_path: Path) -> None:
    held = asyncio.Event()

    async def slow(peer: Peer) -> None:
        await peer.until(b"\r\n\r\n")
        await peer.until(b"first")
        await peer.send(SSE_HEAD + chunk(b"early"))
        await held.wait()
        await peer.send(b"0\r\n\r\n")

    async def scenario() -> None:
        async with provider(slow) as port, mitmproxy(tmp_path, "11") as running:
            peer = await connect(running.port)
            head = f"POST http://127.0.0.1:{port}/x HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            await peer.send(head.encode() + b"Content-Length: 100\r\n\r\nfirst")
            await peer.until(b"early")
            held.set()
            peer.close()
            assert list(running.tape()) == []

    run(scenario(), limit_s=LIMIT_S)


def test_an_app_that_does_not_trust_the_ca_is_reported(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with mitmproxy(tmp_path, "11", hosts=("localhost",)) as running:
            code, _, _ = await ran(
                *("curl", "-s", "--proxy", running.started.url, "https://localhost:9/"),
                env=environment(tmp_path),
            )
            assert code == 60
            await running.until(lambda observed: any("trust" in line for line in observed.lines))
            (line,) = (line for line in running.observed.lines if "trust" in line)
            assert line.startswith("localhost: the app broke off the TLS handshake")
            assert str(tmp_path / "conf") in line

    run(scenario(), limit_s=LIMIT_S)


@pytest.mark.parametrize("version", VENVS)
def test_a_user_s_own_mitmproxy_tapes_by_options_and_variables(
    tmp_path: Path, version: str
) -> None:
    upstream = authority(tmp_path)
    venv = installed(version)

    async def scenario() -> None:
        env = {**venv_variables(tmp_path, venv), "DELTATAPE_MITM_HOSTS": "localhost"}
        async with (
            provider(stream, tls=upstream.context) as port,
            own_mitmproxy(
                tmp_path, (str(venv / "bin" / "mitmdump"),), env, *upstream.trusted
            ) as own,
        ):
            code, out, _ = await ran(
                *("curl", "-sSN", "--proxy", f"http://127.0.0.1:{own.port}", "-d", "{}"),
                *("--cacert", tmp_path / "conf" / "mitmproxy-ca-cert.pem"),
                f"https://localhost:{port}/v1/chat/completions",
                env=environment(tmp_path),
            )
            assert (code, out.encode()) == (0, b"".join(EVENTS))
            printed = await own.stop()
        (exchange,) = own.tape()
        assert exchange.body == b"".join(EVENTS)
        assert "deltatape is taping: " in printed
        assert "#1 POST /v1/chat/completions 200" in printed
        assert "deltatape taped 1 exchange" in printed

    run(scenario(), limit_s=LIMIT_S)


def test_what_is_not_taped_can_be_left_to_the_user_s_own_mitmproxy(tmp_path: Path) -> None:
    upstream = authority(tmp_path)
    venv = installed("11")

    async def scenario() -> None:
        async with (
            provider(stream, tls=upstream.context) as port,
            own_mitmproxy(
                *(tmp_path, (str(venv / "bin" / "mitmdump"),), venv_variables(tmp_path, venv)),
                *("--set", "deltatape_decrypt_others=true", *upstream.trusted),
            ) as own,
        ):
            ca = tmp_path / "conf" / "mitmproxy-ca-cert.pem"
            assert await issuer(own.port, "localhost", port, ca) == "mitmproxy"
            await own.stop()
        assert list(own.tape()) == []

    run(scenario(), limit_s=LIMIT_S)


def test_the_user_s_own_mitmproxy_keeps_what_has_findings(tmp_path: Path) -> None:
    upstream = authority(tmp_path)
    venv = installed("11")

    async def cut(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + b"".join(map(chunk, EVENTS[:3])) + b"0\r\n\r\n")

    async def scenario() -> str:
        async with (
            provider(cut, tls=upstream.context) as port,
            own_mitmproxy(
                *(tmp_path, (str(venv / "bin" / "mitmdump"),), venv_variables(tmp_path, venv)),
                *("--set", "deltatape_hosts=localhost", "--set", "deltatape_keep=5GB"),
                *upstream.trusted,
            ) as own,
        ):
            await ran(
                *("curl", "-sSN", "--proxy", f"http://127.0.0.1:{own.port}", "-d", "{}"),
                *("--cacert", tmp_path / "conf" / "mitmproxy-ca-cert.pem"),
                f"https://localhost:{port}/v1/chat/completions",
                env=environment(tmp_path),
            )
            printed = await own.stop()
        assert ".ring" not in Path(own.tape().path).name
        return printed

    assert "error T003" in run(scenario(), limit_s=LIMIT_S)


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
