"""A report, written tape by tape: what all formats have in common, and the one for people.

Strategy: findings on a tape are written as soon as it is checked, so that memory holds those of one
tape.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Protocol, TypeAlias

from deltatape.diagnose.check_tape import ReportedFinding, TapeReport
from deltatape.model.finding import Severity
from deltatape.printable import count, escape
from deltatape.render.ci_log import inert_line, inert_text
from deltatape.render.findings import blamed, counted, ending_lines, place, reported_lines
from deltatape.render.json_document import FindingsDocument
from deltatape.render.junit import TestReport
from deltatape.render.lines import DIM, LEAST, STYLES, WIDTH, Cell, Line, StyledText, line, table
from deltatape.render.sarif import SarifLog

_Kind: TypeAlias = tuple[int, str, str, Severity]
"""Findings that are counted together: rank and code first, in the order of the list."""
FORMATS = ("text", "json", "junit", "github", "sarif")
Part: TypeAlias = str | Iterable[Line]
"""A piece of a report: a document for programs, or lines for people; false if it is empty."""


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
    """Findings as a compiler prints them, and a summary; nothing if no tape could be read.

    Args:
        width: columns of the page.
        first_only: show the first finding of each code, and end with totals per code.
    """

    excerpts = True

    def __init__(self, width: int = WIDTH, *, first_only: bool = False) -> None:
        self._width = width
        self._first_only = first_only
        self._readable = False
        self._found: Counter[_Kind] = Counter()
        self._tapes: Counter[_Kind] = Counter()
        self._hidden = 0

    def tape(self, report: TapeReport) -> Part:
        self._readable |= not report.problem
        shown, on_tape = [], set()
        for each in report.reported:
            finding = each.finding
            kind = (finding.severity.rank, finding.code, finding.name, finding.severity)
            if self._first_only and kind in self._found:
                self._hidden += 1
            else:
                shown.append(each)
            self._found[kind] += 1
            on_tape.add(kind)
        self._tapes.update(on_tape)
        # Made as they are printed: a long tape can have more lines than memory should hold.
        return self._lines(shown) if shown else ()

    def end(self) -> Part:
        if not self._readable:
            return []
        by_severity: Counter[Severity] = Counter()
        for kind, found in self._found.items():
            by_severity[kind[3]] += found
        code = min(self._found)[1] if self._found else ""
        ending = ending_lines(by_severity.total(), counted(by_severity), code)
        return [*(self._totals() if self._first_only else ()), *ending]

    def _lines(self, shown: Iterable[ReportedFinding]) -> Iterator[Line]:
        for each in shown:
            yield from map(inert_line, reported_lines(each, self._width))

    def _totals(self) -> Iterator[Line]:
        """For each code how many findings there are, on how many tapes."""
        if not self._found:
            return
        rows: list[list[Cell]] = [
            [
                StyledText(severity, STYLES[severity]),
                f"{code} {name}",
                count(self._found[kind], "finding"),
                f"on {count(self._tapes[kind], 'tape')}",
            ]
            for kind in sorted(self._found)
            for _, code, name, severity in [kind]
        ]
        yield from table(rows, right=[2], width=self._width, give={1: LEAST})
        if self._hidden:
            hidden = count(self._hidden, "more finding")
            them = f"{hidden} like those above: deltatape check --all"
            yield line(StyledText(them, DIM))
        yield line()


def report_in(
    form: str, *, width: int, failing: frozenset[Severity], first_only: bool = False
) -> Report:
    """An empty report.

    Args:
        form: one of `FORMATS`.
        width: columns of the page, for people.
        failing: the severities that make a check fail.
        first_only: whether people are shown only the first finding of each code.
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
            return TextReport(width, first_only=first_only)


# Findings as annotations of GitHub Actions: workflow commands, one a line.
#
# A command ends with its line, a property with a comma or colon: so text of a tape is escaped
# twice, as everywhere else and then as GitHub prescribes, and can begin no command of its own.
#
# Source: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands and
# https://github.com/actions/toolkit, packages/core/src/command.ts

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


class Annotations:
    """Formats findings as annotations of GitHub workflows; see `Report`."""

    excerpts = False

    def __init__(self) -> None:
        self._found: Counter[Severity] = Counter()
        self._readable = False

    def tape(self, report: TapeReport) -> str:
        if report.problem:
            return _command("error", report.name, 1, "tape not readable", escape(report.problem))
        self._readable = True
        self._found.update(each.finding.severity for each in report.reported)
        return "".join(_annotation(each, report.tape_of(each)) for each in report.reported)

    def end(self) -> str:
        return f"{counted(self._found)}\n" if self._readable else ""


def _annotation(reported: ReportedFinding, tape: str) -> str:
    finding = reported.finding
    title = f"{finding.code} {finding.name} ({blamed(finding)})"
    lines = [
        finding.message,
        place(finding),
        *([f"evidence: {finding.evidence}"] if finding.evidence not in finding.message else []),
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
