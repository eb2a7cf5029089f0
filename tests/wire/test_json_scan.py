import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.wire.json_scan import (
    DEPTH_LIMIT,
    WHOLE_NUMBERS,
    JsonScanner,
    NumberState,
    ScanState,
    TokenKind,
    run_number,
    scan,
)
from helpers.json_values import json_values
from helpers.splits import cut, cuttings, each_alone, random_cuts

State = tuple[object, ...]


def run(pieces: list[str]) -> State:
    """All that a scanner tells after `pieces`."""
    scanner = JsonScanner()
    for piece in pieces:
        scanner.feed(piece)
    return (
        scanner.verdict,
        scanner.kind,
        scanner.start,
        scanner.end,
        scanner.extra,
        scanner.error,
        scanner.problem,
        scanner.position,
        scanner.duplicate_keys,
        scanner.lone_surrogate,
        scanner.members,
    )


def refuse(_: str) -> object:
    raise ValueError


def strict(text: str) -> bool:
    """Whether the standard library, made strict, takes `text`."""
    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        return False
    return True


COMPLETE = [
    ("{}", TokenKind.OBJECT),
    (' {"a": [1, -2.5e3, "x\\u00e9\\n", true, false, null, {}, []]}\r\n', TokenKind.OBJECT),
    ("[[], {}]", TokenKind.ARRAY),
    ('"a\\"b\\\\"', TokenKind.STRING),
    ("0", TokenKind.NUMBER),
    ("-1.5e+3 ", TokenKind.NUMBER),
    ("true", TokenKind.BOOLEAN),
    (" false", TokenKind.BOOLEAN),
    ("null\t", TokenKind.NULL),
]


@pytest.mark.parametrize(("text", "kind"), COMPLETE)
def test_one_value_with_whitespace_around_it_is_complete(text: str, kind: TokenKind) -> None:
    scanner = scan(text)
    assert (scanner.verdict, scanner.kind, scanner.problem) == (ScanState.COMPLETE, kind, "")
    assert text[scanner.start : scanner.end] == text.strip()
    for pieces in cuttings(text, pairs=len(text) < 20):
        assert run(pieces) == run([text])


PREFIXES = [
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":1,',
    "[",
    "[1",
    '["x',
    '"\\',
    '"\\u12',
    "-",
    "1.",
    "1e",
]


@pytest.mark.parametrize("text", [*PREFIXES, "1e+", "tru", "n", '{"a":{"b":[', '[{},"'])
def test_a_beginning_of_a_value_is_a_prefix(text: str) -> None:
    scanner = scan(text)
    assert scanner.verdict is ScanState.PREFIX
    assert (scanner.problem, scanner.position) == ("the JSON value is cut off", len(text))
    for pieces in cuttings(text):
        assert run(pieces) == run([text])


@pytest.mark.parametrize("text", ["", "  \n"])
def test_whitespace_is_an_empty_prefix(text: str) -> None:
    assert (scan(text).verdict, scan(text).problem) == (ScanState.EMPTY, "no JSON value")


@pytest.mark.parametrize(
    ("text", "end", "extra"),
    [('{"a":1}{', 7, 7), ("{} \n>", 2, 4), ("1 2", 1, 2), ("01", 1, 1), ("null,", 4, 4)],
)
def test_data_after_a_value_is_extra(text: str, end: int, extra: int) -> None:
    scanner = scan(text)
    assert (scanner.verdict, scanner.end, scanner.extra) == (ScanState.EXTRA, end, extra)
    assert (scanner.problem, scanner.position) == ("data after the JSON value", extra)
    for pieces in cuttings(text):
        assert run(pieces) == run([text])


@pytest.mark.parametrize(
    ("text", "offset", "reason"),
    [
        ("json\n{}", 0, "unexpected 'j', expected a value"),
        ("NaN", 0, "unexpected 'N', expected a value"),
        ("-Infinity", 1, "unexpected 'I', expected a digit after '-'"),
        ('{"a": Dave}', 6, "unexpected 'D', expected a value"),
        ("{'a':1}", 1, "unexpected \"'\", expected a key in double quotes or '}'"),
        ('{"a":1,}', 7, "unexpected '}', expected a key in double quotes"),
        ("[1,]", 3, "unexpected ']', expected a value"),
        ("[1 2]", 3, "unexpected '2', expected ',' or ']'"),
        ('{"a" 1}', 5, "unexpected '1', expected ':'"),
        ('{"a":1]', 6, "unexpected ']', expected ',' or '}'"),
        ('"a\nb"', 2, "control character '\\n' inside a string"),
        ('"\\x"', 2, "invalid escape '\\x'"),
        ('"\\u12g4"', 5, "unexpected 'g', expected four hexadecimal digits after '\\u'"),
        ("nul!", 3, "unexpected '!', expected 'l' of true, false or null"),
        ("[1.]", 3, "unexpected ']', expected a digit after '.'"),
        ("[1e+]", 4, "unexpected ']', expected a digit in the exponent"),
        ("}", 0, "unexpected '}', expected a value"),
    ],
)
def test_malformed_text_is_reported_with_offset_and_reason(
    text: str, offset: int, reason: str
) -> None:
    scanner = scan(text)
    assert scanner.verdict is ScanState.MALFORMED
    assert (scanner.position, scanner.problem) == (offset, reason)
    for pieces in cuttings(text):
        assert run(pieces) == run([text])


