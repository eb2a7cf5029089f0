import stat
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.trials.shrink_memory import Answer, AskedBody, Memory, content_of
from helpers.taped import taped

BODY = AskedBody(data=b"\x00x", masked=((0, 1, "ab"),))
ANSWER = Answer(same=True, asked={2: BODY}, unplayed=frozenset({3}))


def test_answers_come_back_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "shrink" / "x.jsonl"
    memory = Memory(path)
    assert memory.found == 0
    memory.put("one", ANSWER)
    memory.put("two", Answer(same=False))
    again = Memory(path)
    assert again.found == 2
    assert again.get("one") == ANSWER
    assert again.get("two") == Answer(same=False)
    assert again.get("three") is None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again.forget()
    assert again.get("one") is None
    assert not path.exists()
    again.forget()


def test_lines_that_are_no_answers_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    Memory(path).put("one", ANSWER)
    with path.open("a") as file:
        file.write('[]\n{"tape": "a", "asked": 1, "unplayed": 2}\n{"tape": "b", "sa')
    assert Memory(path).found == 1
    path.write_bytes(b"\xff")
    assert Memory(path).found == 0


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "shrink").write_text("a file")
    with pytest.raises(UsageError, match="is kept there"):
        Memory(tmp_path / "shrink" / "x.jsonl").put("one", ANSWER)


def test_all_that_is_played_or_asked_counts_for_the_content() -> None:
    one = taped()
    contents = {
        content_of([one]),
        content_of([]),
        content_of([one, one]),
        content_of([taped([(10, b"data: 2\n\n")])]),
        content_of([replace(one, request=replace(one.request, body=b"other"))]),
    }
    assert len(contents) == 5
    assert content_of([one]) == content_of([replace(one, tape="other.tape")])


def test_it_is_for_the_owners_eyes_as_the_folder_of_tapes_is(tmp_path: Path) -> None:
    folder = tmp_path / ".deltatape"
    Memory(folder / "shrink" / "x.jsonl").put("one", ANSWER)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / "shrink")] == [
        0o700
    ] * 2
    assert (folder / ".gitignore").read_text() == "*\n"
