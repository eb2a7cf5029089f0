import json
import time  # noqa: TID251 - a hostile text must not take long

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.model.digest import ParserErrorKind
from deltatape.rules.parser_errors import (
    OF_FRAMEWORKS,
    OF_LIBRARIES,
    SIGNS,
    TABLE,
    ParserErrorPattern,
    in_log,
    in_message,
)


@pytest.mark.slow
@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry.pattern.pattern)
@settings(max_examples=10)
@given(st.data())
def test_every_text_has_a_word_that_is_looked_for_first(
    entry: ParserErrorPattern, data: st.DataObject
) -> None:
    text = data.draw(st.from_regex(entry.pattern, fullmatch=True)).lower()
    assert any(sign in text for sign in SIGNS)
    assert entry in OF_LIBRARIES or any(word in text for word in OF_FRAMEWORKS)


def test_libraries_come_before_frameworks_and_all_meanings_are_used() -> None:
    about = [entry.of_call for entry in TABLE]
    assert about == sorted(about)
    assert {entry.means for entry in TABLE} == set(ParserErrorKind)


def test_the_errors_of_our_own_parser_are_read() -> None:
    for text, means in (
        ("", ParserErrorKind.NOTHING),
        ('{"a', ParserErrorKind.CUT),
        ("{}{}", ParserErrorKind.GLUED),
        ("{a}", ParserErrorKind.INVALID),
        ('{"a" 1}', ParserErrorKind.INVALID),
        ('{"a":1 "b"}', ParserErrorKind.INVALID),
        ('{"a":"\n"}', ParserErrorKind.INVALID),
        ('{"a":"\\x"}', ParserErrorKind.INVALID),
    ):
        with pytest.raises(ValueError, match="char") as raised:
            json.loads(text)
        error = in_message(str(raised.value))
        assert error is not None
        assert (error.parser, error.means) == ("Python's json", means)


@pytest.mark.parametrize(
    ("text", "parser", "means"),
    [
        ("json.decoder.JSONDecodeError", "Python's json", ParserErrorKind.INVALID),
        ("SyntaxError: Unexpected end of JSON input", "V8's JSON.parse", ParserErrorKind.CUT),
        ("Unterminated string in JSON at position 9", "V8's JSON.parse", ParserErrorKind.CUT),
        ("Unexpected token o in JSON at position 1", "V8's JSON.parse", ParserErrorKind.INVALID),
        (
            "Unexpected token '<', \"<html\" is not valid JSON",
            "V8's JSON.parse",
            ParserErrorKind.INVALID,
        ),
        ('"undefined" is not valid JSON', "V8's JSON.parse", ParserErrorKind.INVALID),
        (
            "Unexpected non-whitespace character after JSON at position 4",
            "V8's JSON.parse",
            ParserErrorKind.GLUED,
        ),
        ("JSON Parse error: Unexpected EOF", "JavaScriptCore's JSON.parse", ParserErrorKind.CUT),
        (
            "JSON.parse: unexpected end of data at line 1 column 1 of the JSON data",
            "SpiderMonkey's JSON.parse",
            ParserErrorKind.CUT,
        ),
        ("unexpected end of JSON input", "Go's encoding/json", ParserErrorKind.CUT),
        (
            "invalid character '>' after top-level value",
            "Go's encoding/json",
            ParserErrorKind.GLUED,
        ),
        (
            "invalid character 'a' looking for beginning of value",
            "Go's encoding/json",
            ParserErrorKind.INVALID,
        ),
        ("No content to map due to end-of-input", "Jackson", ParserErrorKind.NOTHING),
        (
            "Unexpected end-of-input: expected close marker for Object",
            "Jackson",
            ParserErrorKind.CUT,
        ),
        (
            "Unrecognized token 'abc': was expecting (JSON String, ...)",
            "Jackson",
            ParserErrorKind.INVALID,
        ),
        (
            "com.google.gson.JsonSyntaxException: java.io.EOFException",
            "Gson",
            ParserErrorKind.INVALID,
        ),
        ("End of input at line 1 column 4 path $.a", "Gson", ParserErrorKind.CUT),
        ("A JSONObject text must begin with '{' at 1", "org.json", ParserErrorKind.INVALID),
        ("EOF while parsing a value at line 1 column 0", "serde_json", ParserErrorKind.CUT),
        ("EOF while parsing an object at line 1 column 5", "serde_json", ParserErrorKind.CUT),
        ("trailing characters at line 1 column 8", "serde_json", ParserErrorKind.GLUED),
        ("expected value at line 1 column 1", "serde_json", ParserErrorKind.INVALID),
        (
            "The input does not contain any JSON tokens.",
            "System.Text.Json",
            ParserErrorKind.NOTHING,
        ),
        ("'>' is invalid after a single JSON value.", "System.Text.Json", ParserErrorKind.GLUED),
        ("'a' is an invalid start of a value.", "System.Text.Json", ParserErrorKind.INVALID),
        ("Unexpected end when reading JSON. Path 'a'", "Json.NET", ParserErrorKind.CUT),
        ("Newtonsoft.Json.JsonReaderException: ...", "Json.NET", ParserErrorKind.INVALID),
        ("JSON::ParserError", "Ruby's json", ParserErrorKind.INVALID),
        (
            "1 validation error for A\n Invalid JSON: expected ident",
            "pydantic",
            ParserErrorKind.INVALID,
        ),
        (
            "1 validation error for Weather\ncity\n  Field required",
            "pydantic",
            ParserErrorKind.REFUSED,
        ),
        ('[{"code": "invalid_type", "expected": "string"}]', "zod", ParserErrorKind.REFUSED),
        (
            "Function get arguments:\n\n{'a\n\nare not valid JSON.",
            "LangChain",
            ParserErrorKind.INVALID,
        ),
        ("Error invoking tool 'get' with kwargs {}", "LangChain", ParserErrorKind.REFUSED),
        (
            "Invalid input for tool get: JSON parsing failed: Text: .",
            "the AI SDK",
            ParserErrorKind.INVALID,
        ),
        ("Invalid arguments for tool get: Required", "the AI SDK", ParserErrorKind.REFUSED),
        ("Invalid JSON input for tool get: {", "an agent framework", ParserErrorKind.INVALID),
        ('Tool "get" called with empty arguments', "its own", ParserErrorKind.NOTHING),
        ("Filtering out malformed tool call", "its own", ParserErrorKind.DROPPED),
        ("Failed to parse tool arguments", "its own", ParserErrorKind.INVALID),
    ],
)
def test_the_texts_of_others(text: str, parser: str, means: ParserErrorKind) -> None:
    error = in_message(text)
    assert error is not None
    assert (error.parser, error.means) == (parser, means)


