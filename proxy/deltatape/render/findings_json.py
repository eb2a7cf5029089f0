"""Findings as JSON. Schema: docs/findings.schema.json."""

from collections.abc import Iterable

from deltatape.diagnose.check_tape import TapeReport
from deltatape.model.finding import ComparedPlace, Finding
from deltatape.render.json_document import VERSION, inert_members


def findings_json(findings: Iterable[Finding]) -> str:
    """Findings as `check --format json` has them."""
    document = FindingsDocument()
    return document.add(findings) + document.end()


class FindingsDocument:
    """`check --format json`, written tape by tape; see `Report`.

    It is empty if no tape could be read.
    """

    excerpts = False

    def __init__(self) -> None:
        self._begun = False
        self._findings = 0

    def tape(self, report: TapeReport) -> str:
        return "" if report.problem else self.add(each.finding for each in report.reported)

    def add(self, findings: Iterable[Finding]) -> str:
        """Return the next part: `findings`, possibly none."""
        begin = "" if self._begun else f'{{\n "version": {VERSION},\n "findings": ['
        self._begun = True
        return begin + "".join(map(self._next, findings))

    def end(self) -> str:
        if not self._begun:
            return ""
        return ("\n ]" if self._findings else "]") + "\n}\n"

    def _next(self, finding: Finding) -> str:
        comma = "," if self._findings else ""
        self._findings += 1
        return f"{comma}\n" + inert_members(finding_object(finding), "  ")


def finding_object(finding: Finding) -> dict[str, object]:
    """The keys of the contract."""
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity,
        "blame": finding.blame,
        "confidence": finding.confidence,
        "message": finding.message,
        "tape": finding.tape,
        "line": finding.line,
        "exchange": finding.exchange,
        "event": finding.event,
        "span": None if finding.span is None else list(finding.span),
        "t_ns": finding.t_ns,
        "evidence": finding.evidence,
        "hint": finding.hint,
        "against": _against(finding.against),
        "excluded": [
            {"explanation": each.explanation, "because": each.because} for each in finding.excluded
        ],
    }


def _against(other: ComparedPlace | None) -> dict[str, object] | None:
    if other is None:
        return None
    return {
        "tape": other.tape,
        "exchange": other.exchange,
        "line": other.line,
        "span": None if other.span is None else list(other.span),
        "asked": None if other.request_span is None else list(other.request_span),
        "evidence": other.evidence,
    }
