import pytest

from deltatape.suspects.parsers.compiled import dotnet, go, java, rust
from deltatape.suspects.parsers.failure import Failure, failure_of


def _failure(text: str) -> Failure:
    failure = failure_of(text)
    assert failure
    return failure


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "unexpected end of JSON input"),
        ("{}>", "invalid character '>' after top-level value"),
        ("x", "invalid character 'x' looking for beginning of value"),
        ("{'", r"invalid character '\'' looking for beginning of object key string"),
        ('{"a" 1', "invalid character '1' after object key"),
        ('{"a":1 2', "invalid character '2' after object key:value pair"),
        ('[1 "', "invalid character '\"' after array element"),
        ('"\n"', r"invalid character '\n' in string literal"),
        ("nulL", "invalid character 'L' in literal null (expecting 'l')"),
        ("01", "invalid character '1' after top-level value"),
        ("[01", "invalid character '1' after array element"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("nul", "invalid character ' ' in literal null (expecting 'l')"),
        ("é", "invalid character 'Ã' looking for beginning of value"),
        ("\x01", r"invalid character '\x01' looking for beginning of value"),
    ],
)
def test_go(text: str, said: str) -> None:
    assert said in tuple(go(_failure(text)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "EOF while parsing a value at line 1 column 0"),
        ('{"a":1', "EOF while parsing an object at line 1 column 6"),
        ('{"a":\n"x', "EOF while parsing a string at line 2 column 2"),
        ("[1", "EOF while parsing a list at line 1 column 2"),
        ("{}>", "trailing characters at line 1 column 3"),
        ("x", "expected value at line 1 column 1"),
        ('{"a":1,}', "trailing comma at line 1 column 8"),
        ('{"a":1,x', "key must be a string at line 1 column 8"),
        ("-x", "invalid number at line 1 column 2"),
    ],
)
def test_rust(text: str, said: str) -> None:
    assert tuple(rust(_failure(text))) == (said,)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "No content to map due to end-of-input"),
        ("", "End of input at line 1 column 1 path $"),
        ('{"a":"x', "Unexpected end-of-input in VALUE_STRING"),
        ('{"a":[1', "Unexpected end-of-input: expected close marker for Array"),
        ('{"a":', "Unexpected end-of-input: expected close marker for Object"),
        ("tru", "End of input at line 1 column"),
        ('{"a":}', "Unexpected character ('}' (code 125))"),
        ('{"a":€', "Unexpected character ('€' (code 8364 / 0x20ac))"),
        ('"x"x', "Expected BEGIN_OBJECT but was STRING"),
    ],
)
def test_java(text: str, said: str) -> None:
    assert said in tuple(java(_failure(text)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (" ", "The input does not contain any JSON tokens. Expected the input to start with"),
        ('{"a":"x', "Expected end of string, but instead reached end of data."),
        ('{"a":', "Expected depth to be zero at the end of the JSON payload."),
        ("{}>", "'>' is invalid after a single JSON value. Expected end of data."),
        ("nulL", "'n' is an invalid start of a value."),
        ('"\n"', "'0x0A' is invalid within a JSON string."),
        ("-x", "'x' is an invalid end of a number."),
    ],
)
def test_dotnet(text: str, said: str) -> None:
    assert next(dotnet(_failure(text))).startswith(said)
