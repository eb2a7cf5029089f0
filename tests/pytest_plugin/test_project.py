"""What deltatape.yaml says that concerns tests."""

from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.pytest_plugin.project import Project, project
from helpers.plugged import OWN, hello, plugged, write_tape

SETTINGS = """
record: {keep: 2h}
replay:
  speed: 4x
  volatile: [metadata.session, "messages.*.id"]
upstreams:
  corp: https://llm.corp.example
"""


def test_volatile_fields_and_upstreams_are_those_of_the_commands(tmp_path: Path) -> None:
    (tmp_path / "deltatape.yaml").write_text(SETTINGS)
    (tmp_path / "tests").mkdir()
    assert project(tmp_path / "tests", {}) == Project(
        volatile=("metadata.session", "messages.*.id"),
        upstreams=("corp=https://llm.corp.example",),
    )


@pytest.mark.parametrize("text", ["", "record: {keep: 2h}", "replay:", "replay: {volatile: }"])
def test_a_file_may_say_nothing_of_them(text: str, tmp_path: Path) -> None:
    (tmp_path / "deltatape.yaml").write_text(text)
    assert project(tmp_path, {}) == Project()


def test_without_a_file_there_is_nothing(tmp_path: Path) -> None:
    assert project(tmp_path, {"DELTATAPE_CONFIG": "none"}) == Project()


def test_a_file_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "deltatape.yaml").write_text("a: [")
    with pytest.raises(UsageError, match=r"deltatape\.yaml"):
        project(tmp_path, {})


def test_a_test_has_them_beside_those_of_its_marker(pytester: pytest.Pytester) -> None:
    (pytester.path / "deltatape.yaml").write_text("replay: {volatile: user}")
    tape = pytester.path / OWN
    write_tape(tape, hello(user="jane", trace=1))
    result = plugged(
        pytester,
        """
@pytest.mark.tape(volatile="trace")
def test_it():
    assert ask("Hi") == "Hello there"
""",
    )
    result.assert_outcomes(passed=1)
