import pytest

from deltatape.text_calls import find_calls

OFFERED = {"get_weather": None, "get_time": None}


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "get_time", "parameters": {}}',
        '\n{"type": "function", "name": "get_time", "parameters": {}}\n',
        '[{"name": "get_time", "arguments": {}}]',
        "[get_time()]",
    ],
)
def test_a_text_that_is_nothing_but_a_call_of_an_offered_tool_is_one(text: str) -> None:
    (call,) = find_calls(text, OFFERED)
    assert (call.family, call.name, call.closed) == ("llama", "get_time", True)


def test_several_such_calls_are_separated_by_semicolons() -> None:
    text = '{"name": "get_time", "parameters": {}}; {"name": "get_weather", "parameters": {}}'
    assert [call.name for call in find_calls(text, OFFERED)] == ["get_time", "get_weather"]


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "other", "parameters": {}}',
        '{"name": "get_time", "of": "day"}',
        '{"name": "get_time", "parameters": {}} is a call',
        '{"name": "get_time", "parameters": {}}; {"name": "other", "parameters": {}}',
        '{"tools": ["get_time"], "parameters": 1}',
        '{"name": "get_time", "text": "(parameters)"}',
        "[get_time]",
    ],
)
def test_other_json_is_no_call(text: str) -> None:
    assert find_calls(text, OFFERED) == ()


def test_without_tools_json_is_no_call() -> None:
    assert find_calls('{"name": "get_time", "parameters": {}}') == ()


def test_code_for_the_interpreter_is_no_call() -> None:
    assert find_calls("<|python_tag|>import os\nprint(1)") == ()
    (call,) = find_calls('<|python_tag|>brave_search.call(query="x")<|eom_id|>')
    assert (call.name, call.arguments) == ("brave_search.call", '{"query": "x"}')


def test_lfm2_takes_json_and_is_open_without_its_end() -> None:
    (call,) = find_calls('<|tool_call_start|>[{"name": "f", "arguments": {}}]<|tool_call_end|>')
    assert (call.family, call.name, call.closed) == ("lfm2", "f", True)
    (call,) = find_calls("<|tool_call_start|>[f(a=1)]")
    assert (call.arguments, call.closed) == ('{"a": 1}', False)
    assert find_calls("<|tool_call_start|>(f)<|tool_call_end|>") == ()
