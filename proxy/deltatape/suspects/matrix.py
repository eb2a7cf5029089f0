"""What every preset makes of one stream: the table behind `why --suspects`."""

from dataclasses import dataclass

from deltatape.model.suspect import Made
from deltatape.suspects.bench import Bench
from deltatape.suspects.compare import equal
from deltatape.suspects.presets import PRESETS
from deltatape.suspects.search import WORK_LIMIT, describe


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One preset, over one stream."""

    name: str
    made: Made
    differs: bool
    """Whether it makes other calls than the reference, or throws."""
    says: str
    """What it does with this stream, a sentence after "it"; "" where it comes out right."""


def rows(bench: Bench) -> tuple[Row, ...]:
    """A row per preset that can be met in this dialect, in their order, as far as time allows."""
    found = []
    reference, ids = bench.stream.calls, bench.stream.ids
    for preset in PRESETS:
        if bench.spent > WORK_LIMIT:
            break
        for client in bench.known(preset)[:1]:
            outcome = bench.outcome(client)
            made = bench.made(client, outcome)
            right = equal(outcome.calls, reference, ids) and not outcome.thrown
            says = "" if right else describe(bench, client, outcome)
            found.append(Row(name=preset.name, made=made, differs=not right, says=says))
    return tuple(found)
