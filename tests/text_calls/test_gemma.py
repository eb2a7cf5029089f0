import json

import pytest

from deltatape.text_calls import find_calls

Q = '<|"|>'


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        ("{}", {}),
        (f"{{a:{Q}x}},b:1{Q},n:-1.5,t:true}}", {"a": "x},b:1", "n": -1.5, "t": True}),
        (f"{{o:{{deep:[{Q}x{Q}, 2, {{k:null}}]}}}}", {"o": {"deep": ["x", 2, {"k": None}]}}),
        ("{ a b : some text , c:1 }", {"a b": "some text", "c": 1}),
        ("{true:<}", {"true": "<"}),
    ],
)
def test_bare_keys_and_quoted_strings_become_json(body: str, arguments: object) -> None:
    (call,) = find_calls(f"<|tool_call>call:f{body}<tool_call|>")
    assert (call.family, call.name, call.closed) == ("gemma", "f", True)
    assert json.loads(call.arguments) == arguments


def test_functiongemma_has_other_tokens() -> None:
    text = "<start_function_call>call:f{k:<escape>v<escape>}<end_function_call>"
    (call,) = find_calls(text)
    assert (call.family, call.arguments, call.end) == ("gemma", '{"k": "v"}', len(text))


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        ("{", "{"),
        ("{a", '{"a'),
        ("{a:", '{"a": '),
        ("{a:1", '{"a": 1'),
        ("{a:x", '{"a": "x'),
        (f"{{a:{Q}x", '{"a": "x'),
        ('{a:<|"', '{"a": '),
    ],
)
def test_a_call_that_is_cut_off_has_what_came(body: str, arguments: str) -> None:
    (call,) = find_calls(f"<|tool_call>call:f{body}")
    assert (call.arguments, call.closed) == (arguments, False)


def test_a_broken_object_is_kept_up_to_its_closer_as_it_is() -> None:
    (call,) = find_calls("<|tool_call>call:f{a:]}<tool_call|>")
    assert (call.arguments, call.closed) == ("{a:]}", True)
    assert find_calls("<|tool_call>call:f{a:]}") == ()


def test_a_name_that_is_none_is_talk() -> None:
    assert find_calls("<|tool_call>call:...{}<tool_call|>") == ()
    assert find_calls("<|tool_call>calls") == ()
