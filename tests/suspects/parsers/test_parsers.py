import pytest

from deltatape.suspects.parsers import parser_errors, stands_in


def test_every_language_has_its_words() -> None:
    said = parser_errors('{"a":')
    assert said[0] == "Unexpected end of JSON input"
    assert "Expecting value: line 1 column 6 (char 5)" in said
    assert "unexpected end of JSON input" in said
    assert "EOF while parsing a value at line 1 column 5" in said
    assert len(said) == len(set(said))


def test_json_has_no_error() -> None:
    assert parser_errors("{}") == ()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("at position 1", True),
        ("Error: at position 1 (line 1)", True),
        ("at position 12", False),
        ("flat position 1", False),
        ("at position 12, at position 1", True),
        ("", False),
    ],
)
def test_an_error_stands_whole_in_a_line(text: str, found: bool) -> None:  # noqa: FBT001
    assert stands_in("at position 1", text) is found
