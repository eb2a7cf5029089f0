"""What `watch` says of exchanges that have ended, and of those in progress."""

from dataclasses import replace

from deltatape.model.exchange import Exchange
from deltatape.render.lines import Line, plain
from deltatape.render.time_strip import timeline
from deltatape.render.watching import RunningExchange, ended_line, running_lines
from deltatape.why.exchange_index import index_rows
from helpers import responses_socket as ws
from helpers.chat import calls, entry
from helpers.exchanges import asks, timed
from helpers.incidents import STALL
from helpers.incidents import exchange as incident
from helpers.websocket import socket

S = 1_000_000_000
OPENED = calls(entry(0, "c1", name="get", arguments="{"))


def text(line: Line) -> str:
    return plain([line]).rstrip("\n")


def running(exchange: Exchange, now_s: float, tape: str = "") -> RunningExchange:
    (row,) = index_rows([exchange])
    return RunningExchange(tape, row, exchange, exchange.request.t_ns + round(now_s * S))


def open_exchange(number: int = 1, at: float = 0.5) -> Exchange:
    exchange = timed((at, OPENED), request=asks(model="gpt-4o"))
    return replace(exchange, number=number, end=None)


def test_an_exchange_that_has_ended_is_a_line() -> None:
    exchange = incident(STALL, 1)
    (row,) = index_rows([exchange])
    shown = text(ended_line(row, exchange, width=200))
    assert "#1     [#                  #]  12.5 s   warning D001 stall" in shown
    assert shown.startswith("23:15:44  #1")
    assert text(ended_line(row, exchange, "morning", 200)).startswith("23:15:44  morning  #1")
    later = text(ended_line(row, None, width=200))
    assert "#1     later requests show:    12.5 s" in later
    assert len(text(ended_line(row, exchange, width=60))) == 60


def test_what_has_no_end_is_drawn_as_far_as_it_came() -> None:
    exchange = open_exchange()
    (row,) = index_rows([exchange])
    assert "[...................|]" in text(ended_line(row, exchange, width=200))


def test_those_in_progress_tell_how_long_they_have_been_silent() -> None:
    first, second = open_exchange(1), open_exchange(2, 4.0)
    silent = replace(open_exchange(3), reads=())
    lines = running_lines(
        [running(second, 5.0), running(first, 5.0), running(silent, 20.0, "y")], 10 * S, 8, 120
    )
    assert text(lines[0]).strip().startswith("y  #3")
    assert text(lines[0]).endswith("nothing has come, silent for 20.0 s")
    assert text(lines[1]).endswith("gpt-4o              5.0 s    1 read, silent for 4.5 s")
    assert text(lines[2]).endswith("1 read")
    assert [each[-1].style for each in lines] == ["bold red", "yellow", "yellow"]


def test_too_many_in_progress_are_counted() -> None:
    several = [running(open_exchange(number), 1.0) for number in range(1, 6)]
    lines = running_lines(several, 10 * S, 2)
    assert len(lines) == 3
    assert text(lines[-1]) == "and 3 more in progress"


def test_the_frames_of_a_websocket_are_what_came() -> None:
    exchange = socket(ws.question(), *ws.call(1, ends=False))
    assert "reads" in text(running_lines([running(exchange, 9.0)], 10 * S, 1, 200)[0])


def test_a_timeline_waits_with_dots() -> None:
    assert timeline([], 0, 10, 12) == "[..........]"
    assert timeline([2, 3, 3, 9], 0, 10, 12) == "[..|#     |]"
    assert timeline([0], 0, 0, 6) == "[|   ]"
