import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.model.tape_summary import LogStream
from deltatape.tape.mask import Masker
from deltatape.tape.payload import ClientState
from deltatape.tape.seen_credentials import Literals
from deltatape.tape.tape_tap import LONGEST_LINE, Line, LogLines, TapeTap
from helpers.tapes import Lines


def test_the_tape_itself_is_exchange_zero() -> None:
    lines = Lines()
    tap = TapeTap(lines.put)
    tap.client(1, connection=3, state=ClientState.OPENED)
    tap.note(2, "hello")
    tap.idle(3)
    tap.stop(4, "interrupted", None)
    assert lines.text == (
        '[1,0,"client",{"connection":3,"state":"opened"}]\n'
        '[2,0,"note",{"text":"hello"}]\n'
        '[3,0,"idle",{}]\n'
        '[4,0,"stop",{"reason":"interrupted"}]\n'
    )


def test_a_line_of_output_has_the_time_at_which_it_ended() -> None:
    lines = Lines()
    tap = TapeTap(lines.put)
    tap.log(1, LogStream.STDOUT, b"one")
    tap.log(2, LogStream.STDERR, b"\x1b[31merror\xff\nunfi")
    tap.log(3, LogStream.STDOUT, b" line\n")
    tap.log(4, LogStream.STDERR, b"nished")
    tap.log(4, LogStream.BOTH, b"a third\n")
    tap.log_end(5)
    tap.log_end(6)
    assert lines.text == (
        '[2,0,"log",{"stream":"stderr","line":{"b64":"G1szMW1lcnJvcv8="}}]\n'
        '[3,0,"log",{"stream":"stdout","line":"one line"}]\n'
        '[4,0,"log",{"stream":"output","line":"a third"}]\n'
        '[5,0,"log",{"stream":"stderr","line":"unfinished"}]\n'
    )


def test_credentials_are_masked_in_output_and_remarks() -> None:
    lines, masker = Lines(), Masker(b"k")
    masker.learn(b"sk-fake-000000")
    tap = TapeTap(lines.put, masker)
    tap.note(1, "sk-fake-000000?")
    tap.log(2, LogStream.STDOUT, b"x sk-fake-000000\n")
    records = [json.loads(line) for line in lines.all]
    digest = masker.value(b"sk-fake-000000").hash
    assert records == [
        [1, 0, "note", {"text": "**************?"}],
        [2, 0, "masked", {"spans": [[2, 16, digest]]}],
        [2, 0, "log", {"stream": "stdout", "line": "x **************"}],
    ]


def test_a_line_that_did_not_end_is_on_the_tape_before_the_stop() -> None:
    lines = Lines()
    tap = TapeTap(lines.put)
    tap.log(1, LogStream.STDERR, b"unfinished")
    tap.stop(2, "rotated", None)
    assert lines.text == (
        '[2,0,"log",{"stream":"stderr","line":"unfinished"}]\n[2,0,"stop",{"reason":"rotated"}]\n'
    )


KEY = b"sk-fake-000000"


def lines(*data: bytes) -> list[Line]:
    literals = Literals(lambda _: "00000000")
    literals.learn(KEY)
    literals.learn(b"a" * 8)
    found = LogLines(literals)
    return [line for piece in data for line in found.add(piece)] + list(found.end())


def shown(*data: bytes) -> list[bytes]:
    return [line for line, _ in lines(*data)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ((), []),
        ((b"",), []),
        ((b"\n\n",), [b"", b""]),
        ((b"one\ntw", b"o\n"), [b"one", b"two"]),
        ((b"one\r\n\x1b[31mtwo\x1b[0m",), [b"one\r", b"\x1b[31mtwo\x1b[0m"]),
        ((b"key sk-fa", b"ke-000000!\n"), [b"key **************!"]),
        ((b"key sk-fake-0\nsk-f\n",), [b"key *********", b"sk-f"]),
    ],
)
def test_output_in_any_pieces_is_lines(data: tuple[bytes, ...], expected: list[bytes]) -> None:
    assert shown(*data) == expected


def test_what_was_masked_is_told() -> None:
    assert lines(b"a " + KEY + b"\nb\n") == [
        (b"a " + b"*" * 14, ((2, 16, "00000000"),)),
        (b"b", ()),
    ]


def test_a_long_line_is_several_records() -> None:
    data = b"x" * (2 * LONGEST_LINE + 5) + b"\nshort\n"
    assert [len(line) for line in shown(data)] == [LONGEST_LINE, LONGEST_LINE, 5, 5]
    assert [len(line) for line in shown(b"x" * LONGEST_LINE + b"\n")] == [LONGEST_LINE]


@pytest.mark.parametrize("ahead", range(len(KEY) + 2))
def test_a_long_line_is_not_cut_within_a_credential(ahead: int) -> None:
    before = b"x" * (LONGEST_LINE - ahead)
    first, *rest = lines(before, KEY + b"yyyy", b"y" * 10 + b"\n")
    masked = b"".join((first[0], *(line for line, _ in rest)))
    assert masked == before + b"*" * len(KEY) + b"y" * 14
    assert len(first[0]) <= LONGEST_LINE


def test_a_line_of_nothing_but_credentials_is_cut_and_masked_all_the_same() -> None:
    found = shown(b"a" * (LONGEST_LINE + 20) + b"\n")
    assert b"".join(found) == b"*" * (LONGEST_LINE + 20)


@given(st.lists(st.sampled_from([b"a\n", b"\n", b"sk-fake-", b"000000", b"b", b""]), max_size=20))
@settings(max_examples=60)
def test_the_cutting_of_the_output_changes_nothing(pieces: list[bytes]) -> None:
    assert lines(*pieces) == lines(b"".join(pieces))
