from dataclasses import replace

import pytest

from deltatape.diagnose.check import check
from deltatape.model.exchange import DeliveryProgress, EndReason, Exchange, RequestSent
from deltatape.model.finding import Blame, Confidence, Severity
from deltatape.model.rule_settings import Settings
from deltatape.model.tape_summary import TapeSummary
from deltatape.rules.progress import ClientLag, SilencePhase, lags, silences, watched_until
from helpers.chat import FINISH, calls, choice, entry
from helpers.contexts import context_of
from helpers.exchanges import (
    CALL_MESSAGE,
    FINISH_TEXT,
    TEXT,
    USER,
    asks,
    assistant,
    call,
    codes,
    found,
    one,
    pasted,
    result,
    timed,
)
from helpers.taped import MS, idle_times

ROLE = choice({"role": "assistant", "content": ""})
OPEN = calls(entry(0, "c1", name="get", arguments='{"a":'))
REST = calls(entry(0, arguments="1}"))
ALIVE = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    ("reads", "phase"),
    [
        ([(0.1, ROLE), (12.0, TEXT), (12.1, FINISH_TEXT)], "before-first)"),
        ([(0.1, TEXT), (12.0, TEXT), (12.1, FINISH_TEXT)], "in-text)"),
        ([(0.1, OPEN), (12.0, REST), (12.1, FINISH)], "in-arguments of call 0 (get))"),
        ([(0.1, OPEN), (0.2, REST), (12.1, FINISH)], "after-call of call 0 (get))"),
        ([(0.1, TEXT), (0.2, FINISH_TEXT), (12.1, DONE)], "before-end)"),
    ],
)
def test_a_silence_is_reported_with_its_phase(
    reads: list[tuple[float, object]], phase: str
) -> None:
    finding = one(timed(*reads), "D001")
    assert phase in finding.message
    assert finding.message.endswith("then data came again")
    assert finding.severity is Severity.WARNING


def test_keep_alives_and_empty_events_are_not_progress_but_prove_a_living_connection() -> None:
    exchange = timed(
        (0.1, TEXT),
        (5.0, ALIVE),
        (6.0, choice({})),
        (9.0, ALIVE),
        (14.0, TEXT),
        (14.1, FINISH_TEXT),
    )
    finding = one(exchange, "D001")
    assert "13.9 s (in-text), with 2 keep-alive comments and 1 empty event in between" in (
        finding.message
    )
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.PROVEN)
    assert (finding.event, finding.t_ns) == (0, 100 * MS)


def test_a_silence_of_a_minute_is_an_error() -> None:
    assert one(timed((0.1, OPEN), (70.0, REST), (70.1, FINISH)), "D001").severity is Severity.ERROR


def test_waiting_for_the_end_of_the_body_is_never_an_error() -> None:
    exchange = timed((0.1, TEXT), (0.2, FINISH_TEXT), (0.3, DONE), end_s=90)
    finding = one(exchange, "D001")
    assert finding.severity is Severity.WARNING
    assert finding.message.endswith("then the response ended")


def left(exchange: Exchange, reason: EndReason) -> Exchange:
    assert exchange.end
    return replace(exchange, end=replace(exchange.end, reason=reason))


def test_a_silence_that_only_the_end_ended_is_an_error() -> None:
    exchange = left(timed((0.1, OPEN), end_s=31), EndReason.CLIENT_CLOSED)
    finding = one(exchange, "D001")
    assert finding.severity is Severity.ERROR
    assert finding.message.endswith("then the client disconnected")
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)


def test_silence_is_proven_only_while_the_recorder_watched() -> None:
    crashed = replace(timed((0.1, TEXT)), end=None)
    assert not found(crashed, "D001")
    watched = replace(crashed, idle_ns=(5_000 * MS, 15_000 * MS))
    finding = one(watched, "D001")
    assert finding.message.endswith("then the tape ends")
    assert finding.blame is None
    stopped = replace(crashed, stopped_ns=20_000 * MS)
    assert "19.9 s" in one(stopped, "D001").message
    all_the_time = replace(crashed, idle_ns=idle_times(100, 20_000))
    finding = one(all_the_time, "D001")
    assert (finding.severity, finding.blame) == (Severity.ERROR, None)


