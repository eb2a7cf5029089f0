import inspect

import pytest

from deltatape.dialects import DIALECTS, Dialect, Reducer, UnknownReducer
from deltatape.model.request_summary import NOTHING_ASKED
from deltatape.model.stream import Event
from helpers.events import event_of
from helpers.hints import hints


def event(number: int, data: str, kind: str = "message") -> Event:
    return event_of(data, kind, number)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_dialect_makes_something_of_nothing(dialect: Dialect) -> None:
    assert inspect.getdoc(dialect)
    assert dialect.read_request(b"", "") == NOTHING_ASKED
    reply = dialect.reducer(NOTHING_ASKED).finish(cut=False)
    assert (reply.dialect, len(reply.choices), reply.terminated) == (dialect.name, 1, False)
    assert (reply.text, reply.tool_calls, reply.observations) == ("", (), ())


HOSTILE = ["", "[", "[" * 5000, "null", "[]", '{"choices":0}', '{"a":NaN}', "9" * 5000, "\0"]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_no_event_makes_a_reducer_raise(dialect: Dialect) -> None:
    reducers: list[Reducer] = [dialect.reducer(NOTHING_ASKED), UnknownReducer()]
    for reducer in reducers:
        for number, data in enumerate(HOSTILE):
            reducer.feed(event(number, data, "error" if number % 2 else "message"))
        assert reducer.finish(cut=True).tool_calls == ()


def test_hints_tell_of_all_the_first_objects_at_once() -> None:
    seen = hints({"type": "a", "x": 1}, {"type": 2, "y": 1}, {})
    assert seen.members == {"type", "x", "y"}
    assert seen.kinds == {"a"}
    assert hints().members == hints().kinds == frozenset()
