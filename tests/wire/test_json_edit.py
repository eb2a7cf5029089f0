import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.wire.json_edit import Path, append, at, drop, listed, put, quoted, source_at
from helpers.json_values import json_values

SPELLED = '{ "a": [1,  {"b" :"\\u00e9"}], "c":null }'
JSON = json_values(st.integers() | st.text(max_size=5), st.text(max_size=3))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("a", 0), '{ "a": [true,  {"b" :"\\u00e9"}], "c":null }'),
        (("a", 1, "b"), '{ "a": [1,  {"b" :true}], "c":null }'),
        (("c",), '{ "a": [1,  {"b" :"\\u00e9"}], "c":true }'),
        ((), "true"),
        (("d",), '{ "a": [1,  {"b" :"\\u00e9"}], "c":null,"d":true }'),
        (("a", 1, "d"), '{ "a": [1,  {"b" :"\\u00e9","d":true}], "c":null }'),
        (("a", 7), SPELLED),
        (("c", "d"), SPELLED),
        (("x", "y"), SPELLED),
    ],
)
def test_a_value_is_put_and_the_rest_keeps_its_spelling(path: Path, expected: str) -> None:
    assert put(SPELLED, path, "true") == expected


def test_a_new_member_is_spaced_as_the_one_before() -> None:
    assert put('{"a": 1}', ("b",), "2") == '{"a": 1, "b": 2}'
    assert put("{}", ("b",), "2") == '{"b":2}'


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ('{"a":1, "b":2}', ("a",), '{"b":2}'),
        ('{"a":1, "b":2}', ("b",), '{"a":1}'),
        ('{ "a":1 }', ("a",), "{  }"),
        ("[1,2,3]", (1,), "[1,3]"),
        ("[1]", (0,), "[]"),
        ('{"a":1,"a":2}', ("a",), '{"a":1}'),
        ('{"a":1}', ("b",), '{"a":1}'),
        ('{"a":1}', ("a", "b"), '{"a":1}'),
        ('{"a":1}', ("b", "c"), '{"a":1}'),
    ],
)
def test_a_member_goes_with_its_comma(text: str, path: Path, expected: str) -> None:
    assert drop(text, path) == expected


def test_an_element_is_added_at_the_end() -> None:
    assert append('{"a":[1, 2 ]}', ("a",), "3") == '{"a":[1, 2,3 ]}'
    assert append('{"a":[]}', ("a",), "3") == '{"a":[]}'
    assert append('{"a":[]}', ("b",), "3") == '{"a":[]}'


def test_a_path_is_found_in_values_and_in_their_source() -> None:
    value = json.loads(SPELLED)
    assert at(value, "a", 1, "b") == "é"
    assert at(value, "a", 2) is None
    assert at(value, "a", "b") is None
    assert listed(value, "a") == [1, {"b": "é"}]
    assert listed(value, "c") == ()
    assert source_at(SPELLED, ("a", 1)) == '{"b" :"\\u00e9"}'
    assert source_at(SPELLED, ("a", "b")) == ""


def test_a_string_is_quoted_as_plain_as_its_surroundings() -> None:
    assert quoted("é", plain=True) == '"\\u00e9"'
    assert quoted("é", plain=False) == '"é"'
    assert quoted("\ud83d", plain=False) == '"\\ud83d"'


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=3), JSON, min_size=1), JSON, st.data())
def test_edits_are_those_of_the_values(
    value: dict[str, object], new: object, data: st.DataObject
) -> None:
    key = data.draw(st.sampled_from([*value, "new"]))
    text = json.dumps(value)
    assert json.loads(put(text, (key,), json.dumps(new))) == {**value, key: new}
    left = {name: each for name, each in value.items() if name != key}
    assert json.loads(drop(text, (key,))) == left
