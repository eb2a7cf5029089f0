"""Judge a run with varied tapes by the runs with unchanged ones.

A complete stream has to make no difference: the same exit code, standard output and requests. A
broken stream has to be noticed by an exit code or an error message; or it makes no difference,
since the command has retried or already had all that it needs. Standard error is not compared:
messages about chunks and times may differ.

A user's oracle replaces these rules, but a run still has to end.
"""

import asyncio
import contextlib
import itertools
import json
import os
import re
import signal
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from deltatape.child.child import CANNOT_RUN, NOT_FOUND
from deltatape.diagnose.rebuild import rebuild
from deltatape.errors import DeltatapeError, UsageError
from deltatape.model.torture import RunVerdict
from deltatape.player.play_options import MissedRequest
from deltatape.printable import count, excerpt
from deltatape.render.json_document import document
from deltatape.replay.report import mistake_text
from deltatape.trials.trial import TrialResult, wait_to_the_end

if TYPE_CHECKING:
    from deltatape.run_check import RunMistake

_ADDRESS = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:|%3A)[0-9]{2,5}")
_SHOWN = 60


# Whether a line of output is the application's own message about an error.
#
# A word such as "error" alone proves nothing: the model may have written it, and a line such as
# `0 errors, 0.31 s` is printed each time. So the word counts only in a new context: neither with
# the two words before it nor with the two after it may it occur in the output for the unchanged
# tapes or in the model's text. All numbers are equal, and so are words that contain a digit.

ERROR_WORDS = (
    r"\b(err|errors?|exceptions?|traceback|fail\w*|abort\w*|crash\w*|panic\w*|fatal|broken?|broke"
    r"|cut( off| short)?|(in|un|not( (yet|the|a))?[ -])(complete|whole|finished)|half-?way"
    r"|partial\w*|truncated|reset|closed|interrupted|disconnect\w*|terminated|lost|dropped|gone|missing"
    r"|ended (too )?(early|soon)|premature\w*|gave up|giving up|went wrong|problem|trouble"
    r"|unexpected\w*|invalid|malformed|damaged|corrupt\w*|timeout|timed out|time-out"
    r"|no (answer|response|reply|connection)|unavailable|unreachable|overload\w*|busy|wait|later"
    r"|rate[ -]?limit\w*|too many|throttl\w*|denied|refused|rejected|sorry|retry\w*|retries|retried"
    r"|(try|trying|tried|ask\w*|once) again|could not|cannot|couldn't|can't|unable"
    r")\b|\w(error|exception|failure)\b"
)
"""By default, an output that matches reports an error; case is ignored."""
_WORD = re.compile(r"[\w']+")
_DIGIT = re.compile(r"\d")
_CONTEXT = 2
"""How many words before and after a word are its context."""
_EDGE = "\n"


class BaselineKnowledge:
    """What was printed with the unchanged tapes, and the model's text on them.

    Args:
        texts: all of it. Each may also have been printed as a JSON string.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        forms = [form for text in texts for form in _spellings(text)]
        self._text = "\n".join(forms)
        self._words = (
            f" {' '.join(word for line in self._text.splitlines() for word in _words(line))} "
        )

    def has(self, line: str, start: int, end: int) -> bool:
        """Return whether this part of a line is known in its context."""
        words = list(_WORD.finditer(line))
        covered = [at for at, word in enumerate(words) if word.start() < end and word.end() > start]
        if not covered:
            return line in self._text
        names = _words(line)
        first, last = covered[0] + 1, covered[-1] + 2  # the edge comes first
        before = names[max(0, first - _CONTEXT) : last]
        behind = names[first : last + _CONTEXT]
        return any(f" {' '.join(part)} " in self._words for part in (before, behind))


def unknown_error_line(
    output: str, known: BaselineKnowledge, visible: Sequence[re.Pattern[str]]
) -> str:
    """Return the first line of `output` with an unknown word for an error; "" if there is none."""
    for line in map(str.strip, output.splitlines()):
        found = (match for pattern in visible for match in pattern.finditer(line))
        if any(not known.has(line, *match.span()) for match in found):
            return line
    return ""


def _spellings(text: str) -> Iterator[str]:
    yield text
    yield from (json.dumps(text, ensure_ascii=ascii_only) for ascii_only in (True, False))


def _words(line: str) -> list[str]:
    """Return the words of a line; all numbers are equal."""
    found = (match[0].casefold() for match in _WORD.finditer(line))
    return [_EDGE, *("0" if _DIGIT.search(word) else word for word in found), _EDGE]


class VariationVerdict(NamedTuple):
    """A verdict, and its reason."""

    verdict: RunVerdict
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRules:
    """How to read outputs."""

    ignore: tuple[re.Pattern[str], ...] = ()
    """Parts of the outputs that may differ."""
    visible: tuple[re.Pattern[str], ...] = (re.compile(ERROR_WORDS, re.IGNORECASE),)
    """Patterns of outputs that report an error."""

    def text(self, output: bytes) -> str:
        """Return `output` without what may differ, such as the player's port."""
        text = _ADDRESS.sub(r"\1:PORT", output.decode("utf-8", "replace"))
        for pattern in self.ignore:
            text = pattern.sub("", text)
        return text


