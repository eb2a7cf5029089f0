import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.suspects.parsers.failure import Where, failure_of
from deltatape.wire.json_value import parse

CASES = [
    ("", Where.VALUE, 0),
    ('{"a":', Where.VALUE, 5),
    ("[", Where.ELEMENT, 1),
    ("{", Where.FIRST_KEY, 1),
    ('{"a":1,', Where.KEY, 7),
    ('{"a"', Where.COLON, 4),
    ('{"a":1', Where.IN_OBJECT, 6),
    ("[1", Where.IN_ARRAY, 2),
    ("{}{", Where.AFTER, 2),
    ('"a', Where.STRING, 2),
    ('"a\n"', Where.CONTROL, 2),
    ('"\\', Where.STRING, 2),
    ('"\\x"', Where.ESCAPE, 2),
    ('"\\u12"', Where.HEX, 5),
    ('"\\u12', Where.STRING, 5),
    ("trux", Where.LITERAL, 3),
    ("-", Where.MINUS, 1),
    ("1.", Where.FRACTION, 2),
    ("1e", Where.EXPONENT, 2),
    ("1e+", Where.EXPONENT, 3),
    ("01", Where.LEADING_ZERO, 1),
    ("1.5.", Where.AFTER, 3),
    ("1e5e", Where.AFTER, 3),
]


@pytest.mark.parametrize(("text", "where", "at"), CASES)
def test_the_first_failure_is_found(text: str, where: Where, at: int) -> None:
    failure = failure_of(text)
    assert failure
    assert (failure.where, failure.at) == (where, at)
    assert failure.ended is (at >= len(text))
    assert failure.sign == text[at : at + 1]


@pytest.mark.parametrize(
    "text", ["{}", "[]", '{"a":[1,-2.5e+3,true,null,"\\u00e9\\n"],"b":{}}', " 0 ", '"x"', "false"]
)
def test_json_has_none(text: str) -> None:
    json.loads(text)
    assert failure_of(text) is None


@settings(max_examples=60)
@given(st.text(alphabet='{}[],:"\\u0a1-.eE+ tn\n', max_size=30))
def test_it_refuses_what_the_strict_parser_refuses(text: str) -> None:
    assert (failure_of(text) is None) is (parse(text).error is None)
