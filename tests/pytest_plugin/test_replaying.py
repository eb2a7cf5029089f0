"""How the tapes of a test are played."""

import os

import pytest

from deltatape.errors import UsageError
from deltatape.match.schedule import ReplayTempo
from deltatape.pytest_plugin.marker_options import Marked
from deltatape.pytest_plugin.replaying import environment, staged
from helpers.broken_app_tape import ASKED, RIGHT, WRONG, mistaken
from helpers.pytest_projects import OWN, hello, plugged, write_tape


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


MISTAKEN = """
def talk(tape, message):
    body = json.dumps(message)
    head = {"Content-Type": "application/json"}
    url = urlsplit(tape.url("openai"))
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=5)
    with contextlib.closing(connection):
        connection.request("POST", url.path + "/chat/completions", body, head)
        with connection.getresponse() as answer:
            answer.read()
            return answer.status
"""


def mistakes(pytester: pytest.Pytester, tests: str, *, refused: bool = False) -> pytest.RunResult:
    """Run tests against the tape of an app that went wrong."""
    write_tape(pytester.path / "bug.tape", *mistaken(refused=refused))
    known = f"ASKED, WRONG, RIGHT = {ASKED!r}, {WRONG!r}, {RIGHT!r}\n"
    return plugged(pytester, f"pytestmark = pytest.mark.tape('bug.tape')\n{known}{MISTAKEN}{tests}")


def test_a_mistake_of_the_tape_fails_while_it_is_made(pytester: pytest.Pytester) -> None:
    result = mistakes(
        pytester,
        """
def test_wrong(tape):
    talk(tape, ASKED), talk(tape, WRONG)
    assert [each.finding.code for each in tape.report.mistakes] == ["C002"]

@pytest.fixture
def asks_later(tape):
    yield

def test_wrong_beside_a_fixture(tape, asks_later):
    talk(tape, ASKED), talk(tape, WRONG)

@pytest.fixture
def fails(tape):
    talk(tape, ASKED), talk(tape, WRONG)
    raise ValueError

def test_wrong_in_a_fixture(fails):
    pass

def test_right(tape):
    assert talk(tape, ASKED) == 200
    assert talk(tape, RIGHT) == 200
    assert tape.report.whole

@pytest.mark.tape("bug.tape", ignore="C002")
def test_it_may_be_wrong(tape):
    talk(tape, ASKED), talk(tape, WRONG)

@pytest.mark.tape("bug.tape", ignore="c2")
def test_no_such_code(tape):
    pass
""",
    )
    result.assert_outcomes(passed=2, failed=2, errors=2)
    printed = result.stdout.str()
    shown = printed.partition("short test summary info")[0]  # which is longer where CI is set
    assert shown.count("the app made 1 mistake with what it was sent:") == 3
    assert "  C002 in request 2 (bug.tape#2): call 0 (get, c1) of #1 was delivered" in printed
    assert "ignore='c2'): not a code; C001 is" in printed
    assert "pytest --tape-mode" not in printed


def test_what_is_raised_behind_the_end_of_the_tape_does_not_count(
    pytester: pytest.Pytester,
) -> None:
    result = mistakes(
        pytester,
        """
def test_refused(tape):
    talk(tape, ASKED)
    assert talk(tape, RIGHT) == 200

def test_content(tape):
    talk(tape, ASKED)
    assert talk(tape, RIGHT) == 400

def test_another_miss(tape):
    talk(tape, ASKED), talk(tape, RIGHT)
    talk(tape, {"messages": []})

def test_skipped(tape):
    talk(tape, ASKED), talk(tape, RIGHT)
    pytest.skip("no")
""",
        refused=True,
    )
    result.assert_outcomes(passed=2, failed=1, skipped=1)
    printed = result.stdout.str()
    assert "passed as far as their tapes go" in printed
    assert "\nbug.tape\n" in printed


def test_the_settings_file_names_mistakes_that_may_be_made(pytester: pytest.Pytester) -> None:
    (pytester.path / "deltatape.yaml").write_text("replay:\n  ignore: c002, D\n")
    result = mistakes(
        pytester,
        """
def test_it_may_be_wrong(tape):
    talk(tape, ASKED), talk(tape, WRONG)
""",
    )
    result.assert_outcomes(passed=1)


def test_what_was_changed_is_what_it_was_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTATAPE_TEST_KEPT", "kept")
    monkeypatch.setenv("DELTATAPE_TEST_CHANGED", "before")
    monkeypatch.setenv("DELTATAPE_TEST_GONE", "there")
    monkeypatch.delenv("DELTATAPE_TEST_NEW", raising=False)
    before = dict(os.environ)
    wanted = {**before, "DELTATAPE_TEST_CHANGED": "within", "DELTATAPE_TEST_NEW": "new"}
    del wanted["DELTATAPE_TEST_GONE"]
    with environment(wanted):
        assert dict(os.environ) == wanted
        monkeypatch.setenv("DELTATAPE_TEST_KEPT", "changed by the test itself")
        monkeypatch.delenv("DELTATAPE_TEST_NEW")
    assert dict(os.environ) == {**before, "DELTATAPE_TEST_KEPT": "changed by the test itself"}


def test_an_error_undoes_it_as_well() -> None:
    before = dict(os.environ)
    with pytest.raises(ValueError, match="of the test"), environment({"PATH": os.defpath}):
        raise ValueError("of the test")
    assert dict(os.environ) == before


def test_reads_are_cut_and_faults_strike_at_the_marker_s_speed() -> None:
    stage = staged(
        Marked(reads="bytes:1", faults=("cut,at=text,times=1",), tempo=ReplayTempo(factor=2))
    )
    first, second = stage(0, hello()), stage(0, hello())
    assert first.exchange.cut
    assert not first.spent
    assert {len(read.data) for read in second.exchange.reads} == {1}
    assert second.exchange.body == hello().body
    plain = staged(Marked(tempo=ReplayTempo(factor=2)))(0, hello()).exchange
    assert [read.t_ns for read in plain.reads] == [5_000_000, 10_000_000, 15_000_000]


@pytest.mark.parametrize(
    ("marked", "says"),
    [
        (Marked(faults=("fire",)), "@pytest.mark.tape(fault='fire'): unknown fault 'fire'; "),
        (Marked(reads="some"), "@pytest.mark.tape(reads='some'): invalid; use "),
        (Marked(faults=("cut,times=1,times=2",)), "use another fault= for the second"),
    ],
)
def test_what_is_not_known_is_described_by_its_argument(marked: Marked, says: str) -> None:
    with pytest.raises(UsageError) as told:
        staged(marked)
    assert says in str(told.value)
    assert "--" not in str(told.value)
