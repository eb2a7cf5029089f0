"""Decides whether a test passes, from what its tapes report.

Without torture: what the test says, nothing missed, nothing left over, and no mistake with what the
application was sent. Under a variation that is harmless it is the same. Under a hostile one the
stream is broken, and the application has to raise an error, and soon: a test that passes then has
seen half an answer taken for a complete one. An `AssertionError` is no error of the application's:
there it gave a wrong result and said nothing.
"""

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltatape.match.endpoint import shown
from deltatape.model.exchange import Exchange
from deltatape.player.play_options import MissedRequest, PlayReport, UnusedFault
from deltatape.printable import count, excerpt
from deltatape.replay.report import mistake_text, name_of

if TYPE_CHECKING:
    from deltatape.run_check import RunMistake

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
        raised: what came out of the test.
        broken: the exchange whose stream was broken, so that the test must raise; None: none.
        late_s: after how many seconds everything was cut, since nothing was raised; None: in time.
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
        return "\n".join((*_untrue_to_tape(run), *map(_idle, run.unused_faults)))
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
        return "nothing raised an error but the test's own assertion: nobody else would have known"
    return ""


def _untrue_to_tape(run: FinishedTest) -> Iterator[str]:
    report = run.report
    if report.failures:
        yield from _mistakes(report.failures)
    if report.missed:
        yield from _misses(report.missed)
    if report.unplayed:
        yield from _unplayed(report.unplayed)
        if run.forwarded:
            yield f"{count(run.forwarded, 'request')} went to the provider, not being on the tape"
        elif not report.played and not report.missed:
            yield (
                "no request came at all: the base URL is read from the environment, or taken from"
                " the fixture, tape.url(...); a client that is made when a module is imported has"
                " read its own before"
            )


def _mistakes(mistakes: "Sequence[RunMistake]") -> Iterator[str]:
    yield f"the app made {count(len(mistakes), 'mistake')} with what it was sent:"
    for one in mistakes[:_LISTED]:
        yield f"  {mistake_text(one)}"
    yield from _rest(len(mistakes))


def _misses(missed: Sequence[MissedRequest]) -> Iterator[str]:
    verb = "is" if len(missed) == 1 else "are"
    yield f"{count(len(missed), 'request')} {verb} not on the tape:"
    for one in missed[:_LISTED]:
        target = excerpt(shown(one.query.target), _SHOWN)
        yield f"  {one.query.method} {target}: {_in_tests(one.miss.problem)}"
        if one.nearest is not None:
            yield f"    nearest: {name_of(one.nearest)}"
        for difference in one.miss.differences[:_LISTED]:
            recorded = excerpt(difference.recorded, _SHOWN)
            received = excerpt(difference.received, _SHOWN)
            yield f"    {difference.path}: recorded {recorded}, received {received}"
    yield from _rest(len(missed))


def _in_tests(problem: str) -> str:
    """Replace the name of a `replay` option by the marker's argument."""
    return problem.replace("--repeat ", "repeat=True in the marker ")


def _idle(unused: UnusedFault) -> str:
    """Say that a fault was not applied, so that the test proves nothing."""
    return f"fault={unused.fault!r} changed nothing: {unused.why}"


def _unplayed(unplayed: Sequence[Exchange]) -> Iterator[str]:
    verb = "was" if len(unplayed) == 1 else "were"
    yield f"{count(len(unplayed), 'exchange')} {verb} not asked for:"
    for one in unplayed[:_LISTED]:
        yield f"  {name_of(one)} {one.request.method} {excerpt(one.request.path, _SHOWN)}"
    yield from _rest(len(unplayed))


def _rest(number: int) -> Iterator[str]:
    if number > _LISTED:
        yield f"  ... and {number - _LISTED} more"
