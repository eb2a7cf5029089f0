"""The benchmark works: nothing is lost, and the tables say what was measured. Never times."""

import json
import platform
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from benchmarks.__main__ import main
from benchmarks.goals import goals_section
from benchmarks.measure import Sample
from benchmarks.proxies import find_nginx
from benchmarks.run import Outcome, Result
from benchmarks.steps import Cost, steps_section
from benchmarks.timed_loop import longest_us, turns

from helpers import corpus
from helpers.needed import skip_unless
from helpers.program import environment

pytestmark = pytest.mark.skipif(platform.system() != "Linux", reason="it reads /proc")

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / "scripts" / "bench"
CLIENTS = ROOT / ".venv-clients" / "bin" / "python"
PROXIES = ("direct", "deltatape")
SCENARIOS = (
    *("paced-50", "paced-200", "paced-1000", "tls-200", "connect-500", "flat-out", "requests"),
    *("uploads", "uploads-turns", "idle", "idle-tls"),
)
TLS = ("tls-200", "idle-tls")
FRESH = ("connect-500", "uploads-turns", "idle")
"""With a proxy of their own; `direct` has none."""
COMMON = tuple(name for name in SCENARIOS if name not in (*TLS, *FRESH))
LIMIT_S = 120


def bench(
    folder: Path, *arguments: str, variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`scripts/bench --quick` with temporary files in `folder`."""
    return subprocess.run(
        [str(BENCH), "--quick", *arguments],
        env={**environment(folder), "TMPDIR": str(folder), **(variables or {})},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def cells(line: str) -> list[str]:
    """Those of a row of a Markdown table."""
    return [cell.strip() for cell in line.strip("|\n").split("|")]


def test_every_answer_and_every_tape_is_whole_and_nothing_is_left_behind(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    proxies = ("--only", "proxies", "--proxies", ",".join(PROXIES))
    result = bench(tmp_path, *proxies, "--json", str(told))
    assert result.returncode == 0, result.stderr
    outcome = json.loads(told.read_text())
    measured = {(each["scenario"], each["proxy"]) for each in outcome["results"]}
    with_tls = {(s, "deltatape") for s in TLS} if find_nginx() else set()
    assert measured == {(s, p) for s in COMMON for p in PROXIES} | with_tls | {
        (s, "deltatape") for s in FRESH
    }
    assert ("TLS is left out: no nginx" in result.stderr) is not bool(with_tls)
    assert outcome["faults"] == []
    assert outcome["absent"] == {}
    assert all(each["sample"]["answers"] >= 4 for each in outcome["results"])
    through = [each["sample"] for each in outcome["results"] if each["proxy"] == "deltatape"]
    # And one that found out whether it was ready, for each process.
    assert outcome["taped"] >= sum(sample["answers"] for sample in through) + 1 + len(FRESH)
    assert outcome["taped_bytes"] > sum(sample["bytes"] for sample in through)
    assert not list(tmp_path.glob("deltatape-bench-*"))
    assert_tables_are_well_formed(result.stdout, without=() if with_tls else TLS)


def test_the_turns_of_an_event_loop_are_counted_by_their_length(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import asyncio, time\n"
        "async def turn():\n"
        "    for s in (*(0,) * 200, 0.05, 0.1):\n"
        "        time.sleep(s)\n"
        "        await asyncio.sleep(0)\n"
        "asyncio.run(turn())\n"
    )
    file = tmp_path / "turns"
    timed = ROOT / "scripts" / "benchmarks" / "timed_loop.py"
    subprocess.run([sys.executable, timed, file, program], check=True, timeout=LIMIT_S)
    counted = turns(file)
    assert sum(counted.wall) == sum(counted.cpu) >= 200
    assert longest_us(counted.wall)[1] >= 100_000
    assert longest_us(counted.cpu)[1] < longest_us(counted.wall)[1]
    assert sum(counted.since(counted).wall) == 0


def test_the_longest_turn_and_the_percentile_are_those_counted() -> None:
    assert longest_us([0, 98, 0, 1, 1]) == (40.0, 50.0)
    assert longest_us([0, 990, 0, 4, 5]) == (20.0, 50.0)
    assert longest_us([0, 7]) == (20.0, 20.0)
    assert longest_us([0, 0]) == (0.0, 0.0)


def test_a_turn_is_compared_with_no_other_proxy() -> None:
    values = {"turn_cpu_p99_us": 900.0, "turn_cpu_max_us": 2100.0}
    bare = {"turn_cpu_p99_us": 300.0, "turn_cpu_max_us": 800.0}
    text = goals_section(
        outcome_of({"deltatape": values, "bare asyncio": bare}, scenario="uploads-turns")
    )
    rows = [cells(line) for line in text.splitlines() if line.startswith("| Turns")]
    assert [row[1:] for row in rows] == [
        ["p99 of its turns, µs of CPU", "<= 2,000", "900", "300", "yes"],
        ["its longest turn, µs of CPU", "<= 2,000", "2,100", "800", "no"],
    ]


def outcome_of(values: dict[str, dict[str, float]], scenario: str = "requests") -> Outcome:
    """A run of one round: what each proxy gave in a scenario."""
    results = [
        Result(
            round=1,
            scenario=scenario,
            proxy=proxy,
            sample=Sample(values=each, answers=1, bytes=1, faults=0),
        )
        for proxy, each in values.items()
    ]
    return Outcome(results=results, absent={}, faults=(), answers=1, taped=1, taped_bytes=1, load=0)


@pytest.mark.parametrize(
    ("rate", "behind_s", "met"), [(500.0, 0.9, ("yes", "yes")), (499.0, 1.1, ("no", "no"))]
)
def test_goals_are_met_or_not(rate: float, behind_s: float, met: tuple[str, str]) -> None:
    text = goals_section(
        outcome_of(
            {
                "nginx": {"rate": 1000.0, "behind_s": 0.0},
                "bare asyncio": {"rate": 700.0, "behind_s": 0.0},
                "deltatape": {"rate": rate, "behind_s": behind_s},
            }
        )
    )
    rows = [cells(line) for line in text.splitlines() if line.startswith("| Small")]
    assert [(row[1], row[2], row[4]) for row in rows] == [
        ("requests/s, x nginx", ">= 0.5", "0.7"),
        ("behind, s per 1,000", "<= 1", "0"),
    ]
    assert (rows[0][5], rows[1][5]) == met
    assert ("Where a goal is missed" in text) is ("no" in met)


def test_the_floor_is_bare_asyncio_and_the_steps_that_count() -> None:
    outcome = outcome_of(
        {
            "nginx": {"proxy_cpu_us": 20.0},
            "bare asyncio": {"proxy_cpu_us": 30.0},
            "deltatape": {"proxy_cpu_us": 90.0},
        }
    )
    costs = [
        Cost(load="A small request and its answer", step="one", us=4.0),
        Cost(load="A small request and its answer", step="two", us=6.0),
        Cost(load="A small request and its answer", step="within two", us=5.0, part=False),
        Cost(load="A delta", step="of another load", us=7.0),
    ]
    floor = steps_section(costs, outcome).splitlines()[-1]
    assert cells(floor)[1:] == ["30.0", "10.0", "40.0", "2.00", "90.0", "4.50"]
    assert "The floor" not in steps_section(costs, None)


def assert_tables_are_well_formed(text: str, without: Sequence[str]) -> None:
    """A section for each scenario; a row for each proxy, unless it was not measured, and a cell for
    each column."""
    goals, *sections = text.split("## ")[1:]
    assert goals.startswith("Goals\n")
    for scenario, section in zip(SCENARIOS, sections, strict=True):
        title, empty, head, *below = section.rstrip("\n").split("\n")
        assert title
        assert not empty
        if scenario in without:
            assert (head, below) == ("Not measured.", [])
            continue
        line, *rows = below
        assert set(cells(line)) <= {"---", "---:"}
        assert {len(cells(row)) for row in (line, *rows)} == {len(cells(head))}
        assert [cells(row)[0] for row in rows] == list(PROXIES)[-len(rows) :]


def test_a_proxy_that_does_not_answer_is_left_out_and_named(tmp_path: Path) -> None:
    broken = {"DELTATAPE_RECORD_KEEP": "nonsense"}
    told = tmp_path / "told.json"
    arguments = ("--proxies", ",".join(PROXIES), "--scenarios", "requests", "--json", str(told))
    result = bench(tmp_path, "--only", "proxies", *arguments, variables=broken)
    assert result.returncode == 0, result.stderr
    assert "deltatape is left out: deltatape does not answer" in result.stderr
    assert list(json.loads(told.read_text())["absent"]) == ["deltatape"]
    (row,) = (line for line in result.stdout.split("\n") if line.startswith("| deltatape |"))
    assert set(cells(row)[1:]) == {"-"}


def test_the_sdks_come_to_the_same_replies(tmp_path: Path) -> None:
    skip_unless(CLIENTS.exists(), "no SDKs; scripts/setup clients installs them")
    told = tmp_path / "told.json"
    result = bench(tmp_path, "--only", "accumulators", "--json", str(told))
    assert result.returncode == 0, result.stderr
    outcome = json.loads(told.read_text())["accumulators"]
    measured = {(each["language"], each["deltas"]) for each in outcome["timings"]}
    names = ("openai-chat", "openai-responses", "anthropic-messages")
    assert measured == {(name, deltas) for name in names for deltas in ("short", "long")}
    assert (outcome["faults"], outcome["absent"]) == ([], "")
    assert all(each["ours"] > 0 and each["sdk"] > 0 for each in outcome["timings"])
    assert_is_a_table(result.stdout, rows=len(measured))
    assert not list(tmp_path.glob("deltatape-bench-*"))


def test_bodies_of_every_framing_are_decoded_in_every_size(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    result = bench(tmp_path, "--only", "sizes", "--json", str(told))
    assert result.returncode == 0, result.stderr
    found = json.loads(told.read_text())["sizes"]
    assert {(one["way"], one["mb"]) for one in found} == {
        ("whole", 0.05),
        ("uncollected", 0.05),
        ("bytewise", 0.001),
    }
    languages = {one["language"] for one in found}
    assert {"gemini-array", "ollama", "bedrock-converse"} <= languages
    for table in result.stdout.split("one byte:\n"):
        assert_is_a_table(table, rows=len(languages))
    assert not list(tmp_path.glob("deltatape-bench-*"))


def test_the_steps_of_the_recorder_are_measured(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    result = bench(tmp_path, "--only", "steps", "--json", str(told))
    assert result.returncode == 0, result.stderr
    found = json.loads(told.read_text())["steps"]
    assert {one["load"] for one in found} == {"A delta", "A small request and its answer"}
    assert all(one["us"] > 0 for one in found)
    assert_is_a_table(result.stdout, rows=len(found))
    assert not list(tmp_path.glob("deltatape-bench-*"))


@corpus.needs_corpus
def test_tapes_of_the_corpus_are_checked_whole(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    result = bench(tmp_path, "--only", "check", "--json", str(told))
    assert result.returncode == 0, result.stderr
    found = json.loads(told.read_text())["check"]
    assert [(one["read"], one["exchanges"]) for one in found] == [
        *(("an event", 5), ("an event", 50)),
        *(("a body", 5), ("a body", 50)),
    ]
    assert all(one["check_us"] > one["loads_us"] > 0 for one in found)
    assert [bool(one["fsck_us"]) for one in found] == [True, False, True, False]
    assert_is_a_table(result.stdout, rows=4)
    assert not list(tmp_path.glob("deltatape-bench-*"))


def test_a_recorder_is_measured_with_a_page_and_without(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    result = bench(tmp_path, "--only", "watching", "--json", str(told))
    assert result.returncode == 0, result.stderr
    runs = json.loads(told.read_text())["watching"]["runs"]
    recorders = ["alone", "beside a program that computes", "with a page"]
    assert [each["recorder"] for each in runs] == recorders
    assert all(each["cpu_us"] > 0 for each in runs)
    assert_is_a_table(result.stdout, rows=3)


def test_the_player_is_on_time_and_takes_part_with_small_requests(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    chosen = ("--proxies", "direct,deltatape-replay", "--scenarios", "paced-50,requests")
    result = bench(tmp_path, "--only", "playing,proxies", *chosen, "--json", str(told))
    assert result.returncode == 0, result.stderr
    outcome = json.loads(told.read_text())
    assert {(run["round"], run["reads"]) for run in outcome["playing"]["runs"]} == {(1, 100)}
    assert len(outcome["playing"]["runs"]) == 2
    measured = [(each["scenario"], each["proxy"]) for each in outcome["results"]]
    assert ("requests", "deltatape-replay") in measured
    assert ("paced-50", "deltatape-replay") not in measured
    assert_is_a_table(result.stdout.partition("## Playing on time")[2], rows=2)


def test_long_conversations_are_measured_in_two_dialects(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    result = bench(tmp_path, "--only", "conversations", "--json", str(told))
    assert "## Long conversations" in result.stdout
    found = json.loads(told.read_text())["conversations"]
    assert [(one["language"], one["turns"]) for one in found] == [
        ("openai-chat", 10),
        ("openai-chat", 20),
        ("anthropic-messages", 10),
        ("anthropic-messages", 20),
    ]
    assert all(one["speed"] > 0 and one["memory_mb"] > 0 for one in found)


def test_without_a_corpus_the_check_is_not_measured_and_that_is_said(tmp_path: Path) -> None:
    nowhere = {"DELTATAPE_CORPUS": str(tmp_path / "none")}
    result = bench(tmp_path, "--only", "check", variables=nowhere)
    assert result.returncode == 0
    assert "check is left out: no corpus" in result.stderr
    assert "Not measured" in result.stdout


def assert_is_a_table(text: str, rows: int) -> None:
    """Every row, and the head, has as many cells."""
    lines = [line for line in text.split("\n") if line.startswith("|")]
    assert len(lines) == rows + 2
    assert len({len(cells(line)) for line in lines}) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--only", "nonsense"), "unknown: nonsense"),
        (("--only", "sizes", "--sizes", "1,0"), "not sizes in MB"),
        (("--only", "sizes", "--sizes", "x"), "not sizes in MB"),
    ],
)
def test_parts_and_sizes_that_are_none_are_refused(
    arguments: tuple[str, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--proxies", "--scenarios"])
def test_unknown_names_are_refused_with_those_that_there_are(tmp_path: Path, option: str) -> None:
    result = bench(tmp_path, option, "direct,nonsense,requests")
    assert result.returncode == 2
    assert "unknown: " in result.stderr
    assert "nonsense" in result.stderr


def test_a_run_that_is_ended_leaves_no_process_and_no_tape(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [str(BENCH), "--proxies", "deltatape", "--scenarios", "paced-50", "--rounds", "50"],
        env={**environment(tmp_path), "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        line = next(line for line in process.stderr if line.startswith("round 1, paced-50, delta"))
        assert "cpu_us" in line
        folders = list(tmp_path.glob("deltatape-bench-*"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_S) == 128 + signal.SIGTERM
    finally:
        process.kill()
        process.communicate()
    assert len(folders) == 1
    assert not list(tmp_path.glob("deltatape-bench-*"))
    assert not running_in(folders[0])


def running_in(folder: Path) -> list[str]:
    """Processes whose working directory was in `folder`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if folder in (place := (process / "cwd").readlink()).parents or place == folder:
                found.append(process.name)
        except OSError:  # not ours, or gone
            continue
    return found
