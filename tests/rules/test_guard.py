from collections.abc import Callable, Iterable

from deltatape.model.finding import Confidence, Severity
from deltatape.rules import Claim, Rule, ask
from deltatape.rules.rule import FindingPlace


def claim(message: str) -> Claim:
    return Claim(message=message, hint="", blame=None, confidence=Confidence.LIKELY)


def rule(code: str, check: Callable[[str], Iterable[Claim]]) -> Rule[str]:
    return Rule(
        code=code,
        name=code.lower(),
        severity=Severity.ERROR,
        check=check,
        where=lambda seen: FindingPlace(seen, 3, line=7, t_ns=1),
    )


def fail(seen: str) -> Iterable[Claim]:
    yield claim(f"first on {seen}")
    raise ValueError("odd \x1b[31m")


def test_what_came_before_the_error_is_kept_and_the_next_rule_is_asked() -> None:
    found = ask([rule("T001", fail), rule("T002", lambda _: [claim("last")])], "x.tape")
    assert [(each.code, each.message) for each in found] == [
        ("T001", "first on x.tape"),
        ("X001", "the rule T001 failed: ValueError: odd \\x1b[31m"),
        ("T002", "last"),
    ]


def test_the_report_of_an_error_has_its_frames_and_its_exchange_and_blames_nobody() -> None:
    _, finding = ask([rule("T001", fail)], "x.tape")
    assert finding.evidence.startswith("fail:")
    assert (finding.tape, finding.exchange, finding.blame) == ("x.tape", 3, None)
    assert (finding.line, finding.t_ns, finding.severity) == (None, None, Severity.ERROR)


def test_without_an_error_nothing_is_added() -> None:
    assert ask([rule("T001", lambda _: ())], "x.tape") == []
