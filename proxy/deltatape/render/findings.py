"""Findings as text: where, what, whose fault, the evidence, what to do."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from deltatape.model.finding import Finding, Severity
from deltatape.model.story import Story, Verdict
from deltatape.render.lines import (
    BOLD,
    DIM,
    GOOD,
    STYLES,
    WIDTH,
    Line,
    Segment,
    line,
    measured,
    wrapped,
)
from deltatape.render.units import seconds
from deltatape.rules.words import count


def finding_lines(findings: Sequence[Finding], width: int = WIDTH) -> list[Line]:
    """All findings in `width` columns, and a summary."""
    if not findings:
        return [line(Segment("no findings", GOOD))]
    lines = [each for finding in findings for each in one_finding(finding, width=width)]
    codes = sorted({finding.code for finding in findings})
    return [
        *lines,
        line(Segment(summary(findings), BOLD)),
        line(Segment(f"more about a code: deltatape why {codes[0]}", DIM)),
    ]


@dataclass(frozen=True, slots=True)
class Viewpoint:
    """What has been said already where a finding is shown: tape, exchange, the clock's zero."""

    tape: str | None = None
    exchange: int = 0
    start_ns: int | None = None


_NOWHERE = Viewpoint()


def seen_from(story: Story) -> Viewpoint:
    """The viewpoint of a story: findings are told by the clock of its timeline."""
    return Viewpoint(story.tape, story.exchange, story.start_ns)


def one_finding(finding: Finding, seen: Viewpoint = _NOWHERE, width: int = WIDTH) -> list[Line]:
    """One finding; its place leaves out what is said already."""
    head = [Segment(f"{finding.severity} ", STYLES[finding.severity])]
    head.append(Segment(f"{finding.code} {finding.name}", BOLD))
    head.append(Segment(f"  {blamed(finding)}"))
    where = _where(finding, seen)
    place = [line(*head, Segment(f"  {where}", DIM))] if where else [line(*head)]
    if measured(place[0]) > width:
        place = [line(*head), *wrapped(where, 4, DIM, width)]
    lines = [*place, *wrapped(finding.message, 4, width=width)]
    if finding.evidence:
        lines += wrapped(f"evidence: {finding.evidence}", 4, DIM, width)
    return [*lines, *wrapped(f"fix: {finding.hint}", 4, width=width), line()]


def blamed(finding: Finding | Verdict) -> str:
    """Whose fault, and how sure: `app, proven`; `not provable`."""
    if finding.blame is None:
        return "not provable"
    return f"{finding.blame}, {finding.confidence}"


def summary(findings: Iterable[Finding]) -> str:
    """`2 errors, 1 warning`; "no findings"."""
    found = [finding.severity for finding in findings]
    parts = [count(found.count(each), each) for each in Severity if each in found]
    return ", ".join(parts) or "no findings"


def _where(finding: Finding, seen: Viewpoint) -> str:
    """`x.tape#3, line 14, event 7, 1.234 s into the tape`: as the user can name it."""
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
