from dataclasses import replace

import pytest

from deltatape.model.exchange import INVALID_HEAD, EndReason, Exchange, RequestSent
from deltatape.model.finding import Blame, Confidence, Severity
from deltatape.model.tape_summary import TapeSummary
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.exchanges import FINISH_TEXT, TEXT, call, found, one, pasted, timed
from helpers.taped import MS

OPEN = calls(entry(0, "c1", name="get", arguments='{"a":'))
DONE = b"data: [DONE]\n\n"


def ended(exchange: Exchange, reason: EndReason | None, detail: str = "") -> Exchange:
    assert exchange.end
    end = replace(exchange.end, reason=reason, detail=detail) if reason else None
    return replace(exchange, end=end)


@pytest.mark.parametrize(
    ("reason", "severity", "blame", "words"),
    [
        (EndReason.UPSTREAM_CLOSED, Severity.ERROR, Blame.TRANSPORT, "closed the connection"),
        (EndReason.UPSTREAM_RESET, Severity.ERROR, Blame.TRANSPORT, "was reset"),
        (EndReason.TIMEOUT, Severity.ERROR, Blame.TRANSPORT, "timed out waiting"),
        (EndReason.CLIENT_CLOSED, Severity.INFO, None, "the client closed"),
        (EndReason.STOPPED, Severity.WARNING, None, "recorder was stopped"),
        (None, Severity.WARNING, None, "recorder was killed or crashed"),
    ],
)
def test_a_cut_in_the_arguments_says_who_and_where(
    reason: EndReason | None, severity: Severity, blame: Blame | None, words: str
) -> None:
    finding = one(ended(timed((0.1, OPEN)), reason), "W006")
    assert (finding.severity, finding.blame) == (severity, blame)
    assert words in finding.message
    assert "in the arguments of call 0 (get)" in finding.message


def test_a_reset_is_proven_and_a_close_between_two_events_is_likely() -> None:
    reset = ended(timed((0.1, TEXT)), EndReason.UPSTREAM_RESET)
    closed = ended(timed((0.1, TEXT)), EndReason.UPSTREAM_CLOSED)
    assert one(reset, "W006").confidence is Confidence.PROVEN
    assert one(closed, "W006").confidence is Confidence.LIKELY


def test_idle_timeouts_are_looked_for_only_after_a_silence() -> None:
    abrupt = ended(timed((0.1, TEXT), end_s=0.2), EndReason.UPSTREAM_RESET)
    silent = ended(timed((0.1, TEXT), end_s=20), EndReason.UPSTREAM_RESET)
    assert one(abrupt, "W006").hint.startswith("check restarts and crashes")
    assert one(silent, "W006").hint.startswith("check idle timeouts")


def test_a_close_inside_an_event_is_proven() -> None:
    closed = ended(timed((0.1, TEXT), (0.2, b"data: {")), EndReason.UPSTREAM_CLOSED)
    finding = one(closed, "W006")
    assert finding.confidence is Confidence.PROVEN
    assert "in the middle of an event" in finding.message


def test_a_refused_connection_has_no_response() -> None:
    finding = one(ended(timed(framing=None), EndReason.REFUSED, "no route"), "W006")
    assert (
        finding.message
        == "the recorder could not connect to the upstream (no route), before any response"
    )
    assert finding.confidence is Confidence.PROVEN


def test_a_cut_before_the_first_byte_is_named_so() -> None:
    finding = one(ended(timed(end_s=1), EndReason.UPSTREAM_RESET), "W006")
    assert finding.message.endswith("before the first byte of the body")


def test_a_tape_that_ends_before_any_byte_has_no_place() -> None:
    assert one(ended(timed(), None), "W006").span is None


def test_a_client_that_leaves_may_have_a_user_who_pressed_stop() -> None:
    finding = one(ended(timed((0.1, TEXT)), EndReason.CLIENT_CLOSED), "W006")
    assert (finding.severity, finding.blame) == (Severity.INFO, None)
    assert finding.confidence is Confidence.POSSIBLE


def test_a_client_that_leaves_with_all_it_wanted_is_not_a_finding() -> None:
    error = {"error": {"message": "overloaded"}}
    refused = from_head(timed((0.1, b'{"error":{"message":"no"')), 429)
    for exchange in (
        timed((0.1, TEXT), (0.2, FINISH_TEXT), (0.3, DONE)),
        timed((0.1, TEXT), (0.2, FINISH_TEXT)),
        timed((0.1, TEXT), (0.2, error)),
        refused,
    ):
        assert not found(ended(exchange, EndReason.CLIENT_CLOSED), "W006")


def from_head(exchange: Exchange, status: int) -> Exchange:
    assert exchange.response
    return replace(exchange, response=replace(exchange.response, status=status))


def patient(seconds: float, *headers: tuple[bytes, bytes]) -> Exchange:
    """A client that leaves after so long a silence, and the head of its request."""
    exchange = ended(timed((0.1, OPEN), end_s=0.1 + seconds), EndReason.CLIENT_CLOSED)
    request = replace(exchange.request, headers=headers)
    sent = RequestSent(t_ns=MS, connect_ns=0, tls_ns=0, reused=True)
    return replace(exchange, request=request, sent=sent)


