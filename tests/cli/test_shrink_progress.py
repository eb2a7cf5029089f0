import pytest

from deltatape.cli.shrink_progress import Progress
from deltatape.trials.shrink import Step
from helpers.failing import words


def step(what: str, events: int, runs: int) -> Step:
    return Step(what=what, exchanges=(words(of=events),), runs=runs)


def test_a_pass_that_took_something_away_is_told_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    progress = Progress()
    with Progress().shown():
        pass  # nothing came of it
    with progress.shown():
        for each in (
            Step(what="", exchanges=(), runs=1, note="looking for: exit code 1"),
            step("exchanges", 9, 2),
            step("events", 9, 3),
            step("", 5, 4),
            step("", 2, 5),
            step("fields", 2, 6),
            step("", 1, 7),
        ):
            progress.take(each)
    looking, events, fields = capsys.readouterr().err.splitlines()
    assert looking == "looking for: exit code 1"
    assert events.startswith("events: 1 exchange, 2 events, ")
    assert events.endswith(" after 6 runs")
    assert fields.startswith("fields: 1 exchange, 1 event, ")
