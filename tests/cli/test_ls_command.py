"""`deltatape ls`: which tapes there are."""

import fcntl
import json
import re
import shutil
from pathlib import Path

import pytest

from helpers.console import called
from helpers.incidents import BROKEN, CUT, FIXED, recorded
from helpers.program import deltatape
from helpers.secret_tapes import exchange, tape
from helpers.shards import sharded
from helpers.tapes import write_tape


def test_the_newest_comes_first_with_what_it_holds_and_its_age(tmp_path: Path) -> None:
    recorded(tmp_path, CUT, BROKEN)
    result = deltatape("ls", folder=tmp_path)
    first, second = result.stdout.decode().splitlines()
    assert (result.returncode, result.stderr) == (0, b"")
    size = r"[0-9]+\.[0-9] kB"
    assert re.fullmatch(
        rf"\.deltatape/itinerary-broken\.tape +{size}  2 exchanges +demo-model  error C002 .*"
        r"  6\d\.\d s ago",
        first,
    )
    assert re.fullmatch(
        rf"\.deltatape/cut-mid-arguments\.tape +{size}  1 exchange +demo-model  error .* 2 min .*",
        second,
    )


def test_the_app_is_that_of_the_requests(tmp_path: Path) -> None:
    asked = [["User-Agent", "OpenAI/Python 3.54.0"]]
    write_tape(tmp_path, tape(*exchange(asked=asked, request=[b'{"model":"gpt-fake"}'])))
    assert b"OpenAI/Python 3.54.0" in called("ls", ".", folder=tmp_path).stdout


def test_the_json_form_holds_the_same(tmp_path: Path) -> None:
    recorded(tmp_path, CUT, BROKEN)
    told = json.loads(called("ls", "--format", "json", folder=tmp_path).stdout)
    assert told["version"] == 1
    first, second = told["tapes"]
    assert first["path"] == ".deltatape/itinerary-broken.tape"
    assert (first["bytes"], first["exchanges"]) == (BROKEN.stat().st_size, 2)
    assert (first["models"], first["apps"], first["analysed"]) == (["demo-model"], [], True)
    assert first["worst"]["severity"] == "error"
    assert (first["recording"], first["error"]) == (False, None)
    assert 0 < first["age_ns"] < second["age_ns"]
    variable = {"DELTATAPE_LS_FORMAT": "json"}
    assert json.loads(called("ls", folder=tmp_path, env=variable).stdout)["version"] == 1


def test_a_tape_that_cannot_be_read_is_listed_all_the_same(tmp_path: Path) -> None:
    recorded(tmp_path, CUT)
    (tmp_path / ".deltatape" / "garbage.tape").write_bytes(b"garbage\n")
    (tmp_path / ".deltatape" / "damaged.tape").write_bytes(tape(b"garbage\n"))
    (tmp_path / ".deltatape" / "empty.tape").write_bytes(b"")
    shutil.copyfile(FIXED, tmp_path / ".deltatape" / "cut.tape")
    (tmp_path / ".deltatape" / "notes.txt").write_text("no tape")
    result = called("ls", folder=tmp_path, env={"COLUMNS": "140"})
    assert result.returncode == 0
    lines = result.stdout.decode().splitlines()
    assert len(lines) == 5
    assert sum("exchange" in each for each in lines) == 2
    assert sum("unreadable: line 1: no tape" in each for each in lines) == 1
    assert sum("unreadable: line 2" in each for each in lines) == 1
    assert sum("unreadable: empty" in each for each in lines) == 1


def test_a_tape_that_is_still_recorded_says_so(tmp_path: Path) -> None:
    (path,) = recorded(tmp_path, CUT)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert b"  recording, " in called("ls", folder=tmp_path).stdout
    assert b"recording, " not in called("ls", folder=tmp_path).stdout


def test_large_tapes_are_listed_without_being_analysed_unless_asked_for(tmp_path: Path) -> None:
    whole = tape(*exchange(request=[b'{"model":"gpt-fake"}'], reads=[b"x" * 900_000] * 3))
    write_tape(tmp_path, whole)
    result = called("ls", ".", folder=tmp_path)
    line, hint = result.stdout.decode().splitlines()
    assert "1 exchange  not analysed" in line
    assert hint == "1 tape too large to analyse here: deltatape ls --full"
    assert b"gpt-fake" in called("ls", ".", "--full", folder=tmp_path).stdout


@pytest.mark.slow
def test_a_hundred_small_tapes_are_all_listed(tmp_path: Path) -> None:
    (tmp_path / ".deltatape").mkdir()
    for number in range(100):
        shutil.copyfile(BROKEN, tmp_path / ".deltatape" / f"{number}.tape")
    result = called("ls", folder=tmp_path)
    assert len(result.stdout.splitlines()) == 100
    assert b"not analysed" not in result.stdout


