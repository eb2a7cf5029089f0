"""A program's output, in whatever pieces it comes, to lines.

A line ends at a line feed, which is not part of it. One that is longer than `LONGEST_LINE` is cut
into several, never within a credential.
"""

from collections.abc import Iterator

from deltatape.model.exchange import MaskedSpan
from deltatape.tape.literals import Literals, blanked

LONGEST_LINE = 64 << 10
"""The most bytes of a line in one record."""

Line = tuple[bytes, tuple[MaskedSpan, ...]]
"""A line as it may be written, and where in it asterisks stand for a credential."""


class LogLines:
    """The lines of one stream of a program's output."""

    __slots__ = ("_literals", "_rest")

    def __init__(self, literals: Literals) -> None:
        self._literals = literals
        self._rest = bytearray()  # of the line that has not ended

    def add(self, data: bytes) -> Iterator[Line]:
        """The lines that are complete now."""
        *ended, rest = data.split(b"\n")
        for part in ended:
            self._rest += part
            yield from self._long()
            yield from self._line()
        self._rest += rest
        yield from self._long()

    def end(self) -> Iterator[Line]:
        """The line that has not ended, if there is one; nothing more comes."""
        if self._rest:
            yield from self._line()

    def _line(self) -> Iterator[Line]:
        line = bytes(self._rest)
        self._rest.clear()
        spans = self._literals.spans(line) if line else ()
        yield blanked(line, spans) if spans else line, spans

    def _long(self) -> Iterator[Line]:
        """What has to be cut off because the line is too long."""
        while len(self._rest) > LONGEST_LINE:
            part = bytes(self._rest[:LONGEST_LINE])
            found = self._literals.find(part)
            cut = len(part) - self._literals.tail(part)[0]
            for start, end, _ in found:
                cut = start if start < cut < end else cut
            # A line that is nothing but credentials one in another has no place to be cut at.
            cut = cut or len(part)
            spans = tuple(span for span in found if span[1] <= cut)
            yield blanked(part[:cut], spans) if spans else part[:cut], spans
            del self._rest[:cut]
