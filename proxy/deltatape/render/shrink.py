"""What a shrunk tape is told with: how much is left, and what that says."""

from collections.abc import Sequence
from dataclasses import dataclass

from deltatape.diagnose.decode import decode
from deltatape.model.exchange import Exchange
from deltatape.render.json_document import document
from deltatape.render.lines import BOLD, DIM, Line, Segment
from deltatape.rules.evidence import excerpt
from deltatape.rules.words import count
from deltatape.shrink.body import event_count
from deltatape.shrink.failure import Failure

_MOST_EVENTS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """How much there is on a tape."""

    exchanges: int
    events: int
    bytes: int
    """Of all bodies of responses."""

    @property
    def told(self) -> str:
        """In words."""
        return ", ".join(
            count(number, what)
            for number, what in (
                (self.exchanges, "exchange"),
                (self.events, "event"),
                (self.bytes, "byte"),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkReport:
    """What came out of a search."""

    before: Sequence[Exchange]
    after: Sequence[Exchange]
    failure: Failure
    runs: int
    seconds: float
    whole: bool
    """Whether nothing more can be taken away."""
    files: Sequence[str]
    """What was written, the tape first."""
    still: bool = True
    """Whether it failed in the same way in the end, each time."""


def amount_of(exchanges: Sequence[Exchange]) -> Amount:
    """How much there is."""
    return Amount(
        exchanges=len(exchanges),
        events=event_count(exchanges),
        bytes=sum(len(one.body) for one in exchanges),
    )


def shrink_lines(report: ShrinkReport, width: int) -> list[Line]:
    """The result for people."""
    before, after = amount_of(report.before), amount_of(report.after)
    fails = "fails still" if report.still else "fails no more, or otherwise"
    lines: list[Line] = [
        (Segment(excerpt(f"{fails}: {report.failure.told}", width)),),
        (Segment(f"before: {before.told}"),),
        (
            Segment(f" after: {after.told}", BOLD),
            Segment(f"  ({count(report.runs, 'run')}, {report.seconds:.0f} s)", DIM),
        ),
    ]
    events = [
        f"  #{number} {event.data}"
        for number, one in enumerate(report.after, 1)
        for event in decode(one).events
    ]
    lines += [(Segment(excerpt(data, width), DIM),) for data in events[:_MOST_EVENTS]]
    if len(events) > _MOST_EVENTS:
        lines.append((Segment(f"  ... and {len(events) - _MOST_EVENTS} more", DIM),))
    return lines


def shrink_json(report: ShrinkReport) -> str:
    """The result for programs."""
    ending = report.failure.ending
    return document(
        failure={
            "exit_code": ending.exit_code,
            "signal": ending.signal,
            "timed_out": ending.timed_out,
            "error": report.failure.shown,
        },
        before=_amount(report.before),
        after=_amount(report.after),
        runs=report.runs,
        minimal=report.whole,
        files=[*report.files],
    )


def _amount(exchanges: Sequence[Exchange]) -> dict[str, int]:
    found = amount_of(exchanges)
    return {"exchanges": found.exchanges, "events": found.events, "bytes": found.bytes}
