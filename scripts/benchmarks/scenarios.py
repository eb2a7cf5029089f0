"""What is measured, and the columns in which it is told."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.traffic import Plan

CPU, CPU_BESIDE = "cpu_us", "cpu_beside_us"
P50, P99, ADDED = "p50_us", "p99_us", "added_us"
RATE = "rate"
MEMORY = "kib"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One figure of a scenario.

    Attributes:
        key: its name in a sample.
        title: of the column.
        decimals: how many are shown.
        ratio: whether the quotient to the yardstick is a column of its own.
    """

    key: str
    title: str
    decimals: int = 0
    ratio: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One kind of load.

    Attributes:
        name: for the command line.
        title: the heading.
        unit: what CPU time and rate are told per: an answer, or a delta.
        connections: how many at the same time.
        plan: what each request asks for.
        seconds: for how long connections go on asking; 0: each asks once.
        fresh: whether it needs a proxy that did nothing before.
        columns: what is told.
    """

    name: str
    title: str
    connections: int
    plan: Plan
    seconds: float = 0.0
    per_delta: bool = True
    fresh: bool = False
    columns: tuple[Column, ...]

    def quick(self) -> "Scenario":
        """A small one of the same kind."""
        plan = replace(self.plan, deltas=min(self.plan.deltas, 20))
        return replace(
            self,
            connections=min(self.connections, 20),
            plan=plan,
            seconds=min(self.seconds, 0.2),
        )


_PACED = (
    Column(key=CPU, title="CPU µs/delta", decimals=1, ratio=True),
    Column(key=CPU_BESIDE, title="of it beside the loop", decimals=1),
    Column(key=P50, title="p50 µs"),
    Column(key=P99, title="p99 µs"),
    Column(key=ADDED, title="p50 over direct, µs"),
)

SCENARIOS: Sequence[Scenario] = (
    Scenario(
        name="paced-50",
        title="50 streams, 50 deltas/s each",
        connections=50,
        plan=Plan(deltas=75, rate=50),
        columns=_PACED,
    ),
    Scenario(
        name="paced-200",
        title="200 streams, 50 deltas/s each",
        connections=200,
        plan=Plan(deltas=75, rate=50),
        columns=_PACED,
    ),
    Scenario(
        name="flat-out",
        title="32 streams of 500 deltas, as fast as they are taken",
        connections=32,
        plan=Plan(deltas=500),
        seconds=1.5,
        columns=(
            Column(key=RATE, title="streams/s", ratio=True),
            Column(key=CPU, title="CPU µs/delta", decimals=1),
        ),
    ),
    Scenario(
        name="requests",
        title="Small JSON requests on 32 kept connections",
        connections=32,
        plan=Plan(deltas=0),
        seconds=1.5,
        per_delta=False,
        columns=(
            Column(key=RATE, title="requests/s", ratio=True),
            Column(key=CPU, title="CPU µs/request", ratio=True),
            Column(key=CPU_BESIDE, title="of it beside the loop"),
            Column(key=P50, title="p50 µs"),
            Column(key=P99, title="p99 µs"),
        ),
    ),
    Scenario(
        name="idle",
        title="1000 open streams that are silent",
        connections=1000,
        plan=Plan(deltas=1, hold=True),
        fresh=True,
        columns=(Column(key=MEMORY, title="KiB/stream", decimals=1, ratio=True),),
    ),
)
"""Every scenario, in the order of the page."""
