import json

import pytest

from deltatape.text_calls import WrittenCall, find_calls


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
def test_what_is_no_call_with_literals_is_none(call: str) -> None:
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
