"""The rules' docstrings as documentation: for `deltatape why CODE` and for docs/findings.md."""

import inspect

from deltatape.rules import DOCUMENTED
from deltatape.rules._base import Documented

_GROUPS = {
    "W": "The wire",
    "S": "The stream",
    "T": "Tool calls",
    "A": "The application's own events",
    "D": "Dead zones",
    "C": "The conversation",
    "X": "deltatape itself",
}

_HEAD = """\
# Findings

Every finding that deltatape reports, made from the rules themselves by `scripts/findings-docs`. A
finding names code, severity, whose fault it was (`model`, `provider`, `gateway`, `transport`,
`app`, or `upstream`: one of the first three, which one recording cannot tell apart) and how sure
that is (`proven`, `likely`, `possible`). `deltatape why CODE` prints a section of this page.
"""


def find(code: str) -> Documented | None:
    """The rule with this code, in any case, or of this name."""
    wanted = code.strip().lower()
    return next((rule for rule in DOCUMENTED if wanted in (rule.code.lower(), rule.name)), None)


def explain(code: str) -> str | None:
    """What the rule of this code or name is about, as Markdown; None if there is none."""
    rule = find(code)
    return None if rule is None else f"# {_title(rule)}\n\n{_text(rule)}\n"


def page() -> str:
    """docs/findings.md."""
    parts = [_HEAD, "| code | name | severity |\n|---|---|---|\n" + "".join(map(_row, DOCUMENTED))]
    group = ""
    for rule in DOCUMENTED:
        if rule.code[0] != group:
            group = rule.code[0]
            parts.append(f"## {_GROUPS[group]}\n")
        body = _text(rule).replace("\n## ", "\n#### ")
        parts.append(f"### {_title(rule)}\n\n{body}\n")
    return "\n".join(parts)


def _title(rule: Documented) -> str:
    return f"{rule.code} {rule.name}"


def _row(rule: Documented) -> str:
    anchor = f"{rule.code.lower()}-{rule.name}"
    return f"| [{rule.code}](#{anchor}) | {rule.name} | {rule.severity} |\n"


def _text(rule: Documented) -> str:
    return inspect.getdoc(rule) or ""
