"""Find many strings in a text at once: ids, names and values of the thousands of calls of a reply.

Strategy: the patterns are sorted, and each knows the longest other one that it begins with. Of the
patterns that begin a text, the longest is then found by one binary search: they all are beginnings
of the last pattern that sorts before the text. See `PatternSet.beginnings`.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

_FEW = 32
"""Up to this number, patterns are found faster one by one."""
_HEAD = 4
"""Most characters of a pattern that are looked up before it is searched for."""


class PatternSet:
    """Strings to find in texts: the work for a text hardly depends on their number."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self.patterns = frozenset(patterns)
        self._sorted = sorted(self.patterns - {""})
        self._shorter: dict[str, str | None] = {}
        """By pattern, the longest other one that it begins with."""
        beginning: list[str] = []
        for pattern in self._sorted:
            while beginning and not pattern.startswith(beginning[-1]):
                beginning.pop()
            self._shorter[pattern] = beginning[-1] if beginning else None
            beginning.append(pattern)
        self._longest = max(map(len, self._sorted), default=0)
        self._head = min(_HEAD, min(map(len, self._sorted), default=0))
        self._heads = {pattern[: self._head] for pattern in self._sorted}

    def beginnings(self, text: str, at: int = 0) -> Iterator[str]:
        """Yield the patterns with which `text[at:]` begins, except "", the longest first."""
        return (found for found in self._candidates(text, at) if text.startswith(found, at))

    def within(self, text: str) -> frozenset[str]:
        """Return the patterns that occur in `text`."""
        if len(self._sorted) <= _FEW:
            return self._one_by_one(text)
        found = {""} & self.patterns
        steps = 0
        for at in range(len(text) - self._head + 1):
            if text[at : at + self._head] not in self._heads:
                continue
            for pattern in self._candidates(text, at):
                steps += 1
                if pattern in found:
                    break  # and so are all with which it begins
                if text.startswith(pattern, at):
                    found.add(pattern)
            if steps > len(text) + len(self._sorted):
                return self._one_by_one(text)  # the patterns begin with each other
        return frozenset(found)

    def _one_by_one(self, text: str) -> frozenset[str]:
        return frozenset(pattern for pattern in self.patterns if pattern in text)

    def _candidates(self, text: str, at: int) -> Iterator[str]:
        """Yield the last pattern that sorts before the text, and those with which it begins."""
        place = bisect_right(self._sorted, text[at : at + self._longest])
        candidate = self._sorted[place - 1] if place else None
        while candidate is not None:
            yield candidate
            candidate = self._shorter[candidate]
