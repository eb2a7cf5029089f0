"""Findings as a JUnit report, which CI systems show as failed tests.

A tape is a suite. An exchange without failures is a passed case, `#3`; else every code that fails
in it is a failed case of its own, `#3 T001 empty-arguments`, with all its findings as the text, so
that the list of failed tests shows the defects and their number. Findings that do not make the
check fail are the output of the exchange's passed case. A tape that cannot be read is an error.

Source: the XML that JUnit's Ant task writes and Surefire and Jenkins read, which no standard fixes.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from xml.etree import ElementTree as ET

from deltatape.diagnose.check_tape import ReportedFinding, TapeReport
from deltatape.model.finding import Severity
from deltatape.printable import escape
from deltatape.render.ci_log import inert_line, inert_text
from deltatape.render.findings import blamed, reported_lines
from deltatape.render.lines import plain

XML_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
_HEAD = f'{XML_HEAD}<testsuites name="deltatape check">\n'
_TAIL = "</testsuites>\n"


class TestReport:
    """The report; see `Report`.

    Args:
        failing: the severities that make a case fail.
    """

    __test__ = False  # pytest looks at classes of this name

    excerpts = True

    def __init__(self, failing: frozenset[Severity]) -> None:
        self._failing = failing
        self._begun = False

    def tape(self, report: TapeReport) -> str:
        begin, self._begun = "" if self._begun else _HEAD, True
        cases = [_unreadable(report)] if report.problem else list(self._cases(report))
        return begin + xml_text(suite_of(report.name, cases))

    def end(self) -> str:
        return ("" if self._begun else _HEAD) + _TAIL

    def _cases(self, report: TapeReport) -> Iterator[ET.Element]:
        by_exchange: defaultdict[int, list[ReportedFinding]] = defaultdict(list)
        for each in report.reported:
            by_exchange[each.finding.exchange].append(each)
        for number in report.exchanges:
            found = by_exchange[number]
            failed = [each for each in found if each.finding.severity in self._failing]
            mild = [each for each in found if each.finding.severity not in self._failing]
            if mild or not failed:
                yield _passed(report.name, number, mild)
            in_order = sorted(failed, key=lambda each: each.finding.code)
            for _, alike in groupby(in_order, key=lambda each: each.finding.code):
                yield _failed(report.name, number, tuple(alike))


def suite_of(name: str, cases: Sequence[ET.Element]) -> ET.Element:
    """Return a suite with the totals of its cases."""
    suite = ET.Element(
        "testsuite",
        name=escape(name),
        tests=str(len(cases)),
        failures=str(sum(case.find("failure") is not None for case in cases)),
        errors=str(sum(case.find("error") is not None for case in cases)),
        skipped=str(sum(case.find("skipped") is not None for case in cases)),
    )
    suite.extend(cases)
    return suite


def _case(tape: str, name: str) -> ET.Element:
    return ET.Element("testcase", classname=escape(tape), name=escape(name), time="0")


def _unreadable(report: TapeReport) -> ET.Element:
    case = _case(report.name, "readable")
    ET.SubElement(case, "error", message=escape(report.problem), type="unreadable")
    return case


def _passed(tape: str, number: int, mild: Sequence[ReportedFinding]) -> ET.Element:
    case = _case(tape, f"#{number}")
    if mild:
        ET.SubElement(case, "system-out").text = _finding_text(mild)
    return case


def _failed(tape: str, number: int, alike: Sequence[ReportedFinding]) -> ET.Element:
    first = alike[0].finding
    more = f" (and {len(alike) - 1} more)" if len(alike) > 1 else ""
    case = _case(tape, f"#{number} {first.code} {first.name}")
    message = escape(f"{first.message}{more} ({blamed(first)})")
    ET.SubElement(case, "failure", message=message, type=first.code).text = _finding_text(alike)
    return case


def _finding_text(reported: Iterable[ReportedFinding]) -> str:
    return plain(inert_line(line) for each in reported for line in reported_lines(each))


def xml_text(element: ET.Element) -> str:
    """Return `element` as XML that is inert in CI logs."""
    ET.indent(element, " ")
    return inert_text(ET.tostring(element, encoding="unicode"), "#&#35;") + "\n"
