"""`deltatape mutate`: tapes with something put in."""

from pathlib import Path

import pytest

from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import EndReason, Exchange
from deltatape.mutate import MUTATORS
from deltatape.store.reader import open_tape
from deltatape.vary._base import reply_content
from deltatape.vary.variation import HARMLESS, HOSTILE
from helpers.console import called

RECORDINGS = Path(__file__).resolve().parents[2] / "recordings"
CHAT = RECORDINGS / "dialects" / "openai-chat.tape"
LOOP = RECORDINGS / "incidents" / "5-agent-loop" / "fixed.tape"


def mutated(folder: Path, *arguments: str | Path) -> list[Exchange]:
    done = called("mutate", *arguments, "-o", "out.tape", folder=folder)
    assert (done.returncode, done.stdout) == (0, b"out.tape\n"), done.stderr
    assert (folder / "out.tape").stat().st_mode & 0o777 == 0o600
    return [*open_tape(folder / "out.tape")]


def told(folder: Path, *arguments: str | Path) -> tuple[int, str]:
    done = called("mutate", *arguments, folder=folder)
    return done.returncode, done.stderr.decode()


def test_a_defect_is_put_into_every_exchange_that_has_a_place(tmp_path: Path) -> None:
    before = [*open_tape(LOOP)]
    after = mutated(tmp_path, LOOP, "--as", "id-missing")
    assert [one.id for one in after] == [one.id for one in before]
    changed = [old.body != new.body for old, new in zip(before, after, strict=True)]
    assert changed == [bool(rebuild(one).tool_calls) for one in before]
    assert all(call.id is None for one in after for call in rebuild(one).tool_calls)


def test_only_the_exchange_that_is_named_is_changed(tmp_path: Path) -> None:
    before = [*open_tape(LOOP)]
    after = mutated(tmp_path, f"{LOOP}#2", "--as", "crlf")
    changed = [old.body != new.body for old, new in zip(before, after, strict=True)]
    assert changed == [place == 1 for place in range(len(before))]


def test_a_fault_strikes_only_the_exchange_that_it_names(tmp_path: Path) -> None:
    before = [*open_tape(LOOP)]
    after = mutated(tmp_path, LOOP, "--as", "cut,exchange=2")
    changed = [old.body != new.body for old, new in zip(before, after, strict=True)]
    assert changed == [place == 1 for place in range(len(before))]


def test_several_changes_come_one_after_the_other(tmp_path: Path) -> None:
    (before,) = open_tape(CHAT)
    (after,) = mutated(tmp_path, CHAT, "--as", "crlf", "--as", "cut,at=before-end")
    assert after.end
    assert after.end.reason is EndReason.UPSTREAM_CLOSED
    assert after.body == before.body.replace(b"\n", b"\r\n")[: len(after.body)]
    assert b"mutated: crlf, cut,at=before-end" in (tmp_path / "out.tape").read_bytes()


def test_the_same_seed_makes_the_same_tape_but_for_its_id(tmp_path: Path) -> None:
    lines = []
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        arguments = (CHAT, "--as", "cut-in-text", "--seed", seed, "-o", f"{name}.tape")
        assert told(tmp_path, *arguments) == (0, "")
        lines.append((tmp_path / f"{name}.tape").read_bytes().partition(b"\n")[2])
    assert lines[0] == lines[1]
    assert lines[0] != lines[2]


@pytest.mark.slow
def test_all_makes_a_tape_of_each_that_has_a_place(tmp_path: Path) -> None:
    done = called("mutate", CHAT, "--as", "all", "-o", "out", folder=tmp_path)
    paths = sorted((tmp_path / "out").iterdir())
    assert done.returncode == 0
    assert sorted(done.stdout.decode().split()) == [f"out/{path.name}" for path in paths]
    assert f"{len(paths)} of ".encode() in done.stderr
    (before,) = open_tape(CHAT)
    harmless = {each.name for each in HARMLESS} - {each.name for each in MUTATORS}
    made = {path.stem for path in paths}
    assert len(made & harmless) > 25
    for path in paths:
        (after,) = open_tape(path)
        same = reply_content(rebuild(after)) == reply_content(rebuild(before))
        assert same or path.stem not in harmless
        assert not same or path.stem not in {each.name for each in HOSTILE}


