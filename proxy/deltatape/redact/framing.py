"""Find the JSON in a body: the whole of it, its lines, or the data of its events.

Looser than the decoders of streams: everything that a client might take for data counts. Two values
without a comma between them stand in no JSON document, so a line that is one, and behind it a line
that begins one, show lines of JSON wherever they are. The binary messages of Amazon are text only
when they have been unfolded, see `eventstream`.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from deltatape.redact.escaped_text import LayeredView, plain
from deltatape.wire.json_value import parse

_JSON_START = re.compile(r"(?:\xef\xbb\xbf)?[ \t\r\n]*[\[{]")
_ARRAY_START = re.compile(r"(?:\xef\xbb\xbf)?[ \t\r\n]*\[[ \t\r\n]*\{")
_VALUE_LINE = re.compile(r"(?:\xef\xbb\xbf)?[ \t]*([\[{][^\n]*[\]}])[ \t\r]*\n?")
_LINE = re.compile(r"([^\r\n]*+)(?:\r\n|\r|\n|\Z)")
_DATA = re.compile(r"(?:\xef\xbb\xbf)?data:? ?")


class FramedBody(NamedTuple):
    """The data of a body and the places of its events; none if it is not JSON."""

    view: LayeredView
    events: tuple[tuple[int, int], ...]
    is_stream: bool
    """Whether a text may come in pieces, one at the same place of each event."""


def framed(body: LayeredView) -> FramedBody:
    """Return the data of `body`: of an event stream without its field names."""
    text = body.text
    if _JSON_START.match(text):
        lines = _json_lines(text)
        if lines:
            return FramedBody(body, lines, is_stream=True)
        return FramedBody(body, ((0, len(text)),), is_stream=bool(_ARRAY_START.match(text)))
    events: list[list[tuple[int, int]]] = [[]]
    for line in _LINE.finditer(text):
        start, end = line.span(1)
        data = _DATA.match(text, start, end)
        if data:
            events[-1].append((data.end(), end))
        elif start == end and events[-1]:
            events.append([])
    return _joined(body, [event for event in events if event])


def _json_lines(text: str) -> tuple[tuple[int, int], ...]:
    """Return the non-blank lines of JSON lines, with their ends; () for anything else."""
    lines = [(start, end) for start, end in _lines(text) if not text[start:end].isspace()]
    for line, following in pairwise(lines):
        if _JSON_START.match(text, *following) and _is_value(text, *line):
            return tuple(lines)
    return ()


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield every line with its line feed; CR ends none in this format."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield start, end
        start = end


def _is_value(text: str, start: int, end: int) -> bool:
    line = _VALUE_LINE.fullmatch(text, start, end)
    return line is not None and parse(line[1]).error is None


def _joined(body: LayeredView, events: list[list[tuple[int, int]]]) -> FramedBody:
    ranges = []
    at = 0
    for event in events:
        size = sum(end - start + 1 for start, end in event)
        ranges.append((at, at + size))
        at += size
    slices = [piece for event in events for piece in event]
    view = body.on(plain(body.text, slices, glue="\n"))
    return FramedBody(view, tuple(ranges), is_stream=True)
