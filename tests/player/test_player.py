"""The player, asked by a raw client."""

import asyncio
import gzip
import json
import zlib
from collections.abc import Callable
from dataclasses import replace

import brotli  # type: ignore[import-untyped]
import pytest
import zstandard

from deltatape.errors import UsageError
from deltatape.http1.listener import Address
from deltatape.match.request import MatchLevel, MatchQuery, NoMatch
from deltatape.match.schedule import ReplayTempo
from deltatape.model.exchange import (
    EndReason,
    Exchange,
    Framing,
    MaskedCredential,
    ResponseHead,
    Source,
)
from deltatape.player.play_options import (
    MissedRequest,
    PlayedRequest,
    PlayOptions,
    PlayReport,
    RequestOutcome,
)
from deltatape.player.player import MARGIN_BYTES, Player, hider
from helpers.playing import Stage, answer, playing
from helpers.taped import taped
from helpers.upstream import chunk, connect, eventually, post, run

TWO = ((10, b"data: 1\n\n"), (20, b"data: 2\n\n"))
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNKS = chunk(b"data: 1\n\n") + chunk(b"data: 2\n\n")


def test_an_exchange_plays_with_its_head_chunks_and_end() -> None:
    async def scenario() -> None:
        async with playing(taped(TWO)) as stage:
            client = await stage.client()
            await client.send(post())
            assert await client.until(b"0\r\n\r\n") == HEAD + CHUNKS + b"0\r\n\r\n"
            assert stage.player.report.unplayed == ()
            assert isinstance(stage.outcomes[0], PlayedRequest)
            assert stage.outcomes[0].level is MatchLevel.EXACT

    run(scenario())


def test_reads_arrive_at_their_recorded_times() -> None:
    slow = ((10, b"data: 1\n\n"), (310, b"data: 2\n\n"))

    async def scenario() -> None:
        async with playing(taped(slow), factor=1.0) as stage:
            client = await stage.client()
            await client.send(post())
            await client.until(chunk(b"data: 1\n\n"))
            started = asyncio.get_running_loop().time()
            await client.until(chunk(b"data: 2\n\n"))
            assert asyncio.get_running_loop().time() - started > 0.2

    run(scenario())


def test_a_cut_is_played_as_a_cut() -> None:
    got, how = answer(taped(TWO, reason=EndReason.UPSTREAM_CLOSED))
    assert got.endswith(CHUNKS)
    assert how == "eof"
    got, how = answer(taped(TWO, reason=EndReason.UPSTREAM_RESET))
    assert got.endswith(CHUNKS)
    assert how == "reset"


def test_a_cut_without_chunks_is_a_reset() -> None:
    ended = taped(TWO, reason=EndReason.UPSTREAM_CLOSED)
    request = b"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}"
    got, how = answer(ended, request)
    assert got.endswith(b"\r\n\r\ndata: 1\n\ndata: 2\n\n")
    assert how == "reset"


def test_a_body_that_the_close_ends_is_closed_cleanly() -> None:
    got, how = answer(taped(TWO, framing=Framing.CLOSE))
    assert got.endswith(b"text/event-stream\r\n\r\ndata: 1\n\ndata: 2\n\n")
    assert how == "eof"


@pytest.mark.parametrize("reason", [EndReason.CLIENT_CLOSED, EndReason.STOPPED, None])
def test_what_the_tape_does_not_know_is_held_and_then_cut(reason: EndReason | None) -> None:
    async def scenario() -> None:
        async with playing(taped(TWO, reason=reason), hold_s=0.3) as stage:
            client = await stage.client()
            started = asyncio.get_running_loop().time()
            await client.send(post())
            await client.until(CHUNKS)
            assert await client.rest() == (b"", "eof")
            assert asyncio.get_running_loop().time() - started > 0.2

    run(scenario())


def test_a_provider_that_never_answered_leaves_again() -> None:
    assert answer(taped((), framing=None, reason=EndReason.UPSTREAM_CLOSED)) == (b"", "eof")
    assert answer(taped((), framing=None, reason=EndReason.UPSTREAM_RESET)) == (b"", "reset")


