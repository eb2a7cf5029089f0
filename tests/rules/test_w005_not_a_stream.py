from dataclasses import replace

import pytest

from deltatape.model.exchange import EndReason
from helpers.chat import sse
from helpers.eventstream import event
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, found, from_bytes, one, timed

HTML = b"<html>Sign in to continue</html>"
WHOLE = b'{"choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}]}'


@pytest.mark.parametrize(
    ("body", "content_type", "what"),
    [
        (HTML, "text/html", "something else came (text/html, 32 bytes)"),
        (WHOLE, "application/json", "one JSON document came (application/json"),
        (b"", "text/event-stream", "an empty body came"),
    ],
)
def test_something_else_under_a_status_of_success_is_reported(
    body: bytes, content_type: str, what: str
) -> None:
    finding = one(from_bytes(body, asks(USER), content_type=content_type), "W005")
    assert what in finding.message


def test_a_response_without_content_type_is_named_so() -> None:
    assert (
        "no content type" in one(timed((0.1, HTML), request=asks(USER), headers=()), "W005").message
    )


def test_a_stream_that_was_asked_for_is_fine() -> None:
    assert not found(from_bytes(sse(TEXT, FINISH_TEXT), asks(USER)), "W005")


@pytest.mark.parametrize(
    "body", [b'{"a":1}\n{"a":2}\n', b'[{"a":1},\n{"a":2}]', b"[]", event("messageStart", {})]
)
def test_lines_of_json_arrays_and_binary_messages_are_streams(body: bytes) -> None:
    assert not found(from_bytes(body, asks(USER), content_type="application/json"), "W005")


def test_a_document_that_was_asked_for_is_fine() -> None:
    request = {**asks(USER), "stream": False}
    assert not found(from_bytes(WHOLE, request, content_type="application/json"), "W005")


def test_an_error_answer_is_no_stream_by_right() -> None:
    exchange = from_bytes(b"{}", asks(USER), 500, "application/json")
    assert not found(exchange, "W005")


def test_a_cut_explains_a_body_that_never_came() -> None:
    exchange = timed(request=asks(USER), end_s=1)
    assert exchange.end
    cut = replace(exchange, end=replace(exchange.end, reason=EndReason.UPSTREAM_CLOSED))
    assert not found(cut, "W005")
