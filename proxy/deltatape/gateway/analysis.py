"""Analyses exchanges as they end, in a thread.

It parses the lines that were written to the tape, so that live findings and `deltatape check`
agree. Analysis takes milliseconds, so it runs in a thread; exchanges too large to keep in memory
are left to `deltatape check`.
"""

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from operator import attrgetter

from deltatape.conversation import (
    findings_of_silence,
    read_backs,
    turns,
    unanswered,
    whole_turn,
)
from deltatape.diagnose.check import check_analysis
from deltatape.diagnose.digest import digest_analysis
from deltatape.diagnose.parsed_record import parsed_as
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.gateway.tapes import OpenTape
from deltatape.model.digest import Digest
from deltatape.model.finding import Finding, Severity
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.model.tape_summary import TapeSummary
from deltatape.tape.assemble import assemble
from deltatape.tape.decode import decode_record
from deltatape.tape.payload import ParsedAs

MAX_KEPT_BYTES = 8 * 1024 * 1024
MAX_WAITING_BYTES = 32 * 1024 * 1024
"""How much may wait for its analysis; what comes then is left to `deltatape check`, too."""
FINISH_S = 10.0
MAX_REMEMBERED = 64
"""How many exchanges back a request may repeat and still be compared in the live line."""
SWITCH_S = 0.0002
"""How long the loop may wait for the interpreter while an exchange is analysed, each time that it
comes back from the kernel: several times per read. Python's own 5 ms would hold up every stream."""


@dataclass(frozen=True, slots=True)
class AnalyzedExchange:
    """An ended exchange. `analysis` is None if it was too large to analyse live."""

    tape: OpenTape
    number: int
    analysis: Analysis | None
    findings: tuple[Finding, ...]
    parsed: ParsedAs | None = None
    """What was read, for the tape."""

    @property
    def troubled(self) -> bool:
        """Whether it has a finding above a remark."""
        return any(each.severity is not Severity.INFO for each in self.findings)


@dataclass(frozen=True, slots=True)
class _PastExchange:
    """An analysed exchange, kept for later ones."""

    serial: int
    tape: OpenTape
    digest: Digest


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

    def __init__(
        self, on_result: Callable[[AnalyzedExchange], None], rules: Settings = DEFAULTS
    ) -> None:
        """Args: on_result: called on the loop with each result, in the order of endings."""
        self._on_result = on_result
        self._rules = rules
        self._pool = ThreadPoolExecutor(1, "deltatape-analysis", _switch_threads_often)
        self._open: set[asyncio.Future[AnalyzedExchange]] = set()
        self._waiting_bytes = 0
        self._hurry = asyncio.Event()
        # By the name that was asked for: what follows a rotation belongs to the same tape.
        self._digests: dict[str | None, deque[_PastExchange]] = {}

    def submit(self, tape: OpenTape, number: int, serial: int, lines: list[bytes] | None) -> None:
        """Analyse an exchange from its lines on `tape`; `serial` is its number in the run."""
        size = sum(map(len, lines or ()))
        if self._waiting_bytes + size > MAX_WAITING_BYTES:
            lines, size = None, 0
        self._waiting_bytes += size
        unanalysed = AnalyzedExchange(tape, number, None, ())
        try:
            future = asyncio.get_running_loop().run_in_executor(
                self._pool, self._analyse, tape, number, serial, lines
            )
        except RuntimeError:  # the system has no more threads
            self._waiting_bytes -= size
            self._on_result(unanalysed)
            return
        self._open.add(future)
        future.add_done_callback(lambda done: self._done(done, size, unanalysed))

    def _done(
        self, future: asyncio.Future[AnalyzedExchange], size: int, unanalysed: AnalyzedExchange
    ) -> None:
        self._open.discard(future)
        self._waiting_bytes -= size
        if not future.cancelled():
            # A machine without descriptors or memory fails here, too: the exchange has ended.
            self._on_result(unanalysed if future.exception() else future.result())

    async def finish(self) -> None:
        """Wait for running analyses, at most `FINISH_S`, and not after `hurry`."""
        if self._open:
            hurry = asyncio.ensure_future(self._hurry.wait())
            analyses = asyncio.gather(*self._open, return_exceptions=True)
            await asyncio.wait(
                (hurry, analyses), timeout=FINISH_S, return_when=asyncio.FIRST_COMPLETED
            )
            hurry.cancel()
            analyses.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def hurry(self) -> None:
        """Stop waiting for analyses."""
        self._hurry.set()

    def _analyse(
        self, tape: OpenTape, number: int, serial: int, lines: Iterable[bytes] | None
    ) -> AnalyzedExchange:
        """Analyse in the thread. Findings about earlier replies come first: they are causes."""
        records = [(place, decode_record(line)) for place, line in enumerate(lines or ())]
        for exchange in assemble(records, tape=tape.path, header=tape.writer.header):
            analysis = analyse(exchange, self._rules.app)
            digest = digest_analysis(analysis, self._rules)
            about_app = self._in_conversation(_PastExchange(serial, tape, digest))
            findings = (*about_app, *check_analysis(analysis, self._rules))
            parsed = parsed_as(analysis, tape.writer.header.tool)
            return AnalyzedExchange(tape, number, analysis, findings, parsed)
        return AnalyzedExchange(tape, number, None, ())

    def _in_conversation(self, latest: _PastExchange) -> Iterator[Finding]:
        """Yield what the latest request shows about the app's handling of replies and history."""
        past = self._digests.setdefault(latest.tape.name, deque(maxlen=MAX_REMEMBERED))
        past.append(latest)
        in_order = [each.digest for each in sorted(past, key=attrgetter("serial"))]
        # Silences and what was printed are left out: they are told of a tape that ends.
        for turn in turns(in_order, read_backs(in_order), settings=self._rules):
            if turn.digest is latest.digest:
                yield from whole_turn(turn, self._rules)

    def silences(self, tape: OpenTape, watch: TapeSummary) -> tuple[Finding, ...]:
        """Return unanswered replies on a tape that ends now."""
        past = sorted(self._digests.get(tape.name, ()), key=attrgetter("serial"))
        digests = [replace(k.digest, watch=watch) for k in past if k.tape is tape]
        silent = unanswered(digests, read_backs(digests))
        return tuple(f for each in silent for f in findings_of_silence(each, self._rules))


def _switch_threads_often() -> None:
    sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_S))