def test_a_client_that_gives_up_is_reported_with_the_silence() -> None:
    finding = one(patient(4.0), "W006")
    assert finding.message.startswith(
        "the client disconnected after 4.0 s without data, in the arguments"
    )
    assert finding.blame is None
    assert one(patient(0.4), "W006").message.startswith("the client closed the connection, in")
    assert "(the upstream stalled), in" in one(patient(12.0), "W006").message
    unwatched = replace(patient(12.0), idle_ns=())
    assert "a stall" not in one(unwatched, "W006").message


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ([(b"X-Stainless-Read-Timeout", b"4.0")], ", equal to its read timeout (4 s)"),
        ([(b"x-stainless-timeout", b"4")], ", equal to its read timeout (4 s)"),
        ([(b"x-stainless-read-timeout", b"600")], ""),
        ([(b"x-stainless-read-timeout", b"4 s")], ""),
    ],
)
def test_the_timeout_that_an_sdk_tells_is_compared_with_the_silence(
    headers: list[tuple[bytes, bytes]], told: str
) -> None:
    message = one(patient(4.2, *headers), "W006").message
    assert message.startswith(
        f"the client disconnected after 4.2 s without data{told}, in the arguments"
    )


def test_a_client_that_waits_for_the_recorder_to_connect_blames_nobody() -> None:
    finding = one(ended(timed(framing=None, end_s=30), EndReason.CLIENT_CLOSED), "W006")
    assert finding.message.endswith("before the request was sent upstream, before any response")
    assert finding.blame is None


@pytest.mark.parametrize(
    ("reason", "detail", "words"),
    [
        (EndReason.REFUSED, "http://x: no connection: Too many open files", "file descriptors"),
        (EndReason.UPSTREAM_CLOSED, "the response is not HTTP/1: no end of", "rejected the head"),
        (EndReason.UPSTREAM_CLOSED, "Cannot parse HTTP response: bad", "rejected the head"),
        (EndReason.UPSTREAM_CLOSED, f"{INVALID_HEAD}: bad", "passed its bytes on as they came"),
        (
            EndReason.TIMEOUT,
            "mitmproxy gave up after 600 s without a byte",
            "own timeout",
        ),
    ],
)
def test_what_the_recorder_did_itself_is_nobodys_fault(
    reason: EndReason, detail: str, words: str
) -> None:
    finding = one(ended(timed((0.1, OPEN)), reason, detail), "W006")
    assert (finding.severity, finding.blame) == (Severity.WARNING, None)
    assert words in finding.message


def test_a_tape_that_went_on_without_the_end_of_an_exchange_says_so() -> None:
    watch = TapeSummary(until_ns=9_000 * MS, stop="interrupted")
    finding = one(replace(ended(timed((0.1, TEXT)), None), watch=watch), "W006")
    assert "although the recorder kept running" in finding.message
    assert finding.blame is None


def test_a_connection_that_did_not_come_in_time_is_likely_and_a_reset_says_what_was_tried() -> None:
    late = ended(timed(framing=None, end_s=60), EndReason.TIMEOUT)
    assert one(late, "W006").confidence is Confidence.LIKELY
    reset = one(ended(timed((0.1, TEXT)), EndReason.UPSTREAM_RESET), "W006")
    assert next(each.explanation for each in reset.excluded) == "the client disconnected first"


def test_a_cut_after_the_terminal_event_is_an_information() -> None:
    exchange = timed(*((0.1, each) for each in call()), (0.2, FINISH), (0.3, DONE))
    finding = one(ended(exchange, EndReason.UPSTREAM_CLOSED), "W006")
    assert finding.severity is Severity.INFO
    assert "the answer is complete" in finding.message


def test_one_finished_choice_of_two_is_not_the_end() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": None}]}
    exchange = timed((0.1, TEXT), (0.2, other), (0.3, FINISH_TEXT))
    finding = one(ended(exchange, EndReason.CLIENT_CLOSED), "W006")
    assert "after the finish reason" in finding.message
    assert finding.severity is Severity.INFO


def test_what_ended_in_good_order_or_was_not_taped_is_not_a_cut() -> None:
    assert not found(timed((0.1, TEXT), (0.2, FINISH_TEXT)), "W006")
    assert not found(pasted(TEXT, done=False), "W006")


MANY = [(4.0 + at / 1000, choice({"content": "x"})) for at in range(40)]
BUFFER = [(4.0 + at / 100, sse(*[TEXT] * 10, done=False)) for at in range(3)]


def test_many_events_at_once_after_a_long_silence_are_a_burst() -> None:
    finding = one(timed(*BUFFER, (4.05, FINISH_TEXT)), "W007")
    assert "31 events came within 0.050 s after 4.0 s without data, in 4 reads" in finding.message
    assert finding.message.endswith(": a proxy or server buffered the stream")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.LIKELY)


def test_events_that_come_one_by_one_may_be_those_of_a_fast_model_after_a_queue() -> None:
    finding = one(timed(*MANY, (4.05, FINISH_TEXT)), "W007")
    assert "41 events came within 0.050 s after 4.0 s without data, in 41 reads" in finding.message
    assert finding.message.endswith(": a proxy or server may have buffered the stream")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)


def test_the_wait_is_measured_from_the_request_on_its_way() -> None:
    exchange = timed(*MANY, (4.05, FINISH_TEXT))
    late = replace(
        exchange, sent=RequestSent(t_ns=3_500_000_000, connect_ns=0, tls_ns=0, reused=False)
    )
    assert not found(late, "W007")


def test_a_stream_that_comes_as_it_is_written_is_none() -> None:
    slow = [(4.0 + at / 10, choice({"content": "x"})) for at in range(40)]
    assert not found(timed(*slow), "W007")


def test_few_events_and_unknown_times_are_none() -> None:
    assert not found(timed((4.0, TEXT), (4.0, FINISH_TEXT)), "W007")
    assert not found(pasted(*[TEXT] * 50, FINISH_TEXT), "W007")
