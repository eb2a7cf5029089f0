"""What is wrong with tapes as files, as text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from deltatape.compare.today import Asked
from deltatape.model.finding import Severity
from deltatape.redact.audit import Kind, Problem, Report
from deltatape.render.lines import BOLD, DIM, GOOD, STYLES, WIDTH, Line, Segment, line, wrapped
from deltatape.render.today import today_lines
from deltatape.rules.words import count


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """A tape that was checked; `report` None: it could not be read, `error` says why."""

    path: str
    report: Report | None
    error: str = ""
    asked: tuple[Asked, ...] = ()
    """What its exchanges gave when a provider was asked again."""
    url: str = ""
    """Of that provider; "" when none was asked."""


def audit_lines(audits: Iterable[Audit], width: int = WIDTH) -> list[Line]:
    """In `width` columns the problems and the facts of each tape, and what to do."""
    audited = list(audits)
    lines = [each for audit in audited for each in _one(audit, width)]
    leaking = [audit.path for audit in audited if audit.report and _leaks(audit.report.problems)]
    if leaking:
        lines.append(
            line(Segment(f"secrets are overwritten by: deltatape redact {leaking[0]}", DIM))
        )
    return lines


def problem_lines(problems: Sequence[Problem], width: int = WIDTH) -> list[Line]:
    """Each problem with its place, in `width` columns."""
    return [each for problem in problems for each in wrapped(_said(problem), 4, width=width)]


def _one(audit: Audit, width: int) -> list[Line]:
    if audit.report is None:
        return wrapped(audit.error, 0, STYLES[Severity.ERROR], width)
    problems = audit.report.problems
    told = Segment("clean", GOOD)
    if problems:
        told = Segment(count(len(problems), "problem"), STYLES[Severity.ERROR])
    return [
        line(Segment(audit.path, BOLD), ": ", told),
        *problem_lines(problems, width),
        *(each for fact in audit.report.facts for each in wrapped(f"note: {fact}", 4, DIM, width)),
        *(today_lines(audit.asked, audit.url, width) if audit.url else ()),
    ]


def _said(problem: Problem) -> str:
    """`line 12, #3, bytes 40 to 91: response body holds ...`."""
    place = [f"line {problem.line}"]
    if problem.exchange:
        place.append(f"#{problem.exchange}")
    if problem.span is not None:
        place.append(f"bytes {problem.span[0]} to {problem.span[1]}")
    return f"{', '.join(place)}: {problem.message}"


def _leaks(problems: Sequence[Problem]) -> bool:
    return any(problem.kind is Kind.SECRET for problem in problems)
