"""Scans of tapes in an object store, over the protocol of S3 on loopback."""

import hashlib
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from deltatape.clock import SystemClock
from deltatape.errors import UsageError
from deltatape.model.rule_settings import DEFAULTS
from deltatape.objects.urls import open_store
from deltatape.scan.dataset import DRAFTS, open_files
from deltatape.scan.engine import LocalEngine
from deltatape.scan.scan import scan
from deltatape.store.packing import seal
from deltatape.store.reader import open_tape
from deltatape.store.splice import SpliceSource, splice
from helpers.incidents import BROKEN, CUT
from helpers.object_store import BUCKET, S3Server, relay, use

RECORDINGS = Path(__file__).resolve().parents[2] / "recordings"
TAPES = f"s3://{BUCKET}/tapes"
OUT = f"s3://{BUCKET}/dataset"
PLACE = "dt=2026-11-21/gateway=edge-1"
FIRST, SECOND = "01JD7YZ2M8Q4W3N5R6T7V8X9YA", "01JD7YZ2M8Q4W3N5R6T7V8X9YB"
HERE = LocalEngine(1)


@pytest.fixture
def server(s3: S3Server) -> S3Server:
    open_files.cache_clear()
    return s3


def put(key: str, data: bytes) -> None:
    sha256 = hashlib.sha256(data).hexdigest()
    open_store(TAPES).put(key, iter([data]), size=len(data), sha256=sha256)


def rows(table: str) -> list[dict[str, object]]:
    found = []
    files = open_files(OUT)
    for each in sorted(files.found(table)):
        with files.local(each.path) as path:
            found += pq.read_table(path, partitioning=None).to_pylist()
    return found


@pytest.mark.usefixtures("server")
def test_tapes_and_dataset_may_be_in_a_store(tmp_path: Path) -> None:
    sealed = seal(BROKEN, tmp_path / "x.tape.zst")
    put(f"{PLACE}/{FIRST}.tape.zst", Path(sealed.path).read_bytes())
    put(f"{PLACE}/{SECOND}.tape", CUT.read_bytes())

    summary = scan(TAPES, OUT, HERE, DEFAULTS)

    assert (summary.tapes, summary.exchanges, summary.problems) == (2, 3, ())
    assert {row["tape"]: row["source"] for row in rows("tapes")} == {
        FIRST: f"{TAPES}/{PLACE}/{FIRST}.tape.zst",
        SECOND: f"{TAPES}/{PLACE}/{SECOND}.tape",
    }
    assert {row["gateway"] for row in rows("tapes")} == {"edge-1"}
    assert len({row["etag"] for row in rows("tapes")} - {None}) == 2
    assert "C002" in {row["code"] for row in rows("findings")}
    assert scan(TAPES, OUT, HERE, DEFAULTS).tapes == 0

    first = Counter(str(row["code"]) for row in rows("findings") if not row["across"])
    again = scan(TAPES, OUT, HERE, replace(DEFAULTS, loop_calls=4))
    assert {row["rules"] for row in rows("exchanges")} == {again.rules}
    assert Counter(str(row["code"]) for row in rows("findings_before")) == first


def test_what_is_out_of_reach_is_reported_and_read_by_the_next_scan(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(f"{PLACE}/{FIRST}.tape", CUT.read_bytes())
    with relay(server.port) as between:
        use(between.port, monkeypatch)
        open_files.cache_clear()
        files = open_files(TAPES)
        listed = list(files.found())
        between.cut()
        monkeypatch.setattr(type(files), "found", lambda *_: iter(listed))
        summary = scan(TAPES, str(tmp_path / "out"), HERE, DEFAULTS)
        monkeypatch.undo()
    assert summary.problems
    use(server.port, monkeypatch)
    open_files.cache_clear()
    assert scan(TAPES, str(tmp_path / "out"), HERE, DEFAULTS).tapes == 1


@pytest.mark.usefixtures("server")
def test_an_object_that_is_gone_is_said_to_be() -> None:
    with pytest.raises(UsageError, match="no such object"), open_files(TAPES).local("x.tape"):
        pass


def test_a_file_url_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.tape").write_bytes(CUT.read_bytes())
    summary = scan((tmp_path / "in").as_uri(), (tmp_path / "out").as_uri(), HERE, DEFAULTS)
    assert summary.tapes == 1
    assert [*(tmp_path / "out" / "tapes").rglob("*.parquet")]


@pytest.mark.usefixtures("server")
def test_conversations_of_tapes_in_a_store_are_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    whole = RECORDINGS / "rules" / "C001" / "fires.tape"
    for part, key in ((1, FIRST), (2, SECOND)):
        source = SpliceSource(tape=open_tape(str(whole)), numbers=frozenset({part}))
        splice([source], tmp_path / f"{key}.tape", SystemClock())
        put(f"{PLACE}/{key}.tape", (tmp_path / f"{key}.tape").read_bytes())

    assert scan(TAPES, OUT, HERE, DEFAULTS).across == 1

    assert [row["code"] for row in rows("findings") if row["across"]] == ["C001"]
    assert list(open_files(OUT).found(DRAFTS)) == []
    assert [*temporary.iterdir()] == []
