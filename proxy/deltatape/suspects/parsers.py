"""Error messages of JSON parsers for invalid text, by language.

An application that logs or repeats such a message reveals the text that it gave its parser. One
scan finds where and why the text fails; each parser's message is derived from that. Python's come
from `json.loads`, the others follow the parsers' sources and documentation; V8's are tested against
Node.
"""

import enum
import json
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

LIMIT = 2_000_000
"""Longer texts are not parsed, in characters."""


def parser_errors(text: str) -> tuple[str, ...]:
    """Return the messages that parsers give for `text`; () if it is valid JSON."""
    failure = failure_of(text[:LIMIT])
    if failure is None:
        return ()
    parsers = (v8, python, go, rust, java, dotnet)
    return tuple(dict.fromkeys(error for parser in parsers for error in parser(failure)))


def is_quoted_in(error: str, text: str) -> bool:
    """Check whether `text`, such as a log, quotes `error`: "position 1" is not in "position 12"."""
    at = text.find(error)
    while at >= 0:
        end = at + len(error)
        cut_before = at > 0 and text[at - 1].isalnum() and error[0].isalnum()
        cut_behind = end < len(text) and text[end].isalnum() and error[-1].isalnum()
        if not cut_before and not cut_behind:
            return True
        at = text.find(error, at + 1)
    return False


# The scan over the tokens of RFC 8259, up to the first thing that the grammar does not allow.

_BLANKS = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_LITERALS = {"t": "true", "f": "false", "n": "null"}
_HEX = re.compile(r"[0-9a-fA-F]{0,4}")


class ParseState(enum.Enum):
    """The state of the grammar at the failure."""

    VALUE = "a value"
    ELEMENT = "a first element or ]"
    FIRST_KEY = "a first key or }"
    KEY = "a key"
    COLON = "a colon"
    IN_OBJECT = "a comma or }"
    IN_ARRAY = "a comma or ]"
    AFTER = "nothing more"
    STRING = "the rest of a string"
    CONTROL = "no control character"
    ESCAPE = "an escape"
    HEX = "four hexadecimal digits"
    LITERAL = "the rest of a literal"
    MINUS = "a digit behind a minus sign"
    FRACTION = "a digit behind a point"
    EXPONENT = "a digit of an exponent"
    LEADING_ZERO = "no digit behind a leading zero"


class ParseFailure(NamedTuple):
    """The first error in a text that is not JSON."""

    text: str
    at: int
    """Where, in characters; the text's length if it ended too early."""
    where: ParseState
    token: int
    """Where the failing token begins."""
    stack: str
    """The open brackets."""
    expected: str = ""
    """The character that a literal (`true`) should have there."""
    first_key: bool = True
    """Whether the last key is the first one of its object."""

    @property
    def ended(self) -> bool:
        """Whether the text ended too early."""
        return self.at >= len(self.text)

    @property
    def sign(self) -> str:
        """The character at the failure; "" at the end."""
        return self.text[self.at : self.at + 1]


class _FailedError(Exception):
    def __init__(self, at: int, where: ParseState, expected: str = "") -> None:
        super().__init__(at)
        self.at, self.where, self.expected = at, where, expected


def failure_of(text: str) -> ParseFailure | None:
    """Return why `text` is not JSON; None if it is. Not recursive."""
    scan = _Scan(text)
    try:
        scan.run()
    except _FailedError as failed:
        return ParseFailure(
            text,
            failed.at,
            failed.where,
            scan.token,
            "".join(scan.stack),
            failed.expected,
            scan.first_key,
        )
    return None


