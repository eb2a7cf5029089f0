r"""Text of a tape made safe to print: the one place that escapes, and hides secrets.

A tape is untrusted: its text must not move a terminal's cursor, reverse the reading order, start
a line of its own in a log, or end one early in CI. Every character that could is written as a
visible escape as in Python and JSON source: `\n`, `\x1b`, `\u202e`. A backslash stays as it is,
so that JSON remains readable; what is shown is for eyes, not for parsers.

A report goes where the tape does not: what looks like a secret is shown as asterisks.
"""

import unicodedata
from collections.abc import Sequence

from deltatape.secret_text.search import each_without_secrets, without_secrets

MAX_EVIDENCE = 200
"""Longest evidence of a finding, in characters after escaping."""

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Cc control, Cf format (bidirectional controls, zero-width, tags), Cs lone surrogates, Zl and Zp
# line and paragraph separators, Co and Cn private and unassigned: fonts draw them as they like.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"})
_ELLIPSIS = "..."
_LONG_SECRET = 256


def escape(text: str) -> str:
    """`text` on one line, with everything that a terminal or a log could act on made visible."""
    return _visible(without_secrets(text))


def escape_each(texts: Sequence[str]) -> list[str]:
    """Return `texts`, each as `escape` returns it; many together take a fraction of the time."""
    return [_visible(text) for text in each_without_secrets(texts)]


def _visible(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(character) for character in text)


def _escaped(character: str) -> str:
    if character in _NAMED:
        return _NAMED[character]
    if unicodedata.category(character) not in _HIDDEN:
        return character
    code = ord(character)
    if code <= 0xFF:  # noqa: PLR2004 - what two hex digits can say
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - four digits


def excerpt(text: str, limit: int = MAX_EVIDENCE) -> str:
    """`text` escaped and cut to `limit` characters; `...` at its end if something is left out."""
    # A secret that the cut would make unrecognisable is seen whole.
    text = without_secrets(text[: limit + _LONG_SECRET])
    shown = _visible(text[: limit + 1])
    if len(text) <= limit and len(shown) <= limit:
        return shown
    return _whole_escapes(text, limit - len(_ELLIPSIS)) + _ELLIPSIS


def _whole_escapes(text: str, limit: int) -> str:
    """Return as many characters of `text` as fit into `limit` once escaped, none cut in two."""
    parts: list[str] = []
    for character in text[:limit]:
        part = _escaped(character)
        if len(part) > limit:
            break
        limit -= len(part)
        parts.append(part)
    return "".join(parts)


def count(number: int, noun: str) -> str:
    """Return `1 event`, `2 events`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
