"""`deltatape keep`: a tape redacted and promoted into the project's recordings."""

import fcntl
import shutil
import stat
from pathlib import Path

import pytest

from deltatape.cli.keep_command import kept_stem
from deltatape.cli.redact_command import counted
from deltatape.store.names import check_stem
from deltatape.store.reader import open_tape
from deltatape.why.overview import TapeOverview, overview
from helpers.console import called
from helpers.incidents import BROKEN, CUT, EMPTY, recorded
from helpers.secret_tapes import KEY, exchange, record, tape
from helpers.tapes import write_tape

LEAKY = tape(*exchange(request=[b'{"model":"m"}'], reads=[KEY.encode()]))
KEPT = "recordings/2026-11-21-demo-model-empty-arguments.tape"


def test_the_latest_tape_is_kept_under_a_name_that_tells(tmp_path: Path) -> None:
    recorded(tmp_path, CUT, EMPTY)
    result = called("keep", folder=tmp_path)
    assert (result.returncode, result.stdout.decode()) == (0, f"{KEPT}\n")
    assert b"empty-arguments.tape: secrets overwritten: none" in result.stderr
    kept = tmp_path / KEPT
    assert kept.read_bytes() == EMPTY.read_bytes()
    assert stat.S_IMODE(kept.stat().st_mode) & 0o044 == 0o044
    assert (tmp_path / ".deltatape" / EMPTY.name).exists()


def test_a_name_that_is_taken_gets_a_number(tmp_path: Path) -> None:
    recorded(tmp_path, EMPTY)
    called("keep", folder=tmp_path)
    with (tmp_path / ".deltatape" / EMPTY.name).open("ab") as file:
        file.write(record(99_000_000_000, 0, "note", {"text": "more"}))
    again = called("keep", folder=tmp_path)
    assert again.stdout.decode() == KEPT.replace(".tape", "-2.tape") + "\n"


def test_a_tape_is_not_kept_twice(tmp_path: Path) -> None:
    recorded(tmp_path, EMPTY)
    called("keep", folder=tmp_path)
    again = called("keep", folder=tmp_path)
    assert (again.returncode, again.stdout.decode()) == (0, f"{KEPT}\n")
    assert f"note: {KEPT} is there already, with the same content\n" in again.stderr.decode()
    assert [path.name for path in (tmp_path / "recordings").iterdir()] == [Path(KEPT).name]


def test_it_says_what_is_still_in_it_and_what_to_do_next(tmp_path: Path) -> None:
    recorded(tmp_path, EMPTY)
    said = called("keep", folder=tmp_path).stderr.decode()
    assert "note: prompts and answers are still in it; deltatape keep --content masks them" in said
    assert said.endswith(
        f"next: deltatape replay {KEPT} -- CMD plays it to your app, and fails while that repeats a"
        " mistake of the tape\n"
    )
    masked = called("keep", "--content", folder=tmp_path).stderr
    assert b"are still in it" not in masked


def test_it_is_named_after_the_verdict_and_keeps_its_place_among_the_tapes(tmp_path: Path) -> None:
    recorded(tmp_path, BROKEN, CUT)
    result = called("keep", f".deltatape/{BROKEN.name}", folder=tmp_path)
    assert result.stdout.decode().endswith("-demo-model-arguments-changed-by-app.tape\n")
    assert called("why", folder=tmp_path).stdout.startswith(b".deltatape/cut-mid-arguments.tape#1")


def test_name_and_folder_can_be_given(tmp_path: Path) -> None:
    write_tape(tmp_path, LEAKY)
    result = called("keep", "x.tape", "bug.tape", "--to", "a/b", "--move", folder=tmp_path)
    assert (result.returncode, result.stdout) == (0, b"a/b/bug.tape\n")
    assert b"x.tape: secrets overwritten: 1 x API key" in result.stderr
    assert KEY.encode() not in (tmp_path / "a" / "b" / "bug.tape").read_bytes()
    assert not (tmp_path / "x.tape").exists()


def test_a_tape_that_is_still_recorded_is_refused(tmp_path: Path) -> None:
    write_tape(tmp_path, LEAKY)
    with (tmp_path / "x.tape").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        result = called("keep", "x.tape", folder=tmp_path)
    assert result.returncode == 2
    assert b"is still being recorded" in result.stderr
    assert not (tmp_path / "recordings").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["x.tape", "../y"], b"cannot be the name of a tape"),
        (["x.tape#1"], b"names one exchange"),
        (["x.tape", "--to", "x.tape/y"], b"--to x.tape/y"),
        (["missing.tape"], b"missing.tape"),
    ],
)
def test_what_cannot_be_kept_is_said(tmp_path: Path, arguments: list[str], told: bytes) -> None:
    write_tape(tmp_path, LEAKY)
    result = called("keep", *arguments, folder=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    assert told in result.stderr
    assert not list(tmp_path.rglob("*.part"))


def test_nothing_is_kept_while_a_secret_is_left(tmp_path: Path) -> None:
    # The header is the recorder's own and is not rewritten.
    write_tape(tmp_path, LEAKY.replace(b"deltatape 0.1.0", KEY.encode()))
    result = called("keep", "x.tape", folder=tmp_path)
    assert result.returncode == 1
    assert b"not kept; secrets are left" in result.stderr
    assert KEY.encode() not in result.stdout + result.stderr
    assert list((tmp_path / "recordings").iterdir()) == []


def test_other_problems_are_reported_and_do_not_keep_a_tape_from_being_kept(tmp_path: Path) -> None:
    shutil.copyfile(CUT, tmp_path / "x.tape")
    write_tape(tmp_path, CUT.read_bytes() + record(1, 0, "note", {"text": "late"}))
    result = called("keep", "x.tape", folder=tmp_path)
    assert result.returncode == 0
    assert b"after the `stop`" in result.stderr


DAY = "2026-11-22T01:02:03.000000000Z"


def seen(*models: str) -> TapeOverview:
    return TapeOverview(exchanges=1, apps=(), models=models, findings=0, worst=None)


def test_a_kept_tape_is_named_by_day_model_and_worst_finding() -> None:
    assert kept_stem(DAY, overview(open_tape(EMPTY))) == "2026-11-22-demo-model-empty-arguments"
    assert kept_stem(DAY, seen("gpt-4o", "o1")) == "2026-11-22-gpt-4o-healthy"
    assert kept_stem(DAY, seen()) == "2026-11-22-healthy"


@pytest.mark.parametrize(
    "model", ["../../etc/x", "a/b:c d\x1b", ".hidden", "m" * 500, "東京", "--"]
)
def test_whatever_a_model_is_called_the_name_is_one(model: str) -> None:
    assert check_stem(kept_stem(DAY, seen(model)))
    assert check_stem(kept_stem("....", seen(model)))


def test_what_was_overwritten_is_counted_by_kind() -> None:
    assert counted({"b": 1, "a": 2}) == "2 x a, 1 x b"
    assert counted({}) == "none"
