"""`deltatape fsck`: damage, contradictions and secrets that are left."""

import gzip
import json
from pathlib import Path

import pytest

from helpers.console import called
from helpers.incidents import BROKEN, CUT, FIXED
from helpers.planted import KEY, exchange, tape
from helpers.tapes import write_tape


def test_the_recorded_incidents_are_clean(tmp_path: Path) -> None:
    result = called("fsck", BROKEN, CUT, FIXED, folder=tmp_path)
    assert result.returncode == 0
    assert result.stdout.decode().splitlines() == [
        f"{path}: clean" for path in (BROKEN, CUT, FIXED)
    ]


@pytest.mark.parametrize(
    "data", [KEY.encode(), gzip.compress(KEY.encode(), mtime=0)], ids=["plain", "gzip"]
)
def test_a_secret_fails_with_its_place_and_is_not_shown(tmp_path: Path, data: bytes) -> None:
    coding = [["Content-Encoding", "gzip"]] if data != KEY.encode() else []
    write_tape(tmp_path, tape(*exchange(reads=[data], answered=coding)))
    result = called("fsck", "x.tape", folder=tmp_path)
    assert result.returncode == 1
    assert b"line 6, #1, bytes 0 to 19: response body" in result.stdout
    assert "holds what looks like an API key" in " ".join(result.stdout.decode().split())
    assert KEY.encode() not in result.stdout + result.stderr


def test_a_body_that_was_changed_fails(tmp_path: Path) -> None:
    write_tape(tmp_path, tape(*exchange(reads=[b"abc"])).replace(b'"abc"', b'"abd"'))
    result = called("fsck", "x.tape", folder=tmp_path)
    assert result.returncode == 1
    assert b"line 7, #1: `end.sha256` is not that of the reads" in result.stdout


def test_a_crash_is_told_and_no_failure(tmp_path: Path) -> None:
    write_tape(tmp_path, tape(*exchange())[:-40])
    result = called("fsck", "x.tape", folder=tmp_path)
    assert result.returncode == 0
    assert b"x.tape: clean" in result.stdout
    assert b"note: no `stop`" in result.stdout


def test_what_cannot_be_read_is_told_beside_the_others(tmp_path: Path) -> None:
    write_tape(tmp_path, b"garbage\n", "bad.tape")
    result = called("fsck", "bad.tape", FIXED, "missing.tape", folder=tmp_path)
    assert result.returncode == 2
    bad, fixed, missing = result.stdout.decode().splitlines()
    assert bad.startswith("bad.tape:1: no tape")
    assert fixed.endswith("clean")
    assert missing.startswith("missing.tape: No such file")


def test_the_json_form_holds_places_and_kinds(tmp_path: Path) -> None:
    write_tape(tmp_path, tape(*exchange(reads=[b"x ", KEY.encode()])))
    result = called("fsck", "--format", "json", "x.tape", folder=tmp_path)
    assert result.returncode == 1
    (found,) = json.loads(result.stdout)["tapes"]
    assert found["path"] == "x.tape"
    (problem,) = found["problems"]
    assert (problem["kind"], problem["line"], problem["span"]) == ("secret", 7, [2, 21])
    assert called("fsck", folder=tmp_path).returncode == 2
