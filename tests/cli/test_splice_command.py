"""`deltatape splice`: several tapes, or some of their exchanges, as one."""

import shutil
from pathlib import Path

from deltatape.store.reader import open_tape
from helpers.console import called
from helpers.splice_tapes import BEGUN_NS, Plan

TWO = ((1, 0, 5), (2, 0, 5), (0, 1, 5), (1, 5, 5))


def made(folder: Path) -> None:
    for place, name in enumerate("ab"):
        Plan(name=name, begun_ns=BEGUN_NS + place * 10**9, steps=TWO).write(folder)


def test_tapes_become_one_and_its_path_is_printed(tmp_path: Path) -> None:
    made(tmp_path)
    result = called("splice", "a.tape", "b.tape", "-o", "c d.tape", folder=tmp_path)
    assert (result.returncode, result.stdout) == (0, b"c d.tape\n")
    assert result.stderr.decode().splitlines() == [
        "c d.tape: 4 exchanges",
        "next: deltatape show 'c d.tape'",
    ]
    assert len(open_tape(tmp_path / "c d.tape")) == 4


def test_a_tape_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "link.tape").symlink_to("a.tape")
    named = ("a.tape#2", "b.tape#1", "link.tape#1", "a.tape#2", "b.tape")
    assert called("splice", *named, "-o", "c.tape", folder=tmp_path).returncode == 0
    tape = open_tape(tmp_path / "c.tape")
    assert (len(tape), len(tape.logs)) == (4, 1)


def test_an_exchange_on_two_tapes_is_taken_once_and_reported(tmp_path: Path) -> None:
    made(tmp_path)
    shutil.copy(tmp_path / "a.tape", tmp_path / "copy.tape")
    result = called("splice", "a.tape", "copy.tape", "-o", "c.tape", folder=tmp_path)
    assert result.stderr.decode().splitlines() == [
        "note: copy.tape#1 is a.tape#1, byte for byte: taken once",
        "note: copy.tape#2 is a.tape#2, byte for byte: taken once",
        "note: copy.tape is a copy of a.tape: its log is taken once",
        "c.tape: 2 exchanges",
        "next: deltatape show c.tape",
    ]


def test_an_output_that_is_an_input_is_refused(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "link.tape").symlink_to("a.tape")
    for output in ("a.tape", "./a.tape", "link.tape"):
        result = called("splice", "b.tape", "a.tape#1", "-o", output, folder=tmp_path)
        assert result.returncode == 2
        assert b"is one of the tapes to be read" in result.stderr
    result = called("splice", "b.tape", "-o", "a.tape", folder=tmp_path)
    assert (result.returncode, b"never overwritten" in result.stderr) == (2, True)


def test_a_torn_last_record_is_left_out_and_said(tmp_path: Path) -> None:
    Plan(name="x", begun_ns=BEGUN_NS, steps=TWO, torn=b'[17,1,"rea').write(tmp_path)
    result = called("splice", "x.tape", "-o", "y.tape", folder=tmp_path)
    assert b"note: x.tape: left out a truncated last record of 10 bytes\n" in result.stderr
    before, after = ((tmp_path / name).read_bytes() for name in ("x.tape", "y.tape"))
    assert before.split(b"\n")[1:-1] == after.split(b"\n")[1:-1]


def test_what_is_not_a_tape_or_has_no_such_exchange_is_refused(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "no.tape").write_text("hello\n")
    for name, said in (("no.tape", b"no tape"), ("a.tape#9", b"it has 1 to 2"), ("x\0", b"x")):
        result = called("splice", name, "-o", "c.tape", folder=tmp_path)
        assert (result.returncode, result.stdout) == (2, b"")
        assert said in result.stderr
    assert not (tmp_path / "c.tape").exists()
