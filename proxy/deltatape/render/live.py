"""What a recorder says of an exchange as it ends: a line, and one more for each finding."""

from collections.abc import Sequence

from deltatape.diagnose.rebuild import Analysis
from deltatape.model.finding import Finding
from deltatape.render.findings import blamed
from deltatape.render.summary import exchange_line
from deltatape.rules.evidence import excerpt

_MESSAGE = 160


def live_lines(analysis: Analysis, findings: Sequence[Finding], name: str = "") -> list[str]:
    """`#3 POST /v1/chat/completions 200 1.8 s: ...`, and the findings, worst first.

    Args:
        analysis: of the exchange.
        findings: about it.
        name: of the tape, where one was asked for.
    """
    return [name + exchange_line(analysis, findings), *finding_lines(findings)]


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """A line for each finding, worst first."""
    lines = []
    for finding in sorted(findings, key=lambda each: each.severity.rank):
        head = f"    {finding.severity} {finding.code} {finding.name} ({blamed(finding)})"
        lines.append(f"{head}: {excerpt(finding.message, _MESSAGE)}")
    return lines
