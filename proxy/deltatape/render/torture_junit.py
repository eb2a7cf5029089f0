"""What torture found as a JUnit report: a suite of harmless variations and one of hostile ones.

A case is a variation of one exchange. One that has no place there is skipped; where that goes for
all, a case more fails. Where the tapes as they are fail already, that is the only case.
"""

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from deltatape.model.torture import Cell, Tortured, Verdict
from deltatape.render.ci_log import inert_text
from deltatape.render.torture import untried
from deltatape.rules.evidence import escape

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


def torture_junit(result: Tortured) -> str:
    """`torture --junit FILE`."""
    root = ET.Element("testsuites", name="deltatape torture")
    if result.problem:
        case = _failing("recorded", "the tapes as they are", result.problem, result.printed)
        root.append(_suite("recorded", [case]))
    if why := untried(result):
        case = _failing("tried", "a variation", f"nothing was tried: {why}")
        root.append(_suite("tried", [case]))
    for name, harmless in (("harmless", True), ("hostile", False)):
        cells = [_case(name, cell) for cell in result.cells if cell.harmless is harmless]
        if cells:
            root.append(_suite(name, cells))
    ET.indent(root, " ")
    return _HEAD + inert_text(ET.tostring(root, encoding="unicode"), "#&#35;") + "\n"


def _suite(name: str, cases: Sequence[ET.Element]) -> ET.Element:
    suite = ET.Element(
        "testsuite",
        name=name,
        tests=str(len(cases)),
        failures=str(sum(case.find("failure") is not None for case in cases)),
        errors="0",
        skipped=str(sum(case.find("skipped") is not None for case in cases)),
    )
    suite.extend(cases)
    return suite


def _failing(suite: str, name: str, problem: str, printed: str = "") -> ET.Element:
    case = ET.Element("testcase", classname=suite, name=name, time="0")
    failure = ET.SubElement(case, "failure", message=escape(problem), type=suite)
    failure.text = _text(printed)
    return case


def _case(suite: str, cell: Cell) -> ET.Element:
    name = escape(f"{cell.variation} {cell.exchange}")
    case = ET.Element("testcase", classname=suite, name=name, time=f"{cell.seconds:.3f}")
    if cell.verdict is Verdict.NO_PLACE:
        ET.SubElement(case, "skipped", message="no place for it in this exchange")
    elif not cell.verdict.passes:
        failure = ET.SubElement(case, "failure", message=escape(cell.why), type=cell.verdict.value)
        failure.text = _text(f"{cell.reproduce}\n{cell.printed}")
    return case


def _text(text: str) -> str:
    return "".join(f"{escape(one)}\n" for one in text.splitlines())
