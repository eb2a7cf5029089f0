import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.wire.json_scan import DEPTH_LIMIT, ScanState, scan
from deltatape.wire.json_value import (
    VALUES_LIMIT,
    canonical,
    elements_of,
    join_pairs,
    parse,
    read_object,
    reads_alike,
    slice_at,
    values_in,
)


def test_a_value_is_parsed() -> None:
    parsed = parse(' {"a": [1, 2.5, "x", null]} ')
    assert (parsed.value, parsed.error) == ({"a": [1, 2.5, "x", None]}, None)


@pytest.mark.parametrize("text", ["", "{", '{"a":1}x', "NaN", "[-Infinity]", "\ufeff{}", "[1,]"])
def test_invalid_json_has_an_error_and_no_value(text: str) -> None:
    parsed = parse(text)
    assert parsed.value is None
    assert parsed.error is not None


def test_an_error_says_where_and_why() -> None:
    error = parse('{"a": Dave}').error
    assert error is not None
    assert str(error) == "unexpected 'D', expected a value (offset 6)"
    assert (error.verdict, error.offset) == (ScanState.MALFORMED, 6)


def test_of_duplicate_keys_the_last_value_is_kept() -> None:
    assert parse('{"a":1,"a":2}').value == {"a": 2}


@pytest.mark.parametrize("text", ["\xa0{}", "{}\u2003", "{}\f", "\x1f1", "1\0"])
def test_only_the_four_blanks_of_json_may_stand_around_a_value(text: str) -> None:
    assert parse(f" \t\r\n{text}").error is not None
    assert parse(f"{text}\r\n").error is not None


def test_an_integer_too_long_for_python_is_what_other_clients_see() -> None:
    assert parse("[" + "9" * 5000 + ",-" + "9" * 5000 + ",7]").value == [
        float("inf"),
        -float("inf"),
        7,
    ]


def test_deep_nesting_is_an_error_and_many_brackets_are_not() -> None:
    error = parse("[" * 100_000).error
    assert error is not None
    assert error.reason.startswith("nested too deeply")
    assert parse('{"a":"' + "{" * 600 + '"}').value == {"a": "{" * 600}
    assert parse("[" * 512 + "]" * 512).error is None
    assert parse("[" * 513 + "]" * 513).error is not None
    assert parse('["\\"]",' + "[" * 511 + "]" * 511 + "]").error is None
    assert parse('["\\"]",' + "[" * 512 + "]" * 512 + "]").error is not None
    assert parse("{" * 600 + "}" * 600).error is not None
    assert parse('"' + "[" * 600).error is not None
    assert parse("[" + "[]," * 600 + "[]]").value == [[]] * 601
    assert parse("[" + '{"a":1},' * 600 + "1]").value == [{"a": 1}] * 600 + [1]


def test_a_value_that_is_too_deep_is_not_hidden_behind_one_with_the_same_key() -> None:
    deep = "[" * 600 + "]" * 600
    assert parse('{"a":' + deep + ',"a":1}').error is not None
    assert read_object('{"a":' + deep + ',"a":1}') is None
    shallow = "[" + "[]," * 600 + "1]"
    assert parse('{"a":' + shallow + ',"a":1}').value == {"a": 1}


@given(st.text('{}[]",:\\1 a', max_size=40))
def test_text_is_accepted_exactly_if_the_scanner_takes_it_for_one_value(text: str) -> None:
    assert (parse(text).error is None) == (scan(text).verdict is ScanState.COMPLETE)


def test_an_object_is_read_in_short_where_nothing_is_unusual() -> None:
    assert read_object('{"a":[1,"\\u00e9"],"a":{}}') == {"a": {}}
    assert read_object('{"a":"[{"}') == {"a": "[{"}
    assert read_object('{"a":"' + "[" * 1000 + '"}') == {"a": "[" * 1000}


@pytest.mark.parametrize(
    "text", ["", " {}", "{} ", "{", "[]", "1", '{"a":NaN}', '{"a":' + "9" * 5000 + "}", "x", "{}{}"]
)
def test_what_is_not_an_object_or_unusual_is_left_to_the_parser(text: str) -> None:
    assert read_object(text) is None


