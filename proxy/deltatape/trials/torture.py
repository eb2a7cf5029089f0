"""`deltatape torture`: runs a command against variations of tapes, and judges each run.

Strategy: first the tapes as they are, twice: what the command does then is what is right, and a
command that does not do the same again cannot be judged. Then task after task (`torture_plan`), a
few at a time. A task that fails is run again for each of its exchanges alone, which tells which
one it is; with one exchange it is run again as it was, which tells whether it always fails.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from deltatape.clock import SystemClock
from deltatape.errors import DeltatapeError
from deltatape.model.torture import Cell, Row, Tortured, Verdict
from deltatape.trials.torture_judge import Judged, Standard, judged, standing_problem, unended
from deltatape.trials.torture_plan import ALL, Task, Try, alone, tasks
from deltatape.trials.torture_rig import Rig, Runner
from deltatape.trials.trial import Outcome

STANDARD_RUNS = 2
_PRINTED = 1500
"""Characters of what a failed run printed that are kept."""


def torture(
    rig: Rig,
    begun: Callable[[int], None] = lambda _: None,
    done: Callable[[tuple[Cell, ...]], None] = lambda _: None,
) -> Tortured:
    """Run all of it.

    Args:
        rig: what is to be run.
        begun: is told how many tasks there are.
        done: is told the cells of each task when it is done.

    Raises:
        DeltatapeError: the command cannot be run.
    """
    clock = SystemClock()
    started_ns = clock.now_ns()
    result = asyncio.run(_tortured(rig, begun, done))
    return replace(result, seconds=(clock.now_ns() - started_ns) / 1e9)


async def _tortured(
    rig: Rig,
    begun: Callable[[int], None],
    done: Callable[[tuple[Cell, ...]], None],
) -> Tortured:
    runner = Runner(rig)
    outcomes = [await runner.run({}) for _ in range(STANDARD_RUNS)]
    problem = await _problem(rig, outcomes)
    asked = _asked_for(rig, outcomes[0])
    varied = [at for at in asked if at in rig.only or not rig.only]
    cells: tuple[Cell, ...] = ()
    if not problem:
        rack = _Rack(rig, runner, Standard(outcomes, rig.manners))
        planned = tasks(rig.variations, rig.exchanges, varied, rig.seeds)
        begun(sum(1 if one.harmless else len(varied) for one in rig.variations))
        cells = await _all(rack, planned, rig.jobs, done)
    together = (ALL,) if any(cell.exchange == ALL for cell in cells) else ()
    return Tortured(
        command=rig.command,
        tapes=tuple(dict.fromkeys(exchange.tape for exchange in rig.exchanges)),
        columns=(*(rig.labels[at] for at in varied), *together),
        idle=tuple(label for at, label in enumerate(rig.labels) if at not in asked),
        rows=tuple(
            Row(name=one.name, harmless=one.harmless, summary=one.summary) for one in rig.variations
        ),
        cells=cells,
        problem=problem,
        printed=_printed(rig, outcomes[0]) if problem else "",
        runs=runner.runs,
    )


async def _problem(rig: Rig, outcomes: Sequence[Outcome]) -> str:
    """Why the tapes as they are can be no standard; "": they can."""
    if rig.seclusion is not None and rig.seclusion.refused:
        return rig.seclusion.problem()
    problem = standing_problem(outcomes, rig.manners, oracle=rig.oracle is not None)
    if problem or rig.oracle is None:
        return problem
    found = await rig.oracle.judged(outcomes[1], outcomes[0], variation="", harmless=True)
    return "" if found.verdict.passes else found.why


def _asked_for(rig: Rig, outcome: Outcome) -> tuple[int, ...]:
    """The positions of the exchanges that were played."""
    played = {(one.exchange.tape, one.exchange.number) for one in outcome.report.played}
    return tuple(at for at, one in enumerate(rig.exchanges) if (one.tape, one.number) in played)


async def _all(
    rack: "_Rack",
    planned: Iterable[Task],
    jobs: int,
    done: Callable[[tuple[Cell, ...]], None],
) -> tuple[Cell, ...]:
    """The cells of every task, in the order of the tasks."""
    found: dict[int, tuple[Cell, ...]] = {}
    waiting = iter(enumerate(planned))

    async def work() -> None:
        for number, task in waiting:
            found[number] = await rack.cells(task)
            done(found[number])

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(jobs):
                group.create_task(work())
    except* DeltatapeError as group_error:
        raise _first(group_error) from None
    return tuple(cell for number in sorted(found) for cell in found[number])


def _first(group: BaseExceptionGroup[DeltatapeError]) -> DeltatapeError:
    error = group.exceptions[0]
    assert isinstance(error, DeltatapeError)
    return error


class _Rack:
    """Runs tasks."""

    def __init__(self, rig: Rig, runner: Runner, standard: Standard) -> None:
        self._rig = rig
        self._runner = runner
        self._standard = standard

    async def cells(self, task: Task) -> tuple[Cell, ...]:
        """What becomes of a task: a cell for each of its exchanges, perhaps one for `all`."""
        found = {at: self._cell(task, at, Judged(Verdict.NO_PLACE)) for at in task.positions}
        rest: tuple[Cell, ...] = ()
        for number, attempt in enumerate(task.tries, 1):
            outcome, told = await self._run(task, attempt)
            if not told.verdict.passes:
                failed, rest = await self._failed(task, attempt, outcome, told)
                found |= failed
                break
            seconds = outcome.seconds
            for at in attempt.varied:
                found[at] = replace(self._cell(task, at, told), seconds=seconds, runs=number)
        return (*found.values(), *rest)

    async def _run(self, task: Task, attempt: Try) -> tuple[Outcome, Judged]:
        variation = task.variation
        outcome = await self._runner.run(
            attempt.varied,
            name=variation.name,
            harmless=variation.harmless,
            standard_s=self._standard.seconds,
        )
        oracle = self._rig.oracle
        ended = unended(outcome)
        if oracle is None or ended is not None:
            return outcome, ended or judged(outcome, self._standard, harmless=variation.harmless)
        return outcome, await oracle.judged(
            outcome, self._standard.first, variation=variation.name, harmless=variation.harmless
        )

    async def _failed(
        self, task: Task, attempt: Try, outcome: Outcome, told: Judged
    ) -> tuple[Mapping[int, Cell], tuple[Cell, ...]]:
        """The cells of a try that failed: of its exchanges, and of all at once."""
        if len(attempt.varied) == 1:
            (position,) = attempt.varied
            sure = await self._confirmed(task, attempt, told)
            return {position: self._shown(task, attempt, position, outcome, sure)}, ()
        found = {}
        for position in attempt.varied:
            single = alone(task, attempt, position)
            (lone,) = single.tries
            own, said = await self._run(single, lone)
            cell = replace(self._cell(task, position, said), seconds=own.seconds, runs=1)
            if not said.verdict.passes:
                cell = self._shown(single, lone, position, own, said)
            found[position] = cell
        if all(cell.verdict.passes for cell in found.values()):
            return found, (self._shown(task, attempt, None, outcome, told),)
        return found, ()

    async def _confirmed(self, task: Task, attempt: Try, told: Judged) -> Judged:
        """`told`, and whether it is so each time."""
        if told.verdict is Verdict.HANGS:  # no accident, and takes long
            return told
        _, second = await self._run(task, attempt)
        return told._replace(why=f"in 1 of 2 runs: {told.why}") if second.verdict.passes else told

    def _cell(self, task: Task, position: int, told: Judged) -> Cell:
        return Cell(
            variation=task.variation.name,
            harmless=task.variation.harmless,
            exchange=self._rig.labels[position],
            verdict=told.verdict,
            why=told.why,
        )

    def _shown(
        self, task: Task, attempt: Try, position: int | None, outcome: Outcome, told: Judged
    ) -> Cell:
        """A cell that failed, with all that is needed to see it again."""
        name = task.variation.name
        label = ALL if position is None else self._rig.labels[position]
        seed = "" if attempt.seed is None else f"-{attempt.seed}"
        kept = f"{name}-{label.rpartition('#')[2]}{seed}"
        return Cell(
            variation=name,
            harmless=task.variation.harmless,
            exchange=label,
            verdict=told.verdict,
            why=told.why,
            seed=attempt.seed,
            seconds=outcome.seconds,
            runs=1,
            reproduce=self._rig.filing.line(name, label, attempt.seed),
            kept=self._rig.filing.keep(kept, self._runner.played(attempt.varied)),
            printed=_printed(self._rig, outcome),
        )


def _printed(rig: Rig, outcome: Outcome) -> str:
    """The end of what the command printed, both outputs."""
    texts = (rig.manners.text(each).strip() for each in (outcome.stdout, outcome.stderr))
    return "\n".join(_ending(text) for text in texts if text)


def _ending(text: str) -> str:
    """The last lines of a text, of a long last one its end; `...` stands for what is left out."""
    if len(text) <= _PRINTED:
        return text
    cut = text[-_PRINTED - 1 :]  # with what may be the line end before the first character
    at = cut.find("\n", 0, _PRINTED // 2)
    return f"...{cut[1:]}" if at < 0 else f"...{cut[at:]}"
