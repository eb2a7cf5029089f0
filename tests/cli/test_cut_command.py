"""`deltatape cut`: single exchanges of tapes as a tape of their own."""

from pathlib import Path

import pytest

from deltatape.store.reader import open_tape
from helpers.console import called
from helpers.tapes import whole_tape, write_tape


def test_the_chosen_exchange_is_kept_and_the_tape_stays(tmp_path: Path) -> None:
    write_tape(tmp_path, whole_tape())
    result = called("cut", "x.tape#2", "-o", "y.tape", folder=tmp_path)
    assert (result.returncode, result.stdout) == (0, b"y.tape\n")
    (kept,) = open_tape(tmp_path / "y.tape")
    assert (kept.number, kept.reads[0].data) == (1, "é\u2028".encode())
    assert (tmp_path / "x.tape").read_bytes() == whole_tape()


def test_a_whole_tape_is_refused(tmp_path: Path) -> None:
    write_tape(tmp_path, whole_tape())
    result = called("cut", "x.tape#1", "x.tape", "-o", "y.tape", folder=tmp_path)
    assert result.returncode == 2
    assert result.stderr == (
        b"deltatape: x.tape: is a whole tape; name exchanges of it, such as x.tape#1\n"
    )


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("missing.tape", "missing.tape: No such file or directory; name a tape"),
        (".", ".: is a folder; name a tape"),
    ],
)
def test_what_is_no_tape_has_no_exchanges_to_name(tmp_path: Path, name: str, problem: str) -> None:
    result = called("cut", name, "-o", "y.tape", folder=tmp_path)
    assert (result.returncode, result.stderr.decode()) == (2, f"deltatape: {problem}\n")
