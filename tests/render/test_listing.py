from deltatape.render.lines import plain
from deltatape.render.listing import TapeRow, tape_lines


def test_a_tape_is_a_line_with_size_exchanges_and_age() -> None:
    rows = [
        TapeRow(path="a.tape", bytes=2048, age_ns=90_000_000_000, exchanges=2),
        TapeRow(path="longer.tape", bytes=10, age_ns=-5, exchanges=None),
    ]
    assert plain(tape_lines(rows)) == (
        "a.tape       2.0 kB  2 exchanges  90.0 s ago\n"
        "longer.tape    10 B               0.0 ms ago\n"
    )


def test_no_tapes_are_said_with_what_to_do() -> None:
    assert "deltatape record" in plain(tape_lines([]))