def test_the_gateways_own_answer_is_given_again() -> None:
    refused = taped((), framing=None, reason=EndReason.REFUSED, detail="http://x: refused")
    got, _ = answer(refused)
    assert got.startswith(b"HTTP/1.1 502")
    assert b"http://x: refused" in got
    late = taped((), framing=None, reason=EndReason.TIMEOUT, detail="http://x: late")
    assert answer(late)[0].startswith(b"HTTP/1.1 504")


def test_masked_fields_are_not_played() -> None:
    headers = (
        (b"Set-Cookie", MaskedCredential(length=3, hash="00000000")),
        (b"X-Kept", b"1"),
    )
    got, _ = answer(taped(TWO, headers=headers))
    assert b"Set-Cookie" not in got
    assert b"X-Kept: 1" in got


def test_a_miss_is_refused_with_the_nearest_request_and_never_retried() -> None:
    async def scenario() -> None:
        async with playing(taped(body={"model": "a"})) as stage:
            client = await stage.client()
            await client.send(post(b'{"model": "b"}'))
            got, _ = await client.rest()
            head, _, body = got.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 400 Bad Request")
            assert b"x-should-retry: false" in head
            error = json.loads(body)["error"]
            assert error["code"] == "not_on_tape"
            assert error["nearest"] == "x.tape#1"
            assert error["differences"] == [
                {"path": "$.model", "recorded": '"a"', "received": '"b"'}
            ]
            assert "$.model: recorded" in error["message"]
            assert len(stage.player.report.missed) == 1
            assert len(stage.player.report.unplayed) == 1
            assert isinstance(stage.outcomes[0], MissedRequest)

    run(scenario())


def test_each_exchange_plays_once_in_order_unless_repeated() -> None:
    one = taped(((10, b"one"),))
    two = taped(((10, b"two"),), number=2)

    async def ask(stage: Stage) -> bytes:
        client = await stage.client()
        await client.send(post(extra="Connection: close\r\n"))
        return (await client.rest())[0]

    async def scenario(*, repeat: bool) -> list[bytes]:
        async with playing(one, two, repeat=repeat) as stage:
            return [await ask(stage) for _ in range(3)]

    first, second, third = run(scenario(repeat=False))
    assert chunk(b"one") in first
    assert chunk(b"two") in second
    assert third.startswith(b"HTTP/1.1 400")
    assert b"was already played" in third
    assert chunk(b"one") in run(scenario(repeat=True))[2]


def test_nothing_recorded_is_said_so() -> None:
    async def scenario() -> bytes:
        async with playing() as stage:
            client = await stage.client()
            await client.send(b"HEAD /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return (await client.rest())[0]

    got = run(scenario())
    assert got.startswith(b"HTTP/1.1 400")
    assert got.endswith(b"\r\n\r\n")


def test_expect_100_continue_is_answered() -> None:
    async def scenario() -> None:
        async with playing(taped(TWO)) as stage:
            client = await stage.client()
            request = post(extra="Expect: 100-continue\r\n")
            await client.send(request[:-2])
            assert await client.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            await client.send(request[-2:])
            await client.until(b"0\r\n\r\n")

    run(scenario())


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b"hello\r\n\r\n", "not an HTTP/1 request"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "switch HTTP/2 off in the client"),
    ],
)
def test_bytes_that_are_no_request_are_told_and_count_as_a_miss(sent: bytes, told: str) -> None:
    async def scenario() -> bytes:
        async with playing(taped(TWO)) as stage:
            client = await stage.client()
            await client.send(sent)
            answered = (await client.rest())[0]
            (missed,) = stage.player.report.missed
            assert told in missed.message
            assert [missed] == stage.outcomes
            return answered

    assert told.encode() in run(scenario())


def test_a_client_that_does_not_read_stops_the_clock() -> None:
    big = b"x" * 8_000_000
    exchange = taped(((1, big), (2, big), (3, b"end")))

    async def scenario() -> None:
        async with playing(exchange) as stage:
            client = await stage.client()
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await client.send(post())
            await asyncio.sleep(0.3)
            client.writer.transport.resume_reading()  # type: ignore[attr-defined]
            got = await client.until(chunk(b"end") + b"0\r\n\r\n")
            assert len(got) > 16_000_000

    run(scenario())


