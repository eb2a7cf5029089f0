import pytest

from deltatape.dialects import UNKNOWN, UnknownReducer
from deltatape.model.stream import Event
from helpers.events import event_of


def event(data: str, kind: str = "message") -> Event:
    return event_of(data, kind)


@pytest.mark.parametrize("cut", [False, True])
def test_a_reply_of_no_dialect_has_one_empty_choice(cut: bool) -> None:  # noqa: FBT001
    reply = UnknownReducer().finish(cut=cut)
    assert (reply.dialect, reply.text, reply.tool_calls) == (UNKNOWN, "", ())
    assert (reply.terminated, reply.error) == (not cut, None)


def test_the_first_error_is_told() -> None:
    reducer = UnknownReducer()
    for data in ("not json", "[]", '{"a":1}', '{"error":"one"}', '{"error":"two"}'):
        reducer.feed(event(data))
    assert reducer.finish(cut=False).error == "one"
