"""Tapes in an object store: every command reads them as it reads files."""

from pathlib import Path

import pytest

from deltatape.errors import DeltatapeError, TapeFormatError, UsageError
from deltatape.objects.store import ObjectRanges, ObjectStore
from deltatape.objects.urls import folder_store, open_store, url_of
from deltatape.store.listing import list_tapes, name_of
from deltatape.store.packing import seal
from deltatape.store.reader import open_tape
from deltatape.store.sealed import SealedTape
from deltatape.store.stored import StoredTape
from helpers.console import called
from helpers.incidents import BROKEN, CUT
from helpers.object_store import BUCKET, use
from helpers.shards import sharded


@pytest.fixture(params=["s3", "file"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store with both incidents: one sealed, one not."""
    if request.param == "s3":
        request.getfixturevalue("s3")
        url = f"s3://{BUCKET}/below"
    else:
        url = (tmp_path / "store").as_uri()
    sealed = seal(BROKEN, tmp_path / "broken.tape.zst").path
    store = open_store(url, makes=True)
    for key, path in (("dt=1/broken.tape.zst", sealed), ("dt=1/cut.tape", CUT)):
        content = path.read_bytes()
        store.put(key, [content], size=len(content), sha256="0" * 64)
    return url


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("s3://bucket/a/x.tape", "s3://bucket/a/x.tape"),
        (Path("s3://bucket/a/x.tape"), "s3://bucket/a/x.tape"),
        (Path("gs://bucket"), "gs://bucket"),
        (Path("az://container/x"), "az://container/x"),
        ("file:///a/b", "file:///a/b"),
        (Path("file:///a/b"), "file:///a/b"),
        ("a/s3://b", None),
        ("/a/b.tape", None),
        ("s3:", None),
        ("ls3:/x", None),
    ],
)
def test_a_url_is_the_same_after_it_was_a_path(path: str | Path, url: str | None) -> None:
    assert url_of(path) == url


def test_exchanges_of_both_forms_are_those_of_the_files(url: str) -> None:
    for name, local, kind in (
        ("broken.tape.zst", BROKEN, SealedTape),
        ("cut.tape", CUT, StoredTape),
    ):
        tape, same = open_tape(f"{url}/dt=1/{name}"), open_tape(local)
        assert isinstance(tape, kind)
        assert (tape.size, len(tape), tape.recording) == (same.size, len(same), False)
        assert [each.request for each in tape] == [each.request for each in same]
        assert tape[1].reads == same[1].reads
        assert tape.logs == same.logs


@pytest.mark.parametrize(
    "command",
    [("check",), ("why", "#1"), ("show", "#1"), ("show",), ("ls", "--exchanges"), ("fsck",)],
)
def test_commands_say_of_a_url_what_they_say_of_the_file(
    url: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    options = [each for each in command if not each.startswith("#")]
    number = "".join(each for each in command if each.startswith("#"))
    for name, local in (("broken.tape.zst", tmp_path / "broken.tape.zst"), ("cut.tape", CUT)):
        options += ["--format", "json"] * ("--format" not in options)
        there = called(*options, f"{url}/dt=1/{name}{number}", folder=tmp_path)
        here = called(*options, f"{local}{number}", folder=tmp_path)
        assert there.returncode == here.returncode
        assert there.stdout
        said = there.stdout.replace(f"{url}/dt=1/{name}".encode(), b"TAPE")
        assert said == here.stdout.replace(str(local).encode(), b"TAPE")


def test_a_folder_of_a_store_is_listed_and_checked_as_a_whole(url: str, tmp_path: Path) -> None:
    names = [f"{url}/dt=1/broken.tape.zst", f"{url}/dt=1/cut.tape"]
    assert sorted(name_of(each.path) for each in list_tapes((Path(url),))) == names
    listed = called("ls", url, "--format", "json", folder=tmp_path).stdout.decode()
    assert all(f'"{name}"' in listed for name in names)
    checked = called("check", f"{url}/dt=1", "--format", "json", folder=tmp_path)
    assert checked.returncode == 1
    assert all(name.encode() in checked.stdout for name in names)
    latest = called("show", url, folder=tmp_path)
    assert latest.returncode == 0
    assert f"{url} is a folder; this is its latest tape, {url}/dt=1/".encode() in latest.stderr


def test_a_tape_in_a_store_is_listed_by_its_own_url(url: str, tmp_path: Path) -> None:
    listed = called("ls", f"{url}/dt=1/cut.tape", folder=tmp_path)
    assert b"/dt=1/cut.tape " in listed.stdout
    missing = called("ls", f"{url}/dt=1/none.tape", folder=tmp_path)
    assert (missing.returncode, missing.stdout) == (2, b"")
    assert f"{url}/dt=1/none.tape: there is no such object" in missing.stderr.decode()


def test_one_exchange_of_many_is_read_by_range(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = tmp_path.as_uri()
    content = bytes(range(256)) * 40_000
    folder_store(url).put("x", [content], size=len(content), sha256="0" * 64)
    asked: list[int] = []
    read = ObjectStore.read

    def counted(self: ObjectStore, key: str, offset: int, length: int) -> bytes:
        asked.append(length)
        return read(self, key, offset, length)

    monkeypatch.setattr(ObjectStore, "read", counted)
    ranges = ObjectRanges(folder_store(url), "x")
    size = len(content)
    assert ranges.read(size - 32, 32) == content[-32:]
    assert ranges.read(size - 9000, 8000) == content[-9000:-1000]
    assert ranges.read(1_000_000, 700_000) == content[1_000_000:1_700_000]
    assert ranges.read(1_500_000, 10) == content[1_500_000:1_500_010]
    assert len(asked) == 2
    assert sum(asked) < 1_600_000
    for at in range(0, size, 100_000):  # more than is held
        assert ranges.read(at, 100_000) == content[at : at + 100_000]
    assert ranges.read(size, 5) == b""


def test_workers_tapes_in_a_store_are_read_as_one_recording(tmp_path: Path) -> None:
    folder = tmp_path / "tapes"
    folder.mkdir()
    first, _ = sharded(BROKEN, folder)
    here = called("check", first, "--format", "json", folder=tmp_path)
    url = f"{folder.as_uri()}/{first.name}"
    there = called("check", url, "--format", "json", folder=tmp_path)
    assert b"read together with" in there.stderr
    assert there.returncode == here.returncode
    assert there.stdout.replace(folder.as_uri().encode(), str(folder).encode()) == here.stdout


@pytest.mark.parametrize(
    ("name", "problem"),
    [("none.tape", "there is no such object"), ("other.tape", "no tape: a tape starts with")],
)
def test_what_is_no_tape_is_said_with_its_url(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / "other.tape").write_bytes(b"something else\n")
    with pytest.raises((UsageError, TapeFormatError)) as raised:
        open_tape(f"{tmp_path.as_uri()}/{name}")
    assert str(raised.value).startswith(f"{tmp_path.as_uri()}/{name}")
    assert problem in str(raised.value)


def test_a_store_that_does_not_answer_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    use(9, monkeypatch)
    with pytest.raises(DeltatapeError, match="Connection refused"):
        open_tape(f"s3://{BUCKET}/x.tape")