def test_what_goes_on_is_told_while_it_goes_on() -> None:
    watch = TapeSummary(until_ns=31_000 * MS, recording=True)
    idle = idle_times(100, 31_000)
    going_on = replace(timed((0.1, TEXT)), end=None, open=True, watch=watch, idle_ns=idle)
    finding = one(going_on, "D001")
    assert "no progress for 30.9 s (in-text); the exchange is still going on" in finding.message
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)


def test_a_silence_without_any_record_of_the_recorder_blames_nobody() -> None:
    hung = replace(timed((0.1, TEXT), (16.0, TEXT), (16.1, FINISH_TEXT)), idle_ns=(5_100 * MS,))
    finding = one(hung, "D001")
    assert (finding.severity, finding.blame) == (Severity.INFO, None)
    assert finding.confidence is Confidence.POSSIBLE
    assert "15.9 s (in-text), and the recorder wrote nothing for 10.9 s" in finding.message
    never = one(replace(hung, idle_ns=()), "D001")
    assert "15.9 s (in-text), and the recorder wrote nothing for 15.9 s of it" in never.message
    assert (never.severity, never.blame) == (Severity.INFO, None)
    assert "the recorder wrote nothing" in never.hint


def test_a_client_that_takes_nothing_stops_the_reading_itself() -> None:
    exchange = timed((0.1, TEXT), (0.2, TEXT), (20.0, FINISH_TEXT))
    slow = replace(
        exchange,
        delivered=(
            DeliveryProgress(t_ns=150 * MS, bytes=10),
            DeliveryProgress(t_ns=19_000 * MS, bytes=100),
        ),
    )
    finding = one(slow, "D001")
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.LIKELY)


@pytest.mark.parametrize("signs", [(), (ALIVE,), (choice({}),)])
def test_a_model_that_thinks_before_it_answers_is_nobodys_fault(signs: tuple[object, ...]) -> None:
    between = [(at, each) for at in (20.0, 40.0, 60.0) for each in signs]
    exchange = timed((0.1, ROLE), *between, (75.0, TEXT), (75.1, FINISH_TEXT), (75.2, DONE))
    finding = one(exchange, "D001")
    assert (finding.severity, finding.blame) == (Severity.WARNING, None)
    assert "(before-first)" in finding.message


def test_a_tool_that_the_provider_runs_takes_its_time() -> None:
    opened = {"type": "code_interpreter_call", "id": "ci_1", "code": ""}
    item = {"output_index": 0, "item_id": "ci_1"}
    events = [
        (0.1, {"type": "response.output_item.added", "output_index": 0, "item": opened}),
        (75.0, {"type": "response.code_interpreter_call_code.delta", "delta": "1", **item}),
        (75.1, {"type": "response.completed", "response": {"status": "completed"}}),
    ]
    exchange = timed(*events, request={"model": "m", "stream": True, "input": "x"})
    request = replace(exchange.request, target=(b"/v1/responses",))
    finding = one(replace(exchange, request=request), "D001")
    assert (finding.severity, finding.blame) == (Severity.WARNING, None)
    assert finding.hint.startswith("a tool that the provider runs")


def test_a_user_who_stops_a_model_that_thinks_shows_nobodys_fault() -> None:
    finding = one(left(timed((0.1, ROLE), end_s=65), EndReason.CLIENT_CLOSED), "D001")
    assert (finding.severity, finding.blame) == (Severity.WARNING, None)
    hung = one(left(timed((0.1, ROLE), end_s=65), EndReason.UPSTREAM_CLOSED), "D001")
    assert (hung.severity, hung.blame) == (Severity.ERROR, Blame.UPSTREAM)


def test_a_steady_stream_and_one_without_times_are_fine() -> None:
    assert not found(timed((0.1, TEXT), (9.0, TEXT), (18.0, FINISH_TEXT)), "D001")
    assert not found(pasted(*call(), FINISH), "D001")


def test_signs_of_life_at_the_edges_of_a_silence_prove_nothing() -> None:
    edges = timed((0.1, TEXT), (0.2, ALIVE), (13.9, choice({})), (14.0, TEXT), (14.1, FINISH_TEXT))
    finding = one(edges, "D001")
    assert "with 1 keep-alive comment and 1 empty event in between" in finding.message
    assert finding.confidence is Confidence.LIKELY


