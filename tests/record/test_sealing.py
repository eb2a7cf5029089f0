"""The process that seals finished tapes: killed at any moment, beside a ring that moves them."""

import dataclasses
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deltatape.model.rule_settings import DEFAULTS
from deltatape.record import sealing
from deltatape.record.sealing import Sealing, settle
from deltatape.store.packing import seal
from deltatape.store.reader import open_tape
from deltatape.store.ring import unmark
from helpers.incidents import BROKEN, CUT, FIXED
from helpers.program import environment

SETTINGS = json.dumps(dataclasses.asdict(DEFAULTS)).encode() + b"\n"
SAMPLES = (BROKEN, CUT, FIXED)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def sealed_in(folder: Path) -> list[str]:
    """Seal what is finished; return what is said of what cannot be."""
    return [*Sealing(folder, DEFAULTS).work()]


def test_finished_tapes_are_sealed_and_no_others(tmp_path: Path) -> None:
    shutil.copy(BROKEN, tmp_path / "a.ring.tape")
    shutil.copy(CUT, tmp_path / "pinned.tape")
    shutil.copy(FIXED, tmp_path / "busy.ring.tape")
    (tmp_path / "begun.ring.tape").touch()
    (tmp_path / "link.tape").symlink_to(FIXED)
    (tmp_path / "below").mkdir()
    shutil.copy(FIXED, tmp_path / "below" / "b.tape")
    with (tmp_path / "busy.ring.tape").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert sealed_in(tmp_path) == []
    assert names(tmp_path) == [
        *("a.ring.tape.zst", "begun.ring.tape", "below", "busy.ring.tape", "link.tape"),
        "pinned.tape.zst",
    ]
    assert names(tmp_path / "below") == ["b.tape"]
    assert sealed_in(tmp_path) == []
    assert "busy.ring.tape.zst" in names(tmp_path)
    assert sealed_in(tmp_path / "none") == []


def test_what_cannot_be_sealed_is_told_once_and_stays(tmp_path: Path) -> None:
    (tmp_path / "bad.tape").write_bytes(b"no tape\n")
    work = Sealing(tmp_path, DEFAULTS).work
    (told,) = work()
    assert "bad.tape:1: no tape" in told
    assert told.endswith("; it stays as it is")
    assert [*work()] == []
    assert names(tmp_path) == ["bad.tape"]


def test_a_tape_that_is_pinned_meanwhile_is_pinned_with_its_sealed_form(tmp_path: Path) -> None:
    path = tmp_path / "x.ring.tape"
    shutil.copy(BROKEN, path)
    packed = seal(path)
    assert unmark(path).name == "x.tape"
    settle(packed)
    assert names(tmp_path) == ["x.tape", "x.tape.zst"]
    assert sealed_in(tmp_path) == []
    assert names(tmp_path) == ["x.tape.zst"]


def test_of_a_tape_that_is_deleted_meanwhile_nothing_is_left(tmp_path: Path) -> None:
    path = tmp_path / "x.ring.tape"
    shutil.copy(BROKEN, path)
    packed = seal(path)
    path.unlink()
    settle(packed)
    assert names(tmp_path) == []


def test_what_was_sealed_and_not_removed_is_removed_later(tmp_path: Path) -> None:
    shutil.copy(BROKEN, tmp_path / "x.ring.tape")
    seal(tmp_path / "x.ring.tape")
    assert sealed_in(tmp_path) == []
    assert names(tmp_path) == ["x.ring.tape.zst"]


def test_a_tape_that_another_one_locks_for_a_moment_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(BROKEN, tmp_path / "x.tape")
    packed = seal(tmp_path / "x.tape")
    file = (tmp_path / "x.tape").open("rb")
    fcntl.flock(file, fcntl.LOCK_EX)
    monkeypatch.setattr(sealing, "sleep", lambda _: file.close())
    settle(packed)
    assert names(tmp_path) == ["x.tape.zst"]


def process(folder: Path) -> subprocess.Popen[bytes]:
    started = subprocess.Popen(
        [sys.executable, "-P", "-m", "deltatape.record.sealing", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **environment(folder)},
    )
    assert started.stdin is not None
    started.stdin.write(SETTINGS)
    started.stdin.flush()
    return started


def content(folder: Path, stem: str) -> bytes:
    """What is on a tape, in the form that is there; both may be for a moment."""
    path = folder / f"{stem}.tape"
    with open_tape(path if path.exists() else folder / f"{stem}.tape.zst").open() as journal:
        return journal.read()


@pytest.mark.parametrize("wait_ms", [0, 3, 30])
def test_killed_at_any_moment_it_loses_nothing(tmp_path: Path, wait_ms: int) -> None:
    expected = {}
    for number in range(9):
        shutil.copy(SAMPLES[number % 3], tmp_path / f"{number}.tape")
        expected[f"{number}"] = SAMPLES[number % 3].read_bytes()
    before = set(names(tmp_path))
    started = process(tmp_path)
    while set(names(tmp_path)) == before:  # until it has begun
        select.select([], [], [], 0.001)
    select.select([], [], [], wait_ms / 1000)
    started.kill()
    started.communicate()
    assert {stem: content(tmp_path, stem) for stem in expected} == expected
    assert sealed_in(tmp_path) == []
    assert names(tmp_path) == [f"{number}.tape.zst" for number in range(9)]
    assert {stem: content(tmp_path, stem) for stem in expected} == expected


def test_it_ends_with_its_standard_input(tmp_path: Path) -> None:
    (tmp_path / "bad.tape").write_bytes(b"no tape\n")
    started = process(tmp_path)
    told, _ = started.communicate()
    assert started.returncode == 0
    assert b"bad.tape:1: no tape" in told
