"""What a request made of an earlier reply is told with that request, and not again later."""

import asyncio
import json

from deltatape.clock import SystemClock
from deltatape.gateway.analysis import AnalysisThread, AnalyzedExchange, PendingLines
from deltatape.gateway.tapes import OpenTape
from deltatape.model.exchange import EndReason
from deltatape.store.tape_file import LossCounter
from deltatape.store.writer import TapeWriter
from deltatape.tape.tap import ExchangeTap, TapeTap
from helpers.chat import FINISH, calls, entry, sse
from helpers.exchanges import USER, assistant, result
from helpers.tapes import HEADER, MASKER, start
from helpers.upstream import run

HI = b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
CALL = sse(calls(entry(0, "c1", name="get", arguments='{"q":1}')), FINISH)
LOST = [USER, assistant(("c1", "get", "")), result("c1")]


def lines(number: int, messages: list[dict[str, object]], answer: bytes) -> list[bytes]:
    kept = PendingLines()
    kept.begin(number)
    tap = ExchangeTap(number, kept.put, MASKER)
    body = json.dumps({"model": "m", "messages": messages}).encode()
    start(tap, body=body, t_ns=1_000 * number)
    tap.read(1_000 * number + 60, answer, (len(answer),))
    tap.end(1_000 * number + 100, EndReason.COMPLETE, detail="", recorder={})
    return kept.take(number) or []


def test_a_call_that_was_changed_is_told_once() -> None:
    writer = TapeWriter(None, HEADER, SystemClock(), 0, LossCounter(print))
    tape = OpenTape(None, writer, TapeTap(writer.put, MASKER))
    asked: tuple[list[dict[str, object]], ...] = (
        [USER],
        LOST,
        [*LOST, {"role": "assistant", "content": "hi"}, USER],
    )
    told: list[AnalyzedExchange] = []

    async def scenario() -> None:
        analyst = AnalysisThread(told.append)
        for number, messages in enumerate(asked, 1):
            analyst.submit(
                tape, number, number, lines(number, messages, CALL if number == 1 else HI + DONE)
            )
        await analyst.finish()
        await asyncio.sleep(0)

    run(scenario())
    assert [[finding.code for finding in each.findings] for each in told] == [[], ["C002"], []]
