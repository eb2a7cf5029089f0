"""Shrink a tape with a command that fails on it.

Strategy: the command has to fail in the same way several times before anything is removed, since
wrong results mislead a search. It is run at the fastest tempo at which it fails.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from deltatape import __version__
from deltatape.errors import UsageError
from deltatape.match.schedule import INSTANT, RECORDED, ReplayTempo
from deltatape.model.exchange import Exchange
from deltatape.player.play_options import PlayReport
from deltatape.printable import count
from deltatape.shrink.failure import TargetFailure
from deltatape.shrink.passes import shrink
from deltatape.shrink.search import Exchanges, ShrinkSearch
from deltatape.trials.shrink_memory import AppCredentials, SearchCache, content_of
from deltatape.trials.shrink_trials import CompletedRun, Trials, TrialSetup

BEFORE = 5
"""How many times the command has to fail before a search: one that fails three times out of five
does so once in thirteen tries."""
AFTER = 2
"""And after it."""
LEAST = BEFORE + AFTER + 3
"""The fewest runs that a search is worth."""

_MS = 1_000_000


class TempoSetting(NamedTuple):
    """A tempo as `deltatape replay` takes it."""

    tempo: ReplayTempo
    options: tuple[str, ...]


FASTEST_FIRST = (
    TempoSetting(INSTANT, ("--speed", "instant")),
    TempoSetting(ReplayTempo(idle_cap_ns=20 * _MS), ("--idle-cap", "20ms")),
    TempoSetting(RECORDED, ()),
)
"""At once; read by read; with all silences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkRequest:
    """What to search for."""

    speeds: Sequence[TempoSetting] = FASTEST_FIRST
    """Replay speeds to try: the first one at which the command fails is used."""
    runs: int = 500
    """How many runs there may be in total."""
    sound: bool = True
    """See `ShrinkSearch.sound`."""
    fresh: bool = False
    """Whether to ignore the results of an interrupted search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkStep:
    """The progress of a search."""

    what: str
    """The pass that begins; "" when one has changed something."""
    exchanges: Exchanges
    runs: int
    note: str = ""
    """A line for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkResult:
    """The result."""

    exchanges: Exchanges
    failure: TargetFailure
    """The failure that was searched for."""
    last: TargetFailure
    """How the command failed in the end: the same, but perhaps with other values."""
    speed: TempoSetting
    runs: int
    remembered: int
    """Results of an earlier, interrupted search."""
    whole: bool
    """Whether nothing more can be taken away; else the runs were used up."""
    missed: PlayReport | None
    """The report of a final run, with requests as recorded, that did not fail in the same way."""


def _without_credentials(exchanges: Sequence[Exchange], setup: TrialSetup) -> tuple[Exchange, ...]:
    """Return the exchanges, renumbered and without credentials, for the tape and the tests."""
    secrets = AppCredentials(setup.mask_key, setup.environ, setup.folder)
    _refuse_credentials(setup, secrets)
    return tuple(
        replace(one, number=at, request=secrets.asked(one.request))
        for at, one in enumerate(exchanges, 1)
    )


def shrink_tape(
    exchanges: Sequence[Exchange],
    setup: TrialSetup,
    request: ShrinkRequest,
    folder: Path,
    tell: Callable[[ShrinkStep], None],
) -> ShrinkResult:
    """Return the smallest tape on which the command fails as it does on these exchanges.

    Args:
        exchanges: the exchanges of the provider's side.
        setup: how the command is run.
        request: what to search for.
        folder: where answers are kept meanwhile.
        tell: called at the start of each pass and for each smaller tape.

    Raises:
        UsageError: the command cannot be started, does not fail, or not in the same way each time;
            it sends requests past the player; a credential would be written into the tests.
        DeltatapeError: the oracle does not answer.
    """
    start = _without_credentials(exchanges, setup)
    cache = SearchCache(folder / f"{_cache_name(start, setup, request)}.jsonl")
    if request.fresh:
        cache.forget()
    remembered = cache.found
    trials, speed, failure, baseline = _baseline(start, setup, request, cache)
    for note in _target_notes(failure, speed):
        tell(ShrinkStep(what="", exchanges=baseline, runs=trials.count, note=note))
    search, whole = _search(baseline, trials, tell, sound=request.sound)
    last = _final_run(trials, search.exchanges)
    if whole:
        cache.forget()
    return ShrinkResult(
        exchanges=search.exchanges,
        failure=failure,
        last=last.failure or failure,
        speed=speed,
        runs=trials.count,
        remembered=remembered,
        whole=whole,
        missed=None if trials.is_target(last) else last.outcome.report,
    )


def _final_run(trials: Trials, exchanges: Exchanges) -> CompletedRun:
    """Run the final tape with its requests; return the first run that does not fail, if any."""
    last = trials.run(exchanges, strict=True)
    for _ in range(AFTER - 1):
        if last.outcome.timed_out or not trials.is_target(last):
            break
        last = trials.run(exchanges, strict=True)
    return last


def _target_notes(failure: TargetFailure, speed: TempoSetting) -> Iterator[str]:
    """Yield the failure that is searched for, and a note if it is only an exit code."""
    how = " ".join(speed.options) or "--speed recorded"
    yield f"target failure: {failure.description} (played with {how})"
    ending = failure.ending
    if not failure.shown and ending.exit_code is not None and not ending.timed_out:
        yield (
            "note: no output line names an error, so only the exit code is compared; use --error"
            " TEXT to require a text"
        )


