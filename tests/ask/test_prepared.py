import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.ask.chart import bars
from deltatape.ask.dataset import Dataset
from deltatape.ask.prepared import question, questions
from deltatape.errors import UsageError
from deltatape.model.rule_settings import DEFAULTS
from deltatape.scan.engine import LocalEngine
from deltatape.scan.scan import scan
from helpers.datasets import at, write_rows
from helpers.incidents import BROKEN, STALL


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two days, two tapes: a call that an old client loses, silences, a changed rule."""
    folder = tmp_path_factory.mktemp("dataset")
    first, second = "2026-11-20", "2026-11-21"
    for tape, day, version in (("A", first, "1.2"), ("B", second, "1.3")):
        asked = {
            "provider": "openai",
            "model": "gpt-5",
            "status": 200,
            "client_name": "OpenAI/Python",
            "client_version": version,
            "calls": 1,
            "input_tokens": 100,
            "output_tokens": 10,
            "thread": 1,
        }
        rows = [
            {
                **asked,
                "exchange": 1,
                "at": at("10:00:00", day),
                "ending": "complete",
                "finish": "tool_calls",
                "first_event_ns": 500_000_000,
                "duration_ns": 3_000_000_000,
            },
            {
                **asked,
                "exchange": 2,
                "at": at("10:00:05", day),
                "ending": "upstream_closed",
                "first_event_ns": 1_500_000_000,
                "findings": 1,
                "codes": ["D001"],
                "worst_code": "D001",
                "worst_severity": "warning",
                "dead_zones": 1,
                "dead_ns": 9_000_000_000,
                "marks": ["retry"],
            },
        ]
        silence = {
            "exchange": 2,
            "about": 2,
            "code": "D001",
            "name": "dead-zone",
            "severity": "warning",
            "blame": "provider",
            "confidence": "likely",
            "phase": "in-arguments",
            "silent_ns": 9_000_000_000,
            "fingerprint": "silence",
            "message": "nothing for 9 s",
        }
        lost = {
            "exchange": 2,
            "about": 1,
            "code": "C001",
            "name": "call-lost-by-app",
            "severity": "error",
            "blame": "app",
            "confidence": "proven",
            "fingerprint": f"lost-{tape}",
            "message": "the app lost a call",
        }
        calls = [
            {"exchange": 1, "kind": "function", "name": "get", "status": "complete"}
            | {"schema_ok": tape == "A", "arguments_bytes": 20},
            {"exchange": 2, "kind": "function", "name": "get", "status": "truncated"},
        ]
        write_rows(folder, "exchanges", tape, rows, day=day)
        write_rows(folder, "findings", tape, [silence, *([lost] if tape == "A" else [])], day=day)
        write_rows(folder, "calls", tape, calls, day=day)
        write_rows(
            folder, "tapes", tape, [{"exchanges": 2, "bytes": 1 << 20, "gateway": "gw"}], day=day
        )
        gone = {**silence, "code": "D009", "name": "gone", "fingerprint": "gone"}
        before = [silence, gone] if tape == "A" else []
        write_rows(folder, "findings_before", tape, before, day=day, rules="0")
        if tape == "B":
            joined = {**lost, "tape": "B", "across": True, "fingerprint": "lost-across"}
            write_rows(folder, "findings", "JOIN", [joined], day=day)
    broken = {"source": "/tapes/C.tape", "problem": "it is no tape"}
    write_rows(folder, "tapes", "C", [broken], day=second)
    return folder


def _answer(dataset: Path, name: str) -> list[dict[str, object]]:
    with Dataset(dataset) as opened:
        answer = opened.ask(question(name).sql)
        names = [column.name for column in answer.columns]
        return [dict(zip(names, row, strict=True)) for row in answer.rows]


@pytest.mark.parametrize("name", questions())
def test_every_question_has_an_answer_that_can_be_drawn(dataset: Path, name: str) -> None:
    asked = question(name)
    with Dataset(dataset) as opened:
        answer = opened.ask(asked.sql)
        rows = list(answer.rows)
        assert rows
        assert bars(answer.columns, rows, asked.plot)


@pytest.mark.parametrize("name", questions())
def test_every_question_can_be_asked_of_a_dataset_without_exchanges(
    tmp_path: Path, name: str
) -> None:
    write_rows(tmp_path, "tapes", "A", [{"problem": "it is no tape"}])
    _answer(tmp_path, name)


@pytest.mark.parametrize("name", questions())
def test_every_question_is_a_question(name: str) -> None:
    assert question(name).title.endswith("?")


def test_the_worst_finding_of_a_day_is_the_most_severe(dataset: Path) -> None:
    found = [(str(row["day"]), row["code"], row["exchanges"]) for row in _answer(dataset, "worst")]
    assert found == [("2026-11-21", "C001", 1), ("2026-11-20", "C001", 1)]


def test_clients_are_compared_by_the_calls_they_lose(dataset: Path) -> None:
    rows = _answer(dataset, "lost-calls")
    found = {row["version"]: (row["calls"], row["lost"], row["across"]) for row in rows}
    assert found == {"1.2": (2, 1, 0), "1.3": (2, 1, 1)}


def test_silences_are_counted_by_phase(dataset: Path) -> None:
    (row,) = _answer(dataset, "dead-zones")
    assert (row["phase"], row["dead_zones"], row["total_s"]) == ("in-arguments", 2, 18.0)


def test_arguments_are_judged_where_there_is_a_schema(dataset: Path) -> None:
    (row,) = _answer(dataset, "arguments")
    assert (row["calls"], row["checked"], row["misfits"], row["unusable"]) == (4, 2, 1, 2)
    assert row["last_in"] == "B#1"


def test_a_change_of_the_rules_shows_what_is_new_and_what_is_gone(dataset: Path) -> None:
    rows = _answer(dataset, "changed")
    found = {row["code"]: (row["new"], row["gone"], row["same"]) for row in rows}
    assert found == {"C001": (1, 0, 0), "D009": (0, 1, 0), "D001": (1, 0, 1)}


def test_a_scan_by_other_rules_shows_what_they_have_changed(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    shutil.copy(STALL, source)
    shutil.copy(BROKEN, source)
    scan(str(source), str(out), LocalEngine(1), DEFAULTS)
    patient = replace(DEFAULTS, stall_s=500.0, stall_error_s=500.0)
    scan(str(source), str(out), LocalEngine(1), patient)
    rows = _answer(out, "changed")
    changed = {row["code"]: (row["new"], row["gone"]) for row in rows if row["new"] or row["gone"]}
    assert changed == {"D001": (0, 1)}
    assert [row["code"] for row in rows if row["same"]] == ["C002", "C009", "D002"]


def test_only_what_joining_shows_is_across(dataset: Path) -> None:
    (row,) = _answer(dataset, "across")
    assert (row["code"], row["findings"], row["last_in"]) == ("C001", 1, "B#2")


def test_defects_of_the_last_day_are_new_if_no_day_had_them(dataset: Path) -> None:
    assert [row["seen_in"] for row in _answer(dataset, "new-defects")] == ["B#2"]


def test_tokens_are_wasted_where_the_transport_broke(dataset: Path) -> None:
    (row,) = _answer(dataset, "wasted-tokens")
    assert (row["unusable"], row["tokens"], row["wasted"]) == (2, 440, 220)


def test_tapes_that_could_not_be_read_are_counted(dataset: Path) -> None:
    broken = [row for row in _answer(dataset, "tapes") if row["unreadable"]]
    assert [row["example"] for row in broken] == ["/tapes/C.tape: it is no tape"]


def test_an_unknown_question_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UsageError, match="Did you mean 'lost-calls'"):
        question("lost-call")


def test_an_unknown_question_without_a_near_one_is_refused_with_all() -> None:
    with pytest.raises(UsageError, match="There are: across, arguments"):
        question("xyz")
