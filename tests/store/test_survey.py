"""What is on tapes that are to become one."""

import fcntl
import os
from pathlib import Path

import pytest

from deltatape.errors import TapeFormatError, UsageError
from deltatape.store.reader import open_tape
from deltatape.store.survey import Given, doubles, survey, taken
from helpers.tapes import whole_tape, write_tape


def of(folder: Path, content: bytes, *numbers: int, name: str = "x.tape") -> Given:
    tape = open_tape(write_tape(folder, content, name))
    return Given(tape=tape, numbers=frozenset(numbers) if numbers else None)


def test_exchanges_are_told_with_their_ids(tmp_path: Path) -> None:
    found = survey(of(tmp_path, whole_tape()))
    assert [each.number for each in found.exchanges] == [0, 1, 2]
    assert found.exchanges[0].id == "01JD3ZQ8T0000000000000TAPE"
    assert found.exchanges[1].id == "01JD3ZQ8T0000000000000001A"
    assert (found.last_ns, found.watch.stop) == (160, "child-exit")


def test_of_single_exchanges_nothing_else_is_told(tmp_path: Path) -> None:
    found = survey(of(tmp_path, whole_tape(), 1))
    assert [each.number for each in found.exchanges] == [1]
    assert (found.last_ns, found.watch.until_ns) == (130, 160)


def test_an_exchange_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such exchange on the tape; it has 1 to 2"):
        survey(of(tmp_path, whole_tape(), 3))


def test_a_tape_that_is_being_recorded_is_refused(tmp_path: Path) -> None:
    given = of(tmp_path, whole_tape())
    with Path(given.tape.path).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="still being recorded"):
            survey(given)


def test_the_hash_of_an_exchange_knows_neither_its_number_nor_its_hour(tmp_path: Path) -> None:
    first = whole_tape()
    moved = b"".join(
        line
        if line.startswith(b"{")
        else b"[%d,%d,%b" % (int(line[1 : line.index(b",")]) + 7, *_number(line))
        for line in first.splitlines(keepends=True)
    )
    one, other = survey(of(tmp_path, first)), survey(of(tmp_path, moved, name="y.tape"))
    assert [a.lines == b.lines for a, b in zip(one.exchanges, other.exchanges, strict=True)] == [
        True,
        True,
        True,
    ]


def _number(line: bytes) -> tuple[int, bytes]:
    _, number, rest = line.split(b",", 2)
    return (int(number) + 4 if int(number) else 0), rest


def test_exchanges_without_an_id_are_never_the_same(tmp_path: Path) -> None:
    header, *lines = whole_tape().splitlines(keepends=True)
    content = header + b"".join(line for line in lines if b'"request",' not in line)
    surveys = [survey(of(tmp_path, content, 1, 2, name=name)) for name in ("a.tape", "b.tape")]
    assert list(doubles(surveys)) == []


def test_a_torn_line_is_left_out_and_a_whole_one_without_its_feed_counts(tmp_path: Path) -> None:
    torn = of(tmp_path, whole_tape() + b'[161,1,"re')
    assert survey(torn).last_ns == 160
    whole = of(tmp_path, whole_tape()[:-1], name="y.tape")
    assert survey(whole).watch.stop == "child-exit"
    assert len(list(taken(torn, frozenset()))) == len(list(taken(whole, frozenset())))


def test_a_tape_that_is_changed_between_the_passes_is_damaged(tmp_path: Path) -> None:
    given = of(tmp_path, whole_tape())
    survey(given)
    os.truncate(given.tape.path, 0)
    write_tape(tmp_path, whole_tape().replace(b'[0,0,"client"', b'[x,0,"client"'))
    with pytest.raises(TapeFormatError, match=r"x\.tape:2"):
        list(taken(given, frozenset()))
