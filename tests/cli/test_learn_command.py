"""`deltatape learn`: what differs from run to run, stored with a tape."""

import fcntl
import shutil
import stat
from pathlib import Path

import pytest

from deltatape.store.audit import audit
from deltatape.store.reader import open_tape
from deltatape.store.shards import open_recording
from helpers.console import called
from helpers.incidents import FIXED
from helpers.pytest_projects import write_tape
from helpers.shards import sharded
from helpers.taped import taped


def recording(path: Path, *texts: str) -> Path:
    """A tape with a request for each text."""
    bodies = ({"model": "m", "text": text} for text in texts)
    return write_tape(path, *(taped(body=body, number=at) for at, body in enumerate(bodies, 1)))


def told(folder: Path, *arguments: str | Path) -> tuple[int, list[str], str]:
    """Exit code, stdout and stderr of `learn`."""
    done = called("learn", *arguments, folder=folder)
    return done.returncode, done.stdout.decode().splitlines(), done.stderr.decode()


def test_it_is_printed_and_stored_and_the_records_stay(tmp_path: Path) -> None:
    tape = recording(tmp_path / "a.tape", "on 2026-11-26, run 1")
    recording(tmp_path / "b.tape", "on 2026-12-03, run 22")
    tape.chmod(0o640)
    before, lines = tape.stat(), tape.read_bytes().splitlines()
    dry = told(tmp_path, "a.tape", "b.tape", "--dry-run")
    assert (dry[:2], open_tape(tape).volatile) == ((0, ["date", "/run ([0-9]+)/"]), ())
    code, printed, said = told(tmp_path, "a.tape", "b.tape")
    assert (code, printed) == (0, ["date", "/run ([0-9]+)/"])
    assert said.splitlines() == [
        "1 of 1 request of b.tape match a.tape with these options",
        "the same as options: --volatile date --volatile '/run ([0-9]+)/'",
        "stored with a.tape: deltatape replay a.tape uses it",
    ]
    assert open_tape(tape).volatile == ("date", "/run ([0-9]+)/")
    after = tape.stat()
    assert (stat.S_IMODE(after.st_mode), after.st_mtime_ns) == (0o640, before.st_mtime_ns)
    assert tape.read_bytes().splitlines()[1:] == lines[1:]
    assert audit(tape).problems == ()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tape", "b.tape"]


def test_what_is_stored_is_shown_added_to_and_forgotten(tmp_path: Path) -> None:
    tape = recording(tmp_path / "a.tape", "on 2026-11-26, run 1")
    recording(tmp_path / "b.tape", "on 2026-12-03, run 22")
    assert told(tmp_path, "a.tape") == (0, [], "")
    assert told(tmp_path, "a.tape", "--volatile", "date", "--volatile", "$.x")[0] == 0
    assert told(tmp_path, "a.tape") == (0, ["date", "$.x"], "")
    assert told(tmp_path, "a.tape", "b.tape")[1] == ["date", "$.x", "/run ([0-9]+)/"]
    assert told(tmp_path, "a.tape", "--forget") == (
        0,
        [],
        "nothing is stored with a.tape any more\n",
    )
    assert open_tape(tape).volatile == ()
    assert told(tmp_path, "a.tape", "--volatile", "a:day")[0] == 2


def test_what_does_not_match_even_so_is_told(tmp_path: Path) -> None:
    recording(tmp_path / "a.tape", "on 2026-11-26: hi", "on 2026-11-27: hi", "Weather in Bern?")
    recording(tmp_path / "b.tape", "on 2026-12-03: hi", "on 2026-12-04: hi", "Weather in Basel?")
    code, printed, said = told(tmp_path, "a.tape", "b.tape")
    assert (code, printed) == (1, ["date"])
    assert "2 of 3 requests of b.tape match a.tape with these options\n" in said
    assert "note: 1 request match several on the tape, which differ only in what" in said
    assert "MISSED b.tape#3: the nearest recorded request differs\n" in said
    assert '  $.text: recorded "Weather in Bern?", received "Weather in Basel?"\n' in said


