"""Findings as SARIF 2.1.0, which code scanning systems read.

A result's location is the tape's line, since the tape is the file that they have; event, span and
time are its properties. `partialFingerprints` are the same when a tape is recorded again.

Source: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from collections.abc import Mapping
from textwrap import indent
from typing import Any
from urllib.parse import quote

from deltatape.diagnose.check_tape import ReportedFinding, TapeReport
from deltatape.model.finding import Severity
from deltatape.printable import escape
from deltatape.render.findings import blamed, place
from deltatape.render.json_document import inert_json
from deltatape.rules import RULES, Rule
from deltatape.rules.documentation import rule_page

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
FINGERPRINT = "deltatape/v1"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_RULES = {rule.code: at for at, rule in enumerate(RULES)}
_RESULTS = "-results-"
"""Stands for the results until they come; nothing else in the frame is called so."""


class SarifLog:
    """The report; see `Report`."""

    excerpts = False

    def __init__(self) -> None:
        self._begun = False
        self._results = 0
        self._problems: list[str] = []

    def tape(self, report: TapeReport) -> str:
        if report.problem:
            self._problems.append(report.problem)
        return self._begin() + "".join(
            self._next(each, report.tape_of(each)) for each in report.reported
        )

    def end(self) -> str:
        gap = "\n   " if self._results else ""
        return f"{self._begin()}{gap}{self._frame({})[1]}\n"

    def _begin(self) -> str:
        begin, self._begun = "" if self._begun else self._frame(_driver())[0], True
        return begin

    def _next(self, reported: ReportedFinding, tape: str) -> str:
        comma = "," if self._results else ""
        self._results += 1
        return f"{comma}\n" + indent(inert_json(_result(reported, tape)), "    ")

    def _frame(self, driver: Mapping[str, object]) -> tuple[str, str]:
        """Return the text before and after the results; `driver`, which is long, comes before."""
        frame = {
            "$schema": SCHEMA,
            "version": "2.1.0",
            "runs": [
                {
                    "tool": {"driver": driver},
                    "columnKind": "unicodeCodePoints",
                    "results": [_RESULTS],
                    "invocations": [
                        {
                            "executionSuccessful": not self._problems,
                            "toolExecutionNotifications": [
                                {"level": "error", "message": {"text": escape(problem)}}
                                for problem in self._problems
                            ],
                        }
                    ],
                }
            ],
        }
        before, _, after = inert_json(frame).partition(f'"{_RESULTS}"')
        return before.rstrip(), after.lstrip()


def _driver() -> dict[str, object]:
    return {
        "name": "deltatape",
        "rules": [_rule(rule) for rule in RULES],
    }


def _rule(rule: Rule[Any]) -> dict[str, object]:
    documentation = rule_page(rule.code) or rule.name
    first = next(line for line in documentation.split("\n") if line and not line.startswith("#"))
    return {
        "id": rule.code,
        "name": "".join(part.capitalize() for part in rule.name.split("-")),
        "shortDescription": {"text": f"{rule.name}: {first}"},
        "help": {"text": documentation, "markdown": documentation},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(reported: ReportedFinding, tape: str) -> dict[str, object]:
    finding = reported.finding
    location = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(tape)},
            "region": {"startLine": finding.line or 1},
        },
        "logicalLocations": [{"fullyQualifiedName": escape(f"{tape}#{finding.exchange}")}],
    }
    text = f"{finding.message} ({blamed(finding)}; {place(finding)}). Fix: {finding.hint}"
    return {
        "ruleId": finding.code,
        "ruleIndex": _RULES[finding.code],
        "level": _LEVELS[finding.severity],
        "message": {"text": escape(text)},
        "locations": [location],
        "partialFingerprints": {FINGERPRINT: reported.fingerprint},
        "properties": {
            "blame": finding.blame,
            "confidence": finding.confidence,
            "exchange": finding.exchange,
            "event": finding.event,
            "span": None if finding.span is None else list(finding.span),
            "t_ns": finding.t_ns,
            "evidence": finding.evidence,
        },
    }


def _uri(path: str) -> str:
    """A path as a reference to a file: relative ones stay so, for the system that reads it."""
    quoted = quote(path, safe="/", errors="surrogateescape")
    return f"file://{quoted}" if path.startswith("/") else quoted
