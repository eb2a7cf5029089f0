"""Reports of `deltatape check`, validated against the schemas of their formats."""

import json
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import xmlschema

from deltatape.diagnose.check_tape import TapeReport, check_exchanges
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Severity
from deltatape.model.rule_settings import DEFAULTS
from deltatape.render.report import Report

ROOT = Path(__file__).resolve().parent.parent.parent
SCHEMAS = ROOT / "tests" / "schemas"
FINDINGS = ROOT / "docs" / "findings.schema.json"
FAILING = frozenset({Severity.ERROR})


def report_on(*exchanges: Exchange, name: str = "x.tape") -> TapeReport:
    """The report on a tape with these exchanges."""
    return check_exchanges(name, exchanges, DEFAULTS)


def unreadable(name: str = "bad.tape") -> TapeReport:
    """A file that is not a tape."""
    return TapeReport(name=name, problem=f"{name}:5: no JSON")


def written(report: Report, reports: Iterable[TapeReport]) -> str:
    """A report for programs as one text."""
    parts = [*(report.tape(each) for each in reports), report.end()]
    texts = [part for part in parts if isinstance(part, str)]
    assert len(texts) == len(parts)
    return "".join(texts)


def valid_findings(text: str | bytes) -> list[dict[str, object]]:
    """The findings of a valid JSON document."""
    document = _valid(text, FINDINGS)
    found: list[dict[str, object]] = document["findings"]
    return found


def valid_sarif(text: str | bytes) -> dict[str, object]:
    """The only run of a valid SARIF log."""
    (run,) = _valid(text, SCHEMAS / "sarif-2.1.0.schema.json")["runs"]
    found: dict[str, object] = run
    return found


def valid_junit(text: str | bytes) -> ET.Element:
    """A valid JUnit report."""
    content = text.decode() if isinstance(text, bytes) else text
    root = ET.fromstring(content.partition("?>")[2])  # noqa: S314 - ours
    xmlschema.XMLSchema(SCHEMAS / "junit.xsd").validate(root)
    for suite in root:
        cases = list(suite)
        for attribute, tag in (("failures", "failure"), ("errors", "error")):
            count = int(suite.attrib[attribute])
            assert count == sum(case.find(tag) is not None for case in cases)
        assert int(suite.attrib["tests"]) == len(cases)
    return root


def _valid(text: str | bytes, path: Path) -> dict[str, list[dict[str, object]]]:
    schema = json.loads(path.read_text())
    validator = jsonschema.Draft202012Validator
    validator.check_schema(schema)
    document: dict[str, list[dict[str, object]]] = json.loads(text)
    validator(schema).validate(document)
    return document
