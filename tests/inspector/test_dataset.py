"""The page of a dataset: its exchanges and trends, from the rows of a scan."""

import json
import shutil
from pathlib import Path

import pytest

from deltatape.inspector.dataset import DatasetIndexing
from deltatape.inspector.index import Filter, IndexReader
from helpers.datasets import at, write_rows
from helpers.incidents import BROKEN
from helpers.inspected import inspected
from helpers.json_schemas import validate


def _exchange(number: int, **more: object) -> dict[str, object]:
    return {
        "exchange": number,
        "at": at(f"10:00:{number:02}"),
        "provider": "openai",
        "model": "gpt-5",
        "dialect": "openai-chat",
        "method": "POST",
        "target": "/v1/chat/completions",
        "thread": 1,
        **more,
    }


def _finding(number: int, **more: object) -> dict[str, object]:
    return {
        "exchange": number,
        "about": number,
        "code": "T001",
        "name": "empty-tool-arguments",
        "severity": "warning",
        "blame": "provider",
        "confidence": "likely",
        "fingerprint": f"f{number}",
        **more,
    }


def _tape(folder: Path, key: str, source: str, *rows: dict[str, object], **more: object) -> None:
    write_rows(folder, "exchanges", key, rows)
    tape = {"source": source, "bytes": 100, "exchanges": len(rows), "scanned_at": at("12:00:00")}
    write_rows(folder, "tapes", key, [{**tape, "recorded_at": at("10:00:00"), **more}])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dataset of two tapes: one has a finding that counts for an earlier exchange."""
    folder = tmp_path / "dataset"
    worst = {"worst_code": "T001", "worst_severity": "warning", "worst_confidence": "likely"}
    counted = {"findings": 2, "codes": ["T001", "C001"], "input_tokens": 7}
    _tape(folder, "A", "/tapes/a.tape", _exchange(1, **counted, **worst), _exchange(2, before=1))
    found = [_finding(1), _finding(2, about=1, code="C001", severity="info")]
    write_rows(folder, "findings", "A", found)
    _tape(folder, "B", "/tapes/b.tape", _exchange(1, at=None, model=None))
    return folder


class _Index:
    def __init__(self, folder: Path, index: Path, **more: int) -> None:
        self.indexing = DatasetIndexing(folder, index, "rules", **more)
        self.index = index

    def rows(self) -> dict[str, dict[str, object]]:
        """Look at the dataset, and return all rows."""
        for _ in self.indexing.look():
            pass
        reader = IndexReader(self.index)
        page = reader.page(Filter(), "at", offset=0, limit=500)
        reader.close()
        rows = [json.loads(row) for row in page.rows]
        return {f"{row['tape']}#{row['exchange']}": row for row in rows}


@pytest.fixture
def indexed(folder: Path, tmp_path: Path) -> _Index:
    return _Index(folder, tmp_path / "x.index")


def test_rows_are_those_of_the_document(indexed: _Index) -> None:
    rows = indexed.rows()
    validate("exchanges", {"version": 1, "exchanges": list(rows.values())})
    assert set(rows) == {"a.tape#1", "a.tape#2", "b.tape#1"}
    first = rows["a.tape#1"]
    assert (first["at"], first["model"]) == ("2026-11-21T10:00:01.000Z", "gpt-5")
    assert first["tokens"] == {"input": 7, "output": None}
    assert rows["b.tape#1"]["at"] is rows["b.tape#1"]["tokens"] is None


def test_findings_count_for_the_exchange_that_they_are_about(indexed: _Index) -> None:
    rows = indexed.rows()
    assert rows["a.tape#1"]["codes"] == ["T001", "C001"]
    assert (rows["a.tape#1"]["findings"], rows["a.tape#2"]["findings"]) == (2, 0)
    assert rows["a.tape#1"]["worst"] == {
        "code": "T001",
        "name": "empty-arguments",
        "severity": "warning",
        "blame": None,
        "confidence": "likely",
    }
    shows = rows["a.tape#2"]["shows"]
    assert isinstance(shows, list)
    assert [(each["code"], each["exchange"]) for each in shows] == [("C001", 1)]


def test_what_joining_shows_counts(indexed: _Index, folder: Path) -> None:
    before = indexed.rows()
    error = _finding(2, tape="A", code="C002", severity="error", across=True)
    write_rows(folder, "findings", "JOIN", [error])
    after = indexed.rows()
    assert before["a.tape#2"]["worst"] is None
    assert after["a.tape#2"]["worst"]["code"] == "C002"  # type: ignore[index]


def test_tapes_that_are_gone_leave_the_index(indexed: _Index, folder: Path) -> None:
    indexed.rows()
    (path,) = (folder / "tapes").rglob("B-*")
    path.unlink()
    assert set(indexed.rows()) == {"a.tape#1", "a.tape#2"}


def test_only_tapes_that_were_scanned_again_are_read_again(indexed: _Index, folder: Path) -> None:
    indexed.rows()
    revision = indexed.indexing.news()
    _tape(folder, "B", "/tapes/b.tape", _exchange(1, model="new"), scanned_at=at("13:00:00"))
    assert indexed.rows()["b.tape#1"]["model"] == "new"
    assert indexed.indexing.news() != revision
    assert indexed.indexing.news() is None


def test_the_newest_exchanges_are_listed_where_there_are_too_many(
    folder: Path, tmp_path: Path
) -> None:
    _tape(folder, "C", "/tapes/c.tape", _exchange(1), recorded_at=at("11:00:00"))
    some = _Index(folder, tmp_path / "some.index", most=3)
    assert set(some.rows()) == {"c.tape#1", "a.tape#1", "a.tape#2"}
    reader = IndexReader(tmp_path / "some.index")
    problems = {tape.id: tape.problem for tape, _ in reader.tapes()}
    reader.close()
    assert problems["b.tape"] == "left out: the newest 3 exchanges are listed"


def test_a_dataset_that_is_gone_changes_nothing(indexed: _Index, folder: Path) -> None:
    before = indexed.rows()
    shutil.rmtree(folder)
    assert indexed.rows() == before


def test_tapes_of_one_name_are_listed_by_their_keys(indexed: _Index, folder: Path) -> None:
    _tape(folder, "D", "/elsewhere/a.tape", _exchange(1))
    assert {name.partition("#")[0] for name in indexed.rows()} == {"A", "D", "b.tape"}


def test_the_page_shows_the_trends_and_opens_tapes_that_are_there(
    folder: Path, tmp_path: Path
) -> None:
    tape = tmp_path / "broken.tape"
    shutil.copy(BROKEN, tape)
    _tape(folder, "E", str(tape), _exchange(1))
    with inspected(folder, tmp_path / "page.index", dataset=True) as page:
        page.indexed(3)
        trends = page.json("/api/trends")
        validate("trends", trends)
        assert sum(each["exchanges"] for each in trends["trends"]) == 4
        assert page.get("/api/show?tape=broken.tape&exchange=1").status == 200
        assert page.get("/api/show?tape=a.tape&exchange=1").status == 404
