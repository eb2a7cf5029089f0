"""JSON for programs: ASCII, inert on terminals and in CI logs, without secrets.

Schemas: docs/*.schema.json.
"""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from deltatape.render.ci_log import inert_text
from deltatape.secret_text.search import secret_strings

if TYPE_CHECKING:
    from deltatape.diagnose.check_tape import TapeReport
    from deltatape.model.finding import ComparedPlace, Finding

VERSION = 1
"""The version of every document: keys are added, never renamed."""
_ENCODER = json.JSONEncoder(ensure_ascii=True)


def document(**content: object) -> str:
    """Return an object with `"version": 1` and `content`, and a line feed."""
    return inert_json({"version": VERSION, **content}) + "\n"


def long_document(**content: object) -> str:
    """Return the same with each element of a list on a line, in a third of the time.

    For what is not indented, the encoder is written in C. For documents of whole streams.
    """
    members = [
        f' "version": {VERSION}',
        *(f' "{key}": {_rows(each)}' for key, each in content.items()),
    ]
    return _inert("{\n" + ",\n".join(members) + "\n}") + "\n"


def _rows(value: object) -> str:
    if not isinstance(value, list) or not value:
        return _ENCODER.encode(_hidden(value))
    rows = ",\n  ".join([_ENCODER.encode(_hidden(each)) for each in value])
    return f"[\n  {rows}\n ]"


def inert_json(value: object) -> str:
    """Return `value` as ASCII JSON that is inert on terminals and in CI logs."""
    return _inert(json.dumps(_hidden(value), ensure_ascii=True, indent=1))


def inert_members(value: Mapping[str, object], margin: str) -> str:
    """Return `value` like `inert_json`, one member per line, indented by `margin`.

    Its keys are plain words. For what is not indented, the encoder is written in C: it takes a
    fifth of the time.
    """
    members = f",\n{margin} ".join(
        f'"{key}": {_ENCODER.encode(member)}' for key, member in hidden_object(value).items()
    )
    return _inert(f"{margin}{{\n{margin} {members}\n{margin}}}")


def hidden_object(value: Mapping[str, object]) -> dict[str, object]:
    """Return `value` with asterisks for what looks like a secret in its strings, to be written."""
    secrets = secret_strings([*value.values()])
    return {key: _replaced(member, secrets) for key, member in value.items()}


def inert_line(value: object) -> str:
    """Return `value` like `inert_json`, on one line: the encoder for that is written in C."""
    return _inert(_ENCODER.encode(_hidden(value)))


def _hidden(value: object) -> object:
    """Return `value` with asterisks for what looks like a secret in its strings."""
    return _replaced(value, secret_strings(value))


def _replaced(value: object, texts: Mapping[str, str]) -> object:
    if not texts:
        return value
    match value:
        case str():
            return texts.get(value, value)
        case list() | tuple():
            return [_replaced(element, texts) for element in value]
        case dict():
            return {key: _replaced(member, texts) for key, member in value.items()}
        case _:
            return value


def _inert(text: str) -> str:
    return inert_text(text.replace("\x7f", "\\u007f"), r"#\u0023")


class FindingsDocument:
    """`check --format json`, written tape by tape; see `Report`.

    It is empty if no tape could be read.
    """

    excerpts = False

    def __init__(self) -> None:
        self._begun = False
        self._findings = 0

    def tape(self, report: "TapeReport") -> str:
        return "" if report.problem else self.add(each.finding for each in report.reported)

    def add(self, findings: Iterable["Finding"]) -> str:
        """Return the next part: `findings`, possibly none."""
        begin = "" if self._begun else f'{{\n "version": {VERSION},\n "findings": ['
        self._begun = True
        return begin + "".join(map(self._next, findings))

    def end(self) -> str:
        if not self._begun:
            return ""
        return ("\n ]" if self._findings else "]") + "\n}\n"

    def _next(self, finding: "Finding") -> str:
        comma = "," if self._findings else ""
        self._findings += 1
        return f"{comma}\n" + inert_members(finding_object(finding), "  ")


def finding_object(finding: "Finding") -> dict[str, object]:
    """Return a finding with the keys of the contract."""
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


def _against(other: "ComparedPlace | None") -> dict[str, object] | None:
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
