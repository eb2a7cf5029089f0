"""Arguments in another notation than JSON: a Python dict, a Ruby hash.

A model that does not write JSON writes a notation that it has seen: quotes, literals and separators
change together, and the whole text parses as one object. A server that loses, doubles or mixes up
fragments does not turn JSON into a Python dict, so a text that parses here is the model's.

Strategy: one reader accepts JSON and all deviations of those notations, and notes which occurred.
It parses the whole text or nothing, in linear time, with limited depth.
"""

import re
from typing import NamedTuple

from deltatape.wire.json_value import parse

_LONGEST = 100_000
"""Longer arguments are not read, in characters."""
_DEEPEST = 64
_BLANKS = re.compile(r"\s*+")
_COMMENT = re.compile(r"//[^\n]*|#[^\n]*|/\*(?s:.*?)\*/")
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*+(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?(?=[\s,}\])]|\Z)")
_SYMBOL = re.compile(r":([A-Za-z_]\w*+)")
_KEY = re.compile(r"[A-Za-z_$][\w$.-]*+")
_WORD = re.compile(r"[^\s,{}\[\]()\"'`:=][^,{}\[\]()\"'`\n]*+")
_LINE = re.compile(r"\s*+(?:- )?[A-Za-z_][\w.-]*+:(?: \S.*)?")
_WORDS = {
    "true": "",
    "false": "",
    "null": "",
    "True": "Python's True",
    "False": "Python's False",
    "None": "Python's None",
    "nil": "Ruby's nil",
    "undefined": "undefined",
    "NaN": "NaN",
    "Infinity": "Infinity",
}
"""Literals, and whose they are if not JSON's."""
_ESCAPES = '"\\/bfnrtu'
_FOLLOW = ",:}]"
"""Characters that may follow the closing quote of a string."""
QUOTES = "a quote inside a string that is not escaped"
"""The one habit that a lost piece of text imitates."""
_OF = (
    ("a Ruby hash", {"=> in place of a colon", "a symbol", "Ruby's nil"}),
    ("a Python dict", {"Python's True", "Python's False", "Python's None", "a tuple"}),
    ("an object in JavaScript's notation", {"an unquoted key", "undefined", "a template string"}),
    ("an object in single quotes", {"single quotes"}),
)


class Notation(NamedTuple):
    """The notation of a text that is not JSON."""

    name: str
    """The notation with its article: `a Python dict`, `JSON with a comma before its end`."""
    habits: frozenset[str]
    """The feature that makes it invalid as JSON."""


def notation_of(text: str) -> Notation | None:
    """Return the notation of arguments that are not JSON; None if it is unknown."""
    if len(text) > _LONGEST:
        return None
    bare = text.strip()
    if bare.startswith("{{") and bare.endswith("}}") and isinstance(parse(bare[1:-1]).value, dict):
        return Notation(
            "an object in two pairs of braces, as in templates", frozenset({"double braces"})
        )
    reader = _Reader(text)
    try:
        reader.whole()
    except _UnreadableError:
        return _yaml(text)
    habits = frozenset(reader.habits)
    named = (name for name, signs in _OF if habits & signs)
    name = next(named, f"JSON with {', '.join(sorted(habits))}")
    return Notation(name, habits) if habits else None


def _yaml(text: str) -> Notation | None:
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or not all(map(_LINE.fullmatch, lines)):
        return None
    return Notation("YAML", frozenset({"lines of keys and values"}))


class _UnreadableError(Exception):
    """The text is in no known notation."""


