"""What leads applications through mitmproxy: variables, the CA bundle, and a module for Node.js."""

import asyncio
import contextlib
import json
import shutil
import ssl
import stat
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from deltatape.errors import UsageError
from deltatape.mitm.environment import (
    CA_VARIABLES,
    NODE_PROXY,
    ca_bundle,
    no_proxy,
    proxy_variables,
)
from deltatape.model.exchange import EndReason
from helpers.clients import CLIENTS
from helpers.mitm import NEWEST, Authority, authority, call_events, mitmproxy, ran
from helpers.needed import skip_unless
from helpers.program import environment
from helpers.upstream import SSE_HEAD, Peer, chunk, free_port, provider, run

LIMIT_S = 90
EVENTS = call_events()
MODULE = ("--input-type=module",)
FETCH = """
const response = await fetch(process.argv[1], {method: "POST", body: "{}"});
process.stdout.write(await response.text());
"""
HTTPS = """
const https = require("node:https");
https.get(process.argv[1], (response) => response.pipe(process.stdout))
  .on("error", (error) => { console.error(error.message); process.exit(7); });
"""
HTTP2 = """
import { connect } from "node:http2";
const session = connect(process.argv[1]);
const failed = (error) => { console.error(error.message); process.exit(7); };
session.on("error", failed);
const asked = session.request({ ":method": "POST", ":path": "/v1/chat/completions" });
asked.on("error", failed).pipe(process.stdout);
asked.end("{}");
if (false) asked.on("response", () => session.close());
else asked.on("end", () => session.unref());
"""
HTTP2_PROVIDER = """
const { readFileSync } = require("node:fs");
const [, pem, ...events] = process.argv;
const [key, cert] = [readFileSync(pem), readFileSync(pem)];
const server = require("node:http2").createSecureServer({ key, cert }, (request, response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const next = (left) => {
    if (left.length === 0) return response.end();
    response.write(left[0]);
    setTimeout(next, 2, left.slice(1));
  };
  request.resume().on("end", () => next(events));
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
"""
"""Streams its arguments to everybody; an idle connection stays open."""
HTTP2_CLOSING = HTTP2.replace("false", "true")
"""As AWS's SDK has it: once the answer begins, the connection is for nothing else."""


async def stream(peer: Peer) -> None:
    while True:
        head = await peer.until(b"\r\n\r\n")
        length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-len")]
        await peer.reader.readexactly(int(length[0].split(b":")[1]) if length else 0)
        await peer.send(SSE_HEAD + b"".join(map(chunk, EVENTS)) + b"0\r\n\r\n")


