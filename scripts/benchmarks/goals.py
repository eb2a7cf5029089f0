"""What the recorder is to cost at most, beside nginx, and what a run has shown of it."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.markdown import markdown
from benchmarks.proxies import BARE, OURS, YARDSTICK
from benchmarks.run import Outcome
from benchmarks.scenarios import (
    BEHIND,
    CPU,
    MEMORY,
    P50,
    P99,
    PROXY_CPU,
    RATE,
    SCENARIOS,
    TURN_CPU_MAX,
    TURN_CPU_P99,
)
from benchmarks.table import pairs

_LARGE = 100
"""From here on, decimals are noise."""
Combine = Callable[[float, float], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A limit for one figure.

    Attributes:
        scenario: its name.
        key: of the figure.
        limit: what it must not exceed; where `least`, what it must reach.
        of: makes the figure of ours and of another proxy's, in the same round.
        beside: the other proxy.
        unit: of the result.
    """

    scenario: str
    key: str
    what: str
    limit: float
    of: Combine
    beside: str = YARDSTICK
    unit: str = f"x {YARDSTICK}"
    least: bool = False

    def measured(self, outcome: Outcome, ours: str = OURS) -> float | None:
        """The median of the rounds; None where it was not measured."""
        found = [
            self.of(one.sample.values[self.key], other.sample.values[self.key])
            for one, other in pairs(outcome, self.scenario, ours, self.beside)
        ]
        return statistics.median(found) if found else None

    def is_met(self, value: float) -> bool:
        """Whether the limit is kept."""
        return value >= self.limit if self.least else value <= self.limit


def _ratio(one: float, other: float) -> float:
    return one / other


def _over(one: float, other: float) -> float:
    return one - other


def _alone(one: float, _: float) -> float:
    return one


def _of_a_delta(scenario: str) -> tuple[Goal, ...]:
    return (
        Goal(scenario=scenario, key=PROXY_CPU, what="CPU/delta", limit=1.6, of=_ratio),
        Goal(scenario=scenario, key=CPU, what="with analysis", limit=2.2, of=_ratio),
        *_delays(scenario),
    )


def _delays(scenario: str) -> tuple[Goal, ...]:
    unit = f"µs over {YARDSTICK}"
    return (
        Goal(scenario=scenario, key=P50, what="p50", limit=100, of=_over, unit=unit),
        Goal(scenario=scenario, key=P99, what="p99", limit=2000, of=_over, unit=unit),
    )


def _turn(key: str, what: str) -> Goal:
    return Goal(
        scenario="uploads-turns",
        key=key,
        what=what,
        limit=2000,
        of=_alone,
        beside=OURS,
        unit="µs of CPU",
    )


GOALS: Sequence[Goal] = (
    *_of_a_delta("paced-200"),
    Goal(
        scenario="paced-200",
        key=PROXY_CPU,
        what="CPU/delta",
        limit=1 / 4.5,
        of=_ratio,
        beside="mitmdump",
        unit="x mitmdump",
    ),
    *_of_a_delta("paced-1000"),
    *_delays("connect-500"),
    Goal(scenario="tls-200", key=PROXY_CPU, what="CPU/delta", limit=1.8, of=_ratio),
    Goal(scenario="flat-out", key=RATE, what="streams/s", limit=0.9, of=_ratio, least=True),
    Goal(scenario="requests", key=RATE, what="requests/s", limit=0.5, of=_ratio, least=True),
    Goal(scenario="requests", key=BEHIND, what="behind", limit=1, of=_alone, unit="s per 1,000"),
    Goal(scenario="uploads", key=RATE, what="uploads/s", limit=0.25, of=_ratio, least=True),
    _turn(TURN_CPU_P99, "p99 of its turns"),
    _turn(TURN_CPU_MAX, "its longest turn"),
    Goal(scenario="idle", key=MEMORY, what="memory", limit=17.6, of=_alone, unit="KiB/stream"),
    Goal(scenario="idle-tls", key=MEMORY, what="memory", limit=83, of=_alone, unit="KiB/stream"),
)
"""In the order of the page."""