@pytest.mark.parametrize(
    ("texts", "code", "why"),
    [
        (("on 2026-12-03: bye",), 1, "no option lets more requests match"),
        (("on 2026-11-26: hi",), 0, "all requests match without options"),
    ],
)
def test_nothing_is_stored_without_need(
    texts: tuple[str, ...], code: int, why: str, tmp_path: Path
) -> None:
    tape = recording(tmp_path / "a.tape", "on 2026-11-26: hi")
    recording(tmp_path / "b.tape", *texts)
    found, printed, said = told(tmp_path, "a.tape", "b.tape")
    assert (found, printed, open_tape(tape).volatile) == (code, [], ())
    assert said.startswith(f"{1 - code} of 1 request of b.tape match a.tape\n")
    assert said.endswith(f"\nnothing new is stored with a.tape: {why}\n")
    recording(tmp_path / "c.tape", "on 2026-12-03: hi")
    assert told(tmp_path, "a.tape", "c.tape")[0] == 0
    again = told(tmp_path, "a.tape", "c.tape")[2]
    assert again.endswith("\nnothing new is stored with a.tape: it has these options already\n")


def test_it_needs_tapes_that_can_be_compared_and_written(tmp_path: Path) -> None:
    tape = recording(tmp_path / "a.tape", "x")
    assert "no such file" in told(tmp_path, "a.tape", "no.tape")[2].lower()
    assert "names one exchange" in told(tmp_path, "a.tape#1", "a.tape")[2]
    write_tape(tmp_path / "none.tape")
    assert "none.tape: no request to a provider" in told(tmp_path, "a.tape", "none.tape")[2]
    with tape.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        code, _, said = told(tmp_path, "a.tape", "--volatile", "date")
    assert (code, open_tape(tape).volatile) == (2, ())
    assert "is still being recorded" in said


@pytest.mark.parametrize("words", [("splice",), ("redact",), ("mutate", "--as", "crlf")])
def test_copies_have_it_too(words: tuple[str, ...], tmp_path: Path) -> None:
    shutil.copy(FIXED, tmp_path / "a.tape")
    told(tmp_path, "a.tape", "--volatile", "date", "--volatile", "/run-[0-9]+/")
    done = called(*words, "a.tape", "-o", "c.tape", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert open_tape(tmp_path / "c.tape").volatile == ("date", "/run-[0-9]+/")
    assert not audit(tmp_path / "c.tape").problems


def test_cuts_and_joined_tapes_have_it_too_and_kept_ones(tmp_path: Path) -> None:
    shutil.copy(FIXED, tmp_path / "a.tape")
    told(tmp_path, "a.tape", "--volatile", "date")
    recording(tmp_path / "b.tape", "x")
    told(tmp_path, "b.tape", "--volatile", "path", "--volatile", "date")
    assert called("cut", "a.tape#2", "-o", "c.tape", folder=tmp_path).returncode == 0
    assert called("splice", "a.tape", "b.tape", "-o", "d.tape", folder=tmp_path).returncode == 0
    assert called("keep", "a.tape", "e", folder=tmp_path).returncode == 0
    assert open_tape(tmp_path / "c.tape").volatile == ("date",)
    assert open_tape(tmp_path / "d.tape").volatile == ("date", "path")
    assert open_tape(tmp_path / "recordings" / "e.tape").volatile == ("date",)


def test_a_tape_without_content_has_no_words_of_it(tmp_path: Path) -> None:
    tape = recording(tmp_path / "a.tape", "agent 1 on 2026-11-26")
    told(tmp_path, "a.tape", "--volatile", "date", "--volatile", "/agent ([0-9]+)/")
    assert called("redact", "--content", "--in-place", "a.tape", folder=tmp_path).returncode == 0
    assert open_tape(tape).volatile == ("date",)


def test_shards_have_it_all(tmp_path: Path) -> None:
    first, second = sharded(FIXED, tmp_path)
    assert told(tmp_path, first.name, "--volatile", "date")[0] == 0
    assert (open_tape(first).volatile, open_tape(second).volatile) == (("date",), ("date",))
    assert open_recording(second).volatile == ("date",)
