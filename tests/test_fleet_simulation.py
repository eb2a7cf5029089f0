"""The simulation of a fleet: nothing is lost, nothing is doubled, and times are as worked out."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from fleet.simulation import Fleet, Reason, duration, quantiles, rows, simulate, size

from helpers.program import environment

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "fleet-simulation"
LIMIT_S = 120
HOUR_S, DAY_S = 3_600, 86_400
FLEET = Fleet(recorders=20, days=4, exchanges_per_day=2e6)
STEADY = Fleet(
    recorders=1,
    days=1,
    exchanges_per_day=DAY_S,
    exchange_bytes=1_000,
    sealed_share=0.5,
    seal_rate=100_000,
    rotate_bytes=200_000,
    rotate_s=HOUR_S,
    restarts_per_day=0,
    bandwidth=10_000,
    request_s=1,
    outage_s=0,
    spread=0,
    swing=0,
)
"""A tape every 200 s; sealing takes 2 s, asking 1 s and an upload 10 s."""


def test_all_that_is_recorded_is_shipped_once() -> None:
    found = simulate(FLEET)
    assert found.journal_bytes == pytest.approx(4 * 2e6 * FLEET.exchange_bytes)
    assert found.shipped == sum(found.tapes.values())
    assert found.shipped_bytes == pytest.approx(found.journal_bytes * FLEET.sealed_share)
    assert found.tapes[Reason.END] == FLEET.recorders
    assert all(found.tapes.values())


def test_nothing_is_shipped_while_the_store_is_away_and_all_of_it_later() -> None:
    slow = replace(FLEET, bandwidth=2e4)
    found = simulate(slow)
    assert found.begun_again > 0
    assert found.longest_lag_s > HOUR_S
    assert found.caught_up_s > 0
    without = simulate(replace(slow, outage_s=0))
    assert without.longest_lag_s < HOUR_S
    assert (without.caught_up_s, without.begun_again) == (0, 0)
    assert without.shipped_bytes == pytest.approx(found.shipped_bytes)
    assert without.backlog_bytes < found.backlog_bytes
    assert without.disk.most < found.disk.most


def test_a_wider_way_to_the_store_is_caught_up_sooner() -> None:
    times = [simulate(replace(FLEET, store_bandwidth=rate)).caught_up_s for rate in (3e5, 1e6, 1e7)]
    assert times == sorted(times, reverse=True)
    assert times[0] > 2 * times[-1]


def test_no_tape_is_larger_or_older_than_it_may_be() -> None:
    found = simulate(FLEET)
    assert found.sizes.most <= FLEET.rotate_bytes * FLEET.sealed_share * (1 + 1e-9)
    often = simulate(replace(FLEET, rotate_s=600))
    assert often.tapes[Reason.AGE] >= FLEET.recorders * 4 * DAY_S / 600 * 0.9
    assert often.shipped > found.shipped
    assert often.small > found.small


def test_a_recorder_needs_the_disk_for_a_tape_twice_and_for_what_an_outage_holds_back() -> None:
    found = simulate(STEADY)
    assert found.disk.most == pytest.approx(300_000)
    with_outage = simulate(replace(STEADY, outage_s=1_000, outage_at_s=10_050))
    # Ended at 10,200 to 11,000 s, and the last of them is a journal and a sealed tape.
    assert with_outage.disk.most == pytest.approx(4 * 100_000 + 300_000)
    assert with_outage.backlog_tapes == 5


def test_times_are_those_worked_out_by_hand() -> None:
    found = simulate(STEADY)
    assert found.tapes == {Reason.SIZE: 431, Reason.AGE: 0, Reason.RESTART: 0, Reason.END: 1}
    assert found.lag_s.least == found.lag_s.most == pytest.approx(13)
    assert found.requests == 432 * 3
    assert found.listing == 1
    outage = replace(STEADY, outage_s=1_000, outage_at_s=10_008, retry_s=0)
    broken = simulate(outage)
    # The tape of 10,000 s is sent from 10,003 s on, and again from 11,008 s on; five more wait.
    assert broken.begun_again == 1
    assert broken.longest_lag_s == pytest.approx(11_018 - 10_000)
    assert broken.caught_up_s == pytest.approx(6 * 11 - 1)


def test_uploads_at_the_same_time_share_what_the_store_takes() -> None:
    two = replace(STEADY, recorders=2, exchanges_per_day=2 * DAY_S)
    assert simulate(two).lag_s.most == pytest.approx(13)
    assert simulate(replace(two, store_bandwidth=10_000)).lag_s.most == pytest.approx(23)


def test_a_day_has_its_quiet_hours_and_as_much_in_all() -> None:
    swinging = replace(STEADY, swing=1, rotate_bytes=1e12)
    found = simulate(swinging)
    assert found.journal_bytes == pytest.approx(simulate(STEADY).journal_bytes)
    assert found.sizes.least < found.sizes.median / 10
    assert found.sizes.most > found.sizes.median * 1.5


def test_the_same_seed_gives_the_same_and_another_one_something_else() -> None:
    assert simulate(FLEET) == simulate(FLEET)
    assert simulate(FLEET) != simulate(replace(FLEET, seed=2))


def test_figures_are_written_for_people() -> None:
    assert [size(each) for each in (5, 12_300, 4.56e9, 1.26e12, 8.4e15)] == [
        *("5 B", "12.3 kB", "4.56 GB", "1.26 TB", "8,400 TB")
    ]
    assert [duration(each) for each in (64, 3_600, 9_000)] == ["64 s", "60 min", "2.5 h"]
    assert quantiles([]) == (0, 0, 0, 0)
    assert quantiles(range(101)) == (0, 50, 99, 100)


def test_the_program_prints_what_the_options_ask_for(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, str(SCRIPT), "--recorders=20", "--days=4", "--exchanges-per-day=2e6"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    printed = [line.split("  ")[0] for line in result.stdout.splitlines()]
    assert printed == [name for name, _ in rows(FLEET, simulate(FLEET))]
    assert rows(FLEET, simulate(FLEET))[2][1] in result.stdout