def test_nesting_is_allowed_up_to_the_limit() -> None:
    assert scan("[" * DEPTH_LIMIT + "]" * DEPTH_LIMIT).verdict is ScanState.COMPLETE
    scanner = scan("[" * (DEPTH_LIMIT + 1))
    assert scanner.error == (DEPTH_LIMIT, f"nested too deeply: more than {DEPTH_LIMIT} levels")
    assert scan('{"a":' * 100_000).verdict is ScanState.MALFORMED


def test_a_number_of_any_length_is_a_number() -> None:
    assert scan("[" + "9" * 10_000 + "]").verdict is ScanState.COMPLETE


def test_duplicate_keys_are_noted_per_object_and_after_unescaping() -> None:
    assert scan('{"a":1,"\\u0061":2,"b":{"a":3},"c":[{"a":1},{"a":2}]}').duplicate_keys == ["a"]


@pytest.mark.parametrize(
    ("text", "lone"),
    [
        ('"\\ud83d\\ude00"', False),
        ('"\\ud83d"', True),
        ('"\\ude00"', True),
        ('"\\ud83dx\\ude00"', True),
        ('"\\ud83d\\n\\ude00"', True),
        ('"\\ud83d\\ud83d\\ude00"', True),
        ('"\ud83d"', True),
        ('"\\u0041é"', False),
    ],
)
def test_half_a_surrogate_pair_is_noted(text: str, lone: bool) -> None:  # noqa: FBT001
    assert scan(text).lone_surrogate is lone
    assert scan(text).verdict is ScanState.COMPLETE


def test_a_bare_number_stays_complete_or_not_as_it_grows() -> None:
    scanner = JsonScanner()
    seen = []
    for character in "-12.5e3":
        scanner.feed(character)
        seen.append((scanner.verdict is ScanState.COMPLETE, scanner.end))
    assert seen == [
        (False, None),
        (True, 2),
        (True, 3),
        (False, None),
        (True, 5),
        (False, None),
        (True, 7),
    ]


def test_members_tell_an_empty_object_from_others() -> None:
    assert (scan("{ }").members, scan('{"a":1}').members) == (False, True)


@pytest.mark.slow
def test_a_megabyte_in_one_string_fed_by_characters_takes_linear_time() -> None:
    scanner = JsonScanner()
    for character in each_alone('{"' + "k" * 300_000 + '":"' + "x" * 300_000 + '"}'):
        scanner.feed(character)
    assert scanner.verdict is ScanState.COMPLETE


JSON = json_values(
    st.integers() | st.floats(allow_nan=False) | st.text(max_size=8), st.text(max_size=3)
).map(lambda value: json.dumps(value, ensure_ascii=False))


@pytest.mark.slow
@given(st.data())
def test_the_verdict_on_mutated_json_is_the_standard_librarys(data: st.DataObject) -> None:
    text = data.draw(JSON)
    at = data.draw(st.integers(0, len(text)))
    gone = data.draw(st.integers(0, 2))
    noise = data.draw(st.text('{}[]",:0123456789.eE+-\\ \n\x00tfnaN', max_size=2))
    mutated = text[:at] + noise + text[at + gone :]
    assert (scan(mutated).verdict is ScanState.COMPLETE) == strict(mutated)


@given(st.data())
def test_no_cutting_changes_the_verdict_on_any_text(data: st.DataObject) -> None:
    text = data.draw(JSON | st.text('{}[]",:01.e-\\u dtrue\ud83d', max_size=20) | st.text())
    assert run(each_alone(text)) == run([text])
    assert run(cut(text, data.draw(random_cuts(len(text))))) == run([text])
    for end in range(len(text)):
        if scan(text).verdict is ScanState.COMPLETE:
            assert scan(text[:end]).verdict is not ScanState.MALFORMED


def whole(text: str) -> bool:
    """Whether `text`, after its sign, is a number."""
    body = text.removeprefix("-")
    state, end = run_number(NumberState.MINUS, body, 0)
    return end == len(body) and state in WHOLE_NUMBERS


@pytest.mark.parametrize("text", ["0", "-0", "10", "-1.5", "0.0e+00", "1E-7", "1e5"])
def test_numbers_of_the_grammar_are_whole(text: str) -> None:
    assert whole(text)


@pytest.mark.parametrize("text", ["", "-", "01", "1.", ".5", "1e", "1e+", "+1", "0x1", "\u0661"])
def test_a_number_outside_of_the_grammar_is_not_one(text: str) -> None:
    assert not whole(text)


@given(st.text("0123456789.eE+-", min_size=1, max_size=8))
def test_the_table_agrees_with_the_standard_library(text: str) -> None:
    try:
        expected = isinstance(json.loads(text), int | float)
    except ValueError:
        expected = False
    assert whole(text) == expected
