"""A text to search for calls, with searches that stay linear.

Strategy. Readers ask "where is the next `</tool>`?" again and again, from places that move forward
only. The last answer per literal is kept: it holds for every place before it, and "nowhere" holds
for good. So all searches for one literal together cost one pass over the text.
"""

import re
from collections.abc import Mapping

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
        """Where `literal` next stands at or after `at`; the end of the text if it does not."""
        asked, answer = self._found.get(literal, (0, -1))
        if not asked <= at <= answer:
            found = self.text.find(literal, at)
            answer = self.end if found < 0 else found
            self._found[literal] = (at, answer)
        return answer

    def first(self, literals: tuple[str, ...], at: int) -> tuple[int, int]:
        """Where the next of `literals` starts and ends; the end of the text twice if none comes."""
        start, literal = min((self.find(each, at), each) for each in literals)
        return start, min(start + len(literal), self.end)

    def blanks(self, at: int) -> int:
        """Return the offset behind the white space at `at`."""
        blanks = _BLANKS.match(self.text, at)
        return blanks.end() if blanks else at

    def starts(self, literal: str, at: int) -> bool:
        """Return whether `literal` stands at `at`."""
        return self.text.startswith(literal, at)

    def cut(self, literal: str, at: int) -> bool:
        """Return whether the text ends at `at`, or within a `literal` that stands there."""
        rest = self.text[at : at + len(literal)]
        return at + len(rest) == self.end and literal.startswith(rest) and rest != literal

    def is_name(self, name: str) -> bool:
        """Return whether this can be a tool's name: offered, or written like one."""
        return name in self.offered or _NAME.fullmatch(name) is not None

    def may_be_tool(self, name: str, *, whole: bool) -> bool:
        """Whether this, or what it is the beginning of, can be a tool that was offered, if known.

        Asked where nothing but the tag says that a call is meant: documents have such tags, too.
        """
        if not self.offered:
            return True
        return name in self.offered or (
            not whole and any(each.startswith(name) for each in self.offered)
        )
