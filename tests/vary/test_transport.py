import gzip
from dataclasses import replace

from deltatape.model.exchange import EndReason, Framing, MaskedCredential, header
from deltatape.vary.coded_bodies import coded
from helpers.mutated import (
    ONE,
    TWO_EVENTS,
    broken_gzip,
    gzipped,
    made,
    recorded,
    varied,
    with_fields,
)
from helpers.taped import taped


def fields(exchange: object) -> list[tuple[bytes, object]]:
    response = getattr(exchange, "response", None)
    assert response
    return list(response.headers)


def test_names_of_fields_have_another_case() -> None:
    before = taped(TWO_EVENTS, headers=((b"content-type", b"x"), (b"X-Id", b"1")))
    assert [name for name, _ in fields(made("header-case", before))] == [
        b"Content-Type",
        b"x-id",
        b"transfer-encoding",
    ]
    assert varied("header-case", taped((), framing=None)) is None


def test_a_media_type_has_a_charset_or_none() -> None:
    after = made("charset", taped(TWO_EVENTS))
    assert fields(after)[0] == (b"Content-Type", b"text/event-stream; charset=utf-8")
    back = made("charset", after)
    assert fields(back)[0] == (b"Content-Type", b"text/event-stream")
    assert varied("charset", recorded("bedrock-converse")) is None
    hidden = taped(TWO_EVENTS, headers=((b"Content-Type", MaskedCredential(length=3, hash="x")),))
    assert varied("charset", hidden) is None


def test_hints_come_before_the_head_once() -> None:
    after = made("early-hints", taped(TWO_EVENTS))
    assert [head.status for head in after.informational] == [103]
    assert varied("early-hints", after) is None
    assert varied("early-hints", taped((), framing=None)) is None


def test_fields_follow_the_last_chunk_of_what_is_whole() -> None:
    after = made("trailers", taped(TWO_EVENTS))
    assert after.trailers == ((b"X-Served-By", b"deltatape"),)
    assert varied("trailers", after) is None
    assert varied("trailers", taped(TWO_EVENTS, reason=EndReason.UPSTREAM_RESET)) is None
    assert varied("trailers", taped(TWO_EVENTS, framing=Framing.CLOSE)) is None


def test_a_body_ends_with_the_connection() -> None:
    after = made("until-close", taped(TWO_EVENTS, trailers=((b"X", b"1"),)))
    assert after.response
    assert after.response.framing is Framing.CLOSE
    assert header(after.response.headers, "transfer-encoding") is None
    assert [read.boundaries for read in after.reads] == [None, None]
    assert after.trailers == ()
    for other in (
        after,
        taped((), framing=None),
        taped(()),
        taped(TWO_EVENTS, reason=EndReason.UPSTREAM_CLOSED),
    ):
        assert varied("until-close", other) is None


def test_a_body_is_compressed_for_those_who_accept_that() -> None:
    asking = with_fields(taped(TWO_EVENTS), (b"Accept-Encoding", b"br, GZIP;q=0.5"))
    after = made("gzip", asking)
    assert gzip.decompress(after.body) == b"data: 1\n\ndata: 2\n\n"
    assert varied("gzip", after) is None
    assert varied("gzip", taped(TWO_EVENTS)) is None
    assert varied("gzip", with_fields(taped(()), (b"Accept-Encoding", b"gzip"))) is None
    headless = replace(asking, response=None)
    assert varied("gzip", headless) is None


def test_a_compressed_body_comes_plain() -> None:
    after = made("uncompressed", gzipped(taped(TWO_EVENTS)))
    assert after.body == b"data: 1\n\ndata: 2\n\n"
    assert varied("uncompressed", taped(TWO_EVENTS)) is None
    assert varied("uncompressed", broken_gzip()) is None
    assert coded(after, ("gzip",)) == gzipped(taped(TWO_EVENTS))


def test_arguments_pause_or_else_the_text() -> None:
    for before in (ONE, taped(TWO_EVENTS)):
        after = made("pause", before)
        assert after.body == before.body
        assert after.end
        assert before.end
        assert after.end.t_ns - before.end.t_ns == 1_500_000_000
    assert varied("pause", taped(())) is None
