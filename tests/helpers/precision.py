"""What deltatape reports of the corpus, and the reasons for it in tests/corpus/findings.yaml."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import yaml

from deltatape.diagnose.check import check
from deltatape.model.finding import Severity
from helpers.corpus import RULES, Case, every_case


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    """Why findings on captured streams are true."""

    errors: Mapping[str, tuple[Sequence[str], str]]
    """By stream: the codes, and the reason."""
    others: Mapping[str, str]
    """By code, for warnings and remarks."""


@cache
def reasons() -> Reasons:
    """All reasons."""
    told = yaml.safe_load((RULES / "findings.yaml").read_text())
    return Reasons(
        errors={one["stream"]: (one["codes"], one["reason"]) for one in told["errors"]},
        others=told["others"],
    )


@cache
def every_finding() -> Sequence[tuple[Case, Sequence[tuple[str, Severity]]]]:
    """Code and severity of every finding on each case."""
    return [
        (case, [(finding.code, finding.severity) for finding in check(case.exchange)])
        for case in every_case()
    ]
