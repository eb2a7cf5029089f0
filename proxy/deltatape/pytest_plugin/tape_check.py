"""Checks a test against its tapes, from fixture set-up to tear-down.

Strategy: each problem is reported once, as soon as it is certain. A request that is not on the tape
is reported at the end of the phase (set-up, call, tear-down) in which it was made; an exchange that
was never requested after the test function, or after tear-down if a fixture may still request it.
"""

import inspect
import shlex
import threading
from traceback import walk_tb
from types import TracebackType
from typing import Self

import pytest

from deltatape.player.play_options import PlayReport
from deltatape.pytest_plugin.fixture import TapeFixture

_NO_VERDICT = (pytest.skip.Exception, pytest.exit.Exception, KeyboardInterrupt, GeneratorExit)
"""Outcomes without a verdict: the test was skipped or interrupted."""
_REWRITTEN = "@pytest_ar"
"""A global that pytest adds to modules whose assertions it rewrites: tests and conftests."""
_ASSERTING = frozenset({"unittest", "_pytest"})
"""Packages whose functions raise AssertionErrors on behalf of their caller."""
_SILENT = "_pytest."
_CALLING = frozenset({"_pytest.python", "_pytest.unittest"})
"""The only modules of pytest whose fixtures run user code: set-up methods of test classes."""


class JudgedTest:
    """Wraps the test function: fails it, or accepts the error that a fault had to cause."""

    def __init__(self, item: pytest.Item, fixture: TapeFixture) -> None:
        self._item = item
        self._fixture = fixture
        self._late = False
        self._timer = threading.Timer(fixture.deadline_s, self._cut)

    def __enter__(self) -> Self:
        """Start the clock if the stream is broken."""
        if self._fixture.hostile:
            self._timer.daemon = True
            self._timer.start()
        return self

    def _cut(self) -> None:
        """End the streams if nothing was raised in time."""
        self._late = True
        self._fixture.machine.cut()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        """Check whether the test raised what it had to raise."""
        self._timer.cancel()
        if isinstance(error, _NO_VERDICT):
            return False
        fixture, item = self._fixture, self._item
        report = fixture.report
        complete = report.whole and not (fixture.change or fixture.unused_faults() or report.ended)
        undecided = fixture.asks_later and not (
            fixture.hostile or report.missed or _has_lasting_mistake(report)
        )
        if complete or (error is None and undecided):
            fixture.holds = error is None
            return False
        late_s = fixture.deadline_s if self._late else None
        text = _complaint(item, fixture, report, error=error, late_s=late_s)
        if report.ended and not text and not fixture.hostile:
            return self._ended(error, report)
        fixture.holds = error is None and not text
        if text and error is None:
            fixture.failure = _framed(item, fixture, text, report)
            pytest.fail(fixture.failure, pytrace=False)
        shown = text or (f"this was raised, as it has to: {error!r}" if fixture.hostile else "")
        framed = _framed(item, fixture, shown, report)
        if framed:
            item.add_report_section("call", "tape", framed)
        return fixture.hostile and not text

    def _ended(self, error: BaseException | None, report: PlayReport) -> bool:
        """Check whether the error came after the end of the tape, so that it proves nothing.

        The player ended the run with an error that no provider would send.
        """
        fixture = self._fixture
        fixture.holds, fixture.ended = True, fixture.path
        raised = () if error is None else (f"what was raised then does not count: {error!r}",)
        text = "\n".join((*(one.message for one in report.ended), *raised))
        self._item.add_report_section("call", "tape", text)
        return True


def asks_later(fixture: pytest.FixtureDef[object]) -> bool:
    """Check whether a fixture of function scope may send requests after the test."""
    function = inspect.unwrap(fixture.func)
    module = str(function.__module__)
    if module.startswith(_SILENT) and module not in _CALLING:
        return False
    yields = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    return yields or "request" in fixture.argnames  # by request.addfinalizer


def report_setup(item: pytest.Item, fixture: TapeFixture) -> None:
    """Add missed requests to the report of a failed set-up."""
    report = fixture.report
    if report.missed or _has_lasting_mistake(report):
        text = _complaint(item, fixture, report, error=None, late_s=None)
        item.add_report_section("setup", "tape", _framed(item, fixture, text, report))


def check_after_teardown(item: pytest.Item, fixture: TapeFixture) -> str:
    """Return the problem that shows only after the tear-down of a passed test; "" for none."""
    report = fixture.report
    if not fixture.holds or (report.whole and not fixture.unused_faults()):
        return ""
    text = _complaint(item, fixture, report, error=None, late_s=None)
    fixture.holds = not text
    return text and _framed(item, fixture, text, report)


def _has_lasting_mistake(report: PlayReport) -> bool:
    """Check whether the app made a mistake that no later request can correct."""
    return any(not mistake.silent for mistake in report.failures)


def _complaint(
    item: pytest.Item,
    fixture: TapeFixture,
    report: PlayReport,
    *,
    error: BaseException | None,
    late_s: float | None,
) -> str:
    from deltatape.pytest_plugin.verdict import (  # noqa: PLC0415 - few tests need it
        FinishedTest,
        RaisedException,
        complaint,
    )

    raised = RaisedException.NOTHING
    if error is not None:
        raised = RaisedException.ASSERTION if _is_of_test(item, error) else RaisedException.ERROR
    return complaint(
        FinishedTest(
            report=report,
            forwarded=fixture.forwarded(),
            unused_faults=fixture.unused_faults(),
            raised=raised,
            broken=fixture.broken,
            late_s=late_s,
        )
    )


def _is_of_test(item: pytest.Item, error: BaseException) -> bool:
    """Check whether the test failed, and not the application with its provider."""
    if isinstance(error, pytest.fail.Exception):
        return True
    if not isinstance(error, AssertionError):
        return False
    frames = (frame for frame, _ in walk_tb(error.__traceback__))
    packages = ((frame, str(frame.f_globals.get("__name__")).partition(".")[0]) for frame in frames)
    where = [frame for frame, package in packages if package not in _ASSERTING][-1:]
    return any(
        _REWRITTEN in frame.f_globals or frame.f_code.co_filename == str(item.path)
        for frame in where
    )


def _framed(item: pytest.Item, fixture: TapeFixture, text: str, report: PlayReport) -> str:
    """Return `text` with torture's variation and what to do."""
    return "\n".join(filter(None, (fixture.change, text, _hint(item, fixture, report))))


def _hint(item: pytest.Item, fixture: TapeFixture, report: PlayReport) -> str:
    """Suggest how to update the tape, if the test is right."""
    asked_other = (
        report.missed if fixture.mode == "replay" else report.unplayed and fixture.forwarded()
    )
    if fixture.change or not fixture.recordable or not asked_other or report.failures:
        return ""
    # Without parameters, of which torture may have added one.
    test = shlex.quote(item.nodeid.partition("[")[0])
    if report.unplayed:
        return f"if the test is right, make the tape anew: pytest --tape-mode record {test}"
    return f"if the test is right, record what is missing: pytest --tape-mode auto {test}"
