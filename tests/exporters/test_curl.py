"""Commands of curl are run by a shell, against a server that keeps what it gets."""

import os
import shutil
from dataclasses import replace

import pytest

from deltatape.diagnose.rebuild import analyse
from deltatape.exporters import export
from deltatape.exporters.curl import CurlExporter
from deltatape.model.exchange import Exchange, Headers, MaskedCredential
from helpers.clients import output
from helpers.needed import skip_unless
from helpers.taped import taped
from helpers.upstream import Peer, provider, run

SECRET = MaskedCredential(length=4, hash="0a0a0a0a")


def command(*exchanges: Exchange) -> str:
    return export([analyse(each) for each in exchanges], CurlExporter(), "1").files[""].decode()


def asked(
    body: bytes = b"{}",
    *,
    target: tuple[object, ...] = (b"/v1",),
    headers: Headers = (),
    **parts: str,
) -> Exchange:
    exchange = taped(body=body, **parts)  # type: ignore[arg-type]
    request = replace(exchange.request, target=target, headers=headers)  # type: ignore[arg-type]
    return replace(exchange, request=request)


def sent(exchange: Exchange, **variables: str) -> tuple[bytes, set[bytes], bytes]:
    """The request line, the fields and the body that a server gets from the command."""
    skip_unless(shutil.which("curl"), "no curl")
    got: list[tuple[bytes, bytes]] = []

    async def serve(peer: Peer) -> None:
        got.append(await peer.request())
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    async def scenario() -> None:
        async with provider(serve) as port:
            here = replace(exchange.request, upstream=f"http://127.0.0.1:{port}")
            shell = ("sh", "-c", command(replace(exchange, request=here)))
            await output(*shell, env={"PATH": os.environ["PATH"], **variables})

    run(scenario())
    ((head, body),) = got
    line, *fields = head.rstrip(b"\r\n").split(b"\r\n")
    return line, {field for field in fields if not field.startswith(b"Host:")}, body


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": "it\'s $HOME `x` \\\\n \xc3\xa9"}',
        b"@file\n\tline",
        b'{"a": "\x1b[2J"}',
        bytes(range(256)),
    ],
)
def test_the_command_sends_the_same_request(body: bytes) -> None:
    headers = (
        *((b"content-type", b"application/json"), (b"X-Quote", b"it's"), (b"X-Empty", b"")),
        *((b"Host", b"api.example.com"), (b"Content-Length", b"5"), (b"Accept-Encoding", b"br")),
    )
    line, fields, got = sent(asked(body, target=(b"/v1?a=b&c=$d",), headers=headers))
    assert line == b"POST /v1?a=b&c=$d HTTP/1.1"
    assert got == body
    length = b"Content-Length: %d" % len(body)
    assert fields == {b"content-type: application/json", b"X-Quote: it's", b"X-Empty:", length}


@pytest.mark.parametrize(
    "value", [b"\x1b[201~\rtouch owned\r", b"a\tb", b"\xc2\x9b7m", b"%s \\045"]
)
def test_what_would_act_on_a_terminal_is_sent_and_not_pasted(value: bytes) -> None:
    exchange = asked(target=(b"/v1?a=%s&b=[1-3]{x,y}",), headers=((b"X-A", value),))
    assert all(each.isprintable() or each == "\n" for each in command(exchange))
    line, fields, _ = sent(exchange)
    assert line == b"POST /v1?a=%s&b=[1-3]{x,y} HTTP/1.1"
    assert b"X-A: " + value.rstrip() in b"\n".join(fields)


def test_nothing_of_a_tape_is_an_option_or_a_file_for_curl() -> None:
    exchange = asked(target=(b"-oowned",), headers=((b"@/etc/passwd", b"x"),), upstream="")
    text = command(exchange)
    assert "--url -oowned" in text
    assert "passwd" not in text


@pytest.mark.parametrize(("method", "body"), [("GET", b""), ("HEAD", b""), ("DELETE", b"{}")])
def test_the_method_is_the_same(method: str, body: bytes) -> None:
    line, fields, got = sent(asked(body, method=method, headers=((b"User-Agent", b"x"),)))
    assert (line, got) == (b"%b /v1 HTTP/1.1" % method.encode(), body)
    assert b"User-Agent: x" in fields


def test_masked_credentials_are_variables_of_the_environment() -> None:
    exchange = asked(
        target=(b"/v1?access_token=", SECRET, b"&b=1&=", SECRET),
        headers=((b"Authorization", SECRET), (b"X-Api-Key", SECRET), (b"1-secret", SECRET)),
    )
    variables = "ACCESS_TOKEN=t AUTHORIZATION=Bearer X_API_KEY=k CREDENTIAL=c CREDENTIAL_1_SECRET=s"
    line, fields, _ = sent(exchange, **dict(each.split("=") for each in variables.split()))
    assert line == b"POST /v1?access_token=t&b=1&=c HTTP/1.1"
    assert {b"Authorization: Bearer", b"X-Api-Key: k", b"1-secret: s"} <= fields


def test_those_of_a_known_provider_are_what_its_sdk_reads() -> None:
    fields = ((b"Authorization", SECRET), (b"Cookie", SECRET))
    text = command(asked(headers=fields))
    assert "-H 'Authorization: Bearer '\"$OPENAI_API_KEY\"" in text
    assert "-H 'Cookie: '\"$COOKIE\"" in text
    text = command(asked(headers=((b"x-api-key", SECRET),), upstream="https://api.anthropic.com"))
    assert "-H 'x-api-key: '\"$ANTHROPIC_API_KEY\"" in text
    gemini = "https://generativelanguage.googleapis.com"
    text = command(asked(target=(b"/v1?key=", SECRET), upstream=gemini))
    assert f"{gemini}'/v1?key='\"$GOOGLE_API_KEY\"" in text


def test_several_commands_have_their_numbers() -> None:
    first, second = command(asked(b""), replace(asked(), number=7)).split("# 7\n")
    assert first.startswith("# 1\ncurl -N")
    assert second.startswith("curl -N")


@pytest.mark.parametrize("upstream", ["", "http://[x"])
def test_a_request_to_nowhere_has_its_target(upstream: str) -> None:
    assert "\\\n  /v1 " in command(asked(upstream=upstream))
    assert "\\\n  '/v1?key='\"$KEY\"" in command(
        asked(target=(b"/v1?key=", SECRET), upstream=upstream)
    )
