"""Where the JSON of a body stands: the whole of it, or the data of its events.

Looser than the decoder of event streams: everything that a client might take for data counts.
"""

import re
from typing import NamedTuple

from deltatape.redact.layers import View, plain

_JSON_START = re.compile(r"(?:\xef\xbb\xbf)?[ \t\r\n]*[\[{]")
_LINE = re.compile(r"([^\r\n]*+)(?:\r\n|\r|\n|\Z)")
_DATA = re.compile(r"(?:\xef\xbb\xbf)?data:? ?")


class Framed(NamedTuple):
    """The data of a body, and where in it each event is; no events: no JSON."""

    view: View
    events: tuple[tuple[int, int], ...]
    is_stream: bool


def framed(body: View) -> Framed:
    """The data of `body`: of an event stream without the names of its fields, else as it is."""
    text = body.text
    if _JSON_START.match(text):
        return Framed(body, ((0, len(text)),), is_stream=False)
    events: list[list[tuple[int, int]]] = [[]]
    for line in _LINE.finditer(text):
        start, end = line.span(1)
        data = _DATA.match(text, start, end)
        if data:
            events[-1].append((data.end(), end))
        elif start == end and events[-1]:
            events.append([])
    return _joined(body, [event for event in events if event])


def _joined(body: View, events: list[list[tuple[int, int]]]) -> Framed:
    ranges = []
    at = 0
    for event in events:
        size = sum(end - start + 1 for start, end in event)
        ranges.append((at, at + size))
        at += size
    slices = [piece for event in events for piece in event]
    view = body.on(plain(body.text, slices, glue="\n"))
    return Framed(view, tuple(ranges), is_stream=True)
