"""Tapes of real frameworks: whole, with the scenario they are named after, and nobody accused."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from deltatape.diagnose.check_tape import check_exchanges
from deltatape.diagnose.digest import digest
from deltatape.model.digest import Digest
from deltatape.model.finding import Blame, Confidence
from deltatape.model.rule_settings import DEFAULTS
from deltatape.store.audit import audit
from deltatape.store.reader import open_tape

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "recordings" / "frameworks"
PROGRAMS = ROOT / "scripts" / "frameworks"
MOST_BYTES = 6_700_000
CITIES = ("Paris", "Lisbon")
SEVERAL = ("Kyoto", "Nairobi", "Quito")
FIRST_CALLS = {
    "calls": ["get_weather", "get_weather", "get_time"],
    "empty": ["get_time"],
    "equal": ["roll_dice", "roll_dice"],
    "values": ["search", "convert"],
    "reasoning": ["get_weather"],
    "invalid": ["get_weather"],
    "turns": ["get_weather"],
    "several": ["get_weather", "get_time"],
}
"""By scenario, the tools that the first answer of each of its conversations calls."""
WITH_FAULTS = frozenset({"equal", "invalid", "retries", "revised"})
"""Scenarios in which the model calls wrongly or the provider fails, on purpose."""


def every_name() -> Iterator[str]:
    """Framework, dialect and scenario of each tape that there should be."""
    told = yaml.safe_load((PROGRAMS / "versions.yaml").read_text())
    for framework in told["frameworks"]:
        for dialect, scenarios in framework["dialects"].items():
            for scenario in told["scenarios"].get(scenarios, scenarios).split():
                yield f"{framework['name']}/{dialect}-{scenario}"


NAMES = tuple(every_name())
PROMPTS: Mapping[str, Mapping[str, Any]] = json.loads((PROGRAMS / "scenarios.json").read_text())


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.tape"


def split(name: str) -> tuple[str, str]:
    """Dialect and scenario."""
    dialect, _, scenario = name.rpartition("/")[2].rpartition("-")
    return dialect, scenario


@cache
def conversations(name: str) -> Sequence[Sequence[Digest]]:
    """The requests of each conversation, in their order."""
    _, scenario = split(name)
    cities = {"several": SEVERAL, "turns": CITIES[:1]}.get(scenario, CITIES)
    prompts = [PROMPTS[scenario]["prompts"][0].format(city=city).encode() for city in cities]
    exchanges = list(open_tape(path_of(name)))
    return [
        [digest(each) for each in exchanges if prompt in each.request.body] for prompt in prompts
    ]


def test_every_framework_is_taped_as_told_and_nothing_else_is() -> None:
    found = {f"{path.parent.name}/{path.stem}" for path in FOLDER.rglob("*.tape")}
    assert found == {*NAMES}


def test_the_tapes_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.rglob("*")) < MOST_BYTES


def test_a_tape_reads_whole(subtests: pytest.Subtests) -> None:
    for name in NAMES:
        with subtests.test(name):
            tape = open_tape(path_of(name))
            assert tape.stopped
            assert not tape.torn
            assert audit(path_of(name)).problems == ()
            assert all(each.end for each in tape)


def test_a_tape_has_its_scenario_in_its_dialect(subtests: pytest.Subtests) -> None:
    for name in NAMES:
        with subtests.test(name):
            has_its_scenario_in_its_dialect(name)


def has_its_scenario_in_its_dialect(name: str) -> None:
    dialect, scenario = split(name)
    held = conversations(name)
    assert all(held)
    assert {each.dialect for requests in held for each in requests if not each.failed} <= {dialect}
    if scenario in FIRST_CALLS:
        first = [[call.name for call in requests[0].calls] for requests in held]
        assert first == [FIRST_CALLS[scenario]] * len(held)
    if scenario == "retries":
        assert {requests[0].status for requests in held} == {429}


def accused(name: str) -> set[str]:
    """Codes of the findings that blame somebody who did no wrong, as proven or likely.

    That is the app; and where the provider's script has no fault, anybody.
    """
    _, scenario = split(name)
    innocent = {Blame.APP} if scenario in WITH_FAULTS else {*Blame}
    reported = check_exchanges(name, open_tape(path_of(name)), DEFAULTS, excerpts=False).reported
    return {
        each.finding.code
        for each in reported
        if each.finding.blame in innocent and each.finding.confidence is not Confidence.POSSIBLE
    }


def listed() -> Iterator[tuple[str, str]]:
    """Tape and code of each accusation that has a reason."""
    for one in yaml.safe_load((Path(__file__).parent / "frameworks.yaml").read_text()):
        assert one["reason"]
        for tape in one["tapes"]:
            yield tape, one["code"]


def test_nobody_is_accused_but_with_a_reason() -> None:
    found = {(name, code) for name in NAMES for code in accused(name)}
    assert sorted(found) == sorted(listed())
