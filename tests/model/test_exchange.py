import dataclasses

import pytest

from deltatape.model.exchange import (
    EndReason,
    Exchange,
    Framing,
    MaskedCredential,
    Request,
    Source,
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
