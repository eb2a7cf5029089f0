"""Our lines and the output of a command on one terminal."""

import threading

import pytest

from deltatape.child.screen import Screen

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


def needs_line_break(screen: Screen) -> bool:
    with screen.held_by_us() as needed:
        return needed


@pytest.mark.parametrize(
    ("pieces", "is_mid_line"),
    [
        ([b"x"], True),
        ([b"x\n"], False),
        ([b"x", b"\n"], False),
        ([b"x\n\x1b[0m"], False),
        ([b"x\x1b[0m"], True),
        ([b"x", b"\x1b[?25h"], True),
        ([b"x\n", b"\x1b[?25h"], False),
        ([b"\r"], True),
    ],
)
def test_a_line_break_is_needed_after_an_unfinished_line(
    pieces: list[bytes], *, is_mid_line: bool
) -> None:
    screen = Screen()
    for piece in pieces:
        screen.wrote(piece, to_terminal=True)
    assert needs_line_break(screen) == is_mid_line
    assert not needs_line_break(screen)


def test_elsewhere_than_on_a_terminal_every_byte_counts() -> None:
    screen = Screen()
    screen.wrote(b"x\n\x1b[0m", to_terminal=False)
    assert needs_line_break(screen)
    screen.wrote(ENTER, to_terminal=False)
    assert not screen.is_taken()


@pytest.mark.parametrize("enter", [ENTER, b"\x1b[?47h", b"\x1b[?1;1047;25h"])
def test_the_alternate_screen_is_taken_until_it_is_left(enter: bytes) -> None:
    for at in range(len(enter) + 1):
        screen = Screen()
        for piece in (b"a", enter[:at], enter[at:], b"b" * 100):
            screen.wrote(piece, to_terminal=True)
        assert screen.is_taken()
        for piece in (LEAVE[:at], LEAVE[at:]):
            screen.wrote(piece, to_terminal=True)
        assert not screen.is_taken()
        screen.wrote(b"b" * 100 + ENTER + LEAVE + ENTER, to_terminal=True)
        assert screen.is_taken()


def test_the_command_does_not_wait_for_ever_for_a_line_of_ours() -> None:
    screen = Screen()
    held: list[bool] = []

    def write() -> None:
        with screen.held_by_command() as is_held:
            held.append(is_held)

    with screen.held_by_us():
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
    write()
    assert held == [False, True]
