"""Show the wire around a finding: lines of the body, and the bytes that it is about.

Strategy: findings point at events, and most events are one long line of JSON. So within its event a
finding is narrowed down to what it shows as evidence, or to the fragment of the call that it is
about, where either can be found; else it is the event's data as a whole. An excerpt is made while
the body is at hand and is small whatever the body is, so that many findings need no bodies.

All text in it is escaped: nothing of it can act on a terminal.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from deltatape.diagnose.rebuild import Analysis
from deltatape.model.finding import Finding
from deltatape.model.stream import Span
from deltatape.printable import MAX_EVIDENCE, escape

MAX_LINES = 3
"""Lines of the wire that an excerpt shows at most."""
_AROUND = 160
"""Bytes shown before and after what is marked, at most."""
_MARKED = 320
"""Bytes marked in a line, at most."""
_SEARCHED = 1 << 20
"""Bytes of an event that are looked through for the evidence."""
_BREAK = re.compile(rb"[\r\n]")
_LEAST = 2
"""Shorter evidence, in bytes, is not searched for: it occurs everywhere."""
_ARGUMENTS = rb'"(?:arguments|partial_json|partialJson|inputTextDelta|input|args|delta)"\s*:\s*'
_FRAGMENTS = 8
_MORE = "..."


class MarkedLine(NamedTuple):
    """A line of the wire: the bytes that a finding is about, and those before and after them."""

    before: str
    marked: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WireExcerpt:
    """The lines that a finding is about."""

    lines: tuple[MarkedLine, ...]
    """1 to `MAX_LINES`."""
    more: bool
    """Whether further lines are marked that are not shown."""
    evident: bool
    """Whether the finding's evidence is in it."""


def excerpt_of(finding: Finding, analysis: Analysis) -> WireExcerpt | None:
    """Return the wire at the place of `finding`; None if it has no place.

    Args:
        finding: about the response of `analysis`.
        analysis: the analysis of the exchange that it is about.
    """
    body = analysis.stream.body
    if finding.span is None or not 0 <= finding.span.start <= finding.span.end <= len(body):
        return None
    if not body:
        return None
    mark, evident = _narrowed(finding, finding.span, analysis)
    start, end = _trimmed(body, mark)
    lines: list[MarkedLine] = []
    at = start
    while len(lines) < MAX_LINES and (at < end or not lines):
        stop = _line_end(body, at, end)
        lines.append(_marked_line(body, at, min(stop, end)))
        at = _next_line(body, stop)
    return WireExcerpt(lines=tuple(lines), more=at < end, evident=evident)


def _narrowed(finding: Finding, span: Span, analysis: Analysis) -> tuple[Span, bool]:
    """Return the bytes that the finding is about, and whether they show its evidence."""
    if span.start == span.end:  # something is missing here: show what precedes it
        return span, True
    region = analysis.stream.body[span.start : min(span.end, span.start + _SEARCHED)]
    data = _data(finding, analysis)
    spellings = tuple(_spellings(finding.evidence))
    evident = not finding.evidence or any(data.startswith(text) for text in spellings)
    for text in () if evident else spellings:
        at = region.find(text)
        if at >= 0 and (len(text) > _LEAST or region.count(text) == 1):
            return _shifted(span, at, len(text)), True
    for text in _fragments(finding, analysis):
        places = list(re.finditer(_ARGUMENTS + b"(" + re.escape(text) + b")", region))
        if places:
            return _shifted(span, places[-1].start(1), len(text)), evident
    at = region.find(data) if data else -1
    return (_shifted(span, at, len(data)), evident) if at >= 0 else (span, evident)


def _shifted(span: Span, at: int, size: int) -> Span:
    return Span(span.start + at, span.start + at + size)


def _spellings(evidence: str) -> Iterator[bytes]:
    """Yield spellings of the evidence on the wire: unchanged, in a JSON string, compact."""
    cut = evidence.endswith("...") and len(evidence) > MAX_EVIDENCE // 2
    text = evidence.removesuffix("...") if cut else evidence
    if len(text) < _LEAST:
        return
    yield text.encode("utf-8", "surrogatepass")
    yield text.replace('"', '\\"').encode("utf-8", "surrogatepass")
    yield text.replace("\\n", "\n").encode("utf-8", "surrogatepass")
    try:
        yield json.dumps(text)[1:-1].encode()
        yield json.dumps(json.loads(text), separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        pass


def _fragments(finding: Finding, analysis: Analysis) -> Iterator[bytes]:
    """Yield the arguments in the event as JSON strings, if the finding is about a call."""
    if not finding.code.startswith("T") or finding.event is None:
        return
    calls = (call for choice in analysis.reply.choices for call in choice.tool_calls)
    texts = [
        fragment.text
        for call in calls
        for fragment in call.fragments
        if fragment.event == finding.event
    ]
    for text in texts[:_FRAGMENTS] or [""]:
        yield json.dumps(text).encode()
        yield json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass")
        if not text or text.startswith("{"):  # an object on the wire
            yield (text or "{}").encode("utf-8", "surrogatepass")


def _data(finding: Finding, analysis: Analysis) -> bytes:
    """Return the data of the event at the finding's place; b"" if it has none."""
    events = analysis.stream.events
    number = finding.event
    if number is None or not 0 <= number < len(events) or events[number].place.span != finding.span:
        return b""
    return events[number].data[:_SEARCHED].encode("utf-8", "surrogatepass")


def _trimmed(body: bytes, span: Span) -> Span:
    """Return `span` without line breaks at its ends."""
    start, end = span
    while end > start and body[end - 1] in b"\r\n":
        end -= 1
    while start < end and body[start] in b"\r\n":
        start += 1
    if start == end:  # between two lines: the end of what came before
        while start and body[start - 1] in b"\r\n":
            start -= 1
        end = start
    return Span(start, end)


def _line_end(body: bytes, at: int, limit: int) -> int:
    found = _BREAK.search(body, at, limit)
    return found.start() if found else limit


def _next_line(body: bytes, at: int) -> int:
    while at < len(body) and body[at] in b"\r\n":
        at += 1
    return at


def _marked_line(body: bytes, start: int, end: int) -> MarkedLine:
    first = max(start - _AROUND, 0)
    for found in _BREAK.finditer(body, first, start):
        first = found.end()
    if end > start + _MARKED:
        return MarkedLine(
            _shown(body[first:start]), _shown(body[start : start + _MARKED]) + _MORE, ""
        )
    last = _line_end(body, end, min(end + _AROUND, len(body)))
    return MarkedLine(_shown(body[first:start]), _shown(body[start:end]), _shown(body[end:last]))


def _shown(data: bytes) -> str:
    """Return bytes as text on one line, escaped where they are not UTF-8."""
    return escape(data.decode("utf-8", "backslashreplace"))
