"""What is to be said of a run with varied tapes, beside the run with the tapes as they are.

A whole stream has to make no difference: the same exit code, the same standard output, the same
requests. A broken stream has to be noticed: an exit code, or a line that speaks of an error; or it
makes no difference, since the command has asked again or had all that it needs. Standard error is
not compared: what it says of chunks and times may well be otherwise.

A user's oracle, if there is one, judges in place of this. That a run has to end stays.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from deltatape.diagnose.rebuild import rebuild
from deltatape.model.torture import Verdict
from deltatape.player.playing import Missed
from deltatape.replay.report import mistake_told
from deltatape.rules.evidence import excerpt
from deltatape.rules.words import count
from deltatape.trials.torture_speech import SPEAKS, Known, own_words
from deltatape.trials.trial import Outcome

if TYPE_CHECKING:
    from deltatape.run_check import Mistake

_ADDRESS = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:|%3A)[0-9]{2,5}")
_SHOWN = 60


class Judged(NamedTuple):
    """A verdict, and what gave it."""

    verdict: Verdict
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """How outputs are to be read."""

    ignore: tuple[re.Pattern[str], ...] = ()
    """What may differ in them."""
    visible: tuple[re.Pattern[str], ...] = (re.compile(SPEAKS, re.IGNORECASE),)
    """What is a word about an error: any of them."""

    def text(self, output: bytes) -> str:
        """`output` without what may differ; the player's port always may."""
        text = _ADDRESS.sub(r"\1:PORT", output.decode("utf-8", "replace"))
        for pattern in self.ignore:
            text = pattern.sub("", text)
        return text


class Standard:
    """The runs with the tapes as they are.

    Attributes:
        first: the first of them.
        seconds: of the slowest.
    """

    def __init__(self, outcomes: Sequence[Outcome], manners: Manners) -> None:
        self.first = outcomes[0]
        self.seconds = max(outcome.seconds for outcome in outcomes)
        self._manners = manners
        printed = (manners.text(text) for one in outcomes for text in (one.stdout, one.stderr))
        self._known = Known((*printed, *_said(self.first)))

    def difference(self, outcome: Outcome) -> str:
        """In what `outcome` differs; "" if it does not."""
        return next(self._differences(outcome), "")

    def spoken(self, outcome: Outcome) -> str:
        """A line about an error that the command never prints otherwise; "": none."""
        found = (
            own_words(self._manners.text(output), self._known, self._manners.visible)
            for output in (outcome.stderr, outcome.stdout)
        )
        return next(filter(None, found), "")

    def made_good(self, outcome: Outcome) -> bool:
        """Whether the command asked again, and then printed all that it should, and more."""
        was, now = self._manners.text(self.first.stdout), self._manners.text(outcome.stdout)
        report, standard = outcome.report, self.first.report
        asked_again = len(report.played) > len(standard.played)
        if not was.strip() or not asked_again or len(report.unplayed) != len(standard.unplayed):
            return False
        at = 0
        for line in filter(None, map(str.strip, was.splitlines())):
            at = now.find(line, at) + len(line)
            if at < len(line):
                return False
        return True

    def _differences(self, outcome: Outcome) -> Iterator[str]:
        made = {_mark(each) for each in self.first.report.failures}
        yield from (
            mistake_told(each) for each in outcome.report.failures if _mark(each) not in made
        )
        yield from (asked_otherwise(one) for one in outcome.report.missed)
        fewer = len(outcome.report.unplayed) - len(self.first.report.unplayed)
        if fewer > 0:
            yield f"{count(fewer, 'request')} too few"
        if outcome.exit_code != self.first.exit_code:
            yield f"exit code {outcome.exit_code}"
        was, now = self._manners.text(self.first.stdout), self._manners.text(outcome.stdout)
        if was != now:
            yield first_difference(was, now)


def judged(outcome: Outcome, standard: Standard, *, harmless: bool) -> Judged:
    """What is to be said of a run."""
    ended = unended(outcome)
    if ended is not None:
        return ended
    difference = standard.difference(outcome)
    if not difference:
        return Judged(Verdict.SAME)
    if harmless:
        return Judged(Verdict.DIFFERS, difference)
    if outcome.report.missed:
        # What it says then may be about that request, which it should not have made.
        return Judged(Verdict.SWALLOWED, f"it went on as if all were there: {difference}")
    if outcome.exit_code:
        return Judged(Verdict.TOLD, f"exit code {outcome.exit_code}")
    if standard.made_good(outcome):
        return Judged(Verdict.SAME, "it asked again, and printed all in the end")
    said = standard.spoken(outcome)
    if said:
        return Judged(Verdict.TOLD, f"says {excerpt(said, _SHOWN)}")
    return Judged(Verdict.SWALLOWED, f"exit code 0, and no word of an error: {difference}")


