"""Who gets what a run of the addon has to say: the deltatape that started mitmproxy, or its log.

The tapes are analysed in a process of their own. deltatape starts it, or, in a mitmproxy that the
user has started, the addon does: if all of deltatape is installed there, too. Else it reports only
that an exchange ended, and how.
"""

import importlib.machinery
import sys
from collections.abc import Callable, Mapping
from typing import Protocol

from deltatape.gateway.recorder import Analysis
from deltatape.gateway.routes import Refusal
from deltatape.gateway.tapes import OpenTape
from deltatape.live.client import LiveAnalysis
from deltatape.live.messages import ExchangeReport, SilenceReport
from deltatape.mitm.addon_log import AddonLogger
from deltatape.model.finding import Severity
from deltatape.model.recording_counts import RecordingCounts
from deltatape.model.rule_settings import DEFAULTS
from deltatape.printable import count
from deltatape.record.remote import RemoteSession
from deltatape.record.worker_messages import Said


class PinnedTapes(Protocol):
    """The part of a run that its session calls."""

    def counts(self) -> RecordingCounts: ...

    def parsed(self, tape: OpenTape, number: int, parsed: Mapping[str, object]) -> None:
        """Record what was parsed of an exchange."""

    def finding(self, tape: OpenTape | None, end_ns: int | None, then: Callable[[], None]) -> None:
        """Keep what was taped around an exchange with findings; call `then` afterwards.

        Args:
            tape: the tape that it is on; None: it is closed.
            end_ns: when it ended, as the tape counts; None: now.
            then: called when the tapes have their names.
        """


class RunSession(Protocol):
    """Gets what a run has to say; see `record.recording.RecordingObserver` for most of it."""

    @property
    def analysis(self) -> Analysis | None:
        """Reads the tapes."""

    def attach(self, run: PinnedTapes) -> None:
        """Say which run it is about."""

    def refused(self, refusal: Refusal) -> None: ...

    def alarm(self, problem: str) -> None: ...

    def lasting_alarm(self, problem: str) -> None: ...

    def taping(self, *, works: bool) -> None: ...

    def remark(self, text: str) -> None: ...

    def report_soon(self) -> None:
        """Say that the counts have changed."""

    def stopped(self) -> None:
        """Say that the tapes are closed."""


class ParentSession(RemoteSession):
    """The session in the deltatape that started this mitmproxy."""

    _run: PinnedTapes | None = None

    @property
    def analysis(self) -> Analysis:
        return self

    def attach(self, run: PinnedTapes) -> None:
        self._run = run
        self.counts = run.counts

    def parsed(self, tape: OpenTape, number: int, parsed: Mapping[str, object]) -> None:
        """Record what the analysis has parsed of an exchange."""
        if self._run is not None:
            self._run.parsed(tape, number, parsed)

    def finding(self, tape: OpenTape | None, end_ns: int | None, then: Callable[[], None]) -> None:
        """Keep what was taped around an exchange with findings; see `PinnedTapes`."""
        if self._run is not None:
            self._run.finding(tape, end_ns, then)

    def stopped(self) -> None:
        self.report()


class OwnSession:
    """The session in a mitmproxy that the user has started; see `live.client.LiveObserver`, too."""

    def __init__(self, logger: AddonLogger, *, analysed: bool) -> None:
        """Args: analysed: whether this Python has all of deltatape."""
        self._logger = logger
        self._run: PinnedTapes | None = None
        self._analysis: LiveAnalysis[OpenTape] | None = None
        if analysed:
            self._analysis = LiveAnalysis(DEFAULTS, self)

    @property
    def analysis(self) -> Analysis | None:
        return self._analysis

    def attach(self, run: PinnedTapes) -> None:
        self._run = run

    def analysed(self, tape: OpenTape, number: int, report: ExchangeReport | None) -> None:
        if report is None:
            self.remark(
                f"{tape.name or ''}#{number} ended; not analysed yet: run `deltatape check`"
            )
            return
        if self._run is not None and report.parsed is not None:
            self._run.parsed(tape, number, report.parsed)
        self._found(tape, report)

    def silent(self, tape: OpenTape, report: SilenceReport) -> None:
        self._found(tape, report)

    def _found(self, tape: OpenTape, report: ExchangeReport) -> None:
        for line in report.lines:
            self.remark(line)
        if self._run is not None and report.severities - {Severity.INFO}:
            self._run.finding(tape, report.end_ns, lambda: None)

    def analysis_failed(self, problem: str) -> None:
        self.remark(problem)

    def refused(self, refusal: Refusal) -> None:
        raise AssertionError(refusal)  # mitmproxy decides what it answers

    def alarm(self, problem: str) -> None:
        self._logger.send(Said(text=problem, how="alarm"))

    def lasting_alarm(self, problem: str) -> None:
        self.alarm(problem)

    def taping(self, *, works: bool) -> None:
        pass

    def remark(self, text: str) -> None:
        self._logger.send(Said(text=text, how="remark"))

    def report_soon(self) -> None:
        pass

    def stopped(self) -> None:
        counts = self._run.counts() if self._run is not None else RecordingCounts()
        lost = counts.lost_records
        self.remark(
            f"deltatape taped {count(counts.exchanges, 'exchange')}"
            + (f"; NOT ON THE TAPE: {count(lost, 'record')}" if lost else "")
        )


def can_analyse() -> bool:
    """Check whether this Python can run all of deltatape, not only what the addon needs."""
    if getattr(sys, "frozen", False):  # a program of its own, not an interpreter
        return False
    find = importlib.machinery.PathFinder.find_spec
    return all(find(name) is not None for name in ("deltatape", "httptools", "rich"))
