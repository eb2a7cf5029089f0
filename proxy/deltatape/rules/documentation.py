"""The rules' pages, for `deltatape why CODE` and docs/findings.md."""

import pkgutil
from itertools import groupby
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

Every finding that deltatape reports; `scripts/findings-docs` generates this table from the rules. A
finding has a code, a severity, the party at fault (`model`, `provider`, `gateway`, `transport`,
`app`, `tool-server`, or `upstream`: one of the first three, which one recording cannot
distinguish) and how sure
that is (`proven`, `likely`, `possible`: see [verdicts.md](verdicts.md)). Each code links to its
page: what it reports, innocent explanations, an example, the fix and references. `deltatape why
CODE` prints that page.
"""

_TABLE = "| code | name | severity | summary |\n|---|---|---|---|\n"
_PAGES = "../proxy/deltatape/rules/docs"


def find(code: str) -> Rule[Any] | None:
    """Return the rule with this code, in any case, or with this name."""
    wanted = code.strip().lower()
    return next((rule for rule in RULES if wanted in (rule.code.lower(), rule.name)), None)


def rule_page(code: str) -> str | None:
    """Return the Markdown page of the rule with this code or name."""
    rule = find(code)
    return None if rule is None else _page_of(rule)


def page() -> str:
    """Return docs/findings.md."""
    parts = [_HEAD]
    for group, rules in groupby(RULES, key=lambda rule: rule.code[0]):
        parts.append(f"## {_GROUPS[group]}\n\n{_TABLE}{''.join(map(_row, rules))}")
    return "\n".join(parts)


def _row(rule: Rule[Any]) -> str:
    _, summary, *_ = _page_of(rule).split("\n\n")
    code = f"[{rule.code}]({_PAGES}/{rule.code}.md)"
    return f"| {code} | {rule.name} | {rule.severity} | {' '.join(summary.split())} |\n"


def _page_of(rule: Rule[Any]) -> str:
    found = pkgutil.get_data("deltatape.rules", f"docs/{rule.code}.md")
    return (found or b"").decode()
