"""Tests that ask a provider, and the tapes that are kept of them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.player.play_options import PlayOptions
from deltatape.pytest_plugin.recording import refuse_secrets
from deltatape.replay.playback import Playback
from deltatape.store.reader import open_tape
from helpers.pytest_projects import OWN, hello, plugged, write_tape

OWN_PATH = Path(OWN)
ASKS = """
@pytest.mark.tape
def test_it():
    assert ask("Hi") == "Hello there"
"""
ASKS_TWICE = """
@pytest.mark.tape
def test_it():
    assert ask("Hi") == "Hello there"
    assert ask("Bye") == "See you"
"""


@pytest.fixture(autouse=True)
def _private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-fake-000000")


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Playback]:
    """A provider that answers each of two questions as often as it is asked."""
    answers = hello(), hello("Bye", number=2, text="See you")
    with Playback(answers, PlayOptions(repeat=True)) as playback:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{playback.url}/v1")
        yield playback


def left(pytester: pytest.Pytester) -> list[Path]:
    """The recordings that were not kept."""
    return sorted((pytester.path / ".deltatape").rglob("*.tape"))


def test_a_recorded_tape_plays_without_the_provider(
    pytester: pytest.Pytester, provider: Playback
) -> None:
    result = plugged(pytester, ASKS_TWICE, "--tape-mode", "record")
    result.assert_outcomes(passed=1)
    told = result.stdout.str()
    assert "tape mode record: the provider may be asked" in told
    assert "tapes recorded, to be committed" in told
    assert OWN in result.outlines
    assert len(provider.report.played) == 2
    assert left(pytester) == []
    tape = open_tape(pytester.path / OWN)
    assert [exchange.request.path for exchange in tape] == ["/v1/chat/completions"] * 2
    assert b"sk-fake-000000" not in (pytester.path / OWN).read_bytes()
    assert (pytester.path / OWN).stat().st_mode & 0o777 == 0o644

    plugged(pytester, ASKS_TWICE).assert_outcomes(passed=1)
    assert len(provider.report.played) == 2


def test_recording_anew_takes_the_place_of_what_was_there(
    pytester: pytest.Pytester, provider: Playback
) -> None:
    write_tape(pytester.path / OWN, hello(text="Good evening"))
    tests = """
@pytest.mark.tape("recordings/test_app/test_it.tape")
def test_named():
    assert ask("Hi") == "Hello there"

def test_nothing():
    pass
"""
    plugged(pytester, tests, "--tape-mode", "record").assert_outcomes(passed=2)
    (exchange,) = open_tape(pytester.path / OWN)
    assert b"Good" not in exchange.body
    assert len(provider.report.played) == 1


def test_auto_asks_for_what_is_missing_alone(pytester: pytest.Pytester, provider: Playback) -> None:
    write_tape(pytester.path / OWN, hello())
    plugged(pytester, ASKS_TWICE, "--tape-mode", "auto").assert_outcomes(passed=1)
    (asked,) = provider.report.played
    assert asked.exchange.number == 2
    assert len(open_tape(pytester.path / OWN)) == 2
    unchanged = (pytester.path / OWN).read_bytes()

    plugged(pytester, ASKS_TWICE, "--tape-mode", "auto").assert_outcomes(passed=1)
    assert (pytester.path / OWN).read_bytes() == unchanged
    assert left(pytester) == []


def test_auto_records_where_there_is_not_a_tape_and_leaves_nothing_unplayed(
    pytester: pytest.Pytester, provider: Playback
) -> None:
    plugged(pytester, ASKS, "--tape-mode", "auto").assert_outcomes(passed=1)
    assert len(provider.report.played) == 1
    write_tape(pytester.path / OWN, hello(), hello("Good evening", number=2))
    result = plugged(pytester, ASKS, "--tape-mode", "auto")
    result.assert_outcomes(failed=1)
    told = result.stdout.str()
    assert "1 exchange was not asked for" in told
    assert "no request came" not in told


def test_auto_tells_that_another_request_went_to_the_provider(
    pytester: pytest.Pytester, provider: Playback
) -> None:
    write_tape(pytester.path / OWN, hello("Good evening"))
    result = plugged(pytester, ASKS, "--tape-mode", "auto")
    result.assert_outcomes(failed=1)
    told = result.stdout.str()
    assert "1 request went to the provider, not being on the tape" in told
    assert "no request came" not in told
    assert "make the tape anew: pytest --tape-mode record test_app.py::test_it" in told
    assert len(provider.report.played) == 1


@pytest.mark.parametrize("mode", ["record", "auto"])
def test_what_a_fixture_asks_for_when_the_test_is_over_is_recorded_and_plays(
    pytester: pytest.Pytester, provider: Playback, mode: str
) -> None:
    tests = """
