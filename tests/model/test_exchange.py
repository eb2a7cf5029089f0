import dataclasses
import gzip
import pickle

import pytest
import zstandard

from deltatape.model.exchange import (
    EndReason,
    Exchange,
    Framing,
    MaskedCredential,
    Request,
    Source,
    content_codings,
    header,
)
from helpers.taped import taped

SSE = "text/event-stream"


def asked(target: tuple[bytes | MaskedCredential, ...]) -> Request:
    return dataclasses.replace(taped().request, target=target)


def test_an_exchange_from_a_body_claims_neither_times_nor_an_ending() -> None:
    made = Exchange.from_body(b"data: 1\n\n", content_type=SSE, url="http://h:1/v1/x?a=b#part")
    assert made.body == b"data: 1\n\n"
    assert made.source is Source.IMPORT
    assert not made.timed
    assert made.end is None
    assert not made.cut
    assert made.request.upstream == "http://h:1"
    assert made.request.target == (b"/v1/x?a=b",)
    assert made.request.body == b""
    assert made.response is not None
    assert made.response.status == 200
    assert made.response.framing is Framing.CLOSE
    assert header(made.response.headers, "Content-Type") == SSE.encode()


@pytest.mark.parametrize(
    ("request_body", "expected"),
    [(b'{"a": 1}', b'{"a": 1}'), ({"a": 1}, b'{"a": 1}'), (None, b"")],
)
def test_its_request_is_bytes_or_an_object(
    request_body: bytes | dict[str, object] | None, expected: bytes
) -> None:
    made = Exchange.from_body(b"", content_type=SSE, url="", request=request_body, status=404)
    assert made.request.body == expected
    assert made.request.upstream == ""
    assert made.request.target == (b"/",)
    assert made.reads == ()
    assert made.body == b""
    assert made.response is not None
    assert made.response.status == 404


def test_a_taped_body_is_the_reads_joined() -> None:
    exchange = taped(((1, b"a"), (2, b""), (3, b"b\x00")))
    assert exchange.body == b"ab\x00"
    assert exchange.timed


@pytest.mark.parametrize("reason", [*EndReason, None])
def test_every_ending_but_a_complete_one_is_a_cut(reason: EndReason | None) -> None:
    assert taped(reason=reason).cut is (reason is not EndReason.COMPLETE)


def test_a_masked_part_of_a_target_shows_its_length_only() -> None:
    request = asked((b"/v1/x?key=", MaskedCredential(length=3, hash="00000000"), b"&a=b"))
    assert request.target_bytes == b"/v1/x?key=***&a=b"
    assert request.path == "/v1/x"
    assert asked((b"/plain",)).path == "/plain"


def test_a_header_is_found_in_any_case_the_first_of_it_and_never_a_masked_one() -> None:
    headers = (
        (b"X-A", b"1"),
        (b"x-a", b"2"),
        (b"Authorization", MaskedCredential(length=9, hash="00000000")),
    )
    assert header(headers, "x-A") == b"1"
    assert header(headers, "authorization") is None
    assert header(headers, "x-b") is None


def test_an_exchange_is_masked_when_a_body_of_it_is() -> None:
    span = (0, 1, "00000000")
    plain = taped(((1, b"a"), (2, b"b")))
    assert not plain.masked
    request = dataclasses.replace(plain.request, masked=(span,))
    assert dataclasses.replace(plain, request=request).masked
    reads = (plain.reads[0], plain.reads[1]._replace(masked=(span,)))
    assert dataclasses.replace(plain, reads=reads).masked


def coded(body: bytes, *codings: bytes, hidden: tuple[tuple[int, int, str], ...] = ()) -> Request:
    headers = (
        (b"content-length", b"%d" % len(body)),
        *((b"Content-Encoding", coding) for coding in codings),
        (b"X-Last", b"1"),
    )
    return dataclasses.replace(taped().request, headers=headers, body=body, hidden=hidden)


def test_the_content_of_a_request_is_its_body_without_content_coding() -> None:
    body = zstandard.compress(gzip.compress(b'{"a": 1}'))
    request = coded(body, b"gzip, zstd")
    assert (request.content, request.content_fault, request.body) == (b'{"a": 1}', "", body)
    assert request.content is request.content
    assert request.codings == ("gzip", "zstd")
    assert coded(body, b"gzip", b"zstd").content == b'{"a": 1}'
    plain = coded(b"{}")
    assert plain.content is plain.body
    assert pickle.loads(pickle.dumps(request)) == request  # noqa: S301 - written here


def test_a_content_that_cannot_be_decoded_says_why() -> None:
    request = coded(b'{"a": 1}', b"gzip")
    assert request.content is request.body
    assert request.content_fault.startswith("the gzip data is damaged")
    cut = coded(gzip.compress(b'{"a": 1}')[:-1], b"gzip")
    assert (cut.content, cut.content_fault) == (
        b'{"a": 1}',
        "the gzip data is cut: its end is missing",
    )


def test_credentials_in_a_coded_body_are_asterisks_in_its_content() -> None:
    span = (7, 10, "0011aabb")
    request = coded(gzip.compress(b'{"a": "key"}'), b"gzip", hidden=(span,))
    assert request.content == b'{"a": "***"}'
    assert request.content_masked == (span,)
    assert gzip.decompress(request.body) == b'{"a": "key"}'
    plain = dataclasses.replace(coded(b"***"), masked=((0, 3, "0011aabb"),))
    assert plain.content_masked == plain.masked


def test_the_content_of_a_response_is_its_body_without_content_coding() -> None:
    data = gzip.compress(b"data: 1\n\n")
    head = ((b"Content-Encoding", b"gzip"),)
    exchange = taped(((1, data[:9]), (2, data[9:])), headers=head)
    assert (exchange.body, exchange.content) == (data, b"data: 1\n\n")
    hidden = exchange.reads[1]._replace(hidden=((6, 7, "0011aabb"),))
    exchange = dataclasses.replace(exchange, reads=(exchange.reads[0], hidden))
    assert exchange.content == b"data: *\n\n"
    assert taped(framing=None, reads=()).content == b""


def test_a_request_with_another_content_has_no_coding() -> None:
    request = coded(gzip.compress(b"{}"), b"gzip", hidden=((0, 1, "0011aabb"),))
    other = request.with_content(b'{"k": "***"}', ((7, 10, "0011aabb"),))
    assert other.content is other.body
    assert other.body == b'{"k": "***"}'
    assert other.content_masked == other.masked == ((7, 10, "0011aabb"),)
    assert other.headers == ((b"content-length", b"12"), (b"X-Last", b"1"))


def test_codings_are_read_from_all_fields_of_a_head() -> None:
    assert content_codings(((b"content-ENCODING", b"GZip"), (b"Content-Encoding", b"br"))) == (
        "gzip",
        "br",
    )
    assert content_codings(((b"X", b"gzip"), (b"Content-Encoding", b"identity"))) == ()
    masked = MaskedCredential(length=4, hash="0011aabb")
    assert content_codings(((b"Content-Encoding", masked),)) == ()
