"""Scans of folders: what is read, what is read again, and what a dataset then has."""

import fcntl
import os
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from deltatape.cli.parallel_check import check_one
from deltatape.errors import UsageError
from deltatape.model.rule_settings import DEFAULTS
from deltatape.scan import scan as scan_module
from deltatape.scan.dataset import DRAFTS, open_files, stored_rows
from deltatape.scan.engine import LocalEngine
from deltatape.scan.scan import (
    ScanJob,
    ScanProgress,
    ScanSummary,
    TapeToScan,
    scan,
    scan_tape,
    tapes_of,
)
from deltatape.scan.schema import JOINED, NO_DAY, RULES_KEY, TABLES, VERSION_KEY, rules_key
from deltatape.secret_text.search import without_secrets
from deltatape.store.rule_set import rule_set
from helpers.incidents import BROKEN, CUT, FIXED, STALL
from helpers.shards import sharded
from helpers.tapes import write_tape

RECORDINGS = Path(__file__).resolve().parents[2] / "recordings"
ULID = "01JD7YZ2M8Q4W3N5R6T7V8X9YA"
HERE = LocalEngine(1)


def scanned(source: Path, out: Path, **more: object) -> ScanSummary:
    return scan(str(source), str(out), HERE, DEFAULTS, **more)  # type: ignore[arg-type]


def rows(out: Path, table: str) -> list[dict[str, object]]:
    """Those of tapes, without what only joining shows."""
    return [
        row
        for path in sorted((out / table).rglob("*.parquet"))
        if not path.name.startswith(f"{JOINED}-")
        for row in pq.read_table(path, partitioning=None).to_pylist()
    ]


def tapes(folder: Path, *originals: Path) -> Path:
    folder.mkdir()
    for path in originals:
        shutil.copy(path, folder)
    return folder


def age(path: Path, seconds: int) -> None:
    """Make a file older."""
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - seconds * 10**9))


def test_a_dataset_has_all_tables_by_day_and_every_file_says_what_it_is(tmp_path: Path) -> None:
    summary = scanned(tapes(tmp_path / "in", BROKEN, CUT), tmp_path / "out")

    assert (summary.tapes, summary.exchanges, summary.problems) == (2, 3, ())
    assert summary.findings == len(rows(tmp_path / "out", "findings"))
    assert {each.name for each in (tmp_path / "out").iterdir()} == set(TABLES)
    days = {path.name for path in (tmp_path / "out").glob("*/*")}
    assert days == {"day=2026-11-21", f"day={NO_DAY}"}  # the latter says that all are joined
    for path in (tmp_path / "out").rglob("*.parquet"):
        metadata = pq.read_metadata(path).metadata
        assert metadata[VERSION_KEY.encode()] == b"1"
        assert metadata[RULES_KEY.encode()].decode() == rules_key(rule_set())
    (broken, _) = sorted(rows(tmp_path / "out", "tapes"), key=lambda row: -int(str(row["bytes"])))
    assert str(broken["source"]).startswith(str(tmp_path / "in"))
    assert (broken["problem"], broken["gateway"]) == (None, None)
    assert broken["recorded_at"] is not None


def test_the_findings_are_exactly_those_of_check(tmp_path: Path) -> None:
    source = tapes(tmp_path / "in", *sorted((RECORDINGS / "apps").glob("*.tape"))[:40])
    scanned(source, tmp_path / "out")

    reports = [check_one(str(path), DEFAULTS, excerpts=False) for path in source.iterdir()]
    checked = Counter(
        (
            each.finding.exchange,
            each.finding.code,
            each.finding.severity.value,
            without_secrets(each.finding.message),
            each.fingerprint,
        )
        for report in reports
        for each in report.reported
    )
    names = ("exchange", "code", "severity", "message", "fingerprint")
    found = Counter(
        tuple(row[name] for name in names) for row in rows(tmp_path / "out", "findings")
    )
    assert found == checked
    assert found.total() > 0


def test_a_second_scan_reads_only_what_is_new_or_newer(tmp_path: Path) -> None:
    source, out = tapes(tmp_path / "in", BROKEN, CUT), tmp_path / "out"
    for path in source.iterdir():
        age(path, 1000)
    scanned(source, out)
    before = rows(out, "exchanges")

    assert scanned(source, out).tapes == 0
    shutil.copy(FIXED, source)
    summary = scanned(source, out)
    assert (summary.tapes, summary.known) == (1, 2)

    shutil.copyfile(STALL, source / CUT.name)
    for path in (out / "tapes").rglob("*.parquet"):
        age(path, 100)
    age(source / FIXED.name, 1000)
    summary = scanned(source, out)
    assert (summary.tapes, summary.known) == (1, 2)
    codes = {row["code"] for row in rows(out, "findings")}
    assert "D001" in codes
    keys = [(row["tape"], row["exchange"]) for row in rows(out, "exchanges")]
    assert len({*keys}) == len(keys) > len(before)


