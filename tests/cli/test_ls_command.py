"""`deltatape ls`: which tapes there are."""

import json
import re
import shutil
from pathlib import Path

from helpers.console import called
from helpers.incidents import BROKEN, CUT, FIXED, recorded
from helpers.program import deltatape


def test_the_newest_comes_first_with_size_exchanges_and_age(tmp_path: Path) -> None:
    recorded(tmp_path, CUT, BROKEN)
    result = deltatape("ls", folder=tmp_path)
    first, second = result.stdout.decode().splitlines()
    assert (result.returncode, result.stderr) == (0, b"")
    size = r"[0-9]+\.[0-9] kB"
    assert re.match(
        rf"\.deltatape/itinerary-broken\.tape +{size}  2 exchanges +6\d\.\d s ago", first
    )
    assert re.match(
        rf"\.deltatape/cut-mid-arguments\.tape +{size}  1 exchange +2 min .*ago", second
    )


def test_the_json_form_holds_the_same(tmp_path: Path) -> None:
    recorded(tmp_path, CUT, BROKEN)
    told = json.loads(called("ls", "--format", "json", folder=tmp_path).stdout)
    assert told["version"] == 1
    first, second = told["tapes"]
    assert set(first) == {"path", "bytes", "age_ns", "exchanges"}
    assert first["path"] == ".deltatape/itinerary-broken.tape"
    assert (first["bytes"], first["exchanges"]) == (BROKEN.stat().st_size, 2)
    assert 0 < first["age_ns"] < second["age_ns"]
    variable = {"DELTATAPE_LS_FORMAT": "json"}
    assert json.loads(called("ls", folder=tmp_path, env=variable).stdout)["version"] == 1


def test_a_tape_that_cannot_be_read_is_listed_all_the_same(tmp_path: Path) -> None:
    recorded(tmp_path, CUT)
    (tmp_path / ".deltatape" / "garbage.tape").write_bytes(b"garbage\n")
    (tmp_path / ".deltatape" / "newer.tape").write_bytes(b'{"deltatape":99}\n')
    shutil.copyfile(FIXED, tmp_path / ".deltatape" / "cut.tape")
    (tmp_path / ".deltatape" / "notes.txt").write_text("no tape")
    result = called("ls", folder=tmp_path)
    assert result.returncode == 0
    lines = result.stdout.decode().splitlines()
    assert len(lines) == 4
    assert sum("exchange" in each for each in lines) == 2


def test_folders_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "a" / "deep").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    shutil.copyfile(CUT, tmp_path / "a" / "deep" / "x.tape")
    shutil.copyfile(CUT, tmp_path / "b" / "y.tape")
    assert b"a/deep/x.tape" in called("ls", "a", folder=tmp_path).stdout
    assert len(called("ls", "a", "b", folder=tmp_path).stdout.splitlines()) == 2
    assert called("ls", "missing", folder=tmp_path).stdout.startswith(b"no tapes; make one")


def test_without_tapes_it_says_how_to_make_one(tmp_path: Path) -> None:
    result = called("ls", folder=tmp_path)
    assert result.returncode == 0
    assert result.stdout == b"no tapes; make one with `deltatape record`\n"
    assert json.loads(called("ls", "--format", "json", folder=tmp_path).stdout)["tapes"] == []
