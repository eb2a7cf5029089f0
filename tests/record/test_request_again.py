"""A recorded request as bytes that can be sent once more."""

from dataclasses import replace

import pytest

from deltatape.diagnose.rebuild import rebuild
from deltatape.errors import UsageError
from deltatape.gateway.routes import parse_upstream
from deltatape.model.exchange import Exchange, HeaderValue, Masked, Note, Tap
from deltatape.record.request_again import request_again, why_not
from helpers.chat import sse
from helpers.exchanges import FINISH_TEXT, TEXT
from helpers.taped import taped

MASKED = Masked(length=20, hash="ab12cd34")
OPENAI = parse_upstream("https://api.openai.com")
LOCAL = parse_upstream("http://127.0.0.1:9")
CHAT = "openai-chat"


def asked(
    *fields: tuple[bytes, HeaderValue],
    target: tuple[HeaderValue, ...] = (b"/v1/chat/completions",),
    upstream: str = "https://api.openai.com",
    body: bytes = b'{"a":1}',
) -> Exchange:
    base = taped([(10, sse(TEXT, FINISH_TEXT))], body=body, upstream=upstream)
    return replace(base, request=replace(base.request, headers=fields, target=target))


def head(exchange: Exchange, url: str = "https://api.openai.com", **environment: str) -> list[str]:
    """The lines of the head that is sent."""
    again = request_again(exchange, parse_upstream(url), environment, CHAT)
    return again.data.partition(b"\r\n\r\n")[0].decode().split("\r\n")


def test_a_request_is_sent_as_it_was_but_for_what_holds_once() -> None:
    exchange = asked(
        (b"Host", b"api.openai.com"),
        (b"Content-Type", b"application/json"),
        (b"Content-Length", b"7"),
        (b"Idempotency-Key", b"one"),
        (b"Connection", b"keep-alive, X-Hop"),
        (b"X-Hop", b"1"),
        (b"X-Amz-Date", b"20260101T000000Z"),
        (b"Accept-Encoding", b"gzip"),
    )
    again = request_again(exchange, OPENAI, {}, CHAT)
    assert again.data == (
        b"POST /v1/chat/completions HTTP/1.1\r\nContent-Type: application/json\r\n"
        b"Accept-Encoding: gzip\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 7\r\n"
        b'\r\n{"a":1}'
    )
    assert again.left_out == ()
    empty = request_again(asked(body=b""), OPENAI, {}, CHAT)
    assert b"Content-Length" not in empty.data


@pytest.mark.parametrize(
    ("name", "upstream", "variable", "sent"),
    [
        (b"Authorization", "https://api.openai.com", "OPENAI_API_KEY", "Bearer sk-fake"),
        (b"authorization", "https://api.anthropic.com", "ANTHROPIC_AUTH_TOKEN", "Bearer sk-fake"),
        (b"X-Api-Key", "https://api.anthropic.com", "ANTHROPIC_API_KEY", "sk-fake"),
        (b"api-key", "https://x.openai.azure.com", "AZURE_API_KEY", "sk-fake"),
        (
            b"x-goog-api-key",
            "https://generativelanguage.googleapis.com",
            "GOOGLE_API_KEY",
            "sk-fake",
        ),
    ],
)
def test_keys_come_from_the_environment(
    name: bytes, upstream: str, variable: str, sent: str
) -> None:
    exchange = asked((name, MASKED), upstream=upstream)
    assert f"{name.decode()}: {sent}" in head(exchange, upstream, **{variable: "sk-fake"})
    # Who plays the provider on this machine gets the same.
    assert f"{name.decode()}: {sent}" in head(exchange, LOCAL.origin.url, **{variable: "sk-fake"})


def test_a_key_in_the_path_comes_from_the_environment() -> None:
    gemini = "https://generativelanguage.googleapis.com"
    exchange = asked(target=(b"/v1beta/models?key=", MASKED, b"&a=1"), upstream=gemini)
    assert head(exchange, gemini, GEMINI_API_KEY="k")[0] == "POST /v1beta/models?key=k&a=1 HTTP/1.1"
    signed = asked(target=(b"/v1?sig=", MASKED), upstream=gemini)
    with pytest.raises(UsageError, match="a part of its path is masked"):
        head(signed, gemini, GEMINI_API_KEY="k")


def test_where_no_host_tells_the_dialect_says_whose_key_it_is() -> None:
    exchange = asked((b"Authorization", MASKED), upstream="http://127.0.0.1:1")
    again = request_again(exchange, LOCAL, {"MISTRAL_API_KEY": "m"}, "mistral")
    assert b"Authorization: Bearer m\r\n" in again.data


def test_a_missing_key_is_told_with_its_variable() -> None:
    exchange = asked((b"Authorization", MASKED))
    with pytest.raises(UsageError, match=r"Authorization is masked .* set OPENAI_API_KEY$"):
        head(exchange, OPENAI_API_KEY="")
    with pytest.raises(UsageError, match="no variable is known that holds it"):
        request_again(asked((b"x-api-key", MASKED), upstream=""), LOCAL, {}, "gemini-live")


def test_what_else_is_masked_is_sent_where_it_is_known_and_else_left_out_and_told() -> None:
    fields = [(b"OpenAI-Organization", MASKED), (b"Cookie", MASKED)]
    again = request_again(asked(*fields), OPENAI, {"OPENAI_ORG_ID": "org-fake"}, CHAT)
    assert b"OpenAI-Organization: org-fake\r\n" in again.data
    assert again.left_out == ("Cookie",)
    assert b"Cookie" not in again.data


def test_a_path_that_the_url_has_too_is_there_once() -> None:
    for url, expected in (
        ("http://127.0.0.1:9/v1", "/chat/completions"),
        ("http://127.0.0.1:9/openai", "/v1/chat/completions"),
        ("http://127.0.0.1:9", "/v1/chat/completions"),
    ):
        assert head(asked(), url)[0] == f"POST {expected} HTTP/1.1"


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (replace(asked(), request=replace(asked().request, t_end_ns=None)), "not whole"),
        (replace(asked(), request=replace(asked().request, method="")), "not whole"),
        (asked((b"content-length", b"99")), "not whole on the tape: 7 of 99 bytes"),
        (
            replace(asked(), notes=(Note(t_ns=0, text="the body was left out on demand"),)),
            "not whole",
        ),
    ],
)
def test_half_a_request_is_not_sent(broken: Exchange, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        head(broken)


def test_only_requests_to_models_go_to_their_own_provider() -> None:
    exchange = asked()
    assert why_not(exchange, OPENAI, rebuild(exchange)) == ""
    assert why_not(exchange, LOCAL, rebuild(exchange)) == ""
    anthropic = parse_upstream("https://api.anthropic.com")
    assert why_not(exchange, anthropic, rebuild(exchange)) == (
        "it went to openai, and api.anthropic.com is anthropic"
    )
    in_front = replace(exchange, tap=Tap.APP)
    assert "in front of the application" in why_not(in_front, OPENAI, rebuild(exchange))
    other = taped([(10, b"hello")], target=b"/", headers=((b"Content-Type", b"text/plain"),))
    assert "no request to a model" in why_not(other, OPENAI, rebuild(other))
