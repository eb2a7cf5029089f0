"""Datasets in an object store, over the protocol of S3 on loopback."""

import hashlib
import shutil
from pathlib import Path

import pytest

from deltatape.ask.copies import local_dataset
from deltatape.ask.dataset import Dataset
from deltatape.objects.urls import open_store
from helpers.console import called
from helpers.datasets import write_rows
from helpers.object_store import BUCKET

URL = f"s3://{BUCKET}/dataset"


def _put(folder: Path, key: str) -> None:
    data = (folder / key).read_bytes()
    sha256 = hashlib.sha256(data).hexdigest()
    open_store(URL).put(key, iter([data]), size=len(data), sha256=sha256)


def _fill(folder: Path, *tapes: str) -> None:
    """Put a dataset with some tapes into the store."""
    for tape in tapes:
        write_rows(folder, "exchanges", tape, [{"exchange": 1}])
        write_rows(folder, "digests", tape, [{"exchange": 1}])
        write_rows(folder, "tapes", tape, [{"source": tape}])
    for path in folder.rglob("*.parquet"):
        _put(folder, path.relative_to(folder).as_posix())


def _copied(folder: Path) -> dict[str, int]:
    return {
        path.relative_to(folder).as_posix(): path.stat().st_ino
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_folder_is_itself(tmp_path: Path) -> None:
    assert local_dataset(str(tmp_path), {}) == tmp_path
    assert local_dataset(tmp_path.as_uri(), {}) == tmp_path


@pytest.mark.usefixtures("s3")
def test_of_a_store_there_is_a_copy_without_the_digests(tmp_path: Path) -> None:
    _fill(tmp_path / "made", "A", "B")
    folder = local_dataset(URL, {"HOME": str(tmp_path)})
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {name.partition("/")[0] for name in _copied(folder)} == {"exchanges", "tapes"}
    with Dataset(folder) as opened:
        assert sorted(opened.ask("SELECT tape FROM exchanges").rows) == [("A",), ("B",)]


@pytest.mark.usefixtures("s3")
def test_only_what_is_new_is_copied_and_what_is_gone_is_removed(tmp_path: Path) -> None:
    _fill(tmp_path / "made", "A", "B")
    home = {"HOME": str(tmp_path)}
    before = _copied(local_dataset(URL, home))
    shutil.rmtree(tmp_path / "made")
    _fill(tmp_path / "made", "C")
    for name in before:
        if "/B-" in name:
            open_store(URL).remove(name)
    after = _copied(local_dataset(URL, home))
    kept = {name: inode for name, inode in before.items() if "/B-" not in name}
    assert {name: inode for name, inode in after.items() if "/C-" not in name} == kept
    assert len(after) == len(kept) + 2


@pytest.mark.usefixtures("s3")
def test_no_key_leads_out_of_the_folder(tmp_path: Path) -> None:
    made = tmp_path / "made"
    _fill(made, "A")
    (made / "x").mkdir()
    data = b"out"
    for key in ("tapes/day=2026-11-21/deeper/x-0.parquet", "tapes/x.parquet"):
        sha256 = hashlib.sha256(data).hexdigest()
        open_store(URL).put(key, iter([data]), size=len(data), sha256=sha256)
    names = _copied(local_dataset(URL, {"HOME": str(tmp_path)}))
    assert not [name for name in names if "x" in name.rpartition("/")[2].partition("-")[0]]


@pytest.mark.usefixtures("s3")
def test_a_store_is_asked(tmp_path: Path) -> None:
    _fill(tmp_path / "made", "A")
    done = called("ask", URL, "--sql", "SELECT tape FROM tapes", folder=tmp_path)
    assert done.stdout.decode().splitlines()[1:] == ["tape", "A"]


@pytest.mark.usefixtures("s3")
def test_an_empty_store_is_no_dataset(tmp_path: Path) -> None:
    done = called("ask", URL, "traffic", folder=tmp_path)
    assert done.returncode == 2
    assert f"{URL}: holds no dataset; `deltatape scan`".encode() in done.stderr
