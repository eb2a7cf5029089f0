r"""Replace every letter and digit of prose by a filler of the same kind and length.

    "Weather in Bern on 2026-11-22"  ->  "xxxxxxx xx xxxx xx 1111-11-11"

Strategy. Equal strings on a tape get equal fillers, however they are escaped, so that requests
still repeat what responses contain. Different strings of the same shape are numbered, and the
number is spelled in their last letters, so that different calls stay different. Masking is
idempotent.

Kept: whitespace, punctuation, escapes, `true`, `false`, `null`, and quoted words of a vocabulary
(the names and the fixed values that the tools of a request define).

Text is as in `escaped_text`: bytes as Latin-1.
"""

import hashlib
import re
from collections.abc import Set as AbstractSet

from deltatape.secret_text.escaped_text import ESCAPE, unescaped

_PAIR = r"\\+u[dD][89abAB][0-9a-fA-F]{2}\\+u[dD][c-fC-F][0-9a-fA-F]{2}"
_FILL = re.compile(
    r"(?P<kept>\b(?:true|false|null)\b)"
    rf"|(?P<pair>{_PAIR})|(?P<code>\\+u[0-9a-fA-F]{{4}})|(?P<escape>\\+.)"
    r"|(?P<letters>[A-Za-z]+)|(?P<digits>[0-9]+)"
    r"|(?P<two>[\xc3-\xdf][\x80-\xbf]|\xc2[\xaa\xb2\xb3\xb5\xb9\xba])"
    r"|(?P<three>[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xe0[\xa0-\xbf][\x80-\xbf]"
    r"|\xed[\x80-\x9f][\x80-\xbf])"
    r"|(?P<four>\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}"
    r"|\xf4[\x80-\x8f][\x80-\xbf]{2})",
    re.DOTALL | re.ASCII,
)
_TWO, _THREE, _FOUR = (char.encode().decode("latin-1") for char in "\xd7\u2179\U0001d465")
"""Letters like an x, of two, three and four bytes."""
_LETTERS = "xabcdefghijklmnopqrstuvwyz"
_DIGITS = "123456789"
"""Without 0, so that a number never begins with one."""

_JSON = re.compile(
    r'"(?P<string>[^"\\]*+(?:\\.[^"\\]*+)*+)"?'
    r"|(?P<number>-?[0-9][0-9.]*+)(?:[eE][+-]?[0-9]+)?"
    r"|(?P<words>[^\s{}\[\],:\"]++)",
    re.DOTALL,
)
_JSON_START = re.compile(r'\s*[{\["]')
_LITERALS = frozenset(("true", "false", "null"))
_MANY = re.compile(r"\\+(?=u[0-9a-fA-F]{4})")


class Fillers:
    """The fillers of one tape.

    Args:
        vocabulary: quoted words to be kept, as bytes in Latin-1.
    """

    def __init__(self, vocabulary: AbstractSet[str] = frozenset()) -> None:
        self._vocabulary = vocabulary
        self._kept = vocabulary | _LITERALS
        self._numbers: dict[bytes, dict[bytes, int]] = {}

    def masked(self, text: str) -> str:
        """Return `text` with fillers: in the strings of JSON, else throughout."""
        if not _JSON_START.match(text):
            return self._fill(text)
        parts: list[str] = []
        done = 0
        for match in _JSON.finditer(text):
            start, end = match.span(match.lastgroup or 0)
            value = text[start:end]
            parts += (text[done:start], value if value in self._vocabulary else self._fill(value))
            done = end
        return "".join([*parts, text[done:]])

    def _fill(self, text: str) -> str:
        """Return one string with fillers."""
        shape, slots = _shape(text)
        if not slots:
            return shape
        # However it is escaped, a string has one number.
        key, shape_key = text, shape
        if "\\" in text:
            key, shape_key = _unescaped(text), _unescaped(shape)
        numbers = self._numbers.setdefault(_hash(shape_key), {})
        hashed = _hash(key)
        if hashed not in numbers:
            numbers[hashed] = self._next_number(shape, slots, numbers)
        return _spelled(shape, slots, numbers[hashed])

    def _next_number(
        self, shape: str, slots: list[tuple[int, int]], numbers: dict[bytes, int]
    ) -> int:
        """Return the next number whose spelling is not a word to keep."""
        number = max(numbers.values(), default=-1) + 1
        while (spelled := _spelled(shape, slots, number)) in self._kept:
            if number and spelled == shape:
                break
            number += 1
        return number


def _shape(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return `text` with the plainest fillers, and the places of its letters and digits."""
    slots: list[tuple[int, int]] = []

    def filler(match: re.Match[str]) -> str:
        found = match.group()
        match match.lastgroup:
            case "letters" | "digits":
                slots.append(match.span())
                return (_LETTERS if match.lastgroup == "letters" else _DIGITS)[0] * len(found)
            case "two":
                return _TWO
            case "three":
                return _THREE
            case "four":
                return _FOUR
            case "code" | "pair":
                return _code(found)
            case _:
                return found

    return _FILL.sub(filler, text), slots


def _code(escape: str) -> str:
    r"""Return a filler for `\uXXXX` or two of them, with as many backslashes."""
    text = unescaped(re.sub(r"\\+", r"\\", escape), [(0, len(escape))]).text
    filler, _ = _shape(text) if "\\" not in text else (text, [])
    if filler == text:
        return escape
    digits = filler.encode("latin-1").decode().encode("utf-16-be").hex()
    parts = iter([digits[at : at + 4] for at in range(0, len(digits), 4)])
    return re.sub(r"u[0-9a-fA-F]{4}", lambda _: f"u{next(parts)}", escape)


def _spelled(shape: str, slots: list[tuple[int, int]], number: int) -> str:
    """Return `shape` with `number` in its last letters and digits; unchanged if it has too few."""
    text = list(shape)
    for start, end in reversed(slots):
        for at in range(end - 1, start - 1, -1):
            if not number:
                return "".join(text)
            alphabet = _LETTERS if text[at] == _LETTERS[0] else _DIGITS
            number, digit = divmod(number, len(alphabet))
            text[at] = alphabet[digit]
    return shape if number else "".join(text)


def _unescaped(text: str) -> str:
    r"""Decode every `\uXXXX` in `text`."""
    single = _MANY.sub(lambda _: "\\", text)
    return ESCAPE.sub(
        lambda m: unescaped(m[0], [(0, len(m[0]))]).text if m[0][1] == "u" else m[0], single
    )


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.strip().encode("latin-1")).digest()[:16]
