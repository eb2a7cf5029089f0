import os
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.store import listing
from deltatape.store.listing import (
    Location,
    Unreadable,
    list_named,
    list_tapes,
    locate,
    locate_whole,
)
from helpers.disk import unreadable


def tape(folder: Path, name: str, seconds: int) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"12345")
    os.utime(path, (seconds, seconds))
    return path


def test_tapes_are_listed_newest_first_through_all_folders(tmp_path: Path) -> None:
    old = tape(tmp_path / "a", "deep/old.tape", 10)
    new = tape(tmp_path / "b", "new.tape", 30)
    middle = tape(tmp_path / "a", "middle.tape", 20)
    tape(tmp_path / "a", "notes.txt", 40)
    (tmp_path / "a" / "folder.tape").mkdir()
    (tmp_path / "a" / "link.tape").symlink_to(new)
    listed = list_tapes((tmp_path / "a", tmp_path / "b", tmp_path / "missing"))
    assert [found.path for found in listed] == [new, middle, old]
    assert (listed[0].size, listed[0].modified_ns) == (5, 30_000_000_000)


def test_tapes_of_the_same_time_are_listed_by_name(tmp_path: Path) -> None:
    tapes = [tape(tmp_path, name, 10) for name in ("a.tape", "b.tape", "c.tape")]
    assert [found.path for found in list_tapes((tmp_path,))] == tapes


def test_a_copy_comes_after_its_original_and_kept_ones_last(tmp_path: Path) -> None:
    names = (".deltatape/x.tape", ".deltatape/x-redacted.tape", "recordings/x.tape")
    tapes = [tape(tmp_path, name, 10) for name in names]
    assert [found.path for found in list_tapes((tmp_path,))] == tapes


def test_a_tape_that_is_moved_away_meanwhile_is_not_listed(tmp_path: Path) -> None:
    for name in ("a.tape", "b.tape", "c.tape"):
        tape(tmp_path, name, 1)
    found = listing._tapes_below(tmp_path)
    first = next(found).path.name
    gone = next(name for name in ("a.tape", "b.tape", "c.tape") if name != first)
    (tmp_path / gone).unlink()
    assert len(list(found)) == 1


def test_a_folder_that_cannot_be_read_is_told_and_the_others_are_listed(tmp_path: Path) -> None:
    new = tape(tmp_path, "new.tape", 30)
    tape(tmp_path, "sub/other.tape", 20)
    told: list[Unreadable] = []
    with unreadable(tmp_path / "sub"):
        assert [found.path for found in list_tapes((tmp_path,), told.append)] == [new]
        assert list_named((tmp_path,), told.append) == list_tapes((tmp_path,))
        with pytest.raises(UsageError, match=r"/sub: Permission denied$"):
            locate("", (tmp_path / "sub",))
    assert [folder.problem for folder in told] == [f"{tmp_path / 'sub'}: Permission denied"] * 2


def test_no_folder_and_a_file_have_no_tapes_and_are_not_told(tmp_path: Path) -> None:
    told: list[Unreadable] = []
    assert list_tapes((tmp_path / "none", tape(tmp_path, "x.tape", 1)), told.append) == ()
    assert told == []


def test_folders_that_are_named_have_to_be_there(tmp_path: Path) -> None:
    new = tape(tmp_path, "new.tape", 30)
    assert [found.path for found in list_named((tmp_path,))] == [new]
    with pytest.raises(UsageError, match="missing: there is no such tape or folder"):
        list_named((tmp_path, tmp_path / "missing"))


def test_a_tape_can_be_named_itself(tmp_path: Path) -> None:
    old, new = tape(tmp_path / "a", "old.tape", 10), tape(tmp_path / "b", "new.tape", 30)
    (tmp_path / "link.tape").symlink_to(old)
    assert [found.path for found in list_named((old, tmp_path / "b", new))] == [new, old]
    (linked,) = list_named((tmp_path / "link.tape",))
    assert (linked.size, linked.modified_ns) == (5, 10_000_000_000)


@pytest.mark.parametrize(
    ("text", "path", "exchange"),
    [
        ("x.tape", "x.tape", None),
        ("x.tape#12", "x.tape", 12),
        ("a#b/x.tape#3", "a#b/x.tape", 3),
        ("x.tape#", "x.tape#", None),
        ("x.tape#-1", "x.tape#-1", None),
        ("x.tape#1a", "x.tape#1a", None),
        ("x.tape#" + "9" * 30, "x.tape#" + "9" * 30, None),
        ("\0#2", "\0", 2),
        ("x" * 300 + "#2", "x" * 300, 2),
    ],
)
def test_a_place_on_a_tape(text: str, path: str, exchange: int | None) -> None:
    assert locate(text) == Location(path=Path(path), exchange=exchange)


def test_a_file_with_a_number_sign_in_its_name_is_a_file(tmp_path: Path) -> None:
    path = tape(tmp_path, "issue#7", 1)
    assert locate(str(path)) == Location(path=path, exchange=None)
    assert locate(f"{path}#2") == Location(path=path, exchange=2)


@pytest.mark.parametrize("number", ["", "x", "-1", "1a", "9" * 30, "1#2", "x#1", "1#2#3"])
def test_what_is_no_number_behind_a_tape_is_told(tmp_path: Path, number: str) -> None:
    path = tape(tmp_path, "x.tape", 1)
    with pytest.raises(UsageError) as told:
        locate(f"{path}#{number}")
    assert str(told.value) == (
        f"{path}#{number}: {number!r} is no number of an exchange; one from 1 is accepted, such as"
        f" {path}#1"
    )


def test_a_file_may_be_named_like_the_beginning_of_a_folder(tmp_path: Path) -> None:
    tape(tmp_path, "issue", 1)
    path = tmp_path / "issue#x" / "new.tape"
    assert locate(str(path)) == Location(path=path, exchange=None)


def test_without_a_name_the_latest_tape_is_meant(tmp_path: Path) -> None:
    tape(tmp_path, "old.tape", 1)
    new = tape(tmp_path, "new.tape", 2)
    assert locate("", (tmp_path,)) == Location(path=new, exchange=None)
    assert locate("#2", (tmp_path,)) == Location(path=new, exchange=2)


def test_without_a_name_and_without_a_tape_it_is_said_where_was_looked(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no tape in .*/a or .*/b; make one with"):
        locate("", (tmp_path / "a", tmp_path / "b"))


def test_where_a_whole_tape_is_needed_no_exchange_is_named(tmp_path: Path) -> None:
    path = tape(tmp_path, "x.tape", 1)
    assert locate_whole(str(path)) == path
    for refused in (f"{path}#1", f"{path}#1#2"):
        with pytest.raises(UsageError, match=r"x\.tape#"):
            locate_whole(refused)
    with pytest.raises(UsageError, match="names one exchange, but a whole tape is needed; omit #N"):
        list_named((Path(f"{path}#1"),))


def test_exchanges_are_counted_from_one() -> None:
    with pytest.raises(UsageError, match="counted from 1"):
        locate("x.tape#0")