class BaselineRuns:
    """The runs with the unchanged tapes.

    Attributes:
        first: the first of them.
        seconds: the seconds of the slowest.
    """

    def __init__(self, outcomes: Sequence[TrialResult], output_rules: OutputRules) -> None:
        self.first = outcomes[0]
        self.seconds = max(outcome.seconds for outcome in outcomes)
        self._output_rules = output_rules
        printed = (output_rules.text(text) for one in outcomes for text in (one.stdout, one.stderr))
        self._known = BaselineKnowledge((*printed, *_model_texts(self.first)))

    def difference(self, outcome: TrialResult) -> str:
        """Describe how `outcome` differs; "" if it does not."""
        return next(self._differences(outcome), "")

    def error_line(self, outcome: TrialResult) -> str:
        """Return an error line that the command never prints otherwise; "" if there is none."""
        found = (
            unknown_error_line(
                self._output_rules.text(output), self._known, self._output_rules.visible
            )
            for output in (outcome.stderr, outcome.stdout)
        )
        return next(filter(None, found), "")

    def recovered(self, outcome: TrialResult) -> bool:
        """Return whether the command retried, and then printed all that it should."""
        was, now = (
            self._output_rules.text(self.first.stdout),
            self._output_rules.text(outcome.stdout),
        )
        report, baseline = outcome.report, self.first.report
        retried = len(report.played) > len(baseline.played)
        if not was.strip() or not retried or len(report.unplayed) != len(baseline.unplayed):
            return False
        at = 0
        for line in filter(None, map(str.strip, was.splitlines())):
            at = now.find(line, at) + len(line)
            if at < len(line):
                return False
        return True

    def _differences(self, outcome: TrialResult) -> Iterator[str]:
        made = {_mistake_key(each) for each in self.first.report.failures}
        yield from (
            mistake_text(each) for each in outcome.report.failures if _mistake_key(each) not in made
        )
        yield from (request_difference(one) for one in outcome.report.missed)
        fewer = len(outcome.report.unplayed) - len(self.first.report.unplayed)
        if fewer > 0:
            yield f"{count(fewer, 'request')} missing"
        if outcome.exit_code != self.first.exit_code:
            yield f"exit code {outcome.exit_code}"
        was, now = (
            self._output_rules.text(self.first.stdout),
            self._output_rules.text(outcome.stdout),
        )
        if was != now:
            yield first_difference(was, now)


def judged(outcome: TrialResult, baseline: BaselineRuns, *, harmless: bool) -> VariationVerdict:
    """Judge a run."""
    ended = stop_verdict(outcome)
    if ended is not None:
        return ended
    difference = baseline.difference(outcome)
    if not difference:
        return VariationVerdict(RunVerdict.SAME)
    if harmless:
        return VariationVerdict(RunVerdict.DIFFERS, difference)
    if outcome.report.missed:
        # What it says then may be about that request, which it should not have made.
        return VariationVerdict(
            RunVerdict.SWALLOWED, f"continued as if the response were complete: {difference}"
        )
    if outcome.exit_code:
        return VariationVerdict(RunVerdict.REPORTED, f"exit code {outcome.exit_code}")
    if baseline.recovered(outcome):
        return VariationVerdict(RunVerdict.SAME, "retried, and printed the complete output")
    if error_line := baseline.error_line(outcome):
        return VariationVerdict(RunVerdict.REPORTED, f"prints {excerpt(error_line, _SHOWN)}")
    return VariationVerdict(RunVerdict.SWALLOWED, f"exit code 0 and no error message: {difference}")


