"""Analyse exchanges as they end, in a thread of mitmproxy. Imports all of deltatape.

It parses the lines that were written to the tape, so that live findings and `deltatape check`
agree. Exchanges too large to keep in memory are left to `deltatape check`.
"""

import asyncio
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from deltatape.diagnose.parsed_record import parsed_as
from deltatape.gateway.tapes import OpenTape
from deltatape.live.analyzer import LiveAnalyzer, LiveResult
from deltatape.model.finding import Severity
from deltatape.render.summary import live_lines
from deltatape.tape.assemble import assemble
from deltatape.tape.decode import decode_record
from deltatape.tape.encode import payload_record

MAX_KEPT_BYTES = 8 * 1024 * 1024
MAX_WAITING_BYTES = 32 * 1024 * 1024
"""How much may wait for its analysis; later exchanges are left to `deltatape check`."""
FINISH_S = 10.0
SWITCH_S = 0.0002
"""How long the event loop may wait for the interpreter lock while an exchange is analysed, several
times per read. Python's default of 5 ms would delay every stream."""


@dataclass(frozen=True, slots=True)
class EndedExchange:
    """An exchange that has ended; `result` is None if it was not analysed."""

    tape: OpenTape
    number: int
    result: LiveResult | None


class PendingLines:
    """The lines of exchanges in progress, up to a size."""

    def __init__(self) -> None:
        self._lines: dict[int, list[bytes]] = {}
        self._left: dict[int, int] = {}

    def begin(self, serial: int) -> None:
        """Start collecting lines for the exchange with this number in the run."""
        self._lines[serial] = []
        self._left[serial] = MAX_KEPT_BYTES

    def put(self, serial: int, line: bytes) -> None:
        lines = self._lines.get(serial)
        if lines is None:
            return
        self._left[serial] -= len(line)
        if self._left[serial] < 0:
            self._lines.pop(serial)
        else:
            lines.append(line)

    def take(self, serial: int) -> list[bytes] | None:
        """Return and drop the lines of an exchange; None if there were too many."""
        self._left.pop(serial, None)
        return self._lines.pop(serial, None)


class AnalysisThread:
    """Analyses ended exchanges one by one, off the event loop."""

    def __init__(self, on_result: Callable[[EndedExchange], None]) -> None:
        """Args: on_result: called on the loop with each result, in the order of endings."""
        self._on_result = on_result
        self._analyzer = LiveAnalyzer()
        self._pool = ThreadPoolExecutor(1, "deltatape-analysis", _switch_threads_often)
        self._open: set[asyncio.Future[EndedExchange]] = set()
        self._waiting_bytes = 0

    def submit(self, tape: OpenTape, number: int, lines: list[bytes] | None) -> None:
        """Analyse an exchange from its lines on `tape`."""
        size = sum(map(len, lines or ()))
        if self._waiting_bytes + size > MAX_WAITING_BYTES:
            lines, size = None, 0
        self._waiting_bytes += size
        unanalysed = EndedExchange(tape, number, None)
        try:
            future = asyncio.get_running_loop().run_in_executor(
                self._pool, self._analyse, tape, number, lines or ()
            )
        except RuntimeError:  # the system cannot start another thread
            self._waiting_bytes -= size
            self._on_result(unanalysed)
            return
        self._open.add(future)
        future.add_done_callback(lambda done: self._done(done, size, unanalysed))

    def _done(
        self, future: asyncio.Future[EndedExchange], size: int, unanalysed: EndedExchange
    ) -> None:
        self._open.discard(future)
        self._waiting_bytes -= size
        if not future.cancelled():
            # A machine without descriptors or memory fails here, too: the exchange has ended.
            self._on_result(unanalysed if future.exception() else future.result())

    async def finish(self) -> None:
        """Wait for running analyses, at most `FINISH_S`."""
        if self._open:
            await asyncio.wait(tuple(self._open), timeout=FINISH_S)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _analyse(self, tape: OpenTape, number: int, lines: Sequence[bytes]) -> EndedExchange:
        """Analyse in the thread."""
        records = [(place, decode_record(line)) for place, line in enumerate(lines)]
        for exchange in assemble(records, tape=tape.path, header=tape.writer.header):
            return EndedExchange(tape, number, self._analyzer.analyse(tape.name, exchange))
        return EndedExchange(tape, number, None)


def _switch_threads_often() -> None:
    sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_S))


class MitmAnalyzer:
    """Analyses exchanges in a thread; see `addon_log.LiveObserver`."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self.with_findings: int | None = 0
        self.worst: str | None = None
        self._found = 0
        self._severities: set[Severity] = set()
        self._on_line = on_line
        self._finished = False
        self._kept = PendingLines()
        self._analysis = AnalysisThread(self._analysed)

    def put(self, number: int, line: bytes) -> None:
        self._kept.put(number, line)

    def begin(self, number: int) -> None:
        self._kept.begin(number)

    def ended(self, tape: OpenTape, number: int, line: str) -> None:
        del line
        self._analysis.submit(tape, number, self._kept.take(number))

    async def finish(self) -> None:
        await self._analysis.finish()
        self._finished = True

    def _analysed(self, ended: EndedExchange) -> None:
        result, writer = ended.result, ended.tape.writer
        if result is None:
            self._on_line(f"#{ended.number} ended; not analysed yet: run `deltatape check`")
            return
        if not self._finished:
            parsed = parsed_as(result.analysis, writer.header.tool)
            writer.put(ended.number, payload_record(writer.now_ns(), ended.number, parsed))
        severities = {finding.severity for finding in result.findings}
        self._found += bool(severities - {Severity.INFO})
        self.with_findings = self._found
        self._severities |= severities
        if self._severities:
            self.worst = min(self._severities, key=lambda severity: severity.rank)
        for line in live_lines(result.analysis, result.findings, ended.tape.name or ""):
            self._on_line(line)
