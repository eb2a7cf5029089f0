import stat
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.store.private_file import write_private

PAGE = "<!doctype html>\n<html lang=en>\n"


def test_only_its_owner_can_read_it_and_it_replaces_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    write_private(path, f"{PAGE}old")
    write_private(path, f"{PAGE}Tromsø")
    assert path.read_text(encoding="utf-8") == f"{PAGE}Tromsø"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_no_such_page_is_never_replaced(tmp_path: Path) -> None:
    tape = tmp_path / "x.tape"
    tape.write_text("{}")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nothing")
    for path in (tape, link):
        with pytest.raises(UsageError, match="is there already, and no such page"):
            write_private(path, PAGE)
    assert tape.read_text() == "{}"
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("name", ["missing/x.html", "folder"])
def test_what_cannot_be_written_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="name a file to write"):
        write_private(tmp_path / name, "x")
