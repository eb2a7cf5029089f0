import json

import pytest

from deltatape.model.exchange import Exchange
from deltatape.mutate import SeededChoices
from deltatape.mutate._calls import calls
from deltatape.mutate._draft import MutableExchange
from deltatape.wire.json_edit import at
from helpers import chat as shape
from helpers.mutated import (
    NEEDS,
    ONE,
    TWO,
    WHOLE,
    WORDS,
    changed,
    chat,
    in_pieces,
    joined,
    recorded,
    told,
)

FREE = {"type": "object", "properties": {}}
SCHEMALESS = chat(*in_pieces("{}"), shape.FINISH, schema=FREE)


def arguments(exchange: Exchange | None) -> list[str]:
    """The arguments of every call."""
    assert exchange
    draft = MutableExchange.of(exchange)
    assert draft
    return [call.text for call in calls(draft)]


def test_a_tool_that_needs_nothing_is_called_with_nothing() -> None:
    assert arguments(changed("args-empty-noarg", SCHEMALESS)) == [""]
    assert changed("args-empty-noarg", ONE) is None


def test_arguments_are_encoded_twice() -> None:
    (text,) = arguments(changed("args-double-encoded", ONE))
    assert json.loads(json.loads(text)) == {"a": "b c"}


@pytest.mark.parametrize("exchange", [ONE, WHOLE, recorded("bedrock-converse")])
def test_an_empty_object_comes_first_in_a_fragment_of_its_own(exchange: Exchange) -> None:
    made = changed("args-empty-obj-prefix", exchange)
    expected = ["{}" + text for text in arguments(exchange)]
    assert arguments(made) == expected
    draft = MutableExchange.of(made) if made else None
    assert draft
    assert all(call.pieces[0].text == "{}" for call in calls(draft))


def test_only_the_first_entry_of_a_call_in_two_opens_it() -> None:
    first, second = told(changed("args-empty-obj-prefix", WHOLE))
    assert (at(first, "id"), at(second, "id")) == ("c0", None)
    assert (at(first, "function", "name"), at(second, "function", "name")) == ("get", None)
    assert changed("args-empty-obj-prefix", SCHEMALESS) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("args-corrupt-punct", {'{"a""b c"}"}'}),
        ("args-missing-tail", {'{"a":"b c"', '{"a":"b c'}),
        ("args-missing-head", {'a":"b c"}'}),
        ("args-extra-brace", {'{"a":"b c"}}'}),
        ("args-json-prefix", {'json\n{"a":"b c"}'}),
        ("args-control-chars", {'{"a":"\nb c"}'}),
        ("args-invalid-fgts", {'{"a":b c}'}),
        ("args-double-escaped-str", {'{"a":"def run():\\\\n    return 1\\\\n"}'}),
        ("args-trailing-ws", {'{"a":"b c"} '}),
    ],
)
def test_arguments_are_spoilt(name: str, expected: set[str]) -> None:
    assert {joined(changed(name, ONE, seed)) for seed in range(9)} == expected
    assert changed(name, WORDS) is None


def test_arguments_without_a_string_have_none_to_spoil() -> None:
    numbers = chat(*in_pieces('{"a":', "1}"), shape.FINISH)
    for name in ("args-control-chars", "args-invalid-fgts", "args-double-escaped-str"):
        assert changed(name, numbers) is None


def test_arguments_without_punctuation_lose_none() -> None:
    assert changed("args-corrupt-punct", chat(*in_pieces("{:}"))) is None


def test_all_copies_of_the_arguments_are_spoilt() -> None:
    made = changed("args-control-chars", recorded("openai-responses"))
    draft = MutableExchange.of(made) if made else None
    assert draft
    for call in calls(draft):
        assert {copy.text for copy in call.copies} == {call.text}


def test_the_call_behind_an_empty_one_loses_its_arguments() -> None:
    assert arguments(changed("args-lost-after-empty-call", TWO)) == ["{}", ""]
    assert changed("args-lost-after-empty-call", ONE) is None
    free = chat(*in_pieces("{}"), *in_pieces("{}", index=1), schema=FREE)
    assert changed("args-lost-after-empty-call", free) is None


def test_another_seed_spoils_another_place() -> None:
    two = chat(*in_pieces('{"a":"x","b":"y"}'), shape.FINISH, schema=NEEDS)
    found = {joined(changed("args-control-chars", two, seed)) for seed in range(20)}
    assert found == {'{"a":"\nx","b":"y"}', '{"a":"x","b":"\ny"}'}
    assert SeededChoices(1).choose(1) == 0
