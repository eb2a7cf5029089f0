import json

import pytest

from deltatape.text_calls._notation import Offered, TextSource
from deltatape.text_calls._values import ObjectText, as_json, is_string, opened, quoted, typed

SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "whole": {"type": "integer"},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "either": {"type": ["integer", "null"]},
        "level": {"enum": [1, 2]},
        "fixed": {"const": True},
        "word": {"enum": ["a", "b"]},
        "place": {"$ref": "#/$defs/Place"},
        "lost": {"$ref": "#/$defs/None/at/all"},
        "loop": {"$ref": "#/properties/loop"},
        "any": {},
        "odd": 3,
    },
    "$defs": {"Place": {"type": "object"}},
}


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("text", "5", "5"),
        ("whole", "5", 5),
        ("whole", " 5\n", 5),
        ("whole", "five", "five"),
        ("maybe", "null", None),
        ("maybe", "5", "5"),
        ("either", "None", None),
        ("level", "2", 2),
        ("fixed", "True", True),
        ("word", "true", "true"),
        ("place", '{"x": 1}', {"x": 1}),
        ("lost", "1", "1"),
        ("loop", "1", "1"),
        ("any", "1", "1"),
        ("odd", "1", "1"),
        ("new", "1", "1"),
    ],
)
def test_text_becomes_what_the_schema_lets_it_be(key: str, text: str, value: object) -> None:
    assert json.loads(typed(TextSource("", {"f": SCHEMA}), "f", key, text)) == value


def test_without_a_schema_everything_is_a_string() -> None:
    every: tuple[Offered, ...] = ({}, {"f": None}, {"f": {}}, {"f": {"properties": 1}})
    for offered in every:
        source = TextSource("", offered)
        assert typed(source, "f", "k", "1") == '"1"'
        assert is_string(source, "f", "k")


def test_a_parameter_is_a_string_if_it_can_be_one() -> None:
    source = TextSource("", {"f": SCHEMA})
    assert [is_string(source, "f", key) for key in ("text", "maybe", "whole")] == [
        True,
        True,
        False,
    ]


def test_an_object_is_whole_or_as_far_as_it_came() -> None:
    written = ObjectText()
    assert written.text(whole=False) == ""
    assert written.text(whole=True) == "{}"
    written.add('a"', quoted("ü"))
    written.add("b", opened("x\n"))
    assert written.text(whole=False) == '{"a\\"": "ü", "b": "x\\n'


def test_json_and_the_words_of_python_are_taken_as_they_are() -> None:
    assert as_json(" 1e5 ") == "1e5"
    assert as_json("False") == "false"
    assert as_json("no") is None
