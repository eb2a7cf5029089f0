"""A tape is followed while it grows."""

import json
from pathlib import Path

import pytest

from deltatape.errors import TapeFormatError, UsageError
from deltatape.store import reader, tail
from deltatape.store.reader import open_tape
from deltatape.store.tail import Holds, TapeTail
from deltatape.tape.encode import header_line
from helpers.tapes import HEADER

LINES = (
    header_line(HEADER),
    b'[1,0,"idle",{}]\n',
    b'[2,1,"read","data: 1\\n\\n"]\n',
    b'[3,1,"read","\xc3\xa9"]\n',
    b'[4,1,"read",{"b64":"/w=="}]\n',
    b'[5,0,"stop",{"reason":"sigint"}]\n',
)
WHOLE = b"".join(LINES)


def drained(tape: TapeTail) -> list[tuple[int, object]]:
    return [(number, tuple(record)[:2]) for number, record in tape.read()]


def test_records_come_once_and_are_those_of_a_reader_at_every_cut(tmp_path: Path) -> None:
    path = tmp_path / "x.tape"
    path.write_bytes(WHOLE)
    expected = [(number, tuple(record)[:2]) for number, record in open_tape(path).records()]
    assert len(expected) == len(LINES) - 1
    for cut in range(len(WHOLE) + 1):
        path.write_bytes(WHOLE[:cut])
        with TapeTail(path) as tape:
            before = drained(tape)
            assert len(before) == max(WHOLE[:cut].count(b"\n") - 1, 0)
            assert (tape.header is None) is (cut < len(LINES[0]))
            with path.open("ab") as file:
                file.write(WHOLE[cut:])
            assert before + drained(tape) == expected
            assert drained(tape) == []
            assert tape.header == HEADER


def test_an_exchange_with_a_long_line_comes_at_its_end(tmp_path: Path) -> None:
    def line(exchange: int, code: str, payload: object) -> bytes:
        return b'[1,%d,"%b",%b]\n' % (exchange, code.encode(), json.dumps(payload).encode())

    end = {"reason": "complete", "bytes": 0, "sha256": "0" * 64}
    long = "x" * tail.LONG_LINE
    path = tmp_path / "x.tape"
    lines = [
        LINES[0],
        line(1, "read", "before"),
        line(1, "read", long),
        line(0, "log", {"stream": "stdout", "line": long}),
        line(2, "read", "another's"),
        line(1, "read", "after"),
        line(2, "end", end),
    ]
    path.write_bytes(b"".join(lines))
    with TapeTail(path) as tape, path.open("ab") as file:
        assert [number for number, _ in tape.read()] == [2, 4, 5, 7]
        file.write(line(1, "end", end) + line(1, "read", "too late"))
        file.flush()
        late = list(tape.read())
        assert [number for number, _ in late] == [3, 6, 8, 9]
        assert [record[2] for _, record in late[:2]] == [long.encode(), b"after"]


def test_long_lines_come_at_once_where_that_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "x.tape"
    long = b'[1,1,"read","%b"]\n' % (b"x" * tail.LONG_LINE)
    path.write_bytes(LINES[0] + long + LINES[2])
    with TapeTail(path, holds=Holds.NONE) as tape:
        assert [number for number, _ in tape.read()] == [2, 3]


READS = (
    *LINES[:1],
    b'[1,1,"idle",{}]\n',
    b'[2,1,"read","data: 1\\n\\n"]\n',
    b'[3,2,"boundaries",[1]]\n',
    b'[4,2,"read",{"b64":"/w=="}]\n',
    b'[5,1,"boundaries",[1]]\n',
    b'[6,0,"read","of no exchange"]\n',
    b'[7,1,"read","\xc3\xa9"]\n',
    b'[8,1,"end",{"reason":"complete","bytes":3,"sha256":"%b"}]\n' % (b"0" * 64),
    b'[9,2,"idle",{}]\n',
)


