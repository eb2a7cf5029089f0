"""Plan the runs of torture: every variation at every place that a seed chooses.

A harmless variation is applied to all exchanges at once: a command that passes it passes each
alone. A hostile one breaks one exchange at a time, since most commands end at the first broken one.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deltatape import __version__
from deltatape.clock import SystemClock, rfc3339
from deltatape.errors import UsageError
from deltatape.match.schedule import INSTANT
from deltatape.model.exchange import Exchange, Source
from deltatape.mutate import SeededChoices
from deltatape.store.names import SUFFIX, ulid
from deltatape.store.rewrite import PRIVATE, write_new
from deltatape.tape.payload import Stop
from deltatape.tape.record import Header
from deltatape.tape.serialize import tape_lines
from deltatape.vary.shape import at_tempo
from deltatape.vary.variation import Variation

ALL = "all"
"""The column of failures that appear only when all exchanges are varied at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialAttempt:
    """One way to run the command.

    Attributes:
        seed: the seed of the random choices; None if there were none.
        varied: by position, the exchanges to play instead.
    """

    seed: int | None
    varied: Mapping[int, Exchange]


@dataclass(frozen=True, slots=True, kw_only=True)
class VariationTask:
    """A variation of some exchanges and the ways to try it; none if it does not apply."""

    variation: Variation
    positions: tuple[int, ...]
    tries: tuple[TrialAttempt, ...]


def tasks(
    variations: Sequence[Variation],
    exchanges: Sequence[Exchange],
    positions: Sequence[int],
    seeds: Sequence[int],
) -> Iterator[VariationTask]:
    """Yield all tasks, in the order of the matrix's rows.

    Args:
        variations: the rows.
        exchanges: all that are played.
        positions: the positions of those that are varied, the columns.
        seeds: for random choices, at least one.
    """
    for variation in variations:
        groups = [tuple(positions)] if variation.harmless else [(one,) for one in positions]
        for group in groups:
            yield VariationTask(
                variation=variation,
                positions=group,
                tries=tuple(_tries(variation, exchanges, group, seeds)),
            )


def alone(task: VariationTask, attempt: TrialAttempt, position: int) -> VariationTask:
    """Return `attempt` for only one of its exchanges."""
    one = TrialAttempt(seed=attempt.seed, varied={position: attempt.varied[position]})
    return VariationTask(variation=task.variation, positions=(position,), tries=(one,))


def _tries(
    variation: Variation,
    exchanges: Sequence[Exchange],
    positions: Sequence[int],
    seeds: Sequence[int],
) -> Iterator[TrialAttempt]:
    """Yield the different ways, for as many seeds as there are."""
    made: list[Mapping[int, Exchange]] = []
    for seed in seeds:
        chances = {position: _Chance(seed, position) for position in positions}
        varied: dict[int, Exchange] = {}
        for position, chance in chances.items():
            found = variation.make(at_tempo(exchanges[position], INSTANT), chance)
            if found is not None:
                varied[position] = found
        chosen = any(chance.asked for chance in chances.values())
        if varied and varied not in made:
            made.append(varied)
            yield TrialAttempt(seed=seed if chosen else None, varied=varied)
        if not chosen:
            return


class _Chance:
    """Seeded choices that remember whether they were used.

    They depend on the seed and the exchange only, not on what else is varied.
    """

    def __init__(self, seed: int, position: int) -> None:
        self._seeded = SeededChoices((seed << 32) + position)
        self.asked = False

    def choose(self, number: int) -> int:
        self.asked = self.asked or number > 1
        return self._seeded.choose(number)


# Reproduces a failed cell: its command line and its tape.


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFiler:
    """Makes failed cells reproducible.

    Attributes:
        tapes: as the user named them.
        options: the options of the command line, as far as the run of a single cell needs them.
        command: what is run.
        folder: for the tapes; None: write none.
    """

    tapes: tuple[str, ...]
    options: tuple[str, ...]
    command: tuple[str, ...]
    folder: Path | None = None

    def line(self, variation: str, exchange: str, seed: int | None) -> str:
        """Return the command line that runs one cell alone; `exchange` is its column."""
        words = ["deltatape", "torture", *self.tapes, "--only", variation]
        if exchange != ALL:
            words += ["--exchange", exchange.removeprefix("#")]
        if seed is not None:
            words += ["--seed", str(seed), "--seeds", "1"]
        return shlex.join([*words, *self.options, "--", *self.command])

    def keep(self, name: str, exchanges: Sequence[Exchange]) -> str:
        """Write what was played as a tape; return its path, "" without a folder."""
        if self.folder is None:
            return ""
        path = self.folder / f"{name}{SUFFIX}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            write_new(path, PRIVATE, tape_lines(_header(exchanges), exchanges, _STOP))
        except OSError as error:
            raise UsageError(f"--keep {path}: {error.strerror or error}") from error
        return str(path)


_STOP = Stop(reason="varied", exit_code=None)


def _header(exchanges: Sequence[Exchange]) -> Header:
    clock = SystemClock()
    first = exchanges[0]
    # An imported exchange has no ending, but a variation may have added one.
    ended = any(exchange.end is not None for exchange in exchanges)
    return Header(
        id=ulid(clock),
        tool=f"deltatape {__version__}",
        recorded_at=first.recorded_at or rfc3339(clock.wall_ns()),
        source=Source.GATEWAY if ended else first.source,
    )
