import pytest

from deltatape.model.exchange import Tap
from deltatape.model.tape_summary import TapeSummary
from deltatape.tape.fields import MalformedError
from deltatape.tape.heads import RequestHeadRecord, ResponseStart, Trailers

REQUEST = {
    "id": "A",
    "method": "POST",
    "target": "/",
    "upstream": "https://host",
    "http": "1.1",
    "headers": [],
}


@pytest.mark.parametrize("key", sorted(REQUEST))
def test_every_part_of_a_request_head_is_required(key: str) -> None:
    with pytest.raises(MalformedError):
        RequestHeadRecord.from_json({name: value for name, value in REQUEST.items() if name != key})


def test_a_reason_phrase_may_hold_any_bytes() -> None:
    value = {
        "status": 200,
        "reason": {"b64": "/w=="},
        "http": "1.0",
        "framing": "close",
        "headers": [["A", ""]],
    }
    head = ResponseStart.from_json(value)
    assert head.reason == b"\xff"
    assert head.to_json() == value


def test_an_unknown_framing_is_refused() -> None:
    with pytest.raises(MalformedError, match="one of chunked, length, close, none"):
        ResponseStart.from_json(
            {"status": 200, "reason": "", "http": "1.1", "framing": "huge", "headers": []}
        )


def test_trailers_are_header_fields() -> None:
    assert Trailers.from_json({"headers": [["a", "b"]]}).headers == ((b"a", b"b"),)


def test_a_request_head_tells_its_tap_only_where_it_is_not_the_provider_side() -> None:
    assert RequestHeadRecord.from_json(REQUEST).tap is Tap.PROVIDER
    assert RequestHeadRecord.from_json(REQUEST | {"tap": "provider"}).to_json() == REQUEST
    before_app = REQUEST | {"tap": "app"}
    assert RequestHeadRecord.from_json(before_app).tap is Tap.APP
    assert RequestHeadRecord.from_json(before_app).to_json() == before_app


def test_a_copied_request_may_tell_how_long_its_tape_was_watched() -> None:
    assert RequestHeadRecord.from_json(REQUEST).watched is None
    for watched, expected in (
        ({"until_ns": 7}, TapeSummary(until_ns=7)),
        ({"until_ns": 7, "reason": "x"}, TapeSummary(until_ns=7, stop="x")),
        ({"until_ns": 7, "reason": "x", "code": 3}, TapeSummary(until_ns=7, stop="x", exit_code=3)),
    ):
        value = REQUEST | {"tap": "app", "watched": watched}
        head = RequestHeadRecord.from_json(value)
        assert (head.watched, head.to_json()) == (expected, value)
    for bad in (None, {}, {"until_ns": -1}, {"until_ns": 1, "reason": 5}):
        with pytest.raises(MalformedError):
            RequestHeadRecord.from_json(REQUEST | {"watched": bad})


def test_an_unknown_tap_is_refused() -> None:
    with pytest.raises(MalformedError, match="one of provider, app"):
        RequestHeadRecord.from_json(REQUEST | {"tap": "moon"})
