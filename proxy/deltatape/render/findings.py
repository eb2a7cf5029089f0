"""Findings as text: where, what, whose fault, the evidence, what to do.

A report reads like a compiler's: the place, the lines of the wire with carets under the bytes in
question, the fix. In an explanation, where place and wire are shown already, it is shorter.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from rich.cells import cell_len

from deltatape.diagnose.check_tape import ReportedFinding
from deltatape.diagnose.wire_excerpt import MarkedLine, WireExcerpt
from deltatape.model.finding import Finding, Severity
from deltatape.model.stream import Span
from deltatape.printable import count
from deltatape.render.lines import (
    BOLD,
    DIM,
    GOOD,
    STYLES,
    WIDTH,
    Line,
    StyledText,
    line,
    measured,
    wrapped,
)
from deltatape.render.numbers import seconds
from deltatape.rules.endings import NOBODYS_FAULT

if TYPE_CHECKING:  # takes long to load, and a report of findings has none
    from deltatape.model.explanation import Explanation, Verdict


def reported_lines(reported: ReportedFinding, width: int = WIDTH) -> list[Line]:
    """Format a finding of a report; a blank line ends it."""
    finding, excerpt = reported.finding, reported.excerpt
    lines = [_head(finding), *_arrow(place(finding), width)]
    lines += wrapped(finding.message, 4, width=width)
    if excerpt is not None:
        lines += wire_lines(excerpt, finding.line, finding.severity, width)
    if not (_is_shown(finding) or (excerpt is not None and excerpt.evident)):
        lines += wrapped(f"evidence: {finding.evidence}", 4, DIM, width)
    lines += [*_sides(finding, width), *_excluded(finding, width)]
    return [*lines, *wrapped(f"fix: {finding.hint}", 4, width=width), line()]


def _sides(finding: Finding, width: int) -> list[Line]:
    return [each for side in sides(finding) for each in wrapped(side, 4, DIM, width)]


def _excluded(finding: Finding, width: int) -> list[Line]:
    return [each for one in excluded(finding) for each in wrapped(one, 4, DIM, width)]


def excluded(finding: Finding) -> list[str]:
    """Return the excluded innocent explanations, and why each fails."""
    return [f"excluded: {each.explanation}: {each.because}" for each in finding.excluded]


def sides(finding: Finding) -> list[str]:
    """Return both places of a comparison: the delivered bytes and the app's.

    Bytes are those of the bodies: of the response on the wire, of the request from the app.
    """
    other = finding.against
    if other is None or not other.evidence:
        return []
    wire = _bytes(f"delivered in #{other.exchange}", other.line, other.span)
    told = [f"{wire}: {other.evidence}"]
    if other.request_span is not None:
        told.append(
            _bytes(f"sent by the app in #{finding.exchange}", finding.line, other.request_span)
        )
    return told


def _bytes(who: str, number: int | None, span: Span | None) -> str:
    where = [f"line {number}"] if number is not None else []
    where += [f"bytes {span.start} to {span.end}"] if span is not None else []
    return ", ".join([who, *where])


def _arrow(where: str, width: int) -> list[Line]:
    first, *rest = wrapped(where, 6, DIM, width)
    return [line(StyledText("  --> ", DIM), *first[1:]), *rest]


def ending_lines(findings: int, counted: str, code: str) -> list[Line]:
    """Format the end of a report.

    Args:
        findings: how many there were.
        counted: by severity, as `summary` says it.
        code: the code of the gravest.
    """
    if not findings:
        return [line(StyledText("no findings", GOOD))]
    return [
        line(StyledText(counted, BOLD)),
        line(StyledText(f"more about a code: deltatape why {code}", DIM)),
    ]


@dataclass(frozen=True, slots=True)
class FindingContext:
    """What the lines around a finding show already: tape, exchange, zero of the clock."""

    tape: str | None = None
    exchange: int = 0
    start_ns: int | None = None


_NOWHERE = FindingContext()


def seen_from(explanation: "Explanation") -> FindingContext:
    """Return the context of an explanation, whose timeline starts at the request."""
    return FindingContext(explanation.tape, explanation.exchange, explanation.start_ns)


def one_finding(
    finding: Finding,
    seen: FindingContext = _NOWHERE,
    width: int = WIDTH,
    *,
    fixed: bool = False,
    known: Sequence[str] = (),
) -> list[Line]:
    """Format one finding, without what its context shows already.

    Args:
        finding: the finding.
        seen: what is already shown.
        width: the width of the page.
        fixed: whether the fix is already shown.
        known: texts on the same page, which are not repeated.
    """
    head = _head(finding)
    where = _remaining_place(finding, seen)
    place = [line(*head, StyledText(f"  {where}", DIM))] if where else [line(*head)]
    if measured(place[0]) > width:
        place = [line(*head), *wrapped(where, 4, DIM, width)]
    said = any(finding.message[1:] in text for text in known)
    lines = [*place, *(_verdict_says(width) if said else wrapped(finding.message, 4, width=width))]
    if not _is_shown(finding):
        lines += wrapped(f"evidence: {finding.evidence}", 4, DIM, width)
    for side in sides(finding):
        lines += wrapped(_place_of(side, finding), 4, DIM, width) if side not in known else []
    lines += _excluded(finding, width)
    fix = [] if fixed else wrapped(f"fix: {finding.hint}", 4, width=width)
    return [*lines, *fix, line()]


def _place_of(side: str, finding: Finding) -> str:
    """Return a place without its text, if the finding's message quotes that."""
    where, _, what = side.partition(": ")
    return where if what and what in finding.message else side


