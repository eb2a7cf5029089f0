"""Ended exchanges, read back from their lines off the loop."""

import asyncio
import sys
import threading
from collections.abc import Iterator

import pytest

from deltatape.clock import SystemClock
from deltatape.gateway.tapes import OpenTape
from deltatape.mitm import live_analysis
from deltatape.mitm.live_analysis import SWITCH_S, AnalysisThread, EndedExchange, PendingLines
from deltatape.model.exchange import EndReason
from deltatape.store.tape_file import LossCounter
from deltatape.store.writer import TapeWriter
from deltatape.tape.tap import ExchangeTap, TapeTap
from helpers.chat import FINISH, calls, entry, sse
from helpers.tapes import HEADER, MASKER, start
from helpers.upstream import run

HI = b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
CALL = sse(calls(entry(0, "c1", name="get", arguments='{"q":1}')), FINISH)


def lines(number: int, *reads: bytes, body: bytes = b"{}", at: int = 0) -> list[bytes]:
    """The lines of an exchange with these reads, the later the greater its number or `at`."""
    begun_ns = 1_000 * (at or number)
    kept = PendingLines()
    kept.begin(number)
    tap = ExchangeTap(number, kept.put, MASKER)
    start(tap, body=body, t_ns=begun_ns)
    for place, data in enumerate(reads):
        tap.read(begun_ns + 60 + place, data, (len(data),))
    tap.end(begun_ns + 100, EndReason.COMPLETE, detail="", recorder={})
    taken = kept.take(number)
    assert taken is not None
    return taken


def open_tape(name: str | None = None) -> OpenTape:
    """A tape that lies nowhere."""
    writer = TapeWriter(None, HEADER, SystemClock(), 0, LossCounter(print))
    return OpenTape(name, writer, TapeTap(writer.put, MASKER))


TAPE = open_tape()


def analysed(*work: tuple[int, list[bytes] | None], tape: OpenTape = TAPE) -> list[EndedExchange]:
    """What an analyst tells of these exchanges."""
    results: list[EndedExchange] = []

    async def scenario() -> None:
        thread = AnalysisThread(results.append)
        for number, kept in work:
            thread.submit(tape, number, kept)
        await thread.finish()
        await asyncio.sleep(0)  # the callbacks of the last result

    run(scenario())
    return results


def test_an_exchange_is_what_its_lines_say() -> None:
    (ended,) = analysed((1, lines(1, HI, DONE)))
    assert ended.result is not None
    assert ended.result.analysis.reply.text == "hi"
    assert ended.tape is TAPE
    assert ended.result.findings == ()


def test_its_findings_are_those_of_the_tape() -> None:
    (ended,) = analysed((1, lines(1, HI.replace(b'"stop"', b"null"))))
    assert ended.result is not None
    assert [finding.code for finding in ended.result.findings] == ["S001"]


def test_results_come_in_the_order_of_endings() -> None:
    many = [(number, lines(number, HI, DONE)) for number in range(1, 9)]
    assert [ended.number for ended in analysed(*many)] == list(range(1, 9))


@pytest.mark.parametrize("kept", [None, []])
def test_an_exchange_without_lines_is_reported_without_an_analysis(
    kept: list[bytes] | None,
) -> None:
    assert analysed((7, kept)) == [EndedExchange(TAPE, 7, None)]


def test_finishing_without_work_returns_at_once() -> None:
    assert analysed() == []


def test_work_that_is_cancelled_is_not_told() -> None:
    results: list[EndedExchange] = []
    gate = threading.Event()

    async def scenario() -> None:
        thread = AnalysisThread(results.append)
        thread._pool.submit(gate.wait, 10)
        thread.submit(TAPE, 1, [])
        for future in tuple(thread._open):
            future.cancel()
        gate.set()
        await thread.finish()

    run(scenario())
    assert results == []


def test_lines_are_kept_for_each_exchange_alone_and_only_once() -> None:
    kept = PendingLines()
    kept.begin(1)
    kept.begin(2)
    for number, line in ((1, b"a"), (2, b"b"), (1, b"c"), (3, b"unknown")):
        kept.put(number, line)
    assert kept.take(1) == [b"a", b"c"]
    assert kept.take(2) == [b"b"]
    assert kept.take(3) is None
    assert kept.take(1) is None
    kept.put(1, b"late")
    assert kept.take(1) is None


def test_no_more_is_kept_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_analysis, "MAX_KEPT_BYTES", 10)
    kept = PendingLines()
    kept.begin(1)
    kept.put(1, b"12345")
    kept.put(1, b"67890")
    kept.put(1, b"x")
    kept.put(1, b"y")
    assert kept.take(1) is None
    kept.begin(1)
    kept.put(1, b"1234567890")
    assert kept.take(1) == [b"1234567890"]


def test_an_analysis_that_fails_is_reported_as_an_exchange_without_one() -> None:
    assert analysed((3, [b"not a record\n"])) == [EndedExchange(TAPE, 3, None)]


# While an exchange is analysed, the loop does not wait for long.


@pytest.fixture(autouse=True)
def _interval() -> Iterator[None]:
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


def analyse_nothing() -> list[EndedExchange]:
    results: list[EndedExchange] = []
    writer = TapeWriter(None, HEADER, SystemClock(), 0, LossCounter(print))

    async def scenario() -> None:
        thread = AnalysisThread(results.append)
        thread.submit(OpenTape(None, writer, TapeTap(writer.put, MASKER)), 1, None)
        await thread.finish()
        await asyncio.sleep(0)

    run(scenario())
    return results


def test_the_interpreter_changes_threads_often_once_exchanges_are_analysed() -> None:
    sys.setswitchinterval(0.005)
    assert len(analyse_nothing()) == 1
    assert sys.getswitchinterval() == pytest.approx(SWITCH_S, abs=2e-6)


def test_an_application_that_asked_for_more_often_keeps_it() -> None:
    sys.setswitchinterval(SWITCH_S / 2)
    assert len(analyse_nothing()) == 1
    assert sys.getswitchinterval() == pytest.approx(SWITCH_S / 2, abs=2e-6)