def unended(outcome: Outcome) -> Judged | None:
    """The verdict on a run that did not come to an end of its own; None for others."""
    if outcome.timed_out:
        return Judged(Verdict.HANGS, f"no end after {outcome.seconds:.1f} s")
    if outcome.signal:
        return Judged(Verdict.DIES, f"died of {outcome.signal}")
    return None


def standing_problem(outcomes: Sequence[Outcome], manners: Manners, *, oracle: bool) -> str:
    """Why the runs with the tapes as they are can be no standard; "": they can.

    Args:
        outcomes: of equal runs.
        manners: how outputs are to be read.
        oracle: whether the user's own decides on exit codes, outputs and requests.
    """
    first = outcomes[0]
    ended = next(filter(None, map(unended, outcomes)), None)
    if ended is not None:
        return ended.why
    if not first.report.played and not first.report.missed:
        return _idle(first)
    if oracle:
        return ""
    if first.report.failures:
        return mistake_told(first.report.failures[0])
    if first.report.missed:
        return asked_otherwise(first.report.missed[0])
    if first.exit_code:
        return f"exit code {first.exit_code}; where that is right, --oracle CMD judges instead"
    if first.report.unplayed:
        left = ", ".join(f"{one.tape}#{one.number}" for one in first.report.unplayed)
        return (
            f"it does not ask for {excerpt(left)}; where that is right, name the exchanges that it"
            " asks for in place of the tape, as TAPE#N"
        )
    differs = next(filter(None, map(Standard(outcomes, manners).difference, outcomes[1:])), "")
    if differs:
        return (
            f"it is not the same each time: {differs}; --ignore PATTERN leaves out what may differ"
        )
    return ""


def _mark(mistake: "Mistake") -> tuple[str, str, int]:
    recorded = mistake.recorded
    return mistake.finding.code, recorded.tape, recorded.number


def _idle(outcome: Outcome) -> str:
    """Why a command that asked for nothing did not."""
    if outcome.exit_code:
        return f"exit code {outcome.exit_code} before it asked for anything"
    return (
        "it asked for nothing: its base URL must come from the environment, see `deltatape doctor`"
    )


def _said(outcome: Outcome) -> Iterator[str]:
    """What the model says in all that was played."""
    for one in outcome.report.played:
        for choice in rebuild(one.exchange).choices:
            yield from (choice.text, choice.reasoning, choice.refusal)
            yield from (call.arguments for call in choice.every_call)


def asked_otherwise(missed: Missed) -> str:
    """In what a request differs from the nearest one on the tape."""
    asking = missed.asking
    path = asking.target.decode("ascii", "replace").partition("?")[0]
    for one in missed.miss.differences[:1]:
        recorded, received = excerpt(one.recorded, _SHOWN), excerpt(one.received, _SHOWN)
        return f"asks otherwise, {one.path}: {received} instead of {recorded}"
    return f"{asking.method} {excerpt(path, _SHOWN)}: {missed.miss.problem}"


def first_difference(was: str, now: str) -> str:
    """The first line that is another one, of a long one what is around the difference."""
    before, after = was.splitlines(), now.splitlines()
    for number, (old, new) in enumerate(zip(before, after, strict=False), 1):
        if old != new:
            alike = itertools.takewhile(bool, map(str.__eq__, old, new))
            at = sum(1 for _ in alike)
            start = at - _SHOWN // 3 if at > _SHOWN // 2 else 0
            left_out = "..." if start else ""
            was_shown, shown = (left_out + excerpt(one[start:], _SHOWN) for one in (old, new))
            return f"line {number} of the output: {shown} instead of {was_shown}"
    if len(after) < len(before):
        return f"the output lacks {excerpt(before[len(after)], _SHOWN)}"
    if len(after) > len(before):
        return f"the output has more: {excerpt(after[len(before)], _SHOWN)}"
    return "the output's last line ends otherwise"
