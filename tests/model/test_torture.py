import pytest

from deltatape.model.torture import Verdict
from helpers.tortured import cell, failed, result


@pytest.mark.parametrize(
    ("verdict", "passes"),
    [
        (Verdict.SAME, True),
        (Verdict.TOLD, True),
        (Verdict.NO_PLACE, True),
        (Verdict.DIFFERS, False),
        (Verdict.SWALLOWED, False),
        (Verdict.HANGS, False),
        (Verdict.DIES, False),
        (Verdict.REFUSED, False),
    ],
)
def test_some_verdicts_are_as_it_should_be(verdict: Verdict, *, passes: bool) -> None:
    assert verdict.passes is passes


def test_one_cell_that_fails_makes_the_whole_fail() -> None:
    assert result(cell()).passes
    assert not result(cell(), failed("crlf")).passes
    assert [one.variation for one in result(cell(), failed("crlf")).failed] == ["crlf"]


def test_a_problem_with_the_tapes_as_they_are_makes_the_whole_fail() -> None:
    assert not result(problem="exit code 1").passes
