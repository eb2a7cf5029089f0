"""A report, written tape by tape: what all formats have in common, and the one for people.

Strategy: what is said about a tape is written as soon as it is checked, so that memory holds the
findings of one tape, however many there are.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Protocol, TypeAlias

from deltatape.diagnose.check_tape import Reported, TapeReport
from deltatape.model.finding import Severity
from deltatape.render.ci_log import inert_line, inert_text
from deltatape.render.findings import blamed, counted, ending_lines, place, reported_lines
from deltatape.render.findings_json import FindingsDocument
from deltatape.render.junit import TestReport
from deltatape.render.lines import WIDTH, Line
from deltatape.render.sarif import SarifLog
from deltatape.rules.evidence import escape

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


# Findings as annotations of GitHub Actions: workflow commands, one a line.
#
# A command ends with its line, a property with a comma or colon: so text of a tape is escaped
# twice, as everywhere else and then as GitHub prescribes, and can begin no command of its own.
#
# Source: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands and
# https://github.com/actions/toolkit, packages/core/src/command.ts

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


class Annotations:
    """The report; see `Report`."""

    excerpts = False

    def __init__(self) -> None:
        self._found: Counter[Severity] = Counter()
        self._readable = False

    def tape(self, report: TapeReport) -> str:
        """See `Report.tape`."""
        if report.problem:
            return _command("error", report.name, 1, "tape not readable", report.problem)
        self._readable = True
        self._found.update(each.finding.severity for each in report.reported)
        return "".join(_annotation(each, report.name) for each in report.reported)

    def end(self) -> str:
        """See `Report.end`."""
        return f"{counted(self._found)}\n" if self._readable else ""


def _annotation(reported: Reported, tape: str) -> str:
    finding = reported.finding
    title = f"{finding.code} {finding.name} ({blamed(finding)})"
    lines = [
        finding.message,
        place(finding),
        *([f"evidence: {finding.evidence}"] if finding.evidence else []),
        f"fix: {finding.hint}",
    ]
    command = _COMMANDS[finding.severity]
    return _command(command, tape, finding.line or 1, title, "\n".join(map(escape, lines)))


def _command(command: str, file: str, line: int, title: str, text: str) -> str:
    properties = f"file={_property(file)},line={line},title={_property(title)}"
    return inert_text(f"::{command} {properties}::{_data(text)}", "#%23") + "\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(escape(text)).replace(":", "%3A").replace(",", "%2C")
