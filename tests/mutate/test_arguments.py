import json

import pytest

from deltatape.model.exchange import Exchange
from deltatape.mutate import SeededChoices
from deltatape.mutate._calls import calls
from deltatape.wire.json_edit import at, listed
from helpers import chat as shape
from helpers.mutated import (
    NEEDS,
    ONE,
    TWO,
    WHOLE,
    WORDS,
    call_entries,
    changed,
    chat,
    draft_of,
    event_values,
    imported,
    in_pieces,
    joined_arguments,
    of_type,
    recorded,
)

FREE = {"type": "object", "properties": {}}
DELTA = "response.function_call_arguments.delta"
SCHEMALESS = chat(*in_pieces("{}"), shape.FINISH, schema=FREE)


def arguments(exchange: Exchange | None) -> list[str]:
    """The arguments of every call."""
    assert exchange
    return [call.text for call in calls(draft_of(exchange))]


def gemini(*parts: str, finish: str = '"STOP"') -> bytes:
    """Events of one part each; the last one says why it stopped."""
    events = [f'{{"content":{{"parts":[{part}]}}}}' for part in parts]
    events[-1] = events[-1][:-1] + f',"finishReason":{finish}}}'
    return "".join(f'data: {{"candidates":[{one}]}}\n\n' for one in events).encode()


def column(name: str, exchange: object = ONE) -> list[object]:
    """The arguments of each entry after a mutation."""
    made = changed(name, exchange)  # type: ignore[arg-type]
    return [at(one, "function", "arguments") for one in call_entries(made)]


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
    assert made
    assert all(call.pieces[0].text == "{}" for call in calls(draft_of(made)))


def test_only_the_first_entry_of_a_call_in_two_opens_it() -> None:
    first, second = call_entries(changed("args-empty-obj-prefix", WHOLE))
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
    assert {joined_arguments(changed(name, ONE, seed)) for seed in range(9)} == expected
    assert changed(name, WORDS) is None


def test_arguments_without_a_string_have_none_to_spoil() -> None:
    numbers = chat(*in_pieces('{"a":', "1}"), shape.FINISH)
    for name in ("args-control-chars", "args-invalid-fgts", "args-double-escaped-str"):
        assert changed(name, numbers) is None


def test_arguments_without_punctuation_lose_none() -> None:
    assert changed("args-corrupt-punct", chat(*in_pieces("{:}"))) is None


def test_all_copies_of_the_arguments_are_spoilt() -> None:
    made = changed("args-control-chars", recorded("openai-responses"))
    assert made
    for call in calls(draft_of(made)):
        assert {copy.text for copy in call.copies} == {call.text}


def test_the_call_behind_an_empty_one_loses_its_arguments() -> None:
    assert arguments(changed("args-lost-after-empty-call", TWO)) == ["{}", ""]
    assert changed("args-lost-after-empty-call", ONE) is None
    free = chat(*in_pieces("{}"), *in_pieces("{}", index=1), schema=FREE)
    assert changed("args-lost-after-empty-call", free) is None


def test_another_seed_spoils_another_place() -> None:
    two = chat(*in_pieces('{"a":"x","b":"y"}'), shape.FINISH, schema=NEEDS)
    found = {joined_arguments(changed("args-control-chars", two, seed)) for seed in range(20)}
    assert found == {'{"a":"\nx","b":"y"}', '{"a":"x","b":"\ny"}'}
    assert SeededChoices(1).choose(1) == 0


def test_a_stream_ends_behind_a_name() -> None:
    assert column("args-empty-lost") == [""]
    assert changed("args-empty-lost", WHOLE) is None


def test_arguments_are_null_or_lost() -> None:
    assert column("args-null") == [None] * 4
    assert column("args-lost-in-one-delta") == [""]
    free = chat(*in_pieces('{"a":1}'), schema=FREE)
    assert changed("args-null", free) is None
    assert changed("args-lost-in-one-delta", free) is None


def test_a_tool_that_needs_nothing_is_called_without_the_key() -> None:
    free = chat(*in_pieces("{", "}"), shape.FINISH, schema=FREE)
    (entry,) = call_entries(changed("args-absent", free))
    assert at(entry, "function") == {"name": "get"}
    assert changed("args-absent", ONE) is None


def test_arguments_are_an_object() -> None:
    assert column("args-object") == [{"a": "b c"}]
    assert changed("args-object", chat(*in_pieces("{1"))) is None


def test_fragments_grow() -> None:
    assert column("args-cumulative") == ["", '{"a"', '{"a":"b c"', '{"a":"b c"}']
    assert changed("args-cumulative", WHOLE) is None


def test_the_last_fragment_repeats_all() -> None:
    assert joined_arguments(changed("args-final-repeat", ONE)) == joined_arguments(ONE) * 2
    before = recorded("openai-responses")
    made = changed("args-final-repeat", before)
    assert len(of_type(made, DELTA)) == len(of_type(before, DELTA)) + 1
    numbers = [at(value, "sequence_number") for value in event_values(made)]
    assert numbers == list(range(len(numbers)))
    assert changed("args-final-repeat", WHOLE) is None


def test_an_empty_custom_stands_beside() -> None:
    assert {str(at(one, "custom")) for one in call_entries(changed("args-custom-empty", TWO))} == {
        "{}"
    }


def test_the_part_that_closes_a_call_is_missing() -> None:
    body = gemini('{"functionCall":{"name":"f","willContinue":true}}', '{"functionCall":{}}')
    parts = [
        listed(value, "candidates", 0, "content", "parts")
        for value in event_values(changed("g-partial-args-open", imported(body)))
    ]
    assert parts == [[{"functionCall": {"name": "f", "willContinue": True}}], []]
    assert changed("g-partial-args-open", WORDS) is None


def test_the_finish_reason_comes_behind_the_call() -> None:
    body = gemini('{"text":"x"}', '{"functionCall":{"name":"f"}}')
    made = event_values(changed("g-finish-later-chunk", imported(body)))
    assert [at(value, "candidates", 0, "finishReason") for value in made] == [None, None, "STOP"]
    assert at(made[2], "candidates", 0, "content", "parts") == [{"text": ""}]


@pytest.mark.parametrize("parts", [('{"text":"x"}',), ('{"functionCall":{}}', '{"text":""}')])
def test_a_finish_reason_without_a_call_stays(parts: tuple[str, ...]) -> None:
    assert changed("g-finish-later-chunk", imported(gemini(*parts))) is None
