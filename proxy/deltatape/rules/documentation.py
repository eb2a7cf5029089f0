"""The pages of the rules, for `deltatape why CODE` and for docs/findings.md."""

import pkgutil
from typing import Any

from deltatape.rules import RULES
from deltatape.rules.rule import Rule

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


def find(code: str) -> Rule[Any] | None:
    """The rule with this code, in any case, or of this name."""
    wanted = code.strip().lower()
    return next((rule for rule in RULES if wanted in (rule.code.lower(), rule.name)), None)


def rule_page(code: str) -> str | None:
    """What the rule of this code or name is about, as Markdown; None if there is none."""
    rule = find(code)
    return None if rule is None else _page_of(rule)


def page() -> str:
    """docs/findings.md."""
    parts = [_HEAD, "| code | name | severity |\n|---|---|---|\n" + "".join(map(_row, RULES))]
    group = ""
    for rule in RULES:
        if rule.code[0] != group:
            group = rule.code[0]
            parts.append(f"## {_GROUPS[group]}\n")
        parts.append(_page_of(rule).replace("\n## ", "\n#### ").replace("# ", "### ", 1))
    return "\n".join(parts)


def _row(rule: Rule[Any]) -> str:
    anchor = f"{rule.code.lower()}-{rule.name}"
    return f"| [{rule.code}](#{anchor}) | {rule.name} | {rule.severity} |\n"


def _page_of(rule: Rule[Any]) -> str:
    found = pkgutil.get_data("deltatape.rules", f"docs/{rule.code}.md")
    return (found or b"").decode()
