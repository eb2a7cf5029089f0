"""Processes of the page give way while they compute, and only then."""

import os
import signal

import pytest

from deltatape.inspector.yielding import yielding

OFTEN = 3


def test_the_processor_is_offered_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = 0
    offer = os.sched_yield

    def counted() -> None:
        nonlocal offered
        offered += 1
        offer()

    monkeypatch.setattr(os, "sched_yield", counted)
    with yielding():
        while offered < OFTEN:  # would never end
            sum(range(100))


def test_an_offer_that_takes_long_is_not_interrupted_by_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running, ended = 0, 0

    def long_offer() -> None:
        nonlocal running, ended
        running += 1
        assert running == 1
        sum(range(100_000))  # longer than the time until the next one would come
        running -= 1
        ended += 1

    monkeypatch.setattr(os, "sched_yield", long_offer)
    with yielding():
        while ended < OFTEN:
            sum(range(100))


def test_nothing_interrupts_what_comes_afterwards() -> None:
    with pytest.raises(ValueError, match="of its own"), yielding():
        raise ValueError("an error of its own")
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
