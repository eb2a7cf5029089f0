from dataclasses import replace

import pytest

from deltatape.diagnose.check import check
from deltatape.model.exchange import EndReason, Exchange, Sent
from deltatape.model.finding import Blame, Confidence, Severity
from deltatape.model.watch import Watch
from deltatape.rules.settings import Settings
from helpers.chat import choice
from helpers.exchanges import (
    FINISH_TEXT,
    TEXT,
    USER,
    asks,
    assistant,
    codes,
    found,
    one,
    pasted,
    result,
    timed,
)
from helpers.taped import MS, idle_times

AFTER = asks(USER, assistant(("c1", "get", '{"a":1}')), result("c1"))
ROLE = choice({"role": "assistant", "content": ""})
SENT = Sent(t_ns=1_500 * MS, connect_ns=MS, tls_ns=MS, reused=False)


def ended(exchange: Exchange, reason: EndReason | None) -> Exchange:
    assert exchange.end
    end = replace(exchange.end, reason=reason) if reason else None
    return replace(exchange, end=end, sent=SENT)


def silent(reason: EndReason | None, end_s: float = 21.5) -> Exchange:
    """Nothing came, not even a head."""
    return ended(timed(framing=None, end_s=end_s, request=AFTER), reason)


def test_both_clocks_are_told() -> None:
    idle = (6_500 * MS, 11_500 * MS, 16_500 * MS)
    exchange = replace(silent(EndReason.UPSTREAM_CLOSED), idle_ns=idle)
    finding = one(exchange, "D004")
    assert finding.message == (
        "the request with tool results left 1.5 s after it came; nothing came from the upstream for"
        " 20.0 s (3 idle records); the client was still there 21.5 s after its request, when the"
        " upstream closed the connection"
    )
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.UPSTREAM)
    assert finding.confidence is Confidence.LIKELY
    assert finding.t_ns == 1_500 * MS


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (EndReason.UPSTREAM_RESET, "when the connection was reset"),
        (EndReason.TIMEOUT, "when the recorder gave up"),
        (EndReason.STOPPED, "when the recorder was stopped"),
        (EndReason.COMPLETE, "when the response ended"),
    ],
)
def test_how_it_ended_is_told(reason: EndReason, words: str) -> None:
    assert one(silent(reason), "D004").message.endswith(words)


def test_a_client_that_leaves_early_may_be_hasty_and_one_that_waited_long_is_not() -> None:
    hasty = one(silent(EndReason.CLIENT_CLOSED), "D004")
    assert hasty.message.endswith("the client gave up after 21.5 s")
    assert (hasty.blame, hasty.confidence) == (Blame.APP, Confidence.POSSIBLE)
    patient = one(silent(EndReason.CLIENT_CLOSED, 90), "D004")
    assert (patient.blame, patient.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)


def test_a_silence_without_any_record_of_the_recorder_blames_nobody() -> None:
    for reason in (EndReason.CLIENT_CLOSED, EndReason.UPSTREAM_CLOSED, None):
        watch = Watch(until_ns=60_000 * MS)
        held_up = replace(silent(reason, 60), idle_ns=(6_500 * MS,), watch=watch)
        finding = one(held_up, "D004")
        assert (finding.severity, finding.blame) == (Severity.INFO, None)
        assert finding.confidence is Confidence.POSSIBLE
        assert "(1 idle record), of which 53.5 s without any record" in finding.message
        assert "the recorder wrote nothing meanwhile" in finding.hint


def test_a_silence_that_was_watched_for_long_enough_stands_beside_what_was_not() -> None:
    watched = (6_500 * MS, 11_500 * MS, 16_500 * MS)
    finding = one(replace(silent(EndReason.UPSTREAM_CLOSED, 60), idle_ns=watched), "D004")
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.UPSTREAM)
    assert "(3 idle records), of which 43.5 s without any record" in finding.message


def test_signs_of_life_prove_whose_silence_it_was() -> None:
    answer = timed((0.2, b": wait\n\n"), (0.3, ROLE), end_s=40, request=AFTER)
    finding = one(ended(answer, EndReason.CLIENT_CLOSED), "D004")
    assert "status 200 and then nothing came" in finding.message
    assert (
        "(1 empty event, 7 idle records)" in finding.message
    )  # the comment came before the request had left
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.PROVEN)
    head = ended(timed((0.2, b":"), end_s=90, request=AFTER), EndReason.UPSTREAM_CLOSED)
    assert one(head, "D004").confidence is Confidence.LIKELY


def test_a_request_that_never_left_is_the_transports() -> None:
    finding = one(replace(silent(EndReason.REFUSED), sent=None), "D004")
    assert "the request with tool results never left; nothing came" in finding.message
    assert (finding.blame, finding.confidence) == (Blame.TRANSPORT, Confidence.POSSIBLE)
    assert finding.hint.startswith("check the upstream's address")
    unsaid = replace(timed((0.2, ROLE), end_s=30, request=AFTER), sent=None)
    assert "tool results left; status 200" in one(unsaid, "D004").message


def test_silence_is_proven_only_while_the_recorder_watched() -> None:
    crashed = replace(silent(None), idle_ns=())
    assert not found(crashed, "D004")
    watched = idle_times(31_500)
    seen = replace(crashed, idle_ns=watched, watch=Watch(until_ns=31_500 * MS))
    finding = one(seen, "D004")
    assert (
        "for 30.0 s (6 idle records); the client had waited 31.5 s, then the tape breaks off"
        in finding.message
    )
    assert (finding.severity, finding.blame) == (Severity.ERROR, None)
    assert one(replace(crashed, idle_ns=(31_500 * MS,)), "D004").t_ns == 1_500 * MS


def test_what_goes_on_is_told_while_it_goes_on() -> None:
    watch = Watch(until_ns=31_500 * MS, recording=True)
    going_on = replace(silent(None), open=True, watch=watch, idle_ns=idle_times(31_500))
    finding = one(going_on, "D004")
    assert finding.message.endswith("the client had waited 31.5 s, it still goes on")
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)


def test_it_is_told_once() -> None:
    assert "D001" not in codes(silent(EndReason.UPSTREAM_CLOSED))
    stalled = timed((0.1, TEXT), (20, FINISH_TEXT), request=AFTER)
    assert codes(stalled) == ["D001"]


@pytest.mark.parametrize(
    "exchange",
    [
        timed((0.1, ROLE), (0.2, FINISH_TEXT), end_s=30, request=AFTER),  # D002
        timed((20.0, TEXT), (20.1, FINISH_TEXT), request=AFTER),  # late: D001
        timed((0.1, TEXT), (0.2, FINISH_TEXT), request=AFTER),
        timed(end_s=30, request=asks(USER)),
        timed(end_s=30, request=asks(USER, assistant(), result("c1"), USER)),
        timed(end_s=30),
        timed(end_s=9, request=AFTER),
        pasted(request=AFTER),
    ],
)
def test_other_silences_are_other_findings(exchange: Exchange) -> None:
    assert not found(exchange, "D004")


def test_the_threshold_is_a_setting() -> None:
    exchange = silent(EndReason.CLIENT_CLOSED, 2.5)
    assert "D004" not in codes(exchange)
    assert "D004" in [each.code for each in check(exchange, Settings(after_result_s=0.5))]
