"""`deltatape torture`: run a command against variations of tapes, and judge each run.

Strategy: the unchanged tapes come first, twice. They show what is right; a command that differs
between these two runs cannot be judged. Then come the tasks (`torture_plan`), a few at a time. A
task that fails is run again for each of its exchanges alone, to find the one that matters; with
only one exchange it is run again unchanged, to find out whether it always fails.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from deltatape.clock import SystemClock
from deltatape.errors import DeltatapeError
from deltatape.http1.listener import Address
from deltatape.match.schedule import INSTANT
from deltatape.model.exchange import Exchange
from deltatape.model.torture import MatrixCell, MatrixRow, RunVerdict, TortureResult
from deltatape.player.play_options import PlayOptions, RunReadBack, Stage, StagedExchange
from deltatape.replay.guard import NetworkGuard
from deltatape.replay.playback import ANY_PORT
from deltatape.replay.session import CommandGuard
from deltatape.trials.torture_judge import (
    BaselineRuns,
    Oracle,
    OutputRules,
    VariationVerdict,
    baseline_problem,
    judged,
    stop_verdict,
)
from deltatape.trials.torture_plan import ALL, CaseFiler, TrialAttempt, VariationTask, alone, tasks
from deltatape.trials.trial import SharedRunOptions, TrialResult, attempt
from deltatape.vary.shape import at_tempo
from deltatape.vary.variation import Variation

BASELINE_RUNS = 2
_NONE: Mapping[str, str] = MappingProxyType({})
_PRINTED = 1500
"""How much of a failed run's output is kept, in characters."""


# Runs the command once, against recorded or varied tapes.

