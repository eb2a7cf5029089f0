"""What cannot be recorded, and what is said then."""

import pytest

from helpers.pytest_projects import plugged


@pytest.mark.parametrize(
    ("tests", "says"),
    [
        (
            """
@pytest.mark.tape("a.tape", "b.tape")
def test_it():
    ask("Hi")
""",
            "tape('a.tape', 'b.tape'): --tape-mode record records one tape, whole",
        ),
        (
            """
@pytest.mark.tape("a.tape#1")
def test_it():
    ask("Hi")
""",
            "tape('a.tape#1'): --tape-mode record records one tape, whole",
        ),
        (
            """
@pytest.mark.tape(1)
def test_wrong():
    pass

@pytest.mark.tape
def test_own():
    pass

@pytest.mark.tape("a.tape")
def test_it():
    ask("Hi")

@pytest.mark.tape("a.tape")
def test_other():
    pass
""",
            "a.tape: is the tape of test_app.py::test_other, too",
        ),
        (
            """
@pytest.mark.tape(upstream="openai")
def test_it():
    ask("Hi")
""",
            "--upstream 'openai': invalid upstream",
        ),
    ],
)
def test_what_cannot_be_recorded_is_reported(
    tests: str, says: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(pytester.path / "state"))
    result = plugged(pytester, tests, "--tape-mode", "record")
    assert result.parseoutcomes()["errors"] >= 1
    assert says in result.stdout.str()
