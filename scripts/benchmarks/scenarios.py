"""What is measured, and the columns in which it is told."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.clients import AT_ONCE
from benchmarks.traffic import Plan

CPU, PROXY_CPU = "cpu_us", "proxy_cpu_us"
"""CPU time of all processes, and of all but the one that analyses."""
BEHIND = "behind_s"
"""Seconds of work that were left after the last byte, for each 1,000 answers."""
P50, P99, ADDED = "p50_us", "p99_us", "added_us"
RATE = "rate"
MEMORY = "kib"
FIRST = "first_us"
TURN_P99, TURN_MAX = "turn_p99_us", "turn_max_us"
TURN_CPU_P99, TURN_CPU_MAX = "turn_cpu_p99_us", "turn_cpu_max_us"
"""CPU time per turn of the event loop."""


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
        tls: whether the way to the provider is encrypted.
        warm: whether each connection has had an answer before it is measured, as connections of
            applications have: neither handshakes nor imports are part of what is measured.
        timed: whether the turns of a fresh proxy's event loop are counted.
        at_once: how many connections are opened before answers are read.
        proxies: the names of those that take part; (): all.
        columns: what is told.
    """

    name: str
    title: str
    connections: int
    plan: Plan
    seconds: float = 0.0
    per_delta: bool = True
    fresh: bool = False
    tls: bool = False
    warm: bool = False
    timed: bool = False
    at_once: int = AT_ONCE
    proxies: tuple[str, ...] = ()
    columns: tuple[Column, ...]

    def quick(self) -> "Scenario":
        """A small one of the same kind."""
        plan = replace(
            self.plan, deltas=min(self.plan.deltas, 20), upload=min(self.plan.upload, 1 << 20)
        )
        return replace(
            self,
            connections=min(self.connections, 20),
            plan=plan,
            seconds=min(self.seconds, 0.2),
        )


TLS_PROXIES = ("nginx", "deltatape")
TIMED_PROXIES = ("deltatape", "bare asyncio")
_UPLOAD = Plan(deltas=0, upload=8_000_000)
_PACED = (
    Column(key=CPU, title="CPU µs/delta", decimals=1, ratio=True),
    Column(key=PROXY_CPU, title="without analysis", decimals=1, ratio=True),
    Column(key=P50, title="p50 µs"),
    Column(key=P99, title="p99 µs"),
    Column(key=ADDED, title="p50 over direct, µs"),
)
_IDLE = (Column(key=MEMORY, title="KiB/stream", decimals=1, ratio=True),)

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
        name="paced-1000",
        title="1000 streams, 5 deltas/s each",
        connections=1000,
        plan=Plan(deltas=15, rate=5),
        columns=_PACED,
    ),
    Scenario(
        name="tls-200",
        title="200 streams, 50 deltas/s each, TLS to the provider",
        connections=200,
        plan=Plan(deltas=75, rate=50),
        fresh=True,
        tls=True,
        warm=True,
        proxies=TLS_PROXIES,
        columns=_PACED,
    ),
    Scenario(
        name="connect-500",
        title="500 clients that connect at once, for one delta each",
        connections=500,
        plan=Plan(deltas=1),
        fresh=True,
        at_once=500,
        columns=(
            Column(key=FIRST, title="slowest first byte, µs", ratio=True),
            Column(key=P50, title="p50 µs"),
            Column(key=P99, title="p99 µs"),
        ),
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
            Column(key=PROXY_CPU, title="without analysis", ratio=True),
            Column(key=BEHIND, title="s behind/1000", decimals=2),
            Column(key=P50, title="p50 µs"),
            Column(key=P99, title="p99 µs"),
        ),
    ),
    Scenario(
        name="uploads",
        title="Requests of 8 MB on 4 kept connections, answered by small JSON",
        connections=4,
        plan=_UPLOAD,
        seconds=0.75,
        per_delta=False,
        columns=(
            Column(key=RATE, title="uploads/s", decimals=1, ratio=True),
            Column(key=CPU, title="CPU µs/upload", ratio=True),
            Column(key=PROXY_CPU, title="without analysis", ratio=True),
        ),
    ),
    Scenario(
        name="uploads-turns",
        title="Turns of the event loop during requests of 8 MB on 4 kept connections",
        connections=4,
        plan=_UPLOAD,
        seconds=0.75,
        per_delta=False,
        fresh=True,
        warm=True,
        timed=True,
        proxies=TIMED_PROXIES,
        columns=(
            Column(key=TURN_CPU_P99, title="CPU µs/turn, p99"),
            Column(key=TURN_CPU_MAX, title="most"),
            Column(key=TURN_P99, title="µs by the clock, p99"),
            Column(key=TURN_MAX, title="most"),
        ),
    ),
    Scenario(
        name="idle",
        title="1000 open streams that are silent",
        connections=1000,
        plan=Plan(deltas=1, hold=True),
        fresh=True,
        columns=_IDLE,
    ),
    Scenario(
        name="idle-tls",
        title="1000 open streams that are silent, TLS to the provider",
        connections=1000,
        plan=Plan(deltas=1, hold=True),
        fresh=True,
        tls=True,
        proxies=TLS_PROXIES,
        columns=_IDLE,
    ),
)
"""Every scenario, in the order of the page."""