_HEAD = f"""\
## Goals

What deltatape is to cost at most, and what this run has shown: medians of the rounds, each beside
nginx in the same round. *{BARE}* is what a Python program costs that passes bytes on and looks at
none of them, by the same measure: the least that any recorder made of asyncio can cost.

"""
_WHY = """
Where a goal is missed:

- **A delta** costs what a program of asyncio needs to pass it on, the column of bare asyncio, and
  what the recorder does with it: find the chunk, search it for credentials, write its line, extend
  the hash. Both together are the floor of this design, which the last table of *Where the
  recorder's time goes* shows: a goal below it cannot be met in Python. Analysis follows in a
  process of its own, on the same two processors.
- **The median delay** has the same floor: deltas of several streams arrive together and wait for
  each other, so that a delta's cost counts more than once.
- **The 99th percentile** of a thousand streams has it too. It differs between the two rounds of a
  run by up to a factor of three, and was 1.0 to 2.8 ms over nginx in four runs.
- **Flat out**, five programs want two processors, the analysis among them, and nginx's own rate
  varies by a third between rounds.
- **The machine** matters more than the last changes to the code. One with two cores of the same
  name ran Python faster and nginx slower on 2026-11-26: 2.4 times nginx for a delta at 200 streams,
  1.15 flat out and 0.15 for small requests. The code of that day takes as long per delta as this.
- **A small request** is a whole exchange. Two heads are parsed and masked, seven records written,
  connections and timers kept in order; bare asyncio looks at no byte of it. Its steps are a
  small part of the difference: most of it is calls of Python between them.
- **A large request** is read and sent on, as by bare asyncio. Besides, the recorder searches each
  byte for each credential that it has seen, looks which characters JSON escapes, copies what it has
  read into a line, and the kernel copies the line into the file. None of that is slow, but each is
  another pass over 8 MB, and memory that waits for the thread that writes. A hash is not part of
  it: only answers have one. The analysis reads it all again, on the same two processors.
- **A turn of the event loop** handles eight events at most; here most turns have a read from each
  client. A read has up to 64 KiB (with bare asyncio, 256), and is sent on, searched and encoded
  before the next. Smaller reads would make turns shorter and uploads dearer. Over loopback, what
  the kernel does for the receiver is part of a send, and of the turn.
- **Clients that connect at once** are served one after the other, and each of them is a small
  exchange with two new connections. The last one waits for all others.
- **Beside mitmdump**, a delta has the same floor: bare asyncio alone needs most of what the goal
  allows.
- **With TLS**, OpenSSL decrypts what the recorder has read, record by record; a delta costs what it
  does without TLS, and that.
- What has been tried: uvloop was not faster, and compiling the recorder's modules with mypyc made a
  small request 14 % cheaper. What would cross these limits is a proxy that is not written in
  Python, with deltatape reading what it writes.
"""


def goals_section(outcome: Outcome) -> str:
    """The goals as a Markdown table, and why some are missed."""
    head = ["load", "figure", "goal", "measured", BARE, "met"]
    rows = [head, [*["---"] * 2, *["---:"] * 3, "---"], *_rows(outcome)]
    missed = any(row[-1] == "no" for row in rows)
    return f"{_HEAD}{markdown(rows)}{_WHY if missed else ''}"


def _rows(outcome: Outcome) -> Iterator[list[str]]:
    titles = {scenario.name: scenario.title for scenario in SCENARIOS}
    for goal in GOALS:
        value = goal.measured(outcome)
        if value is None:
            continue
        bare = goal.measured(outcome, BARE)
        yield [
            titles[goal.scenario],
            f"{goal.what}, {goal.unit}",
            f"{'>=' if goal.least else '<='} {_shown(goal.limit)}",
            _shown(value),
            "-" if bare is None else _shown(bare),
            "yes" if goal.is_met(value) else "no",
        ]


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= _LARGE else f"{value:.3g}"