def _search(
    baseline: Exchanges, trials: Trials, tell: Callable[[ShrinkStep], None], *, sound: bool
) -> tuple[ShrinkSearch, bool]:
    """Return the search at its end, and whether nothing more can be removed."""

    def judge(candidate: Exchanges) -> Exchanges | None:
        kept = trials.judge(candidate)
        if kept is not None:
            tell(ShrinkStep(what="", exchanges=kept, runs=trials.count))
        return kept

    def passed(what: str) -> None:
        tell(ShrinkStep(what=what, exchanges=search.exchanges, runs=trials.count))

    search = ShrinkSearch(baseline, judge, sound=sound)
    return search, shrink(search, passed)


def _baseline(
    start: Exchanges, setup: TrialSetup, request: ShrinkRequest, cache: SearchCache
) -> tuple[Trials, TempoSetting, TargetFailure, Exchanges]:
    """Return the judge, the speed at which the command fails, the failure, and its exchanges."""
    first: CompletedRun | None = None
    limit = request.runs - AFTER
    for number, speed in enumerate(request.speeds):
        trials = Trials(setup, speed.tempo, cache, limit=limit, count=number)
        first = trials.run(start, strict=True)
        _check_requests(first, setup)
        if first.failure is not None:
            trials.set_target(first)
            baseline = _confirm(trials, start)
            assert trials.target is not None
            return trials, speed, trials.target, baseline
    assert first is not None
    raise UsageError(_no_failure(first, setup))


def _confirm(trials: Trials, start: Exchanges) -> Exchanges:
    """Return what the command requests when it fails once more."""
    again = trials.run(start, strict=False)
    if len(start) > 1 and not trials.is_target(again):
        # Perhaps requests were matched wrongly: then they have to be as recorded.
        trials.follows = False
        again = trials.run(start, strict=True)
    if not trials.is_target(again):
        trials.loosen_target()  # perhaps it quotes a value that always differs
    _check_same(trials, again)
    if not again.outcome.timed_out:
        for _ in range(BEFORE - 2):
            _check_same(trials, trials.run(start, strict=not trials.follows))
    return trials.settle(start, again)


def _check_same(trials: Trials, completed: CompletedRun) -> None:
    if not trials.is_target(completed):
        failure = completed.failure.description if completed.failure else "no failure"
        raise UsageError(
            f"the command does not fail in the same way each time: another run gave {failure}."
            " Shrinking needs a reproducible failure; define it with --error TEXT or --oracle CMD"
        )


def _refuse_credentials(setup: TrialSetup, secrets: AppCredentials) -> None:
    """Refuse texts with credentials that would be written into the tests."""
    oracle = setup.oracle.command if setup.oracle else ""
    words = (("the command", " ".join(setup.command)), ("--oracle", oracle))
    for name, text in (*words, ("--error", setup.error or "")):
        if secrets.text(text) != text:
            raise UsageError(
                f"{name} contains a credential, which would be written into the generated tests:"
                f" {secrets.text(text)!r}; pass it in an environment variable"
            )


def _check_requests(completed: CompletedRun, setup: TrialSetup) -> None:
    if completed.bypassed and setup.network_guard is not None:
        raise UsageError(
            f"{setup.network_guard.problem()}; they were blocked. The player gets a request"
            " only if the base URL comes from the environment"
        )
    report = completed.outcome.report
    if report.played:
        return
    if report.missed:
        raise UsageError(
            f"the command requested nothing on the tape: {report.missed[0].message}; use --volatile"
            " for what may differ"
        )
    ending = f" It ended with {completed.failure.description}" if completed.failure else ""
    raise UsageError(
        "the command sent no request to the player; its base URL must come from the environment"
        f" (see `deltatape doctor`).{ending}"
    )


def _no_failure(completed: CompletedRun, setup: TrialSetup) -> str:
    problem = "the command does not fail on this tape: exit code 0"
    if setup.oracle is not None:
        problem = "the oracle accepts the run on this tape"
    elif setup.error is not None:
        problem = f"the command does not print {setup.error!r} on this tape"
    missed = completed.outcome.report.missed
    if missed:
        return (
            f"{problem}, but it made {count(len(missed), 'request')} that the tape does not have:"
            f" {missed[0].message}; use --volatile for what may differ"
        )
    if setup.oracle is not None or setup.error is not None:
        return problem
    return f"{problem}; define the failure with --error TEXT or --oracle CMD"


def _cache_name(start: Exchanges, setup: TrialSetup, request: ShrinkRequest) -> str:
    """Return a name derived from everything known that results depend on."""
    files = [_file_digest(setup.folder / word) for word in setup.command]
    known = [
        __version__,
        content_of(start),
        [*setup.command],
        files,
        setup.deadline_s,
        [*setup.volatile],
        setup.error,
        setup.oracle.command if setup.oracle else None,
        [speed.options for speed in request.speeds],
        request.sound,
    ]
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:32]


def _file_digest(path: Path) -> str:
    """Hash the programs that the command names: they may change between runs."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    except OSError:
        return ""
