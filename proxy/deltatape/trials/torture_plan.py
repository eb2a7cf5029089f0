"""Which runs torture makes: every variation that has a place, at every place that chance gives it.

A harmless variation is laid upon all exchanges at once: a command that stands that, stands each. A
hostile one breaks one exchange at a time, since most commands end at the first that breaks.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from deltatape.match.schedule import Tempo
from deltatape.model.exchange import Exchange
from deltatape.mutate import Seeded
from deltatape.vary.tempo import at_tempo
from deltatape.vary.variation import Variation

ALL = "all"
"""The column of what is only seen with all exchanges varied at once."""
_AT_ONCE = Tempo(factor=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One way to run the command.

    Attributes:
        seed: what chance was made of; None if nothing was left to chance.
        varied: by position, the exchanges to play instead.
    """

    seed: int | None
    varied: Mapping[int, Exchange]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A variation of some exchanges, and the ways to try it; without one it has no place."""

    variation: Variation
    positions: tuple[int, ...]
    tries: tuple[Try, ...]


def tasks(
    variations: Sequence[Variation],
    exchanges: Sequence[Exchange],
    positions: Sequence[int],
    seeds: Sequence[int],
) -> Iterator[Task]:
    """All that is to be done, in the order of the matrix's rows.

    Args:
        variations: the rows.
        exchanges: all that are played.
        positions: of those that are varied, the columns.
        seeds: for what is left to chance, at least one.
    """
    for variation in variations:
        groups = [tuple(positions)] if variation.harmless else [(one,) for one in positions]
        for group in groups:
            yield Task(
                variation=variation,
                positions=group,
                tries=tuple(_tries(variation, exchanges, group, seeds)),
            )


def alone(task: Task, attempt: Try, position: int) -> Task:
    """What `attempt` is for one of its exchanges."""
    one = Try(seed=attempt.seed, varied={position: attempt.varied[position]})
    return Task(variation=task.variation, positions=(position,), tries=(one,))


def _tries(
    variation: Variation,
    exchanges: Sequence[Exchange],
    positions: Sequence[int],
    seeds: Sequence[int],
) -> Iterator[Try]:
    """The ways that differ, for as many seeds as there are."""
    made: list[Mapping[int, Exchange]] = []
    for seed in seeds:
        chances = {position: _Chance(seed, position) for position in positions}
        varied: dict[int, Exchange] = {}
        for position, chance in chances.items():
            found = variation.make(at_tempo(exchanges[position], _AT_ONCE), chance)
            if found is not None:
                varied[position] = found
        chosen = any(chance.asked for chance in chances.values())
        if varied and varied not in made:
            made.append(varied)
            yield Try(seed=seed if chosen else None, varied=varied)
        if not chosen:
            return


class _Chance:
    """See `Chance`; knows whether it was asked. The same for an exchange, whichever others vary."""

    def __init__(self, seed: int, position: int) -> None:
        self._seeded = Seeded((seed << 32) + position)
        self.asked = False

    def choose(self, number: int) -> int:
        """See `Chance.choose`."""
        self.asked = self.asked or number > 1
        return self._seeded.choose(number)
