"""A test that is not true to its tape fails, and says by what."""

import pytest

from helpers.pytest_projects import OWN, hello, plugged, reports, write_tape


def test_a_miss_fails_the_test_though_it_passed(pytester: pytest.Pytester) -> None:
    write_tape(pytester.path / OWN, hello())
    result = plugged(
        pytester,
        """
@pytest.mark.tape
def test_it():
    ask("Hi")
    with contextlib.suppress(StreamError):
        ask("Bye")
""",
    )
    result.assert_outcomes(failed=1)
    told = reports(result)
    assert "1 request is not on the tape:" in told
    assert f"nearest: {OWN}#1" in told
    assert '$.messages[0].content: recorded "Hi", received "Bye"' in told
    hint = "if the test is right, record what is missing: pytest --tape-mode auto"
    assert f"{hint} test_app.py::test_it" in told


def test_a_test_that_failed_tells_of_its_miss_beside_its_own_error(
    pytester: pytest.Pytester,
) -> None:
    write_tape(pytester.path / OWN, hello())
    result = plugged(
        pytester,
        """
@pytest.mark.tape
def test_it():
    ask("Bye")
""",
    )
    result.assert_outcomes(failed=1)
    told = reports(result)
    assert "app.StreamError: status 400" in told
    assert "Captured tape call" in told
    assert "1 request is not on the tape" in told
    assert "1 exchange was not asked for" in told
    assert "make the tape anew: pytest --tape-mode record test_app.py::test_it" in told


def test_an_exchange_that_is_left_over_fails_the_test(pytester: pytest.Pytester) -> None:
    write_tape(pytester.path / OWN, hello(), hello("Bye", number=2))
    result = plugged(
        pytester,
        """
@pytest.mark.tape
def test_it():
    ask("Hi")

@pytest.mark.tape("recordings/test_app/test_it.tape#1")
def test_one():
    ask("Hi")

@pytest.mark.tape("recordings/test_app/test_it.tape")
def test_none():
    pass

@pytest.mark.tape("recordings/test_app/test_it.tape#1")
def test_other():
    ask("Good evening")
""",
    )
    result.assert_outcomes(passed=1, failed=3)
    told = reports(result)
    assert "--tape-mode" not in told
    assert f"{OWN}#2 POST /v1/chat/completions" in told
    assert "no request came at all: the base URL is read from the environment" in told


def test_a_fault_that_strikes_nothing_fails_the_test(pytester: pytest.Pytester) -> None:
    write_tape(pytester.path / OWN, hello())
    result = plugged(
        pytester,
        """
TAPE = "recordings/test_app/test_it.tape"

@pytest.mark.tape(TAPE, fault="cut,exchange=7")
def test_of_no_exchange():
    ask("Hi")

@pytest.mark.tape(TAPE, fault="cut,at=in-arguments")
def test_at_no_place():
    ask("Hi")

@pytest.mark.tape(TAPE, fault=("drip=1ms", "stall=1ms,at=first"))
def test_strikes():
    ask("Hi")
""",
    )
    result.assert_outcomes(passed=1, failed=2)
    told = reports(result)
    assert "fault='cut,exchange=7' changed nothing: the exchange that it names was not" in told
    assert "fault='cut,at=in-arguments' changed nothing: no played response has" in told


def test_a_miss_of_what_was_played_names_the_marker_s_argument(pytester: pytest.Pytester) -> None:
    write_tape(pytester.path / OWN, hello())
    result = plugged(
        pytester,
        """
@pytest.mark.tape
def test_it():
    ask("Hi")
    ask("Hi")
""",
    )
    result.assert_outcomes(failed=1)
    told = reports(result)
    assert "(repeat=True in the marker plays it again)" in told
    assert "--repeat" not in told


def test_a_test_case_that_failed_tells_of_its_miss_as_well(pytester: pytest.Pytester) -> None:
    write_tape(pytester.path / OWN, hello())
    result = plugged(
        pytester,
        """
import unittest

@pytest.mark.tape("recordings/test_app/test_it.tape")
class TestOld(unittest.TestCase):
    def test_one(self):
        ask("Bye")

    def test_two(self):
        ask("Hi")
        with contextlib.suppress(StreamError):
            ask("Hi")
""",
    )
    result.assert_outcomes(failed=2)
    told = reports(result)
    assert "app.StreamError: status 400" in told
    assert told.count("Captured tape call") == 1
    assert told.count('recorded "Hi", received "Bye"') == 1
    assert told.count("repeat=True in the marker") == 1


