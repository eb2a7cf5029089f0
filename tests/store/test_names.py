import os
import re
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.store.names import (
    UlidSource,
    check_stem,
    folder_apart,
    open_new,
    prepare_folder,
    state_folder,
    ulid,
)
from helpers.tapes import StillClock


@pytest.mark.parametrize("stem", ["a", "2026-11-21T20-36-01", "A.b_c-d", "x" * 64, "-"])
def test_names_that_are_accepted(stem: str) -> None:
    assert check_stem(stem) == stem


@pytest.mark.parametrize(
    "stem", ["", ".", "..", ".hidden", "a/b", "../a", "a\\b", "a b", "ä", "a\n", "\0", "x" * 65]
)
def test_names_that_are_refused(stem: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name of a tape"):
        check_stem(stem)


def test_an_existing_gitignore_is_not_touched(tmp_path: Path) -> None:
    folder = tmp_path / ".deltatape"
    folder.mkdir()
    (folder / ".gitignore").write_text("mine\n")
    prepare_folder(folder)
    assert (folder / ".gitignore").read_text() == "mine\n"


def test_a_folder_of_another_name_gets_no_gitignore(tmp_path: Path) -> None:
    prepare_folder(tmp_path / "tapes")
    assert list((tmp_path / "tapes").iterdir()) == []


def test_a_link_in_the_place_of_a_tape_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    (tmp_path / "x.tape").symlink_to(target)
    fd, path = open_new(tmp_path, "x")
    os.close(fd)
    assert path.name == "x-2.tape"
    assert not target.exists()


class JumpingClock(StillClock):
    def __init__(self, walls_ms: list[int]) -> None:
        super().__init__()
        self._walls = iter(walls_ms)

    def wall_ns(self) -> int:
        return next(self._walls) * 1_000_000


def test_a_ulid_is_26_characters_of_crockfords_alphabet() -> None:
    assert re.fullmatch("[0-7][0-9A-HJKMNP-TV-Z]{25}", ulid(StillClock()))


def test_the_time_comes_first() -> None:
    # The example of the specification: 1469918176385 ms is 01ARYZ6S41.
    assert UlidSource().next(JumpingClock([1_469_918_176_385])).startswith("01ARYZ6S41")


def test_ulids_ascend_also_when_the_clock_stands_still_or_jumps_back() -> None:
    source = UlidSource()
    clock = JumpingClock([1000, 1000, 500, 1001, 2000])
    made = [source.next(clock) for _ in range(5)]
    assert made == sorted(set(made))


def test_state_lies_where_the_user_wants_it() -> None:
    assert state_folder({"XDG_STATE_HOME": "/s"}) == Path("/s/deltatape")
    assert state_folder({"XDG_STATE_HOME": "s", "HOME": "/h"}) == Path("/h/.local/state/deltatape")


def test_each_folder_has_one_apart(tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": "/s"}
    one, other = tmp_path / "a" / ".my app", tmp_path / "b" / ".my app"
    apart = folder_apart(one, environment)
    assert apart.parent == Path("/s/deltatape/tapes")
    assert re.fullmatch(r"my-app-[0-9a-f]{12}", apart.name)
    assert folder_apart(other, environment) != apart
    other.mkdir(parents=True)
    (tmp_path / "link").symlink_to(other)
    assert folder_apart(tmp_path / "link", environment) == folder_apart(other, environment)
    assert folder_apart(Path("/"), environment).name.startswith("root-")
