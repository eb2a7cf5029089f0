import pytest

from deltatape.model.torture import RunVerdict
from helpers.tortured import cell, failed, result


@pytest.mark.parametrize(
    ("verdict", "passes"),
    [
        (RunVerdict.SAME, True),
        (RunVerdict.REPORTED, True),
        (RunVerdict.NO_PLACE, True),
        (RunVerdict.DIFFERS, False),
        (RunVerdict.SWALLOWED, False),
        (RunVerdict.HANGS, False),
        (RunVerdict.DIES, False),
        (RunVerdict.REFUSED, False),
    ],
)
def test_some_verdicts_are_as_it_should_be(verdict: RunVerdict, *, passes: bool) -> None:
    assert verdict.passes is passes


def test_one_cell_that_fails_makes_the_whole_fail() -> None:
    assert result(cell()).passes
    assert not result(cell(), failed("crlf")).passes
    assert [one.variation for one in result(cell(), failed("crlf")).failed] == ["crlf"]


def test_a_problem_with_the_tapes_as_they_are_makes_the_whole_fail() -> None:
    assert not result(problem="exit code 1").passes