def _verdict_says(width: int) -> list[Line]:
    return wrapped("message: see the verdict", 4, DIM, width)


def possible(verdict: "Verdict") -> list[str]:
    """Return what is only possible, to be shown below a verdict.

    Leaves out what the verdict itself says.
    """
    return [
        f"possible, not provable: {each.code} {each.name} ({each.blame}): {each.message}"
        for each in verdict.possible
        if each.message[1:] not in verdict.summary
    ]


def _is_shown(finding: Finding) -> bool:
    """Return whether the message or the delivered side shows the evidence, if there is any."""
    if finding.evidence in finding.message:
        return True
    other = finding.against
    return other is not None and other.evidence == finding.evidence


def _head(finding: Finding) -> Line:
    return line(
        StyledText(f"{finding.severity} ", STYLES[finding.severity]),
        StyledText(f"{finding.code} {finding.name}", BOLD),
        StyledText(f"  {blamed(finding)}"),
    )


def blamed(finding: Finding) -> str:
    """Return blame and confidence: `app, proven`; `not provable`; for facts `nobody blamed`."""
    if finding.blame is None:
        fact = finding.severity is Severity.INFO or finding.code in NOBODYS_FAULT
        return "nobody blamed" if fact else "not provable"
    return f"{finding.blame}, {finding.confidence}"


def summary(findings: Iterable[Finding]) -> str:
    """`2 errors, 1 warning`; "no findings"."""
    return counted(Counter(finding.severity for finding in findings))


def counted(found: Mapping[Severity, int]) -> str:
    """Return the same for counts."""
    parts = [count(found[each], each) for each in Severity if found.get(each)]
    return ", ".join(parts) or "no findings"


def place(finding: Finding) -> str:
    """Return the full place of a finding: `x.tape#3, line 14, event 7, 1.234 s into the tape`."""
    return _remaining_place(finding, _NOWHERE)


def _remaining_place(finding: Finding, seen: FindingContext) -> str:
    """Return the part of the place that its context does not show."""
    parts = []
    same = finding.tape == seen.tape
    if not same or finding.exchange != seen.exchange:
        parts.append(f"{'' if same else finding.tape}#{finding.exchange}")
    if finding.line is not None:
        parts.append(f"line {finding.line}")
    if finding.event is not None:
        parts.append(f"event {finding.event}")
    if finding.t_ns is not None and same and seen.start_ns is not None:
        parts.append(f"at {seconds(finding.t_ns - seen.start_ns)} s")
    elif finding.t_ns is not None:
        parts.append(f"{seconds(finding.t_ns)} s into the tape")
    return ", ".join(parts)


# The wire around a finding, with carets under the bytes that it is about.
#
# Every line is cut to the page so that what is marked stays visible. Columns are counted as a
# terminal counts them: wide characters take two, combining ones none.

_MORE = "..."
_LEAD = 3
"""One part in this many of a line is kept for the text before the marked text."""


def wire_lines(
    excerpt: WireExcerpt, number: int | None, severity: Severity, width: int = WIDTH
) -> list[Line]:
    """Format `excerpt` with line numbers and carets.

    Args:
        excerpt: at least one line.
        number: the tape line, for the gutter; None: unknown.
        severity: the severity of the finding, for the carets' style.
        width: columns of the page.
    """
    label = "" if number is None else str(number)
    blank = " " * len(label)
    lines = [line(StyledText(f"  {blank} |", DIM))]
    for each in excerpt.lines:
        # Where nothing is marked, the caret is beside the text, and needs a column.
        shown = _fitted(each, width - len(blank) - 5 - (not each.marked))
        lines.append(
            line(
                StyledText(f"  {label.rjust(len(blank))} | ", DIM),
                shown.before,
                StyledText(shown.marked, BOLD),
                shown.after,
            )
        )
        lines.append(
            line(
                StyledText(f"  {blank} | ", DIM),
                " " * cell_len(shown.before),
                StyledText("^" * max(cell_len(shown.marked), 1), STYLES[severity]),
            )
        )
        label = ""
    if excerpt.more:
        lines.append(line(StyledText(f"  {blank} | {_MORE}", DIM)))
    return lines


def _fitted(whole: MarkedLine, width: int) -> MarkedLine:
    """Cut a marked line to `width` columns, on the left, the right, or in the middle."""
    if cell_len("".join(whole)) <= width:
        return whole
    marked = whole.marked
    after_least = len(_MORE) if whole.after else 0
    most = width - min(cell_len(whole.before), width // _LEAD) - after_least
    if cell_len(marked) > most:
        marked = _first(marked, most - len(_MORE)) + _MORE
    before = whole.before
    room = width - cell_len(marked) - after_least
    # What stands before tells more than what comes after: it gets all room but a third.
    for_before = max(room - min(cell_len(whole.after), room // _LEAD), 0)
    if cell_len(before) > for_before:
        before = _MORE + _last(before, for_before - len(_MORE))
    room = width - cell_len(before) - cell_len(marked)
    after = whole.after
    if cell_len(after) > room:
        after = _first(after, room - len(_MORE)) + _MORE
    return MarkedLine(before, marked, after)


def _first(text: str, width: int) -> str:
    """Return the characters of the front that fit."""
    return text[: sum(end <= width for end in accumulate(map(cell_len, text)))]


def _last(text: str, width: int) -> str:
    """Return the characters of the end that fit."""
    return _first(text[::-1], width)[::-1]
