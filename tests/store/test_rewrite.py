import fcntl
import os
import stat
from pathlib import Path

import pytest

from deltatape.errors import TapeFormatError, UsageError
from deltatape.redact.audit import ProblemKind
from deltatape.store import rewrite
from deltatape.store.audit import audit
from deltatape.store.reader import MAX_LINE, Tape, open_tape
from deltatape.store.rewrite import SHARED, as_named, as_new, draft, in_place_of, same_as
from deltatape.tape.mask import Masker
from helpers.secret_tapes import KEY, STARS, exchange, payloads, record, tape
from helpers.tapes import MASKER, write_tape

LEAKY = tape(*exchange(reads=[f"a {KEY}".encode()]))


def written(folder: Path, content: bytes = LEAKY) -> Tape:
    return open_tape(write_tape(folder, content))


def test_a_draft_is_hidden_private_and_without_secrets(tmp_path: Path) -> None:
    done = draft(written(tmp_path), tmp_path, MASKER, content=False)
    assert done.path.name.startswith(".x.tape.")
    assert stat.S_IMODE(done.path.stat().st_mode) == 0o600
    assert payloads(done.path.read_bytes(), "read") == [f"a {STARS}"]
    assert (done.plan.kinds, done.torn) == ({"API key": 1}, 0)
    assert (tmp_path / "x.tape").read_bytes() == LEAKY
    done.discard()
    done.discard()
    assert os.listdir(tmp_path) == ["x.tape"]  # noqa: PTH208 - names, to be compared


def test_a_draft_gets_a_free_name(tmp_path: Path) -> None:
    source = written(tmp_path)
    for name in ("y.tape", "y-2.tape"):
        done = draft(source, tmp_path, MASKER, content=False, mode=SHARED)
        assert as_new(done, tmp_path, "y") == tmp_path / name
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == SHARED & ~_umask()
        assert audit(tmp_path / name).problems == ()


def _umask() -> int:
    now = os.umask(0o022)
    os.umask(now)
    return now


def test_a_draft_takes_no_name_that_is_taken(tmp_path: Path) -> None:
    done = draft(written(tmp_path), tmp_path, MASKER, content=False)
    with pytest.raises(FileExistsError):
        as_named(done.path, tmp_path / "x.tape")
    assert as_named(done.path, tmp_path / "z.tape") == tmp_path / "z.tape"
    assert (tmp_path / "x.tape").read_bytes() == LEAKY


def test_in_place_the_mode_and_the_times_stay(tmp_path: Path) -> None:
    source = written(tmp_path)
    path = Path(source.path)
    path.chmod(0o640)
    os.utime(path, (5, 6))
    in_place_of(draft(source, tmp_path, MASKER, content=False), path)
    status = path.stat()
    assert (stat.S_IMODE(status.st_mode), status.st_mtime) == (0o640, 6)
    assert KEY.encode() not in path.read_bytes()


def test_a_draft_has_the_times_of_its_original(tmp_path: Path) -> None:
    source = written(tmp_path)
    os.utime(source.path, ns=(5, 6_000_000_007))
    done = draft(source, tmp_path, MASKER, content=False)
    assert as_new(done, tmp_path, "y").stat().st_mtime_ns == 6_000_000_007


def test_a_tape_that_equals_a_draft_is_found_by_its_name(tmp_path: Path) -> None:
    source = written(tmp_path)
    folder = tmp_path / "kept"
    (folder / "y-3.tape").mkdir(parents=True)
    (folder / "y.tape").write_bytes(b"other")
    done = draft(source, folder, MASKER, content=False)
    assert same_as(done, folder, "y") is None
    for name in ("z.tape", "y-z.tape", "yy.tape"):
        (folder / name).write_bytes(done.path.read_bytes())
    assert same_as(done, folder, "y") is None
    (folder / "y-2.tape").write_bytes(done.path.read_bytes())
    assert same_as(done, folder, "y") == folder / "y-2.tape"


def test_content_is_masked_with_the_words_of_the_whole_tape(tmp_path: Path) -> None:
    asked = b'{"tools":[{"name":"f","parameters":{"properties":{"city":{}}}}]}'
    content = tape(
        *exchange(1, reads=[b'{"arguments":"{\\"city\\":\\"Bern\\"}"}']),
        *exchange(2, request=[asked]),
    )
    done = draft(written(tmp_path, content), tmp_path, MASKER, content=True)
    assert payloads(done.path.read_bytes(), "read")[0] == '{"arguments":"{\\"city\\":\\"xxxx\\"}"}'


def test_a_torn_last_record_is_left_out_and_a_whole_one_kept(tmp_path: Path) -> None:
    note = record(5, 0, "note", {"text": "x"})
    done = draft(written(tmp_path, tape() + note[:-5]), tmp_path, MASKER, content=False)
    assert (done.path.read_bytes(), done.torn) == (tape(), len(note) - 5)
    done = draft(written(tmp_path, tape() + note[:-1]), tmp_path, MASKER, content=False)
    assert (done.path.read_bytes(), done.torn) == (tape() + note[:-1], 0)


def test_a_tape_that_is_being_recorded_is_left_alone(tmp_path: Path) -> None:
    source = written(tmp_path)
    with Path(source.path).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="is still being recorded"):
            draft(source, tmp_path, MASKER, content=False)


def test_a_tape_that_changes_meanwhile_gives_no_draft(tmp_path: Path) -> None:
    source = written(tmp_path)

    class Changing(Masker):
        """Someone appends while the tape is read."""

        def value(self, value: bytes) -> object:  # type: ignore[override]
            with Path(source.path).open("ab") as file:
                file.write(record(5, 0, "note", {"text": "x"}))
            return super().value(value)

    with pytest.raises(UsageError, match="was changed while it was read"):
        draft(source, tmp_path, Changing(b"k"), content=False)
    assert [path.name for path in tmp_path.iterdir()] == ["x.tape"]


def test_where_no_draft_can_be_written_it_is_said(tmp_path: Path) -> None:
    source, missing = written(tmp_path), tmp_path / "missing"
    for called in ("-o missing/y.tape", ""):
        with pytest.raises(UsageError) as told:
            draft(source, missing, MASKER, content=False, called=called)
        assert str(told.value) == f"{called or missing}: No such file or directory"


def test_a_damaged_tape_gives_no_draft(tmp_path: Path) -> None:
    with pytest.raises(TapeFormatError, match=r"x\.tape:2"):
        draft(written(tmp_path, tape(b"garbage\n")), tmp_path, MASKER, content=False)


def test_an_audit_reads_every_line(tmp_path: Path) -> None:
    path = Path(write_tape(tmp_path, tape(b"garbage\n", *exchange(reads=[KEY.encode()]))))
    assert [(p.kind, p.line) for p in audit(path).problems] == [
        (ProblemKind.DAMAGE, 2),
        (ProblemKind.SECRET, 7),
    ]


def test_an_audit_ends_at_a_line_that_is_too_long(tmp_path: Path) -> None:
    path = Path(write_tape(tmp_path, tape() + b"x" * (MAX_LINE + 1)))
    ((problem,),) = [audit(path).problems]
    assert (problem.line, problem.message.split(" bytes")[0]) == (3, f"longer than {MAX_LINE}")


def test_what_is_no_tape_cannot_be_audited(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        audit(tmp_path / "missing.tape")
    with pytest.raises(TapeFormatError):
        audit(Path(write_tape(tmp_path, b"garbage\n")))
    assert rewrite.PRIVATE == 0o600