@pytest.fixture
def later():
    yield
    ask("Bye")

@pytest.mark.tape
def test_it(later):
    ask("Hi")
"""
    plugged(pytester, tests, "--tape-mode", mode).assert_outcomes(passed=1)
    assert len(open_tape(pytester.path / OWN)) == len(provider.report.played) == 2
    plugged(pytester, tests, "--tape-mode", "auto").assert_outcomes(passed=1)
    plugged(pytester, tests).assert_outcomes(passed=1)
    assert len(provider.report.played) == 2


def test_a_tape_that_is_a_link_stays_one(pytester: pytest.Pytester, provider: Playback) -> None:
    there = write_tape(pytester.path / "elsewhere/there.tape", hello(text="Good evening"))
    link = pytester.path / OWN
    link.parent.mkdir(parents=True)
    link.symlink_to(there)
    plugged(pytester, ASKS, "--tape-mode", "record").assert_outcomes(passed=1)
    assert link.is_symlink()
    (exchange,) = open_tape(there)
    assert b"Good" not in exchange.body
    assert len(provider.report.played) == 1


def test_the_tape_of_a_test_that_failed_is_not_kept_but_to_be_looked_at(
    pytester: pytest.Pytester, provider: Playback
) -> None:
    before = write_tape(pytester.path / OWN, hello(text="Good evening")).read_bytes()
    result = plugged(
        pytester,
        """
@pytest.mark.tape
def test_it():
    assert ask("Hi") == "Good morning"
""",
        "--tape-mode",
        "record",
    )
    result.assert_outcomes(failed=1)
    assert (pytester.path / OWN).read_bytes() == before
    (attempt,) = left(pytester)
    assert f"deltatape why {attempt.relative_to(pytester.path)}" in result.stdout.str()
    assert len(open_tape(attempt)) == 1
    assert len(provider.report.played) == 1


def test_the_tape_of_a_test_case_that_failed_is_not_kept(
    pytester: pytest.Pytester, provider: Playback
) -> None:
    result = plugged(
        pytester,
        """
import unittest

@pytest.mark.tape
class TestOld(unittest.TestCase):
    def test_it(self):
        ask("Hi")
        self.fail("not content")
""",
        "--tape-mode",
        "record",
    )
    result.assert_outcomes(failed=1)
    assert not (pytester.path / "recordings").exists()
    assert len(left(pytester)) == len(provider.report.played) == 1


def test_a_recording_that_lacks_a_request_is_to_be_looked_at(
    pytester: pytest.Pytester, provider: Playback
) -> None:
    result = plugged(
        pytester,
        """
@pytest.mark.tape(upstream="gone=http://127.0.0.1:9")
def test_it(tape):
    assert ask("Hi") == "Hello there"
    with contextlib.suppress(StreamError):
        ask("Hi", base=tape.url("gone"))
""",
        "--tape-mode",
        "record",
    )
    result.assert_outcomes(passed=1, errors=1)
    (attempt,) = left(pytester)
    told = result.stdout.str()
    assert "test_it.tape: not made: /chat/completions: " in told
    assert f"deltatape why {attempt.relative_to(pytester.path)}" in told
    assert len(provider.report.played) == 1


def test_a_test_that_asks_for_nothing_makes_no_tape(pytester: pytest.Pytester) -> None:
    result = plugged(
        pytester,
        """
