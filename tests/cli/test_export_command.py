"""`deltatape export`: tapes in the formats of other programs."""

import json
import stat
from pathlib import Path

from deltatape.store.reader import open_tape
from helpers.console import called, on_terminal
from helpers.incidents import CUT, EMPTY

BODY = next(iter(open_tape(CUT).exchanges())).body


def test_a_tape_is_exported_to_stdout_and_its_losses_are_told(tmp_path: Path) -> None:
    done = called("export", CUT, "--format", "har", folder=tmp_path)
    assert done.returncode == 0
    entries = json.loads(done.stdout)["log"]["entries"]
    assert len(entries) == len(open_tape(CUT))
    (told,) = done.stderr.decode().splitlines()
    assert told.startswith("note: not in an HTTP archive (HAR 1.2): ")
    assert "ending" in told


def test_several_tapes_are_one_file_which_only_the_user_can_read(tmp_path: Path) -> None:
    done = called(*("export", f"{CUT}#1", EMPTY, "--format", "har", "-o", "x.har"), folder=tmp_path)
    total = 1 + len(open_tape(EMPTY))
    assert done.stdout == b""
    said = f"{total} exchanges as an HTTP archive (HAR 1.2): x.har\n"
    assert done.stderr.decode().endswith(said)
    assert len(json.loads((tmp_path / "x.har").read_bytes())["log"]["entries"]) == total
    assert stat.S_IMODE((tmp_path / "x.har").stat().st_mode) == 0o600
    again = called("export", CUT, "--format", "har", "-o", "x.har", folder=tmp_path)
    assert (again.returncode, b"nothing is overwritten" in again.stderr) == (2, True)


def test_one_body_goes_to_stdout_but_not_to_a_terminal(tmp_path: Path) -> None:
    arguments = ("export", f"{CUT}#1", "--format", "raw")
    assert called(*arguments, folder=tmp_path).stdout == BODY
    shown = on_terminal(*arguments, folder=tmp_path)
    assert (shown.returncode, b"would let the taped bytes act on it" in shown.stdout) == (2, True)


def test_bodies_go_into_a_folder_that_import_reads(tmp_path: Path) -> None:
    done = called("export", f"{CUT}#1", "--format", "raw", "-o", "case", folder=tmp_path)
    assert (done.returncode, (tmp_path / "case" / "body.raw").read_bytes()) == (0, BODY)
    assert called("import", "case", "-o", "x.tape", folder=tmp_path).returncode == 0
    (exchange,) = open_tape(tmp_path / "x.tape").exchanges()
    assert exchange.body == BODY
    again = called("export", f"{CUT}#1", "--format", "raw", "-o", "case", folder=tmp_path)
    assert (again.returncode, b"name a new folder" in again.stderr) == (2, True)
    twice = ("export", f"{CUT}#1", f"{EMPTY}#1", "--format", "raw")
    assert b"has several bodies; add #N, or -o FOLDER" in called(*twice, folder=tmp_path).stderr
    assert called(*twice, "-o", "both", folder=tmp_path).returncode == 0
    assert (tmp_path / "both" / "0001" / "body.raw").read_bytes() == BODY


def test_a_capture_of_another_program_is_exported_too(tmp_path: Path) -> None:
    called("export", f"{CUT}#1", "--format", "har", "-o", "x.har", folder=tmp_path)
    done = called("export", "x.har", "--format", "vcr", folder=tmp_path)
    assert done.stdout.startswith(b"interactions:\n")
    assert b"version: 1\n" in done.stdout


def test_the_latest_tape_is_exported_by_default(tmp_path: Path) -> None:
    (tmp_path / ".deltatape").mkdir()
    (tmp_path / ".deltatape" / "a.tape").write_bytes(CUT.read_bytes())
    done = called("export", "--format", "jsonl", folder=tmp_path)
    assert json.loads(done.stdout.splitlines()[0])["exchange"] == 1


def test_a_path_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for form in ("har", "raw"):
        done = called(*("export", f"{CUT}#1", "--format", form, "-o", "file/x"), folder=tmp_path)
        assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
        assert b"-o file/x: Not a directory" in done.stderr
