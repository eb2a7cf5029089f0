import json
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.suspects.parsers import (
    ParseFailure,
    ParseState,
    dotnet,
    failure_of,
    go,
    is_quoted_in,
    java,
    parser_errors,
    python,
    rust,
    v8,
)
from deltatape.wire.json_value import parse
from helpers.needed import skip_unless

Speaker = Callable[[ParseFailure], Iterator[str]]


def test_every_language_is_asked() -> None:
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
    assert is_quoted_in("at position 1", text) is found


CASES = [
    ("", ParseState.VALUE, 0),
    ('{"a":', ParseState.VALUE, 5),
    ("[", ParseState.ELEMENT, 1),
    ("{", ParseState.FIRST_KEY, 1),
    ('{"a":1,', ParseState.KEY, 7),
    ('{"a"', ParseState.COLON, 4),
    ('{"a":1', ParseState.IN_OBJECT, 6),
    ("[1", ParseState.IN_ARRAY, 2),
    ("{}{", ParseState.AFTER, 2),
    ('"a', ParseState.STRING, 2),
    ('"a\n"', ParseState.CONTROL, 2),
    ('"\\', ParseState.STRING, 2),
    ('"\\x"', ParseState.ESCAPE, 2),
    ('"\\u12"', ParseState.HEX, 5),
    ('"\\u12', ParseState.STRING, 5),
    ("trux", ParseState.LITERAL, 3),
    ("-", ParseState.MINUS, 1),
    ("1.", ParseState.FRACTION, 2),
    ("1e", ParseState.EXPONENT, 2),
    ("1e+", ParseState.EXPONENT, 3),
    ("01", ParseState.LEADING_ZERO, 1),
    ("1.5.", ParseState.AFTER, 3),
    ("1e5e", ParseState.AFTER, 3),
]


@pytest.mark.parametrize(("text", "where", "at"), CASES)
def test_the_first_failure_is_found(text: str, where: ParseState, at: int) -> None:
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


@given(st.text(alphabet='{}[],:"\\u0a1-.eE+ tn\n', max_size=30))
def test_it_refuses_what_the_strict_parser_refuses(text: str) -> None:
    assert (failure_of(text) is None) is (parse(text).error is None)


def _failure(text: str) -> ParseFailure:
    failure = failure_of(text)
    assert failure
    return failure


SAID = [
    (v8, '{"a":}', "Unexpected token } in JSON at position 5"),
    (v8, '{"a":"x', "Unterminated string in JSON at position 7 (line 1 column 8)"),
    (v8, "{}\n{", "Unexpected non-whitespace character after JSON at position 3 (line 2 column 1)"),
    (v8, "{'a'", "Expected property name or '}' in JSON at position 1 (line 1 column 2)"),
    (v8, "[object Object]", '"[object Object]" is not valid JSON'),
    (v8, "[object Object]", "Unexpected token o in JSON at position 1"),
    (v8, "x" * 30, f"Unexpected token 'x', \"{'x' * 10}\"... is not valid JSON"),
    (v8, "", "Unexpected end of JSON input"),
    (go, "", "unexpected end of JSON input"),
    (go, "{}>", "invalid character '>' after top-level value"),
    (go, "x", "invalid character 'x' looking for beginning of value"),
    (go, "{'", r"invalid character '\'' looking for beginning of object key string"),
    (go, '{"a" 1', "invalid character '1' after object key"),
    (go, '{"a":1 2', "invalid character '2' after object key:value pair"),
    (go, '[1 "', "invalid character '\"' after array element"),
    (go, '"\n"', r"invalid character '\n' in string literal"),
    (go, "nulL", "invalid character 'L' in literal null (expecting 'l')"),
    (go, "01", "invalid character '1' after top-level value"),
    (go, "[01", "invalid character '1' after array element"),
    (go, "-x", "invalid character 'x' in numeric literal"),
    (go, "nul", "invalid character ' ' in literal null (expecting 'l')"),
    (go, "é", "invalid character 'Ã' looking for beginning of value"),
    (go, "\x01", r"invalid character '\x01' looking for beginning of value"),
    (rust, "", "EOF while parsing a value at line 1 column 0"),
    (rust, '{"a":1', "EOF while parsing an object at line 1 column 6"),
    (rust, '{"a":\n"x', "EOF while parsing a string at line 2 column 2"),
    (rust, "[1", "EOF while parsing a list at line 1 column 2"),
    (rust, "{}>", "trailing characters at line 1 column 3"),
    (rust, "x", "expected value at line 1 column 1"),
    (rust, '{"a":1,}', "trailing comma at line 1 column 8"),
    (rust, '{"a":1,x', "key must be a string at line 1 column 8"),
    (rust, "-x", "invalid number at line 1 column 2"),
    (java, "", "No content to map due to end-of-input"),
    (java, "", "End of input at line 1 column 1 path $"),
    (java, '{"a":"x', "Unexpected end-of-input in VALUE_STRING"),
    (java, '{"a":[1', "Unexpected end-of-input: expected close marker for Array"),
    (java, '{"a":', "Unexpected end-of-input: expected close marker for Object"),
    (java, "tru", "End of input at line 1 column"),
    (java, '{"a":}', "Unexpected character ('}' (code 125))"),
    (java, '{"a":€', "Unexpected character ('€' (code 8364 / 0x20ac))"),
    (java, '"x"x', "Expected BEGIN_OBJECT but was STRING"),
    (
        dotnet,
        " ",
        "The input does not contain any JSON tokens. Expected the input to start with a valid",
    ),
    (dotnet, '{"a":"x', "Expected end of string, but instead reached end of data."),
    (
        dotnet,
        '{"a":',
        (
            "Expected depth to be zero at the end of the JSON payload. There is an open JSON object"
            " or array that should be closed."
        ),
    ),
    (dotnet, "{}>", "'>' is invalid after a single JSON value. Expected end of data."),
    (dotnet, "nulL", "'n' is an invalid start of a value."),
    (
        dotnet,
        '"\n"',
        "'0x0A' is invalid within a JSON string. The string should be correctly escaped.",
    ),
    (dotnet, "-x", "'x' is an invalid end of a number."),
]
ONE = (rust, dotnet)
"""Those that have one text for a failure."""


