import pytest

from deltatape.wire.json_edit import at, listed
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
    of_type,
    pasted,
    recorded,
    said,
    told,
)

FREE = {"type": "object", "properties": {}}
DELTA = "response.function_call_arguments.delta"


def gemini(*parts: str, finish: str = '"STOP"') -> bytes:
    """Events of one part each; the last one says why it stopped."""
    events = [f'{{"content":{{"parts":[{part}]}}}}' for part in parts]
    events[-1] = events[-1][:-1] + f',"finishReason":{finish}}}'
    return "".join(f'data: {{"candidates":[{one}]}}\n\n' for one in events).encode()


def column(name: str, exchange: object = ONE) -> list[object]:
    """The arguments of each entry after a mutation."""
    made = changed(name, exchange)  # type: ignore[arg-type]
    return [at(one, "function", "arguments") for one in told(made)]


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
    (entry,) = told(changed("args-absent", free))
    assert at(entry, "function") == {"name": "get"}
    assert changed("args-absent", ONE) is None


def test_arguments_are_an_object() -> None:
    assert column("args-object") == [{"a": "b c"}]
    assert changed("args-object", chat(*in_pieces("{1"))) is None


def test_fragments_grow() -> None:
    assert column("args-cumulative") == ["", '{"a"', '{"a":"b c"', '{"a":"b c"}']
    assert changed("args-cumulative", WHOLE) is None


def test_the_last_fragment_repeats_all() -> None:
    assert joined(changed("args-final-repeat", ONE)) == joined(ONE) * 2
    before = recorded("openai-responses")
    made = changed("args-final-repeat", before)
    assert len(of_type(made, DELTA)) == len(of_type(before, DELTA)) + 1
    numbers = [at(value, "sequence_number") for value in said(made)]
    assert numbers == list(range(len(numbers)))
    assert changed("args-final-repeat", WHOLE) is None


def test_an_empty_custom_stands_beside() -> None:
    assert {str(at(one, "custom")) for one in told(changed("args-custom-empty", TWO))} == {"{}"}


def test_the_part_that_closes_a_call_is_missing() -> None:
    body = gemini('{"functionCall":{"name":"f","willContinue":true}}', '{"functionCall":{}}')
    parts = [
        listed(value, "candidates", 0, "content", "parts")
        for value in said(changed("g-partial-args-open", pasted(body)))
    ]
    assert parts == [[{"functionCall": {"name": "f", "willContinue": True}}], []]
    assert changed("g-partial-args-open", WORDS) is None


def test_the_finish_reason_comes_behind_the_call() -> None:
    body = gemini('{"text":"x"}', '{"functionCall":{"name":"f"}}')
    made = said(changed("g-finish-later-chunk", pasted(body)))
    assert [at(value, "candidates", 0, "finishReason") for value in made] == [None, None, "STOP"]
    assert at(made[2], "candidates", 0, "content", "parts") == [{"text": ""}]


@pytest.mark.parametrize("parts", [('{"text":"x"}',), ('{"functionCall":{}}', '{"text":""}')])
def test_a_finish_reason_without_a_call_stays(parts: tuple[str, ...]) -> None:
    assert changed("g-finish-later-chunk", pasted(gemini(*parts))) is None


def test_the_tools_of_these_tests_need_something() -> None:
    assert NEEDS["required"]
