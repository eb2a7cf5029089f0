"""Object stores: what URLs are accepted, and what a folder is as a store."""

from pathlib import Path

import pytest

from deltatape.errors import StoreUnreachableError, UsageError
from deltatape.objects.store import ObjectStore
from deltatape.objects.urls import is_store_url, open_store


@pytest.mark.parametrize(
    ("text", "expected"),
    [("s3://b/x", True), ("file:///x", True), ("x://y", True), ("a/b", False), ("C:/x", False)],
)
def test_a_url_is_told_from_a_path(text: str, expected: bool) -> None:  # noqa: FBT001 - a parameter
    assert is_store_url(text) is expected


@pytest.mark.parametrize(
    "url",
    [
        "s4://x/y",
        "s3:///x",
        "file://host/x",
        "file:x",
        "/a/path",
        "https://example.com/x",
        "s3://b/x?versionId=1",
        "s3://[x",
    ],
)
def test_what_is_no_url_of_a_store_is_refused_with_those_that_are(url: str) -> None:
    with pytest.raises(UsageError, match=r"file:///folder, s3://bucket/prefix"):
        ObjectStore(url)


def test_a_password_in_a_url_is_not_repeated() -> None:
    with pytest.raises(UsageError) as raised:
        ObjectStore("s3://key:secret@bucket/x")
    assert "secret" not in str(raised.value)


def test_a_folder_that_is_missing_is_made_only_to_ship_to(tmp_path: Path) -> None:
    url = (tmp_path / "none").as_uri()
    with pytest.raises(UsageError, match="no such folder"):
        open_store(url)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="file"):
        open_store(f"{tmp_path.as_uri()}/file/below", makes=True)
    open_store(url, makes=True)
    assert (tmp_path / "none").is_dir()


def test_an_object_is_listed_and_removed(tmp_path: Path) -> None:
    store = open_store(tmp_path.as_uri())
    store.put("a/b c", [b"12", b"3"], size=3, sha256="0" * 64)
    (found,) = store.list("a")
    assert (found.key, found.size) == ("a/b c", 3)
    assert found.modified_us * 1000 == pytest.approx(
        (tmp_path / "a" / "b c").stat().st_mtime_ns, abs=1000
    )
    assert found == store.head("a/b c")
    for _ in range(2):
        store.remove("a/b c")
    assert [*store.list()] == []
    assert store.head("a/b c") is None


def test_a_folder_that_is_gone_may_come_back(tmp_path: Path) -> None:
    store = open_store((tmp_path / "store").as_uri(), makes=True)
    (tmp_path / "store").rmdir()
    (tmp_path / "store").touch()
    with pytest.raises(StoreUnreachableError):
        store.put("k", [b"1"], size=1, sha256="0" * 64)
