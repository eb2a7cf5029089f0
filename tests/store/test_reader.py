import errno
import gc
import hashlib
import os
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape import store
from deltatape.errors import TapeFormatError, UsageError
from deltatape.model.exchange import EndReason
from deltatape.model.tape_summary import ClientChange, LogEntry, LogStream, TapeSummary
from deltatape.store import reader
from deltatape.store.reader import open_tape
from deltatape.tape import encode
from deltatape.tape.payload import (
    BodyRead,
    EndRecord,
    Idle,
    LogLine,
    RequestEnd,
    RequestHeadRecord,
    Stop,
)
from deltatape.tape.record import Payload, Unknown
from helpers.tapes import HEADER, whole_tape, write_tape

HEAD = encode.header_line(HEADER)
WHOLE = whole_tape()
LINES = WHOLE.splitlines(keepends=True)


def line(exchange: int, payload: Payload) -> bytes:
    return encode.payload_record(0, exchange, payload)


def exchange_lines(number: int) -> list[bytes]:
    """An exchange that the client left; its request looks like the start of another one."""
    head = RequestHeadRecord(
        id=f"01JD3ZQ8T00000000000000{number:03}",
        method="POST",
        target=(b'/[0,99,"request",',),
        upstream="https://api.example.com",
        http="1.1",
        headers=(),
    )
    body = b"x" * number
    end = EndRecord(
        reason=EndReason.CLIENT_CLOSED, bytes=number, sha256=hashlib.sha256(body).hexdigest()
    )
    return [line(number, each) for each in (head, BodyRead(data=body), end)]


def test_a_whole_tape_gives_its_exchanges(tmp_path: Path) -> None:
    tape = open_tape(write_tape(tmp_path, WHOLE))
    assert tape.header == HEADER
    assert (tape.stopped, tape.stopped_ns, tape.torn, len(tape)) == (True, 160, 0, 2)
    assert [exchange.number for exchange in tape] == [1, 2]
    assert [exchange.stopped_ns for exchange in tape] == [160, 160]
    assert [tape[1], tape[2]] == list(tape.exchanges())
    assert tape[1].tape == tape.path


@pytest.mark.parametrize("end", [160, None])
def test_a_stop_in_the_middle_changes_nothing_however_an_exchange_is_read(
    tmp_path: Path, end: int | None
) -> None:
    early = encode.payload_record(5, 0, Stop(reason="test", exit_code=None))
    lines = [HEAD, early, *LINES[1:-2], early, *LINES[-2 : None if end else -1]]
    tape = open_tape(write_tape(tmp_path, b"".join(lines)))
    assert [exchange.stopped_ns for exchange in tape] == [end, end]
    assert [tape[1], tape[2]] == list(tape)


def test_records_have_the_numbers_of_their_lines(tmp_path: Path) -> None:
    tape = open_tape(Path(write_tape(tmp_path, WHOLE)))
    numbers = [number for number, _ in tape.records()]
    assert numbers == list(range(2, len(LINES) + 1))


def test_a_tape_without_records_is_a_tape(tmp_path: Path) -> None:
    tape = open_tape(write_tape(tmp_path, HEAD))
    assert (len(tape), list(tape), tape.stopped, tape.torn) == (0, [], False, 0)
    with pytest.raises(UsageError, match=r"x.tape#1: no such exchange on the tape; it has none"):
        tape[1]


def test_what_the_program_printed_is_read_with_its_times(tmp_path: Path) -> None:
    printed = encode.payload_record(170, 0, LogLine(stream=LogStream.STDERR, line=b"\x1b[31mno"))
    other = line(1, LogLine(stream=LogStream.STDOUT, line=b"of an exchange: no log"))
    tape = open_tape(write_tape(tmp_path, WHOLE + other + printed))
    entry = LogEntry(t_ns=170, stream=LogStream.STDERR, line=b"\x1b[31mno")
    assert tape.logs == (entry,)
    assert open_tape(write_tape(tmp_path, WHOLE, "y.tape")).logs == ()


