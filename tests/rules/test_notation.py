import pytest

from deltatape.rules._notation import QUOTES, notation_of


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("{'a': True, 'b': None}", "a Python dict"),
        ('{"a": (1, 2.5), "b": -3e4}', "a Python dict"),
        ("{:a=>1, :b=>:c}", "a Ruby hash"),
        ('{"a"=>nil}', "a Ruby hash"),
        ("{a: 1, b: [undefined]}", "an object in JavaScript's notation"),
        ('{"a": `x`}', "an object in JavaScript's notation"),
        ("{'a': 'it\\'s', 'b': {}}", "an object in single quotes"),
        ('{"a": 1,}', "JSON with a comma before its end"),
        ('{"a": [1, 2,]}', "JSON with a comma before its end"),
        ('{"a": Dave Smith }', "JSON with an unquoted value"),
        ('{"a": 1 /* one */, "b": [], // two\n "c": {} # three\n}', "JSON with a comment"),
        ('{"a": "x\ny"}', "JSON with a raw control character in a string"),
        ('{"a": "C:\\dir"}', "JSON with an escape that JSON does not have"),
        ('{"a" = 1}', "JSON with = in place of a colon"),
        ('{"a": NaN}', "JSON with NaN"),
        ('{{"a": 1}}', "an object in two pairs of braces, as in templates"),
        ("a: 1\nb:\n  - c: x", "YAML"),
    ],
)
def test_a_notation_that_models_write_is_known(text: str, name: str) -> None:
    found = notation_of(text)
    assert found is not None
    assert found.name == name


def test_quotes_that_are_not_escaped_are_a_habit_of_their_own() -> None:
    found = notation_of('{"a": "the "big" one"}')
    assert found is not None
    assert found.habits == {QUOTES}


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '{"city""Gent"}',
        'city":"Gent"}',
        '{"a":}',
        '{"a": 1} more',
        '{"a": "x',
        '{"a": "x\\',
        '{"a": 1 "b": 2}',
        '{"a": [1 2]}',
        '{"a" 1}',
        "{1: 2}",
        '{"a": ]}',
        "[1]",
        "",
        '{"a":' * 100 + "1" + "}" * 100,
        "{" + " " * 200_000,
    ],
)
def test_what_is_json_or_torn_is_in_no_other_notation(text: str) -> None:
    assert notation_of(text) is None
