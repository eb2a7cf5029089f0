from dataclasses import replace

import pytest

from deltatape.model.exchange import EndReason, Exchange
from deltatape.model.finding import Blame, Confidence, Severity
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import FINISH_TEXT, TEXT, call, found, one, pasted, timed

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
        (EndReason.TIMEOUT, Severity.ERROR, Blame.TRANSPORT, "gave up waiting"),
        (EndReason.CLIENT_CLOSED, Severity.ERROR, Blame.APP, "the client closed"),
        (EndReason.STOPPED, Severity.WARNING, None, "recorder was stopped"),
        (None, Severity.WARNING, None, "recorder died"),
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


def test_a_close_inside_an_event_is_proven() -> None:
    closed = ended(timed((0.1, TEXT), (0.2, b"data: {")), EndReason.UPSTREAM_CLOSED)
    finding = one(closed, "W006")
    assert finding.confidence is Confidence.PROVEN
    assert "in the middle of an event" in finding.message


def test_a_refused_connection_has_no_response() -> None:
    finding = one(ended(timed(framing=None), EndReason.REFUSED, "no route"), "W006")
    assert (
        finding.message == "there was no connection to the upstream (no route), before any response"
    )
    assert finding.confidence is Confidence.PROVEN


def test_a_cut_before_the_first_byte_is_named_so() -> None:
    finding = one(ended(timed(end_s=1), EndReason.UPSTREAM_RESET), "W006")
    assert finding.message.endswith("before the first byte of the body")


def test_a_tape_that_ends_before_any_byte_has_no_place() -> None:
    assert one(ended(timed(), None), "W006").span is None


def test_a_client_that_leaves_in_a_text_is_a_warning_and_after_the_end_nothing() -> None:
    in_text = ended(timed((0.1, TEXT)), EndReason.CLIENT_CLOSED)
    after = ended(timed((0.1, TEXT), (0.2, FINISH_TEXT), (0.3, DONE)), EndReason.CLIENT_CLOSED)
    assert one(in_text, "W006").severity is Severity.WARNING
    assert not found(after, "W006")


def test_a_cut_after_the_terminal_event_is_an_information() -> None:
    exchange = timed(*((0.1, each) for each in call()), (0.2, FINISH), (0.3, DONE))
    finding = one(ended(exchange, EndReason.UPSTREAM_CLOSED), "W006")
    assert finding.severity is Severity.INFO
    assert "no part of the answer is missing" in finding.message


def test_one_finished_choice_of_two_is_not_the_end() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": None}]}
    exchange = timed((0.1, TEXT), (0.2, other), (0.3, FINISH_TEXT))
    finding = one(ended(exchange, EndReason.CLIENT_CLOSED), "W006")
    assert "after the finish reason" in finding.message
    assert finding.severity is Severity.INFO


def test_what_ended_in_good_order_or_was_not_taped_is_no_cut() -> None:
    assert not found(timed((0.1, TEXT), (0.2, FINISH_TEXT)), "W006")
    assert not found(pasted(TEXT, done=False), "W006")