class _Scan:
    def __init__(self, text: str) -> None:
        self.text = text
        self.stack: list[str] = []
        self.token = 0
        self.first_key = True
        self._next = ParseState.VALUE
        self._steps: dict[ParseState, Callable[[int], int]] = {
            ParseState.VALUE: self._value,
            ParseState.ELEMENT: self._element,
            ParseState.FIRST_KEY: self._key,
            ParseState.KEY: self._key,
            ParseState.COLON: self._colon,
            ParseState.IN_OBJECT: self._next_or_end,
            ParseState.IN_ARRAY: self._next_or_end,
        }

    def run(self) -> None:
        at = 0
        while True:
            blanks = _BLANKS.match(self.text, at)
            at = self.token = blanks.end() if blanks else at
            if self._next is ParseState.AFTER:
                break
            at = self._steps[self._next](at)
        if at < len(self.text):
            raise _FailedError(at, ParseState.AFTER)

    def _sign(self, at: int) -> str:
        return self.text[at : at + 1]

    def _end_value(self) -> None:
        if not self.stack:
            self._next = ParseState.AFTER
        else:
            self._next = ParseState.IN_OBJECT if self.stack[-1] == "{" else ParseState.IN_ARRAY

    def _element(self, at: int) -> int:
        if self._sign(at) == "]":
            return self._close(at)
        return self._value(at)

    def _value(self, at: int) -> int:
        sign = self._sign(at)
        if sign in ("{", "["):
            self.stack.append(sign)
            self._next = ParseState.FIRST_KEY if sign == "{" else ParseState.ELEMENT
            return at + 1
        if sign == '"':
            end = self._string(at + 1)
        elif sign in _LITERALS:
            end = self._literal(at, _LITERALS[sign])
        elif sign == "-" or (sign.isascii() and sign.isdigit()):
            end = self._number(at)
        else:
            raise _FailedError(at, self._next)
        self._end_value()
        return end

    def _key(self, at: int) -> int:
        sign = self._sign(at)
        if sign == "}" and self._next is ParseState.FIRST_KEY:
            return self._close(at)
        if sign != '"':
            raise _FailedError(at, self._next)
        end = self._string(at + 1)
        self.first_key = self._next is ParseState.FIRST_KEY
        self._next = ParseState.COLON
        return end

    def _colon(self, at: int) -> int:
        if self._sign(at) != ":":
            raise _FailedError(at, ParseState.COLON)
        self._next = ParseState.VALUE
        return at + 1

    def _next_or_end(self, at: int) -> int:
        sign, inside = self._sign(at), self._next
        if sign == ("}" if inside is ParseState.IN_OBJECT else "]"):
            return self._close(at)
        if sign != ",":
            raise _FailedError(at, inside)
        self._next = ParseState.KEY if inside is ParseState.IN_OBJECT else ParseState.VALUE
        return at + 1

    def _close(self, at: int) -> int:
        self.stack.pop()
        self._end_value()
        return at + 1

    def _literal(self, at: int, word: str) -> int:
        for offset, letter in enumerate(word):
            if self._sign(at + offset) != letter:
                raise _FailedError(at + offset, ParseState.LITERAL, letter)
        return at + len(word)

    def _number(self, at: int) -> int:
        found = _NUMBER.match(self.text, at)
        if found is None:
            raise _FailedError(at + 1, ParseState.MINUS)
        fraction, exponent = found.groups()
        end, sign = found.end(), self._sign(found.end())
        if sign == "." and not (fraction or exponent):
            raise _FailedError(end + 1, ParseState.FRACTION)
        if sign in ("e", "E") and not exponent:
            raise _FailedError(end + 1 + (self._sign(end + 1) in ("+", "-")), ParseState.EXPONENT)
        if sign.isascii() and sign.isdigit():
            raise _FailedError(end, ParseState.LEADING_ZERO)
        return end

    def _string(self, at: int) -> int:
        """Return the end of a string whose first character is at `at`."""
        while True:
            plain = _PLAIN.match(self.text, at)
            at = plain.end() if plain else at
            sign = self._sign(at)
            if sign == '"':
                return at + 1
            if sign == "\\":
                at = self._escape(at + 1)
            else:
                raise _FailedError(at, ParseState.CONTROL if sign else ParseState.STRING)

    def _escape(self, at: int) -> int:
        sign = self._sign(at)
        if sign == "u":
            digits = _HEX.match(self.text, at + 1)
            end = digits.end() if digits else at + 1
            if end < at + 5:
                raise _FailedError(
                    end, ParseState.HEX if end < len(self.text) else ParseState.STRING
                )
            return end
        if not sign:
            raise _FailedError(at, ParseState.STRING)
        if sign not in '"\\/bfnrt':
            raise _FailedError(at, ParseState.ESCAPE)
        return at + 1


# V8 (Node, Chrome, Electron, Deno):
# https://chromium.googlesource.com/v8/v8/+/refs/heads/main/src/json/json-parser.cc and
# src/common/message-template.h. Up to Node 18 it names the character and its position; since then
# the text around it, or what it expected; since Node 22 line and column, too.

_EOS = "Unexpected end of JSON input"
_AROUND = 10
"""How many characters V8 shows on either side."""
_SPECIAL = frozenset({"[object Object]", "undefined", "NaN", "Infinity"})
_EXPECTED = {
    ParseState.FIRST_KEY: "Expected property name or '}'",
    ParseState.KEY: "Expected double-quoted property name",
    ParseState.COLON: "Expected ':' after property name",
    ParseState.IN_OBJECT: "Expected ',' or '}' after property value",
    ParseState.IN_ARRAY: "Expected ',' or ']' after array element",
    ParseState.STRING: "Unterminated string",
    ParseState.CONTROL: "Bad control character in string literal",
    ParseState.ESCAPE: "Bad escaped character",
    ParseState.HEX: "Bad Unicode escape",
    ParseState.MINUS: "No number after minus sign",
    ParseState.FRACTION: "Unterminated fractional number",
    ParseState.EXPONENT: "Exponent part is missing a number",
}


