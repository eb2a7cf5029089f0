"""The words of V8 (Node, Chrome, Electron, Deno), old and new, and of Python's `json`.

V8: https://chromium.googlesource.com/v8/v8/+/refs/heads/main/src/json/json-parser.cc and
src/common/message-template.h. Up to Node 18 it names the character and its position; since then the
text around it, or what it expected; since Node 22 line and column, too.
"""

import json
from collections.abc import Iterator

from deltatape.suspects.parsers.failure import Failure, Where

_EOS = "Unexpected end of JSON input"
_AROUND = 10
"""Characters that are shown on either side."""
_SPECIAL = frozenset({"[object Object]", "undefined", "NaN", "Infinity"})
_EXPECTED = {
    Where.FIRST_KEY: "Expected property name or '}'",
    Where.KEY: "Expected double-quoted property name",
    Where.COLON: "Expected ':' after property name",
    Where.IN_OBJECT: "Expected ',' or '}' after property value",
    Where.IN_ARRAY: "Expected ',' or ']' after array element",
    Where.STRING: "Unterminated string",
    Where.CONTROL: "Bad control character in string literal",
    Where.ESCAPE: "Bad escaped character",
    Where.HEX: "Bad Unicode escape",
    Where.MINUS: "No number after minus sign",
    Where.FRACTION: "Unterminated fractional number",
    Where.EXPONENT: "Exponent part is missing a number",
}


def v8(failure: Failure) -> Iterator[str]:
    """What V8 says."""
    yield from _newer(failure)
    if failure.ended:
        yield _EOS
        return
    yield f"Unexpected {_token(failure)} in JSON at position {failure.at}"


def _token(failure: Failure) -> str:
    sign, inside = failure.sign, failure.where in (Where.STRING, Where.CONTROL, Where.ESCAPE)
    if not inside and sign == '"':
        return "string"
    if not inside and (sign == "-" or (sign.isascii() and sign.isdigit())):
        return "number"
    return f"token {sign}"


def _newer(failure: Failure) -> Iterator[str]:
    text, where, at = failure.text, failure.where, failure.at
    if where is Where.AFTER:
        said = f"Unexpected non-whitespace character after JSON at position {at}"
    elif where in _EXPECTED and (failure.first_key or where is not Where.COLON):
        said = f"{_EXPECTED[where]} in JSON at position {at}"
    elif failure.ended:
        yield _EOS
        return
    elif text.strip() in _SPECIAL and text in _SPECIAL:
        yield f'"{text}" is not valid JSON'
        return
    elif _token(failure) in ("string", "number"):
        said = f"Unexpected {_token(failure)} in JSON at position {at}"
    else:
        yield f"Unexpected token '{failure.sign}', {_context(text, at)} is not valid JSON"
        return
    yield said
    yield f"{said} ({_line_and_column(text, at)})"


def _context(text: str, at: int) -> str:
    """The text around `at`, with dots where some of it is left out."""
    if len(text) <= 2 * _AROUND:
        return f'"{text}"'
    if at < _AROUND:
        return f'"{text[: at + _AROUND]}"...'
    if at >= len(text) - _AROUND:
        return f'..."{text[at - _AROUND :]}"'
    return f'..."{text[at - _AROUND : at + _AROUND]}"...'


def _line_and_column(text: str, at: int) -> str:
    before = text[:at].replace("\r\n", "\n").replace("\r", "\n")
    return f"line {before.count(chr(10)) + 1} column {len(before) - before.rfind(chr(10))}"


def python(failure: Failure) -> Iterator[str]:
    """What `json.loads` says, with and without the position."""
    try:
        json.loads(failure.text)
    except json.JSONDecodeError as problem:
        yield str(problem)
    except (RecursionError, ValueError):
        return
