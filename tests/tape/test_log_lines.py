import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.tape.literals import Literals
from deltatape.tape.log_lines import LONGEST_LINE, Line, LogLines

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