def test_a_client_that_leaves_ends_its_answer() -> None:
    slow = taped(((10, b"a"), (9_000, b"b")))

    async def scenario() -> None:
        async with playing(slow, factor=1.0) as stage:
            client = await stage.client()
            await client.send(post())
            await client.until(chunk(b"a"))
            client.close()
            await eventually(lambda: not stage.player._plays, "the answer ends")

    run(scenario())


def test_stopping_lets_answers_end_and_cuts_the_rest() -> None:
    soon = taped(((10, b"a"), (200, b"b")))
    late = taped(((10, b"a"), (60_000, b"b")))

    async def scenario(exchange: Exchange, grace_s: float) -> tuple[bytes, str]:
        async with playing(exchange, factor=1.0) as stage:
            client = await stage.client()
            await client.send(post(extra="Connection: close\r\n"))
            await client.until(chunk(b"a"))
            await stage.player.stop(grace_s=grace_s)
            return await client.rest()

    assert run(scenario(soon, 5.0)) == (chunk(b"b") + b"0\r\n\r\n", "eof")
    assert run(scenario(late, 0.2)) == (b"", "eof")


def test_a_taken_port_is_told() -> None:
    async def scenario() -> None:
        async with playing() as stage:
            other = Player((), lambda _: None, PlayOptions())
            with pytest.raises(UsageError, match="choose another port"):
                await other.start(stage.player.listener.address)

    run(scenario())


