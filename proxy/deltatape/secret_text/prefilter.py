r"""Tell quickly that a text holds no secret, at no level of escapes and encodings.

Nearly every text that is searched has none. `may_hold_secret` is wrong in one direction only: what
`search.in_view` finds anything in, it never passes over.

Strategy. All secrets but a few have a run of 15 characters of keys, which little text has: of those
runs alone it is asked whether a hint stands in them, and whether they encode text. Short JSON
escapes (`\n`, `\"`, `\\`) are not undone: the patterns in `unread` read them as they are. Other
escapes are rare; where there are any, each level is looked at.
"""

import base64
import re
import string
from collections import deque
from collections.abc import Iterable, Iterator
from functools import cache

from deltatape.secret_text.escaped_text import undone
from deltatape.secret_text.patterns import NAMES, PATTERNS

ENCODINGS = 2
"""How often base64 and hexadecimal are undone at most."""
LEVELS = 16
"""How often escapes are undone at most: once for each JSON text within a string."""

_SHORTEST_RUN = 15
_RUN = b"a" * _SHORTEST_RUN
_CLASSES = bytes(
    ord("a") if chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in "-_.~+/=:") else 32
    for byte in range(256)
)
"""Characters of keys as `a`, all others as spaces."""
_BACKSLASHES = b"\\" * 16
"""More than the patterns in `unread` allow for."""

_ANYWHERE = frozenset(("://", "PRIVATE KEY"))
"""Hints of secrets that need no long run."""
_OF_RUNS = tuple(
    pattern for pattern in PATTERNS if pattern.hints and _ANYWHERE.isdisjoint(pattern.hints)
)
_HINTS = re.compile(
    b"|".join(sorted({re.escape(hint).encode() for one in _OF_RUNS for hint in one.hints}))
)
_INSIDE = frozenset(("Q~", ":AA", ".ey"))
"""Hints that occur within a match; all others occur at its beginning."""
_AROUND, _AFTER = (
    tuple(
        (hint.encode(), pattern)
        for pattern in _OF_RUNS
        for hint in pattern.hints
        if (hint in _INSIDE) is inside
    )
    for inside in (True, False)
)
_NAMED = tuple(pattern for pattern in PATTERNS if pattern.names)
_URL, _PEM = (
    next(pattern for pattern in PATTERNS if hint in pattern.hints)
    for hint in ("://", "PRIVATE KEY")
)
_VALUE = re.compile(
    rb"(?:or)?d?(?:[\\\"'\s]|(?<=\\)[bfnrt]){0,128}[:=]"
    rb"|(?:[ \t]|\\++t){1,4}[A-Za-z0-9._~+/=-]{16}"
    rb"|(?:\W|(?<=\\)[bfnrt]){1,128}(?i:basic) "
)
"""What follows on a word in a name of a secret."""
_NAME = re.compile(rf"(?i:{NAMES}|authorization)".encode())
_QUOTE = re.compile(rb"(?:or)?d?(?:\W|(?<=\\)[bfnrt]){0,257}\"")
"""A quotation mark after a word in a name of a secret: as far away as its value may be."""
_WORDS = (b"key", b"token", b"secret", b"passw", b"bearer", b"authorization")
"""Every name of a secret ends with one of them, in lower case; a password's begins with one."""
_LONGEST_NAME = 24
_LONGEST_VALUE = 600
"""Characters that decide whether a name has a secret: separators, and 200 of its value."""

_RARE = re.compile(rb"\\[u/]|%[0-9a-fA-F]{2}|&(?:#|amp;|lt;|gt;|quot;|apos;)")
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{20,}+")
_HEX = re.compile(rb"[0-9A-Fa-f]{30,}+")
_STANDARD = bytes.maketrans(b"-_", b"+/")
_GROUP = 4
"""Digits of base64 that are three bytes."""
_SHORT = 1000
"""Digits of base64 up to which it is quicker to look at them than to decode them."""
_ASCII = re.compile(rb"[\x00-\x7e]{7,}+")
"""Runs of ASCII that are at least as long as the shortest match."""
_REMEMBERED = 8
_LEAST_SHARED, _MOST_SHARED = 1 << 15, 1 << 22
"""The least and the most bytes of a text that are compared with an earlier one."""
_OVERLAP = 1 << 14
_TEXT = frozenset(b"\t\r\n" + bytes(range(ord(" "), ord("~") + 1)))
_PRINTABLE = bytes(ord("a") if byte in _TEXT else 0 for byte in range(256))


