"""Answers of our own have the form that SDKs show to their users."""

import json

import pytest

from deltatape.http1.answer import REASONS, error_answer
from deltatape.http1.head import field, parse_response


@pytest.mark.parametrize("status", REASONS)
def test_an_answer_is_a_whole_response_that_closes(status: int) -> None:
    head, _, body = error_answer(status, "some_code", 'it says "no" to €').partition(b"\r\n\r\n")
    parsed = parse_response(head + b"\r\n\r\n", method="POST")
    assert parsed.status == status
    assert parsed.reason == REASONS[status]
    assert parsed.length == len(body)
    assert not parsed.keep_alive
    assert field(parsed.fields, b"x-deltatape-error") == b"some_code"
    assert json.loads(body) == {
        "error": {"message": 'it says "no" to €', "type": "deltatape", "code": "some_code"}
    }


def test_details_and_fields_are_added() -> None:
    answer = error_answer(400, "c", "m", detail={"nearest": None}, fields=((b"x-a", b"1"),))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"\r\nx-a: 1" in head
    assert json.loads(body)["error"]["nearest"] is None


def test_head_is_answered_without_the_body_that_it_announces() -> None:
    whole = error_answer(404, "c", "m")
    assert error_answer(404, "c", "m", head_only=True) == whole.partition(b"\r\n\r\n")[0] + (
        b"\r\n\r\n"
    )
