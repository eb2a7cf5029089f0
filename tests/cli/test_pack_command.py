"""`deltatape pack`, and every other command on what it makes."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deltatape.clock import SystemClock
from deltatape.store.reader import open_tape
from deltatape.store.sealed import SealedTape
from helpers.console import called
from helpers.incidents import BROKEN, CUT, FIXED
from helpers.program import environment
from helpers.sealing import sealed_copy, table_of
from helpers.shards import sharded

SAMPLES = (BROKEN, CUT, FIXED)
COMMANDS = (
    ("check", "T", "--format", "json"),
    ("check", "T#1", "--format", "json"),
    ("check", "T", "--format", "text"),
    ("why", "T", "--format", "json"),
    ("why", "T#1", "--format", "json", "--suspects"),
    ("show", "T", "--format", "json", "--calls"),
    ("show", "T#1", "--format", "json", "--events"),
    ("show", "T#1", "--format", "json", "--steps"),
    ("show", "T#1", "--raw"),
    ("show", "T", "--log", "--format", "json"),
    ("diff", "T#1", "T#1", "--format", "json"),
    ("fsck", "T", "--format", "json"),
    ("ls", "T", "--exchanges", "--format", "json"),
    ("ls", "T", "--trends", "--format", "json"),
    ("export", "T", "--format", "jsonl"),
    ("watch", "T"),
)


def packed(folder: Path, *arguments: str) -> str:
    result = called("pack", *arguments, folder=folder)
    assert result.returncode == 0, result.stderr
    return result.stdout.decode()


@pytest.mark.parametrize(
    ("options", "what"), [((), "unsealed"), (("--unpack",), "sealed")], ids=["pack", "unpack"]
)
def test_a_folder_without_tapes_leaves_nothing_to_do(
    tmp_path: Path, options: tuple[str, ...], what: str
) -> None:
    result = called("pack", *options, ".", folder=tmp_path)
    assert (result.returncode, result.stdout) == (0, b"")
    assert result.stderr.decode() == f"nothing to do: there is no {what} tape\n"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_command_says_the_same_of_both_forms(
    tmp_path: Path, sample: Path, command: tuple[str, ...]
) -> None:
    shutil.copy(sample, tmp_path / "x.tape")
    of_tape = called(*[each.replace("T", "x.tape") for each in command], folder=tmp_path)
    packed(tmp_path, "x.tape")
    assert not (tmp_path / "x.tape").exists()
    found = called(*[each.replace("T", "x.tape.zst") for each in command], folder=tmp_path)
    assert found.returncode == of_tape.returncode, found.stderr
    assert found.stdout.replace(b"x.tape.zst", b"x.tape") == of_tape.stdout
    assert found.stderr.replace(b"x.tape.zst", b"x.tape") == of_tape.stderr


@pytest.mark.parametrize(
    "command",
    [("redact", "T"), ("cut", "T#1", "-o", "y.tape"), ("splice", "T", "-o", "y.tape")],
)
def test_copies_of_both_forms_are_the_same(tmp_path: Path, command: tuple[str, ...]) -> None:
    made = []
    for name in ("x.tape", "x.tape.zst"):
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy(BROKEN, folder / "x.tape")
        if name.endswith("zst"):
            packed(folder, "x.tape")
        result = called(*[each.replace("T", name) for each in command], folder=folder)
        assert result.returncode == 0, result.stderr
        new = folder / result.stdout.decode().strip()
        made.append((new.name, new.read_bytes().split(b"\n", 1)[1]))
    assert made[0] == made[1]


def test_a_sealed_tape_plays(tmp_path: Path) -> None:
    path = sealed_copy(FIXED, tmp_path)
    app = (sys.executable, "-m", "deltatape.demo.app", "--accumulator", "by-index")
    result = called("replay", path, "--", *app, folder=tmp_path)
    assert result.returncode == 0
    assert b"2 played, 0 missed, 0 unplayed" in result.stderr


def test_a_folder_is_packed_but_for_what_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    shutil.copy(BROKEN, tmp_path / "below" / "a.tape")
    shutil.copy(CUT, tmp_path / "b.tape")
    shutil.copy(FIXED, tmp_path / "busy.tape")
    with (tmp_path / "busy.tape").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        result = called("pack", ".", folder=tmp_path)
    assert result.returncode == 0
    assert sorted(result.stdout.decode().split()) == ["b.tape.zst", "below/a.tape.zst"]
    assert b"busy.tape: is still being recorded; left out" in result.stderr
    assert b"packed 2 tapes: " in result.stderr
    listed = json.loads(called("ls", ".", "--format", "json", folder=tmp_path).stdout)["tapes"]
    assert {each["path"] for each in listed} == {"b.tape.zst", "below/a.tape.zst", "busy.tape"}
    assert packed(tmp_path, "--unpack", ".").split() == ["b.tape", "below/a.tape"]
    assert (tmp_path / "below" / "a.tape").read_bytes() == BROKEN.read_bytes()
    assert not [*tmp_path.rglob("*.zst")]


def test_what_is_kept_is_listed_and_checked_once(tmp_path: Path) -> None:
    shutil.copy(BROKEN, tmp_path / "x.tape")
    assert packed(tmp_path, "x.tape", "--keep") == "x.tape.zst\n"
    assert called("ls", ".", folder=tmp_path).stdout.count(b"x.tape") == 1
    report = json.loads(called("check", ".", "--format", "json", folder=tmp_path).stdout)
    assert {each["tape"] for each in report["findings"]} == {"x.tape"}
    assert called("pack", ".", folder=tmp_path).returncode == 0
    assert [each.name for each in tmp_path.iterdir()] == ["x.tape.zst"]


def test_what_cannot_be_packed_is_told_and_the_rest_is_packed(tmp_path: Path) -> None:
    shutil.copy(BROKEN, tmp_path / "x.tape")
    (tmp_path / "bad.tape").write_bytes(b"no tape\n")
    result = called("pack", "bad.tape", "none.tape", "x.tape", folder=tmp_path)
    assert result.returncode == 2
    assert result.stdout == b"x.tape.zst\n"
    assert result.stderr.count(b"deltatape: ") == 2
    result = called("pack", "x.tape.zst", folder=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"x.tape.zst: is sealed already" in result.stderr
    (tmp_path / "x.tape").write_bytes(b"mine")
    result = called("pack", "--unpack", "x.tape.zst", folder=tmp_path)
    assert result.returncode == 2
    assert b"x.tape: is there already; a tape is never overwritten" in result.stderr


def test_several_processes_pack_as_one_does(tmp_path: Path) -> None:
    found = []
    for jobs in ("1", "2"):
        folder = tmp_path / jobs
        folder.mkdir()
        for at, path in enumerate([*SAMPLES, *SAMPLES]):
            shutil.copy(path, folder / f"{at}.tape")
        (folder / "2.tape").write_bytes(b"no tape\n")
        names = [f"{at}.tape" for at in range(6)]
        result = called("pack", "--jobs", jobs, *names, "elsewhere/x.tape", folder=folder)
        sealed = {each.name: each.read_bytes() for each in folder.glob("*.zst")}
        assert (folder / "2.tape").exists()
        found.append((result.returncode, result.stdout, result.stderr, sealed))
        names = [f"{at}.tape.zst" for at in (5, 4, 3)]
        unpacked = called("pack", "--unpack", "--jobs", jobs, *names, folder=folder)
        assert unpacked.stdout == b"5.tape\n4.tape\n3.tape\n"
        assert (folder / "3.tape").read_bytes() == BROKEN.read_bytes()
    assert found[0] == found[1]
    assert found[0][:2] == (2, b"0.tape.zst\n1.tape.zst\n3.tape.zst\n4.tape.zst\n5.tape.zst\n")
    assert b"packed 5 tapes: " in found[0][2]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupt_leaves_whole_tapes_and_no_process(tmp_path: Path, jobs: str) -> None:
    head, _, rest = CUT.read_bytes().partition(b"\n")
    records = b"".join(
        rest.replace(b",1,", b",%d," % at).rpartition(b"[")[0] for at in range(1, 2000)
    )
    for name in range(8):
        (tmp_path / f"{name}.tape").write_bytes(head + b"\n" + records)
    with subprocess.Popen(
        [sys.executable, "-m", "deltatape", "pack", "--jobs", jobs, "."],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        until = SystemClock.now_ns() + 120_000_000_000
        while not [*tmp_path.glob(".*.part")]:
            assert SystemClock.now_ns() < until, "nothing is packed"
        os.killpg(process.pid, signal.SIGINT)
        # Workers have these pipes, too: nothing goes on once they are closed.
        printed, said = process.communicate(timeout=300)
        assert (process.returncode, said.strip()) == (130, b"")
    assert not [*tmp_path.glob(".*")]
    for name in range(8):
        sealed = tmp_path / f"{name}.tape.zst"
        assert sealed.exists() is not (tmp_path / f"{name}.tape").exists()
        assert f"{name}.tape.zst".encode() not in printed or sealed.exists()


def listed(folder: Path, *options: str) -> dict[str, Any]:
    result = called("ls", ".", "--format", "json", *options, folder=folder)
    (tape,) = json.loads(result.stdout)["tapes"]
    assert tape.pop("bytes") > 0
    assert tape.pop("age_ns") > 0
    found: dict[str, Any] = json.loads(json.dumps(tape).replace(".tape.zst", ".tape"))
    return found


def shown(folder: Path) -> bytes:
    """What a list says of a tape between its size and its age."""
    text = called("ls", ".", folder=folder).stdout
    return text.partition(b"exchange")[2].rpartition(b"  ")[0]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_list_says_the_same_of_both_forms(tmp_path: Path, sample: Path) -> None:
    shutil.copy(sample, tmp_path / "x.tape")
    expected = listed(tmp_path)
    assert expected["analysed"]
    text = shown(tmp_path)
    packed(tmp_path, "x.tape")
    assert listed(tmp_path) == listed(tmp_path, "--full") == expected
    assert shown(tmp_path) == text


def test_other_thresholds_do_not_use_what_was_found_when_it_was_sealed(tmp_path: Path) -> None:
    shutil.copy(FIXED, tmp_path / "x.tape")
    packed(tmp_path, "x.tape", "--keep")
    assert called("check", "x.tape.zst", folder=tmp_path).returncode == 0
    (tmp_path / "deltatape.yaml").write_text("rules:\n  stall: 1ms\n  stall-error: 2ms\n")
    for command in (("check",), ("ls", "--exchanges"), ("ls", "--trends")):
        of_tape = called(*command, "x.tape", "--format", "json", folder=tmp_path)
        found = called(*command, "x.tape.zst", "--format", "json", folder=tmp_path)
        assert b"D001" in of_tape.stdout
        assert found.stdout.replace(b"x.tape.zst", b"x.tape") == of_tape.stdout
    (tmp_path / "x.tape").unlink()
    assert listed(tmp_path)["findings"] > 0


def test_a_clean_tape_is_checked_by_its_index_alone(tmp_path: Path) -> None:
    path = sealed_copy(FIXED, tmp_path)
    data = bytearray(path.read_bytes())
    data[table_of(path)["frames"][1][0] + 20] ^= 1
    path.write_bytes(data)
    result = called("check", path, folder=tmp_path)
    assert (result.returncode, called("fsck", path, folder=tmp_path).returncode) == (0, 2)


def test_a_sealed_tape_is_not_changed_in_place(tmp_path: Path) -> None:
    path = sealed_copy(BROKEN, tmp_path)
    before = path.read_bytes()
    for command in (("redact", "--in-place", path), ("learn", path, "--volatile", "date")):
        result = called(*command, folder=tmp_path)
        assert result.returncode == 2
        assert b"is sealed, and does not change; `deltatape pack --unpack`" in result.stderr
    assert path.read_bytes() == before


def test_a_name_that_a_sealed_tape_has_is_taken(tmp_path: Path) -> None:
    sealed_copy(BROKEN, tmp_path).rename(tmp_path / "x-redacted.tape.zst")
    shutil.copy(BROKEN, tmp_path / "x.tape")
    result = called("redact", "x.tape", folder=tmp_path)
    assert result.stdout == b"x-redacted-2.tape\n"


def test_a_sealed_tape_is_one_under_any_name(tmp_path: Path) -> None:
    sealed_copy(BROKEN, tmp_path).rename(tmp_path / "renamed")
    assert called("check", "renamed", folder=tmp_path).returncode == 1
    assert isinstance(open_tape(tmp_path / "renamed"), SealedTape)


def test_shards_are_read_together_sealed_or_not(tmp_path: Path) -> None:
    first, second = sharded(BROKEN, tmp_path)
    expected = called("check", ".", "--format", "json", folder=tmp_path)
    packed(tmp_path, second.name)
    found = called("check", ".", "--format", "json", folder=tmp_path)
    assert found.returncode == expected.returncode
    assert found.stdout.replace(b".tape.zst", b".tape") == expected.stdout
    packed(tmp_path, first.name)
    found = called("check", ".", "--format", "json", folder=tmp_path)
    assert found.stdout.replace(b".tape.zst", b".tape") == expected.stdout
