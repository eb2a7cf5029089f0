"""Findings as annotations of GitHub Actions: workflow commands, one a line.

A command ends with its line, a property with a comma or colon: so text of a tape is escaped twice,
as everywhere else and then as GitHub prescribes, and can begin no command of its own.

Source: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands and
https://github.com/actions/toolkit, packages/core/src/command.ts
"""

from collections import Counter

from deltatape.diagnose.check_tape import Reported, TapeReport
from deltatape.model.finding import Severity
from deltatape.render.ci_log import inert_text
from deltatape.render.findings import blamed, counted, place
from deltatape.rules.evidence import escape

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
