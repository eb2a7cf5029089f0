"""What differs for clients of another kind; that all else is the tape is shown by round trips."""

import weakref
from dataclasses import replace

import pytest

from deltatape.http1.head import ParsedRequestHead, parse_request
from deltatape.match.schedule import ReplayTempo
from deltatape.model.exchange import EndReason, Exchange, Framing, MaskedCredential, ResponseHead
from deltatape.player.response_bytes import Rendition, Renditions
from helpers.taped import taped

PLAIN = parse_request(b"POST /x HTTP/1.1\r\nHost: a\r\n\r\n")
CLOSING = parse_request(b"POST /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
OLD = parse_request(b"POST /x HTTP/1.0\r\n\r\n")
SIZED = ((b"Content-Length", b"1"),)


def made(
    exchange: Exchange, request: ParsedRequestHead = PLAIN, *, continued: bool = False
) -> Rendition:
    return Renditions(ReplayTempo(factor=0.0)).of(exchange, request, continued=continued)


def sent(
    exchange: Exchange, request: ParsedRequestHead = PLAIN, *, continued: bool = False
) -> bytes:
    return b"".join(step.data for step in made(exchange, request, continued=continued).table.steps)


def sized(*headers: tuple[bytes, bytes], http: str = "1.1") -> Exchange:
    exchange = taped(((5, b"a"),), framing=Framing.LENGTH, headers=(*SIZED, *headers))
    assert exchange.response
    return replace(exchange, response=replace(exchange.response, http=http))


def early(status: int) -> ResponseHead:
    return ResponseHead(
        status=status, reason=b"", http="2", framing=Framing.NONE, headers=(), t_ns=1, line=None
    )


def test_a_connection_outlives_an_answer_whose_end_is_known() -> None:
    assert made(sized()).keep
    assert made(taped()).keep
    assert b"Connection" not in sent(sized())


@pytest.mark.parametrize(
    "exchange",
    [
        sized((b"Connection", b"Close")),
        sized(http="1.0"),
        taped(framing=Framing.CLOSE),
    ],
)
def test_a_connection_ends_with_an_answer_that_says_so(exchange: Exchange) -> None:
    assert not made(exchange).keep


def test_a_client_that_wants_to_close_is_told_that_this_happens() -> None:
    for client in (CLOSING, OLD):
        exchange = sized((b"Connection", b"keep-alive"))
        assert not made(exchange, client).keep
        assert sent(exchange, client).count(b"onnection: close") == 1
        assert b"keep-alive" not in sent(exchange, client)


def test_what_closes_by_itself_is_not_said_to() -> None:
    for exchange in (sized(http="1.0"), taped(framing=Framing.CLOSE)):
        assert b"onnection" not in sent(exchange, CLOSING)


def test_an_old_provider_may_keep_its_connection() -> None:
    assert made(sized((b"Connection", b"keep-alive"), http="1.0")).keep
    assert sent(sized(http="1.0")).startswith(b"HTTP/1.0 200 OK\r\n")
    assert sent(sized(http="2")).startswith(b"HTTP/1.1 200 OK\r\n")


def test_an_old_client_gets_the_body_bare_and_no_1xx_heads() -> None:
    exchange = taped(((5, b"a"),), informational=(early(103),))
    assert sent(exchange, OLD).endswith(b"\r\nConnection: close\r\n\r\na")
    assert b"ransfer-" not in sent(exchange, OLD)
    assert b"103" not in sent(exchange, OLD)
    assert made(exchange, OLD).fin_completes
    assert not made(exchange).fin_completes


def test_a_100_that_the_client_has_had_does_not_come_again() -> None:
    exchange = taped(informational=(early(100), early(103)))
    assert b"HTTP/1.1 100 \r\n\r\nHTTP/1.1 103 \r\n" in sent(exchange)
    assert sent(exchange, continued=True).startswith(b"HTTP/1.1 103 \r\n")
    assert sent(taped(informational=(early(103),)), continued=True).startswith(b"HTTP/1.1 103")


def test_chunks_are_announced_in_any_case() -> None:
    exchange = taped()
    assert exchange.response
    bare = replace(exchange, response=replace(exchange.response, headers=()))
    assert sent(bare).startswith(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")


def test_not_ever_more_is_kept_for_answers_that_are_made_anew_each_time() -> None:
    renditions = Renditions(ReplayTempo(factor=0.0))
    empty = taped((), framing=None, reason=EndReason.UPSTREAM_CLOSED)
    first = weakref.ref(renditions.of(empty, PLAIN, continued=False))
    for number in range(300):
        assert first() is not None or number
        renditions.of(replace(empty, number=number), PLAIN, continued=False)
    assert first() is None


def test_masked_values_are_not_sent() -> None:
    exchange = taped(headers=((b"Set-Cookie", MaskedCredential(length=3, hash="00000000")),))
    assert b"ookie" not in sent(exchange)


def test_without_a_response_there_is_no_head_and_no_further_answer() -> None:
    exchange = taped((), framing=None, reason=EndReason.UPSTREAM_CLOSED)
    assert not made(exchange).keep
    assert sent(exchange) == b""


def test_what_was_made_for_one_kind_of_client_is_kept_until_others_need_the_room() -> None:
    renditions = Renditions(ReplayTempo(factor=0.0))
    small, large = taped(), taped(((5, b"a" * 20_000_000),))
    first = weakref.ref(renditions.of(small, PLAIN, continued=False))
    assert renditions.of(small, PLAIN, continued=False) is first()
    assert renditions.of(small, CLOSING, continued=False) is not first()
    renditions.of(large, PLAIN, continued=False)
    assert first() is not None
    renditions.of(large, CLOSING, continued=False)
    assert first() is None


def test_what_is_too_large_to_be_kept_is_shared_while_it_is_played() -> None:
    renditions = Renditions(ReplayTempo(factor=0.0))
    large = taped(((5, b"a" * 40_000_000),))
    small = renditions.of(taped(), PLAIN, continued=False)
    first = renditions.of(large, PLAIN, continued=False)
    assert renditions.of(large, PLAIN, continued=False) is first
    forgotten = weakref.ref(first)
    del first
    assert forgotten() is None
    assert renditions.of(small.exchange, PLAIN, continued=False) is small
