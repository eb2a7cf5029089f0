"""Whether a report can be written is known before it is."""

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.store.report_file import check_folder, check_report, write_private, write_report


def test_a_report_has_the_usual_mode_and_gives_way_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    before = os.umask(0o027)
    try:
        for number in (1, 2):
            check_report("--junit", path)
            write_report("--junit", path, f"<?xml?><suite n='{number}'/>")
    finally:
        os.umask(before)
    assert path.read_text() == "<?xml?><suite n='2'/>"
    assert path.stat().st_mode & 0o777 == 0o640


def test_what_is_no_report_stays(tmp_path: Path) -> None:
    tape, empty = tmp_path / "x.tape", tmp_path / "empty.xml"
    tape.write_text('{"deltatape":1}')
    empty.write_text("")
    with pytest.raises(UsageError, match="is there already, and no report"):
        check_report("--junit", tape)
    check_report("--junit", empty)
    check_report("--junit", Path(os.devnull))


def test_a_folder_is_there_or_is_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--junit: .*none is no folder"):
        check_report("--junit", tmp_path / "none" / "x.xml")
    check_folder("--keep", tmp_path / "none" / "deep", made=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"^--keep: .*file is no folder"):
        check_folder("--keep", tmp_path / "file" / "deep", made=True)


def complaint(function: Callable[[], None]) -> str:
    """What `function` complains of when called by a user who is not root, whom nothing stops."""
    mine = os.geteuid()
    os.seteuid(mine or 65534)
    try:
        with pytest.raises(UsageError) as told:
            function()
    finally:
        os.seteuid(mine)
    return str(told.value)


def test_what_must_not_be_read_or_written_is_told() -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's own is closed to others
        folder = Path(name)
        folder.chmod(0o755)
        closed, sealed, fixed = (folder / each for each in ("closed", "sealed.xml", "fixed.xml"))
        closed.mkdir(mode=0o500)
        for path, mode in ((sealed, 0o000), (fixed, 0o444)):
            path.write_text("<?xml?>")
            path.chmod(mode)
        assert "must not be written" in complaint(lambda: check_folder("--keep", closed, made=True))
        assert "Permission denied" in complaint(lambda: check_report("--junit", sealed))
        assert "must not be written" in complaint(lambda: check_report("--junit", fixed))


def test_a_report_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--junit .*: Is a directory"):
        write_report("--junit", tmp_path, "")


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
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tape, link, pipe):
        with pytest.raises(UsageError, match="is there already, and no such page"):
            write_private(path, PAGE)
    assert tape.read_text() == "{}"
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("name", ["missing/x.html", "folder"])
def test_what_cannot_be_written_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="name a file to write"):
        write_private(tmp_path / name, "x")
    with pytest.raises(UsageError, match=r"^\.: Is a directory; name a file to write"):
        write_private(Path(), "x")
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]


def test_an_interrupt_leaves_no_half_written_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_private(tmp_path / "x.html", PAGE)
    assert not [*tmp_path.iterdir()]