def test_folders_can_be_named_and_have_to_be_there(tmp_path: Path) -> None:
    (tmp_path / "a" / "deep").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    shutil.copyfile(CUT, tmp_path / "a" / "deep" / "x.tape")
    shutil.copyfile(CUT, tmp_path / "b" / "y.tape")
    assert b"a/deep/x.tape" in called("ls", "a", folder=tmp_path).stdout
    assert len(called("ls", "a", "b", folder=tmp_path).stdout.splitlines()) == 2
    missing = called("ls", "a", "missing", folder=tmp_path)
    assert (missing.returncode, missing.stdout) == (2, b"")
    assert b"missing: there is no such tape or folder" in missing.stderr


def test_a_tape_can_be_named(tmp_path: Path) -> None:
    shutil.copyfile(CUT, tmp_path / "x.tape")
    shutil.copyfile(BROKEN, tmp_path / "y.tape")
    named = called("ls", "x.tape", folder=tmp_path)
    assert named.returncode == 0
    assert named.stdout.startswith(b"x.tape ")
    both = called("ls", "x.tape", ".", "--format", "json", folder=tmp_path)
    sizes = {each["path"]: each["bytes"] for each in json.loads(both.stdout)["tapes"]}
    assert sizes == {"x.tape": CUT.stat().st_size, "y.tape": BROKEN.stat().st_size}


def test_without_tapes_it_says_how_to_make_one(tmp_path: Path) -> None:
    result = called("ls", folder=tmp_path)
    assert result.returncode == 0
    assert result.stdout == b"no tapes; make one with `deltatape record`\n"
    assert json.loads(called("ls", "--format", "json", folder=tmp_path).stdout)["tapes"] == []


def test_a_pipe_gets_whole_lines_and_a_page_what_fits(tmp_path: Path) -> None:
    recorded(tmp_path, CUT, BROKEN)
    whole = called("ls", folder=tmp_path, env={"COLUMNS": ""}).stdout.decode()
    assert "2 exchanges  demo-model  error C002 arguments-changed-by-app  " in whole
    narrow = called("ls", folder=tmp_path, env={"COLUMNS": "60"}).stdout.decode().splitlines()
    assert max(map(len, narrow)) <= 60
    assert re.match(r"\.\.\.[a-z]+/itinerary-broken\.tape  error C002 a\.\.\.  ", narrow[0])


def test_the_exchanges_of_tapes_and_folders_are_listed(tmp_path: Path) -> None:
    recorded(tmp_path, CUT, BROKEN)
    result = called("ls", "--exchanges", folder=tmp_path, env={"COLUMNS": "120"})
    assert (result.returncode, result.stderr) == (0, b"")
    first, _, one, two, gap, second, *_ = result.stdout.decode().splitlines()
    assert (first, gap) == (".deltatape/itinerary-broken.tape", "")
    assert second == ".deltatape/cut-mid-arguments.tape"
    assert re.match(r"#1 .* error C002 arguments-changed-by-app \+\d$", one)
    assert two.endswith("after #1")
    named = called("ls", "--exchanges", str(CUT), ".deltatape", folder=tmp_path)
    assert named.stdout.decode().splitlines()[0] == str(CUT)
    assert len(re.findall(rb"(?m)^\S+\.tape$", named.stdout)) == 3


def test_exchanges_and_trends_are_there_as_json(tmp_path: Path) -> None:
    recorded(tmp_path, CUT, BROKEN)
    told = json.loads(called("ls", "--exchanges", "--format", "json", folder=tmp_path).stdout)
    assert [each["exchange"] for each in told["exchanges"]] == [1, 2, 1]
    told = json.loads(called("ls", "--trends", "--format", "json", folder=tmp_path).stdout)
    assert sum(each["exchanges"] for each in told["trends"]) == 3
    assert b"C002 1" in called("ls", "--trends", folder=tmp_path).stdout
    (tmp_path / "empty").mkdir()
    nothing = called("ls", "--exchanges", "empty", folder=tmp_path)
    assert nothing.stdout == b"no tapes; make one with `deltatape record`\n"
    nothing = called("ls", "--exchanges", "--format", "json", "empty", folder=tmp_path)
    assert json.loads(nothing.stdout) == {"version": 1, "exchanges": []}


def test_a_tape_that_cannot_be_read_is_told_and_the_others_are_listed(tmp_path: Path) -> None:
    recorded(tmp_path, CUT)
    (tmp_path / ".deltatape" / "garbage.tape").write_bytes(b"garbage\n")
    result = called("ls", "--exchanges", folder=tmp_path)
    assert result.returncode == 2
    assert b"garbage.tape:1: no tape" in result.stderr
    assert b"upstream closed" in result.stdout
    both = called("ls", "--exchanges", "--trends", folder=tmp_path)
    assert (both.returncode, both.stdout) == (2, b"")
    assert b"give one" in both.stderr


def test_shards_are_listed_as_one(tmp_path: Path) -> None:
    shards = sharded(BROKEN, tmp_path)
    result = called("ls", "--exchanges", "--format", "json", ".", folder=tmp_path)
    rows = json.loads(result.stdout)["exchanges"]
    assert len(rows) == len({each["exchange"] for each in rows})
    assert len({each["tape"] for each in rows}) == 1 < len(shards)
