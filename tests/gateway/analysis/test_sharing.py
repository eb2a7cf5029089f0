"""While an exchange is analysed, the loop does not wait for long."""

import asyncio
import sys
from collections.abc import Iterator

import pytest

from deltatape.clock import SystemClock
from deltatape.gateway.analysis import SWITCH_S, AnalysisThread, AnalyzedExchange
from deltatape.gateway.tapes import OpenTape
from deltatape.store.tape_file import LossCounter
from deltatape.store.writer import TapeWriter
from deltatape.tape.tap import TapeTap
from helpers.tapes import HEADER, MASKER
from helpers.upstream import run


@pytest.fixture(autouse=True)
def _interval() -> Iterator[None]:
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


def analyse_nothing() -> list[AnalyzedExchange]:
    told: list[AnalyzedExchange] = []
    writer = TapeWriter(None, HEADER, SystemClock(), 0, LossCounter(print))

    async def scenario() -> None:
        analyst = AnalysisThread(told.append)
        analyst.submit(OpenTape(None, writer, TapeTap(writer.put, MASKER)), 1, 1, None)
        await analyst.finish()
        await asyncio.sleep(0)

    run(scenario())
    return told


def test_the_interpreter_changes_threads_often_once_exchanges_are_analysed() -> None:
    sys.setswitchinterval(0.005)
    assert len(analyse_nothing()) == 1
    assert sys.getswitchinterval() == pytest.approx(SWITCH_S, abs=2e-6)


def test_an_application_that_asked_for_more_often_keeps_it() -> None:
    sys.setswitchinterval(SWITCH_S / 2)
    assert len(analyse_nothing()) == 1
    assert sys.getswitchinterval() == pytest.approx(SWITCH_S / 2, abs=2e-6)