def test_after_its_first_read_an_exchange_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "x.tape"
    path.write_bytes(b"".join(READS))
    records = dict(open_tape(path).records())
    with TapeTail(path, holds=Holds.READS) as tape:
        read = [*tape.read()]
        assert [number for number, _ in read] == [2, 3, 4, 5, 7, 6, 8, 9]
        assert (tape.is_waiting(1), tape.is_waiting(2)) == (False, True)
        read += tape.release(2)
        assert not tape.is_waiting(2)
        assert [number for number, _ in read[8:]] == [10]
        assert all(tuple(records[number])[:2] == record[:2] for number, record in read)
        with path.open("ab") as file:
            file.write(b'[10,2,"read","more"]\n')
        assert [*tape.read()] == []
        assert [(number, record[2]) for number, record in tape.release(2)] == [(11, b"more")]


def test_however_often_what_waits_is_released_it_comes_once_in_order(tmp_path: Path) -> None:
    path = tmp_path / "x.tape"
    whole = b"".join(READS)
    path.write_bytes(whole)
    expected: dict[int, list[int]] = {}
    for number, record in open_tape(path).records():
        expected.setdefault(record[1], []).append(number)
    for cut in range(len(READS[0]), len(whole) + 1):
        path.write_bytes(whole[:cut])
        found: dict[int, list[int]] = {}
        with TapeTail(path, holds=Holds.READS) as tape:
            for rest in (whole[cut:], b""):
                for numbered in (*tape.read(), *tape.release(1), *tape.release(2)):
                    found.setdefault(numbered[1][1], []).append(numbered[0])
                with path.open("ab") as file:
                    file.write(rest)
            assert not any(tape.is_waiting(exchange) for exchange in expected if exchange)
        assert [found[number] for number in (1, 2)] == [expected[number] for number in (1, 2)]


def test_damage_in_what_waits_is_told_when_it_is_released(tmp_path: Path) -> None:
    path = tmp_path / "x.tape"
    path.write_bytes(READS[0] + READS[2] * 2 + b'[3,1,"read",7]\n')
    with TapeTail(path, holds=Holds.READS) as tape:
        assert [number for number, _ in tape.read()] == [2]
        released = tape.release(1)
        assert next(released)[0] == 3
        with pytest.raises(TapeFormatError) as raised:
            next(released)
        assert raised.value.line == 4


def test_a_long_line_that_is_no_record_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.tape"
    path.write_bytes(LINES[0] + b"x" * tail.LONG_LINE + b"\n")
    with TapeTail(path) as tape, pytest.raises(TapeFormatError, match="no JSON"):
        list(tape.read())


def test_a_tape_that_is_renamed_or_deleted_is_followed_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "x.ring.tape"
    path.write_bytes(WHOLE[:-10])
    with TapeTail(path) as tape, path.open("ab") as file:
        assert len(drained(tape)) == len(LINES) - 2
        path.rename(tmp_path / "x.tape").unlink()
        file.write(WHOLE[-10:])
        file.flush()
        assert [number for number, _ in tape.read()] == [len(LINES)]


def test_lines_longer_than_a_block_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "BLOCK", 7)
    path = tmp_path / "x.tape"
    path.write_bytes(WHOLE)
    with TapeTail(path) as tape:
        assert len(drained(tape)) == len(LINES) - 1


def test_damage_is_told_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.tape"
    path.write_bytes(LINES[0] + LINES[1] + b"[oops\n")
    with TapeTail(path) as tape, pytest.raises(TapeFormatError, match=r"x\.tape:3: "):
        drained(tape)
    path.write_bytes(b"{}\n")
    with TapeTail(path) as tape, pytest.raises(TapeFormatError, match="no tape"):
        drained(tape)
    monkeypatch.setattr(tail, "MAX_LINE", 100)
    path.write_bytes(LINES[0] + b'[1,1,"read","' + b"x" * 200)
    with TapeTail(path) as tape, pytest.raises(TapeFormatError, match="longer than 100 bytes"):
        drained(tape)
    assert reader.MAX_LINE > 100


@pytest.mark.parametrize("name", ["missing.tape", "."])
def test_what_is_no_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        TapeTail(tmp_path / name)
