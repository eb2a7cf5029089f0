"""Strict JSON, scanned as it arrives: complete, a prefix, followed by more, or malformed.

Spec: RFC 8259. Duplicate keys and lone surrogates are valid by its grammar and only noted; a value
nested deeper than `DEPTH_LIMIT` counts as malformed, so that hostile text cannot exhaust the stack.

Strategy. A hand-written state machine over `str`: `_expect` is the next element of the grammar,
`_lex` the lexer for the current token (or between tokens). Runs of ordinary characters are skipped
by regular expressions, so the cost is linear for any cutting of the text. Values are never built.

Invariant: every property after `feed(a); feed(b)` equals that after `feed(a + b)`.
"""

import enum
import json
import re
from collections.abc import Callable
from typing import TypeAlias

DEPTH_LIMIT = 512
"""Arrays and objects inside each other; deeper text counts as malformed."""
_BLANKS = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_HEX = frozenset("0123456789abcdefABCDEF")
_ESCAPES = frozenset('"\\/bfnrt')
_HIGH = range(0xD800, 0xDC00)
_LOW = range(0xDC00, 0xE000)
_Lexer: TypeAlias = Callable[["JsonScanner", str, int], int]
"""A function of the class, not a bound method: that would hold the scanner that holds it. Takes the
text and an offset in it, returns the offset to continue from."""


class ScanState(enum.Enum):
    """The state of the text so far."""

    EMPTY = "empty"
    """Nothing but whitespace: a valid prefix."""
    PREFIX = "prefix"
    """The beginning of a value."""
    COMPLETE = "complete"
    """One value, and nothing but whitespace around it."""
    EXTRA = "extra"
    """One value, and then something else."""
    MALFORMED = "malformed"
    """No continuation can make it JSON."""


_PROBLEMS = {
    ScanState.EMPTY: "no JSON value",
    ScanState.PREFIX: "the JSON value is cut off",
    ScanState.COMPLETE: "",
    ScanState.EXTRA: "data after the JSON value",
}


class TokenKind(enum.Enum):
    """The type of the first value, known from its first character."""

    OBJECT = "object"
    ARRAY = "array"
    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    NULL = "null"


class _Expect(enum.Enum):
    VALUE = "a value"
    VALUE_OR_END = "a value or ']'"
    KEY = "a key in double quotes"
    KEY_OR_END = "a key in double quotes or '}'"
    COLON = "':'"
    COMMA_OR_BRACE = "',' or '}'"
    COMMA_OR_BRACKET = "',' or ']'"
    NOTHING = "nothing but whitespace"


_ENDS = {_Expect.COMMA_OR_BRACE: "}", _Expect.COMMA_OR_BRACKET: "]"}
_AFTER = {
    (_Expect.COLON, ":"): _Expect.VALUE,
    (_Expect.COMMA_OR_BRACE, ","): _Expect.KEY,
    (_Expect.COMMA_OR_BRACKET, ","): _Expect.VALUE,
}
_LITERALS = {
    "t": ("true", TokenKind.BOOLEAN),
    "f": ("false", TokenKind.BOOLEAN),
    "n": ("null", TokenKind.NULL),
}


