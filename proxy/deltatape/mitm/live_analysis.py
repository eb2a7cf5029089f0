"""Analyse exchanges as they end, as the gateway does. Imports all of deltatape."""

from collections.abc import Callable

from deltatape.gateway.analysis import AnalysisThread, AnalyzedExchange, PendingLines
from deltatape.gateway.tapes import OpenTape
from deltatape.model.finding import Severity
from deltatape.render.summary import live_lines
from deltatape.tape.encode import payload_record


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
        self._analysis.submit(tape, number, number, self._kept.take(number))

    async def finish(self) -> None:
        await self._analysis.finish()
        self._finished = True

    def _analysed(self, ended: AnalyzedExchange) -> None:
        if ended.parsed is not None and not self._finished:
            writer = ended.tape.writer
            writer.put(ended.number, payload_record(writer.now_ns(), ended.number, ended.parsed))
        self._found += ended.troubled
        self.with_findings = self._found
        self._severities.update(finding.severity for finding in ended.findings)
        if self._severities:
            self.worst = min(self._severities, key=lambda severity: severity.rank)
        if ended.analysis is None:
            self._on_line(f"#{ended.number} ended; not analysed yet: run `deltatape check`")
        else:
            for line in live_lines(ended.analysis, ended.findings, ended.tape.name or ""):
                self._on_line(line)
