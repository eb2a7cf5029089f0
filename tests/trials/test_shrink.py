from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.model.exchange import Exchange
from deltatape.shrink.body import event_count
from deltatape.trials.shrink import (
    FASTEST_FIRST,
    LEAST,
    ShrinkRequest,
    ShrinkResult,
    ShrinkStep,
    shrink_tape,
)
from deltatape.trials.shrink_trials import TrialSetup
from helpers.failing import app, setting, words

INSTANT = ShrinkRequest(speeds=FASTEST_FIRST[:1], sound=False)


def shrunk(
    folder: Path, how: TrialSetup, *exchanges: Exchange, wanted: ShrinkRequest = INSTANT
) -> tuple[ShrinkResult, list[ShrinkStep]]:
    steps: list[ShrinkStep] = []
    found = shrink_tape(exchanges, how, wanted, folder / "shrink", steps.append)
    return found, steps


def test_a_tape_shrinks_to_what_makes_the_command_fail(tmp_path: Path) -> None:
    found, steps = shrunk(tmp_path, setting(tmp_path, "once"), words(7, of=20))
    (exchange,) = found.exchanges
    assert b"~~" in exchange.body
    assert event_count([exchange]) == 1
    assert len(exchange.body) < 60
    assert found.whole
    assert found.missed is None
    assert found.speed is FASTEST_FIRST[0]
    assert found.remembered == 0
    assert found.runs <= 45
    assert not list((tmp_path / "shrink").iterdir())
    assert {step.what for step in steps} > {"events", "fields", "texts", ""}


def test_an_interrupted_search_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    how = setting(tmp_path, "once")
    first, _ = shrunk(
        tmp_path, how, words(2, of=4), wanted=ShrinkRequest(speeds=FASTEST_FIRST[:1], runs=13)
    )
    assert not first.whole
    assert first.runs == 13
    again, _ = shrunk(tmp_path, how, words(2, of=4), wanted=ShrinkRequest(speeds=FASTEST_FIRST[:1]))
    assert again.whole
    assert again.remembered == 6
    (exchange,) = again.exchanges
    assert exchange.body == b'data: {"choices":[{"index":0,"delta":{"content":"~~"}}]}\n\n'


def test_what_an_interrupted_search_found_out_can_be_forgotten(tmp_path: Path) -> None:
    how, tape = setting(tmp_path, "once"), words(2, of=4)
    for fresh, remembered in ((False, 0), (False, 2), (True, 0)):
        wanted = ShrinkRequest(speeds=FASTEST_FIRST[:1], runs=9, fresh=fresh)
        found, _ = shrunk(tmp_path, how, tape, wanted=wanted)
        assert found.remembered == remembered


def test_later_requests_follow_earlier_answers(tmp_path: Path) -> None:
    first, second = words(of=3), words(1, of=3, number=2, said=3)
    found, _ = shrunk(tmp_path, setting(tmp_path, "twice"), first, second)
    assert found.missed is None
    one, other = found.exchanges
    assert one.body == b""
    assert other.request.body == b'{"number": 2, "said": 0}'


def test_requests_that_are_never_the_same_are_reported(tmp_path: Path) -> None:
    exchanges = words(of=3), words(0, of=1, number=2, date=3)
    found, _ = shrunk(
        tmp_path,
        setting(tmp_path, "dated"),
        *exchanges,
        wanted=ShrinkRequest(speeds=FASTEST_FIRST[:1], runs=13),
    )
    assert found.missed is not None
    assert "date" in found.missed.missed[0].message


def test_the_fastest_speed_at_which_it_fails_is_taken(tmp_path: Path) -> None:
    # Wrong is what takes long: two seconds with the waits, far less without them.
    oracle = "grep -qE '\"seconds\": (0|1\\.[0-4])'"
    found, _ = shrunk(
        tmp_path,
        setting(tmp_path, "says", oracle=oracle),
        words(of=100, ms=20),
        wanted=ShrinkRequest(runs=LEAST),
    )
    assert found.speed is FASTEST_FIRST[1]


@pytest.mark.parametrize(
    ("how", "more", "problem"),
    [
        ("once", {}, "the command does not fail on this tape: exit code 0"),
        ("once", {"error": "boo"}, "the command does not print 'boo' on this tape"),
        ("once", {"oracle": "true"}, "the oracle accepts the run"),
        ("once", {"oracle": "absent"}, "--oracle 'absent' cannot be run: .*not found"),
        ("silent", {}, "no request to the player.*It ended with exit code 1"),
        ("other", {}, "the command requested nothing on the tape: not on the tape"),
    ],
)
def test_what_cannot_be_shrunk_is_reported(
    tmp_path: Path, how: str, more: dict[str, str], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        shrunk(tmp_path, setting(tmp_path, how, **more), words(of=1))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ("flaky", "another run gave no failure"),
        ("fickle", "another run gave exit code 1, TypeError: now this"),
    ],
)
def test_a_command_that_fails_now_and_then_is_refused(
    tmp_path: Path, how: str, problem: str
) -> None:
    (tmp_path / "count").write_text("x" if how == "flaky" else "")
    with pytest.raises(UsageError, match=problem):
        shrunk(tmp_path, setting(tmp_path, how), words(0, of=1))


def test_a_command_that_fails_now_and_then_only_is_found_out_by_several_runs(
    tmp_path: Path,
) -> None:
    app(tmp_path, "seldom")
    with pytest.raises(UsageError, match="not fail in the same way each time: another run gave no"):
        shrunk(tmp_path, setting(tmp_path, "seldom"), words(0, of=1))
    assert (tmp_path / "count").read_text() == "xxxx"


def test_what_it_fails_with_in_the_end_is_reported(tmp_path: Path) -> None:
    found, _ = shrunk(tmp_path, setting(tmp_path, "once"), words(1, of=3))
    assert found.failure.shown != found.last.shown
    assert found.last.shown.startswith("KeyError: ")


def test_missing_answers_are_reported_where_nothing_fails(tmp_path: Path) -> None:
    app(tmp_path, "once")
    with pytest.raises(
        UsageError, match="but it made 1 request that the tape does not have: not on the tape"
    ):
        shrunk(tmp_path, setting(tmp_path, "twice"), words(of=1))


def test_where_requests_taken_loosely_hide_the_failure_they_have_to_be_as_recorded(
    tmp_path: Path,
) -> None:
    # Matched by position, the first answer would do for the question that is not on the tape.
    unasked, asked = words(of=1, number=5), words(0, of=1)
    found, _ = shrunk(tmp_path, setting(tmp_path, "missing"), unasked, asked)
    assert [one.request.body for one in found.exchanges] == [b'{"number": 1}']
    assert found.missed is None


def test_where_the_exit_code_alone_decides_that_is_reported(tmp_path: Path) -> None:
    def notes(**more: str) -> list[str]:
        how = setting(tmp_path, "code", **more)  # type: ignore[arg-type]
        wanted = ShrinkRequest(speeds=FASTEST_FIRST[:1], runs=LEAST)
        _, steps = shrunk(tmp_path, how, words(0, of=1), wanted=wanted)
        return [step.note for step in steps if step.note]

    looked_for, note = notes()
    assert looked_for.startswith("target failure: exit code 127 (")
    assert note == (
        "note: no output line names an error, so only the exit code is compared; use --error"
        " TEXT to require a text"
    )
    assert len(notes(error="no luck")) == 1
    assert len(notes(oracle="false")) == 1
