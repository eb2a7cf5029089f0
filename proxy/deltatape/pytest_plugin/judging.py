"""Holds a test to its tapes, around the call of its function."""

import shlex
import threading
from types import TracebackType
from typing import Self

import pytest

from deltatape.player.playing import Report
from deltatape.pytest_plugin.deck import Deck

_NO_VERDICT = (pytest.skip.Exception, pytest.exit.Exception, KeyboardInterrupt, GeneratorExit)
"""With these the test has said nothing yet."""


class Judging:
    """A context around the test's function: fails it, or lets it pass that raised as it had to."""

    def __init__(self, item: pytest.Item, deck: Deck) -> None:
        self._item = item
        self._deck = deck
        self._late = False
        self._timer = threading.Timer(deck.deadline_s, self._cut)

    def __enter__(self) -> Self:
        """Begin to count the time, where the stream is broken."""
        if self._deck.hostile:
            self._timer.daemon = True
            self._timer.start()
        return self

    def _cut(self) -> None:
        """Nothing was raised in time: end the streams, so that the test can end."""
        self._late = True
        self._deck.machine.cut()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        """Whether what was raised is what had to be raised."""
        self._timer.cancel()
        if isinstance(error, _NO_VERDICT):
            return False
        deck, item = self._deck, self._item
        report = deck.report
        if report.whole and not deck.told:
            deck.holds = error is None
            return False
        text = self._complaint(report, error)
        deck.holds = error is None and not text
        if text and error is None:
            pytest.fail(self._framed(text, report), pytrace=False)
        said = text or (f"this was raised, as it has to: {error!r}" if deck.hostile else "")
        item.add_report_section("call", "tape", self._framed(said, report))
        return deck.hostile and not text

    def _complaint(self, report: Report, error: BaseException | None) -> str:
        from deltatape.pytest_plugin.verdict import (  # noqa: PLC0415 - few tests need it
            Raised,
            Run,
            complaint,
        )

        own = isinstance(error, AssertionError | pytest.fail.Exception)
        raised = Raised.ASSERTION if own else Raised.ERROR
        return complaint(
            Run(
                report=report,
                raised=Raised.NOTHING if error is None else raised,
                broken=self._deck.broken,
                late_s=self._deck.deadline_s if self._late else None,
            )
        )

    def _framed(self, text: str, report: Report) -> str:
        """`text`, with what torture did before it, and what to do behind it."""
        lines = [self._deck.told, text, self._hint(report)]
        return "\n".join(filter(None, lines))

    def _hint(self, report: Report) -> str:
        """How the tape becomes one that the test is true to, if it is the test that is right."""
        deck = self._deck
        if deck.told or deck.mode != "replay" or not deck.recordable or not report.missed:
            return ""
        # Without parameters, of which torture may have added one.
        test = shlex.quote(self._item.nodeid.partition("[")[0])
        if report.unplayed:
            return f"if the test is right, make the tape anew: pytest --tape-mode record {test}"
        return f"if the test is right, record what is missing: pytest --tape-mode auto {test}"
