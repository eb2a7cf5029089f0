"""Exchanges are analysed as they end, in the gateway's words."""

from collections.abc import Callable
from pathlib import Path

from deltatape.clock import SystemClock
from deltatape.gateway.tapes import TapeBook
from deltatape.mitm.live_analysis import MitmAnalyzer
from deltatape.model.exchange import EndReason, Framing, Source
from deltatape.store.reader import open_tape
from deltatape.store.tape_file import WriterThread
from deltatape.store.writer import TapeWriter
from deltatape.tape.mask import Masker
from deltatape.tape.tap import ExchangeTap
from helpers.mitm import call_events
from helpers.upstream import run

STREAM = (b"Content-Type", b"text/event-stream")


def book_in(folder: Path, masker: Masker, alarm: Callable[[str], None]) -> TapeBook:
    def create(_: str | None, thread: WriterThread) -> TapeWriter:
        return TapeWriter.create(
            *(folder, "x"),
            clock=SystemClock(),
            tool="test",
            source=Source.MITM,
            alarm=alarm,
            thread=thread,
        )

    return TapeBook(create, masker)


def test_findings_are_reported_and_counted(tmp_path: Path) -> None:
    lines: list[str] = []

    async def scenario() -> MitmAnalyzer:
        masker = Masker(b"key")
        book = book_in(tmp_path, masker, lines.append)
        live = MitmAnalyzer(lines.append)
        for number, events in enumerate((call_events(), call_events()[:3]), 1):
            live.begin(number)
            tap = ExchangeTap(number, live.put, masker)
            tap.request(
                0, id="0", method="POST", target=b"/x", upstream="http://a", http="1.1", headers=()
            )
            tap.response(
                1, status=200, reason=b"", http="1.1", framing=Framing.CLOSE, headers=(STREAM,)
            )
            tap.read(2, b"".join(events), None)
            tap.end(3, EndReason.COMPLETE)
            live.ended(book.current, number, "unused")
        live.begin(3)
        live.put(3, b"x" * 9_000_000)
        live.ended(book.current, 3, "unused")
        await live.finish()
        book.stop("test", None)
        return live

    live = run(scenario())
    assert (live.with_findings, live.worst) == (1, "error")
    assert lines[0].startswith("#1 POST /x 200")
    assert lines[0].endswith("no findings")
    assert any(line.startswith("    error T003") for line in lines)
    assert lines[-1] == "#3 ended; not analysed yet: run `deltatape check`"
    written = [record for _, record in open_tape(tmp_path / "x.tape").records()]
    assert [(each.exchange, each.payload.code) for each in written] == [
        *((1, "parsed"), (2, "parsed"), (0, "stop"))
    ]
