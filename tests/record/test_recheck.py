"""A live provider is asked again, and what it says today is taped and compared."""

import asyncio
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.clock import SystemClock
from deltatape.compare.recheck import Recheck
from deltatape.diagnose.rebuild import rebuild
from deltatape.errors import UsageError
from deltatape.gateway.outbound import OutboundSettings
from deltatape.gateway.routes import parse_upstream
from deltatape.model.exchange import Exchange, HeaderValue, MaskedCredential, Note, Tap
from deltatape.model.rule_settings import DEFAULTS
from deltatape.record.recheck import RecheckOptions, ask_again, request_again, why_not
from deltatape.store.reader import open_tape
from helpers.chat import sse
from helpers.exchanges import FINISH_TEXT, TEXT
from helpers.taped import taped
from helpers.upstream import SSE_HEAD, Peer, Script, chunk, free_port, provider, run

SAID = sse(TEXT, FINISH_TEXT)
KEY = "sk-fake-000000"


def recorded(number: int = 1, upstream: str = "http://127.0.0.1:1") -> Exchange:
    base = taped([(10, SAID)], number=number, upstream=upstream)
    fields = ((b"Authorization", MaskedCredential(length=21, hash="ab12cd34")),)
    return replace(base, request=replace(base.request, headers=fields))


def asking(port: int, output: Path | None = None, deadline_s: float = 10.0) -> RecheckOptions:
    return RecheckOptions(
        upstream=parse_upstream(f"http://127.0.0.1:{port}"),
        environment={"OPENAI_API_KEY": KEY},
        secrets=(KEY.encode(),),
        outbound=OutboundSettings(),
        mask_key=b"k" * 32,
        clock=SystemClock(),
        deadline_s=deadline_s,
        output=output,
        rules=DEFAULTS,
    )


def ask(
    script: Script, *exchanges: Exchange, how: Callable[[int], RecheckOptions] = asking
) -> tuple[tuple[Recheck, ...], list[str]]:
    """What became of the exchanges at a provider with this script, and what was said meanwhile."""
    said: list[str] = []

    async def scenario() -> tuple[Recheck, ...]:
        async with provider(script) as port:
            return await asyncio.to_thread(ask_again, exchanges, how(port), said.append)

    return run(scenario()), said


async def as_before(peer: Peer) -> None:
    head, _ = await peer.request()
    assert f"Authorization: Bearer {KEY}".encode() in head
    await peer.send(SSE_HEAD + chunk(SAID) + chunk(b""))


def test_each_request_is_asked_once_more_and_compared() -> None:
    asked, said = ask(as_before, recorded(1), recorded(2))
    assert [(one.recorded.number, one.problem) for one in asked] == [(1, ""), (2, "")]
    for one in asked:
        assert one.today is not None
        assert one.today.drifts == ()
        assert one.today.comparison.equal
    assert len(said) == 2
    assert said[0].startswith("asking http://127.0.0.1:")


def test_the_answers_are_kept_on_demand_without_the_key(tmp_path: Path) -> None:
    output = tmp_path / "today.tape"
    asked, _ = ask(as_before, recorded(), how=lambda port: asking(port, output))
    assert asked[0].today is not None
    (kept,) = open_tape(output)
    assert kept.body == SAID
    assert KEY.encode() not in output.read_bytes()
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [output]
    with pytest.raises(UsageError, match="exists already"):
        ask_again((recorded(),), asking(1, output), print)
    with pytest.raises(UsageError, match="No such file"):
        ask_again((recorded(),), asking(1, tmp_path / "no" / "x.tape"), print)


def test_a_tape_is_not_kept_where_nobody_was_asked(tmp_path: Path) -> None:
    output = tmp_path / "today.tape"
    elsewhere = recorded(upstream="https://api.anthropic.com")
    answers = ask_again((elsewhere,), asking(1, output), print)
    assert "set ANTHROPIC_AUTH_TOKEN" in answers[0].problem
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_asked_is_told_beside_the_others() -> None:
    plain = ((b"Content-Type", b"text/plain"),)
    other = taped([(10, b"hello")], target=b"/hello", headers=plain)
    half = replace(recorded(2), request=replace(recorded().request, t_end_ns=None))
    foreign = replace(recorded(3), request=replace(recorded().request, headers=PAGE))
    asked, _ = ask(as_before, other, half, foreign, recorded(4))
    assert asked[0].passed_over == "it is no request to a model that can be read"
    assert asked[1].problem == "not asked: its request is not complete on the tape"
    assert asked[2].problem.startswith("not asked: a web page of 'https://example.com'")
    assert asked[3].today is not None
    assert [one.today for one in asked[:3]] == [None, None, None]


PAGE = ((b"Origin", b"https://example.com"),)


def test_a_provider_that_is_not_there_is_a_problem_and_no_difference() -> None:
    (asked,) = ask_again((recorded(),), asking(free_port()), lambda _: None)
    assert asked.today is None
    assert "no connection" in asked.problem


def test_an_answer_that_takes_too_long_is_a_problem() -> None:
    async def silent(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD)
        await peer.rest()

    (asked,), _ = ask(silent, recorded(), how=lambda port: asking(port, deadline_s=0.2))
    assert (asked.today, asked.problem) == (None, "no complete answer within 0.2 s")


def test_a_provider_that_hangs_up_before_it_answers_is_a_problem() -> None:
    async def leave(peer: Peer) -> None:
        await peer.request()
        peer.reset()

    (asked,), _ = ask(leave, recorded())
    assert asked.today is None
    assert "reset" in asked.problem


def test_an_answer_that_is_cut_is_compared() -> None:
    async def cut(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(SAID[:40]))
        peer.reset()

    (asked,), _ = ask(cut, recorded())
    assert asked.today is not None
    assert "ending" in [drift.aspect for drift in asked.today.drifts]


MASKED = MaskedCredential(length=20, hash="ab12cd34")
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
        (replace(asked(), request=replace(asked().request, t_end_ns=None)), "not complete"),
        (replace(asked(), request=replace(asked().request, method="")), "not complete"),
        (asked((b"content-length", b"99")), "not complete on the tape: 7 of 99 bytes"),
        (
            replace(asked(), notes=(Note(t_ns=0, text="the body was left out on demand"),)),
            "not complete",
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
