import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from deltatape.child.ready import ReadyFile
from deltatape.errors import UsageError
from helpers.disk import immutable

HOLDER = """
import sys
from pathlib import Path
from deltatape.child.ready import ReadyFile

ReadyFile(Path(sys.argv[1])).write({"url": "http://127.0.0.1:1"})
print("ready", flush=True)
sys.stdin.read()
"""


def test_it_says_where_and_who_and_goes_away_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    ready = ReadyFile(path)
    assert not path.exists()
    ready.write({"url": "http://127.0.0.1:8377", "control": None})
    assert json.loads(path.read_text()) == {
        "version": 1,
        "url": "http://127.0.0.1:8377",
        "control": None,
        "pid": os.getpid(),
    }
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    ready.remove()
    ready.remove()
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    path.touch()
    ready = ReadyFile(path)
    ready.write({"url": "x"})
    assert json.loads(path.read_text())["url"] == "x"
    ready.remove()


def test_what_a_living_process_says_stays_and_what_a_dead_one_said_is_replaced(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ready.json"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"ready\n"
        with pytest.raises(UsageError, match="another running recorder uses it"):
            ReadyFile(path)
        holder.kill()
    assert path.exists()
    ready = ReadyFile(path)
    ready.write({"url": "mine"})
    assert json.loads(path.read_text())["url"] == "mine"
    ready.remove()


@pytest.mark.parametrize("text", ["notes", "[1]", '{"version": 1}', "[" * 90_000, "x" * 70_000])
def test_a_file_of_somebody_else_is_never_overwritten(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(UsageError, match="another file is there already"):
        ReadyFile(path)
    assert path.read_text() == text


def test_a_file_that_came_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    ready = ReadyFile(path)
    path.write_text("mine")
    with pytest.raises(UsageError, match="another file is there already"):
        ready.write({"url": "x"})
    ready.remove()
    assert path.read_text() == "mine"


def test_a_file_that_took_its_place_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    ready = ReadyFile(path)
    ready.write({"url": "x"})
    path.unlink()
    path.write_text("mine")
    ready.remove()
    assert path.read_text() == "mine"


def test_places_that_take_no_file_are_told(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe):
        with pytest.raises(UsageError, match="not a regular file"):
            ReadyFile(path)
    with pytest.raises(UsageError, match="No such file or directory; name a writable file"):
        ReadyFile(tmp_path / "missing" / "ready.json").write({})
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="Not a directory"):
        ReadyFile(tmp_path / "file" / "ready.json")


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    path.touch()
    ready = ReadyFile(path)
    with immutable(path), pytest.raises(UsageError, match=r"name a writable file"):
        ready.write({"url": "x"})
    assert list(tmp_path.iterdir()) == [path]