class JsonScanner:
    """Scan one text, fed in pieces. All offsets count characters from its start."""

    def __init__(self) -> None:
        self.kind: TokenKind | None = None
        """The type of the first value; None before it."""
        self.start: int | None = None
        """Where the first value starts."""
        self.end: int | None = None
        """Where the first value ends; a bare number ends with the text so far."""
        self.extra: int | None = None
        """Where something other than whitespace follows the first value."""
        self.error: tuple[int, str] | None = None
        """Where and why the text is malformed."""
        self.duplicate_keys: list[str] = []
        """Keys that occurred again in the same object."""
        self.members = False
        """Whether any object in the text has a member."""
        self.lone_surrogate = False
        """Whether a string holds half a surrogate pair: no Unicode text."""
        self._offset = 0
        self._expect = _Expect.VALUE
        self._lex: _Lexer = JsonScanner._between
        self._open: list[TokenKind] = []
        self._keys: list[set[str]] = []
        self._key: list[str] | None = None
        self._escape = ""
        self._high = False
        self._number = NumberState.ZERO
        self._literal = ""

    @property
    def verdict(self) -> ScanState:
        """The state of the text so far."""
        if self.error is not None:
            return ScanState.MALFORMED
        if self.extra is not None:
            return ScanState.EXTRA
        if self.end is not None:
            return ScanState.COMPLETE
        return ScanState.EMPTY if self.kind is None else ScanState.PREFIX

    @property
    def problem(self) -> str:
        """Why the text is not exactly one value; "" if it is."""
        return self.error[1] if self.error is not None else _PROBLEMS[self.verdict]

    @property
    def position(self) -> int:
        """The offset that `problem` is about; the end of the text if it is only cut off."""
        if self.error is not None:
            return self.error[0]
        return self._offset if self.extra is None else self.extra

    def feed(self, text: str) -> None:
        """Scan the next piece of the text."""
        at = 0
        while at < len(text) and self.error is None and self.extra is None:
            at = self._lex(self, text, at)
        self._offset += len(text)
        if self._lex is JsonScanner._in_number and not self._open:
            self.end = self._offset if self._number in WHOLE_NUMBERS else None

    def _fail(self, at: int, reason: str) -> int:
        self.error = (self._offset + at, reason)
        return at

    def _unexpected(self, text: str, at: int, expected: str) -> int:
        return self._fail(at, f"unexpected {text[at]!r}, expected {expected}")

    def _between(self, text: str, at: int) -> int:
        """Between tokens."""
        blanks = _BLANKS.match(text, at)
        at = blanks.end() if blanks else at
        if at == len(text):
            return at
        char = text[at]
        match self._expect:
            case _Expect.NOTHING:
                self.extra = self._offset + at
                return at
            case _Expect.VALUE_OR_END if char == "]":
                return self._close(at)
            case _Expect.VALUE | _Expect.VALUE_OR_END:
                return self._value(text, at)
            case _Expect.KEY_OR_END if char == "}":
                return self._close(at)
            case _Expect.KEY | _Expect.KEY_OR_END if char == '"':
                self.members = True
                self._key = []
                self._lex = JsonScanner._in_string
                return at + 1
            case _:
                pass
        if char == _ENDS.get(self._expect):
            return self._close(at)
        after = _AFTER.get((self._expect, char))
        if after is None:
            return self._unexpected(text, at, self._expect.value)
        self._expect = after
        return at + 1

    def _value(self, text: str, at: int) -> int:
        """Return the first character of a value."""
        char = text[at]
        match char:
            case "{":
                self._keys.append(set())
                return self._enter(at, TokenKind.OBJECT, _Expect.KEY_OR_END)
            case "[":
                return self._enter(at, TokenKind.ARRAY, _Expect.VALUE_OR_END)
            case '"':
                self._begin(at, TokenKind.STRING)
                self._lex = JsonScanner._in_string
                return at + 1
            case "t" | "f" | "n":
                self._literal, kind = _LITERALS[char]
                self._begin(at, kind)
                self._lex = JsonScanner._in_literal
                return at
            case _:
                if char != "-" and char not in "0123456789":
                    return self._unexpected(text, at, self._expect.value)
                self._begin(at, TokenKind.NUMBER)
                self._number = NumberState.MINUS
                self._lex = JsonScanner._in_number
                return at + 1 if char == "-" else at

    def _begin(self, at: int, kind: TokenKind) -> None:
        if self.kind is None:
            self.kind = kind
            self.start = self._offset + at

    def _enter(self, at: int, kind: TokenKind, expect: _Expect) -> int:
        if len(self._open) == DEPTH_LIMIT:
            return self._fail(at, f"nested too deeply: more than {DEPTH_LIMIT} levels")
        self._begin(at, kind)
        self._open.append(kind)
        self._expect = expect
        return at + 1

    def _close(self, at: int) -> int:
        if self._open.pop() is TokenKind.OBJECT:
            self._keys.pop()
        self._finish(at + 1)
        return at + 1

    def _finish(self, at: int) -> None:
        """End a value at `at`."""
        self._lex = JsonScanner._between
        if not self._open:
            self.end = self._offset + at
            self._expect = _Expect.NOTHING
        elif self._open[-1] is TokenKind.ARRAY:
            self._expect = _Expect.COMMA_OR_BRACKET
        else:
            self._expect = _Expect.COMMA_OR_BRACE

    def _in_literal(self, text: str, at: int) -> int:
        if text[at] != self._literal[0]:
            return self._unexpected(text, at, f"{self._literal[0]!r} of true, false or null")
        self._literal = self._literal[1:]
        if not self._literal:
            self._finish(at + 1)
        return at + 1

    def _in_number(self, text: str, at: int) -> int:
        self._number, at = run_number(self._number, text, at)
        if at == len(text):
            return at
        if self._number not in WHOLE_NUMBERS:
            return self._unexpected(text, at, self._number.value)
        self._finish(at)
        return at

    def _in_string(self, text: str, at: int) -> int:
        plain = _PLAIN.match(text, at)
        stop = plain.end() if plain else at
        if stop > at:
            self._plain(text[at:stop])
        if stop == len(text):
            return stop
        char = text[stop]
        if char == "\\":
            self._escape = "\\"
            self._lex = JsonScanner._in_escape
        elif char == '"':
            self._end_string(stop)
        else:
            return self._fail(stop, f"control character {char!r} inside a string")
        return stop + 1

    def _plain(self, run: str) -> None:
        self._pair(0)
        if not run.isascii() and _SURROGATE.search(run):
            self.lone_surrogate = True
        if self._key is not None:
            self._key.append(run)

    def _end_string(self, at: int) -> None:
        self._pair(0)
        if self._key is None:
            self._finish(at + 1)
            return
        key = "".join(self._key)
        if "\\" in key:
            key = str(json.loads(f'"{key}"'))
        self._key = None
        if key in self._keys[-1]:
            self.duplicate_keys.append(key)
        self._keys[-1].add(key)
        self._lex = JsonScanner._between
        self._expect = _Expect.COLON

    def _in_escape(self, text: str, at: int) -> int:
        """After a backslash: one character, or `u` and four hexadecimal digits."""
        char = text[at]
        if self._escape == "\\":
            if char != "u" and char not in _ESCAPES:
                return self._fail(at, f"invalid escape '\\{char}'")
        elif char not in _HEX:
            return self._unexpected(text, at, "four hexadecimal digits after '\\u'")
        self._escape += char
        if not self._escape.startswith("\\u"):
            self._end_escape(0)
        elif len(self._escape) == len("\\u0000"):
            self._end_escape(int(self._escape.removeprefix("\\u"), base=16))
        return at + 1

    def _end_escape(self, code: int) -> None:
        self._pair(code)
        if self._key is not None:
            self._key.append(self._escape)
        self._lex = JsonScanner._in_string

    def _pair(self, code: int) -> None:
        """Note a surrogate that `code`, the next code unit, does not make a pair."""
        low = code in _LOW
        if low != self._high:
            self.lone_surrogate = True
        self._high = code in _HIGH