def stop_verdict(outcome: TrialResult) -> VariationVerdict | None:
    """Return the verdict on a run that was stopped; None for others."""
    if outcome.timed_out:
        return VariationVerdict(RunVerdict.HANGS, f"still running after {outcome.seconds:.1f} s")
    if outcome.signal:
        return VariationVerdict(RunVerdict.DIES, f"ended by {outcome.signal}")
    return None


def baseline_problem(
    outcomes: Sequence[TrialResult], output_rules: OutputRules, *, oracle: bool
) -> str:
    """Return why the unchanged tapes cannot serve as a baseline; "" if they can.

    Args:
        outcomes: the outcomes of equal runs.
        output_rules: how outputs are to be read.
        oracle: whether the user's oracle decides on exit codes, outputs and requests.
    """
    first = outcomes[0]
    ended = next(filter(None, map(stop_verdict, outcomes)), None)
    if ended is not None:
        return ended.why
    if not first.report.played and not first.report.missed:
        return _no_request_problem(first)
    if oracle:
        return ""
    if first.report.failures:
        return mistake_text(first.report.failures[0])
    if first.report.missed:
        return request_difference(first.report.missed[0])
    if first.exit_code:
        return f"exit code {first.exit_code}; if that is correct, use --oracle CMD"
    if first.report.unplayed:
        left = ", ".join(f"{one.tape}#{one.number}" for one in first.report.unplayed)
        return (
            f"the command did not request {excerpt(left)}; if that is correct, name only the"
            " exchanges that it requests, as TAPE#N"
        )
    differs = next(
        filter(None, map(BaselineRuns(outcomes, output_rules).difference, outcomes[1:])), ""
    )
    if differs:
        return (
            f"two runs with the unchanged tapes differ: {differs}; use --ignore PATTERN for output"
            " that may differ"
        )
    return ""


def _mistake_key(mistake: "RunMistake") -> tuple[str, str, int]:
    recorded = mistake.recorded
    return mistake.finding.code, recorded.tape, recorded.number


def _no_request_problem(outcome: TrialResult) -> str:
    """Return why a command made no request."""
    if outcome.exit_code:
        return f"exit code {outcome.exit_code} before the first request"
    return (
        "the command sent no request to the player; its base URL must come from the environment"
        " (see `deltatape doctor`)"
    )


def _model_texts(outcome: TrialResult) -> Iterator[str]:
    """Yield the model's texts in all that was played."""
    for one in outcome.report.played:
        for choice in rebuild(one.exchange).choices:
            yield from (choice.text, choice.reasoning, choice.refusal)
            yield from (call.arguments for call in choice.every_call)


def request_difference(missed: MissedRequest) -> str:
    """Describe how a request differs from the nearest one on the tape."""
    query = missed.query
    path = query.target.decode("ascii", "replace").partition("?")[0]
    for one in missed.miss.differences[:1]:
        recorded, received = excerpt(one.recorded, _SHOWN), excerpt(one.received, _SHOWN)
        return f"request differs at {one.path}: {received} instead of {recorded}"
    return f"{query.method} {excerpt(path, _SHOWN)}: {missed.miss.problem}"


def first_difference(was: str, now: str) -> str:
    """Return the first line that differs; of a long one the part around the difference."""
    before, after = was.splitlines(), now.splitlines()
    for number, (old, new) in enumerate(zip(before, after, strict=False), 1):
        if old != new:
            alike = itertools.takewhile(bool, map(str.__eq__, old, new))
            at = sum(1 for _ in alike)
            start = at - _SHOWN // 3 if at > _SHOWN // 2 else 0
            left_out = "..." if start else ""
            was_shown, shown = (left_out + excerpt(one[start:], _SHOWN) for one in (old, new))
            return f"output line {number}: {shown} instead of {was_shown}"
    if len(after) < len(before):
        return f"missing output line: {excerpt(before[len(after)], _SHOWN)}"
    if len(after) > len(before):
        return f"additional output line: {excerpt(after[len(before)], _SHOWN)}"
    return "the line end of the last output line differs"


