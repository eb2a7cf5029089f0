"""Run the command against candidates and decide whether it fails in the same way.

Strategy: requests depend on earlier responses: a smaller first response leads to another second
request. So if nothing fits better, later requests are matched by their position alone, in recorded
order, and the tape then gets the requests that were made, so that it plays exactly at every step.
Exchanges that were never requested are removed.

Invariant: results kept on disk and in memory have no credentials of the application.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from deltatape.match.body import (
    NOT_JSON,
    agree,
    blanked,
    fits,
    forms_of,
    json_value,
    pieces,
)
from deltatape.match.schedule import ReplayTempo
from deltatape.match.volatile import VolatileRules
from deltatape.model.exchange import Exchange, Request
from deltatape.model.torture import RunVerdict
from deltatape.player.play_options import PlayOptions
from deltatape.replay.guard import NetworkGuard
from deltatape.shrink.failure import CommandResult, TargetFailure, failure_of, readable
from deltatape.shrink.search import BudgetExhaustedError, Exchanges
from deltatape.trials.shrink_memory import (
    AppCredentials,
    AskedBody,
    CandidateResult,
    SearchCache,
    content_of,
)
from deltatape.trials.torture_judge import Oracle
from deltatape.trials.trial import SharedRunOptions, TrialResult, attempt

HOLD_S = 3600.0
"""The length of a silence whose end is not on the tape; longer than any run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSetup:
    """How to run the command."""

    command: Sequence[str]
    environ: Mapping[str, str]
    folder: Path
    deadline_s: float
    volatile: tuple[str, ...] = ()
    error: str | None = None
    """A text that the output has when it fails."""
    oracle: Oracle | None = None
    mask_key: bytes = b""
    """For the hashes of credentials in requests."""
    network_guard: NetworkGuard | None = None
    """Blocks requests to providers past the player; entered."""

    @property
    def variables(self) -> Mapping[str, str]:
        """Return the additional variables."""
        return {} if self.network_guard is None else self.network_guard.variables


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedRun:
    """A run, and the failure that it ended with, if any."""

    outcome: TrialResult
    failure: TargetFailure | None
    bypassed: bool = False
    """Whether it requested a new host past the player."""


