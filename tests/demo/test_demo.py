"""The demo's steps, run from Python."""

from pathlib import Path

import pytest

from deltatape.demo.demo import INCIDENTS, OTHERS, Demo
from deltatape.store.reader import open_tape


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTATAPE_REPLAY_SPEED", "instant")


def test_a_step_that_goes_wrong_is_a_failure_of_the_demo_which_goes_on(tmp_path: Path) -> None:
    told: list[str] = []
    demo = Demo(tmp_path, told.append)
    assert demo._record()
    (tape,) = tmp_path.glob("*.tape")
    assert len(open_tape(tape)) == 2
    tape.write_bytes(b"garbage\n")
    assert not demo._why()
    assert demo._check()
    assert [line[:5] for line in told if line.startswith("\n== ")] == ["\n== 1", "\n== 2", "\n== 4"]


def test_every_tape_of_the_demo_is_there() -> None:
    for name in ("itinerary-broken", "itinerary-fixed", *OTHERS):
        assert (INCIDENTS / f"{name}.tape").is_file()
