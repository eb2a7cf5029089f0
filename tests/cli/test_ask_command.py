import csv
import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from deltatape.ask.prepared import questions
from helpers.console import called, on_terminal
from helpers.datasets import at, write_rows
from helpers.json_schemas import schema

DATASET = "dataset"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One with a dataset: two providers, three days."""
    for place in range(3):
        day = f"2026-11-2{place}"
        rows = [
            {
                "exchange": 1,
                "at": at("10:00:00", day),
                "provider": "openai" if place else "mistral",
                "model": "gpt-5",
                "thread": 1,
                "marks": ["retry", "loop"],
            }
        ]
        write_rows(tmp_path / DATASET, "exchanges", f"T{place}", rows, day=day)
        write_rows(tmp_path / DATASET, "tapes", f"T{place}", [{"exchanges": 1}], day=day)
    return tmp_path


def _asked(folder: Path, *arguments: str, code: int = 0, width: str = "100") -> tuple[str, str]:
    done = called("ask", DATASET, *arguments, folder=folder, env={"COLUMNS": width})
    assert done.returncode == code, done.stderr
    return done.stdout.decode(), done.stderr.decode()


def test_without_a_question_the_prepared_ones_are_listed(folder: Path) -> None:
    listed = _asked(folder)[0].splitlines()
    assert [line.split()[0] for line in listed] == list(questions())


def test_an_answer_is_a_table(folder: Path) -> None:
    title, head, *rows = _asked(folder, "traffic")[0].splitlines()
    assert title == questions()["traffic"].title
    assert head.split()[:2] == ["day", "exchanges"]
    assert [row.split()[0] for row in rows] == ["2026-11-20", "2026-11-21", "2026-11-22"]


def test_no_line_of_a_table_is_wider_than_the_page(folder: Path) -> None:
    for name in questions():
        assert all(len(line) <= 80 for line in _asked(folder, name, width="80")[0].splitlines())


def test_an_answer_without_rows_says_so(folder: Path) -> None:
    assert _asked(folder, "findings")[0].splitlines()[1] == "no rows"


def test_values_of_every_type_are_shown(folder: Path) -> None:
    values = "true AS a, [1, 2] AS b, TIMESTAMP '2026-01-02 03:04:05' AS c, NULL AS d, 1.5 AS e"
    row = _asked(folder, "--sql", f"SELECT {values}, repeat('x', 300) AS f")[0].splitlines()[2]
    assert row.startswith("yes  1, 2  2026-01-02 03:04:05     1.5  xxx")


def test_json_has_every_value(folder: Path) -> None:
    values = (
        "NULL AS a, 'x' AS b, 1.5::DOUBLE AS c, 'nan'::DOUBLE AS d, 2.0::DECIMAL(9,1) AS e,"
        " 2.5::DECIMAL(9,1) AS f, DATE '2026-01-02' AS g, TIMESTAMP '2026-01-02 03:04:05' AS h,"
        " INTERVAL '90 seconds' AS i, 'ab'::BLOB AS j, {'k': [DATE '2026-01-02']} AS k,"
        " TIMESTAMPTZ '2026-01-02 03:04:05+00' AS l"
    )
    found = json.loads(_asked(folder, "--sql", f"SELECT {values}", "--format", "json")[0])
    jsonschema.validate(found, schema("ask"))
    assert found["rows"] == [
        {
            "a": None,
            "b": "x",
            "c": 1.5,
            "d": None,
            "e": 2,
            "f": 2.5,
            "g": "2026-01-02",
            "h": "2026-01-02T03:04:05Z",
            "i": 90.0,
            "j": "6162",
            "k": {"k": ["2026-01-02"]},
            "l": "2026-01-02T03:04:05+00:00",
        }
    ]


def test_json_names_the_question(folder: Path) -> None:
    found = json.loads(_asked(folder, "traffic", "--format", "json")[0])
    jsonschema.validate(found, schema("ask"))
    assert (found["question"], len(found["rows"])) == ("traffic", 3)
    assert found["columns"][0] == {"name": "day", "type": "DATE"}


def test_csv_has_a_line_for_each_row(folder: Path) -> None:
    sql = "SELECT exchange, marks, NULL AS nothing, 'a,\"b\"' AS quoted FROM exchanges LIMIT 1"
    rows = list(csv.reader(_asked(folder, "--sql", sql, "--format", "csv")[0].splitlines()))
    assert rows == [
        ["exchange", "marks", "nothing", "quoted"],
        ["1", '["retry", "loop"]', "", 'a,"b"'],
    ]


def test_what_terminals_obey_is_escaped(folder: Path) -> None:
    for form in ("text", "csv", "json"):
        assert "\x1b" not in _asked(folder, "--sql", "SELECT chr(27) AS x", "--format", form)[0]


def test_rows_beyond_the_limit_are_left_out(folder: Path) -> None:
    assert len(_asked(folder, "traffic", "--limit", "2")[0].splitlines()) == 4


def test_people_are_told_of_rows_that_are_not_shown(folder: Path) -> None:
    out, err = _asked(folder, "--sql", "SELECT range AS n FROM range(250)")
    assert len(out.splitlines()) == 102
    assert "150 rows more" in err


def test_exchanges_are_chosen_by_day_and_provider(folder: Path) -> None:
    chosen = ("--since", "2026-11-20", "--until", "2026-11-21", "--provider", "openai")
    found = json.loads(_asked(folder, "traffic", *chosen, "--format", "json")[0])
    assert [row["day"] for row in found["rows"]] == ["2026-11-21"]


def test_an_answer_is_drawn(folder: Path) -> None:
    lines = _asked(folder, "traffic", "--plot", "--value", "conversations")[0].splitlines()
    assert lines[1].startswith("2026-11-20 ████")
    assert lines[1].endswith(" 1")


def test_people_are_told_of_rows_that_are_not_drawn(folder: Path) -> None:
    out, err = _asked(folder, "--sql", "SELECT range AS n FROM range(50)", "--plot")
    assert len(out.splitlines()) == 41
    assert "10 rows more" in err


def test_an_svg_file_is_written_beside_the_table(folder: Path) -> None:
    out, err = _asked(folder, "traffic", "--svg", "traffic.svg")
    assert "exchanges" in out
    assert "wrote traffic.svg" in err
    assert (folder / "traffic.svg").read_text().startswith("<svg ")


def test_an_svg_file_that_cannot_be_written_is_an_error(folder: Path) -> None:
    _, err = _asked(folder, "traffic", "--svg", "none/traffic.svg", code=2)
    assert "No such file or directory" in err


def test_tapes_of_other_rules_are_told(folder: Path) -> None:
    write_rows(folder / DATASET, "tapes", "T9", [{}], rules="0")
    assert "of other rules" in _asked(folder, "traffic")[1]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["lost-call"], "Did you mean 'lost-calls'?"),
        (["traffic", "--sql", "SELECT 1"], "give one"),
        (["--limit", "3"], "--limit: has no effect without a question"),
        (["traffic", "--value", "day"], "--value: has no effect without --plot or --svg"),
        (["traffic", "--plot", "--format", "csv"], "--format csv is for programs"),
        (["traffic", "--since", "yesterday"], "invalid day; use 2026-11-21"),
        (
            ["traffic", "--since", "2026-11-21", "--until", "2026-11-20"],
            "--since 2026-11-21: is after --until 2026-11-20; no exchange lies between",
        ),
        (["traffic", "--plot", "--value", "day"], "DATE values, not numbers"),
        (["--sql", "DROP VIEW exchanges"], "one SELECT statement"),
    ],
)
def test_what_cannot_be_asked_is_an_error(folder: Path, arguments: list[str], why: str) -> None:
    assert why in _asked(folder, *arguments, code=2)[1]


def test_an_error_in_sql_has_its_place_on_a_line(folder: Path) -> None:
    _, err = _asked(folder, "--sql", "SELECT nope\nFROM exchanges", code=2)
    lines = err.splitlines()
    assert lines[0].startswith("deltatape: Binder Error")
    assert lines[-2:] == ["LINE 1: SELECT nope", "               ^^^^"]


def test_a_folder_without_a_dataset_is_an_error(tmp_path: Path) -> None:
    done = called("ask", tmp_path, "traffic", folder=tmp_path)
    assert done.returncode == 2
    assert b"`deltatape scan` makes a dataset" in done.stderr


def test_a_terminal_shows_the_same_table(folder: Path) -> None:
    assert b"2026-11-20" in on_terminal("ask", DATASET, "traffic", folder=folder).stdout


def test_without_duckdb_the_extra_is_named(folder: Path) -> None:
    program = "import sys; sys.modules['duckdb'] = None; from deltatape.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "ask", DATASET, "traffic"],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    assert b'pip install "deltatape[fleet]"' in done.stderr
