"""A tape is loaded for the length of a test, and no longer."""

from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.pytest_plugin.loading import Project, project
from deltatape.store.reader import open_tape
from deltatape.store.rewrite import store_volatile
from helpers.pytest_projects import OWN, hello, plugged, write_tape


def test_nothing_is_left_of_a_test_however_it_ends(pytester: pytest.Pytester) -> None:
    write_tape(pytester.path / OWN, hello())
    result = plugged(
        pytester,
        """
import threading
urls = []
pytestmark = pytest.mark.tape("recordings/test_app/test_it.tape")

def test_passes(tape):
    urls.append(tape.url())
    ask("Hi")

def test_fails(tape):
    urls.append(tape.url())
    assert False

def test_leaves_its_stream(tape):
    urls.append(tape.url())
    url = urlsplit(tape.url("openai"))
    global connection
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=5)
    connection.connect()
    raise ValueError

@pytest.mark.parametrize("number", range(3))
def test_later(number):
    ask("Hi")
    url = urlsplit(urls[number])
    gone = http.client.HTTPConnection(url.hostname, url.port, timeout=5)
    with pytest.raises(OSError):
        gone.connect()
    connection.close()
    assert sum("deltatape" in one.name for one in threading.enumerate()) == 1
""",
    )
    result.assert_outcomes(passed=4, failed=2)


def test_a_damaged_tape_is_reported(pytester: pytest.Pytester) -> None:
    (pytester.path / "x.tape").write_text("no tape\n")
    result = plugged(
        pytester,
        """
@pytest.mark.tape("x.tape")
def test_it():
    pass
""",
    )
    result.assert_outcomes(errors=1)
    assert "x.tape:1: no tape" in result.stdout.str()


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


def test_a_file_that_is_none_is_reported(tmp_path: Path) -> None:
    (tmp_path / "deltatape.yaml").write_text("a: [")
    with pytest.raises(UsageError, match=r"deltatape\.yaml"):
        project(tmp_path, {})


def test_what_is_stored_with_a_tape_is_used(pytester: pytest.Pytester) -> None:
    tape = pytester.path / OWN
    write_tape(tape, hello("Hi on 2026-11-26"))
    store_volatile(open_tape(tape), ["date"])
    result = plugged(
        pytester,
        """
def test_it(tape):
    assert ask("Hi on 2026-12-03") == "Hello there"
""",
    )
    result.assert_outcomes(passed=1)


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
