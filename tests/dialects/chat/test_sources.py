from deltatape.dialects._chat.sources import DELTA, MESSAGE, Sources
from deltatape.model.stream import Event
from helpers.events import event_of

DATA = """{"choices": [
  {"delta": {"tool_calls": [ {"a": 1.0}, {"b" : 2} ]}, "message": {"tool_calls": [ "m" ]}},
  {"delta": {"tool_calls": [ "other" ]}}
]}"""


def event(data: str) -> Event:
    return event_of(data)


def test_calls_have_the_exact_source_that_the_event_has() -> None:
    sources, one = Sources(), event(DATA)
    assert sources.call(one, (0, DELTA), 0).text == '{"a": 1.0}'
    assert sources.call(one, (0, DELTA), 1).text == '{"b" : 2}'
    assert sources.call(one, (0, MESSAGE), 0).text == '"m"'
    assert sources.call(one, (1, DELTA), 0).text == '"other"'
    assert sources.body(one, (1, DELTA)).text == '{"tool_calls": [ "other" ]}'


def test_what_is_known_of_an_event_is_forgotten_with_the_next() -> None:
    sources = Sources()
    assert sources.call(event(DATA), (0, DELTA), 0).text == '{"a": 1.0}'
    again = DATA.replace("1.0", "2.0")
    assert sources.call(event(again), (0, DELTA), 0).text == '{"a": 2.0}'