def test_what_a_text_says_around_it_tells_what_it_is_about() -> None:
    spoken = in_message("Invalid tool call: Unexpected end of JSON input")
    assert spoken is not None
    assert (spoken.text, spoken.about_call) == ("Unexpected end of JSON input", True)
    silent = in_message("Unexpected end of JSON input")
    assert silent is not None
    assert not silent.about_call


def test_in_an_object_the_text_ends_with_its_string() -> None:
    error = in_message(
        '{"error":"bad: Unexpected token \'<\', \\"<ht\\" is not valid JSON","ok":0}'
    )
    assert error is not None
    assert error.text == "Unexpected token '<', \"<ht\" is not valid JSON"
    odd = in_message('{"error":"Unexpected end of JSON input \\x"}')
    assert odd is not None
    assert odd.text == "Unexpected end of JSON input \\x"
    bare = in_message("[Unexpected end of JSON input]")
    assert bare is not None
    assert bare.text == "Unexpected end of JSON input]"


@pytest.mark.parametrize(
    "text",
    [
        "13 °C",
        "The weather is expected to be fine, arguments aside; see package.json",
        "I found this on the page. " * 10 + "Unexpected end of JSON input",
        "x" * 1600 + " Failed to parse tool arguments: Unexpected end of JSON input",
    ],
)
def test_a_text_that_is_not_an_error_or_speaks_of_one_late(text: str) -> None:
    assert in_message(text) is None


def test_an_error_about_a_call_may_stand_anywhere_in_a_short_message() -> None:
    text = "I found this on the page. " * 10 + "Invalid tool call: Unexpected end of JSON input"
    assert in_message(text) is not None


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("Unexpected end of JSON input", True),
        ("Error: failed to parse the call: Unexpected end of JSON input", True),
        ("I get Unexpected end of JSON input", False),
        ("Error: Unexpected end of JSON input. What is that?", False),
        ("Error: Unexpected end of JSON input. " + "I did this and that. " * 20, False),
        ("Error! " + "I did this and that. " * 20 + "Unexpected end of JSON input", False),
        ("Good morning", False),
    ],
)
def test_where_people_speak_it_has_to_be_all_of_the_message(text: str, *, counts: bool) -> None:
    assert (in_message(text, alone=True) is not None) is counts


def test_a_printed_line_may_have_it_anywhere_and_be_no_utf_8() -> None:
    error = in_log(b"\xff" + b"x" * 500 + b" Unexpected end of JSON input")
    assert error is not None
    assert error.means is ParserErrorKind.CUT
    assert in_log(b"listening on 8080") is None
    assert in_log(b"reading package.json") is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "Unexpected token ",
        "Function f arguments:\n ",
        "invalid character '",
        "json: tool call ",
        "{",
    ],
)
def test_hostile_texts_are_read_in_linear_time(piece: str) -> None:
    # Takes 0.3 s. Were it quadratic, the 5,000 pieces would take minutes.
    start = time.process_time()
    for at in range(20):
        in_message(str(at) + piece * (1490 // len(piece)))
        in_log(f"{at}{piece * 5000}".encode())
    assert time.process_time() - start < 20


def test_source_code_in_a_traceback_is_not_an_error_text() -> None:
    assert in_log(b'    raise JSONDecodeError("Expecting value", s, err.value) from None') is None
    assert in_log(b"json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)")
