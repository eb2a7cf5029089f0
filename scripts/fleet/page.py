"""Writes docs/fleet.md: the cost of a fleet. Every figure on it is computed here."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate

from benchmarks.markdown import markdown

from fleet.conversations import CAPTURED, DEFECTIVE, HEALTHY
from fleet.measuring import Comparison, Measured, Part, Step
from fleet.simulation import Fleet, Simulated, duration, rows, size
from fleet.tapes import SHARES

_DAILY = 1e8
_HOUR_S = 3_600
_MILLION = 1e6
_GOAL_SCAN, _GOAL_TWO = 0.8, 1.8
_PER_LIST = 1_000
_QUIET = 0.1
"""How much of a processor other programs may use where wall times are to mean something."""
_LIST_S = 0.1
_LARGE, _LARGER_TAPES = 10, 4
_KINDS = {
    CAPTURED: "streams of the [corpus](corpus.md)",
    HEALTHY: "recordings in order",
    DEFECTIVE: "recordings of defects",
}
"""A description of each kind of conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Assumed prices in US dollars, and assumed amounts.

    Attributes:
        core_hour: of a rented core.
        gb_month: of 10^9 bytes in the store for a month.
        writes: of 1,000 writing or listing requests.
        reads: of 1,000 reading requests.
        kept_days: how long tapes and dataset are kept.
        machine_cores: of a machine.
        night_h: hours in which to scan a day, or all kept tapes.
    """

    core_hour: float = 0.04
    gb_month: float = 0.023
    writes: float = 0.005
    reads: float = 0.0004
    kept_days: int = 30
    machine_cores: int = 16
    night_h: float = 8


@dataclass(frozen=True, slots=True)
class Costs:
    """The mean costs of an exchange over all parts."""

    measured: Measured

    def _sum(self, figure: Callable[[Part], float]) -> float:
        return sum(map(figure, self.measured.parts))

    @property
    def exchanges(self) -> float:
        """The number measured."""
        return self._sum(lambda part: part.exchanges)

    @property
    def journal_bytes(self) -> float:
        """Bytes of an exchange in a journal."""
        return self._sum(lambda part: part.journal_bytes) / self.exchanges

    @property
    def sealed_bytes(self) -> float:
        """Bytes of an exchange on a sealed tape."""
        return self._sum(lambda part: part.sealed_bytes) / self.exchanges

    @property
    def pack_s(self) -> float:
        """CPU time of sealing an exchange."""
        return self._sum(lambda part: part.pack.cpu_s) / self.exchanges

    @property
    def ship_s(self) -> float:
        """CPU time of shipping an exchange, and of reading it back."""
        return self._sum(lambda part: part.ship.cpu_s) / self.exchanges

    @property
    def scan_s(self) -> float:
        """CPU time of reading a new exchange from the store into the dataset."""
        joining_s = self.join_s * sum(self._in_dataset)
        return (self._sum(lambda part: part.scan.cpu_s) - joining_s) / self.exchanges

    @property
    def join_s(self) -> float:
        """CPU time that a scan takes for each exchange in the dataset, to join conversations.

        Each part is scanned into a dataset with all parts before it: what a scan takes grows by
        this.
        """
        took = [part.scan.cpu_s for part in self.measured.parts]
        if len(took) == 1:
            return 0.0
        return max(0.0, statistics.linear_regression(self._in_dataset, took).slope)

    @property
    def _in_dataset(self) -> Sequence[int]:
        """The exchanges in the dataset after the scan of each part."""
        return list(accumulate(part.exchanges for part in self.measured.parts))

    @property
    def dataset_bytes(self) -> float:
        """Bytes of an exchange in the dataset."""
        return sum(table.bytes for table in self.measured.tables.values()) / self.exchanges

    @property
    def seal_rate(self) -> float:
        """Bytes of a journal that are sealed in a second of CPU time."""
        return self.journal_bytes / self.pack_s

    def fleet(self) -> Fleet:
        """Return the fleet to simulate."""
        return Fleet(
            exchanges_per_day=_DAILY,
            exchange_bytes=round(self.journal_bytes),
            sealed_share=round(self.sealed_bytes / self.journal_bytes, 4),
            seal_rate=float(f"{self.seal_rate:.2g}"),
        )


def page(measured: Measured, simulated: Callable[[Fleet], Simulated], prices: Prices) -> str:
    """Return the page.

    Args:
        measured: a run.
        simulated: the result of the simulation.
        prices: assumed.
    """
    costs = Costs(measured)
    fleet = costs.fleet()
    # Exchanges of long agents are far larger than those of the corpus.
    large = replace(
        fleet,
        exchange_bytes=fleet.exchange_bytes * _LARGE,
        rotate_bytes=fleet.rotate_bytes * _LARGER_TAPES,
    )
    week, large_week = simulated(fleet), simulated(large)
    return "".join(
        [
            _HEAD,
            *_about(measured, costs),
            *_goals(measured),
            *_measured(measured, costs),
            *_simulation(fleet, week, large, large_week),
            *_on_paper(costs, week, prices),
            *_breaks(costs, fleet, week, prices),
        ]
    )


_HEAD = """\
# A fleet, in figures

