import json

import pytest

from deltatape.text_calls import find_calls
from deltatape.text_calls._notation import WrittenCall

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


@pytest.mark.parametrize("rest", ["", "</s>", "\n<|eot_id|>", "<|im_end|>\n", "\n</tool_call>"])
@pytest.mark.parametrize("fence", ["", "```json\n", "```\n", "```tool_call \n"])
def test_the_whole_text_may_be_fenced_and_end_with_a_token(fence: str, rest: str) -> None:
    text = '{"name": "get_time", "parameters": {}}'
    (call,) = find_calls(fence + text + ("\n```" if fence else "") + rest, OFFERED)
    assert (call.family, call.name, call.arguments) == ("llama", "get_time", "{}")


def test_fenced_json_between_prose_is_shown_to_the_user() -> None:
    text = '```json\n{"name": "get_time", "parameters": {}}\n```'
    assert find_calls(f"{text}\nThat calls it.", OFFERED) == ()
    assert find_calls(f"So:\n{text}", OFFERED) == ()
    assert find_calls(f"```python\n{text[8:]}", OFFERED) == ()


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
def test_other_json_is_not_a_call(text: str) -> None:
    assert find_calls(text, OFFERED) == ()


def test_without_tools_json_is_not_a_call() -> None:
    assert find_calls('{"name": "get_time", "parameters": {}}') == ()


def test_code_for_the_interpreter_is_not_a_call() -> None:
    assert find_calls("<|python_tag|>import os\nprint(1)") == ()
    (call,) = find_calls('<|python_tag|>brave_search.call(query="x")<|eom_id|>')
    assert (call.name, call.arguments) == ("brave_search", '{"query": "x"}')


def test_lfm2_takes_json_and_is_open_without_its_end() -> None:
    (call,) = find_calls('<|tool_call_start|>[{"name": "f", "arguments": {}}]<|tool_call_end|>')
    assert (call.family, call.name, call.closed) == ("lfm2", "f", True)
    (call,) = find_calls("<|tool_call_start|>[f(a=1)]")
    assert (call.arguments, call.closed) == ('{"a": 1}', False)
    assert find_calls("<|tool_call_start|>(f)<|tool_call_end|>") == ()


def read(call: str) -> tuple[WrittenCall, ...]:
    return find_calls(f"<|python_tag|>{call}")


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("f()", {}),
        ("f( a = 1 , b=-2.5e3 )", {"a": 1, "b": -2500.0}),
        ("f(a='x', b=\"it's\",)", {"a": "x", "b": "it's"}),
        (r"f(a='\'\n\x41\u00e9\q\\')", {"a": "'\nA\u00e9\\q\\"}),
        ("f(a=True, b=None, c=false)", {"a": True, "b": None, "c": False}),
        ("f(a={'k': [1, (2, 3)]}, b=[])", {"a": {"k": [1, [2, 3]]}, "b": []}),
        ("f(a='raw\nline')", {"a": "raw\nline"}),
        ("f(a='),]')", {"a": "),]"}),
    ],
)
def test_literals_become_json(call: str, arguments: object) -> None:
    (written,) = read(call)
    assert (written.name, json.loads(written.arguments), written.closed) == ("f", arguments, True)


@pytest.mark.parametrize(
    "call",
    [
        "f(1)",
        "f(a=b)",
        "f(a=1 b=2)",
        "f(a=[1,])",
        "f(a=])",
        "f(a=1+2)",
        "f(a=)",
        "f x",
        "import os",
    ],
)
def test_what_is_not_a_call_with_literals_is_none(call: str) -> None:
    assert read(f"{call} \n") == ()


@pytest.mark.parametrize(
    ("call", "name", "arguments"),
    [
        ("ge", "", ""),
        ("get(", "get", ""),
        ("get(a", "get", ""),
        ("get(a=", "get", '{"a": '),
        ("get(a=1", "get", '{"a": 1'),
        ("get(a=[Tru", "get", '{"a": ['),
        ("get(a='x", "get", '{"a": "x'),
        ("get(a=1,", "get", '{"a": 1'),
        ("get(a=1, b='", "get", '{"a": 1, "b": "'),
    ],
)
def test_a_call_that_is_cut_off_has_what_came(call: str, name: str, arguments: str) -> None:
    (written,) = read(call)
    assert (written.name, written.arguments, written.closed) == (name, arguments, False)


def test_a_list_has_several_calls_and_may_be_broken_behind_one() -> None:
    assert [one.name for one in read("[f(), g(a=1)]")] == ["f", "g"]
    assert [one.closed for one in read("[f(), g(a=")] == [True, False]
    assert [one.name for one in read("[f(); g()]")] == ["f"]
    assert [one.name for one in read("[f(), 7]")] == ["f"]
    assert [one.name for one in read("[f()")] == ["f"]
    assert read("[7]") == ()