def test_every_client_s_variables_are_set_and_no_proxy_is_left_alone(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.pem"
    found = proxy_variables(
        "http://127.0.0.1:1", bundle, {"NO_PROXY": "x", "NODE_OPTIONS": "--no-warnings"}
    )
    assert {found[name] for name in CA_VARIABLES} == {str(bundle)}
    for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"):
        assert found[name] == "http://127.0.0.1:1"
    assert found["NODE_USE_ENV_PROXY"] == "1"
    assert found["NODE_OPTIONS"] == f'--no-warnings --require "{NODE_PROXY}"'
    assert "NO_PROXY" not in found


def test_loopback_is_added_to_what_is_reached_past_mitmproxy() -> None:
    loopback = "localhost,127.0.0.1,::1"
    assert no_proxy({}) == {"NO_PROXY": loopback, "no_proxy": loopback}
    assert no_proxy({"NO_PROXY": "a"})["no_proxy"] == f"a,{loopback}"
    assert no_proxy({"NO_PROXY": "a", "no_proxy": "b"})["NO_PROXY"] == f"b,{loopback}"


def test_the_bundle_holds_the_system_s_roots_and_the_ca_for_the_owner_only(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_text("OURS\n")
    bundle = ca_bundle(ca, tmp_path / "state", {})
    text = bundle.read_text()
    assert text.count("BEGIN CERTIFICATE") > 50
    assert text.endswith("\nOURS\n")
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600
    assert stat.S_IMODE(bundle.parent.stat().st_mode) == 0o700
    assert list(bundle.parent.iterdir()) == [bundle]


def test_the_bundle_keeps_what_the_user_trusts(tmp_path: Path) -> None:
    for name in ("ca", "own", "node"):
        (tmp_path / name).write_text(name.upper())
    env = {
        "SSL_CERT_FILE": str(tmp_path / "own"),
        "REQUESTS_CA_BUNDLE": str(tmp_path / "own"),
        "NODE_EXTRA_CA_CERTS": str(tmp_path / "node"),
    }
    bundle = ca_bundle(tmp_path / "ca", tmp_path, env)
    assert bundle.read_text() == "OWN\nNODE\nCA\n"
    again = ca_bundle(tmp_path / "ca", tmp_path, {**env, "SSL_CERT_FILE": str(bundle)})
    assert again.read_text() == "OWN\nNODE\nCA\n"


def test_a_bundle_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.pem: No such file or directory"):
        ca_bundle(tmp_path / "nowhere.pem", tmp_path, {})


async def node(program: str, url: str, env: dict[str, str], *kind: str) -> tuple[int, str, str]:
    skip_unless(shutil.which("node"), "no Node.js")
    return await ran("node", *kind, "-e", program, url, env=env)


def trusting(folder: Path, upstream: Authority) -> dict[str, str]:
    return {**environment(folder), "SSL_CERT_FILE": str(upstream.path)}


@contextlib.asynccontextmanager
async def http2_provider(folder: Path) -> AsyncIterator[tuple[int, Authority]]:
    """A provider that speaks HTTP/2; its port, and who vouches for it."""
    skip_unless(shutil.which("node"), "no Node.js")
    ca = trustme.CA()
    pem, path = folder / "http2.pem", folder / "http2-ca.pem"
    ca.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(pem))
    ca.cert_pem.write_to_path(str(path))
    process = await asyncio.create_subprocess_exec(
        *("node", "-e", HTTP2_PROVIDER, str(pem), *(event.decode() for event in EVENTS)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        port = int(await process.stdout.readline())
        yield port, Authority(ssl.create_default_context(), path, "")
    finally:
        process.kill()
        await process.communicate()


@pytest.mark.parametrize("version", NEWEST)
def test_fetch_https_and_http2_of_node_are_led_through_mitmproxy_and_let_the_process_end(
    tmp_path: Path, version: str
) -> None:
    upstream, both = authority(tmp_path), tmp_path / "both.pem"

    async def scenario() -> None:
        async with (
            provider(stream, tls=upstream.context) as port,
            http2_provider(tmp_path) as (http2_port, http2),
        ):
            both.write_bytes(upstream.path.read_bytes() + http2.path.read_bytes())
            trusted = replace(upstream, path=both)
            async with mitmproxy(
                tmp_path, version, hosts=("localhost",), more=trusted.trusted
            ) as running:
                own = trusting(tmp_path, trusted)
                bundle = ca_bundle(running.started.ca, tmp_path / "state", own)
                env = {**own, **proxy_variables(running.started.url, bundle, own)}
                base, http2_url = f"https://localhost:{port}/v1", f"https://localhost:{http2_port}"
                for program, url, kind in (
                    (HTTP2, http2_url, MODULE),
                    (HTTP2_CLOSING, http2_url, MODULE),
                    (FETCH, f"{base}/chat/completions", MODULE),
                    (HTTPS, f"{base}/chat/completions", ()),
                ):
                    code, out, err = await node(program, url, env, *kind)
                    assert (code, err) == (0, "")
                    assert out.encode() == b"".join(EVENTS)
                asked = 4
                if (CLIENTS / "node_modules" / "openai").is_dir():
                    request = json.dumps({"model": "m", "stream": True, "messages": []})
                    script = CLIENTS / "stream.mjs"
                    code, _, err = await ran("node", script, base, request, env=env)
                    assert (code, err) == (0, "")
                    asked = 6
                exchanges = await running.ended(asked)
                for exchange in exchanges[:2]:
                    assert exchange.body == b"".join(EVENTS)
                    assert exchange.end is not None
                    assert exchange.end.reason is EndReason.COMPLETE
                    assert exchange.response is not None
                    assert (exchange.request.http, exchange.response.http) == ("2.0", "2.0")

    run(scenario(), limit_s=LIMIT_S)


def test_http2_of_node_goes_past_mitmproxy_for_hosts_of_no_proxy_and_fails_with_its_tunnel(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with http2_provider(tmp_path) as (port, upstream):
            own = trusting(tmp_path, upstream)
            nobody = proxy_variables(f"http://127.0.0.1:{free_port()}", upstream.path, own)
            url = f"https://localhost:{port}"
            code, _, err = await node(HTTP2, url, {**own, **nobody}, *MODULE)
            assert code == 7
            assert "ECONNREFUSED" in err
            past_it = {**own, **nobody, "NO_PROXY": "localhost"}
            code, out, err = await node(HTTP2, url, past_it, *MODULE)
            assert (code, err) == (0, "")
            assert out.encode() == b"".join(EVENTS)

    run(scenario(), limit_s=LIMIT_S)


def test_hosts_of_no_proxy_are_reached_by_node_without_mitmproxy(tmp_path: Path) -> None:
    upstream = authority(tmp_path)

    async def scenario() -> None:
        async with provider(stream, tls=upstream.context) as port, provider(stream) as plain:
            own = trusting(tmp_path, upstream)
            nobody = proxy_variables(f"http://127.0.0.1:{free_port()}", upstream.path, own)
            env = {**own, **nobody, "NO_PROXY": "example.com, .localhost"}
            url = f"https://localhost:{port}/"
            for program, kind in ((FETCH, MODULE), (HTTPS, ())):
                code, out, err = await node(program, url, env, *kind)
                assert (code, err) == (0, "")
                assert out.encode() == b"".join(EVENTS)
            http = f"http://127.0.0.1:{plain}/"
            code, out, err = await node(FETCH, http, env, *MODULE)
            assert (code, out.encode()) == (0, b"".join(EVENTS))

    run(scenario(), limit_s=LIMIT_S)


def test_a_proxy_that_is_gone_or_refuses_is_an_error_in_node(tmp_path: Path) -> None:
    async def refusing(peer: Peer) -> None:
        await peer.until(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 403 Forbidden\r\n\r\n")

    async def closing(peer: Peer) -> None:
        await peer.until(b"\r\n\r\n")
        peer.close()

    async def scenario() -> None:
        own = environment(tmp_path)
        async with provider(refusing) as one, provider(closing) as other:
            for port, expected in (
                (one, "refused api.openai.com:443: HTTP/1.1 403 Forbidden"),
                (other, "closed the connection"),
                (free_port(), "ECONNREFUSED"),
            ):
                env = {**own, **proxy_variables(f"http://127.0.0.1:{port}", tmp_path / "x", own)}
                code, _, err = await node(HTTPS, "https://api.openai.com/", env)
                assert code == 7
                assert expected in err

    run(scenario(), limit_s=LIMIT_S)


def test_credentials_of_the_proxy_reach_it_from_node(tmp_path: Path) -> None:
    heads: list[bytes] = []

    async def noting(peer: Peer) -> None:
        heads.append(await peer.until(b"\r\n\r\n"))
        peer.close()

    async def scenario() -> None:
        own = environment(tmp_path)
        async with provider(noting) as port:
            url = f"http://user:pass%20word@127.0.0.1:{port}"
            env = {**own, **proxy_variables(url, tmp_path / "x", own)}
            await node(HTTPS, "https://api.openai.com/", env)

    run(scenario(), limit_s=LIMIT_S)
    assert b"Proxy-Authorization: Basic dXNlcjpwYXNzIHdvcmQ=\r\n" in heads[0]


def test_node_starts_as_ever_without_a_proxy(tmp_path: Path) -> None:
    async def scenario() -> None:
        own = environment(tmp_path)
        env = {**own, "NODE_OPTIONS": f'--require "{NODE_PROXY}"'}
        assert await node("process.stdout.write('x')", "", env) == (0, "x", "")

    run(scenario(), limit_s=LIMIT_S)
