from collections.abc import Sequence
from dataclasses import replace

import pytest

from deltatape.diagnose.check_tape import check_exchanges
from deltatape.model.exchange import EndReason, Exchange, RequestSent, Tap
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.rule_settings import DEFAULTS
from deltatape.model.tape_summary import LogEntry, LogStream, TapeContext, TapeSummary
from deltatape.why.explain import explain
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, conversation, timed
from helpers.taped import MS, idle_times

OTHER: dict[str, object] = {"role": "user", "content": "Another matter."}
OPENAI = "openai.APITimeoutError: Request timed out."
TIMEOUT = ((b"x-stainless-read-timeout", b"5.0"),)


def gave_up(
    wait_s: float = 5.0, *, request: dict[str, object] | None = None, exit_code: int | None = None
) -> Exchange:
    """An answer whose client leaves after so much silence."""
    exchange = timed((0.1, TEXT), end_s=0.1 + wait_s, request=request or asks(USER))
    assert exchange.end
    code = TapeSummary(until_ns=60_000 * MS, stop="child-exit", exit_code=exit_code)
    return replace(
        exchange,
        sent=RequestSent(t_ns=1, connect_ns=0, tls_ns=0, reused=True),
        end=replace(exchange.end, reason=EndReason.CLIENT_CLOSED),
        watch=code
        if exit_code is not None
        else TapeSummary(until_ns=60_000 * MS, stop="interrupted"),
    )


def with_head(exchange: Exchange) -> Exchange:
    return replace(exchange, request=replace(exchange.request, headers=TIMEOUT))


def printed(at_ms: int, line: str) -> LogEntry:
    return LogEntry(t_ns=at_ms * MS, stream=LogStream.STDERR, line=line.encode())


def later(request: dict[str, object]) -> Exchange:
    """A second request, ten seconds after the first, and its whole answer."""
    return conversation((asks(USER), []), (request, [TEXT, FINISH_TEXT]))[1]


def cut(exchanges: Sequence[Exchange], *logs: LogEntry) -> Finding:
    reported = check_exchanges("x", exchanges, DEFAULTS, logs=logs).reported
    (found,) = (each.finding for each in reported if each.finding.code == "W006")
    return found


def test_a_timeout_that_the_app_prints_is_likely_the_apps_and_named() -> None:
    finding = cut([gave_up()], printed(5_200, OPENAI))
    assert finding.message.startswith("the client disconnected after 5.0 s without data")
    assert finding.message.endswith(f"and printed: {OPENAI}")
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.LIKELY)
    assert finding.severity is Severity.ERROR
    assert "raise its read timeout, and" in finding.hint


def test_why_tells_the_same() -> None:
    explanation = explain([gave_up()], context=TapeContext(logs=(printed(5_200, OPENAI),)))
    assert (explanation.verdict.code, explanation.verdict.blame) == ("W006", Blame.APP)
    assert OPENAI in explanation.verdict.summary


def test_the_last_line_of_a_traceback_is_what_it_prints() -> None:
    lines = (
        "httpcore.ReadTimeout",
        "    raise APITimeoutError(request=request)",
        OPENAI,
        "timed out",
    )
    finding = cut([gave_up()], *(printed(5_200 + at, line) for at, line in enumerate(lines)))
    assert finding.message.endswith(f"printed: {OPENAI}")
    red = cut([gave_up()], printed(5_200, "\x1b[31mthe request timed out\x1b[0m"))
    assert red.message.endswith("printed: the request timed out")


@pytest.mark.parametrize(
    "line", ["AbortError: This operation was aborted", "Error: read ECONNRESET"]
)
def test_what_a_stop_button_prints_too_is_reported_and_proves_nothing(line: str) -> None:
    finding = cut([gave_up()], printed(5_200, line))
    assert finding.message.endswith(f"printed: {line}")
    assert finding.blame is None


def test_lines_from_another_time_or_about_something_else_are_ignored() -> None:
    for entry in (printed(1_000, OPENAI), printed(20_000, OPENAI), printed(5_200, "fine")):
        finding = cut([gave_up()], entry)
        assert "printed" not in finding.message
        assert finding.blame is None


def test_without_a_log_the_timeout_that_the_sdk_tells_speaks_for_itself() -> None:
    finding = cut([with_head(gave_up())])
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.LIKELY)
    assert finding.severity is Severity.WARNING
    ended_well = cut([with_head(gave_up(exit_code=0))])
    assert ended_well.blame is None


@pytest.mark.parametrize(
    "request_after",
    [
        asks(USER),  # asked again
        asks(USER, OTHER),  # gone on
        {"model": "m"},  # not to be read
    ],
)
def test_a_client_that_asks_again_copes(request_after: dict[str, object]) -> None:
    finding = cut([gave_up(), later(request_after)], printed(5_200, OPENAI))
    assert finding.message.endswith(OPENAI)
    assert (finding.blame, finding.severity) == (None, Severity.INFO)


