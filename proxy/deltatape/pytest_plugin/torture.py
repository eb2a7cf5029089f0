"""`torture=True`: the tests generated from one test, and what each plays.

The variations are those of `deltatape torture`. Collection keeps only their names, since varied
tapes are large, and a worker of pytest-xdist collects all tests and runs few of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from deltatape.errors import DeltatapeError, UsageError
from deltatape.match.schedule import INSTANT
from deltatape.model.exchange import Exchange
from deltatape.player.play_options import Stage, StagedExchange
from deltatape.pytest_plugin.marker_options import MarkerOptions, options_of
from deltatape.pytest_plugin.tape_paths import exchanges_at
from deltatape.replay.report import name_of
from deltatape.trials.torture_plan import tasks
from deltatape.vary.shape import at_tempo
from deltatape.vary.variation import VARIATIONS, Variation

AS_RECORDED = "as-recorded"


@dataclass(frozen=True, slots=True, kw_only=True)
class VariationCase:
    """One generated test.

    Attributes:
        name: the name of the test, within its brackets.
        variation: its name; "" for the tapes as they are.
        positions: the positions of the exchanges that are varied, in the order of the tapes.
    """

    name: str = AS_RECORDED
    variation: str = ""
    positions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VariedPlay:
    """What a variation plays.

    Attributes:
        exchanges: replace those of the tapes, with the times at which they play.
        stage: applies the same fault again if the stream is requested again.
        broken: the one of them whose stream is broken, if any.
        change: what was done, as a sentence.
    """

    exchanges: tuple[Exchange, ...]
    stage: Stage | None
    broken: Exchange | None
    change: str


def cells(definition: pytest.Item) -> list[VariationCase]:
    """Return the tests to generate; none if the tapes or the marker are unusable.

    Such problems are reported when the test runs, as one failure.
    """
    try:
        options = options_of(definition, definition.name)
        exchanges = exchanges_at(options.places)
        found = tuple(_cells(options, exchanges))
    except DeltatapeError:
        return []
    return [VariationCase(), *found]


def _cells(options: MarkerOptions, exchanges: Sequence[Exchange]) -> Iterator[VariationCase]:
    everywhere = range(len(exchanges))
    for task in tasks(chosen(options), exchanges, everywhere, (options.marked.seed,)):
        if not task.tries:
            continue
        name = task.variation.name
        if not task.variation.harmless and len(exchanges) > 1:
            name = f"{name}-{task.positions[0] + 1}"
        yield VariationCase(name=name, variation=task.variation.name, positions=task.positions)


def chosen(options: MarkerOptions) -> tuple[Variation, ...]:
    """Return the variations that a marker names, without those named as `!NAME`.

    Raises:
        UsageError: one is not known.
    """
    names = options.marked.torture
    if not names:
        return VARIATIONS
    known = {variation.name: variation for variation in VARIATIONS}
    for name in (name.removeprefix("!") for name in names):
        if name not in known:
            raise UsageError(
                f"@pytest.mark.tape(torture={name!r}): no variation; {', '.join(known)} are"
            )
    selected = [name for name in names if not name.startswith("!")] or known
    return tuple(known[name] for name in dict.fromkeys(selected) if f"!{name}" not in names)


def varied(
    cell: VariationCase, options: MarkerOptions, exchanges: Sequence[Exchange]
) -> VariedPlay:
    """Return what `cell` plays."""
    (variation,) = (one for one in VARIATIONS if one.name == cell.variation)
    plan = tasks((variation,), exchanges, cell.positions, (options.marked.seed,))
    task = next(one for one in plan if one.positions == cell.positions)
    (attempt,) = task.tries
    played = tuple(
        attempt.varied.get(position) or at_tempo(exchange, INSTANT)
        for position, exchange in enumerate(exchanges)
    )
    where = name_of(exchanges[task.positions[0]]) if len(task.positions) == 1 else "all exchanges"

    def stage(position: int, exchange: Exchange) -> StagedExchange:
        # Repeat the same fault if the client asks again.
        return StagedExchange(exchange=exchange, spent=position not in cell.positions)

    return VariedPlay(
        exchanges=played,
        stage=None if variation.harmless else stage,
        broken=None if variation.harmless else played[cell.positions[0]],
        change=f"{variation.name} of {where}: {variation.summary}",
    )