@pytest.mark.slow
def test_a_tape_torn_at_any_byte_is_readable(tmp_path: Path) -> None:
    path = tmp_path / "x.tape"
    path.write_bytes(WHOLE)
    tape = open_tape(path)
    bodies = {exchange.number: exchange.body for exchange in tape}
    for size in range(len(WHOLE), len(HEAD), -1):
        os.truncate(path, size)
        tape = open_tape(path)
        rest = WHOLE[:size].rpartition(b"\n")[2]
        whole = WHOLE[:size].count(b"\n") - 1
        complete = WHOLE[size : size + 1] == b"\n"
        assert tape.torn == (0 if complete else len(rest))
        assert sum(1 for _ in tape.records()) == whole + (1 if complete else 0)
        assert tape.stopped is (size >= len(WHOLE) - 1)
        exchanges = [*tape]
        for exchange in exchanges:
            assert bodies[exchange.number].startswith(exchange.body)
        assert tape.numbers() == {exchange.number for exchange in exchanges}


@pytest.mark.parametrize("size", range(1, len(HEAD) - 1))
def test_a_tape_torn_in_its_header_is_no_tape(tmp_path: Path, size: int) -> None:
    with pytest.raises(TapeFormatError, match=":1: no tape, or one cut off in its header: "):
        open_tape(write_tape(tmp_path, HEAD[:size]))


def test_zeros_at_the_end_after_a_power_loss_are_a_torn_line(tmp_path: Path) -> None:
    tape = open_tape(write_tape(tmp_path, WHOLE + b"\0" * 5000))
    assert (tape.torn, tape.stopped, len(tape)) == (5000, True, 2)


@pytest.mark.parametrize("at", [2, 5, len(LINES)])
def test_damage_before_the_end_names_file_and_line(tmp_path: Path, at: int) -> None:
    lines = [*LINES[: at - 1], b'[0,1,"re\n', *LINES[at:]]
    tape = open_tape(write_tape(tmp_path, b"".join(lines)))
    assert tape.torn == 0
    with pytest.raises(TapeFormatError) as caught:
        list(tape)
    assert str(caught.value).startswith(f"{tape.path}:{at}: no JSON at character 8, ")
    assert caught.value.line == at
    with pytest.raises(TapeFormatError):
        len(tape)


def test_an_exchange_is_read_although_another_one_is_damaged(tmp_path: Path) -> None:
    content = WHOLE.replace(b'[75,2,"read","', b'[75,2,"read",7,"')
    tape = open_tape(write_tape(tmp_path, content))
    assert tape[1].body == b"data: 1\n\ndata: 2\n\ndata: 3\n\n\xff"
    with pytest.raises(TapeFormatError):
        tape[2]


def test_other_spellings_of_a_record_are_read(tmp_path: Path) -> None:
    content = HEAD + b' [1, 2, "read", "a"]\r\n[2,\t2,"read","b"]\n'
    tape = open_tape(write_tape(tmp_path, content))
    assert (len(tape), tape[2].body) == (1, b"ab")
    other = open_tape(write_tape(tmp_path, content + b'[2, 1,"read","c"]\n', "y.tape"))
    assert (len(other), other[2].body, other[1].body) == (2, b"ab", b"c")
    with pytest.raises(UsageError, match="no such exchange on the tape; it has 2 to 2"):
        tape[1]


def test_what_was_parsed_of_an_exchange_is_none_without_its_records(tmp_path: Path) -> None:
    value = b'{"tool":"t","dialect":"d","events":1,"calls":0,"finish":"","form":1,"sha256":""}'
    content = HEAD + b'[1,1,"read","a"]\n[2,2,"parsed",%b]\n[2, 3, "parsed", %b]\n' % (value, value)
    content += b'[3,4,"stop",{"reason":"x"}]\n[3, 5, "stop", {"reason":"x"}]\n'
    tape = open_tape(write_tape(tmp_path, content))
    assert [exchange.number for exchange in tape] == [1]
    assert len(tape) == 1
    with pytest.raises(UsageError, match="no such exchange on the tape; it has 1 to 1"):
        tape[2]


