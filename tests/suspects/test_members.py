from deltatape.suspects.members import member, number, objects, text_of, word


def test_what_has_another_type_is_as_good_as_absent() -> None:
    odd: dict[str, object] = {"a": 1, "b": "x", "c": [1, {}], "d": {"e": 2}}
    assert (member(odd, "a"), member(odd, "d")) == ({}, {"e": 2})
    assert ([*objects(odd, "a")], [*objects(odd, "c")]) == ([], [(1, {})])
    assert (word(odd, "a"), word(odd, "b")) == (None, "x")


def test_indexes_may_stand_in_strings() -> None:
    held = {"a": 1, "b": "2", "c": True, "d": "x", "e": "1" * 12, "f": "\u0662"}
    assert [number(held, key) for key in "abcdefg"] == [1, 2, None, None, None, None, None]


def test_values_are_written_as_the_wire_does() -> None:
    assert text_of({"a": [1, "é"]}) == '{"a":[1,"é"]}'
