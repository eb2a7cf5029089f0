import pytest

from deltatape.model.exchange import Exchange
from deltatape.model.finding import Blame, Confidence
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, found, from_bytes, one, pasted, timed

ERROR = {"error": {"message": "overloaded", "code": 502}}
ANSWER = b'{"error":{"message":"no such model"}}'


def test_an_error_in_the_middle_of_a_stream_is_reported_with_its_message() -> None:
    finding = one(timed((0.1, TEXT), (0.2, ERROR)), "S005")
    assert finding.message == "upstream sent an error under status 200: overloaded"
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.PROVEN)
    assert finding.event == 1


@pytest.mark.parametrize(
    ("status", "blame", "hint"),
    [
        (400, Blame.APP, "read the message"),
        (401, Blame.APP, "check the key"),
        (429, Blame.UPSTREAM, "a later attempt"),
        (503, Blame.UPSTREAM, "a later attempt"),
    ],
)
def test_an_answer_with_an_error_status_is_blamed_by_its_class(
    status: int, blame: Blame, hint: str
) -> None:
    finding = one(from_bytes(ANSWER, asks(USER), status, "application/json"), "S005")
    assert finding.message == f"the answer is status {status}: no such model"
    assert finding.blame is blame
    assert hint in finding.hint


def test_an_error_answer_without_body_says_so() -> None:
    assert one(from_bytes(b"", status=500), "S005").evidence == "(no message)"


def test_an_error_of_an_unknown_service_is_reported_too() -> None:
    exchange = Exchange.from_body(
        b'data: {"error":"nope"}\n\n', content_type="text/event-stream", url="http://x/other"
    )
    finding = one(exchange, "S005")
    assert (finding.evidence, finding.event) == ("nope", None)


def test_an_answer_without_error_is_fine() -> None:
    assert not found(pasted(TEXT, FINISH_TEXT), "S005")
