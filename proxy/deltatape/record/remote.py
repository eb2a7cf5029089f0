"""Represents the session in a process that records for it.

Standard library only: mitmproxy's addon uses it, too.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from deltatape.gateway.routes import Refusal
from deltatape.gateway.tapes import OpenTape
from deltatape.model.tape_summary import TapeSummary
from deltatape.record.worker_messages import (
    Closing,
    Counted,
    Drained,
    Ended,
    Pinned,
    RecordingNews,
    Refused,
    Said,
    Taped,
    Taping,
)

REPORT_S = 0.02
"""How long an end may wait for others: a message for each costs more than the exchange."""


@dataclass(slots=True)
class _ReportedTape:
    key: int
    path: str | None = None
    """As the session knows it."""
    ended: list[int] = field(default_factory=list)
    """The exchanges that were not reported to the session yet."""


class RemoteSession:
    """The analysis of a recording (`gateway.recorder.Analysis`), and its observer.

    What they are told goes to the session in the other process.

    Args:
        send: sends a message, in the event loop.
        now_ns: the time, as the tapes count it.
    """

    stopping = False
    """Whether the recording ends: its tapes are asked for until then."""

    def __init__(self, send: Callable[[RecordingNews], None], now_ns: Callable[[], int]) -> None:
        self._send = send
        self._now_ns = now_ns
        self._loop = asyncio.get_running_loop()
        self._tapes: dict[OpenTape, _ReportedTape] = {}
        self._next_key = 1
        self._timer: asyncio.TimerHandle | None = None
        self._released = asyncio.Event()
        self._until_ns = 0
        """All exchanges that ended by then are reported."""
        self.counts: Callable[[], Sequence[object]] = tuple
        """Returns the `RecordingCounts` of the recording."""
        self._counted: Sequence[object] = ()

    def tape(self, key: int) -> OpenTape | None:
        """Return the tape that the session knows by this number."""
        return next((tape for tape, each in self._tapes.items() if each.key == key), None)

    def release(self) -> None:
        """End the waiting of `finish`: the tapes are analysed, or never will be."""
        self._released.set()

    def pinned(self, ticket: int) -> None:
        """Report that a `Pin` was done."""
        self.report()
        self._send(Pinned(ticket=ticket))

    @property
    def has_news(self) -> bool:
        """Whether the counts have changed since the last report."""
        return self.counts() != self._counted

    def _send_from_anywhere(self, message: RecordingNews) -> None:
        """Send from a thread that may be another one; the loop may have ended."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._send, message)

    def _reported(self, tape: OpenTape) -> _ReportedTape:
        if tape not in self._tapes:
            self._tapes[tape] = _ReportedTape(self._next_key)
            self._next_key += 1
        return self._tapes[tape]

    def report_soon(self) -> None:
        """Report within `REPORT_S`."""
        if self._timer is None:
            self._timer = self._loop.call_later(REPORT_S, self.report)

    def report(self) -> None:
        """Report what has ended, and where tapes are now."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        pending = [tape for tape in self._tapes if tape.pending]
        if pending:
            self.report_soon()
        else:
            self._until_ns = self._now_ns()
        for tape, reported in self._tapes.items():
            if tape not in pending:
                self._report_tape(tape, reported)
        self._counted = self.counts()
        self._send(Counted(counts=self._counted, until_ns=self._until_ns))

    def _report_tape(self, tape: OpenTape, reported: _ReportedTape) -> None:
        if reported.path != tape.path:
            reported.path = tape.path
            self._send(Taped(key=reported.key, path=tape.path, name=tape.name))
        if reported.ended:
            self._send(Ended(key=reported.key, numbers=reported.ended))
            reported.ended = []

    # What its recording asks of an analysis.

    def start(self) -> None:
        pass

    def ended(self, tape: OpenTape, number: int) -> None:
        self._reported(tape).ended.append(number)
        self.report_soon()

    def close(self, tape: OpenTape, watch: TapeSummary) -> None:
        reported = self._tapes.get(tape)
        if reported is not None:
            self._report_tape(tape, reported)
            if not self.stopping:
                del self._tapes[tape]
            reason = watch.stop or ""
            self._send(
                Closing(
                    key=reported.key,
                    until_ns=watch.until_ns,
                    reason=reason,
                    exit_code=watch.exit_code,
                )
            )

    async def finish(self) -> None:
        self.report()
        self._send(Drained())
        await self._released.wait()

    def hurry(self) -> None:
        self._released.set()

    # What its recording has to say.

    def refused(self, refusal: Refusal) -> None:
        self._send(Refused(status=refusal.status, code=refusal.code, message=refusal.message))
        self.report_soon()

    def alarm(self, problem: str) -> None:
        self._send_from_anywhere(Said(text=problem, how="alarm"))

    def lasting_alarm(self, problem: str) -> None:
        self._send_from_anywhere(Said(text=problem, how="lasting_alarm"))

    def taping(self, *, works: bool) -> None:
        self._send(Taping(works=works))
        if self.has_news:
            self.report_soon()

    def remark(self, text: str) -> None:
        self._send_from_anywhere(Said(text=text, how="remark"))
