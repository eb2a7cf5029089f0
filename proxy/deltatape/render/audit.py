"""The problems of tape files as text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from deltatape.compare.recheck import PRESENT, Aspect, Recheck, RecheckedExchange, ResponseDrift
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Severity
from deltatape.printable import count
from deltatape.redact.audit import AuditReport, ProblemKind, TapeProblem
from deltatape.render.json_document import document
from deltatape.render.lines import BOLD, DIM, GOOD, STYLES, WIDTH, Line, StyledText, line, wrapped
from deltatape.render.numbers import duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """A checked tape; `report` is None if it could not be read, `error` says why."""

    path: str
    report: AuditReport | None
    error: str = ""
    asked: tuple[Recheck, ...] = ()
    """What its exchanges gave when a provider was asked again."""
    url: str = ""
    """Of that provider; "" when none was asked."""


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
        *(today_lines(audit.asked, audit.url, width) if audit.url else ()),
    ]


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
        **({"against": today_object(audit.asked, audit.url)} if audit.url else {}),
    }


# What a live provider does differently today, as text and as JSON: `fsck --against`.
#
# The keys of the JSON are a contract: they are added to, never renamed.

_MOST = 30
"""Differences of one exchange that are shown."""
_LABELS: Mapping[Aspect, str] = {
    Aspect.CONTENT_TYPE: "content type",
    Aspect.FRAMING: "HTTP framing",
    Aspect.FORMAT: "format of the body",
    Aspect.ANSWER: "the answer brings",
    Aspect.FINISH: "finish reason",
}
_NOTHING = "nothing"


def today_lines(asked: Sequence[Recheck], url: str, width: int = WIDTH) -> list[Line]:
    """Format what each exchange of a tape gives today, when it is requested from `url` again."""
    compared = [one.today for one in asked if one.today is not None]
    same = sum(1 for today in compared if not today.drifts)
    answers = f"{count(len(compared), 'answer')}, {same} as on the tape"
    lines = [line("  ", StyledText(f"today at {url}", BOLD), f": {answers}")]
    for one in asked:
        lines += _one_today(one, width)
    return lines


def _one_today(asked: Recheck, width: int) -> Iterator[Line]:
    request = asked.recorded.request
    front = f"#{asked.recorded.number} {request.method} {request.path}: "
    if asked.passed_over:
        yield from wrapped(f"{front}passed over: {asked.passed_over}", 4, DIM, width)
        return
    if asked.problem:
        yield from wrapped(f"{front}{asked.problem}", 4, STYLES[Severity.ERROR], width)
    if asked.today is not None:
        yield from _compared(asked, asked.today, front, width)


def _compared(asked: Recheck, today: RecheckedExchange, front: str, width: int) -> Iterator[Line]:
    drifts = today.drifts
    if drifts:
        differences = count(len(drifts), "difference")
        yield from wrapped(f"{front}{differences}", 4, STYLES[Severity.WARNING], width)
    else:
        yield from wrapped(f"{front}as on the tape", 4, GOOD, width)
    for drift in drifts[:_MOST]:
        yield from wrapped(_said_today(drift), 8, "", width)
    if len(drifts) > _MOST:
        more = f"and {len(drifts) - _MOST} more; all of them: --format json"
        yield from wrapped(more, 8, DIM, width)
    for note in _notes(asked, today):
        yield from wrapped(f"note: {note}", 8, DIM, width)


def _said_today(drift: ResponseDrift) -> str:
    """Describe one difference: `field chunk: usage.cost: new today (number)`."""
    label = _LABELS.get(drift.aspect, drift.aspect.value)
    if not drift.what:
        return f"{label}: {drift.recorded or _NOTHING}, today {drift.today or _NOTHING}"
    front = f"{label} {drift.what}"
    if drift.recorded and drift.today:
        return f"{front}: {drift.recorded}, today {drift.today}"
    how, about = ("new today", drift.today) if drift.today else ("gone today", drift.recorded)
    return f"{front}: {how}" if about == PRESENT else f"{front}: {how} ({about})"


def _notes(asked: Recheck, today: RecheckedExchange) -> Iterator[str]:
    yield from today.notes
    times = [_times(each) for each in (asked.recorded, today.comparison.right.exchange)]
    if all(times):
        yield f"{times[0]}; today {times[1]}"
    if asked.left_out:
        yield f"not sent, since it is masked on the tape: {', '.join(asked.left_out)}"


def _times(exchange: Exchange) -> str:
    """Describe when an answer began and ended; "" without recorded times."""
    if not exchange.timed or exchange.end is None or not exchange.reads:
        return ""
    first, end = (t - exchange.request.t_ns for t in (exchange.reads[0].t_ns, exchange.end.t_ns))
    return f"began after {duration(first)}, ended after {duration(end)}"


def today_object(asked: Iterable[Recheck], url: str) -> dict[str, object]:
    """Return the same for programs: `against` of a tape in `fsck --format json`."""
    return {"url": url, "exchanges": [_object(one) for one in asked]}


def _object(asked: Recheck) -> dict[str, object]:
    today = asked.today
    return {
        "exchange": asked.recorded.number,
        "id": asked.recorded.id,
        "same": None if today is None else not today.drifts,
        "equal": None if today is None else today.comparison.equal,
        "passed_over": asked.passed_over or None,
        "problem": asked.problem or None,
        "left_out": list(asked.left_out),
        "differences": [_drift(drift) for drift in (today.drifts if today else ())],
        "notes": list(today.notes) if today else [],
    }


def _drift(drift: ResponseDrift) -> dict[str, object]:
    return {
        "aspect": drift.aspect,
        "what": drift.what or None,
        "recorded": drift.recorded or None,
        "today": drift.today or None,
    }
