import os
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.store.names import check_stem, open_new, prepare_folder


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
