"""A long run loses nothing and nothing grows; where something does, the run fails."""

import dataclasses
import json
import platform
import subprocess
from pathlib import Path

import pytest
from benchmarks.soak import Interval, judge
from benchmarks.soak_tally import Tallies, difference, lacking
from benchmarks.soak_tapes import TakenTapes
from benchmarks.steady import Limit, grown, slowed
from benchmarks.traffic import MARK, Cut, Plan, body

from deltatape.model.exchange import EndReason
from helpers.program import environment

pytestmark = pytest.mark.skipif(platform.system() != "Linux", reason="it reads /proc")

SOAK = Path(__file__).resolve().parent.parent / "scripts" / "soak"
LIMIT_S = 1200
"""Beside busy cores the analysis, which gives way to everything, takes minutes for seconds."""
HALF_AN_HOUR_S = 1800
FLAT = Limit(share=0.1, least=4)
STREAM = Plan(deltas=3, rate=20)
STEADY = Interval(
    delays=100,
    p50_us=300,
    p99_us=900,
    recorder_mib=50,
    analyst_mib=30,
    recorder_files=400,
    analyst_files=260,
    unreported=3,
    tapes_mb=1,
)


def test_a_run_of_seconds_loses_nothing(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    result = subprocess.run(
        [str(SOAK), "--minutes", "0.1", "--streams", "10", "--json", str(told)],
        env={**environment(tmp_path), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "nothing was lost, and nothing grew" in result.stdout
    outcome = json.loads(told.read_text())
    assert outcome["faults"] == []
    endings = {"complete", "client_closed", "upstream_closed", "upstream_reset"}
    assert set(outcome["had"]) == set(outcome["taped"]) == endings
    whole = outcome["had"]["complete"]
    assert whole == outcome["taped"]["complete"]
    assert whole["answers"] > 300  # one for each of 300 named tapes, and more
    assert whole["deltas"] > 100
    assert outcome["tapes"] > 300
    assert not list(tmp_path.glob("deltatape-soak-*"))


@pytest.mark.parametrize("arguments", [("--minutes", "0"), ("--streams", "-1")])
def test_a_run_of_nothing_is_refused(arguments: tuple[str, ...]) -> None:
    result = subprocess.run(
        [str(SOAK), *arguments], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert result.returncode == 2
    assert "take numbers above 0" in result.stderr


# The judges.


@pytest.mark.parametrize(
    "series",
    [
        [50.0] * 90,
        [50.0 + each % 7 for each in range(90)],
        [20.0 + each for each in range(30)] + [50.0] * 60,
        [50.0] * 70 + [90.0] + [50.0] * 19,
        [90.0 - each / 2 for each in range(90)],
        [50.0, 51.0, 52.0],
        [50.0],
        [],
    ],
    ids=["same", "up-and-down", "warm-up", "one-burst", "falls", "few", "one", "none"],
)
def test_what_stays_within_the_limit_is_flat(series: list[float]) -> None:
    assert not grown("memory", "MiB", series, FLAT)


@pytest.mark.parametrize(
    "series",
    [
        [50.0 + each / 5 for each in range(90)],
        [50.0 + each / 5 + each % 7 for each in range(90)],
        [50.0] * 60 + [70.0] * 30,
        [50.0, 60.0, 70.0, 80.0],
    ],
    ids=["leak", "leak-up-and-down", "step", "few"],
)
def test_what_grows_after_the_warm_up_is_not_flat(series: list[float]) -> None:
    said = grown("the recorder's memory", "MiB", series, FLAT)
    assert said.startswith("the recorder's memory grew from ")
    assert "up to " in said


def test_a_large_figure_may_grow_by_its_share_and_a_small_one_by_the_least() -> None:
    tenth = [1000.0] * 30 + [1000 + each for each in range(60)]
    assert not grown("memory", "MiB", tenth, FLAT)
    assert grown("memory", "MiB", tenth, Limit(share=0.01, least=4))
    assert not grown("files", "descriptors", [1.0, 1.0, 1.0, 2.0, 3.0, 4.0], FLAT)


def test_a_delay_that_is_longer_in_the_last_third_is_told() -> None:
    limit = Limit(share=1, least=5)
    assert not slowed("p99", "ms", [2.0, 2.0, 90.0, 2.0, 2.0, 6.0, 2.0, 2.0, 90.0], limit)
    assert not slowed("p99", "ms", [2.0], limit)
    said = slowed("p99", "ms", [2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 8.0, 8.0, 8.0], limit)
    assert said.startswith("p99 rose from 2.0 ms in the first third to 8.0 ms in the last")


@pytest.mark.parametrize(
    ("figure", "what"),
    [
        ("recorder_mib", "the recorder's memory"),
        ("analyst_mib", "the analysis's memory"),
        ("recorder_files", "the number of files and sockets of the recorder"),
        ("analyst_files", "the number of files of the analysis"),
        ("p99_us", "the 99th percentile of the delay"),
    ],
)
def test_a_run_in_which_a_figure_doubles_fails(figure: str, what: str) -> None:
    assert judge([STEADY] * 60, HALF_AN_HOUR_S) == []
    start = getattr(STEADY, figure) * (100 if figure == "p99_us" else 1)
    leaking = [
        dataclasses.replace(STEADY, **{figure: start * (1 + each / 20)}) for each in range(60)
    ]
    (said,) = judge(leaking, HALF_AN_HOUR_S)
    assert said.startswith(what)
    # Seconds do not show these: other programs delay, and the analysis fills its memory.
    short = [] if figure in ("p99_us", "analyst_mib") else [said]
    assert judge(leaking, 12) == short


# What is counted at the clients and on the tapes.


def tallied(*answers: tuple[EndReason, bytes]) -> Tallies:
    """A tally of these answers."""
    tallies = Tallies()
    for ending, content in answers:
        tallies.add(ending, content)
    return tallies


def stamped(plan: Plan, stamp: int = 1234) -> bytes:
    """An answer as it comes."""
    return body(plan).replace(MARK + b"0" * 19, b"%b%019d" % (MARK, stamp))


ONE, OTHER = stamped(STREAM, 1), stamped(STREAM, 2)
COMPLETE, LEFT = EndReason.COMPLETE, EndReason.CLIENT_CLOSED


def test_the_same_answers_in_any_order_are_the_same() -> None:
    clients, tapes = tallied((COMPLETE, ONE), (COMPLETE, OTHER)), tallied((COMPLETE, OTHER))
    tapes.add(COMPLETE, ONE)
    assert lacking(clients.by_ending, tapes.by_ending) == []


@pytest.mark.parametrize(
    ("tapes", "said"),
    [
        ([(COMPLETE, ONE)], "2 answers ended with complete at the clients, 1 on the tapes"),
        ([], "2 answers ended with complete at the clients, 0 on the tapes"),
        ([(COMPLETE, ONE), (COMPLETE, OTHER[:-1])], "the tapes have 6 in"),
        ([(COMPLETE, ONE), (COMPLETE, ONE)], "have other bytes on the tapes"),
    ],
)
def test_tapes_that_lack_or_change_an_answer_are_told(
    tapes: list[tuple[EndReason, bytes]], said: str
) -> None:
    clients = tallied((COMPLETE, ONE), (COMPLETE, OTHER))
    (sentence,) = lacking(clients.by_ending, tallied(*tapes).by_ending)
    assert said in sentence


def test_the_tape_of_a_client_that_left_may_have_more_and_not_less() -> None:
    some, more = tallied((LEFT, ONE[:100])), tallied((LEFT, ONE))
    assert lacking(some.by_ending, more.by_ending) == []
    (sentence,) = lacking(more.by_ending, some.by_ending)
    assert "clients that left had read" in sentence
    (sentence,) = lacking(some.by_ending, {})
    assert sentence == "1 answers ended with client_closed at the clients, 0 on the tapes"


def test_every_byte_of_an_answer_but_its_stamps_is_compared() -> None:
    assert difference(STREAM, ONE, whole=True) == ""
    assert difference(STREAM, ONE[:-1], whole=True).startswith("ends after")
    assert difference(STREAM, ONE + b"x", whole=True).startswith("differs from byte")
    at = len(ONE) - 3
    changed = ONE[:at] + b"!" + ONE[at + 1 :]
    assert difference(STREAM, changed, whole=True) == f"differs from byte {at} on"
    assert difference(STREAM, changed, whole=False) == f"differs from byte {at} on"
    cut = Plan(deltas=3, rate=20, cut=Cut.RESET)
    assert difference(cut, stamped(cut), whole=True) == ""
    assert all(difference(STREAM, ONE[:end], whole=False) == "" for end in range(len(ONE)))


def test_of_many_faults_the_first_are_told_and_all_are_counted() -> None:
    tallies = Tallies()
    for number in range(30):
        tallies.fault(f"fault {number}")
    assert (tallies.faults[0], len(tallies.faults), tallies.faulty) == ("fault 0", 10, 30)


def test_a_tape_that_cannot_be_read_is_a_fault_and_open_ones_are_left(tmp_path: Path) -> None:
    folder = tmp_path / "tapes"
    folder.mkdir()
    (folder / "broken.tape").write_text("no tape\n")
    (folder / "empty.tape").touch()  # a recorder is about to write to it
    taken = TakenTapes(folder)
    taken.take((folder / "broken.tape").stat().st_mtime_ns - 1)
    assert taken.tapes == 0
    taken.take((folder / "broken.tape").stat().st_mtime_ns)
    assert taken.tapes == 1
    assert [path.name for path in folder.iterdir()] == ["empty.tape"]
    assert any("no tape" in fault for fault in taken.tallies.faults)
    assert any("deltatape fsck" in fault for fault in taken.tallies.faults)
