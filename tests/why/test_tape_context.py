from collections.abc import Sequence
from dataclasses import replace

import pytest

from deltatape.model.exchange import EndReason, Exchange, Tap
from deltatape.model.explanation import EventSource, TimelineEntry
from deltatape.model.tape_summary import (
    ALONE,
    ClientChange,
    LogEntry,
    LogStream,
    TapeContext,
    TapeSummary,
)
from deltatape.why.tape_context import (
    MOST,
    MOST_LINES,
    are_linked,
    around,
    printed_around,
    stop_of,
)
from helpers.chat import FINISH
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, call, conversation, pasted, timed
from helpers.watched import CALLS, NS, watched

HEALTHY = (asks(USER), [TEXT, FINISH_TEXT])


def log(at_s: float, line: bytes, stream: LogStream = LogStream.STDOUT) -> LogEntry:
    return LogEntry(t_ns=round(at_s * NS), stream=stream, line=line)


def change(at_s: float, connection: int, *, opened: bool) -> ClientChange:
    return ClientChange(t_ns=round(at_s * NS), connection=connection, opened=opened)


def told(
    tape: Sequence[Exchange],
    beside: TapeContext = ALONE,
    *,
    number: int = 1,
    silent: bool = False,
) -> list[tuple[float | None, str, str]]:
    entries = around(tape[number - 1], tape, beside, silent=silent)
    return [(_seconds(each), each.source.value, each.what) for each in entries]


def _seconds(entry: TimelineEntry) -> float | None:
    return None if entry.t_ns is None else entry.t_ns / NS


def test_the_log_is_shown_from_before_the_request_to_the_next_one() -> None:
    lines = (
        log(8.9, b"too early"),
        log(9.5, b"asking"),
        log(10.6, b"\x1b[31mFiltering out malformed tool call\x1b[0m\r", LogStream.STDERR),
        log(20.1, b"too late"),
    )
    tape = watched(conversation(HEALTHY, CALLS, HEALTHY), 60)
    assert told(tape, TapeContext(logs=lines), number=2) == [
        (9.5, "log", "stdout: asking"),
        (10.6, "log", "stderr: Filtering out malformed tool call"),
    ]


def test_of_a_long_log_the_lines_nearest_to_the_end_of_the_response_are_shown() -> None:
    lines = tuple(log(at / 10, b"%d" % at) for at in range(60))
    found = told(watched(conversation(CALLS), 6), TapeContext(logs=lines))
    shown = [each for each in found if each[1] == "log"]
    assert len(shown) == MOST + 1
    assert shown[0][2] == "stdout: 0"
    assert shown[-1] == (2.0, "log", "... 40 more lines of the log around this exchange")


def test_bytes_of_a_log_that_are_not_text_are_shown_and_long_lines_cut() -> None:
    lines = (log(0.1, b"\xff" + b"x" * 10_000),)
    shown = told(watched(conversation(CALLS), 1), TapeContext(logs=lines))[0][2]
    assert shown.startswith("stdout: \\xffxx")
    assert len(shown) < 600


def test_connections_that_were_open_before_the_response_ended_are_shown_when_they_close() -> None:
    clients = (
        change(0, 1, opened=True),
        change(0.2, 2, opened=True),
        change(3, 1, opened=False),
        change(4, 3, opened=True),
        change(5, 3, opened=False),
        change(900, 2, opened=False),
    )
    found = told(watched(conversation(CALLS), 60), TapeContext(clients=clients))
    assert found[0] == (3.0, "recorder", "client connection 1 is closed")
    assert not [each for each in found if "connection 2" in each[2] or "connection 3" in each[2]]


def test_many_connections_are_counted() -> None:
    clients = tuple(change(0.01 * at, at, opened=False) for at in range(30))
    found = told(watched(conversation(CALLS), 1), TapeContext(clients=clients))
    assert "... 10 more client connections closed around this exchange" in [e[2] for e in found]


def test_watched_silence_is_a_line_and_so_is_what_ended_it() -> None:
    tape = watched(conversation(CALLS), 42.5, stop="child-exit", exit_code=3)
    assert told(tape) == [
        (0.5, "recorder", "watched for 42.0 s: no further request"),
        (42.5, "recorder", "the app exited with 3; the recorder stopped"),
    ]
    assert [each.codes for each in around(tape[0], tape, ALONE, silent=False)] == [("D003",), ()]


def test_other_traffic_ends_the_silence_unless_the_calls_stay_unanswered() -> None:
    tape = watched(conversation(CALLS, HEALTHY), 60)
    assert told(tape) == []
    assert told(tape, silent=True)[0] == (
        0.5,
        "recorder",
        "watched for 59.5 s: no request of this conversation",
    )


def test_a_moment_is_not_a_silence_and_what_goes_on_has_none_yet() -> None:
    assert told(watched(conversation(CALLS), 0.6, stop=None)) == []
    (exchange,) = watched(conversation(CALLS), 60)
    assert told([replace(exchange, end=None)]) == []
    assert told([replace(exchange, watch=None)]) == []