@pytest.mark.tape
def test_it():
    pass
""",
        "--tape-mode",
        "record",
    )
    result.assert_outcomes(passed=1, errors=1)
    assert "test_it.tape: not made: no request came" in result.stdout.str()
    assert not (pytester.path / OWN).exists()
    assert left(pytester) == []


def test_what_would_make_a_bad_tape_makes_none(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Playback((hello(),), PlayOptions()) as gone:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{gone.url}/v1")
    result = plugged(
        pytester,
        """
@pytest.mark.tape
def test_it():
    with contextlib.suppress(StreamError):
        ask("Hi")
""",
        "--tape-mode",
        "record",
    )
    result.assert_outcomes(passed=1, errors=1)
    assert "test_it.tape: not made: /v1/chat/completions: " in result.stdout.str()
    assert not (pytester.path / OWN).exists()
    assert left(pytester) == []


def test_a_folder_that_cannot_be_written_to_is_reported(pytester: pytest.Pytester) -> None:
    (pytester.path / ".deltatape").write_text("a file")
    result = plugged(pytester, ASKS, "--tape-mode", "record")
    result.assert_outcomes(errors=1)
    assert ".deltatape: File exists; recordings are made there" in result.stdout.str()


def test_a_place_that_cannot_be_written_to_leaves_the_recording(
    pytester: pytest.Pytester, provider: Playback
) -> None:
    (pytester.path / "recordings").write_text("a file")
    result = plugged(pytester, ASKS, "--tape-mode", "record")
    result.assert_outcomes(passed=1, errors=1)
    (attempt,) = left(pytester)
    assert f"what was recorded is in {attempt.relative_to(pytester.path)}" in result.stdout.str()
    assert len(provider.report.played) == 1


def test_a_tape_that_somebody_else_has_changed_meanwhile_is_left_alone(
    pytester: pytest.Pytester, provider: Playback
) -> None:
    other = write_tape(pytester.path / OWN, hello(text="Good evening"))
    result = plugged(
        pytester,
        """
@pytest.mark.tape
def test_it(tape):
    ask("Hi")
    tape.path.touch()
""",
        "--tape-mode",
        "record",
    )
    result.assert_outcomes(passed=1, errors=1)
    assert "test_it.tape: was changed by somebody else meanwhile; what was recorded is in" in (
        result.stdout.str()
    )
    assert b"Good" in next(iter(open_tape(other))).body
    assert len(provider.report.played) == 1


def test_what_looks_like_a_secret_is_redacted_and_plays_all_the_same(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "ghp_" + "fake0" * 7 + "0"
    tests = f"""
@pytest.mark.tape
def test_it():
    assert ask("What is {secret}?") == "Hello there"
"""
    with Playback((hello(f"What is {secret}?"),), PlayOptions()) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
        plugged(pytester, tests, "--tape-mode", "record").assert_outcomes(passed=1)
    assert secret.encode() not in (pytester.path / OWN).read_bytes()
    plugged(pytester, tests).assert_outcomes(passed=1)


def test_a_tape_with_a_secret_is_not_to_be_committed(tmp_path: Path) -> None:
    path = write_tape(tmp_path / "x.tape", hello())
    refuse_secrets(path, OWN_PATH)
    path.write_bytes(path.read_bytes().replace(b"Hello ", b"ghp_" + b"fake0" * 7 + b"0"))
    with pytest.raises(UsageError) as told:
        refuse_secrets(path, OWN_PATH)
    assert "test_it.tape: not made; after redaction there is still a secret on it" in (
        str(told.value)
    )


def test_a_key_for_hashes_that_cannot_be_had_hinders_nobody(
    pytester: pytest.Pytester, provider: Playback, tmp_path: Path
) -> None:
    (tmp_path / "state").write_text("a file")
    plugged(pytester, ASKS, "--tape-mode", "record").assert_outcomes(passed=1)
    assert len(provider.report.played) == 1