def test_early_hints_are_played_again_but_not_to_http_1_0() -> None:
    hint = ResponseHead(
        status=103,
        reason=b"Early Hints",
        http="1.1",
        framing=Framing.NONE,
        headers=((b"Link", b"a"),),
        t_ns=1,
        line=None,
    )
    got, _ = answer(taped(TWO, informational=(hint,)))
    assert got.startswith(b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\n")
    old = b"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}"
    assert answer(taped(TWO, informational=(hint,)), old)[0].startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_client_that_waits_is_told_to_go_on_unless_the_provider_did_not_say_so() -> None:
    waits = taped(TWO, body=b"{}")
    waits = replace(waits, request=replace(waits.request, headers=((b"expect", b"100-continue"),)))
    extra = "Expect: 100-continue\r\nConnection: close\r\n"
    assert answer(waits, post(extra=extra))[0].startswith(b"HTTP/1.1 200 OK")
    assert answer(taped(TWO), post(extra=extra))[0].startswith(b"HTTP/1.1 100 Continue")


def test_what_cannot_be_asked_for_is_not_unplayed() -> None:
    half = taped(TWO)
    half = replace(half, request=replace(half.request, t_end_ns=None))

    async def scenario() -> None:
        async with playing(half, replace(half, source=Source.IMPORT)) as stage:
            (left,) = stage.player.report.unplayed
            assert left.source is Source.IMPORT

    run(scenario())


def test_several_tapes_play_as_one_and_their_branches_do_not_mix() -> None:
    """Two conversations that begin alike, by two clients at the same time."""
    ask = [{"role": "user", "content": "hi"}]

    def turn(tape: str, text: bytes, messages: object) -> Exchange:
        return replace(taped(((10, text),), body={"messages": messages}), tape=tape)

    def later(word: str) -> list[dict[str, str]]:
        return [*ask, {"role": "assistant", "content": word}]

    exchanges = [
        turn("a.tape", b"one", ask),
        turn("a.tape", b"after one", later("one")),
        turn("b.tape", b"two", ask),
        turn("b.tape", b"after two", later("two")),
    ]

    async def client(stage: Stage) -> list[bytes]:
        peer = await stage.client()
        got, messages = [], ask
        for _ in range(2):
            await peer.send(post(json.dumps({"messages": messages}).encode()))
            await peer.until(b"\r\n\r\n")
            got.append((await peer.until(b"0\r\n\r\n")).split(b"\r\n")[1])
            messages = later(got[-1].decode())
        return got

    async def scenario() -> None:
        async with playing(*exchanges) as stage:
            outcomes = await asyncio.gather(client(stage), client(stage))
            assert sorted(outcomes) == [[b"one", b"after one"], [b"two", b"after two"]]
            assert stage.player.report.whole

    run(scenario())


KEY = "sk-proj-fake000000fake000000fake000000"
KNOWN = "Fake.0000-word"


def missed(body: bytes, target: str) -> tuple[str, MissedRequest]:
    """The answer to a request that is not on the tape, and what was told of it."""

    async def scenario() -> tuple[str, MissedRequest]:
        outcomes: list[object] = []
        exchange = taped(body={"a": "my key is not told", "token": "first"})
        playing = PlayOptions(secrets=(KNOWN.encode(),))
        player = Player([exchange], outcomes.append, playing)
        await player.start(Address("127.0.0.1", 0))
        try:
            client = await Stage(player, []).client()
            await client.send(post(body, target, "Connection: close\r\n"))
            got, _ = await client.rest()
        finally:
            await player.stop()
        (one,) = outcomes
        assert isinstance(one, MissedRequest)
        assert player.report.missed == (one,)
        return got.decode(), one

    return run(scenario())


def test_what_looks_like_a_key_or_is_known_to_be_one_is_overwritten() -> None:
    hide = hider([KNOWN.encode()])
    assert hide(f"my key is {KEY}.") == f"my key is {'*' * len(KEY)}."
    assert hide(f"é {KNOWN}") == f"é {'*' * len(KNOWN)}"
    plain = "nothing \ud800 to hide"
    assert hide(plain) is plain


def test_a_body_that_differs_in_a_credential_is_told_without_it() -> None:
    body = {"a": f"my key is {KEY}", "token": KNOWN[:9], KNOWN: {"b": KNOWN, "c": KEY}}
    answer, outcomes = missed(json.dumps(body).encode(), "/v1/chat/completions")
    for text in (answer, repr(outcomes.miss), outcomes.message):
        assert KEY[:10] not in text
        assert KNOWN[:9] not in text
    assert [each.received for each in outcomes.miss.differences] == [
        f'"my key is {"*" * len(KEY)}"',
        "***",
        f'{{"b": "{"*" * len(KNOWN)}", "c": "{"*" * 27}...',
    ]


def test_a_target_is_told_without_tokens_and_keys() -> None:
    for target in (f"/t/{KNOWN[:9]}/v2", f"/s/x/t/{KEY}/v2", f"/v2?{KEY}", f"/v2/{KNOWN}/x"):
        answer, outcomes = missed(b"{}", target)
        for text in (answer, outcomes.message, repr(outcomes.query.target), outcomes.miss.problem):
            assert KEY[:10] not in text
            assert KNOWN[:9] not in text
            assert "v2" in text


# Whom the player serves, and how much of a request it takes and keeps.


@pytest.mark.parametrize(
    "field",
    ["Host: evil.example", "Host: localhost\r\nOrigin: https://evil.example"],
)
def test_who_is_not_of_this_machine_gets_nothing_of_the_tape(field: str) -> None:
    async def scenario() -> None:
        async with playing(taped(TWO)) as stage:
            for method, length in ((b"POST", 9), (b"HEAD", 0)):
                client = await stage.client()
                head = b"%b /v1/chat/completions HTTP/1.1\r\n%b\r\nContent-Length: %d\r\n\r\n"
                await client.send(head % (method, field.encode(), length))
                got, _ = await client.rest()  # before the body: it is of no interest
                assert got.startswith(b"HTTP/1.1 403 ")
                assert b"x-should-retry: false" in got
                assert got.endswith(b"\r\n\r\n") == (method == b"HEAD")
            report = stage.player.report
            assert [one.query.method for one in report.missed] == ["POST", "HEAD"]
            assert len(report.unplayed) == 1

    run(scenario())


def test_pages_of_this_machine_are_served() -> None:
    got, _ = answer(
        taped(TWO), post(extra="Origin: http://localhost:5173\r\nConnection: close\r\n")
    )
    assert got.startswith(b"HTTP/1.1 200 ")


def test_the_report_has_bodies_only_where_they_are_wanted() -> None:
    recorded = taped(TWO, body=b'{"a": 1}')

    async def bodies(*, wanted: bool) -> list[bytes]:
        outcomes: list[RequestOutcome] = []
        player = Player(
            (recorded,), outcomes.append, PlayOptions(tempo=ReplayTempo(factor=0.0), bodies=wanted)
        )
        await player.start(Address("127.0.0.1", 0))
        for body in (b'{"a": 2}', b'{"a": 1}'):
            client = await connect(player.listener.port)
            await client.send(post(body, extra="Connection: close\r\n"))
            await client.rest()
        await player.stop()
        return [one.query.body for one in outcomes]

    assert run(bodies(wanted=True)) == [b'{"a": 2}', b'{"a": 1}']
    assert run(bodies(wanted=False)) == [b"", b""]


@pytest.mark.parametrize("field", [b"Transfer-Encoding: chunked", b"Content-Length: 9000000000"])
def test_a_body_that_is_longer_than_any_on_the_tape_is_not_read(field: bytes) -> None:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n%b\r\n\r\n" % field

    async def scenario() -> None:
        async with playing(taped(TWO)) as stage:
            client = await stage.client()
            await client.send(head)
            if b"chunked" in field:
                piece = chunk(b"x" * 1_000_000)
                for _ in range(MARGIN_BYTES // 1_000_000 + 2):
                    await client.send(piece)
            got, _ = await client.rest()
            assert got.startswith(b"HTTP/1.1 400 ")
            assert b"its body has more than" in got
            (missed,) = stage.player.report.missed
            assert missed.query.body == b""

    run(scenario())


def test_a_client_of_http_1_0_is_not_told_to_continue() -> None:
    head = (
        b"POST /v1/chat/completions HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    )
    got, _ = answer(taped(TWO, body=b"{}"), head + b"{}")
    assert got.startswith(b"HTTP/1.1 200 ")


def test_a_long_target_does_not_come_back_whole() -> None:
    async def scenario() -> None:
        async with playing(taped(TWO)) as stage:
            client = await stage.client()
            await client.send(post(target="/v1/x?api_key=sk-fake-000000&b=" + "a" * 60_000))
            got, _ = await client.rest()
            assert len(got) < 2000
            assert b"sk-fake" not in got
            (missed,) = stage.player.report.missed
            assert len(missed.query.target) <= 4096

    run(scenario())


def test_a_report_is_whole_when_nothing_was_missed_and_nothing_is_left() -> None:
    query = MatchQuery(method="GET", target=b"/", body=b"")
    miss = NoMatch(nearest=None, problem="", differences=())
    missed = MissedRequest(query=query, miss=miss, nearest=None, message="")
    assert PlayReport().whole
    assert not PlayReport(missed=(missed,)).whole
    assert not PlayReport(unplayed=(taped(),)).whole


CODERS = (
    ("gzip", gzip.compress),
    ("deflate", zlib.compress),
    ("br", brotli.compress),
    ("zstd", zstandard.compress),
    ("gzip, zstd", lambda body: zstandard.compress(gzip.compress(body))),
)


@pytest.mark.parametrize(("coding", "encode"), CODERS, ids=[name for name, _ in CODERS])
def test_a_compressed_request_is_answered_like_a_plain_one(
    coding: str, encode: Callable[[bytes], bytes]
) -> None:
    said = b'{"a": 1}'
    extra = f"Content-Encoding: {coding}\r\n"
    packed = taped(TWO, body=encode(said), number=2)
    fields = ((b"content-encoding", coding.encode()),)
    packed = replace(packed, request=replace(packed.request, headers=fields))

    async def scenario() -> None:
        async with playing(taped(TWO, body=said), packed) as stage:
            client = await stage.client()
            for request in (post(encode(said), extra=extra), post(said)):
                await client.send(request)
                assert (await client.until(b"0\r\n\r\n")).startswith(HEAD)
            assert stage.player.report.unplayed == ()
            assert [one.level for one in stage.player.report.played] == [MatchLevel.EXACT] * 2
            await client.send(post(encode(b'{"a": 2}'), extra=extra))
            got = await client.until(b"}")
            assert b"HTTP/1.1 400" in got

    run(scenario())


def test_a_miss_shows_what_a_compressed_request_says() -> None:
    request = post(gzip.compress(b'{"a": 2}'), extra="Content-Encoding: gzip\r\n")
    got, _ = answer(taped(TWO, body=b'{"a": 1}'), request)
    assert b"a: recorded 1, received 2" in got


def test_a_miss_says_that_a_request_is_not_what_it_claims() -> None:
    request = post(gzip.compress(b'{"a": 1}')[:9], extra="Content-Encoding: gzip\r\n")
    got, _ = answer(taped(TWO, body=b'{"a": 1}'), request)
    assert b"9 bytes, not JSON: the gzip data is cut: its end is missing" in got