def _bits(mask: int, shift: int) -> set[int]:
    return {byte >> shift & mask for byte in _TEXT}


def _digits_of_text() -> Iterator[bytes]:
    """Yield which digits of base64 encode text, by their place in a group."""
    alphabet = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
    high = {two << 4 | four for two in _bits(3, 0) for four in _bits(15, 4)}
    low = {four << 2 | two for four in _bits(15, 0) for two in _bits(3, 6)}
    for values in (_bits(63, 2), high, low, _bits(63, 0)):
        yield f"[{''.join(alphabet[value] for value in sorted(values))}]".encode()


@cache
def _four_groups_of_text() -> re.Pattern[bytes]:
    """Return the expression of base64 of text.

    It has four groups: whatever the first one's place, 15 bytes have as many that are complete.
    """
    return re.compile(rb"(?:%b){4}" % b"".join(_digits_of_text()))


def may_hold_secret(data: bytes, encodings: int = ENCODINGS) -> bool:
    """Return False only if there is no secret in `data`, however it is escaped and encoded."""
    before = b""
    for _ in range(LEVELS):
        runs = b"\n".join(dict.fromkeys(_runs(data)))  # streams repeat theirs in every event
        if _is_suspicious(data, runs):
            return True
        if data == before or not has_rare_escape(data):
            return encodings > 0 and may_any_hold_secret(_encoded_texts(runs), encodings - 1)
        before, data = data, undone(data.decode("latin-1")).encode("latin-1")
    return True


def may_any_hold_secret(texts: Iterable[bytes], encodings: int = ENCODINGS) -> bool:
    """Return False only if there is no secret in any of `texts`, see `may_hold_secret`."""
    # A search costs more than its text for small ones: no secret has a line feed at its ends.
    usual: list[bytes] = []
    escaped: list[bytes] = []
    for text in texts:
        (escaped if has_rare_escape(text) else usual).append(text)
    return any(may_hold_secret(b"\n".join(each), encodings) for each in (usual, escaped) if each)


def may_span_strings(data: bytes) -> bool:
    """Return False only if no secret in `data` contains a quotation mark.

    Those that do begin with the name of a credential: `"password":"` and what follows.
    """
    before = b""
    for _ in range(LEVELS):
        lower = data.lower()
        for word in _WORDS:
            for at in _places(lower, word) if word in lower else ():
                quote = _QUOTE.match(data, at + len(word))
                if quote and _NAME.search(data, max(at - _LONGEST_NAME, 0), quote.end()):
                    return True
        if data == before or not has_rare_escape(data):
            return False
        before, data = data, undone(data.decode("latin-1")).encode("latin-1")
    return True


def may_encode_text(data: bytes) -> bool:
    """Return False only if nothing in `data` is base64 or hexadecimal of text."""
    return any(_encoded_texts(data))


def _runs(data: bytes) -> Iterator[bytes]:
    """Yield the long runs of characters of keys, each with the backslash in front of it."""
    classes = data.translate(_CLASSES)
    end = 0
    while (start := classes.find(_RUN, end)) >= 0:
        end = classes.find(b" ", start + _SHORTEST_RUN)
        end = len(data) if end < 0 else end
        yield data[start - (data[start - 1 : start] == b"\\") : end]


def _is_suspicious(data: bytes, runs: bytes) -> bool:
    if _BACKSLASHES in data:
        return True
    if _HINTS.search(runs):
        if any(
            pattern.unread.search(runs, *run)
            for hint, pattern in _AROUND
            for run in _lines(runs, hint)
        ):
            return True
        if any(
            pattern.unread.match(runs, at) for hint, pattern in _AFTER for at in _places(runs, hint)
        ):
            return True
    if b"@" in data and any(_URL.unread.match(data, at) for at in _places(data, b"://")):
        return True
    if b"PRIVATE KEY" in data and _PEM.unread.search(data):
        return True
    lower = data.lower()
    for word in _WORDS:
        for at in _places(lower, word) if word in lower else ():
            if _VALUE.match(data, at + len(word)) and any(
                name.unread.search(data, max(at - _LONGEST_NAME, 0), at + _LONGEST_VALUE)
                for name in _NAMED
            ):
                return True
    return False


def _places(data: bytes, word: bytes) -> Iterator[int]:
    at = data.find(word)
    while at >= 0:
        yield at
        at = data.find(word, at + 1)


