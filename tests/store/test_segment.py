import fcntl
import os
import shutil
from pathlib import Path

import pytest

from deltatape.store.segment import (
    TapeSegment,
    held,
    is_finished,
    is_segment,
    list_segments,
    unmark,
    wall_of,
)
from helpers.immutable import immutable
from helpers.tapes import HEADER

LINE = (
    b'{"deltatape":1,"id":"01JD3ZQ8T0000000000000TAPE","tool":"",'
    b'"recorded_at":"2026-11-21T20:36:01.000000000Z","source":"gateway"}\n'
)
STOP = b'[1,0,"stop",{"reason":"sigint"}]\n'


def test_segments_are_told_by_their_names() -> None:
    names = ["a.ring.tape", "a.ring-2.tape", "a.tape", ".ring.tape", "a.ring-x.tape"]
    assert [is_segment(Path(name)) for name in names] == [True, True, False, False, False]


def test_only_regular_files_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "a.ring.tape"
    path.write_bytes(LINE)
    os.utime(path, ns=(5, 7))
    (tmp_path / "b.ring.tape").mkdir()
    (tmp_path / "c.ring.tape").symlink_to(path)
    os.mkfifo(tmp_path / "d.ring.tape")
    assert list_segments(tmp_path) == (TapeSegment(path=path, size=len(LINE), modified_ns=7),)


def test_a_segment_was_begun_when_its_header_says(tmp_path: Path) -> None:
    path = tmp_path / "a.ring.tape"
    path.write_bytes(LINE)
    segment = TapeSegment(path=path, size=0, modified_ns=7)
    assert segment.begun_ns == wall_of(HEADER.recorded_at) == 1_795_293_361_000_000_000
    path.write_bytes(b"damaged")
    assert segment.begun_ns == 7


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01T00:00:00.000000000Z"])
def test_what_is_no_time_is_long_ago(text: str) -> None:
    assert wall_of(text) == 0


def test_a_locked_an_empty_and_a_missing_file_are_not_finished(tmp_path: Path) -> None:
    path = tmp_path / "a.ring.tape"
    assert not is_finished(path)
    path.touch()
    assert not is_finished(path)
    path.write_bytes(LINE)
    assert is_finished(path)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert not is_finished(path)


def test_who_holds_a_file_is_alone_with_it(tmp_path: Path) -> None:
    path = tmp_path / "a.ring.tape"
    path.write_bytes(LINE)
    with held(path) as mine, held(path) as yours:
        assert (mine, yours) == (True, False)
    assert is_finished(path)


def test_without_locks_only_what_was_ended_in_good_order_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.ring.tape"

    def refuse(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    for data, finished in ((LINE, False), (LINE + STOP, True), (b"no tape", False)):
        path.write_bytes(data)
        assert is_finished(path) is finished


def test_a_name_that_another_file_has_taken_meanwhile_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "a.ring.tape", tmp_path / "other"
    path.write_bytes(LINE)
    other.write_bytes(LINE)
    lock = fcntl.flock

    def replaced_meanwhile(fd: int, how: int) -> None:
        lock(fd, how)
        shutil.move(other, path)

    monkeypatch.setattr(fcntl, "flock", replaced_meanwhile)
    assert not is_finished(path)

    def deleted_meanwhile(fd: int, how: int) -> None:
        lock(fd, how)
        path.unlink()

    monkeypatch.setattr(fcntl, "flock", deleted_meanwhile)
    assert not is_finished(path)


def test_unmarking_overwrites_nothing(tmp_path: Path) -> None:
    for name in ("a.ring.tape", "a.ring-2.tape", "a.tape"):
        (tmp_path / name).write_text(name)
    assert unmark(tmp_path / "a.ring.tape") == tmp_path / "a-2.tape"
    assert unmark(tmp_path / "a.ring-2.tape") == tmp_path / "a-2-2.tape"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a-2-2.tape",
        "a-2.tape",
        "a.tape",
    ]
    assert (tmp_path / "a.tape").read_text() == "a.tape"


def test_a_segment_that_cannot_be_renamed_leaves_no_other_name(tmp_path: Path) -> None:
    path = tmp_path / "a.ring.tape"
    path.write_bytes(LINE)
    with immutable(path), pytest.raises(PermissionError):
        unmark(path)
    assert [each.name for each in tmp_path.iterdir()] == ["a.ring.tape"]
