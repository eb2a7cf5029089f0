"""A report, written tape by tape: what all formats have in common, and the one for people.

Strategy: what is said about a tape is written as soon as it is checked, so that memory holds the
findings of one tape, however many there are.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Protocol, TypeAlias

from deltatape.diagnose.check_tape import TapeReport
from deltatape.model.finding import Severity
from deltatape.render.ci_log import inert_line
from deltatape.render.findings import counted, ending_lines, reported_lines
from deltatape.render.findings_json import FindingsDocument
from deltatape.render.github import Annotations
from deltatape.render.junit import TestReport
from deltatape.render.lines import WIDTH, Line
from deltatape.render.sarif import SarifLog

FORMATS = ("text", "json", "junit", "github", "sarif")

Part: TypeAlias = str | Sequence[Line]
"""A piece of a report: a document for programs, or lines for people."""


class Report(Protocol):
    """A format."""

    @property
    def excerpts(self) -> bool:
        """Whether it shows the wire."""

    def tape(self, report: TapeReport) -> Part:
        """What comes next: about one tape, readable or not."""

    def end(self) -> Part:
        """What comes last."""


class TextReport:
    """Findings as a compiler tells them, and a summary; nothing if no tape could be read."""

    excerpts = True

    def __init__(self, width: int = WIDTH) -> None:
        self._width = width
        self._readable = False
        self._found: Counter[Severity] = Counter()
        self._gravest: tuple[int, str] | None = None

    def tape(self, report: TapeReport) -> Part:
        """See `Report.tape`."""
        self._readable |= not report.problem
        self._found.update(each.finding.severity for each in report.reported)
        for each in report.reported:
            own = (each.finding.severity.rank, each.finding.code)
            self._gravest = min(self._gravest or own, own)
        return [
            inert_line(line)
            for each in report.reported
            for line in reported_lines(each, self._width)
        ]

    def end(self) -> Part:
        """See `Report.end`."""
        if not self._readable:
            return []
        code = self._gravest[1] if self._gravest else ""
        return ending_lines(self._found.total(), counted(self._found), code)


def report_in(form: str, *, width: int, failing: frozenset[Severity]) -> Report:
    """An empty report.

    Args:
        form: one of `FORMATS`.
        width: columns of the page, for people.
        failing: the severities that make a check fail.
    """
    match form:
        case "json":
            return FindingsDocument()
        case "junit":
            return TestReport(failing)
        case "github":
            return Annotations()
        case "sarif":
            return SarifLog()
        case _:
            return TextReport(width)
