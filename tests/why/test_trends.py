"""Counts of findings and dead zones by day, provider and model."""

from dataclasses import replace

from deltatape.why.exchange_index import index_rows
from deltatape.why.trends import Trends
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, pasted, timed

(STALLED,) = index_rows([timed((0.5, TEXT), (40.5, FINISH_TEXT), request=asks(USER), end_s=41)])
HEALTHY = replace(STALLED, findings=0, codes=(), worst=None, dead_zones=0, dead_ns=0)


def test_exchanges_of_a_day_with_a_model_are_counted_together() -> None:
    (group,) = Trends([STALLED, STALLED, HEALTHY]).groups()
    assert (group.day, group.provider, group.model) == ("2026-11-21", "openai", "m")
    assert (group.exchanges, group.affected, group.findings) == (3, 2, 2)
    assert (group.dead_zones, group.dead_ns) == (2, 80_000_000_000)
    assert group.codes == {"D001": 2}


def test_days_providers_and_models_are_apart_and_in_order() -> None:
    (unknown,) = index_rows([pasted(TEXT, FINISH_TEXT)])
    later = replace(HEALTHY, at="2026-11-22T00:00:00.000Z")
    rows = [later, replace(HEALTHY, model="a"), replace(HEALTHY, provider="azure"), HEALTHY]
    groups = Trends([*rows, replace(unknown, provider=None)]).groups()
    assert [(each.day, each.provider, each.model) for each in groups] == [
        (None, None, None),
        ("2026-11-21", "azure", "m"),
        ("2026-11-21", "openai", "a"),
        ("2026-11-21", "openai", "m"),
        ("2026-11-22", "openai", "m"),
    ]


def test_what_is_counted_already_is_counted_on() -> None:
    both = Trends.of(Trends([STALLED]).groups())
    both.add(HEALTHY)
    assert both.groups() == Trends([STALLED, HEALTHY]).groups()


def test_the_rules_are_those_of_the_codes() -> None:
    trends = Trends([replace(STALLED, codes=("D001", "C001"))])
    assert [rule.code for rule in trends.rules()] == ["D001", "C001"]
    assert Trends().rules() == []
    assert Trends().groups() == []