def v8(failure: ParseFailure) -> Iterator[str]:
    """Yield V8's messages, old and new."""
    yield from _v8_since_20(failure)
    if failure.ended:
        yield _EOS
        return
    yield f"Unexpected {_token(failure)} in JSON at position {failure.at}"


def _token(failure: ParseFailure) -> str:
    sign = failure.sign
    inside = failure.where in (ParseState.STRING, ParseState.CONTROL, ParseState.ESCAPE)
    if not inside and sign == '"':
        return "string"
    if not inside and (sign == "-" or (sign.isascii() and sign.isdigit())):
        return "number"
    return f"token {sign}"


def _v8_since_20(failure: ParseFailure) -> Iterator[str]:
    text, where, at = failure.text, failure.where, failure.at
    if where is ParseState.AFTER:
        message = f"Unexpected non-whitespace character after JSON at position {at}"
    elif where in _EXPECTED and (failure.first_key or where is not ParseState.COLON):
        message = f"{_EXPECTED[where]} in JSON at position {at}"
    elif failure.ended:
        yield _EOS
        return
    elif text.strip() in _SPECIAL and text in _SPECIAL:
        yield f'"{text}" is not valid JSON'
        return
    elif _token(failure) in ("string", "number"):
        message = f"Unexpected {_token(failure)} in JSON at position {at}"
    else:
        yield f"Unexpected token '{failure.sign}', {_context(text, at)} is not valid JSON"
        return
    yield message
    yield f"{message} ({_line_and_column(text, at)})"


def _context(text: str, at: int) -> str:
    """Return the text around `at`, shortened with dots."""
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


def python(failure: ParseFailure) -> Iterator[str]:
    """Yield the messages of `json.loads`, with and without the position."""
    try:
        json.loads(failure.text)
    except json.JSONDecodeError as problem:
        yield str(problem)
    except (RecursionError, ValueError):
        return


# Go's encoding/json, https://go.dev/src/encoding/json/scanner.go; Rust's serde_json (`ErrorCode`),
# https://docs.rs/serde_json; Java's Jackson and Gson, https://github.com/FasterXML/jackson-core and
# https://github.com/google/gson (`JsonReader`); .NET's System.Text.Json,
# https://github.com/dotnet/runtime (`Strings.resx`).

_GO = {
    ParseState.VALUE: "looking for beginning of value",
    ParseState.ELEMENT: "looking for beginning of value",
    ParseState.FIRST_KEY: "looking for beginning of object key string",
    ParseState.KEY: "looking for beginning of object key string",
    ParseState.COLON: "after object key",
    ParseState.IN_OBJECT: "after object key:value pair",
    ParseState.IN_ARRAY: "after array element",
    ParseState.AFTER: "after top-level value",
    ParseState.CONTROL: "in string literal",
    ParseState.ESCAPE: "in string escape code",
    ParseState.HEX: r"in \u hexadecimal character escape",
    ParseState.MINUS: "in numeric literal",
    ParseState.FRACTION: "after decimal point in numeric literal",
    ParseState.EXPONENT: "in exponent of numeric literal",
}
_GO_QUOTED = {
    "'": r"'\''",
    '"': "'\"'",
    "\\": r"'\\'",
    **{sign: rf"'\{letter}'" for sign, letter in zip("\a\b\f\n\r\t\v", "abfnrtv", strict=True)},
}
_GO_TOKENS = frozenset(
    {ParseState.LITERAL, ParseState.MINUS, ParseState.FRACTION, ParseState.EXPONENT}
)
"""States in which Go takes the end of the text for a blank, which ends a token."""
_RUST_EOF = {
    ParseState.STRING: "a string",
    ParseState.FIRST_KEY: "an object",
    ParseState.COLON: "an object",
    ParseState.IN_OBJECT: "an object",
    ParseState.ELEMENT: "a list",
    ParseState.IN_ARRAY: "a list",
}
_RUST = {
    ParseState.VALUE: "expected value",
    ParseState.ELEMENT: "expected value",
    ParseState.FIRST_KEY: "key must be a string",
    ParseState.KEY: "key must be a string",
    ParseState.COLON: "expected `:`",
    ParseState.IN_OBJECT: "expected `,` or `}`",
    ParseState.IN_ARRAY: "expected `,` or `]`",
    ParseState.AFTER: "trailing characters",
    ParseState.CONTROL: r"control character (\u0000-\u001F) found while parsing a string",
    ParseState.ESCAPE: "invalid escape",
    ParseState.HEX: "invalid escape",
    ParseState.LITERAL: "expected ident",
}
_DOTNET = {
    ParseState.VALUE: "is an invalid start of a value.",
    ParseState.ELEMENT: "is an invalid start of a value.",
    ParseState.FIRST_KEY: "is an invalid start of a property name. Expected a '\"'.",
    ParseState.KEY: "is an invalid start of a property name. Expected a '\"'.",
    ParseState.COLON: "is invalid after a property name. Expected a ':'.",
    ParseState.IN_OBJECT: "is invalid after a value. Expected either ',', '}', or ']'.",
    ParseState.IN_ARRAY: "is invalid after a value. Expected either ',', '}', or ']'.",
    ParseState.AFTER: "is invalid after a single JSON value. Expected end of data.",
    ParseState.CONTROL: "is invalid within a JSON string. The string should be correctly escaped.",
    ParseState.ESCAPE: (
        "is an invalid escapable character within a JSON string. The string should be"
        " correctly escaped."
    ),
}
_LATIN = 255
_OPEN = {"{": "Object", "[": "Array"}


