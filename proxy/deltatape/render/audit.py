"""The problems of tape files as text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltatape.model.finding import Severity
from deltatape.printable import count
from deltatape.redact.audit import AuditReport, ProblemKind, TapeProblem
from deltatape.render.json_document import document
from deltatape.render.lines import BOLD, DIM, GOOD, STYLES, WIDTH, Line, StyledText, line, wrapped

# Who asks no provider does not wait for what compares its answers.
if TYPE_CHECKING:
    from deltatape.compare.recheck import Recheck


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """A checked tape; `report` is None if it could not be read, `error` says why."""

    path: str
    report: AuditReport | None
    error: str = ""
    asked: "tuple[Recheck, ...]" = ()
    """What its exchanges gave when a provider was asked again."""
    url: str = ""
    """The URL of that provider; "" when none was asked."""


def audit_lines(audits: Iterable[Audit], width: int = WIDTH) -> list[Line]:
    """Format the problems and facts of each tape, and what to do."""
    audited = list(audits)
    lines = [each for audit in audited for each in _audit_lines(audit, width)]
    leaking = [audit.path for audit in audited if audit.report and _leaks(audit.report.problems)]
    if leaking:
        lines.append(
            line(StyledText(f"secrets are overwritten by: deltatape redact {leaking[0]}", DIM))
        )
    return lines


def problem_lines(problems: Sequence[TapeProblem], width: int = WIDTH) -> list[Line]:
    """Format each problem with its place."""
    return [
        each for problem in problems for each in wrapped(_problem_text(problem), 4, width=width)
    ]


def _audit_lines(audit: Audit, width: int) -> list[Line]:
    if audit.report is None:
        return wrapped(audit.error, 0, STYLES[Severity.ERROR], width)
    problems = audit.report.problems
    state = StyledText("clean", GOOD)
    if problems:
        state = StyledText(count(len(problems), "problem"), STYLES[Severity.ERROR])
    return [
        line(StyledText(audit.path, BOLD), ": ", state),
        *problem_lines(problems, width),
        *(each for fact in audit.report.facts for each in wrapped(f"note: {fact}", 4, DIM, width)),
        *_today(audit, width),
    ]


def _today(audit: Audit, width: int) -> Sequence[Line]:
    if not audit.url:
        return ()
    from deltatape.render.recheck import today_lines  # noqa: PLC0415 - see above

    return today_lines(audit.asked, audit.url, width)


def _problem_text(problem: TapeProblem) -> str:
    """`line 12, #3, bytes 40 to 91: response body holds ...`."""
    place = [f"line {problem.line}"]
    if problem.exchange:
        place.append(f"#{problem.exchange}")
    if problem.span is not None:
        place.append(f"bytes {problem.span[0]} to {problem.span[1]}")
    return f"{', '.join(place)}: {problem.message}"


def _leaks(problems: Sequence[TapeProblem]) -> bool:
    return any(problem.kind is ProblemKind.SECRET for problem in problems)


def audits_json(audits: Iterable[Audit]) -> str:
    """`fsck --format json`."""
    return document(tapes=[_json_audit(audit) for audit in audits])


def _json_audit(audit: Audit) -> dict[str, object]:
    report = audit.report
    against: dict[str, object] = {}
    if audit.url:
        from deltatape.render.recheck import today_object  # noqa: PLC0415 - see above

        against = {"against": today_object(audit.asked, audit.url)}
    return {
        "path": audit.path,
        "error": audit.error or None,
        "problems": [
            {
                "kind": problem.kind,
                "line": problem.line,
                "exchange": problem.exchange,
                "message": problem.message,
                "span": None if problem.span is None else list(problem.span),
            }
            for problem in (report.problems if report else ())
        ],
        "facts": list(report.facts) if report else [],
        **against,
    }
