"""Run rules; one that raises must not silence the others."""

import traceback
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from deltatape.model.finding import Confidence, Finding, Severity
from deltatape.printable import excerpt
from deltatape.rules.context import Claim
from deltatape.rules.rule import FindingPlace, Rule, RuleKind, Seen


class RuleFailure(NamedTuple):
    """A rule that raised, and its input."""

    code: str
    error: Exception
    where: FindingPlace


FAILURES = RuleKind[RuleFailure](lambda seen: FindingPlace(seen.where.tape, seen.where.exchange))
"""Rules about rules that failed."""


@FAILURES.rule("X001", "internal-error", Severity.ERROR, survives_loss=True)
def internal_error(failure: RuleFailure) -> Iterator[Claim]:
    """Report a rule that failed, with the innermost frames as evidence."""
    error = failure.error
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    yield Claim(
        message=excerpt(f"the rule {failure.code} failed: {type(error).__name__}: {error}"),
        hint=(
            "this is a bug in deltatape: report it with the tape, if you may share the"
            " recorded data"
        ),
        blame=None,
        confidence=Confidence.PROVEN,
        evidence=" < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames)),
    )


def ask(rules: Iterable[Rule[Seen]], seen: Seen) -> list[Finding]:
    """Return what `rules` find in `seen`; a rule that raises contributes an internal error."""
    found: list[Finding] = []
    for rule in rules:
        try:
            for claim in rule.check(seen):
                found.append(rule.finding(claim, seen))  # noqa: PERF401 - an error keeps them
        except Exception as error:  # noqa: BLE001 - the guard of the rules
            failure = RuleFailure(rule.code, error, rule.where(seen))
            for each in FAILURES.rules:
                found.extend(each.findings(failure))
    return found