def test_an_object_that_is_too_deep_is_none() -> None:
    assert read_object('{"a":' * 512 + "1" + "}" * 512) is not None
    assert read_object('{"a":' * 513 + "1" + "}" * 513) is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ((), '{"a": [1, {"b" : { "x": 1.0 } }, "]"], "c":"\\"}", "a\\u0062": -2e5}'),
        (("a",), '[1, {"b" : { "x": 1.0 } }, "]"]'),
        (("a", 0), "1"),
        (("a", 1, "b"), '{ "x": 1.0 }'),
        (("a", 1, "b", "x"), "1.0"),
        (("a", 2), '"]"'),
        (("c",), '"\\"}"'),
        (("ab",), "-2e5"),
        (("a", 3), None),
        (("a", 9), None),
        (("zz",), None),
        (("c", 0), None),
        (("c", "x"), None),
    ],
)
def test_a_slice_is_the_exact_source_of_a_nested_value(
    path: tuple[str | int, ...], expected: str | None
) -> None:
    text = ' {"a": [1, {"b" : { "x": 1.0 } }, "]"], "c":"\\"}", "a\\u0062": -2e5}\n'
    assert slice_at(text, path) == expected


def test_a_slice_of_duplicate_keys_is_the_last_one_as_for_parsers() -> None:
    assert slice_at('{"a":1,"a":[2]}', ("a",)) == "[2]"


@pytest.mark.parametrize(
    ("text", "elements"),
    [("[]", []), (" [ ] ", []), ('[1, "]" ,{"a":[2]},[]]', ["1", '"]"', '{"a":[2]}', "[]"])],
)
def test_the_elements_of_an_array_are_taken_apart_in_one_pass(
    text: str, elements: list[str]
) -> None:
    assert elements_of(text) == elements


def test_a_thousand_values_after_each_other_are_enough() -> None:
    assert len(values_in("{}" * VALUES_LIMIT) or ()) == VALUES_LIMIT
    assert values_in("{}" * (VALUES_LIMIT + 1)) is None


def test_nothing_lies_in_empty_containers() -> None:
    assert (slice_at("[]", (0,)), slice_at("{}", ("a",))) == (None, None)


def test_values_that_follow_each_other_are_taken_apart() -> None:
    assert values_in('{"a":1} {"b":"}"}[]"x"\n') == ['{"a":1}', '{"b":"}"}', "[]", '"x"']
    assert values_in(" ") == []


@pytest.mark.parametrize("text", ['{"a":1}}', '{"a":1}{"a"', "{}12", "12", '{"a":x}', '{}"x'])
def test_anything_else_is_no_sequence_of_values(text: str) -> None:
    assert values_in(text) is None


def test_equal_values_have_equal_canonical_texts() -> None:
    assert canonical('{"b": 1, "a":[ ]}') == canonical('{"a":[],"b":1}') == '{"a":[],"b":1}'
    assert canonical("{") is None


def test_a_surrogate_pair_cut_between_two_texts_becomes_one_character() -> None:
    assert join_pairs("a\ud83d" + "\ude00b") == "a\U0001f600b"
    assert join_pairs("\ude00\ud83d") == "\ude00\ud83d"
    assert join_pairs("plain") == "plain"


@given(st.text('{}[]",:01.e-\\u dtruefalsn') | st.text())
def test_parse_never_raises_and_agrees_with_the_standard_library(text: str) -> None:
    def refuse(_: str) -> object:
        raise ValueError

    try:
        expected = json.loads(text, parse_constant=refuse)
    except ValueError:
        assert parse(text).error is not None
    else:
        assert parse(text).value == expected
        assert slice_at(text, ()) == text.strip(" \t\r\n")


def test_brackets_in_strings_and_under_equal_keys_are_not_depth() -> None:
    many = ",".join(["{}"] * DEPTH_LIMIT)
    assert parse(f'[{many},"{{"]').error is None
    deep = "[" * (DEPTH_LIMIT + 1) + "]" * (DEPTH_LIMIT + 1)
    assert parse(f'{{"a":{deep}}}').error
    assert parse(f'{{"a":{deep},"a":1}}').error
    assert parse(f'{{"a":"{deep}"}}').error is None


@pytest.mark.parametrize(
    ("text", "alike"),
    [
        ('{"a":{"b":1},"c":["x"]}', True),
        (" [1] ", True),
        ('{"a":1,"a":2}', False),
        ('{"a":"\\ud83d"}', False),
        ('{"a":"\\u0041"}', False),
        ('{"a":"é"}', False),
        ('{"a"', False),
    ],
)
def test_json_without_pitfalls_is_recognised_quickly(text: str, *, alike: bool) -> None:
    assert reads_alike(text) is alike


def test_json_in_a_string_is_not_depth_of_the_text_around_it() -> None:
    inner = json.dumps([{"a": [["b"]]}] * DEPTH_LIMIT)
    assert read_object(json.dumps({"arguments": inner})) == {"arguments": inner}
    deep = '{"a":' * (DEPTH_LIMIT + 1) + "1" + "}" * (DEPTH_LIMIT + 1)
    assert parse(f'{{"s":"{{\\\\","a":{deep}}}').error
