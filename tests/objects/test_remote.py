"""The stores of Microsoft and Google over loopback: shipped to, listed, scanned and read."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from deltatape.errors import StoreRefusedError, StoreUnreachableError, UsageError
from deltatape.objects.store import PART_BYTES
from deltatape.objects.urls import open_store
from deltatape.scan.dataset import open_files
from deltatape.store.reader import open_tape
from helpers.console import called
from helpers.incidents import BROKEN, CUT
from helpers.object_store import BUCKET, az_server, gs_server


@pytest.fixture(params=["az", "gs"], scope="module")
def scheme(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "az":
            server = az_server(patch)
        else:
            server = gs_server(tmp_path_factory.mktemp("gs"), patch)
        with server:
            open_files.cache_clear()
            yield request.param
    open_files.cache_clear()


def test_shipped_tapes_are_listed_read_and_scanned(scheme: str, tmp_path: Path) -> None:
    url = f"{scheme}://{BUCKET}/tapes"
    local = {}
    (tmp_path / "tapes").mkdir()
    for source in (BROKEN, CUT):
        (tmp_path / "tapes" / source.name).write_bytes(source.read_bytes())
        local[open_tape(str(source)).header.id] = source

    def ship(*options: str) -> bytes:
        shipping = ("ship", "tapes", url, "--once", "--gateway", "a", *options)
        run = called(*shipping, folder=tmp_path)
        assert run.returncode == 0, run.stderr.decode()
        return run.stderr.splitlines()[-1]

    assert ship() == b"2 tapes shipped"
    ship("--delete-shipped")
    assert [*(tmp_path / "tapes").iterdir()] == []

    keys = [each.key for each in open_store(url).list()]
    assert len(keys) == 2
    listed = called("ls", url, "--format", "json", folder=tmp_path)
    for key in keys:
        tape = f"{url}/{key}"
        assert f'"{tape}"'.encode() in listed.stdout
        here = str(local[key.rpartition("/")[2].removesuffix(".tape.zst")])
        for command, number in (("check", ""), ("why", "#1")):
            there = called(command, f"{tape}{number}", "--format", "json", folder=tmp_path)
            same = called(command, f"{here}{number}", "--format", "json", folder=tmp_path)
            assert there.returncode == same.returncode
            said = there.stdout.replace(tape.encode(), b"TAPE")
            assert said == same.stdout.replace(here.encode(), b"TAPE")

    out = f"{scheme}://{BUCKET}/dataset"
    for lines in (b"2 tapes", b"0 tapes"):
        run = called("scan", url, "--out", out, "--jobs", "1", folder=tmp_path)
        assert run.returncode == 0, run.stderr.decode()
        assert lines in run.stdout + run.stderr
    assert len(list(open_files(out).found("tapes"))) == 2


def test_an_object_sent_in_parts_keeps_its_metadata(scheme: str) -> None:
    store = open_store(f"{scheme}://{BUCKET}/parts")
    content = bytes(range(250)) * (2 * PART_BYTES // 250 + 1)
    sha256 = hashlib.sha256(content).hexdigest()
    blocks = (content[at : at + 65536] for at in range(0, len(content), 65536))
    store.put("a b/ü", blocks, size=len(content), sha256=sha256, metadata={"lines": "7"})
    found = store.head("a b/ü")
    assert found is not None
    assert (found.size, found.metadata["sha256"], found.metadata["lines"]) == (
        len(content),
        sha256,
        "7",
    )
    assert b"".join(store.blocks(found)) == content
    assert [(each.key, each.size) for each in store.list("a b")] == [("a b/ü", len(content))]
    for _ in range(2):
        store.remove("a b/ü")
    assert store.head("a b/ü") is None
    with pytest.raises(UsageError, match="no such object"):
        store.read("a b/ü", 0, 1)


def test_a_bucket_that_is_missing_is_said_to_be(scheme: str) -> None:
    store = open_store(f"{scheme}://none/x")
    with pytest.raises(UsageError, match="no such bucket"):
        store.put("k", [b"1"], size=1, sha256="0" * 64)
    with pytest.raises(UsageError, match="no such bucket"):
        list(store.list())


def test_http_is_for_servers_that_are_named(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another store's variables, none counts."""
    name = {"az": "AZURE_STORAGE_ENDPOINT", "gs": "GOOGLE_BASE_URL"}[scheme]
    other = {"az": "GOOGLE_BASE_URL", "gs": "AZURE_STORAGE_ENDPOINT"}[scheme]
    for variable, url in ((name, "https://127.0.0.1:1"), (other, "http://127.0.0.1:1")):
        monkeypatch.setenv(variable, url)
    with pytest.raises(StoreUnreachableError):
        list(open_store(f"{scheme}://{BUCKET}/x").list())


@pytest.mark.parametrize("scheme", ["az"], indirect=True)
@pytest.mark.usefixtures("scheme")
def test_a_wrong_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server that stands for Google's asks nobody for a key."""
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "bm90IGl0")
    with pytest.raises(StoreRefusedError, match="AZURE_STORAGE_ACCOUNT_KEY"):
        list(open_store(f"az://{BUCKET}/x").list())
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "?")
    with pytest.raises(UsageError, match="Invalid"):
        open_store(f"az://{BUCKET}/x")