def test_what_a_test_says_for_itself_stays(pytester: pytest.Pytester) -> None:
    write_tape(pytester.path / OWN, hello())
    result = plugged(
        pytester,
        """
pytestmark = pytest.mark.tape("recordings/test_app/test_it.tape")

def test_skips():
    pytest.skip("not today")

@pytest.mark.xfail(strict=True)
def test_fails():
    ask("Hi")
    assert False

def test_asserts():
    assert ask("Hi") == "Hello"
""",
    )
    result.assert_outcomes(skipped=1, xfailed=1, failed=1)
    assert "Captured tape call" not in result.stdout.str()


def test_a_hostile_variation_wants_an_error(pytester: pytest.Pytester) -> None:
    write_tape(pytester.path / OWN, hello())
    result = plugged(
        pytester,
        """
NAMES = ("cut-in-text", "status-500")

@pytest.mark.tape("recordings/test_app/test_it.tape", torture=NAMES)
def test_raises():
    assert ask("Hi") == "Hello there"

@pytest.mark.tape("recordings/test_app/test_it.tape", torture=NAMES)
def test_swallows():
    try:
        ask("Hi")
    except StreamError:
        pass

@pytest.mark.tape("recordings/test_app/test_it.tape", torture=NAMES)
def test_swallows_and_asserts():
    try:
        text = ask("Hi")
    except Exception:
        text = ""
    assert text == "Hello there"
""",
        "-rP",
    )
    told = reports(result)
    # As recorded all pass; what tells of a cut and swallows a status passes one of two.
    result.assert_outcomes(passed=6, failed=3)
    assert "nothing raised an error: half an answer was accepted as a complete one" in told
    assert "only the test's own assertion failed" in told
    assert "this was raised, as it has to: " in told
    assert f"cut-in-text of {OWN}#1: " in told


STRICT = """
import app

def answer():
    said = None
    try:
        said = app.ask("Hi")
    except Exception:
        pass
    assert said, "the stream broke off"
    return said
"""


@pytest.mark.parametrize("how", ["rewrite", "plain"])
def test_an_assertion_of_the_application_is_an_error_of_it(
    pytester: pytest.Pytester, how: str
) -> None:
    write_tape(pytester.path / OWN, hello())
    result = plugged(
        pytester,
        """
import strict
import unittest
pytestmark = pytest.mark.tape("recordings/test_app/test_it.tape", torture="cut-in-text")

def test_the_application_asserts():
    strict.answer()

def test_asserts_by_another():
    with contextlib.suppress(Exception):
        ask("Hi")
        return
    unittest.TestCase().assertEqual(1, 2)

def test_says_that_it_failed():
    with contextlib.suppress(Exception):
        ask("Hi")
        return
    pytest.fail("no answer")
""",
        f"--assert={how}",
        strict=STRICT,
    )
    result.assert_outcomes(passed=4, failed=2)
    assert result.stdout.str().count("only the test's own assertion failed") == 2


def test_an_error_that_comes_too_late_is_none(pytester: pytest.Pytester) -> None:
    write_tape(pytester.path / OWN, hello())
    result = plugged(
        pytester,
        """
@pytest.mark.tape("recordings/test_app/test_it.tape", torture="stall-in-text", deadline=0.2)
def test_it(tape):
    assert ask("Hi") == "Hello there"
""",
    )
    result.assert_outcomes(passed=1, failed=1)
    assert "there was no error within 0.2 s" in result.stdout.str()


def test_a_harmless_variation_that_fails_is_named(pytester: pytest.Pytester) -> None:
    write_tape(pytester.path / OWN, hello())
    result = plugged(
        pytester,
        """
@pytest.mark.tape("recordings/test_app/test_it.tape", torture="every-byte")
def test_it(tape):
    ask("Hi")
    assert not tape.variation
""",
    )
    result.assert_outcomes(passed=1, failed=1)
    assert f"every-byte of {OWN}#1: " in result.stdout.str()


def test_a_test_may_say_itself_what_a_visible_error_is(pytester: pytest.Pytester) -> None:
    write_tape(pytester.path / OWN, hello())
    result = plugged(
        pytester,
        """
@pytest.mark.tape("recordings/test_app/test_it.tape", torture="cut-in-text")
def test_it(tape):
    try:
        said = ask("Hi")
    except Exception:
        said = "Sorry, please ask again."
    if tape.hostile and said.startswith("Sorry"):
        raise StreamError(said)
    assert said == "Hello there"
""",
    )
    result.assert_outcomes(passed=2)
