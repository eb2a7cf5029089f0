"""The plugin as a user has it: tests with tapes, run by pytest."""

import subprocess
import sys

import pytest

from helpers.pytest_projects import OWN, hello, plugged, write_tape

LIGHT = """
import sys
import pytest
before = set(sys.modules)
import deltatape.pytest_plugin.hooks
print(*sorted(set(sys.modules) - before))
"""


def test_a_marked_test_has_the_tape_beside_it_as_its_provider(pytester: pytest.Pytester) -> None:
    write_tape(pytester.path / OWN, hello())
    result = plugged(
        pytester,
        """
@pytest.mark.tape
def test_it():
    assert ask("Hi") == "Hello there"
""",
    )
    result.assert_outcomes(passed=1)


def test_the_fixture_alone_is_enough_and_tells_the_url(pytester: pytest.Pytester) -> None:
    write_tape(pytester.path / OWN, hello())
    result = plugged(
        pytester,
        """
def test_it(tape):
    assert ask("Hi", base=tape.url("openai")) == "Hello there"
    assert tape.url("openai") == os.environ["OPENAI_BASE_URL"] == tape.url() + "/openai/v1"
    assert tape.path.name == "test_it.tape"
    (played,) = tape.report.played
    assert (tape.mode, tape.variation, tape.hostile) == ("replay", "", False)
""",
    )
    result.assert_outcomes(passed=1)


def test_the_environment_is_that_of_before_when_the_test_is_over(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://llm.corp.example/v1")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.corp.example:3128")
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    write_tape(pytester.path / OWN, hello())
    result = plugged(
        pytester,
        """
@pytest.mark.tape
def test_it():
    assert "HTTPS_PROXY" not in os.environ
    assert os.environ["ANTHROPIC_BASE_URL"].startswith("http://127.0.0.1:")
    assert ask("Hi") == "Hello there"

def test_later():
    assert os.environ["OPENAI_BASE_URL"] == "https://llm.corp.example/v1"
    assert os.environ["HTTPS_PROXY"] == "http://proxy.corp.example:3128"
    assert "ANTHROPIC_BASE_URL" not in os.environ
""",
    )
    result.assert_outcomes(passed=2)


def test_a_client_that_a_fixture_makes_has_the_tape_already(pytester: pytest.Pytester) -> None:
    write_tape(pytester.path / OWN, hello())
    result = plugged(
        pytester,
        """
@pytest.fixture
def base():
    return os.environ["OPENAI_BASE_URL"]

@pytest.mark.tape
def test_it(base):
    assert ask("Hi", base=base) == "Hello there"
""",
    )
    result.assert_outcomes(passed=1)


def test_a_module_and_a_class_are_marked_as_a_whole(pytester: pytest.Pytester) -> None:
    for name in ("test_it", "TestAll.test_one", "TestOld.test_two", "test_param-b_c-b37f2ca2"):
        write_tape(pytester.path / f"recordings/test_app/{name}.tape", hello())
    result = plugged(
        pytester,
        """
import unittest
pytestmark = pytest.mark.tape

def test_it():
    ask("Hi")

class TestAll:
    def test_one(self):
        ask("Hi")

class TestOld(unittest.TestCase):
    def test_two(self):
        ask("Hi")

@pytest.mark.parametrize("what", ["b/c"])
def test_param(what):
    ask("Hi")
""",
    )
    result.assert_outcomes(passed=4)


def test_an_unknown_argument_and_a_missing_tape_are_reported(pytester: pytest.Pytester) -> None:
    result = plugged(
        pytester,
        """
@pytest.mark.tape(sped="instant")
def test_it():
    pass

@pytest.mark.tape
def test_new():
    pass
""",
    )
    result.assert_outcomes(errors=2)
    told = result.stdout.str()
    assert "tape(sped=...): no argument of the marker; it takes speed, " in told
    assert "test_new.tape: there is no such tape yet; it is made by pytest --tape-mode" in told
    assert "During handling" not in told


def test_the_marker_is_known_and_described(pytester: pytest.Pytester) -> None:
    result = plugged(pytester, "", "--markers", "--strict-markers")
    result.stdout.fnmatch_lines(["@pytest.mark.tape(*tapes, *"])
    plugged(pytester, "", "--help").stdout.fnmatch_lines(["*--tape-mode=*"])


def test_pytest_loads_nothing_of_deltatape_but_the_hooks() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True, timeout=300
    )
    assert loaded.stdout.split() == [
        "deltatape",
        "deltatape.pytest_plugin",
        "deltatape.pytest_plugin.hooks",
    ]


def test_a_run_without_tapes_loads_nothing_more(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
import sys

def test_it(request):
    ours = sorted(name for name in sys.modules if name.startswith("deltatape"))
    assert ours == ["deltatape", "deltatape.pytest_plugin", "deltatape.pytest_plugin.hooks"]
"""
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