def test_a_client_that_asked_two_leaves_the_slower_one() -> None:
    first = replace(timed((0.1, TEXT), (0.2, FINISH_TEXT), request=asks(USER)), number=2)
    assert cut([with_head(gave_up()), first]).blame is None


def test_other_conversations_and_what_was_over_before_are_no_answer_to_it() -> None:
    assert cut([gave_up(), later(asks(OTHER))], printed(5_200, OPENAI)).blame is Blame.APP
    before = timed((0.1, TEXT), (0.2, FINISH_TEXT), request=asks(USER))
    after = replace(gave_up(), number=2)
    assert after.end
    moved = replace(
        after,
        request=replace(after.request, t_ns=1_000 * MS),
        sent=None,
        reads=tuple(read._replace(t_ns=1_100 * MS) for read in after.reads),
        end=replace(after.end, t_ns=6_100 * MS),
    )
    page = replace(before, number=3, tap=Tap.APP)
    assert cut([before, moved, page], printed(6_200, OPENAI)).blame is Blame.APP


def test_a_page_that_leaves_is_not_the_app() -> None:
    page = replace(gave_up(), tap=Tap.APP)
    assert cut([page], printed(5_200, OPENAI)).blame is None


def test_a_long_silence_is_the_upstreams_and_says_what_the_app_printed() -> None:
    reported = check_exchanges(
        "x", [gave_up(31.0)], DEFAULTS, logs=[printed(31_200, OPENAI)]
    ).reported
    stall = next(each.finding for each in reported if each.finding.code == "D001")
    assert stall.message.endswith(f"then the client disconnected, and printed: {OPENAI}")
    assert stall.blame is Blame.UPSTREAM
    left = next(each.finding for each in reported if each.finding.code == "W006")
    assert "(the upstream stalled)" in left.message
    assert left.blame is None


def test_an_exchange_that_goes_on_has_nothing_printed_about_its_end() -> None:
    stalled = replace(
        timed((0.1, TEXT), request=asks(USER)),
        end=None,
        open=True,
        watch=TapeSummary(until_ns=40_000 * MS, recording=True),
        idle_ns=idle_times(100, 40_000),
    )
    reported = check_exchanges("x", [stalled], DEFAULTS, logs=[printed(31_000, OPENAI)]).reported
    assert "printed" not in reported[0].finding.message


CRASH = "json.decoder.JSONDecodeError: Unterminated string starting at: line 1 column 2 (char 1)"


@pytest.mark.parametrize("wait_s", [0.1, 5.0])
def test_an_exception_by_which_the_app_ended_is_why_it_left(wait_s: float) -> None:
    line = printed(round(wait_s * 1000) + 150, CRASH)
    finding = cut([gave_up(wait_s, exit_code=1)], line)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.LIKELY)
    assert finding.severity is Severity.ERROR
    assert finding.message.endswith(f"at the same time the app printed {CRASH!r} and exited with 1")
    assert finding.excluded[0].explanation == "the user stopped it"


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (0, CRASH),  # it went on, and ended well
        (130, CRASH),  # a signal
        (1, "KeyboardInterrupt"),
        (1, "asyncio.exceptions.CancelledError: the user left"),
        (1, "    raise JSONDecodeError(CRASH)"),
        (1, "done"),
    ],
)
def test_what_else_is_printed_does_not_say_why_the_client_left(code: int, line: str) -> None:
    finding = cut([gave_up(0.1, exit_code=code)], printed(250, line))
    assert (finding.blame, finding.severity) == (None, Severity.INFO)
    assert finding.message.startswith("the client closed the connection")


def test_who_asks_again_has_coped_with_its_exception() -> None:
    both = [gave_up(0.1, exit_code=1), later(asks(USER))]
    assert cut(both, printed(250, CRASH)).blame is None


@pytest.mark.parametrize(
    "line",
    [
        "TimeoutError",
        "asyncio.exceptions.TimeoutError: no whole answer after 2 s",
        # What was shown so far has no new line at its end.
        "The weather in app: TimeoutError: no whole answer after 2 s",
    ],
)
def test_a_timeout_while_the_answer_still_comes_is_the_apps(line: str) -> None:
    finding = cut([gave_up(0.1, exit_code=1)], printed(250, line))
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.LIKELY)
    assert "the app's total timeout is shorter than this answer" in finding.hint
    assert "The weather" not in finding.message


def test_talk_of_a_timeout_is_none() -> None:
    assert cut([gave_up(0.1, exit_code=1)], printed(250, "set a timeout of 2 s")).blame is None
