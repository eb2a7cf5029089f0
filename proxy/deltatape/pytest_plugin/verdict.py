"""Decides whether a test passes, from what its tapes report.

Without torture, and under a harmless variation, a test passes if its own assertions hold, no
request was missed, no exchange is left over, and the application made no mistake with its replies.
Under a hostile variation the stream is broken, and the application has to raise an error before the
deadline; a test that passes then has taken half an answer for a complete one. An `AssertionError`
does not count: it shows a wrong result that the application did not report.
"""

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deltatape.match.endpoint import shown
from deltatape.model.exchange import Exchange
from deltatape.player.play_options import MissedRequest, PlayReport, UnusedFault
from deltatape.printable import count, excerpt
from deltatape.replay.report import difference_lines, mistake_text, name_of

_SHOWN = 80
_LISTED = 5


class RaisedException(enum.Enum):
    """The exception that a test raised."""

    NOTHING = enum.auto()
    ASSERTION = enum.auto()
    """The test itself was not content."""
    ERROR = enum.auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedTest:
    """The state of a finished test.

    Attributes:
        report: the player's.
        forwarded: how many of them went to the provider.
        unused_faults: requested faults that changed nothing.
        raised: the exception that the test raised, if any.
        broken: the exchange whose stream was broken, so that the test must raise; None: none.
        late_s: seconds after which everything was cut because nothing was raised; None: raised in
            time.
    """

    report: PlayReport
    forwarded: int = 0
    unused_faults: Sequence[UnusedFault] = ()
    raised: RaisedException = RaisedException.NOTHING
    broken: Exchange | None = None
    late_s: float | None = None


def complaint(run: FinishedTest) -> str:
    """Return why a test fails besides its own error; "" if it passes.

    For a broken stream, "" means that what the test raised is what it had to raise.
    """
    if run.broken is None:
        # A fault that was not applied has tested nothing.
        unused = (f"fault={one.fault!r} changed nothing: {one.why}" for one in run.unused_faults)
        return "\n".join((*_untrue_to_tape(run), *unused))
    if all(one.exchange is not run.broken for one in run.report.played):
        return f"{name_of(run.broken)} was not asked for"
    if run.report.missed:
        return "\n".join(
            ("continued as if the response were complete:", *_misses(run.report.missed))
        )
    if run.late_s is not None:
        return f"there was no error within {run.late_s:g} s"
    if run.raised is RaisedException.NOTHING:
        return "nothing raised an error: half an answer was accepted as a complete one"
    if run.raised is RaisedException.ASSERTION:
        return "only the test's own assertion failed: without it, nobody would have seen the error"
    return ""


def _untrue_to_tape(run: FinishedTest) -> Iterator[str]:
    report = run.report
    if report.failures:
        mistakes = report.failures
        yield f"the app made {count(len(mistakes), 'mistake')} with what it was sent:"
        yield from (f"  {mistake_text(mistake)}" for mistake in mistakes[:_LISTED])
        yield from _omitted_lines(len(mistakes))
    if report.missed:
        yield from _misses(report.missed)
    if report.unplayed:
        unplayed = report.unplayed
        verb = "was" if len(unplayed) == 1 else "were"
        yield f"{count(len(unplayed), 'exchange')} {verb} not asked for:"
        for one in unplayed[:_LISTED]:
            yield f"  {name_of(one)} {one.request.method} {excerpt(one.request.path, _SHOWN)}"
        yield from _omitted_lines(len(unplayed))
        if run.forwarded:
            yield f"{count(run.forwarded, 'request')} went to the provider, not being on the tape"
        elif not report.played and not report.missed:
            yield (
                "no request came at all: the base URL is read from the environment, or taken from"
                " the fixture, tape.url(...); a client that is made when a module is imported has"
                " read its own before"
            )


def _misses(missed: Sequence[MissedRequest]) -> Iterator[str]:
    verb = "is" if len(missed) == 1 else "are"
    yield f"{count(len(missed), 'request')} {verb} not on the tape:"
    for one in missed[:_LISTED]:
        target = excerpt(shown(one.query.target), _SHOWN)
        # The name of a `replay` option means the marker's argument.
        problem = one.miss.problem.replace("--repeat ", "repeat=True in the marker ")
        yield f"  {one.query.method} {target}: {problem}"
        if one.nearest is not None:
            yield f"    nearest: {name_of(one.nearest)}"
        for line in difference_lines(one.miss):
            yield f"    {line}"
        if one.miss.suggested:
            yield f"    to accept that, in the marker: volatile={list(one.miss.suggested)!r}"
    yield from _omitted_lines(len(missed))


def _omitted_lines(number: int) -> Iterator[str]:
    if number > _LISTED:
        yield f"  ... and {number - _LISTED} more"
