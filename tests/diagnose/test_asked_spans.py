import json

import pytest

from deltatape.diagnose.asked_spans import argument_spans
from deltatape.diagnose.digest import digest
from deltatape.model.asked import RepeatedCall
from deltatape.store.reader import open_tape
from helpers.exchanges import USER, asks, assistant, conversation, result


def made(arguments: str, call_id: str | None = "c1") -> RepeatedCall:
    return RepeatedCall(id=call_id, name="get", arguments=arguments)


def found(body: str, *calls: RepeatedCall) -> list[str]:
    spans = argument_spans(body.encode(), calls)
    return [body.encode()[span.start : span.end].decode() for _, span in spans]


@pytest.mark.parametrize(
    ("body", "arguments", "there"),
    [
        ('{"id":"c1","function":{"arguments":"{\\"a\\":1}"}}', '{"a":1}', '"{\\"a\\":1}"'),
        ('{"id":"c1","function":{"arguments" : ""}}', "", '""'),
        ('{"id":"c1","input":{"a": "é"}}', '{"a": "é"}', '{"a": "é"}'),
        ('{"id":"c1","arguments":"é"}', "é", '"é"'),
        ('{"id":"c1","arguments":"\\u00e9"}', "é", '"\\u00e9"'),
    ],
)
def test_arguments_are_found_behind_the_id(body: str, arguments: str, there: str) -> None:
    assert found(body, made(arguments)) == [there]


def test_what_does_not_agree_is_no_place() -> None:
    assert not found('{"id":"c1","input":{"b":1}}', made('{"a":1}'))
    assert not found('{"id":"c2","input":{"a":1}}', made('{"a":1}'))
    assert not found('{"id":"c1","name":"get"}', made(""))
    assert not found('{"id":"c1"}' + " " * 5000 + '{"input":{}}', made("{}"))


def test_calls_without_an_id_are_looked_for_by_what_they_say() -> None:
    body = '[{"args":{"a":1}},{"args":{"a":2}},{"args":{}}]'
    assert found(body, made('{"a":1}', None), made("{}", None), made('{"a":3}', None)) == [
        '{"a":1}'
    ]


def test_a_digest_knows_where_the_last_calls_stand() -> None:
    old, new = assistant(("c1", "get", "{}")), assistant(("c2", "get", '{"b":2}'))
    request = asks(USER, old, result("c1"), new, assistant(("c3", "put", "[]")), result("c2"))
    (exchange,) = conversation((request, []))
    body = exchange.request.body
    told = digest(exchange).asked_at
    assert [call.id for call, _ in told] == ["c2", "c3"]
    assert [json.loads(body[span.start : span.end]) for _, span in told] == ['{"b":2}', "[]"]


def test_lone_surrogates_are_looked_for_as_they_are_written() -> None:
    assert found('{"id":"c1","arguments":"\\ud800"}', made("\ud800")) == ['"\\ud800"']


def test_it_can_be_read_off_a_tape() -> None:
    tape = open_tape("recordings/rules/C002/fires.tape")
    last = list(tape)[-1]
    told = [last.request.body[span.start : span.end] for _, span in digest(last).asked_at]
    assert told == [b'"{\\"city\\":\\"Gent\\"}"', b'""']
