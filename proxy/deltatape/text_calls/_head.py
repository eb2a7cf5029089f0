"""Reads the text between an opener and a call's arguments.

A head is a sequence of literals and words, with white space allowed between them. If the text ends
within it, it is cut: a call has begun. If anything else stands there, it is talk.
"""

import re
from dataclasses import dataclass, field

from deltatape.text_calls._source import TextSource


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteralChoice:
    """One of several texts; of two with a common start, the longer one first."""

    options: tuple[str, ...]
    optional: bool = False
    peek: bool = False
    """Whether it only has to follow, and is no part of the head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameToken:
    """A word of the call's own."""

    key: str
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallHead:
    """A head as far as it was read."""

    end: int
    cut: bool = False
    """Whether the text ends within it."""
    words: dict[str, str] = field(default_factory=dict)
    partial: str = ""
    """The word within which the text ends."""

    def word(self, key: str) -> str:
        """Return a word; "" if it did not come."""
        return self.words.get(key, "")


Steps = tuple[LiteralChoice | NameToken, ...]


def literal(*options: str) -> LiteralChoice:
    """Return a literal that has to come."""
    return LiteralChoice(options=options)


def maybe(*options: str) -> LiteralChoice:
    """Return a literal that can be missing."""
    return LiteralChoice(options=options, optional=True)


def before(*options: str) -> LiteralChoice:
    """Return a literal that has to follow the head."""
    return LiteralChoice(options=options, peek=True)


def word(key: str, pattern: str) -> NameToken:
    """Return a word that `pattern` describes."""
    return NameToken(key=key, pattern=re.compile(pattern))


_PUNCTUATION = re.compile(r"[^\w$]")
"""What no word of a call begins with: it ends a sentence about the tag."""
INVOKE: Steps = (
    literal("name"),
    literal("="),
    literal('"'),
    word("name", r'[^"<>\n]{1,200}+'),
    literal('"'),
    literal(">"),
)
"""What follows `<invoke` in every decoration of it."""


def read_head(source: TextSource, at: int, steps: Steps) -> CallHead | None:
    """Return the head at `at`; None if it is none, or if the text ends where it would begin."""
    if at == source.end:
        return None
    words: dict[str, str] = {}
    for place, step in enumerate(steps):
        start = source.blanks(at) if place else at
        if isinstance(step, NameToken):
            found = step.pattern.match(source.text, start)
            if start < source.end and (found is None or _PUNCTUATION.match(found[0])):
                return None
            partial = found[0] if found else ""
            if start + len(partial) == source.end:
                return CallHead(end=source.end, cut=True, words=words, partial=partial)
            words[step.key] = partial
            at = start + len(partial)
        elif any(source.cut(each, start) for each in step.options):
            return CallHead(end=source.end, cut=True, words=words)
        else:
            end = _behind(source, start, step)
            if end is None and not step.optional:
                return None
            at = at if end is None or step.peek else end
    return CallHead(end=at, words=words)


def _behind(source: TextSource, at: int, step: LiteralChoice) -> int | None:
    """Return the offset behind the literal at `at`; None if it is not there."""
    return next((at + len(each) for each in step.options if source.starts(each, at)), None)
