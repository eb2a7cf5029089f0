"""Whether a series of figures stays flat: the judges of a long run.

The first third of a run is its warm-up: buffers, caches and pools fill. Of the rest, a straight
line through the medians of equal parts tells how much the figure grows; single outliers, such as a
burst of connections, do not move it. Delays go up and down with the machine, so the median of the
last third is held against that of the first.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

_PARTS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What still counts as flat: the larger of the two.

    Attributes:
        share: of the value at the start.
        least: in the unit of the series.
    """

    share: float
    least: float

    def allowed(self, start: float) -> float:
        """The most that a figure may grow."""
        return max(self.share * start, self.least)


def grown(what: str, unit: str, series: Sequence[float], limit: Limit) -> str:
    """A sentence if `series` grows over its last two thirds beyond `limit`, else "".

    Args:
        what: the figure, such as `the recorder's memory`.
        unit: of the series, such as `MiB`.
        series: at equal intervals.
        limit: the most that counts as flat.
    """
    start, end = trend(series[len(series) // 3 :])
    allowed = limit.allowed(start)
    if end - start <= allowed:
        return ""
    return (
        f"{what} grew from {start:.1f} to {end:.1f} {unit} in the last two thirds of the run;"
        f" up to {allowed:.1f} {unit} more counts as flat"
    )


def trend(series: Sequence[float]) -> tuple[float, float]:
    """Where the straight line through the medians of equal parts of `series` begins and ends."""
    parts = min(_PARTS, len(series))
    if parts < 2:  # noqa: PLR2004 - no line through less
        return (series[0], series[0]) if series else (0.0, 0.0)
    bounds = [len(series) * part // parts for part in range(parts + 1)]
    medians = [statistics.median(series[bounds[part] : bounds[part + 1]]) for part in range(parts)]
    middles = [(bounds[part] + bounds[part + 1] - 1) / 2 for part in range(parts)]
    line = statistics.linear_regression(middles, medians)
    return line.intercept, line.intercept + line.slope * (len(series) - 1)


def slowed(what: str, unit: str, series: Sequence[float], limit: Limit) -> str:
    """A sentence if the median of the last third of `series` is beyond `limit` over the first's.

    Args:
        what: the figure, such as `the 99th percentile of the delay`.
        unit: of the series.
        series: at equal intervals.
        limit: the most that counts as flat.
    """
    third = len(series) // 3
    if not third:
        return ""
    start, end = statistics.median(series[:third]), statistics.median(series[-third:])
    allowed = limit.allowed(start)
    if end - start <= allowed:
        return ""
    return (
        f"{what} rose from {start:.1f} {unit} in the first third to {end:.1f} {unit} in the last;"
        f" up to {allowed:.1f} {unit} more counts as flat"
    )
