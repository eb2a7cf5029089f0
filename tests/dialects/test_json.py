import pytest

from deltatape.dialects._json import (
    EVIDENCE_LIMIT,
    Element,
    Elements,
    MemberValue,
    SoleMember,
    WholeString,
    as_array,
    as_object,
    get_array,
    get_index,
    get_object,
    get_str,
    shown,
)

HOLDER: dict[str, object] = {"text": "x", "number": 1, "list": [1], "object": {"a": 1}, "nil": None}


def test_readers_give_a_value_of_their_type_and_nothing_else() -> None:
    assert [get_str(HOLDER, key) for key in HOLDER] == ["x", None, None, None, None]
    assert [get_array(HOLDER, key) for key in HOLDER] == [(), (), [1], (), ()]
    assert [get_object(HOLDER, key) for key in HOLDER] == [None, None, None, {"a": 1}, None]
    assert (as_array({}), as_object([]), get_str({}, "text")) == (None, None, None)


@pytest.mark.parametrize(
    ("value", "index"),
    [
        *[(0, 0), (7, 7), ("0", 0), ("12", 12), (1.0, 1), (float("inf"), None), (1.5, None)],
        *[(-1, None), ("-1", None), ("", None), ("x", None), ("1" * 10, None)],
        *[("\u0661", None), (True, None), (None, None), ([], None)],
    ],
)
def test_an_index_has_several_spellings(value: object, index: int | None) -> None:
    assert get_index({"index": value}, "index") == index


def test_what_is_shown_is_short() -> None:
    assert shown({"a": "é"}) == '{"a": "é"}'
    assert len(shown("x" * 1000)) == EVIDENCE_LIMIT


TEXT = '{"a": [ 1 , {"b" : "x"}, []], "e": []}'


def test_the_source_of_a_nested_value_is_exact() -> None:
    elements = Elements(MemberValue(WholeString(TEXT), "a"))
    assert [Element(elements, place).text for place in range(3)] == ["1", '{"b" : "x"}', "[]"]
    assert MemberValue(Element(elements, 1), "b").text == '"x"'
    assert MemberValue(WholeString(TEXT), "e").text == "[]"


def test_nothing_stands_where_no_key_is() -> None:
    assert MemberValue(WholeString(TEXT), "z").text == ""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"x": {"key" : [1,  {"b":2}] }}', '[1,  {"b":2}]'),
        ('{"x": {"key":"a"}, "y": "key"}', "otherwise"),
        ('{"y": "key", "x": {"k\\u0065y": 1}}', "otherwise"),
        ('{"y": {"key": 2}, "x": {"k\\u0065y": 1}}', "otherwise"),
        ('{"x": {"k\\u0065y": 1}}', "otherwise"),
        (f'{{"key":{"1" * 5000}}}', "1" * 5000),
        (f'{{"key":{"1" * 70_000}}}', "otherwise"),
    ],
)
def test_a_sole_key_is_found_without_reading_the_rest(text: str, value: str) -> None:
    assert SoleMember(text, "key", WholeString("otherwise")).text == value