def scan(text: str) -> JsonScanner:
    """Return a scanner that has seen `text`."""
    scanner = JsonScanner()
    scanner.feed(text)
    return scanner


# The grammar of JSON numbers as a table.
#
# Spec: RFC 8259 section 6: number = [ minus ] int [ frac ] [ exp ]. A number tells its end only by
# what follows it, so "is it whole" is a property of the state, not an event.

_DIGITS = re.compile(r"[0-9]*")


class NumberState(enum.Enum):
    """How far a number got; the value says what must follow where it is not complete."""

    MINUS = "a digit after '-'"
    ZERO = "zero"
    INTEGER = "integer"
    POINT = "a digit after '.'"
    FRACTION = "fraction"
    E = "a digit or sign in the exponent"
    SIGN = "a digit in the exponent"
    EXPONENT = "exponent"


_S = NumberState
WHOLE_NUMBERS = frozenset({_S.ZERO, _S.INTEGER, _S.FRACTION, _S.EXPONENT})
"""States in which the characters so far are a number."""
_RUNS = frozenset({_S.INTEGER, _S.FRACTION, _S.EXPONENT})
_STEPS = {
    _S.MINUS: {"0": _S.ZERO, "1-9": _S.INTEGER},
    _S.ZERO: {".": _S.POINT, "e": _S.E},
    _S.INTEGER: {".": _S.POINT, "e": _S.E},
    _S.POINT: {"0": _S.FRACTION, "1-9": _S.FRACTION},
    _S.FRACTION: {"e": _S.E},
    _S.E: {"0": _S.EXPONENT, "1-9": _S.EXPONENT, "+-": _S.SIGN},
    _S.SIGN: {"0": _S.EXPONENT, "1-9": _S.EXPONENT},
    _S.EXPONENT: {},
}
_CLASSES = {
    "0": "0",
    **dict.fromkeys("123456789", "1-9"),
    **dict.fromkeys("+-", "+-"),
    **dict.fromkeys("eE", "e"),
    ".": ".",
}


def run_number(state: NumberState, text: str, at: int) -> tuple[NumberState, int]:
    """Return the state after the characters at `at` that continue the number, and their end."""
    while True:
        if state in _RUNS:
            digits = _DIGITS.match(text, at)
            at = digits.end() if digits else at
        step = _STEPS[state].get(_CLASSES.get(text[at : at + 1], ""))
        if step is None:
            return state, at
        state = step
        at += 1
