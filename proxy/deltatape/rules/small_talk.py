"""Messages that consist only of a greeting, thanks or a farewell.

Strategy: a message is small talk if it consists of known phrases and nothing else. Case, accents,
punctuation, pictographs and the apostrophe do not count; a question mark does. Words that may
answer a question (yes, no, ok, stop, please) are in no phrase: they may be a request.
"""

import re
from collections.abc import Collection
from functools import lru_cache

_LONGEST = 400
"""Characters of a message that may be small talk."""
_APOSTROPHE = re.compile(r"['\u2019`]")
_WORD = re.compile(r"[^\W_]+")
_SIGN = re.compile(r"[?=<>{}\[\]\\/@#$%&|+*^~_]")
"""What is more than punctuation."""

PHRASES = (
    # greetings
    "hi",
    "hi there",
    "hello",
    "hello there",
    "hey",
    "hey there",
    "good morning",
    "good afternoon",
    "good evening",
    "nice to meet you",
    "hallo",
    "guten tag",
    "guten morgen",
    "guten abend",
    "bonjour",
    "bonsoir",
    "salut",
    "hola",
    "buenos dias",
    "buenas tardes",
    "ciao",
    "buongiorno",
    "ola",
    "bom dia",
    # thanks
    "thanks",
    "thanks a lot",
    "thanks so much",
    "thanks a bunch",
    "thanks again",
    "thanks for everything",
    "thanks for your help",
    "many thanks",
    "thx",
    "thank you",
    "thank you so much",
    "thank you very much",
    "thank you for your help",
    "cheers",
    "much appreciated",
    "i appreciate it",
    "that is all",
    "thats all",
    "that is all i need",
    "thats all i need",
    "thats all i needed",
    "thats all for now",
    "thats all for today",
    "that will be all",
    "danke",
    "danke schon",
    "vielen dank",
    "das ist alles",
    "merci",
    "merci beaucoup",
    "gracias",
    "muchas gracias",
    "grazie",
    "grazie mille",
    "obrigado",
    "obrigada",
    "dank je",
    "bedankt",
    "you are welcome",
    "youre welcome",
    # farewells
    "bye",
    "bye bye",
    "bye for now",
    "goodbye",
    "good bye",
    "good night",
    "see you",
    "see you later",
    "see you soon",
    "see you tomorrow",
    "see ya",
    "cya",
    "take care",
    "have a nice day",
    "have a good day",
    "have a great day",
    "have a nice weekend",
    "talk to you later",
    "farewell",
    "tschuss",
    "auf wiedersehen",
    "bis bald",
    "schonen tag noch",
    "au revoir",
    "a bientot",
    "bonne journee",
    "adios",
    "hasta luego",
    "arrivederci",
    "tchau",
    "tot ziens",
    "doei",
)
"""What counts as small talk, each phrase in its words."""


def small_talk(text: str, most_words: int, phrases: Collection[str] = PHRASES) -> str:
    """Return the words of `text` if it is only small talk; else "".

    Args:
        text: of a message.
        most_words: how many words it may have.
        phrases: what counts.
    """
    if len(text) > _LONGEST or _SIGN.search(text):
        return ""
    words = _WORD.findall(_plain(text))
    if not 0 < len(words) <= most_words:
        return ""
    known = _known(frozenset(phrases))
    return " ".join(words) if _is_made_of(words, known) else ""


def _plain(text: str) -> str:
    """Return text in lower case, without apostrophes or accents, which people often omit."""
    return _APOSTROPHE.sub("", text.casefold()).translate(_BARE)


_BARE = str.maketrans("áàâäãåéèêëíìîïóòôöõúùûüñç", "aaaaaaeeeeiiiiooooouuuunc")


@lru_cache(maxsize=8)
def _known(phrases: frozenset[str]) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(_WORD.findall(_plain(phrase))) for phrase in phrases)


def _is_made_of(words: list[str], known: frozenset[tuple[str, ...]]) -> bool:
    """Return whether `words` can be split into known phrases, in linear time."""
    longest = max(map(len, known), default=0)
    reached = {0}
    for at in range(len(words)):
        if at in reached:
            ends = range(at + 1, min(at + longest, len(words)) + 1)
            reached.update(end for end in ends if tuple(words[at:end]) in known)
    return len(words) in reached