class Trials:
    """The judge of a search.

    Attributes:
        tempo: the tempo of the playing.
        follows: whether requests may differ from the recorded ones.
        count: how many runs there were.
        target: the failure that is searched for, once there is one.
    """

    def __init__(
        self,
        setup: TrialSetup,
        tempo: ReplayTempo,
        cache: SearchCache,
        *,
        limit: int,
        count: int = 0,
    ) -> None:
        """Create a judge without results.

        Args:
            setup: how the command is run.
            tempo: the tempo of the playing.
            cache: for answers.
            limit: how many runs there may be when `judge` begins another one.
            count: how many runs were made before.
        """
        self.tempo = tempo
        self.follows = True
        self.count = count
        self._setup = setup
        self._secrets = AppCredentials(
            setup.mask_key, {**setup.environ, **setup.variables}, setup.folder
        )
        self._cache = cache
        self._limit = limit
        self.target: TargetFailure | None = None
        self._allowed_misses = 0
        self._volatile = VolatileRules(setup.volatile)

    def set_target(self, completed: CompletedRun) -> None:
        """Search for this run's failure from now on."""
        self.target = completed.failure
        self._allowed_misses = len(completed.outcome.report.missed)

    def loosen_target(self) -> None:
        """Accept errors with other quoted names from now on."""
        if self.target is not None:
            self.target = self.target.loosened

    def run(self, exchanges: Exchanges, *, strict: bool) -> CompletedRun:
        """Run the command; `strict`: every request must be as it was recorded.

        Raises:
            UsageError: the command cannot be started.
            DeltatapeError: the oracle does not answer.
        """
        self.count += 1
        return asyncio.run(self._run(exchanges, () if strict else request_member_paths(exchanges)))

    def is_target(self, completed: CompletedRun) -> bool:
        """Return whether a run failed in the way that is searched for."""
        found, target = completed.failure, self.target
        if found is None or target is None or completed.bypassed:
            return False
        if len(completed.outcome.report.missed) > self._allowed_misses:
            return False
        return target.is_in(found.ending)

    def judge(self, exchanges: Exchanges) -> Exchanges | None:
        """Return the exchanges of a failing run, or None; see `search.Judge`.

        Raises:
            BudgetExhaustedError: no run is left.
        """
        content = content_of(exchanges)
        result = self._cache.get(content)
        if result is None:
            if self.count >= self._limit:
                raise BudgetExhaustedError
            result = self._result_of(self.run(exchanges, strict=not self.follows))
            self._cache.put(content, result)
        return with_requests_made(exchanges, result) if result.same else None

    def settle(self, exchanges: Exchanges, completed: CompletedRun) -> Exchanges:
        """Return the exchanges that a failing run requested, with its requests."""
        return with_requests_made(exchanges, self._result_of(completed))

    def _result_of(self, completed: CompletedRun) -> CandidateResult:
        if not self.is_target(completed):
            return CandidateResult(same=False)
        report = completed.outcome.report
        for one in report.played:
            self._secrets.found(one.exchange.request, one.query.body)
        return CandidateResult(
            same=True,
            asked={
                one.exchange.number: self._secrets.body(one.query.body)
                for one in report.played
                if self._differs(one.query.body, one.exchange.request)
            },
            unplayed=frozenset(one.number for one in report.unplayed),
        )

    def _differs(self, asked: bytes, recorded: Request) -> bool:
        """Return whether a request differs from the recorded one, apart from volatile parts."""
        if recorded.content_masked:
            return not self._fits(asked, recorded)
        forms, before = (forms_of(each, self._volatile) for each in (asked, recorded.content))
        if forms is None or before is None:
            return asked != recorded.content
        return forms.reduced != before.reduced

    def _fits(self, asked: bytes, recorded: Request) -> bool:
        """Return whether a request equals the recorded one apart from what is masked there."""
        value = json_value(asked)
        before = json_value(blanked(recorded.content, recorded.content_masked))
        if value is NOT_JSON or before is NOT_JSON:
            return fits(pieces(recorded.content, recorded.content_masked), asked)
        return agree(self._volatile.reduced(before), self._volatile.reduced(value))

    async def _run(self, exchanges: Exchanges, loose: tuple[str, ...]) -> CompletedRun:
        setup = self._setup
        playing = PlayOptions(
            tempo=self.tempo, hold_s=HOLD_S, volatile=(*setup.volatile, *loose), bodies=True
        )
        refused = self._refused()
        outcome = await attempt(
            setup.command,
            exchanges,
            playing,
            setup.environ,
            setup.folder,
            setup.deadline_s,
            shared=SharedRunOptions(variables=setup.variables, on_request=self._secrets.add_head),
        )
        failure = await self._failure(outcome)
        return CompletedRun(outcome=outcome, failure=failure, bypassed=self._refused() > refused)

    def _refused(self) -> int:
        """Return how many hosts were requested past the player so far."""
        network_guard = self._setup.network_guard
        return 0 if network_guard is None else len(network_guard.refused)

    async def _failure(self, outcome: TrialResult) -> TargetFailure | None:
        ending = CommandResult(
            exit_code=outcome.exit_code,
            signal=outcome.signal,
            timed_out=outcome.timed_out,
            output=self._secrets.text(readable(outcome.stdout, outcome.stderr)),
        )
        oracle = self._setup.oracle
        if oracle is None:
            return failure_of(ending, self._setup.error)
        judged = await oracle.judged(outcome, outcome, variation="", harmless=True)
        if judged.verdict is not RunVerdict.REFUSED:
            return None
        # The oracle decides, however the command ends and whatever it prints.
        why = self._secrets.text(judged.why)
        return TargetFailure(ending=CommandResult(exit_code=None), shown=why, pattern="")


def with_requests_made(exchanges: Exchanges, result: CandidateResult) -> Exchanges:
    """Return the played exchanges with the requests that were made."""
    return tuple(
        with_request_body(one, result.asked.get(one.number))
        for one in exchanges
        if one.number not in result.unplayed
    )


def with_request_body(exchange: Exchange, body: AskedBody | None) -> Exchange:
    """Return `exchange` with another request body; unchanged for None."""
    if body is None:
        return exchange
    return replace(exchange, request=exchange.request.with_content(body.data, body.masked))


def request_member_paths(exchanges: Exchanges) -> tuple[str, ...]:
    """Return the paths of all values in requests, if there are several exchanges."""
    if len(exchanges) == 1:
        return ()
    names: dict[str, None] = {}
    for exchange in exchanges:
        try:
            value = json.loads(exchange.request.content)
        except (ValueError, RecursionError):
            continue
        names |= dict.fromkeys(value) if isinstance(value, dict) else {}
    return tuple(f"['{name}']" for name in names if name and "'" not in name)
