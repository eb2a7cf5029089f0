"""Samples to figures: the median of the rounds, how far they lie apart, and quotients.

A quotient is taken within a round, and the median of those is told, so that a round in which the
machine was busy with something else disturbs it little.
"""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.markdown import markdown
from benchmarks.proxies import DIRECT, YARDSTICK
from benchmarks.run import Outcome, Result
from benchmarks.scenarios import ADDED, BEHIND, CPU, MEMORY, P50, PROXY_CPU, Column, Scenario

NONE = "-"
_OF_A_PROCESS = (CPU, PROXY_CPU, MEMORY, ADDED, BEHIND)
"""What only a proxy has."""
_RATIO_DECIMALS = 2
_SMALL = 0.1
"""Quotients below this have one decimal more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """The median of the rounds, and the least and the most."""

    median: float
    least: float
    most: float

    def shown(self, decimals: int) -> str:
        """`23.1 (22.8..24.0)`; without the range where there is none to show."""
        median, least, most = (f"{v:.{decimals}f}" for v in (self.median, self.least, self.most))
        return median if least == most else f"{median} ({least}..{most})"


def figure(outcome: Outcome, scenario: str, proxy: str, key: str) -> Figure | None:
    """A figure of a proxy; None where it was not measured, or is none of it."""
    if proxy == DIRECT and key in _OF_A_PROCESS:
        return None
    if key == ADDED:
        both = pairs(outcome, scenario, proxy, DIRECT)
        return _figure([one.sample.values[P50] - two.sample.values[P50] for one, two in both])
    return _figure([each.sample.values[key] for each in _of(outcome, scenario, proxy)])


def ratio(
    outcome: Outcome, scenario: str, proxy: str, key: str, to: str = YARDSTICK
) -> Figure | None:
    """The quotient to another proxy's figure in the same round; None where there is none."""
    if DIRECT in (proxy, to) and key in _OF_A_PROCESS:
        return None
    return _figure(
        [
            result.sample.values[key] / other.sample.values[key]
            for result, other in pairs(outcome, scenario, proxy, to)
            if other.sample.values[key]
        ]
    )


def _figure(values: Sequence[float]) -> Figure | None:
    if not values:
        return None
    return Figure(median=statistics.median(values), least=min(values), most=max(values))


def _of(outcome: Outcome, scenario: str, proxy: str) -> Iterator[Result]:
    for result in outcome.results:
        if (result.scenario, result.proxy) == (scenario, proxy):
            yield result


def pairs(
    outcome: Outcome, scenario: str, proxy: str, other: str
) -> Iterator[tuple[Result, Result]]:
    """What two proxies gave in the same rounds."""
    others = {result.round: result for result in _of(outcome, scenario, other)}
    for result in _of(outcome, scenario, proxy):
        if result.round in others:
            yield result, others[result.round]


def table(outcome: Outcome, scenario: Scenario, proxies: Sequence[str]) -> str:
    """A scenario as a Markdown table, or that it was not measured."""
    heads = [head for column in scenario.columns for head in _heads(column)]
    rows = []
    for proxy in proxies:
        if any(_of(outcome, scenario.name, proxy)) or proxy in outcome.absent:
            cells = [
                c for column in scenario.columns for c in _cells(outcome, scenario, proxy, column)
            ]
            rows.append([proxy, *cells])
    if not rows:
        return "Not measured.\n"
    return markdown([["proxy", *heads], ["---"] + ["---:"] * len(heads), *rows])


def _heads(column: Column) -> tuple[str, ...]:
    return (column.title, f"x {YARDSTICK}") if column.ratio else (column.title,)


def _cells(outcome: Outcome, scenario: Scenario, proxy: str, column: Column) -> Iterator[str]:
    yield _cell(figure(outcome, scenario.name, proxy, column.key), column.decimals)
    if column.ratio:
        quotient = ratio(outcome, scenario.name, proxy, column.key)
        small = quotient is not None and quotient.median < _SMALL
        yield _cell(quotient, _RATIO_DECIMALS + small)


def _cell(value: Figure | None, decimals: int) -> str:
    return value.shown(decimals) if value is not None else NONE
