import stat
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.store.private_file import write_private


def test_only_its_owner_can_read_it_and_it_replaces_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    path.write_text("old")
    write_private(path, "Tromsø")
    assert path.read_text(encoding="utf-8") == "Tromsø"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["missing/x.html", "folder"])
def test_what_cannot_be_written_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="name a file to write"):
        write_private(tmp_path / name, "x")