def test_an_answer_that_is_not_a_stream_and_was_not_asked_to_be_one_has_a_minute() -> None:
    media = ((b"Content-Type", b"application/json"),)
    body = b'{"choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}]}'
    whole: dict[str, object] = {"model": "m", "messages": []}
    assert not found(timed((30.0, body), request=whole, headers=media), "D001")
    assert found(timed((70.0, body), request=whole, headers=media), "D001")
    assert found(timed((30.0, body), request={**whole, "stream": True}, headers=media), "D001")
    never = left(timed((0.1, b""), request=whole, headers=media, end_s=31), EndReason.CLIENT_CLOSED)
    assert found(never, "D001")


def test_of_several_choices_one_may_have_ended() -> None:
    exchange = timed(
        (0.1, TEXT),
        (0.2, FINISH_TEXT),
        (12.0, choice({"content": "b"}, index=1)),
        (12.1, FINISH_TEXT),
    )
    assert "(in-text)" in one(exchange, "D001").message


def test_a_tool_of_the_application_takes_its_time_after_the_call() -> None:
    events = [
        (0.1, {"type": "tool_call", "name": "get", "arguments": {}}),
        (12.0, {"type": "tool_result", "name": "get", "result": 1}),
        (24.0, {"type": "done"}),
    ]
    first, second = found(timed(*events), "D001")
    assert "(after-call of call 0 (get))" in first.message
    assert "(after-call)" in second.message
    assert first.hint == second.hint
    assert first.hint.startswith("the tool is slow")
    assert first.blame is Blame.APP


AFTER = asks(USER, CALL_MESSAGE, result("c1"))
SENT = RequestSent(t_ns=1_500 * MS, connect_ns=MS, tls_ns=MS, reused=False)


def ended(exchange: Exchange, reason: EndReason | None) -> Exchange:
    assert exchange.end
    end = replace(exchange.end, reason=reason) if reason else None
    return replace(exchange, end=end, sent=SENT)


def silent(reason: EndReason | None, end_s: float = 21.5) -> Exchange:
    """Nothing came, not even a head."""
    return ended(timed(framing=None, end_s=end_s, request=AFTER), reason)


def test_both_clocks_are_reported() -> None:
    idle = (6_500 * MS, 11_500 * MS, 16_500 * MS)
    exchange = replace(silent(EndReason.UPSTREAM_CLOSED), idle_ns=idle)
    finding = one(exchange, "D004")
    assert finding.message == (
        "the request with tool results was sent upstream after 1.5 s; nothing came from"
        " the upstream for 20.0 s (3 idle records); the client was still there 21.5 s after its"
        " request, when the upstream closed the connection"
    )
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.UPSTREAM)
    assert finding.confidence is Confidence.LIKELY
    assert finding.t_ns == 1_500 * MS


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (EndReason.UPSTREAM_RESET, "when the connection was reset"),
        (EndReason.TIMEOUT, "when the recorder timed out"),
        (EndReason.STOPPED, "when the recorder was stopped"),
        (EndReason.COMPLETE, "when the response ended"),
    ],
)
def test_how_it_ended_is_reported(reason: EndReason, words: str) -> None:
    assert one(silent(reason), "D004").message.endswith(words)


def test_a_client_that_leaves_early_may_be_hasty_and_one_that_waited_long_is_not() -> None:
    hasty = one(silent(EndReason.CLIENT_CLOSED), "D004")
    assert hasty.message.endswith("the client disconnected after 21.5 s")
    assert (hasty.blame, hasty.confidence) == (Blame.APP, Confidence.POSSIBLE)
    patient = one(silent(EndReason.CLIENT_CLOSED, 90), "D004")
    assert (patient.blame, patient.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)


def test_a_silence_without_any_record_of_the_recorder_blames_nobody_after_a_result() -> None:
    for reason in (EndReason.CLIENT_CLOSED, EndReason.UPSTREAM_CLOSED, None):
        watch = TapeSummary(until_ns=60_000 * MS)
        held_up = replace(silent(reason, 60), idle_ns=(6_500 * MS,), watch=watch)
        finding = one(held_up, "D004")
        assert (finding.severity, finding.blame) == (Severity.INFO, None)
        assert finding.confidence is Confidence.POSSIBLE
        assert "(1 idle record), and the recorder wrote nothing for 53.5 s" in finding.message
        assert "the recorder wrote nothing" in finding.hint