What it costs to keep and to read again the streams of many recorders: measured on one machine,
simulated for a fleet, and worked out for 100 million exchanges a day. This page is written by
`scripts/fleet-figures` from its last measured run, `scripts/fleet/measured.json`. What is assumed
is named as such; every other figure is measured or computed. How such a fleet is run is in
[examples/fleet](../examples/fleet/README.md).

"""


def _about(measured: Measured, costs: Costs) -> Iterator[str]:
    parts = measured.parts
    kinds = [kind for kind in SHARES if measured.corpus or kind != CAPTURED]
    whole = sum(SHARES[kind] for kind in kinds)
    shares = ", ".join(f"{SHARES[kind] / whole:.0%} {_KINDS[kind]}" for kind in kinds)
    loads = [part.load for part in parts]
    yield "## The run\n\n"
    yield (
        f"- {costs.exchanges:,.0f} exchanges on {sum(part.tapes for part in parts):,} tapes, made"
        f" by `scripts/fleet-tapes --seed {measured.seed}`: {shares}; in {len(parts)} parts, ended"
        f" {measured.day}\n"
    )
    yield f"- machine: {measured.machine.partition(', load')[0]}; load average before a part"
    yield f" {min(loads):.1f} to {max(loads):.1f}\n"
    yield f"- versions: {measured.versions}\n"
    yield (
        "- the store is a folder (`file://`), so that no network is in these figures; `check` and"
        " `scan` are compared on the same tapes, not sealed, in turn, on"
        f" {len(measured.comparisons)} of the parts\n"
    )
    yield (
        "- CPU time is that of a command and all its processes, from its start to its end, user and"
        " kernel mode\n\n"
    )


def _goals(measured: Measured) -> Iterator[str]:
    compared = measured.comparisons
    speeds = [each.check.cpu_s / each.scan_one.cpu_s for each in compared]
    two = [each.scan_one.wall_s / each.scan_two.wall_s for each in compared]
    more = [each.scan_two.cpu_s / each.scan_one.cpu_s for each in compared]
    others = max(each.others for each in compared)
    head = ("figure", "goal", "measured", "met")
    yield "## Goals\n\nMedians of the parts, with the least and the most in parentheses.\n\n"
    yield _table(
        head,
        [
            (
                "exchanges per second and core of `scan`, x `check`",
                f">= {_GOAL_SCAN}",
                _spread(speeds),
                _met(speeds, _GOAL_SCAN),
            ),
            (
                "exchanges per second with 2 workers, x 1 worker",
                f">= {_GOAL_TWO}",
                _spread(two),
                _met(two, _GOAL_TWO) if others <= _QUIET else "the machine was busy",
            ),
            ("CPU time with 2 workers, x 1 worker", "-", _spread(more), "-"),
        ],
    )
    yield (
        "\nThe second figure is by the clock: it means something only where nothing else runs."
        f" Other programs used {others:.0%} of a processor meanwhile. The third tells what the"
        " second worker costs by itself.\n\n"
    )


def _cost(name: str, steps: Sequence[tuple[Part | Comparison, Step]]) -> Sequence[str]:
    rates = [tapes.exchanges / step.cpu_s for tapes, step in steps]
    megabytes = [tapes.journal_bytes / 1e6 / step.cpu_s for tapes, step in steps]
    most = max(step.kib for _, step in steps)
    return (name, _spread(rates, 0), f"{statistics.median(megabytes):.1f}", _memory(most))


def _measured(measured: Measured, costs: Costs) -> Iterator[str]:
    yield "## Measured\n\n"

    def compared(name: str, step: Callable[[Comparison], Step]) -> Sequence[str]:
        return _cost(name, [(each, step(each)) for each in measured.comparisons])

    def whole(name: str, step: Callable[[Part], Step]) -> Sequence[str]:
        return _cost(name, [(part, step(part)) for part in measured.parts])

    yield _table(
        ("step", "exchanges per second of CPU time", "MB of journal per second", "memory"),
        [
            whole("`scripts/fleet-tapes`", lambda part: part.made),
            compared("`check --jobs 1`", lambda part: part.check),
            compared("`scan --jobs 1`", lambda part: part.scan_one),
            compared("`scan --jobs 2`", lambda part: part.scan_two),
            whole("`pack`: seals and verifies", lambda part: part.pack),
            whole("`ship --delete-shipped`: stores, reads back", lambda part: part.ship),
            whole("`scan --jobs 2` of the store, sealed", lambda part: part.scan),
        ],
    )
    yield (
        "\nMemory is that of the process that had most, at most. A scan of the store reads what is"
        " new, then joins all that is in the dataset: by the straight line nearest to the parts,"
        f" {costs.scan_s * 1e3:.2f} ms of CPU time for each new exchange, and"
        f" {costs.join_s * 1e6:.0f} µs for each in the dataset.\n\n"
    )
    store = measured.store_bytes / costs.exchanges
    yield _table(
        ("bytes", "per exchange", "of a journal"),
        [
            ("journal", f"{costs.journal_bytes:,.0f}", "100%"),
            ("in the store, sealed", f"{store:,.0f}", f"{store / costs.journal_bytes:.1%}"),
            *(
                (
                    f"dataset, `{name}`",
                    f"{table.bytes / costs.exchanges:,.0f}",
                    f"{table.bytes / costs.exchanges / costs.journal_bytes:.1%}",
                )
                for name, table in measured.tables.items()
            ),
            (
                "dataset",
                f"{costs.dataset_bytes:,.0f}",
                f"{costs.dataset_bytes / costs.journal_bytes:.1%}",
            ),
        ],
    )
    files = sum(table.files for table in measured.tables.values())
    yield (
        f"\n{measured.objects:,} objects in the store; {files:,} files in the dataset. A"
        " scan of the"
        f" store when all of it is in the dataset takes {measured.nothing_new.cpu_s:.1f} s of CPU"
        f" time. Joining the tapes has found {measured.joined:,} defects that no tape"
        " shows alone.\n"
    )
    yield (
        "\nThe texts of these tapes repeat, but a frame of a sealed tape has few conversations, and"
        " frames are compressed by themselves: what repeats in another frame saves nothing.\n\n"
    )


def _simulation(
    fleet: Fleet, week: Simulated, large: Fleet, large_week: Simulated
) -> Iterator[str]:
    yield "## A week of 1,000 recorders, simulated\n\n"
    yield (
        "`scripts/fleet-simulation`: what recorders, sealing and shippers do, event by"
        " event, with a"
        f" store that is away for {duration(fleet.outage_s)} when most is recorded. The size of an"
        " exchange, what sealing leaves and how fast it is are measured; everything else is an"
        " assumption:\n\n"
    )
    kept = (each.name for each in fields(Fleet))
    assumed = ", ".join(f"`{name}` {getattr(fleet, name):,.10g}" for name in kept)
    yield (
        f"{assumed}. The second column has exchanges {_LARGE} times as large, as of agents with"
        f" long histories, and tapes of {size(large.rotate_bytes)}.\n\n"
    )
    yield _table(
        ("", f"exchanges of {size(fleet.exchange_bytes)}", f"of {size(large.exchange_bytes)}"),
        [
            (name, one, other)
            for (name, one), (_, other) in zip(
                rows(fleet, week), rows(large, large_week), strict=True
            )
        ],
    )
    yield "\n"


def _on_paper(costs: Costs, week: Simulated, prices: Prices) -> Iterator[str]:
    measured = costs.measured
    scan_h = _DAILY * costs.scan_s / _HOUR_S
    join_h = _DAILY * prices.kept_days * costs.join_s / _HOUR_S
    seal_h = _DAILY * (costs.pack_s + costs.ship_s) / _HOUR_S
    a_night = prices.machine_cores * prices.night_h
    store_gb, dataset_gb = (
        _DAILY * each / 1e9 for each in (costs.sealed_bytes, costs.dataset_bytes)
    )
    writes = week.requests / 7
    files = week.shipped / 7 * len(measured.tables)
    yield "## 100 million exchanges a day, on paper\n\n"
    yield (
        f"Assumed, in US dollars, round list prices: {prices.core_hour} for a core and hour,"
        f" {prices.gb_month} for a GB (10^9 bytes) and month in the store,"
        f" {prices.writes} for 1,000"
        f" requests that write or list, {prices.reads} for 1,000 that read; tapes and dataset are"
        f" kept for {prices.kept_days} days; machines have {prices.machine_cores} cores,"
        " and a night"
        f" {prices.night_h:g} hours. Traffic within a region costs nothing. Work is"
        " divided by tapes,"
        " which know nothing of each other, so that it is taken to grow with the number of"
        " cores.\n\n"
    )
    kept = prices.kept_days
    table = [
        ("sealing and shipping, a day", f"{seal_h:,.0f} core hours", seal_h * prices.core_hour),
        ("scanning, a day", f"{scan_h:,.0f} core hours", scan_h * prices.core_hour),
        (
            "joining all that is kept, once a day",
            f"{join_h:,.0f} core hours",
            join_h * prices.core_hour,
        ),
        (
            "store: bytes of a day, kept",
            f"{store_gb:,.0f} GB",
            store_gb * prices.gb_month * kept / 30,
        ),
        (
            "dataset: bytes of a day, kept",
            f"{dataset_gb:,.0f} GB",
            dataset_gb * prices.gb_month * kept / 30,
        ),
        (
            "requests of shippers, a day",
            f"{writes:,.0f}",
            writes / 1_000 * prices.writes,
        ),
        (
            "requests of a scan, a day",
            f"{week.shipped / 7:,.0f} reads, {files:,.0f} writes",
            week.shipped / 7 / 1_000 * prices.reads + files / 1_000 * prices.writes,
        ),
    ]
    total = sum(cost for _, _, cost in table)
    yield _table(
        ("what", "how much", "$ a day", "$ a million exchanges"),
        [
            *(
                (what, much, f"{cost:,.2f}", f"{cost / (_DAILY / _MILLION):,.4f}")
                for what, much, cost in table
            ),
            ("**all**", "", f"**{total:,.2f}**", f"**{total / (_DAILY / _MILLION):,.4f}**"),
        ],
    )
    again_h = scan_h * kept + join_h
    yield (
        "\nA day is scanned and joined in a night by"
        f" {(scan_h + join_h) / a_night:,.1f} machines; all {kept} days again,"
        f" after a rule has changed, by {again_h / a_night:,.0f} machines in one night, for"
        f" ${again_h * prices.core_hour:,.0f}. Exchanges that are ten times as large take about ten"
        " times the core hours and the store: the figures per MB above are what carries over.\n\n"
    )


def _breaks(costs: Costs, fleet: Fleet, week: Simulated, prices: Prices) -> Iterator[str]:
    tables = costs.measured.tables
    per_tape = fleet.exchanges_per_day * fleet.days / week.shipped
    tapes = week.shipped / fleet.days
    file_bytes = costs.dataset_bytes * per_tape / len(tables)
    digests = tables.get("digests")
    digest_bytes = digests.bytes / costs.exchanges if digests else 0.0
    yield "## What breaks first\n\n"
    yield (
        "- **Listing.** One object for each exchange would be"
        f" {fleet.exchanges_per_day / _PER_LIST:,.0f} requests to list a day, one after the other:"
        f" {duration(fleet.exchanges_per_day / _PER_LIST * _LIST_S)} at {_LIST_S} s each."
        " Tapes hold"
        f" {per_tape:,.0f} exchanges here, so that a day is {week.listing:,} requests:"
        f" {duration(week.listing * _LIST_S)}; a month, which a scan lists to see what is new,"
        f" {duration(week.listing * prices.kept_days * _LIST_S)}. `dt=` and `gateway=` let a scan"
        " list a day, or recorders side by side.\n"
    )
    yield (
        f"- **Small files.** A tape gives a file for each table: {tapes * len(tables):,.0f} files a"
        f" day, of {size(file_bytes)} on average, where engines want 100 MB. A file for"
        " each tape is"
        " what makes a scan one that can be killed and repeated, and a second one read only what is"
        " new; a question about a day opens only that day's files. What helps first is"
        " to make tapes"
        f" larger: {week.small / week.shipped:.1%} of the sealed ones are below 1 MiB, since"
        f" recorders end a tape after {duration(fleet.rotate_s)}.\n"
    )
    yield (
        "- **Shuffle.** Each scan joins the conversations of the whole dataset, and moves"
        f" `digests` once between the workers, {digest_bytes:,.0f} bytes an exchange:"
        f" {size(digest_bytes * fleet.exchanges_per_day)} for a day, and"
        f" {size(digest_bytes * fleet.exchanges_per_day * prices.kept_days)} for"
        f" {prices.kept_days} days. Of all that grows with what is kept, this breaks first. What"
        " helps is to scan once a day, and into a dataset of its own for each week (by its `dt=`):"
        " then only a conversation that goes on from one week to the next is not joined. Nothing"
        " else is moved: every other step ends where it begins, with one tape.\n"
    )


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(head) - 1)]
    return markdown([head, rule, *body])


def _spread(figures: Sequence[float], digits: int = 2) -> str:
    middle = f"{statistics.median(figures):,.{digits}f}"
    least, most = (f"{each:,.{digits}f}" for each in (min(figures), max(figures)))
    return middle if least == most else f"{middle} ({least}..{most})"


def _met(figures: Sequence[float], goal: float) -> str:
    return "yes" if statistics.median(figures) >= goal else "no"


def _memory(kib: int) -> str:
    return f"{kib * 1024 / 1e6:,.0f} MB" if kib else "-"