def go(failure: ParseFailure) -> Iterator[str]:
    """Yield the messages of Go's `json.Unmarshal`."""
    if failure.ended and failure.where not in _GO_TOKENS:
        yield "unexpected end of JSON input"
        return
    sign = _go_quoted(failure.sign)
    if failure.where is ParseState.LITERAL:
        word = {"t": "true", "f": "false", "n": "null"}[failure.text[failure.token]]
        yield f"invalid character {sign} in literal {word} (expecting '{failure.expected}')"
    elif failure.where is ParseState.LEADING_ZERO:
        inside = {"{": ParseState.IN_OBJECT, "[": ParseState.IN_ARRAY}
        place = inside.get(failure.stack[-1:], ParseState.AFTER)
        yield f"invalid character {sign} {_GO[place]}"
    else:
        yield f"invalid character {sign} {_GO[failure.where]}"


def _go_quoted(sign: str) -> str:
    """Quote a byte as Go does; a blank at the end of the text."""
    byte = (sign or " ").encode(errors="surrogatepass")[0]
    if byte < ord(" ") and chr(byte) not in _GO_QUOTED:
        return rf"'\x{byte:02x}'"
    return _GO_QUOTED.get(chr(byte), f"'{chr(byte)}'")


def rust(failure: ParseFailure) -> Iterator[str]:
    """Yield serde_json's messages: lines from 1, columns in bytes."""
    before = failure.text[: failure.at].encode(errors="surrogatepass")
    line = before.count(b"\n") + 1
    column = len(before) - before.rfind(b"\n") - 1
    if failure.ended:
        what = _RUST_EOF.get(failure.where, "a value")
        yield f"EOF while parsing {what} at line {line} column {column}"
        return
    problem = _RUST.get(failure.where, "invalid number")
    if failure.where is ParseState.KEY and failure.sign == "}":
        problem = "trailing comma"
    yield f"{problem} at line {line} column {column + 1}"


def java(failure: ParseFailure) -> Iterator[str]:
    """Yield the messages of Jackson and Gson, up to their description of the source."""
    sign = failure.sign
    if failure.ended:
        if not failure.text.strip():
            yield "No content to map due to end-of-input"
            yield "End of input at line 1 column 1 path $"
            return
        if failure.where is ParseState.STRING:
            yield "Unexpected end-of-input in VALUE_STRING"
            yield "Unexpected end-of-input: was expecting closing quote for a string value"
            yield "Unterminated string at line 1 column"
        elif failure.stack:
            yield f"Unexpected end-of-input: expected close marker for {_OPEN[failure.stack[-1]]}"
            yield "Unexpected end-of-input within/between"
        yield "End of input at line 1 column"
    else:
        code = f"code {ord(sign)}" + (f" / 0x{ord(sign):x}" if ord(sign) > _LATIN else "")
        yield f"Unexpected character ('{sign}' ({code}))"
        yield "Use JsonReader.setLenient(true) to accept malformed JSON"
        yield "Use JsonReader.setStrictness(Strictness.LENIENT) to accept malformed JSON"
    if failure.text[:1] not in ("{", ""):
        yield "Expected BEGIN_OBJECT but was STRING"


def dotnet(failure: ParseFailure) -> Iterator[str]:
    """Yield the messages of System.Text.Json, up to the path."""
    if not failure.text.strip():
        yield "The input does not contain any JSON tokens. Expected the input to start with a valid"
        return
    if failure.where is ParseState.STRING:
        yield "Expected end of string, but instead reached end of data."
    elif failure.ended:
        yield (
            "Expected depth to be zero at the end of the JSON payload. There is an open JSON object"
            " or array that should be closed."
        )
    elif failure.where is ParseState.LITERAL:
        yield f"'{failure.text[failure.token]}' is an invalid start of a value."
    else:
        sign = f"0x{ord(failure.sign):02X}" if ord(failure.sign) < ord(" ") else failure.sign
        yield f"'{sign}' {_DOTNET.get(failure.where, 'is an invalid end of a number.')}"
