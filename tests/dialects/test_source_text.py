import pytest

from deltatape.dialects._source_text import Element, Elements, MemberValue, SoleMember, WholeString

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
