"""`scripts/fleet-figures`: what is measured is on the page, and a run goes on where it stopped."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from fleet.measuring import (
    Comparison,
    Measured,
    MeasuringError,
    Part,
    Step,
    Table,
    measured_json,
    read_measured,
    run,
)
from fleet.page import Costs, Prices, page
from fleet.simulation import Fleet, simulate

from helpers.program import environment

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("dialects/anthropic-messages.tape", "rules/C001/fires.tape", "apps/ai-sdk-agent.tape")
LIMIT_S = 1800


def step(cpu_s: float, wall_s: float = 1) -> Step:
    return Step(cpu_s=cpu_s, wall_s=wall_s, kib=100_000)


PART = Part(
    number=1,
    exchanges=10_000,
    tapes=4,
    journal_bytes=120_000_000,
    load=0.5,
    made=step(2),
    pack=step(20),
    sealed_bytes=12_000_000,
    ship=step(1),
    scan=step(9),
)
COMPARISON = Comparison(
    part=1,
    exchanges=5_000,
    journal_bytes=60_000_000,
    others=0.05,
    check=step(4),
    scan_one=step(5, 5.0),
    scan_two=step(5.5, 2.5),
)
MEASURED = Measured(
    exchanges=20_000,
    seed=1,
    machine="A processor, 2 cores, load average 9.9 before the run",
    versions="CPython 3.11",
    day="2026-11-26",
    corpus=True,
    parts=[PART, replace(PART, number=2)],
    comparisons=[COMPARISON, replace(COMPARISON, part=2, check=step(3), scan_two=step(5.5, 3.0))],
    objects=8,
    store_bytes=24_000_000,
    tables={
        "digests": Table(files=8, bytes=4_000_000),
        "exchanges": Table(files=8, bytes=2_000_000),
    },
    nothing_new=step(0.7),
    joined=12,
)


def written(measured: Measured = MEASURED) -> str:
    small = Fleet(recorders=10, days=7, exchanges_per_day=1e6)
    found = simulate(small)
    return page(measured, lambda _: found, Prices())


def row(text: str, beginning: str) -> list[str]:
    """The cells of the row of a table that begins so, without the first."""
    (line,) = (each for each in text.splitlines() if each.startswith(f"| {beginning} |"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_goals_are_compared_by_the_median_of_the_parts() -> None:
    text = written()
    speed = row(text, "exchanges per second and core of `scan`, x `check`")
    assert speed == [">= 0.8", "0.70 (0.60..0.80)", "no"]
    two = row(text, "exchanges per second with 2 workers, x 1 worker")
    assert two == [">= 1.8", "1.83 (1.67..2.00)", "yes"]
    assert row(text, "CPU time with 2 workers, x 1 worker")[1] == "1.10"


def test_times_by_the_clock_meet_no_goal_beside_other_programs() -> None:
    busy = replace(MEASURED, comparisons=[COMPARISON, replace(COMPARISON, others=0.4)])
    goal = row(written(busy), "exchanges per second with 2 workers, x 1 worker")
    assert goal == [">= 1.8", "2.00", "the machine was busy"]


def test_rates_and_bytes_are_those_of_an_exchange() -> None:
    text = written()
    assert row(text, "`scan --jobs 1`") == ["1,000", "12.0", "102 MB"]
    assert row(text, "`pack`: seals and verifies")[0] == "500"
    assert row(text, "journal") == ["12,000", "100%"]
    assert row(text, "in the store, sealed") == ["1,200", "10.0%"]
    assert row(text, "dataset, `digests`") == ["200", "1.7%"]
    assert row(text, "dataset") == ["300", "2.5%"]
    fleet = Costs(MEASURED).fleet()
    assert (fleet.exchange_bytes, fleet.sealed_share, fleet.seal_rate) == (12_000, 0.1, 6_000_000)


def test_a_rate_of_few_bytes_is_not_rounded_to_none() -> None:
    slow = replace(MEASURED, parts=[replace(PART, pack=step(6_100))])
    assert Costs(slow).fleet().seal_rate == 20_000


def test_money_is_the_sum_of_what_is_bought() -> None:
    text = written()
    # 0.9 ms an exchange: 90,000 s for 10^8, 25 core hours.
    assert row(text, "scanning, a day") == ["25 core hours", "1.00", "0.0100"]
    # 120 GB a day, kept for a month.
    assert row(text, "store: bytes of a day, kept") == ["120 GB", "2.76", "0.0276"]
    costs = [
        float(row(text, name)[1])
        for name in (
            "sealing and shipping, a day",
            "scanning, a day",
            "joining all that is kept, once a day",
            "store: bytes of a day, kept",
            "dataset: bytes of a day, kept",
            "requests of shippers, a day",
            "requests of a scan, a day",
        )
    ]
    assert float(row(text, "**all**")[1].strip("*")) == pytest.approx(sum(costs), abs=0.05)
    assert "scanned and joined in a night by 0.2 machines; all 30 days again" in text
    assert "by 6 machines in one night, for $30" in text


def test_what_a_scan_takes_more_for_a_larger_dataset_is_joining() -> None:
    text = written(replace(MEASURED, parts=[PART, replace(PART, number=2, scan=step(10))]))
    assert "0.80 ms of CPU time for each new exchange, and 100 µs for each in the dataset" in text
    assert row(text, "scanning, a day")[0] == "22 core hours"
    assert row(text, "joining all that is kept, once a day")[0] == "83 core hours"
    alone = written(replace(MEASURED, parts=[PART]))
    assert "0.90 ms of CPU time for each new exchange, and 0 µs for each in the dataset" in alone


def test_what_was_measured_is_read_as_it_was_written() -> None:
    assert read_measured(measured_json(MEASURED)) == MEASURED
    assert json.loads(measured_json(MEASURED))["comparisons"][1]["check"]["cpu_s"] == 3


def test_a_command_that_fails_ends_the_run_and_one_that_finds_defects_does_not(
    tmp_path: Path,
) -> None:
    with pytest.raises(MeasuringError, match=r"deltatape check nothing-here: .*nothing-here"):
        run(tmp_path, "check", "nothing-here")
    found = run(tmp_path, "check", str(ROOT / "recordings" / "rules" / "C001" / "fires.tape"))
    assert found.cpu_s > 0
    assert found.wall_s > 0
    assert found.kib > 10_000


def test_a_run_measures_each_part_once_and_all_exchanges_are_in_the_dataset(tmp_path: Path) -> None:
    def measured() -> str:
        result = subprocess.run(
            [
                *(sys.executable, str(ROOT / "scripts" / "fleet-figures"), "--measure"),
                *(
                    "--print",
                    "--quick",
                    "--exchanges=24",
                    "--per-tape=12",
                    "--parts=2",
                    "--compare=1",
                ),
                *(f"--work={tmp_path / 'work'}", f"--json={tmp_path / 'measured.json'}"),
                *(f"--from={ROOT / 'recordings' / each}" for each in SOURCES),
            ],
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    text = measured()
    found = read_measured((tmp_path / "measured.json").read_text())
    assert [(each.exchanges, each.tapes) for each in found.parts] == [(12, 1)] * 2
    assert all(each.made.cpu_s > 0 for each in found.parts)
    assert [(each.part, each.exchanges) for each in found.comparisons] == [(1, 12)]
    assert found.objects == 2
    assert 0 < found.store_bytes < sum(each.journal_bytes for each in found.parts)
    assert {"tapes", "exchanges", "calls", "findings", "digests"} <= found.tables.keys()
    assert found.tables["exchanges"].files == 2
    assert "- 24 exchanges on 2 tapes" in text
    # What was measured is not measured again.
    first = tmp_path / "work" / "part-001.json"
    kept = json.loads(first.read_text())
    first.write_text(json.dumps(kept | {"load": 77.0}))
    assert " to 77.0\n" in measured()
