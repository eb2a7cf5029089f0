"""The processes that read tapes: killed, they are started again; the server goes on."""

import contextlib
import os
import shutil
import signal
from pathlib import Path

import pytest

from deltatape.inspector.index import is_current
from helpers.incidents import BROKEN, EMPTY
from helpers.inspected import Growing, Page, inspected

PLACE = f"tape={BROKEN.name}&exchange=1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "tapes"
    made.mkdir()
    shutil.copy(BROKEN, made)
    return made


def kill_index(page: Page) -> int:
    process = page.inspector._indexing._process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    return process.pid


def test_a_killed_index_is_started_again_and_sees_what_is_new(folder: Path, tmp_path: Path) -> None:
    with inspected(folder, tmp_path / "index") as page:
        before = page.indexed(1).json("/api/exchanges")
        pid = kill_index(page)
        assert page.json("/api/exchanges")["rows"] == before["rows"]
        shutil.copy(EMPTY, folder)
        page.wait(lambda news: news["indexed"]["of"] == 2)
        page.indexed(2)
        assert page.json("/api/exchanges")["total"] == before["total"] + 2
        assert page.inspector._indexing._process.pid != pid  # type: ignore[union-attr]


def test_an_index_that_is_made_anew_is_read_anew(folder: Path, tmp_path: Path) -> None:
    with inspected(folder, tmp_path / "index") as page:
        before = page.indexed(1).json("/api/exchanges")
        (tmp_path / "index").write_bytes(b"x" * 9_000)
        answer = page.get("/api/exchanges?q=demo")
        if answer.status == 503:  # else it was in memory
            assert "cannot be read" in answer.json()["error"]
        with page.news() as news:
            next(news)
            kill_index(page)
            next(each for each in news if each["indexed"]["done"] == 1)
        assert page.json("/api/exchanges")["rows"] == before["rows"]


def test_what_was_known_is_shown_before_the_index_is_brought_up(
    folder: Path, tmp_path: Path
) -> None:
    index = tmp_path / "index"
    with inspected(folder, index) as page:
        before = page.indexed(1).json("/api/exchanges")
    with inspected(folder, index) as page:
        assert page.inspector._ready.is_set()
        assert page.json("/api/exchanges")["rows"] == before["rows"]
    assert not is_current(index, "other rules")
    index.write_bytes(b"x" * 9_000)
    assert not is_current(index, "other rules")
    assert not is_current(tmp_path / "missing", "")
    assert not (tmp_path / "missing").exists()


def test_a_killed_document_process_is_replaced(folder: Path, tmp_path: Path) -> None:
    with inspected(folder, tmp_path / "index") as page:
        whole = page.indexed(1).json(f"/api/why?{PLACE}")
        processes = [*page.inspector._documents._all]
        for each in processes:
            os.kill(each.pid, signal.SIGKILL)
        # They may be asked before their end is noticed: that is said, and an answer comes later.
        answers = [page.get(f"/api/why?{PLACE}") for _ in range(len(processes) + 1)]
        for answer in answers[:-1]:
            assert answer.status in (200, 503)
            if answer.status == 503:
                assert "the process that reads the tape died of it" in answer.json()["error"]
        assert answers[-1].json() == whole


def test_no_process_outlives_the_server(folder: Path, tmp_path: Path) -> None:
    with inspected(folder, tmp_path / "index") as page:
        page.indexed(1).json(f"/api/why?{PLACE}")
        index = page.inspector._indexing._process
        assert index is not None
        processes = [index, *page.inspector._documents._all]
    for each in processes:
        assert each.returncode is not None


def test_a_tape_that_grows_is_seen_live(folder: Path, tmp_path: Path) -> None:
    with inspected(folder, tmp_path / "index") as page:
        page.indexed(1)
        growing = Growing(BROKEN, folder / "live.tape")
        with page.news() as news:
            growing.write(growing.until(1, b"request-end"))
            running = next(each["running"] for each in news if each["running"])
            assert [(row["tape"], row["exchange"]) for row in running] == [("live.tape", 1)]
            assert page.json("/api/thread?tape=live.tape&exchange=1")["rows"] == running
            for query, left in (("?q=live.tape%231", running), ("?code=T001&q=live", [])):
                with page.news(query) as filtered:
                    told = next(filtered)
                assert (told["running"], told["all_running"]) == (left, 1)
            growing.write(growing.until(1, b"end"))
            revision = next(each["revision"] for each in news if not each["running"])
        page_of = page.json("/api/exchanges?tape=live.tape")
        assert page_of["revision"] >= revision
        assert [row["exchange"] for row in page_of["rows"]] == [1]
        (tape, _) = page.json("/api/tapes")["tapes"]
        assert (tape["path"], tape["recording"]) == ("live.tape", True)
        growing.file.close()


def test_pages_that_are_gone_leave_their_places_to_others(folder: Path, tmp_path: Path) -> None:
    with inspected(folder, tmp_path / "index") as page:
        for _ in range(40):  # more than may follow at once
            with page.news() as news:
                next(news)


def test_several_pages_follow_at_once(folder: Path, tmp_path: Path) -> None:
    with inspected(folder, tmp_path / "index") as page:
        page.indexed(1)
        with page.news() as one, page.news() as other:
            assert next(one) == next(other)
            shutil.copy(EMPTY, folder)
            for news in (one, other):
                assert next(each for each in news if each["indexed"]["of"] == 2)


def test_a_damaged_tape_is_a_row_that_says_so(folder: Path, tmp_path: Path) -> None:
    (folder / "broken.tape").write_bytes(b"<script>alert(1)</script>\n")
    with inspected(folder, tmp_path / "index") as page:
        page.indexed(2)
        tapes = {each["path"]: each for each in page.json("/api/tapes")["tapes"]}
    tape = tapes["broken.tape"]
    assert tape["error"].startswith("line 1: no tape: ")
    assert (tape["exchanges"], tape["findings"], tape["analysed"]) == (None, None, False)
    assert tapes[BROKEN.name]["error"] is None


def test_a_page_that_follows_does_not_hold_up_the_end(folder: Path, tmp_path: Path) -> None:
    with contextlib.ExitStack() as last:
        with inspected(folder, tmp_path / "index") as page:
            news = last.enter_context(page.news())
            next(news)
        assert next(news, None) is None
