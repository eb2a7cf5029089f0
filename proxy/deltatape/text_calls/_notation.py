"""A text to search for calls, with searches that stay linear.

Strategy. Readers search for the same literal again and again, from ascending places. The last
result per literal is cached: it is valid for every place before it. So all searches for one literal
together cost one pass over the text.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

_BLANKS = re.compile(r"\s*+")
_NAME = re.compile(r"\w[\w.:/$-]{0,199}")

Offered = Mapping[str, Mapping[str, object] | None]
"""The tools of the request by name, each with the JSON Schema of its parameters, if it has one."""


class TextSource:
    """A text, and the tools that its writer was offered."""

    def __init__(self, text: str, offered: Offered) -> None:
        self.text = text
        self.offered = offered
        self.end = len(text)
        self._found: dict[str, tuple[int, int]] = {}

    def find(self, literal: str, at: int) -> int:
        """Return the next position of `literal` from `at` on, or the end of the text."""
        asked, answer = self._found.get(literal, (0, -1))
        if not asked <= at <= answer:
            found = self.text.find(literal, at)
            answer = self.end if found < 0 else found
            self._found[literal] = (at, answer)
        return answer

    def first(self, literals: tuple[str, ...], at: int) -> tuple[int, int]:
        """Return start and end of the next of `literals`; both are the text's end if none comes."""
        start, literal = min((self.find(literal, at), literal) for literal in literals)
        return start, min(start + len(literal), self.end)

    def blanks(self, at: int) -> int:
        """Return the offset behind the white space at `at`."""
        blanks = _BLANKS.match(self.text, at)
        return blanks.end() if blanks else at

    def starts(self, literal: str, at: int) -> bool:
        """Return whether `literal` starts at `at`."""
        return self.text.startswith(literal, at)

    def cut(self, literal: str, at: int) -> bool:
        """Return whether the text ends at `at`, or within a `literal` that starts there."""
        rest = self.text[at : at + len(literal)]
        return at + len(rest) == self.end and literal.startswith(rest) and rest != literal

    def is_name(self, name: str) -> bool:
        """Return whether this can be a tool's name: offered, or written like one."""
        return name in self.offered or _NAME.fullmatch(name) is not None

    def may_be_tool(self, name: str, *, whole: bool) -> bool:
        """Whether this, or what it is the beginning of, can be a tool that was offered, if known.

        Used where only the tag indicates a call: documents have such tags, too.
        """
        if not self.offered:
            return True
        return name in self.offered or (
            not whole and any(tool.startswith(name) for tool in self.offered)
        )


# Types of the notations of tool calls.


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCall:
    """A tool call in a model's text, by its place there; `TextCall` has its place on the wire."""

    name: str
    """The tool; "" where the text ends before its name does."""
    arguments: str
    """As written where the notation has JSON; else an object made of the written parameters. Only
    as far as they came if the call is not complete; "" if there are none."""
    end: int
    """Behind its last character, its tags included; of a shared wrapper, the adjacent part."""
    closed: bool
    """Whether its closing tag came or, in a notation without one, the end of its arguments."""
    id: str | None = None
    """The id, in notations that have one."""
    junk: str = ""
    """Stray text between its complete JSON and its closing tag."""
    start: int = -1
    """Its first character. Readers set it only where that is before the opener; `find_calls` fills
    it in: a call starts at its opener, or where the call before it ends."""
    family: str = ""
    """The notation: `hermes`, `kimi-k2`. Set by `find_calls`."""


Reader = Callable[[TextSource, int], Sequence[WrittenCall]]
"""Takes a source and the position of an opener; returns the calls that follow each other there,
or none if what follows is not a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotationFamily:
    """A notation of tool calls."""

    name: str
    openers: tuple[str, ...]
    """Literal beginnings; every call of the family contains one."""
    read: Reader


def cut_call(source: TextSource, name: str = "") -> WrittenCall:
    """Return a call of the tool `name` before whose arguments the text ends."""
    return WrittenCall(name=name, arguments="", end=source.end, closed=False)


def consecutive_calls(
    source: TextSource, at: int, read_call: Callable[[TextSource, int], WrittenCall | None]
) -> list[WrittenCall]:
    """Return the calls that follow each other from `at`, with nothing but blanks between them."""
    calls: list[WrittenCall] = []
    while (call := read_call(source, source.blanks(at))) is not None:
        calls.append(call)
        at = call.end
    return calls


def extend_last(calls: Sequence[WrittenCall], end: int) -> list[WrittenCall]:
    """Return `calls` with the last one extended to `end`."""
    return [*calls[:-1], replace(calls[-1], end=end)]


def close_wrapper(
    source: TextSource, calls: Sequence[WrittenCall], closer: str
) -> Sequence[WrittenCall]:
    """Return `calls` with the last one extended over the wrapper's closing tag, if that follows."""
    at = source.blanks(calls[-1].end) if calls else source.end
    return extend_last(calls, at + len(closer)) if source.starts(closer, at) else calls


# Reads the text between an opener and a call's arguments.
#
# A head is a sequence of literals and words, with white space allowed between them. If the text
# ends within it, it is cut: a call has begun. If anything else follows, it is talk.


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteralChoice:
    """One of several texts; of two with a common start, the longer one first."""

    options: tuple[str, ...]
    optional: bool = False
    peek: bool = False
    """Whether it must follow the head without being a part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameToken:
    """A word of the call's own."""

    key: str
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallHead:
    """The part of a head that was read."""

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
"""A character that no call continues with: the tag is a word in a sentence."""
INVOKE: Steps = (
    literal("name"),
    literal("="),
    literal('"'),
    word("name", r'[^"<>\n]{1,200}+'),
    literal('"'),
    literal(">"),
)
"""The head after `<invoke`, the same with any prefix of the tag."""


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
        elif any(source.cut(option, start) for option in step.options):
            return CallHead(end=source.end, cut=True, words=words)
        else:
            found_options = (option for option in step.options if source.starts(option, start))
            end = next((start + len(option) for option in found_options), None)
            if end is None and not step.optional:
                return None
            at = at if end is None or step.peek else end
    return CallHead(end=at, words=words)
