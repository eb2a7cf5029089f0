"""How the tapes of a test are played."""

import pytest

from helpers.plugged import OWN, hello, plugged, write_tape


def test_the_arguments_of_the_marker_are_those_of_replay(pytester: pytest.Pytester) -> None:
    write_tape(pytester.path / OWN, hello(trace=1))
    result = plugged(
        pytester,
        """
pytestmark = pytest.mark.tape("recordings/test_app/test_it.tape", volatile="trace")

@pytest.mark.tape("recordings/test_app/test_it.tape", volatile="trace", repeat=True)
def test_again_and_again():
    for _ in range(3):
        assert ask("Hi") == "Hello there"

@pytest.mark.tape("recordings/test_app/test_it.tape", volatile="trace", reads="every-byte")
def test_cut_anew():
    assert ask("Hi") == "Hello there"

@pytest.mark.tape(
    "recordings/test_app/test_it.tape", volatile="trace", fault="status=429,times=1"
)
def test_a_fault():
    with pytest.raises(StreamError, match="429"):
        ask("Hi")
    assert ask("Hi") == "Hello there"

@pytest.mark.tape("recordings/test_app/test_it.tape", volatile="trace", fault="fire")
def test_no_fault():
    pass
""",
    )
    result.assert_outcomes(passed=3, errors=1)
    assert "tape(fault='fire')" in result.stdout.str()


def test_a_key_is_there_where_the_user_has_none(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    write_tape(pytester.path / OWN, hello())
    result = plugged(
        pytester,
        """
def test_it(tape):
    assert os.environ["OPENAI_API_KEY"]
    ask("Hi")
""",
    )
    result.assert_outcomes(passed=1)


def test_several_tapes_are_one_provider(pytester: pytest.Pytester) -> None:
    write_tape(pytester.path / "a.tape", hello(), hello("Never", number=2))
    write_tape(pytester.path / "b.tape", hello("Bye", text="See you"))
    result = plugged(
        pytester,
        """
@pytest.mark.tape("a.tape#1", "b.tape")
def test_it():
    assert ask("Bye") == "See you"
    assert ask("Hi") == "Hello there"
""",
    )
    result.assert_outcomes(passed=1)


def test_tests_in_threads_and_processes_have_the_same_provider(pytester: pytest.Pytester) -> None:
    write_tape(pytester.path / OWN, hello(), hello("Bye", number=2, text="See you"))
    result = plugged(
        pytester,
        """
import subprocess, sys
from concurrent.futures import ThreadPoolExecutor

@pytest.mark.tape
def test_it():
    with ThreadPoolExecutor() as pool:
        said = pool.submit(ask, "Hi")
        told = [sys.executable, "-c", "import app; print(app.ask('Bye'))"]
        assert subprocess.check_output(told, text=True).strip() == "See you"
        assert said.result() == "Hello there"
""",
    )
    result.assert_outcomes(passed=1)