def test_a_silence_that_was_watched_for_long_enough_stands_beside_what_was_not() -> None:
    watched = (6_500 * MS, 11_500 * MS, 16_500 * MS)
    finding = one(replace(silent(EndReason.UPSTREAM_CLOSED, 60), idle_ns=watched), "D004")
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.UPSTREAM)
    assert "(3 idle records), and the recorder wrote nothing for 43.5 s" in finding.message


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


def test_silence_is_proven_only_while_the_recorder_watched_after_a_result() -> None:
    crashed = replace(silent(None), idle_ns=())
    assert not found(crashed, "D004")
    watched = idle_times(31_500)
    seen = replace(crashed, idle_ns=watched, watch=TapeSummary(until_ns=31_500 * MS))
    finding = one(seen, "D004")
    assert (
        "for 30.0 s (6 idle records); the client had waited 31.5 s, then the tape ends"
        in finding.message
    )
    assert (finding.severity, finding.blame) == (Severity.ERROR, None)
    assert one(replace(crashed, idle_ns=(31_500 * MS,)), "D004").t_ns == 1_500 * MS


def test_what_goes_on_is_told_while_it_goes_on_after_a_result() -> None:
    watch = TapeSummary(until_ns=31_500 * MS, recording=True)
    going_on = replace(silent(None), open=True, watch=watch, idle_ns=idle_times(31_500))
    finding = one(going_on, "D004")
    assert finding.message.endswith(
        "the client had waited 31.5 s, and the exchange is still going on"
    )
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)


def test_it_is_reported_once() -> None:
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


FAST = timed((0.1, TEXT), (0.2, FINISH_TEXT))


def test_the_longest_wait_for_the_client_is_reported() -> None:
    delivered = (
        DeliveryProgress(t_ns=1_500 * MS, bytes=5),
        DeliveryProgress(t_ns=3_000 * MS, bytes=100),
    )
    finding = one(replace(FAST, delivered=delivered), "D005")
    assert finding.message == "the client took byte 100 of the body 2.8 s after it arrived"
    assert finding.blame is Blame.APP
    assert finding.t_ns == 3_000 * MS


def test_a_client_that_keeps_up_is_fine() -> None:
    assert not found(FAST, "D005")
    assert not found(replace(FAST, delivered=(DeliveryProgress(t_ns=300 * MS, bytes=100),)), "D005")
    assert not found(pasted(TEXT, FINISH_TEXT), "D005")


def test_a_sentinel_counts_as_progress_and_is_the_end() -> None:
    exchange = timed((0.1, TEXT), (1.0, b"data: [DONE]\n\n"), end_s=30)
    (silence,) = silences(context_of(exchange), 10_000 * MS)
    assert (silence.phase, silence.open) == (SilencePhase.BEFORE_END, True)


def test_the_tape_watches_until_the_last_thing_it_says() -> None:
    exchange = timed((0.1, TEXT), end_s=2)
    assert watched_until(exchange) == 2_000 * MS
    crashed = replace(exchange, end=None)
    assert watched_until(crashed) == 100 * MS
    assert watched_until(replace(crashed, idle_ns=(7 * MS, 900 * MS))) == 900 * MS
    assert watched_until(replace(crashed, stopped_ns=1_000 * MS)) == 1_000 * MS


EXCHANGE = timed((0.1, b"12345"), (0.2, b"67890"))


def test_a_lag_runs_from_the_read_of_the_byte_to_its_delivery() -> None:
    delivered = (DeliveryProgress(t_ns=500 * MS, bytes=5), DeliveryProgress(t_ns=900 * MS, bytes=6))
    assert lags(replace(EXCHANGE, delivered=delivered)) == (
        ClientLag(start_ns=100 * MS, end_ns=500 * MS, offset=5, line=None),
        ClientLag(start_ns=200 * MS, end_ns=900 * MS, offset=6, line=None),
    )


def test_nothing_delivered_waits_since_the_first_read() -> None:
    (lag,) = lags(replace(EXCHANGE, delivered=(DeliveryProgress(t_ns=500 * MS, bytes=0),)))
    assert lag.start_ns == 100 * MS


def test_a_delivery_beyond_what_was_read_says_nothing() -> None:
    assert lags(replace(EXCHANGE, delivered=(DeliveryProgress(t_ns=1, bytes=99),))) == ()