def test_of_an_empty_text_java_has_one_message_per_parser() -> None:
    assert tuple(java(_failure(""))) == (
        "No content to map due to end-of-input",
        "End of input at line 1 column 1 path $",
    )


@pytest.mark.parametrize(("speak", "text", "said"), SAID)
def test_each_language_has_its_words(speak: Speaker, text: str, said: str) -> None:
    found = tuple(speak(_failure(text)))
    assert said in found
    assert speak not in ONE or len(found) == 1


TEXTS = (
    *("", "{", '{"a":', '{"a":1', "}", "{}{", "undefined", "[object Object]", '{"a":1}>', "nul"),
    *("{a:1}", "{'a':1}", '{"a":1,}', "[1,]", "1.", "1e", "-", "01", '{"a" 1}', '"\\x"', "NaN"),
    *('"\\u12"', '"a\nb"', '{"a":1}{"a":2}', "  ", '{"a":tru}', "abc", '{"a":"b', "10 20", ","),
    *('{"a":1,"b"}', '{"a":1} "x"', '{"a":1,"b" 2', " undefined", "[1 2", '["a" "b"]', "é"),
)
WHOLE = '{"city":"Paris","n":-1.5e3,"list":[1,2,{"c":"x\\ny"}],"d":null}'
SCRIPT = """
const said = JSON.parse(require("fs").readFileSync(0, "utf8")).map((text) => {
  try { JSON.parse(text); return null } catch (error) { return error.message }
});
console.log(JSON.stringify(said));
"""


def _texts() -> list[str]:
    chance = random.Random(3)
    found = [*TEXTS]
    for _ in range(400):
        at, to = sorted(chance.choices(range(len(WHOLE)), k=2))
        found += [WHOLE[:at], WHOLE[:at] + WHOLE[to:]]
        found.append(WHOLE[:at] + chance.choice('{}[],:"\\1-.e >\n') + WHOLE[at:])
    return found


def test_node_says_the_same() -> None:
    skip_unless(shutil.which("node"), "no Node.js")
    texts = _texts()
    run = subprocess.run(
        ["node", "-e", SCRIPT],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    for text, said in zip(texts, json.loads(run.stdout), strict=True):
        failure = failure_of(text)
        if said is None or failure is None:
            assert said is failure is None, text
        else:
            assert said in tuple(v8(failure)), text


@pytest.mark.slow
def test_python_says_what_it_says() -> None:
    for text in _texts():
        failure = failure_of(text)
        if failure is not None:
            said = tuple(python(failure))
            if not said:
                json.loads(text)  # NaN
            else:
                with pytest.raises(json.JSONDecodeError, match=re.escape(said[0])):
                    json.loads(text)


def test_texts_that_exhaust_python_have_no_words() -> None:
    assert tuple(python(_failure("[" * 100_000))) == ()
    assert tuple(python(_failure("NaN"))) == ()
