from collections.abc import Iterator
from datetime import date  # noqa: TID251 - it reads no clock
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from deltatape.ask.dataset import TABLES_ASKED, Dataset, Only, SqlError
from deltatape.errors import UsageError
from helpers.datasets import RULES, at, write_rows

OTHER = "000000000000"


def _exchange(number: int = 1, **more: object) -> dict[str, object]:
    return {
        "exchange": number,
        "id": f"x{number}",
        "at": at("10:00:00"),
        "dialect": "d",
        **more,
    }


def _finding(number: int = 1, code: str = "T001", **more: object) -> dict[str, object]:
    return {
        "exchange": number,
        "about": number,
        "code": code,
        "severity": "error",
        "fingerprint": f"{code}-{number}",
        **more,
    }


def _tape(folder: Path, tape: str, *exchanges: dict[str, object], **where: str) -> None:
    write_rows(folder, "exchanges", tape, exchanges, **where)
    write_rows(folder, "tapes", tape, [{"source": tape, "exchanges": len(exchanges)}], **where)


def _rows(folder: Path, sql: str, only: Only | None = None) -> list[tuple[object, ...]]:
    with Dataset(folder, only or Only()) as opened:
        return list(opened.ask(sql).rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dataset of one tape."""
    _tape(tmp_path, "A", _exchange(1, provider="openai"), _exchange(2, provider="mistral"))
    return tmp_path


@pytest.fixture
def opened(folder: Path) -> Iterator[Dataset]:
    with Dataset(folder) as dataset:
        yield dataset


def test_every_table_can_be_asked_also_if_it_has_no_file(opened: Dataset) -> None:
    for table in TABLES_ASKED:
        assert list(opened.ask(f"SELECT count(*) FROM {table}").rows)


def test_columns_that_files_lack_are_null(folder: Path) -> None:
    path = write_rows(folder, "findings", "A", [_finding()])
    pq.write_table(pq.ParquetFile(path).read().drop_columns(["withdrawn", "phase"]), path)
    assert _rows(folder, "SELECT code, phase FROM findings") == [("T001", None)]


def test_times_are_in_utc_without_a_zone(opened: Dataset) -> None:
    (row, _) = opened.ask("SELECT time, day FROM exchanges").rows
    assert row == (at("10:00:00").replace(tzinfo=None), date(2026, 11, 21))


def test_an_exchange_without_a_time_has_the_day_of_its_tape(tmp_path: Path) -> None:
    _tape(tmp_path, "A", _exchange(at=None))
    assert _rows(tmp_path, "SELECT day FROM exchanges") == [(date(2026, 11, 21),)]


def test_an_exchange_of_a_tape_without_a_day_has_none(tmp_path: Path) -> None:
    _tape(tmp_path, "A", _exchange(at=None), day="1970-01-01")
    assert _rows(tmp_path, "SELECT day FROM exchanges") == [(None,)]


def test_names_of_folders_are_no_columns(tmp_path: Path) -> None:
    folder = tmp_path / "model=x" / "day=2020-01-01"
    _tape(folder, "A", _exchange(model="gpt-5"))
    assert _rows(folder, "SELECT model, day FROM exchanges") == [("gpt-5", date(2026, 11, 21))]


def test_folders_that_are_no_days_are_left_out(tmp_path: Path) -> None:
    _tape(tmp_path, "A", _exchange())
    _tape(tmp_path, "B", _exchange(), day="2026-11-21'")
    assert _rows(tmp_path, "SELECT tape FROM exchanges") == [("A",)]


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "it's [1] *"
    _tape(folder, "A", _exchange())
    assert _rows(folder, "SELECT exchange FROM exchanges") == [(1,)]


def test_findings_and_calls_have_the_provider_and_day_of_their_exchange(folder: Path) -> None:
    write_rows(folder, "findings", "A", [_finding(1), _finding(2)])
    write_rows(folder, "calls", "A", [{"exchange": 2, "name": "get"}])
    assert _rows(folder, "SELECT provider, exchange, day FROM findings ORDER BY ALL") == [
        ("mistral", 2, date(2026, 11, 21)),
        ("openai", 1, date(2026, 11, 21)),
    ]
    assert _rows(folder, "SELECT name, provider FROM calls") == [("get", "mistral")]


@pytest.mark.parametrize(
    ("only", "numbers"),
    [
        (Only(since=date(2026, 11, 22)), [2]),
        (Only(until=date(2026, 11, 21)), [1]),
        (Only(provider="openai"), [1]),
        (Only(model="it's"), [2]),
    ],
)
def test_exchanges_are_chosen_for_every_table(
    tmp_path: Path, only: Only, numbers: list[int]
) -> None:
    later = at("10:00:00", "2026-11-22")
    _tape(tmp_path, "A", _exchange(1, provider="openai"), _exchange(2, at=later, model="it's"))
    write_rows(tmp_path, "findings", "A", [_finding(1), _finding(2)])
    for table in ("exchanges", "findings"):
        assert _rows(tmp_path, f"SELECT exchange FROM {table}", only) == [(n,) for n in numbers]


def test_a_tape_is_what_its_newest_scan_found(folder: Path) -> None:
    write_rows(folder, "findings", "A", [_finding(1, "T001")])
    write_rows(folder, "findings", "A", [_finding(1, "T002")], rules=OTHER)
    _tape(folder, "A", _exchange(1), rules=OTHER)
    assert _rows(folder, "SELECT code, rules FROM findings") == [("T002", OTHER)]
    assert _rows(folder, "SELECT count(*) FROM exchanges") == [(1,)]


def test_what_a_stopped_scan_left_behind_does_not_count(folder: Path) -> None:
    write_rows(folder, "exchanges", "B", [_exchange()])
    write_rows(folder, "exchanges", ".B", [_exchange()])
    assert _rows(folder, "SELECT DISTINCT tape FROM exchanges") == [("A",)]


def test_tapes_of_other_rules_are_told(folder: Path) -> None:
    _tape(folder, "B", _exchange(), rules=OTHER)
    with Dataset(folder) as opened:
        assert opened.notes == ("1 tape of other rules; `deltatape scan` reads them again",)


def test_tapes_of_the_same_rules_are_not_told(opened: Dataset) -> None:
    assert opened.notes == ()


def test_what_joining_shows_is_among_the_findings(folder: Path) -> None:
    write_rows(folder, "findings", "A", [_finding(1)])
    write_rows(folder, "findings", "JOIN", [_finding(2, "C001", tape="A", across=True)])
    found = "SELECT code, across FROM findings ORDER BY code"
    assert _rows(folder, found) == [("C001", True), ("T001", False)]


def test_what_joining_refutes_is_not(folder: Path) -> None:
    write_rows(folder, "findings", "A", [_finding(1, "D003"), _finding(2, "D003")])
    refuted = _finding(1, "D003", tape="A", across=True, withdrawn=True)
    write_rows(folder, "findings", "JOIN", [refuted])
    assert _rows(folder, "SELECT exchange FROM findings") == [(2,)]


def test_what_was_joined_with_other_rules_does_not_count(folder: Path) -> None:
    write_rows(folder, "findings", "JOIN", [_finding(tape="A", across=True)], rules=OTHER)
    _tape(folder, "A", _exchange(1), rules=RULES)
    assert _rows(folder, "SELECT code FROM findings") == []


def test_the_findings_before_are_a_table(folder: Path) -> None:
    write_rows(folder, "findings_before", "A", [_finding(1, "T009")], rules=OTHER)
    assert _rows(folder, "SELECT code, provider FROM findings_before") == [("T009", "openai")]


def test_answers_of_any_length_come_in_parts(opened: Dataset) -> None:
    answer = opened.ask("SELECT range AS n FROM range(5000)")
    assert [column.name for column in answer.columns] == ["n"]
    assert [row[0] for row in answer.rows] == list(range(5000))


def test_columns_of_one_name_get_names_of_their_own(opened: Dataset) -> None:
    answer = opened.ask("SELECT 1 AS a, 2 AS a, 3 AS a")
    assert [column.name for column in answer.columns] == ["a", "a_2", "a_3"]


@pytest.mark.parametrize(
    "sql",
    [
        "DROP VIEW exchanges",
        "SELECT 1; SELECT 2",
        "COPY (SELECT 1) TO '{folder}/x.csv'",
        "ATTACH '{folder}/x.db'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "",
    ],
)
def test_what_is_no_select_is_refused(opened: Dataset, folder: Path, sql: str) -> None:
    before = sorted(folder.rglob("*"))
    with pytest.raises(UsageError, match="one SELECT statement"):
        opened.ask(sql.format(folder=folder))
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    "source",
    [
        "read_text('{file}')",
        "read_csv('{file}')",
        "glob('{parent}/*')",
        "'{file}'",
        "read_blob('{up}')",
    ],
)
def test_no_file_outside_the_dataset_is_read(
    opened: Dataset, folder: Path, tmp_path_factory: pytest.TempPathFactory, source: str
) -> None:
    other = tmp_path_factory.mktemp("other") / "secret.csv"
    other.write_text("secret\n1\n")
    up = f"{folder}/../{other.parent.name}/secret.csv"
    with pytest.raises(SqlError):
        opened.ask(f"SELECT * FROM {source.format(file=other, parent=other.parent, up=up)}")


def test_an_error_shows_the_place(opened: Dataset) -> None:
    with pytest.raises(SqlError, match=r"LINE 1: SELECT nope FROM exchanges\n +\^"):
        opened.ask("SELECT nope FROM exchanges")


def test_an_error_in_a_later_row_is_one_of_sql(opened: Dataset) -> None:
    with pytest.raises(SqlError):
        list(
            opened.ask(
                "SELECT CASE WHEN range = 400000 THEN error('x') END FROM range(500000)"
            ).rows
        )


def test_what_does_not_fit_into_memory_is_sorted_in_a_folder_of_its_own(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    with Dataset(folder, memory="100MB") as opened:
        many = "SELECT md5(range::VARCHAR) AS a, repeat('x', 100) || range AS b FROM range(1000000)"
        answer = opened.ask(f"SELECT b FROM ({many}) ORDER BY a LIMIT 1 OFFSET 500000")
        assert len(list(answer.rows)) == 1
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(("name", "why"), [("missing", "no such folder"), (".", "no dataset")])
def test_what_is_no_dataset_is_said(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(UsageError, match=f"{why}.*deltatape scan"):
        Dataset(tmp_path / name)
