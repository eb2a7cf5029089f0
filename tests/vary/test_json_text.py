import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.vary.json_text import escaped, reversed_members, spaced

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 999) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=4)


@given(OBJECTS, st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_value_stays_the_same(value: dict[str, object], plain: bool) -> None:  # noqa: FBT001
    text = json.dumps(value, ensure_ascii=plain)
    for change in (spaced, escaped, reversed_members):
        assert json.loads(change(text)) == value


def test_blanks_stand_on_the_outermost_level_only() -> None:
    assert spaced('{"a":[1,{"b":2}],"c":"x,y"}') == '{  "a" : [1,{"b":2}] , "c" : "x,y"  }'.replace(
        "{  ", "{ "
    ).replace("  }", " }")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"\u00e9\U0001f326 a"', '"\\u00e9\\ud83c\\udf26 a"'),
        ('"\\u00e9"', '"\\u00e9"'),
        ('"\udcff"', '"\udcff"'),
    ],
)
def test_what_is_beyond_ascii_is_escaped(text: str, expected: str) -> None:
    assert escaped(text) == expected


def test_members_are_turned_round_unless_a_name_comes_twice() -> None:
    text = '{ "a": {"x":1,"y":[2,3]} , "b":"," }'
    assert reversed_members(text) == '{"b":",","a": {"x":1,"y":[2,3]}}'
    assert reversed_members('{"a":1,"a":2}') == '{"a":1,"a":2}'
    assert reversed_members("{}") == "{}"