def test_an_import_has_no_surroundings() -> None:
    exchange = pasted(*call(), FINISH)
    assert told([exchange], TapeContext(logs=(log(0, b"x"),))) == []


def app(at_s: float, until_s: float, trace: bytes | None = None) -> Exchange:
    """An exchange with the application's own endpoint."""
    base = timed((0.1, b"data: 1\n\n"))
    assert base.end
    headers = ((b"traceparent", trace),) if trace is not None else ()
    return replace(
        base,
        number=9,
        tap=Tap.APP,
        request=replace(base.request, t_ns=round(at_s * NS), target=(b"/chat",), headers=headers),
        end=replace(base.end, t_ns=round(until_s * NS), reason=EndReason.CLIENT_CLOSED),
    )


def test_the_applications_own_side_is_shown_with_request_and_answer() -> None:
    (exchange,) = conversation(CALLS)
    found = list(around(exchange, [exchange, app(0.1, 8)], ALONE, silent=False))
    assert [(each.exchange, _seconds(each), each.what) for each in found] == [
        (9, 0.1, "app endpoint: POST /chat"),
        (9, 8.0, "app endpoint answered: status 200, 9 bytes, the client closed the connection"),
    ]
    assert {each.source for each in found} == {EventSource.APP}


def test_from_the_applications_side_the_provider_is_the_other() -> None:
    (exchange,) = conversation(CALLS)
    nothing = replace(exchange, response=None, reads=(), end=None)
    found = [each.what for each in around(app(0, 8), [nothing], ALONE, silent=False)]
    assert found == [
        "provider: POST /v1/chat/completions",
        "provider is silent",
    ]


TRACE = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = b"00-1111111111111111111111111111111c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    ("one", "other", "linked"),
    [
        (app(0, 5), app(4, 9), True),
        (app(0, 5), app(6, 9), False),
        (app(6, 9), app(0, 5), False),
        (app(0, 5, TRACE), app(6, 9, TRACE.upper()), True),
        (app(0, 5, TRACE), app(4, 9, OTHER), False),
        (app(0, 5, TRACE), app(4, 9), True),
        (app(0, 5, b"nonsense"), app(4, 9, TRACE), True),
    ],
)
def test_sides_are_linked_by_their_trace_else_by_their_times(
    one: Exchange,
    other: Exchange,
    linked: bool,  # noqa: FBT001 - a table
) -> None:
    assert are_linked(one, other) is linked


def test_why_recording_ended_is_shown_in_words() -> None:
    assert (
        stop_of(TapeSummary(until_ns=1, stop="interrupted")) == "the recorder stopped: interrupted"
    )
    assert stop_of(TapeSummary(until_ns=1, stop="child-exit")) == "the recorder stopped: child-exit"


PYTHON = b"""before
Traceback (most recent call last):
  File "app.py", line 1, in <module>
    ask()
    ^^^^^
core.ReadTimeout: timed out

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "app.py", line 9, in <module>
    raise
http.ReadTimeout: timed out
  what the app prints next

During the night it rained"""
NODE = b"""TypeError: x is undefined
    at read (app.mjs:1:2)
    at app.mjs:3:4
{
  code: 1
}"""


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        (
            PYTHON,
            [
                "before",
                "Traceback (most recent call last): ... 3 lines of the stack",
                "core.ReadTimeout: timed out ... 6 lines of the stack",
                "http.ReadTimeout: timed out",
                "  what the app prints next",
                "",
                "During the night it rained",
            ],
        ),
        (NODE, ["TypeError: x is undefined ... 2 lines of the stack", "{", "  code: 1", "}"]),
        (b"Traceback (most recent call last):", ["Traceback (most recent call last):"]),
    ],
)
def test_of_a_stack_trace_the_log_tells_what_was_thrown(printed: bytes, shown: list[str]) -> None:
    lines = tuple(log(0.1, line) for line in printed.split(b"\n"))
    found = told(watched(conversation(CALLS), 1), TapeContext(logs=lines))
    assert [each[2] for each in found if each[1] == "log"] == [f"stdout: {each}" for each in shown]


def test_what_the_app_printed_around_an_exchange_is_all_of_the_log_there() -> None:
    lines = (log(8.9, b"too early"), *[log(9.5, b"asking")] * 30, log(20.1, b"too late"))
    tape = watched(conversation(HEALTHY, CALLS, HEALTHY), 60)
    assert [each.line for each in printed_around(tape[1], tape, lines)] == [b"asking"] * 30
    assert printed_around(pasted(TEXT), (), lines) == []
    many = [log(9.5 + at / 1e6, b"%d" % at) for at in range(MOST_LINES + 5)]
    assert printed_around(tape[1], tape, many) == many[5:]