def _lines(data: bytes, word: bytes) -> Iterator[tuple[int, int]]:
    """Yield the spans of the lines that have `word`."""
    end = 0
    while (at := data.find(word, end)) >= 0:
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        yield data.rfind(b"\n", 0, at) + 1, end


def has_rare_escape(data: bytes) -> bool:
    """Return whether `data` has an escape that is no short one: such have to be undone."""
    # A single byte is found ten times as quickly as two.
    has_backslash = b"\\" in data and (b"\\u" in data or b"\\/" in data)
    has_mark = has_backslash or b"%" in data or b"&" in data
    return has_mark and _RARE.search(data) is not None


def _encoded_texts(runs: bytes) -> Iterator[bytes]:
    """Yield the text that the runs encode; see `escaped_text.encoded_runs`."""
    for match in _HEX.finditer(runs):
        # The letter of an escape in front of it may look like a digit.
        for shift in range(2):
            digits = match[0][shift:]
            yield from _text(bytes.fromhex(digits[: len(digits) // 2 * 2].decode()))
    for match in _BASE64.finditer(runs):
        run = match[0].translate(_STANDARD)
        if len(run) <= _SHORT and not _four_groups_of_text().search(run):
            continue
        # The letter of an escape in front of it is no digit: without it, there is one more.
        escaped = runs[match.start() - 1 : match.start()] == b"\\"
        for shift in range(_GROUP + escaped):
            digits = run[shift:]
            digits = digits[: len(digits) - (len(digits) % _GROUP == 1)]
            yield from _text(base64.b64decode(digits + b"=" * (-len(digits) % _GROUP)))


def _text(data: bytes) -> Iterator[bytes]:
    if _RUN in data.translate(_PRINTABLE):
        # Of an image, little is left: no match has other characters, but between its words.
        yield data if len(data) <= _SHORT else b"\xff".join(_ASCII.findall(data))


class ClearedTexts:
    """Searches texts that may repeat most of an earlier one: an agent sends its history again.

    What begins and ends as a text without a secret needs a search only in between. The parts are
    cut at quotation marks, which no escape, no URL and no run has, and overlap by more than what
    may stand between a name and the end of its value, at any level of short escapes. Where there
    are other escapes near the cut, the whole text is searched.
    """

    def __init__(self) -> None:
        self._clear: deque[bytes] = deque(maxlen=_REMEMBERED)

    def remembers(self, data: bytes) -> bool:
        """Return whether `data` is so long that comparing it with others pays."""
        return _LEAST_SHARED < len(data) <= _MOST_SHARED

    def may_hold_secret(self, data: bytes) -> bool:
        """Return False only if there is no secret in `data`; see the function of this name."""
        near, start = max(
            ((clear, _shared(clear, data)) for clear in self._clear),
            key=lambda found: found[1],
            default=(b"", 0),
        )
        if start == len(data):
            return False
        if may_hold_secret(data if start < _LEAST_SHARED else _unlike(near, start, data)):
            return True
        if near and start >= _LEAST_SHARED:
            self._clear.remove(near)  # the next one goes on from here
        self._clear.append(data)
        return False


def _unlike(near: bytes, start: int, data: bytes) -> bytes:
    """Return the part of `data` that has to be searched since `near` is clear.

    Args:
        near: a text without a secret.
        start: how many bytes at the beginning they share.
        data: the text.
    """
    cut = _quote_before(data, start - _OVERLAP)
    if cut < 0 or _RARE.search(data, max(cut - _LONGEST_NAME, 0), start):
        return data
    size = min(len(near), len(data)) - start
    end = len(data) - _shared(near[len(near) - size :][::-1], data[len(data) - size :][::-1])
    after = data.find(b'"', end + _OVERLAP)
    if after < 0 or data[after - 1 : after] == b"\\" or _RARE.search(data, end, after):
        return data[cut:]
    return data[cut:after]


def _quote_before(data: bytes, end: int) -> int:
    """Return where the last quotation mark before `end` is that has no backslash; -1 if nowhere."""
    at = data.rfind(b'"', 0, max(end, 0))
    while at > 0 and data[at - 1 : at] == b"\\":
        at = data.rfind(b'"', 0, at)
    return at


def _shared(first: bytes, second: bytes) -> int:
    """Return how many bytes at their beginnings are the same."""
    at, step = 0, 1 << 16
    while step:
        while at + step <= len(first) and first[at : at + step] == second[at : at + step]:
            at += step
        step //= 2
    return at