def test_codes_from_the_future_are_no_exchanges(tmp_path: Path) -> None:
    tape = open_tape(write_tape(tmp_path, HEAD + line(7, Unknown(code="hologram", value=1))))
    assert (len(tape), list(tape)) == (0, [])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "x.tape: empty; a tape starts with a header line"),
        (b"\n", "x.tape:1: no tape: a tape starts with"),
        (b"data: {}\n\n", "x.tape:1: no tape: a tape starts with"),
        (b'{"a":1}\n', "x.tape:1: no tape: a tape starts with"),
        (b'{"deltatape":9}\n', "x.tape:1: no tape: format version 9; this deltatape reads 1"),
        (b"\x00" * 100_000, "x.tape:1: no tape"),
        (b"[" * 100_000, "x.tape:1: no tape"),
    ],
)
def test_what_is_no_tape_is_refused_in_one_line(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    with pytest.raises(TapeFormatError) as caught:
        open_tape(write_tape(tmp_path, content))
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_what_cannot_be_opened_is_refused_in_one_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, problem in (
        ("missing", "missing: No such file or directory; name a tape"),
        (".", ": is a folder; name a tape"),
        ("pipe", "pipe: is no regular file; name a tape"),
        ("x\0", "embedded null"),
        ("x" * 300, "File name too long; name a tape"),
    ):
        with pytest.raises(UsageError) as caught:
            open_tape(os.path.join(tmp_path, name))  # noqa: PTH118 - Path would normalise
        assert problem in str(caught.value)


def test_a_tape_that_may_not_be_read_is_one_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_tape(tmp_path, HEAD)

    def refused(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", refused)  # no file is closed to root
    with pytest.raises(UsageError) as caught:
        open_tape(path)
    assert str(caught.value) == f"{path}: Permission denied"


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_LINE", 1000)
    content = HEAD + b'[0,1,"read","' + b"x" * 5000
    tape = open_tape(write_tape(tmp_path, content))
    with pytest.raises(TapeFormatError, match=r"x.tape:2: longer than 1000 bytes"):
        list(tape)


def test_a_line_that_is_too_long_is_refused_at_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MAX_LINE", 1000)
    ended = line(1, RequestEnd()) + LINES[-4]
    for number, before in ((4, ended), (2, b"")):
        content = HEAD + before + line(2, BodyRead(data=b"x" * 1000)) + line(3, RequestEnd())
        tape = iter(open_tape(write_tape(tmp_path, content)))
        assert [next(tape).number for _ in range(1 if before else 0)] == [1][: bool(before)]
        with pytest.raises(TapeFormatError, match=rf"x.tape:{number}: longer than 1000 bytes"):
            next(tape)


@pytest.mark.parametrize("block", [1, 2, 7, 64, 1000])
def test_it_does_not_matter_where_the_blocks_of_a_file_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    content = WHOLE + line(9, BodyRead(data=b"x" * 5000)) + b"torn"
    tape = open_tape(write_tape(tmp_path, content))
    records, exchanges, count = list(tape.records()), list(tape), len(tape)
    monkeypatch.setattr(reader, "_BLOCK", block)
    assert [number for number, _ in records] == list(range(2, len(LINES) + 2))
    assert (list(tape.records()), list(tape), len(tape)) == (records, exchanges, count)
    assert tape[9].body == b"x" * 5000


def test_of_a_large_tape_an_exchange_is_read_without_what_is_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = HEAD + b"".join(line for number in range(1, 100) for line in exchange_lines(number))
    content = content.replace(b'[0,2,"read",', b'{"damaged":', 1)
    tape = open_tape(write_tape(tmp_path, content))
    with pytest.raises(TapeFormatError):
        tape[90]
    monkeypatch.setattr(reader, "_LARGE", 0)
    monkeypatch.setattr(reader, "_BLOCK", 300)
    found = tape.find(90)
    assert found.exchange.number == 90
    assert [place.line for place in found.places[:1]] == [2]
    assert found.places[found.start].line <= 3 * 90 - 1 <= found.places[found.start + 1].line
    with pytest.raises(TapeFormatError):
        tape[2]


@given(numbers=st.lists(st.integers(1, 40), unique=True, min_size=1), data=st.data())
@settings(deadline=None)
def test_of_a_large_tape_any_exchange_is_found_in_whatever_order_they_are(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], data: st.DataObject
) -> None:
    lines = [line for number in numbers for line in exchange_lines(number)]
    for _ in range(data.draw(st.integers(0, 3))):  # some exchanges run at the same time
        at = lines.index(exchange_lines(data.draw(st.sampled_from(numbers)))[-1])
        lines.append(lines.pop(at))
    content = HEAD + b"".join(lines)
    tape = open_tape(write_tape(tmp_path_factory.mktemp("tape"), content))
    expected = {exchange.number: exchange for exchange in tape}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_LARGE", 0)
        patch.setattr(reader, "_BLOCK", data.draw(st.sampled_from([80, 300, 2000])))
        for number in numbers:
            assert tape[number] == expected[number]
        with pytest.raises(UsageError, match="no such exchange"):
            tape[41]


@pytest.mark.parametrize(
    "payload", [b"9" * 10_000, b"[" * 100_000 + b"]" * 100_000, b'"\\ud800"', b"1e999999"]
)
def test_hostile_json_is_a_damaged_line(tmp_path: Path, payload: bytes) -> None:
    content = HEAD + b'[0,1,"read",' + payload + b"]\n" + LINES[-1]
    with pytest.raises(TapeFormatError, match=r"x.tape:2: "):
        list(open_tape(write_tape(tmp_path, content)))


def test_the_end_of_a_tape_is_found_behind_a_long_line(tmp_path: Path) -> None:
    long = line(1, BodyRead(data=b"x" * 300_000))
    tape = open_tape(write_tape(tmp_path, HEAD + long + LINES[-1] + b"torn"))
    assert (tape.stopped_ns, tape.torn) == (160, 4)
    tape = open_tape(write_tape(tmp_path, HEAD + LINES[-1] + long))
    assert (tape.stopped, len(tape)) == (False, 1)


def test_the_latest_exchanges_are_read_from_the_end(tmp_path: Path) -> None:
    once = b"".join(LINES[1:-1])
    tape = open_tape(write_tape(tmp_path, HEAD + once + once.replace(b",1,", b",3,") + LINES[-1]))
    third = tape[3]
    assert [each.number for each in tape.latest(1 << 20)] == [1, 3]
    size = Path(tape.path).stat().st_size
    assert [*tape.latest(size)] == [
        replace(each, stopped_ns=None, watch=None) for each in (tape[1], third)
    ]
    (last,) = tape.latest(size - WHOLE.index(b',1,"request",'))  # without the head of the first
    assert last == replace(third, stopped_ns=None, watch=None)
    assert [*tape.latest(10)] == []


def test_reading_takes_no_more_memory_for_a_longer_tape(tmp_path: Path) -> None:
    ended = b"".join(LINES[3:6]) + line(1, BodyRead(data=b"x" * 5000)) + LINES[-4]
    assert b'"end"' in ended
    exchanges = (ended.replace(b",1,", b",%d," % number) for number in range(1, 1000))
    tape = open_tape(write_tape(tmp_path, HEAD + b"".join(exchanges)))
    gc.collect()
    tracemalloc.start()
    assert sum(1 for exchange in tape if exchange.end) == 999
    assert tape[999].number == 999
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 600_000


def test_a_tape_that_ended_was_watched_until_then_and_says_why(tmp_path: Path) -> None:
    tape = open_tape(write_tape(tmp_path, whole_tape()))
    assert tape.watch == TapeSummary(until_ns=160, stop="child-exit", exit_code=0)
    assert {exchange.watch for exchange in tape} == {tape.watch}
    assert tape[2].watch == tape.watch


def test_any_record_shows_that_it_was_watched(tmp_path: Path) -> None:
    stop = encode.payload_record(160, 0, Stop(reason="child-exit", exit_code=0))
    crashed = whole_tape().removesuffix(stop)
    tape = open_tape(write_tape(tmp_path, crashed))
    assert (tape.watch.stop, tape.watch.recording) == (None, False)
    last = encode.payload_record(5_000, 0, Idle())
    longer = open_tape(write_tape(tmp_path, crashed + last, "y.tape"))
    assert longer.watch.until_ns == 5_000
    torn = open_tape(write_tape(tmp_path, crashed + last + b"[9999,0,", "z.tape"))
    assert torn.watch.until_ns == 5_000


@pytest.mark.parametrize("rest", [b"", b"["])
def test_a_tape_without_records_was_not_watched(tmp_path: Path, rest: bytes) -> None:
    tape = open_tape(write_tape(tmp_path, encode.header_line(HEADER) + rest))
    assert tape.watch == TapeSummary(until_ns=0)
    assert tape.clients == ()


def test_clients_are_told_in_order(tmp_path: Path) -> None:
    assert open_tape(write_tape(tmp_path, whole_tape())).clients == (
        ClientChange(t_ns=0, connection=1, opened=True),
        ClientChange(t_ns=150, connection=1, opened=False),
    )


def test_what_others_need_of_the_store_is_at_hand(tmp_path: Path) -> None:
    name = write_tape(tmp_path, whole_tape())
    assert len(store.open_tape(store.locate("", (tmp_path,)).path)) == 2
    assert [str(found.path) for found in store.list_tapes((tmp_path,))] == [name]
