import pytest

from deltatape.dialects._errors import error_message, failure_message, may_fail
from helpers.events import event_of


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"error": {"message": "overloaded", "code": 502}}, "overloaded"),
        ({"error": "overloaded"}, "overloaded"),
        ({"error": {"code": 502}}, '{"code": 502}'),
        ({"error": 5}, "5"),
        ({"object": "error", "message": "too long"}, "too long"),
        ({"object": "error", "code": 1}, '{"object": "error", "code": 1}'),
        ({"error": None, "choices": []}, None),
        ({"choices": []}, None),
    ],
)
def test_the_known_shapes_of_errors_are_read(frame: dict[str, object], message: str | None) -> None:
    assert error_message(frame, "message") == message


@pytest.mark.parametrize("kind", ["message", "error"])
@pytest.mark.parametrize(
    "frame", [{}, {"a": 1}, {"error": None}, {"error": "a"}, {"object": "error"}, {"object": []}]
)
def test_what_is_an_error_may_be_one(frame: dict[str, object], kind: str) -> None:
    event = event_of("", kind)
    assert may_fail(frame, event) or error_message(frame, kind) is None
    assert may_fail(frame, event._replace(exception=True))
    assert may_fail({"a": 1}, event) == (kind == "error")


def test_an_event_of_the_type_error_is_one_whatever_it_carries() -> None:
    assert error_message({"message": "gone"}, "error") == "gone"
    assert error_message({"detail": "gone"}, "error") == '{"detail": "gone"}'


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"error": {"message": "bad key"}}, "bad key"),
        ({"message": "bad key", "request_id": "r"}, "bad key"),
        ({"detail": "Not Found"}, "Not Found"),
        ({"detail": [{"loc": ["body"]}]}, '[{"loc": ["body"]}]'),
        ({"errors": [{"message": "blocked", "code": 1}]}, "blocked"),
        ({"errors": ["blocked"]}, '["blocked"]'),
        ({"details": {"message": "blocked"}}, "blocked"),
        ({"message": "", "title": "Forbidden"}, "Forbidden"),
        ({"message": []}, None),
        ({"code": 1}, None),
    ],
)
def test_a_document_under_the_status_of_an_error_says_why_in_many_ways(
    frame: dict[str, object], message: str | None
) -> None:
    assert failure_message(frame) == message
