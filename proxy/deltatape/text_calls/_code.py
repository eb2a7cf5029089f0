"""Detects code in Markdown: there a model shows a tag without using it.

Fenced blocks are CommonMark's, at any indentation (models nest them in lists). Inline code is
narrower: its first backticks are on the same line as the place, its last ones in the same
paragraph. So a stray backtick hides no call that starts on a line of its own.

Places are asked in ascending order; each mark is looked at once.
"""

import re

_MARK = re.compile(r"`++|~{3,}+")
_FENCE = 3
_LOOK_BACK = 64
"""Characters of indentation and quoting before a fence."""
_LONGEST_INLINE = 4096
"""Inline code that is longer than this is none."""


class CodeTracker:
    """Follows fences and inline code through one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._fence = ""
        self._ticks = ""
        self._ticks_end = 0

    def inside(self, place: int) -> bool:
        """Return whether `place` is inside code that was opened before it."""
        while mark := _MARK.search(self._text, self._at, place):
            self._at = mark.end()
            self._read_mark(mark[0], mark.start(), mark.end())
        self._at = max(self._at, place)
        return self._fence != "" or (self._in_ticks(place) and self._closes(place))

    def skip(self, place: int) -> None:
        """Continue at `place`, after a call whose backticks are data."""
        self._at = place
        self._ticks = ""

    def _read_mark(self, mark: str, start: int, end: int) -> None:
        alone = self._starts_line(start)
        if self._fence:
            if alone and mark.startswith(self._fence) and self._ends_line(end):
                self._fence = ""
        elif self._in_ticks(start):
            if mark == self._ticks:
                self._ticks = ""
        elif alone and len(mark) >= _FENCE and not self._is_inline(mark, end):
            self._fence = mark
        elif mark[0] == "`":
            self._ticks, self._ticks_end = mark, end

    def _in_ticks(self, place: int) -> bool:
        if self._ticks and self._text.find("\n", self._ticks_end, place) >= 0:
            self._ticks = ""
        return self._ticks != ""

    def _closes(self, place: int) -> bool:
        """Return whether the open backticks are closed in the same paragraph."""
        limit = place + _LONGEST_INLINE
        paragraph = self._text.find("\n\n", place, limit)
        return self._text.find(self._ticks, place, limit if paragraph < 0 else paragraph) >= 0

    def _starts_line(self, start: int) -> bool:
        floor = max(0, start - _LOOK_BACK)
        line = self._text.rfind("\n", floor, start) + 1
        if line == 0 and floor > 0:
            return False
        return self._text[line:start].strip(" \t>") == ""

    def _ends_line(self, end: int) -> bool:
        line = self._text.find("\n", end)
        return self._text[end : len(self._text) if line < 0 else line].strip() == ""

    def _is_inline(self, mark: str, end: int) -> bool:
        """Return whether backticks follow on the line: then it is inline code, not a fence."""
        if mark[0] != "`":
            return False
        line = self._text.find("\n", end)
        return self._text.find("`", end, len(self._text) if line < 0 else line) >= 0
