from deltatape.dialects._source import Element, Elements, Member, Whole

TEXT = '{"a": [ 1 , {"b" : "x"}, []], "e": []}'


def test_the_source_of_a_nested_value_is_exact() -> None:
    elements = Elements(Member(Whole(TEXT), "a"))
    assert [Element(elements, place).text for place in range(3)] == ["1", '{"b" : "x"}', "[]"]
    assert Member(Element(elements, 1), "b").text == '"x"'
    assert Member(Whole(TEXT), "e").text == "[]"


def test_nothing_stands_where_no_key_is() -> None:
    assert Member(Whole(TEXT), "z").text == ""
