"""Signals end a shell in good order; a second one hurries it."""

import asyncio
import os
import signal

import pytest

from deltatape.child.signals import Signals
from helpers.upstream import eventually, run


@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGINT, "sigint"), (signal.SIGTERM, "sigterm")]
)
def test_the_first_signal_is_told_by_name(number: signal.Signals, name: str) -> None:
    async def scenario() -> None:
        hurried: list[str] = []
        signals = Signals(lambda: hurried.append("now"))
        waiting = asyncio.ensure_future(signals.wait())
        await asyncio.sleep(0)
        os.kill(os.getpid(), number)
        assert await waiting == name
        assert hurried == []

    run(scenario())


def test_each_further_signal_hurries() -> None:
    async def scenario() -> None:
        hurried: list[str] = []
        signals = Signals(lambda: hurried.append("now"))
        os.kill(os.getpid(), signal.SIGTERM)
        assert await signals.wait() == "sigterm"
        for count, number in enumerate((signal.SIGINT, signal.SIGTERM), start=1):
            os.kill(os.getpid(), number)
            await eventually(lambda count=count: len(hurried) == count, "a hurry")  # type: ignore[misc]
        assert await signals.wait() == "sigterm"

    run(scenario())