def test_rows_that_a_tape_no_longer_has_go_away(tmp_path: Path) -> None:
    source, out = tapes(tmp_path / "in", BROKEN), tmp_path / "out"
    age(source / BROKEN.name, 1000)
    scanned(source, out)
    assert rows(out, "findings")
    shutil.copyfile(FIXED, source / BROKEN.name)
    for path in out.rglob("*.parquet"):
        age(path, 100)

    scanned(source, out)

    assert rows(out, "findings") == []
    assert not (out / "findings_before").exists()


def test_with_other_rules_all_is_read_again_and_the_findings_before_are_kept(
    tmp_path: Path,
) -> None:
    source, out = tapes(tmp_path / "in", BROKEN, STALL), tmp_path / "out"
    scanned(source, out)
    first = rows(out, "findings")

    patient = replace(DEFAULTS, stall_s=500.0, stall_error_s=500.0)
    summary = scan(str(source), str(out), HERE, patient)

    assert summary.tapes == 2
    now = rows(out, "findings")
    assert {row["rules"] for row in now} == {summary.rules}
    assert Counter(row["code"] for row in first) > Counter(row["code"] for row in now)
    kept = rows(out, "findings_before")
    assert Counter(str(row) for row in kept) == Counter(str(row) for row in first)

    again = scan(str(source), str(out), HERE, replace(patient, loop_calls=4))
    kept = rows(out, "findings_before")
    assert {row["rules"] for row in kept} == {summary.rules}
    assert {row["rules"] for row in rows(out, "findings")} == {again.rules}
    assert len(rows(out, "tapes")) == 2


def test_findings_that_a_killed_scan_has_put_aside_stay_aside(tmp_path: Path) -> None:
    source, out = tapes(tmp_path / "in", STALL), tmp_path / "out"
    scanned(source, out)
    first = rows(out, "findings")
    (path,) = (
        path for path in (out / "findings").rglob("*.parquet") if not path.name.startswith("JOIN")
    )
    aside = out / "findings_before" / path.parent.name
    aside.mkdir(parents=True)
    path.rename(aside / path.name)

    scan(str(source), str(out), HERE, replace(DEFAULTS, loop_calls=4))

    assert rows(out, "findings_before") == first


def test_that_a_tape_had_no_findings_before_is_told_by_a_file_without_rows(tmp_path: Path) -> None:
    source, out = tapes(tmp_path / "in", FIXED), tmp_path / "out"
    scanned(source, out)
    before = rows(out, "findings")
    scan(str(source), str(out), HERE, replace(DEFAULTS, loop_calls=4))
    (path,) = (out / "findings_before").rglob("*.parquet")
    assert pq.read_metadata(path).num_rows == len(before) == 0


def test_a_bad_tape_is_a_row_that_says_so(tmp_path: Path) -> None:
    source = tapes(tmp_path / "in", CUT)
    lines = BROKEN.read_bytes().splitlines(keepends=True)
    (source / "damaged.tape").write_bytes(b"".join([*lines[:-2], b"{}\n", *lines[-2:]]))
    (source / "no.tape").write_bytes(b"no tape\n")

    summary = scanned(source, tmp_path / "out")

    assert (summary.tapes, summary.exchanges) == (3, 1)
    problems = {row["source"]: row for row in rows(tmp_path / "out", "tapes") if row["problem"]}
    damaged = problems[str(source / "damaged.tape")]
    assert str(damaged["problem"]).startswith(f"line {len(lines) - 1}: ")
    assert (damaged["exchanges"], damaged["findings"]) == (0, 0)
    assert "no tape" in str(problems[str(source / "no.tape")]["problem"])
    assert {path.parent.name for path in (tmp_path / "out" / "tapes").glob("*/*")} == {
        "day=2026-11-21",
        f"day={NO_DAY}",
    }
    assert {path for path, _ in summary.problems} == {"damaged.tape", "no.tape"}
    tapes_with_rows = {row["tape"] for row in rows(tmp_path / "out", "exchanges")}
    assert damaged["tape"] not in tapes_with_rows
    assert scanned(source, tmp_path / "out").tapes == 0


