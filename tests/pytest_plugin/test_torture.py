"""Which tests torture makes of one, and what they play."""

from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.pytest_plugin.marker_options import Marked, MarkerOptions
from deltatape.pytest_plugin.tape_paths import TapeLocation
from deltatape.pytest_plugin.torture import AS_RECORDED, VariationCase, chosen, varied
from deltatape.trials.torture_plan import tasks
from deltatape.vary.variation import HARMLESS, VARIATIONS
from helpers.pytest_projects import OWN, hello, plugged, write_tape

TESTS = """
@pytest.mark.tape(torture=True, deadline=0.5)
def test_it(tape):
    assert ask("Hi") == "Hello there"
"""


def options(*torture: str) -> MarkerOptions:
    """What a test under torture asks for."""
    return MarkerOptions(
        name="test_it", marked=Marked(torture=torture), places=(TapeLocation(path=Path(OWN)),)
    )


def test_all_variations_are_chosen_unless_some_are_named() -> None:
    assert chosen(options()) == VARIATIONS
    first, second = VARIATIONS[0], VARIATIONS[-1]
    assert chosen(options(second.name, first.name, second.name)) == (second, first)


def test_variations_are_left_out() -> None:
    first, second, *rest = VARIATIONS
    assert chosen(options(f"!{second.name}")) == (first, *rest)
    assert chosen(options(first.name, second.name, f"!{second.name}")) == (first,)


def test_a_variation_that_is_none_is_reported_with_those_that_are() -> None:
    with pytest.raises(UsageError) as told:
        chosen(options("every-bite"))
    assert "torture='every-bite'): no variation; " in str(told.value)
    with pytest.raises(UsageError, match="no variation"):
        chosen(options("!every-bite"))
    assert HARMLESS[0].name in str(told.value)


def test_a_harmless_variation_is_laid_upon_all_exchanges() -> None:
    exchanges = hello(), hello("Bye", number=2)
    found = varied(VariationCase(variation="every-byte", positions=(0, 1)), options(), exchanges)
    assert found.stage is None
    assert found.broken is None
    assert found.change.startswith("every-byte of all exchanges: ")
    for one, other in zip(found.exchanges, exchanges, strict=True):
        assert one.body == other.body
        assert {len(read.data) for read in one.reads} == {1}


def test_a_hostile_one_breaks_an_exchange_for_as_often_as_it_is_asked_for() -> None:
    exchanges = hello(), hello("Bye", number=2)
    found = varied(VariationCase(variation="cut-in-text", positions=(1,)), options(), exchanges)
    first, second = found.exchanges
    assert first.body == exchanges[0].body
    assert second is found.broken
    assert second.cut
    assert found.change.startswith("cut-in-text of x.tape#2: ")
    assert found.stage is not None
    assert found.stage(0, first).spent
    assert not found.stage(1, second).spent


def test_there_is_a_test_for_every_variation_that_has_a_place(pytester: pytest.Pytester) -> None:
    exchanges = hello(), hello("Bye", number=2)
    write_tape(pytester.path / OWN, *exchanges)
    result = plugged(pytester, TESTS, "--collect-only", "-q")
    names = [
        line.partition("[")[2].removesuffix("]")
        for line in result.outlines
        if line.startswith("test_app.py::")
    ]
    places = [task for task in tasks(VARIATIONS, exchanges, (0, 1), (0,)) if task.tries]
    assert names[0] == AS_RECORDED
    assert len(names) == len(set(names)) == len(places) + 1
    assert "every-byte" in names
    assert {"cut-in-text-1", "cut-in-text-2"} <= set(names)


def test_an_application_that_notices_everything_passes(pytester: pytest.Pytester) -> None:
    write_tape(pytester.path / OWN, hello())
    tests = TESTS.replace("torture=True", 'torture=("every-byte", "crlf", "cut-in-text")')
    result = plugged(pytester, tests, "-rA")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*test_it[[]as-recorded[]]*", "*test_it[[]cut-in-text[]]*"])


def test_names_that_torture_adds_are_no_part_of_the_tape_s(pytester: pytest.Pytester) -> None:
    write_tape(pytester.path / "x.tape", hello())
    result = plugged(
        pytester,
        """
@pytest.mark.parametrize("what", [1, 2])
@pytest.mark.tape("x.tape", torture="every-byte")
def test_it(what, tape):
    assert ask("Hi") == "Hello there"
    assert tape.variation in ("", "every-byte")
""",
    )
    result.assert_outcomes(passed=4)


def test_why_there_is_one_test_and_not_many_is_reported(pytester: pytest.Pytester) -> None:
    for name in ("test_it", "TestOld.test_old", "test_two-1"):
        write_tape(pytester.path / f"recordings/test_app/{name}.tape", hello())
    result = plugged(
        pytester,
        """
import unittest

@pytest.mark.tape(torture="every-bite")
def test_it():
    pass

@pytest.mark.tape(torture=True)
def test_none():
    pass

@pytest.mark.tape(torture=True)
class TestOld(unittest.TestCase):
    def test_old(self):
        pass

@pytest.mark.parametrize("what", [1])
@pytest.mark.tape(torture=True)
def test_two(what):
    pass
""",
    )
    result.assert_outcomes(errors=4)
    told = result.stdout.str()
    assert "torture='every-bite'): no variation" in told
    assert "test_none.tape: there is no such tape yet" in told
    assert "TestOld::test_old is a test that pytest cannot make several of" in told
    assert "a test with parameters has a tape for each of them" in told


def test_nothing_is_tortured_while_it_is_recorded(pytester: pytest.Pytester) -> None:
    write_tape(pytester.path / OWN, hello())
    result = plugged(pytester, TESTS, "--tape-mode", "auto")
    result.assert_outcomes(passed=1)
