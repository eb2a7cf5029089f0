import pytest

from deltatape.rules import INTERNAL_ERROR
from deltatape.rules.t001_empty_arguments import EmptyArguments


def test_the_report_names_rule_error_and_place_and_escapes_them() -> None:
    def fail() -> None:
        raise ValueError("odd \x1b[31m")

    with pytest.raises(ValueError, match="odd") as caught:
        fail()
    finding = INTERNAL_ERROR.report(EmptyArguments(), "x.tape", 3, caught.value)
    assert finding.message == "the rule T001 failed: ValueError: odd \\x1b[31m"
    assert finding.evidence.startswith("fail:")
    assert (finding.tape, finding.exchange, finding.blame) == ("x.tape", 3, None)