def test_what_cannot_be_opened_is_tried_again_by_the_next_scan(tmp_path: Path) -> None:
    source, out = tapes(tmp_path / "in", CUT), tmp_path / "out"
    job = ScanJob(
        id="x", source=str(source), out=str(out), settings=DEFAULTS, rules=rules_key(rule_set())
    )
    ((key, file),) = tapes_of(open_files(str(source))).items()
    (source / CUT.name).unlink()

    result = scan_tape(job, TapeToScan(key=key, file=file))

    assert result.again
    assert "No such file" in result.problem
    assert not [*stored_rows(open_files(str(out)))]


def test_a_tape_that_is_being_recorded_is_left_for_the_next_scan(tmp_path: Path) -> None:
    source, out = tapes(tmp_path / "in", CUT), tmp_path / "out"
    with (source / CUT.name).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        summary = scanned(source, out)
    assert (summary.recording, summary.tapes) == (1, 0)
    assert scanned(source, out).tapes == 1


def test_an_error_of_deltatape_itself_ends_only_the_tape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(scan_module, "tape_rows", fail)
    summary = scanned(tapes(tmp_path / "in", CUT), tmp_path / "out")
    assert "RecursionError" in summary.problems[0][1]
    (row,) = rows(tmp_path / "out", "tapes")
    assert "RecursionError" in str(row["problem"])


def test_a_worker_with_other_rules_writes_nothing(tmp_path: Path) -> None:
    source = tapes(tmp_path / "in", CUT)
    job = ScanJob(id="x", source=str(source), out=str(tmp_path), settings=DEFAULTS, rules="other")
    ((key, file),) = tapes_of(open_files(str(source))).items()
    with pytest.raises(UsageError, match="install the same version"):
        scan_tape(job, TapeToScan(key=key, file=file))


def test_a_tape_in_a_store_keeps_its_id_and_says_day_and_gateway(tmp_path: Path) -> None:
    folder = tmp_path / "in" / "dt=2026-11-20" / "gateway=edge-1"
    folder.mkdir(parents=True)
    shutil.copy(CUT, folder / f"{ULID}.tape")
    (folder / "broken.tape").write_bytes(b"")
    (folder / "notes.txt").write_bytes(b"")
    (folder / "link.tape").symlink_to(CUT)

    scanned(tmp_path / "in", tmp_path / "out")

    second, first = sorted(rows(tmp_path / "out", "tapes"), key=lambda row: str(row["problem"]))
    assert (second["tape"], second["gateway"]) == (ULID, "edge-1")
    assert len(str(first["tape"])) == 16
    days = {path.parent.name for path in (tmp_path / "out" / "tapes").glob("*/*")}
    assert days == {"day=2026-11-21", "day=2026-11-20"}


def test_of_a_tape_that_is_there_packed_too_only_one_counts(tmp_path: Path) -> None:
    (tmp_path / "x.tape").touch()
    (tmp_path / "x.tape.zst").touch()
    assert [each.path for each in tapes_of(open_files(str(tmp_path))).values()] == ["x.tape"]


def test_shards_are_judged_for_themselves(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    sharded(BROKEN, source)
    summary = scanned(source, tmp_path / "out")
    assert not summary.problems
    assert all(row["thread"] == row["exchange"] for row in rows(tmp_path / "out", "exchanges"))


def test_progress_tells_rate_and_time_left(tmp_path: Path) -> None:
    told: list[ScanProgress] = []
    scanned(tapes(tmp_path / "in", BROKEN, CUT), tmp_path / "out", progress=told.append)
    assert [each.tapes for each in told] == [1, 2]
    assert [each.of_tapes for each in told] == [2, 2]
    assert told[0].rate > 0
    assert told[0].left_ns
    assert told[1].left_ns == 0
    nothing = ScanProgress(tapes=0, of_tapes=1, bytes=0, of_bytes=1, exchanges=0, ns=0)
    assert (nothing.rate, nothing.left_ns) == (0.0, None)


def test_what_killed_scans_have_left_is_removed_after_a_day(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for name in ("old", "new"):
        (out / DRAFTS / name).mkdir(parents=True)
    age(out / DRAFTS / "old", 2 * 86_400)
    scanned(tapes(tmp_path / "in", CUT), out)
    assert [each.name for each in (out / DRAFTS).iterdir()] == ["new"]


def test_strange_values_of_the_wire_fit_into_the_columns(tmp_path: Path) -> None:
    text = CUT.read_bytes().replace(b"demo-model", b"\\\\ud800-model")
    source = tmp_path / "in"
    source.mkdir()
    write_tape(source, text)
    summary = scanned(source, tmp_path / "out")
    assert not summary.problems
