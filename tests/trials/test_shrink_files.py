import stat
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.render.shrink import ShrinkKit
from deltatape.shrink.failure import CommandResult, failure_of
from deltatape.store.audit import audit
from deltatape.store.reader import open_tape
from deltatape.trials.shrink_files import files_of, write_files
from helpers.taped import taped


def kit(oracle: str | None = None) -> ShrinkKit:
    failure = failure_of(CommandResult(exit_code=1))
    assert failure is not None
    return ShrinkKit(
        tape="x-small.tape",
        folder=".",
        command=["true"],
        options=[],
        deadline_s=5,
        failure=failure,
        oracle=oracle,
    )


def test_a_tape_and_its_tests_are_written_and_equal_input_makes_equal_tapes(
    tmp_path: Path,
) -> None:
    files = files_of(tmp_path / "new" / "x-small.tape")
    written = write_files(files, [taped()], kit())
    assert [path.name for path in written] == ["x-small.tape", "test_x_small.py", "x-small.sh"]
    modes = [stat.S_IMODE(path.stat().st_mode) for path in written]
    assert modes == [0o600, 0o644, 0o755]
    assert not audit(written[0]).problems
    assert [one.body for one in open_tape(written[0])] == [taped().body]
    (again,) = write_files(files_of(tmp_path / "y.tape"), [taped()], kit())[:1]
    assert again.read_bytes() == written[0].read_bytes()
    other = replace(taped([(10, b"data: 2\n\n")]), id="no ulid")
    (third,) = write_files(files_of(tmp_path / "z.tape"), [other], kit())[:1]
    ids = [open_tape(path).header.id for path in (written[0], third)]
    assert ids[0] != ids[1]
    assert all(len(each) == 26 for each in ids)


def test_no_script_is_written_where_an_oracle_has_to_judge(tmp_path: Path) -> None:
    written = write_files(files_of(tmp_path / "x.tape"), [taped()], kit(oracle="true"))
    assert [path.name for path in written] == ["x.tape", "test_x.py"]


@pytest.mark.parametrize("name", ["x.tape", "test_x.py", "x.sh"])
def test_nothing_is_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(UsageError, match="already exists and is not overwritten"):
        files_of(tmp_path / "x.tape")


def test_a_tape_is_called_so() -> None:
    with pytest.raises(UsageError, match=r"end in \.tape"):
        files_of(Path("x.json"))


def test_a_file_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("a file")
    files = files_of(tmp_path / "folder" / "x.tape")
    with pytest.raises(UsageError, match="folder"):
        write_files(files, [taped()], kit())


def test_a_secret_that_is_left_is_overwritten_before_the_tape_has_its_name(tmp_path: Path) -> None:
    secret = b"ghp_" + b"0aB1" * 9
    asking = taped(body=b'{"token": "%b"}' % secret)
    (path, *_) = write_files(files_of(tmp_path / "x.tape"), [asking], kit(), b"mine")
    assert secret not in path.read_bytes()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["test_x.py", "x.sh", "x.tape"]