# `torture --oracle CMD`: a command of the user's that judges a run.
#
# CMD is run by the shell. Its standard input is a JSON document with the outcome of the run and of
# the baseline run. Exit code 0 accepts the run, any other rejects it, and the last line of the
# output is the reason. It may take as long as a run. Exit codes 126 and 127 come from the shell:
# the command does not exist or cannot be run, so they are no verdict.

_SHOWN_OF_ORACLE = 120
_MOST = 1 << 16
"""How much of its output is read, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle:
    """The user's command for `sh -c` that judges runs, and its input."""

    command: str
    environ: Mapping[str, str]
    folder: Path
    limit_s: float

    async def judged(
        self, outcome: TrialResult, baseline: TrialResult, *, variation: str, harmless: bool
    ) -> VariationVerdict:
        """Return what the command says about `outcome`.

        Args:
            outcome: the outcome of the run in question.
            baseline: the outcome with the unchanged tapes.
            variation: what was played; "" for the unchanged tapes.
            harmless: whether it should make no difference.

        Raises:
            UsageError: the command cannot be run.
            DeltatapeError: it does not end in time.
        """
        runs = document(
            variation=variation,
            harmless=harmless,
            outcome=_outcome(outcome),
            recorded=_outcome(baseline),
        )
        code, printed = await self._ask(runs)
        if code == 0:
            return VariationVerdict(
                RunVerdict.SAME if harmless else RunVerdict.REPORTED, "accepted by the oracle"
            )
        last = printed.strip().splitlines()[-1:] or [f"exit code {code}"]
        why = excerpt(last[0], _SHOWN_OF_ORACLE)
        if code in (CANNOT_RUN, NOT_FOUND):
            raise UsageError(f"--oracle {self.command!r} cannot be run: {why}")
        return VariationVerdict(RunVerdict.REFUSED, f"rejected by the oracle: {why}")

    async def _ask(self, runs: str) -> tuple[int, str]:
        """Return exit code and output of the command; via files, which no child can hold open."""
        with tempfile.TemporaryFile() as document, tempfile.TemporaryFile() as printed:
            document.write(runs.encode())
            document.seek(0)
            process = await asyncio.create_subprocess_exec(
                *("/bin/sh", "-c", self.command),
                stdin=document,
                stdout=printed,
                stderr=asyncio.subprocess.STDOUT,
                env=dict(self.environ),
                cwd=self.folder,
                start_new_session=True,
            )
            ended = asyncio.ensure_future(process.wait())
            try:
                await asyncio.wait([ended], timeout=self.limit_s)
                in_time = ended.done()
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)  # and what it has left running
                await wait_to_the_end(ended)
            if not in_time:
                raise DeltatapeError(
                    f"--oracle {self.command!r} still running after {self.limit_s:g} s"
                )
            printed.seek(0)
            return ended.result(), printed.read(_MOST).decode("utf-8", "replace")


def oracle_of(
    command: str | None, environ: Mapping[str, str], folder: Path, limit_s: float
) -> Oracle | None:
    """Return the judge that `--oracle` names; None if it is not given."""
    if command is None:
        return None
    return Oracle(command=command, environ=environ, folder=folder, limit_s=limit_s)


def _outcome(outcome: TrialResult) -> dict[str, object]:
    """Return a run as JSON."""
    report = outcome.report
    return {
        "exit_code": outcome.exit_code,
        "signal": outcome.signal,
        "timed_out": outcome.timed_out,
        "seconds": round(outcome.seconds, 3),
        "stdout": outcome.stdout.decode("utf-8", "replace"),
        "stderr": outcome.stderr.decode("utf-8", "replace"),
        "report": {
            "played": [f"{one.exchange.tape}#{one.exchange.number}" for one in report.played],
            "missed": [one.message for one in report.missed],
            "unplayed": [f"{one.tape}#{one.number}" for one in report.unplayed],
        },
    }
