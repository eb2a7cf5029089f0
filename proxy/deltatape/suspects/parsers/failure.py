"""Where and why a text is not JSON, in terms from which every parser's words can be made.

A scan over the tokens of RFC 8259, without recursion, up to the first thing that the grammar does
not allow.
"""

import enum
import re
from collections.abc import Callable
from typing import NamedTuple

_BLANKS = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_LITERALS = {"t": "true", "f": "false", "n": "null"}
_HEX = re.compile(r"[0-9a-fA-F]{0,4}")


class Where(enum.Enum):
    """What the grammar was in when the text failed."""

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


class Failure(NamedTuple):
    """The first thing in a text that is not JSON."""

    text: str
    at: int
    """Where, in characters; the text's length if it ended too early."""
    where: Where
    token: int
    """Where the token begins in which it failed."""
    stack: str
    """The open brackets."""
    expected: str = ""
    """Of a literal, the character that should be there."""
    first_key: bool = True
    """Whether the last key is the first one of its object."""

    @property
    def ended(self) -> bool:
        """Whether the text ended too early."""
        return self.at >= len(self.text)

    @property
    def sign(self) -> str:
        """The character at which it failed; "" at the end."""
        return self.text[self.at : self.at + 1]


class _FailedError(Exception):
    def __init__(self, at: int, where: Where, expected: str = "") -> None:
        super().__init__(at)
        self.at, self.where, self.expected = at, where, expected


def failure_of(text: str) -> Failure | None:
    """Why `text` is not one JSON value; None if it is."""
    scan = _Scan(text)
    try:
        scan.run()
    except _FailedError as failed:
        return Failure(
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
        self._next = Where.VALUE
        self._steps: dict[Where, Callable[[int], int]] = {
            Where.VALUE: self._value,
            Where.ELEMENT: self._element,
            Where.FIRST_KEY: self._key,
            Where.KEY: self._key,
            Where.COLON: self._colon,
            Where.IN_OBJECT: self._next_or_end,
            Where.IN_ARRAY: self._next_or_end,
        }

    def run(self) -> None:
        at = 0
        while True:
            at = self.token = self._blanks(at)
            if self._next is Where.AFTER:
                break
            at = self._steps[self._next](at)
        if at < len(self.text):
            raise _FailedError(at, Where.AFTER)

    def _blanks(self, at: int) -> int:
        found = _BLANKS.match(self.text, at)
        return found.end() if found else at

    def _sign(self, at: int) -> str:
        return self.text[at : at + 1]

    def _end_value(self) -> None:
        if not self.stack:
            self._next = Where.AFTER
        else:
            self._next = Where.IN_OBJECT if self.stack[-1] == "{" else Where.IN_ARRAY

    def _element(self, at: int) -> int:
        if self._sign(at) == "]":
            return self._close(at)
        return self._value(at)

    def _value(self, at: int) -> int:
        sign = self._sign(at)
        if sign in ("{", "["):
            self.stack.append(sign)
            self._next = Where.FIRST_KEY if sign == "{" else Where.ELEMENT
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
        if sign == "}" and self._next is Where.FIRST_KEY:
            return self._close(at)
        if sign != '"':
            raise _FailedError(at, self._next)
        end = self._string(at + 1)
        self.first_key = self._next is Where.FIRST_KEY
        self._next = Where.COLON
        return end

    def _colon(self, at: int) -> int:
        if self._sign(at) != ":":
            raise _FailedError(at, Where.COLON)
        self._next = Where.VALUE
        return at + 1

    def _next_or_end(self, at: int) -> int:
        sign, inside = self._sign(at), self._next
        if sign == ("}" if inside is Where.IN_OBJECT else "]"):
            return self._close(at)
        if sign != ",":
            raise _FailedError(at, inside)
        self._next = Where.KEY if inside is Where.IN_OBJECT else Where.VALUE
        return at + 1

    def _close(self, at: int) -> int:
        self.stack.pop()
        self._end_value()
        return at + 1

    def _literal(self, at: int, word: str) -> int:
        for offset, letter in enumerate(word):
            if self._sign(at + offset) != letter:
                raise _FailedError(at + offset, Where.LITERAL, letter)
        return at + len(word)

    def _number(self, at: int) -> int:
        found = _NUMBER.match(self.text, at)
        if found is None:
            raise _FailedError(at + 1, Where.MINUS)
        fraction, exponent = found.groups()
        end, sign = found.end(), self._sign(found.end())
        if sign == "." and not (fraction or exponent):
            raise _FailedError(end + 1, Where.FRACTION)
        if sign in ("e", "E") and not exponent:
            raise _FailedError(end + 1 + (self._sign(end + 1) in ("+", "-")), Where.EXPONENT)
        if sign.isascii() and sign.isdigit():
            raise _FailedError(end, Where.LEADING_ZERO)
        return end

    def _string(self, at: int) -> int:
        """The end of a string whose first character stands at `at`."""
        while True:
            plain = _PLAIN.match(self.text, at)
            at = plain.end() if plain else at
            sign = self._sign(at)
            if sign == '"':
                return at + 1
            if sign == "\\":
                at = self._escape(at + 1)
            else:
                raise _FailedError(at, Where.CONTROL if sign else Where.STRING)

    def _escape(self, at: int) -> int:
        sign = self._sign(at)
        if sign == "u":
            digits = _HEX.match(self.text, at + 1)
            end = digits.end() if digits else at + 1
            if end < at + 5:
                raise _FailedError(end, Where.HEX if end < len(self.text) else Where.STRING)
            return end
        if not sign:
            raise _FailedError(at, Where.STRING)
        if sign not in '"\\/bfnrt':
            raise _FailedError(at, Where.ESCAPE)
        return at + 1
