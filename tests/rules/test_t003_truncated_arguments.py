from dataclasses import replace

import pytest

from deltatape.model.exchange import EndReason
from deltatape.model.finding import Blame, Confidence, Severity
from helpers.chat import FINISH, calls, choice, entry
from helpers.exchanges import call, found, one, pasted, timed

HALF = calls(entry(0, "c1", name="get", arguments='{"a":'))


def test_a_tail_lost_before_a_regular_end_is_upstreams_fault() -> None:
    finding = one(pasted(HALF, FINISH), "T003")
    assert finding.blame is Blame.UPSTREAM
    assert "end after 5 characters in 1 fragment: the reply went on" in finding.message
    assert finding.evidence == '{"a":'


def test_a_limit_blames_nobody() -> None:
    finding = one(pasted(HALF, choice({}, "length")), "T003")
    assert finding.blame is None
    assert "finish reason 'length'" in finding.message


def test_an_error_frame_is_upstreams() -> None:
    exchange = pasted(HALF, {"error": {"message": "overloaded"}}, done=False)
    assert one(exchange, "T003").blame is Blame.UPSTREAM


def test_the_end_of_a_pasted_stream_proves_nothing_and_of_a_taped_one_upstream() -> None:
    assert one(pasted(HALF, done=False), "T003").blame is None
    assert one(timed((0.1, HALF)), "T003").blame is Blame.UPSTREAM


@pytest.mark.parametrize(
    ("reason", "blame", "severity"),
    [
        (EndReason.UPSTREAM_RESET, Blame.TRANSPORT, Severity.ERROR),
        (EndReason.CLIENT_CLOSED, None, Severity.INFO),
        (EndReason.STOPPED, None, Severity.INFO),
        (None, None, Severity.INFO),
    ],
)
def test_a_cut_is_blamed_on_who_cut_and_on_nobody_who_only_left(
    reason: EndReason | None, blame: Blame | None, severity: Severity
) -> None:
    exchange = timed((0.1, HALF))
    assert exchange.end
    end = replace(exchange.end, reason=reason) if reason else None
    finding = one(replace(exchange, end=end), "T003")
    assert (finding.blame, finding.severity) == (blame, severity)


def test_arguments_that_only_look_cut_are_told_by_the_fragment_that_is_doubled() -> None:
    pieces = ['{"a":', '{"b":', '{"b":', "1}}"]
    doubled = [calls(entry(0, arguments=piece)) for piece in pieces]
    finding = one(pasted(calls(entry(0, "c1", name="get")), *doubled, FINISH), "T003")
    assert finding.message == (
        "the arguments of call 0 (get) end after 18 characters in 4 fragments without being whole:"
        " fragment 3 of 4 (event 3) repeats the one before it, and without it they are JSON"
    )
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)


def test_a_limit_explains_cut_arguments_whatever_their_fragments() -> None:
    pieces = ['{"a":', '{"b":', '{"b":', "1}}"]
    doubled = [calls(entry(0, arguments=piece)) for piece in pieces]
    opened = calls(entry(0, "c1", name="get"))
    finding = one(pasted(opened, *doubled, choice({}, "length")), "T003")
    assert finding.message.endswith("the provider cut the reply (finish reason 'length')")


def test_whole_arguments_are_fine() -> None:
    assert not found(pasted(*call(), FINISH), "T003")
