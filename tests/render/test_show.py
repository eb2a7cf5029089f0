from deltatape.diagnose.rebuild import analyse
from deltatape.render.lines import plain
from deltatape.render.show import call_lines, event_lines, read_lines
from helpers.chat import FINISH, calls, entry, sse
from helpers.exchanges import TEXT, call, pasted, timed


def test_calls_are_shown_with_status_and_repairs() -> None:
    again = calls(entry(0, name="get", arguments="x"))
    shown = plain(call_lines([analyse(pasted(*call(), again, FINISH))]))
    assert shown.splitlines() == [
        "exchange  call  id  name  status             arguments",
        '#1        0     c1  get   extra_data (T009)  {"a":1}x',
    ]


def test_a_call_without_anything_is_shown_as_such() -> None:
    shown = plain(call_lines([analyse(pasted(calls(entry(0, "c1")), FINISH))]))
    assert shown.splitlines()[1].split() == ["#1", "0", "c1", "-", "no_name", "(no", "bytes)"]


def test_events_and_comments_are_shown_in_wire_order() -> None:
    exchange = timed((0.1, b": hi\n\n"), (0.25, sse(TEXT)))
    lines = plain(event_lines(analyse(exchange))).splitlines()
    assert lines[0].split() == ["event", "seconds", "bytes", "type", "data"]
    assert lines[1].split() == [":", "0.100", "0-4", "comment", "hi"]
    assert lines[2].split()[:2] == ["0", "0.250"]
    assert lines[3].endswith("message  [DONE]")


def test_times_that_were_not_recorded_are_not_shown() -> None:
    exchange = pasted(TEXT)
    assert "  -  " in plain(event_lines(analyse(exchange)))
    assert plain(read_lines(exchange)).splitlines()[1].split()[:4] == ["0", "-", "0", "103"]


def test_reads_are_shown_with_their_offsets_and_bytes_that_are_no_text() -> None:
    lines = plain(read_lines(timed((0.1, b"ab\xff"), (0.2, b"cd\n")))).splitlines()
    assert lines[1].split() == ["0", "0.100", "0", "3", "ab\\xff"]
    assert lines[2].split() == ["1", "0.200", "3", "3", "cd\\n"]


def test_nothing_is_said_to_be_nothing() -> None:
    empty = timed(framing=None)
    assert plain(call_lines([analyse(empty)])) == "no calls\n"
    assert plain(event_lines(analyse(empty))) == "no events\n"
    assert plain(read_lines(empty)) == "no reads\n"