def test_all_is_refused_where_a_run_was_interrupted(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "crlf.tape").touch()
    done = called("mutate", CHAT, "--as", "all", "-o", "out", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == (
        "deltatape: -o out: has crlf.tape already, as from a run that was interrupted; name another"
        " folder, or delete this one\n"
    )
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["crlf.tape"]


def test_the_list_names_everything_that_can_be_put_in(tmp_path: Path) -> None:
    wide = called("mutate", "--list", folder=tmp_path, env={"COLUMNS": "140"})
    listed = wide.stdout.decode()
    lines = [line.split(maxsplit=1) for line in listed.splitlines() if line.startswith("  ")]
    expected = {each.name: each.summary for each in (*HARMLESS, *HOSTILE)}
    expected |= {each.name: each.summary for each in MUTATORS}
    assert {name: " ".join(rest) for name, *rest in lines} == expected
    assert len(lines) == len(expected)
    narrow = called("mutate", "--list", folder=tmp_path, env={"COLUMNS": "80"}).stdout.decode()
    assert max(len(line) for line in narrow.splitlines()) <= 80


def test_without_a_place_nothing_is_made(tmp_path: Path) -> None:
    code, said_ = told(tmp_path, CHAT, "--as", "pings", "-o", "out.tape")
    assert code == 1
    assert said_.startswith("pings: applies to no exchange of ")
    assert not (tmp_path / "out.tape").exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--as", "crlf"), "a tape, --as NAME and -o OUT are required"),
        ((CHAT, "-o", "o"), "--list shows the names"),
        ((CHAT, "--as", "crlf"), "-o OUT are required"),
        ((CHAT, "--as", "explode", "-o", "o"), "--as 'explode': neither a name from --list"),
        ((CHAT, "--as", "cut,at=x", "-o", "o"), "at='x': invalid position"),
        ((CHAT, "--as", "status=999", "-o", "o"), "--as 'status=999': invalid status '999'"),
        (
            (CHAT, "--as", "cut,times=2", "-o", "o"),
            "--as 'cut,times=2': times= works only with replay",
        ),
        ((CHAT, "--as", "crlf", "--seed", "-1", "-o", "o"), "-1 is not in the range"),
        ((CHAT, "--as", "all", "--as", "crlf", "-o", "o"), "--as all: cannot be combined"),
        ((f"{CHAT}#9", "--as", "crlf", "-o", "o"), "no such exchange; the tape has 1 exchange"),
        ((CHAT, "--as", "crlf", "-o", "there"), "-o there: already exists"),
        ((CHAT, "--as", "crlf", "-o", "none/o.tape"), "-o none/o.tape: No such file"),
        ((CHAT, "--as", "all", "-o", "there"), "-o there: File exists"),
        (("empty.tape", "--as", "crlf", "-o", "o"), "empty.tape: the tape has no exchange"),
    ],
)
def test_wrong_usage_is_reported(
    arguments: tuple[str | Path, ...], problem: str, tmp_path: Path
) -> None:
    (tmp_path / "there").write_text("")
    header = CHAT.read_bytes().partition(b"\n")[0] + b"\n"
    (tmp_path / "empty.tape").write_bytes(header)
    code, said_ = told(tmp_path, *arguments)
    assert code == 2
    assert problem in said_


def test_an_import_stays_one_and_can_be_cut(tmp_path: Path) -> None:
    raw = tmp_path / "raw.sse"
    raw.write_bytes(next(iter(open_tape(CHAT))).body)
    assert called("import", raw, "-o", "raw.tape", folder=tmp_path).returncode == 0
    (after,) = mutated(tmp_path, "raw.tape", "--as", "cut-in-text")
    assert not after.timed
    assert after.cut
