"""What the fixtures of a test ask for counts as what it asks for itself."""

import pytest

from helpers.pytest_projects import OWN, hello, plugged, reports, write_tape

FIXTURES = """
@pytest.fixture
def asks_later():
    yield
    ask("Bye")

@pytest.fixture
def misses_later(request):
    def finish():
        with contextlib.suppress(StreamError):
            ask("Good evening")
    request.addfinalizer(finish)

@pytest.fixture
def misses_at_once():
    ask("Good evening")

pytestmark = pytest.mark.tape("recordings/test_app/test_it.tape")
"""


def test_what_a_fixture_asks_for_when_the_test_is_over_counts(pytester: pytest.Pytester) -> None:
    write_tape(pytester.path / OWN, hello(), hello("Bye", number=2))
    result = plugged(
        pytester,
        f"""
{FIXTURES}
def test_asks(asks_later):
    ask("Hi")

class TestMethod:
    def test_asks(self):
        ask("Hi")

    def teardown_method(self):
        ask("Bye")
""",
    )
    result.assert_outcomes(passed=2)


def test_what_is_wrong_when_the_fixtures_are_torn_down_fails_the_test_once(
    pytester: pytest.Pytester,
) -> None:
    write_tape(pytester.path / OWN, hello(), hello("Bye", number=2))
    result = plugged(
        pytester,
        f"""
{FIXTURES}
def test_misses(misses_later):
    ask("Hi")
    ask("Bye")

def test_leaves_one(misses_later):
    ask("Bye")

def test_fails(misses_later):
    assert False

def test_fails_already(asks_later):
    with contextlib.suppress(StreamError):
        ask("Good morning")
""",
    )
    result.assert_outcomes(passed=2, failed=2, errors=2)
    told = reports(result)
    assert told.count('recorded "Hi", received "Good evening"') == 2
    assert told.count("record what is missing: pytest --tape-mode auto test_app.py::test_miss") == 1
    assert told.count("the tape anew: pytest --tape-mode record test_app.py::test_leaves_one") == 1
    assert told.count('received "Good morning"') == 1


def test_a_fixture_that_only_pytest_ends_leaves_the_verdict_to_the_call(
    pytester: pytest.Pytester,
) -> None:
    write_tape(pytester.path / OWN, hello())
    result = plugged(
        pytester,
        """
@pytest.mark.tape
def test_it(monkeypatch, tmp_path):
    pass
""",
    )
    result.assert_outcomes(failed=1)


def test_a_fixture_that_fails_for_a_miss_tells_of_it(pytester: pytest.Pytester) -> None:
    write_tape(pytester.path / OWN, hello())
    result = plugged(
        pytester,
        f"""
{FIXTURES}
@pytest.fixture
def fails():
    raise StreamError("out of order")

def test_it(misses_at_once):
    pass

def test_other(fails):
    pass
""",
    )
    result.assert_outcomes(errors=2)
    told = reports(result)
    assert "app.StreamError: status 400" in told
    assert told.count("Captured tape setup") == 1
    assert f"nearest: {OWN}#1" in told
    assert '$.messages[0].content: recorded "Hi", received "Good evening"' in told
    assert "make the tape anew: pytest --tape-mode record test_app.py::test_it" in told