class _Reader:
    """A recursive-descent reader of one text."""

    def __init__(self, text: str) -> None:
        self.habits: set[str] = set()
        self._text = text
        self._at = 0
        self._depth = 0

    def whole(self) -> None:
        """Read the text as one object.

        Raises:
            _UnreadableError: it is none.
        """
        self._skip()
        if not self._skip_any("{"):
            raise _UnreadableError
        self._members()
        self._skip()
        if self._at < len(self._text):
            raise _UnreadableError

    def _skip(self) -> None:
        """Skip white space and comments."""
        while True:
            blanks = _BLANKS.match(self._text, self._at)
            self._at = blanks.end() if blanks else self._at
            comment = _COMMENT.match(self._text, self._at)
            if comment is None:
                return
            self.habits.add("a comment")
            self._at = comment.end()

    def _skip_any(self, *each: str) -> str:
        """Step over the first of `each` that is next, and return it; "" if none is."""
        for one in each:
            if self._text.startswith(one, self._at):
                self._at += len(one)
                return one
        return ""

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _UnreadableError

    def _members(self) -> None:
        """Read the members of an object, after its opening brace."""
        self._enter()
        first = True
        while not self._closes("}", first=first):
            first = False
            self._key()
            self._skip()
            separator = self._skip_any(":", "=>", "=")
            if not separator:
                raise _UnreadableError
            if separator != ":":
                self.habits.add(f"{separator} in place of a colon")
            self._skip()
            self._value()
            if self._ends("}"):
                break
        self._depth -= 1

    def _items(self, closer: str) -> None:
        """Read the items of a list, after its opening bracket."""
        self._enter()
        first = True
        while not self._closes(closer, first=first):
            first = False
            self._value()
            if self._ends(closer):
                break
        self._depth -= 1

    def _closes(self, closer: str, *, first: bool) -> bool:
        """Return whether `closer` comes next where a member could."""
        self._skip()
        if not self._skip_any(closer):
            return False
        if not first:
            self.habits.add("a comma before its end")
        return True

    def _ends(self, closer: str) -> bool:
        """Consume `closer` and return True, or consume a comma and return False.

        Raises:
            _UnreadableError: neither comes next.
        """
        self._skip()
        if self._skip_any(closer):
            return True
        if not self._skip_any(","):
            raise _UnreadableError
        return False

    def _key(self) -> None:
        if self._text[self._at : self._at + 1] in ('"', "'"):
            self._string()
            return
        symbol = _SYMBOL.match(self._text, self._at)
        key = symbol or _KEY.match(self._text, self._at)
        if key is None:
            raise _UnreadableError
        self.habits.add("a symbol" if symbol else "an unquoted key")
        self._at = key.end()

    def _value(self) -> None:
        if self._text[self._at : self._at + 1] in ('"', "'", "`"):
            self._string()
            return
        opener = self._skip_any("{", "[", "(")
        if opener == "{":
            self._members()
        elif opener:
            self.habits |= {"a tuple"} if opener == "(" else set()
            self._items("]" if opener == "[" else ")")
        elif number := _NUMBER.match(self._text, self._at):
            self._at = number.end()
        else:
            self._word()

    def _word(self) -> None:
        symbol = _SYMBOL.match(self._text, self._at)
        word = symbol or _WORD.match(self._text, self._at)
        if word is None:
            raise _UnreadableError
        self._at = word.end()
        habit = "a symbol" if symbol else _WORDS.get(word[0].rstrip(), "an unquoted value")
        self.habits |= {habit} - {""}

    def _string(self) -> None:
        """Read the string here; a quote that no `_FOLLOW` follows belongs to it."""
        quote = self._text[self._at]
        if quote != '"':
            self.habits.add("single quotes" if quote == "'" else "a template string")
        self._at += 1
        while self._at < len(self._text):
            char = self._text[self._at]
            self._at += 1
            if char == quote:
                if self._is_end():
                    return
                self.habits.add(QUOTES)
            elif char == "\\":
                escaped = self._text[self._at : self._at + 1]
                if escaped not in _ESCAPES and quote == '"':
                    self.habits.add("an escape that JSON does not have")
                self._at += 1
            elif char < " ":
                self.habits.add("a raw control character in a string")
        raise _UnreadableError

    def _is_end(self) -> bool:
        blanks = _BLANKS.match(self._text, self._at)
        at = blanks.end() if blanks else self._at
        following = self._text[at : at + 1]
        return following in _FOLLOW + ")" or self._text.startswith(("=", "//", "#"), at)
