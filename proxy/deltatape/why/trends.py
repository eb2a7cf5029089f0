"""Counts what is wrong with exchanges by day, provider and model."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from deltatape.model.exchange_row import ExchangeRow
from deltatape.rules import RULES, Rule

_DAY = len("2000-01-01")


@dataclass(slots=True, kw_only=True)
class TrendGroup:
    """The exchanges of a day with a model of a provider; what is not known is None."""

    day: str | None
    """In UTC: `2026-11-26`."""
    provider: str | None
    model: str | None
    exchanges: int = 0
    affected: int = 0
    """How many of them have findings."""
    findings: int = 0
    dead_zones: int = 0
    dead_ns: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    """By code, how many of them have such a finding."""


class Trends:
    """Counts rows, each exchange once."""

    def __init__(self, rows: Iterable[ExchangeRow] = ()) -> None:
        self._groups: dict[tuple[str, ...], TrendGroup] = {}
        for row in rows:
            self.add(row)

    @staticmethod
    def of(groups: Iterable[TrendGroup]) -> "Trends":
        """Return what is counted already, each group once."""
        made = Trends()
        made._groups = {(g.day or "", g.provider or "", g.model or ""): g for g in groups}
        return made

    def add(self, row: ExchangeRow) -> None:
        day = row.at and row.at[:_DAY]
        key = day or "", row.provider or "", row.model or ""
        group = self._groups.get(key)
        if group is None:
            group = TrendGroup(day=day, provider=row.provider, model=row.model)
            self._groups[key] = group
        group.exchanges += 1
        group.affected += bool(row.findings)
        group.findings += row.findings
        group.dead_zones += row.dead_zones
        group.dead_ns += row.dead_ns
        group.codes.update(row.codes)

    def groups(self) -> list[TrendGroup]:
        """Return the groups in the order of their days; those without a day come first."""
        return [self._groups[key] for key in sorted(self._groups)]

    def rules(self) -> list[Rule[Any]]:
        """Return the rules whose findings were counted, in the order of reports."""
        found = {code for group in self._groups.values() for code in group.codes}
        return [rule for rule in RULES if rule.code in found]