BASELINE_S = 60.0
"""How long a run with the unchanged tapes may take."""
_READ_S = 0.0002
"""The most time that a read takes, on both sides together."""
_PATIENCE = 3.0
"""The factor on the time limit when a run is repeated because it did not end in time."""
_SLOWER = 2.0
"""The factor by which parallel runs may slow a run down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TortureSetup:
    """What to run, and how."""

    command: tuple[str, ...]
    exchanges: tuple[Exchange, ...]
    """Only those with a provider."""
    variations: tuple[Variation, ...]
    environ: Mapping[str, str]
    folder: Path
    filing: CaseFiler
    only: frozenset[int] = frozenset()
    """Positions of the exchanges that are varied; none: all."""
    seeds: tuple[int, ...] = (1, 2, 3)
    deadline_s: float = 10.0
    """How much longer a run may take than with the unchanged tapes."""
    jobs: int = 1
    volatile: tuple[str, ...] = ()
    output_rules: OutputRules = field(default_factory=OutputRules)
    oracle: Oracle | None = None
    listen: Address = ANY_PORT
    """Where the player listens; a fixed port needs one job."""
    network_guard: NetworkGuard | None = None
    """Keeps the command from bypassing the player; its context is entered already."""
    lead: CommandGuard | None = None
    """Leads the command's requests to the player, which then needs a fixed port."""

    @property
    def shared(self) -> SharedRunOptions:
        """Return the options that all runs share."""
        guard = self.network_guard
        return SharedRunOptions(
            variables={} if guard is None else guard.variables,
            led=self.lead is not None,
            listen=self.listen,
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the labels of the exchanges in the matrix."""
        several = len({exchange.tape for exchange in self.exchanges}) > 1
        return tuple(
            f"{one.tape}#{one.number}" if several else f"#{one.number}" for one in self.exchanges
        )


class TortureRunner:
    """Runs the command against its tapes."""

    def __init__(self, setup: TortureSetup, variables: Mapping[str, str] = _NONE) -> None:
        """Args: variables: set in the command's environment, after all others."""
        self._setup = setup
        shared = setup.shared
        self._shared = replace(shared, variables={**shared.variables, **variables})
        self._plain = tuple(at_tempo(exchange, INSTANT) for exchange in setup.exchanges)
        self.runs = 0

    def played(self, varied: Mapping[int, Exchange]) -> tuple[Exchange, ...]:
        """Return what to play: varied exchanges by position, the others unchanged."""
        return tuple(varied.get(at, exchange) for at, exchange in enumerate(self._plain))

    async def run(
        self,
        varied: Mapping[int, Exchange],
        *,
        name: str = "",
        harmless: bool = True,
        baseline_s: float = BASELINE_S,
    ) -> TrialResult:
        """Run once, and again with more time if a run did not end that should have.

        Args:
            varied: exchanges to play instead, by position.
            name: the name of the variation.
            harmless: whether they are complete. An incomplete one is played as recorded if the
                client retries.
            baseline_s: how long the command takes with the unchanged tapes.

        Raises:
            DeltatapeError: the command cannot be run.
        """
        limit_s = BASELINE_S
        if varied:
            own_s = sum(map(_playing_s, varied.values()))
            limit_s = self._setup.deadline_s + own_s + _SLOWER * baseline_s
        stage = self._stage(varied, name, once=not harmless)
        outcome = await self._once(stage, limit_s)
        if outcome.timed_out and harmless and varied:
            return await self._once(stage, _PATIENCE * limit_s)
        return outcome

    def _stage(self, varied: Mapping[int, Exchange], name: str, *, once: bool) -> Stage:
        """Return a stage that plays varied exchanges; with `once` only to the first request."""
        played: set[int] = set()

        def stage(position: int, _: Exchange) -> StagedExchange:
            exchange = varied.get(position)
            if exchange is None or position in played:
                return StagedExchange(exchange=self._plain[position])
            if once:
                played.add(position)
            return StagedExchange(exchange=exchange, spent=not once, note=name)

        return stage

    async def _once(self, stage: Stage, limit_s: float) -> TrialResult:
        self.runs += 1
        setup = self._setup
        playing = PlayOptions(
            hold_s=_PATIENCE * limit_s + 1,
            volatile=setup.volatile,
            stage=stage,
            read_back=RunReadBack(),
        )
        return await attempt(
            setup.command,
            setup.exchanges,
            playing,
            setup.environ,
            setup.folder,
            limit_s,
            shared=self._shared,
        )


def _playing_s(exchange: Exchange) -> float:
    """Return how long an exchange takes to play and to read."""
    request, end = exchange.request, exchange.end
    waits_s = (end.t_ns - (request.t_end_ns or request.t_ns)) / 1e9 if end else 0.0
    return waits_s + _READ_S * len(exchange.reads)


def torture(
    setup: TortureSetup,
    on_start: Callable[[int], None] = lambda _: None,
    on_done: Callable[[tuple[MatrixCell, ...]], None] = lambda _: None,
) -> TortureResult:
    """Run the whole matrix.

    Args:
        setup: what is to be run.
        on_start: gets the number of tasks.
        on_done: gets the cells of each finished task.

    Raises:
        DeltatapeError: the command cannot be run.
    """
    clock = SystemClock()
    started_ns = clock.now_ns()
    result = asyncio.run(_run_matrix(setup, on_start, on_done))
    return replace(result, seconds=(clock.now_ns() - started_ns) / 1e9)


async def _run_matrix(
    setup: TortureSetup,
    on_start: Callable[[int], None],
    on_done: Callable[[tuple[MatrixCell, ...]], None],
) -> TortureResult:
    if setup.lead is None:
        return await _run_cells(TortureRunner(setup), setup, on_start, on_done)
    variables = await setup.lead.start(setup.listen.port)
    try:
        return await _run_cells(TortureRunner(setup, variables), setup, on_start, on_done)
    finally:
        await setup.lead.stop()


async def _run_cells(
    runner: TortureRunner,
    setup: TortureSetup,
    on_start: Callable[[int], None],
    on_done: Callable[[tuple[MatrixCell, ...]], None],
) -> TortureResult:
    outcomes = [await runner.run({}) for _ in range(BASELINE_RUNS)]
    problem = await _baseline_problem(setup, outcomes)
    requested = _requested(setup, outcomes[0])
    varied = [at for at in requested if at in setup.only or not setup.only]
    cells: tuple[MatrixCell, ...] = ()
    if not problem:
        task_runner = _TaskRunner(setup, runner, BaselineRuns(outcomes, setup.output_rules))
        planned = tasks(setup.variations, setup.exchanges, varied, setup.seeds)
        on_start(sum(1 if one.harmless else len(varied) for one in setup.variations))
        cells = await _run_tasks(task_runner, planned, setup.jobs, on_done)
    together = (ALL,) if any(cell.exchange == ALL for cell in cells) else ()
    return TortureResult(
        command=setup.command,
        tapes=tuple(dict.fromkeys(exchange.tape for exchange in setup.exchanges)),
        columns=(*(setup.labels[at] for at in varied), *together),
        idle=tuple(label for at, label in enumerate(setup.labels) if at not in requested),
        rows=tuple(
            MatrixRow(name=one.name, harmless=one.harmless, summary=one.summary)
            for one in setup.variations
        ),
        cells=cells,
        problem=problem,
        printed=_printed(setup, outcomes[0]) if problem else "",
        runs=runner.runs,
    )


async def _baseline_problem(setup: TortureSetup, outcomes: Sequence[TrialResult]) -> str:
    """Return why the unchanged tapes cannot serve as a baseline; "" if they can."""
    if setup.network_guard is not None and setup.network_guard.refused:
        return setup.network_guard.problem()
    problem = baseline_problem(outcomes, setup.output_rules, oracle=setup.oracle is not None)
    if problem or setup.oracle is None:
        return problem
    found = await setup.oracle.judged(outcomes[1], outcomes[0], variation="", harmless=True)
    return "" if found.verdict.passes else found.why


def _requested(setup: TortureSetup, outcome: TrialResult) -> tuple[int, ...]:
    """Return the positions of the exchanges that were played."""
    played = {(one.exchange.tape, one.exchange.number) for one in outcome.report.played}
    return tuple(at for at, one in enumerate(setup.exchanges) if (one.tape, one.number) in played)


async def _run_tasks(
    task_runner: "_TaskRunner",
    planned: Iterable[VariationTask],
    jobs: int,
    on_done: Callable[[tuple[MatrixCell, ...]], None],
) -> tuple[MatrixCell, ...]:
    """Return the cells of every task, in the order of the tasks."""
    found: dict[int, tuple[MatrixCell, ...]] = {}
    waiting = iter(enumerate(planned))

    async def work() -> None:
        for number, task in waiting:
            found[number] = await task_runner.cells(task)
            on_done(found[number])

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(jobs):
                group.create_task(work())
    except ExceptionGroup as errors:  # Python 3.11.2 raises a group from `except*`, too
        ours, others = errors.split(DeltatapeError)
        if ours is None or others is not None:
            raise
        raise ours.exceptions[0] from None
    return tuple(cell for number in sorted(found) for cell in found[number])


class _TaskRunner:
    """Runs tasks."""

    def __init__(self, setup: TortureSetup, runner: TortureRunner, baseline: BaselineRuns) -> None:
        self._setup = setup
        self._runner = runner
        self._baseline = baseline

    async def cells(self, task: VariationTask) -> tuple[MatrixCell, ...]:
        """Return a task's cells: one per exchange, and perhaps one for `all`."""
        found = {
            at: self._cell(task, at, VariationVerdict(RunVerdict.NO_PLACE)) for at in task.positions
        }
        rest: tuple[MatrixCell, ...] = ()
        for number, attempted in enumerate(task.tries, 1):
            outcome, judgement = await self._run(task, attempted)
            if not judgement.verdict.passes:
                failed, rest = await self._failed(task, attempted, outcome, judgement)
                found |= failed
                break
            seconds = outcome.seconds
            for at in attempted.varied:
                found[at] = replace(self._cell(task, at, judgement), seconds=seconds, runs=number)
        return (*found.values(), *rest)

    async def _run(
        self, task: VariationTask, attempted: TrialAttempt
    ) -> tuple[TrialResult, VariationVerdict]:
        variation = task.variation
        outcome = await self._runner.run(
            attempted.varied,
            name=variation.name,
            harmless=variation.harmless,
            baseline_s=self._baseline.seconds,
        )
        oracle = self._setup.oracle
        ended = stop_verdict(outcome)
        if oracle is None or ended is not None:
            return outcome, ended or judged(outcome, self._baseline, harmless=variation.harmless)
        return outcome, await oracle.judged(
            outcome, self._baseline.first, variation=variation.name, harmless=variation.harmless
        )

    async def _failed(
        self,
        task: VariationTask,
        attempted: TrialAttempt,
        outcome: TrialResult,
        judgement: VariationVerdict,
    ) -> tuple[Mapping[int, MatrixCell], tuple[MatrixCell, ...]]:
        """Return the cells of a failed attempt: of its exchanges, and of all at once."""
        if len(attempted.varied) == 1:
            (position,) = attempted.varied
            confirmed = await self._confirm(task, attempted, judgement)
            return {position: self._failed_cell(task, attempted, position, outcome, confirmed)}, ()
        found = {}
        for position in attempted.varied:
            single = alone(task, attempted, position)
            (single_attempt,) = single.tries
            own, own_judgement = await self._run(single, single_attempt)
            cell = replace(self._cell(task, position, own_judgement), seconds=own.seconds, runs=1)
            if not own_judgement.verdict.passes:
                cell = self._failed_cell(single, single_attempt, position, own, own_judgement)
            found[position] = cell
        if all(cell.verdict.passes for cell in found.values()):
            return found, (self._failed_cell(task, attempted, None, outcome, judgement),)
        return found, ()

    async def _confirm(
        self, task: VariationTask, attempted: TrialAttempt, judgement: VariationVerdict
    ) -> VariationVerdict:
        """Return `judgement`, noting whether a second run passes."""
        if judgement.verdict is RunVerdict.HANGS:  # a second run would take long and hang again
            return judgement
        _, second = await self._run(task, attempted)
        return (
            judgement._replace(why=f"in 1 of 2 runs: {judgement.why}")
            if second.verdict.passes
            else judgement
        )

    def _cell(self, task: VariationTask, position: int, judgement: VariationVerdict) -> MatrixCell:
        return MatrixCell(
            variation=task.variation.name,
            harmless=task.variation.harmless,
            exchange=self._setup.labels[position],
            verdict=judgement.verdict,
            why=judgement.why,
        )

    def _failed_cell(
        self,
        task: VariationTask,
        attempted: TrialAttempt,
        position: int | None,
        outcome: TrialResult,
        judgement: VariationVerdict,
    ) -> MatrixCell:
        """Return a failed cell with all that is needed to reproduce it."""
        name = task.variation.name
        label = ALL if position is None else self._setup.labels[position]
        seed = "" if attempted.seed is None else f"-{attempted.seed}"
        kept = f"{name}-{label.rpartition('#')[2]}{seed}"
        return MatrixCell(
            variation=name,
            harmless=task.variation.harmless,
            exchange=label,
            verdict=judgement.verdict,
            why=judgement.why,
            seed=attempted.seed,
            seconds=outcome.seconds,
            runs=1,
            reproduce=self._setup.filing.line(name, label, attempted.seed),
            kept=self._setup.filing.keep(kept, self._runner.played(attempted.varied)),
            printed=_printed(self._setup, outcome),
        )


def _printed(setup: TortureSetup, outcome: TrialResult) -> str:
    """Return the end of what the command printed, both outputs."""
    texts = (setup.output_rules.text(each).strip() for each in (outcome.stdout, outcome.stderr))
    return "\n".join(_ending(text) for text in texts if text)


def _ending(text: str) -> str:
    """Return the last lines of a text; `...` marks what is omitted."""
    if len(text) <= _PRINTED:
        return text
    cut = text[-_PRINTED - 1 :]  # one more: the first character may start a line
    at = cut.find("\n", 0, _PRINTED // 2)
    return f"...{cut[1:]}" if at < 0 else f"...{cut[at:]}"
