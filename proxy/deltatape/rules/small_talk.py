"""Messages that consist only of a greeting, thanks or a farewell.

Strategy: a message is small talk if it consists of known phrases and nothing else. Case, accents,
punctuation, pictographs and the apostrophe do not count; a question mark does. Words that may
answer a question (yes, no, ok, stop, please) are in no phrase: they may be a request.
"""

import re
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

from deltatape.model.rule_settings import PHRASES

_LONGEST = 400
"""A longer message is not small talk, in characters."""
_APOSTROPHE = re.compile(r"['\u2019`]")
_WORD = re.compile(r"[^\W_]+")
_SIGN = re.compile(r"[?=<>{}\[\]\\/@#$%&|+*^~_]")
"""Characters other than punctuation."""


def small_talk(text: str, most_words: int, phrases: Collection[str] = PHRASES) -> str:
    """Return the words of `text` if it is only small talk; else "".

    Args:
        text: the text of a message.
        most_words: how many words it may have.
        phrases: what counts.
    """
    if len(text) > _LONGEST or _SIGN.search(text):
        return ""
    words = _WORD.findall(_plain(text))
    if not 0 < len(words) <= most_words:
        return ""
    return " ".join(words) if _is_made_of(words, _phrases(frozenset(phrases))) else ""


def _plain(text: str) -> str:
    """Return text in lower case, without apostrophes or accents, which people often omit."""
    return _APOSTROPHE.sub("", text.casefold()).translate(_BARE)


_BARE = str.maketrans("áàâäãåéèêëíìîïóòôöõúùûüñç", "aaaaaaeeeeiiiiooooouuuunc")


class _Phrases(NamedTuple):
    """Phrases as their words, and how many the longest has."""

    known: frozenset[tuple[str, ...]]
    longest: int


@lru_cache(maxsize=8)
def _phrases(phrases: frozenset[str]) -> _Phrases:
    known = frozenset(tuple(_WORD.findall(_plain(phrase))) for phrase in phrases)
    return _Phrases(known, max(map(len, known), default=0))


def _is_made_of(words: list[str], phrases: _Phrases) -> bool:
    """Return whether `words` can be split into known phrases, in linear time."""
    known, longest = phrases
    reached = {0}
    for at in range(len(words)):
        if at in reached:
            ends = range(at + 1, min(at + longest, len(words)) + 1)
            reached.update(end for end in ends if tuple(words[at:end]) in known)
    return len(words) in reached
