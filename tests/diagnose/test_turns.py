from dataclasses import replace

import pytest

from deltatape.diagnose.check import check
from deltatape.diagnose.check_tape import check_exchanges
from deltatape.diagnose.digest import digest, digests_of, in_order
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.live.analyzer import LiveAnalyzer
from deltatape.model.exchange import EndReason, Exchange, Request
from deltatape.model.finding import Blame, Severity
from deltatape.model.reply import CallStatus
from deltatape.model.rule_settings import DEFAULTS
from deltatape.model.stream import Format
from deltatape.model.websocket import Side
from deltatape.why.explain import explain
from helpers.responses_socket import Sent, asks, call, question, result, says
from helpers.websocket import KEY, binary, close, frame, ping, socket, text

CLOSE = [(Side.CLIENT, close(mask=KEY)), (Side.SERVER, close())]
TWO = [question(), *call(1), result(1), *call(2, '{"city":"Bruges"}'), *CLOSE]


def codes(exchange: Exchange) -> list[str]:
    return [finding.code for finding in check(exchange)]


def calls(analysis: Analysis) -> list[tuple[int, str | None, str, CallStatus]]:
    return [
        (choice.index, each.id, each.arguments, each.status)
        for choice in analysis.reply.choices
        for each in choice.tool_calls
    ]


def test_a_response_over_a_websocket_is_rebuilt_and_healthy() -> None:
    exchange = socket(question(), *call(1), *CLOSE)
    analysis = analyse(exchange)
    assert analysis.reply.dialect == "openai-responses"
    assert analysis.stream.format is Format.WEBSOCKET
    assert calls(analysis) == [(0, "call_1", '{"city":"Ghent"}', CallStatus.COMPLETE)]
    assert analysis.request.model == "gpt-5"
    assert [tool.name for tool in analysis.request.tools] == ["get_weather"]
    assert codes(exchange) == []


def test_every_response_on_a_websocket_has_its_own_request_and_its_own_end() -> None:
    analysis = analyse(socket(*TWO))
    assert calls(analysis) == [
        (0, "call_1", '{"city":"Ghent"}', CallStatus.COMPLETE),
        (1, "call_2", '{"city":"Bruges"}', CallStatus.COMPLETE),
    ]
    first, second = analysis.turns
    assert (first.request.previous, second.request.previous) == (None, "resp_1")
    assert (first.numbers[0], second.numbers[0]) == (0, 7)
    assert [turn.reply.id for turn in analysis.turns] == ["resp_1", "resp_2"]
    for turn in analysis.turns:
        assert turn.reply.terminated
        assert [event.number for event in turn.stream.events] == list(range(7))
        assert turn.exchange.end is not None
        assert turn.exchange.end.reason is EndReason.COMPLETE
        assert turn.exchange.end.t_ns == turn.stream.events[-1].t_ns
        assert turn.exchange.request.t_ns < turn.stream.events[0].t_ns
        start, end = turn.stream.events[0].place.span
        assert turn.stream.body[start:end] == turn.stream.events[0].data.encode()
    assert codes(socket(*TWO)) == []


def test_other_messages_are_no_requests_and_no_events() -> None:
    noise = [
        (Side.SERVER, ping(b"?")),
        (Side.CLIENT, text('{"type":"session.update"}', mask=KEY)),
        (Side.CLIENT, text("[]", mask=KEY)),
        (Side.CLIENT, binary(b"\xff", mask=KEY)),
        (Side.SERVER, binary(b"\xff")),
    ]
    before = says({"type": "codex.rate_limits"})
    exchange = socket(*before, question(), *noise, *call(1), *noise, *CLOSE)
    (turn,) = analyse(exchange).turns
    assert len(turn.stream.events) == 7
    assert turn.numbers[0] == 1
    assert codes(exchange) == []


def test_requests_that_do_not_wait_are_answered_in_their_order() -> None:
    exchange = socket(question(), question("And in Bruges?"), *call(1), *call(2), *CLOSE)
    analysis = analyse(exchange)
    assert [turn.reply.id for turn in analysis.turns] == ["resp_1", "resp_2"]
    assert codes(exchange) == []


def test_what_comes_after_the_last_response_belongs_to_it() -> None:
    late = says({"type": "response.output_text.delta", "delta": "late", "sequence_number": 7})
    (turn,) = analyse(socket(question(), *call(1), *late, *CLOSE)).turns
    assert len(turn.stream.events) == 8


def test_a_request_that_only_warms_up_is_not_judged() -> None:
    warm = says({"type": "response.completed", "response": {"id": "resp_0", "output": []}})
    exchange = socket(asks(generate=False, input=[]), *warm, question(), *call(1), *CLOSE)
    assert [turn.reply.id for turn in analyse(exchange).turns] == ["resp_1"]


@pytest.mark.parametrize(
    ("reason", "blame"),
    [
        (EndReason.UPSTREAM_CLOSED, Blame.TRANSPORT),
        (EndReason.UPSTREAM_RESET, Blame.TRANSPORT),
        (EndReason.CLIENT_CLOSED, None),
    ],
)
def test_a_response_that_is_cut_is_told_and_those_before_it_are_not(
    reason: EndReason, blame: Blame | None
) -> None:
    exchange = socket(question(), *call(1), result(1), *call(2, ends=False), reason=reason)
    found = check(exchange)
    assert {finding.code: finding.blame for finding in found} == {"W006": blame, "T003": blame}
    truncated = next(finding for finding in found if finding.code == "T003")
    assert truncated.event == 7 + 2
    assert truncated.span is not None
    assert b'"delta": "{\\"city' in analyse(exchange).stream.body[slice(*truncated.span)]
    assert [status for *_, status in calls(analyse(exchange))] == [
        CallStatus.COMPLETE,
        CallStatus.TRUNCATED,
    ]


def test_a_websocket_that_ends_between_two_responses_has_cut_none() -> None:
    for reason in (EndReason.UPSTREAM_CLOSED, EndReason.CLIENT_CLOSED):
        assert codes(socket(question(), *call(1), reason=reason)) == []


def test_a_request_without_an_answer_is_a_cut() -> None:
    exchange = socket(question(), *call(1), result(1), reason=EndReason.UPSTREAM_CLOSED)
    analysis = analyse(replace(exchange, request=_to("/v1/responses", exchange)))
    assert len(analysis.turns) == 2
    assert codes(analysis.exchange) == ["W006"]


def _to(path: str, exchange: Exchange) -> Request:
    return replace(exchange.request, target=(path.encode(),))


def test_an_error_on_a_websocket_is_the_replys() -> None:
    failed = says(
        {"type": "error", "status": 400, "error": {"message": "no such response", "code": "x"}}
    )
    exchange = socket(question(), *call(1), result(9), *failed, *CLOSE)
    exchange = replace(exchange, request=_to("/v1/responses", exchange))
    analysis = analyse(exchange)
    assert analysis.reply.error is not None
    assert "no such response" in analysis.reply.error
    assert codes(exchange) == ["S005"]


def test_what_the_recorder_lost_of_a_websocket_is_told_before_all_else() -> None:
    exchange = socket(question(), *call(1), result(1), *call(2), *CLOSE)
    lost = replace(exchange, frames=exchange.frames[:-5] + exchange.frames[-1:])
    (loss,) = check(lost)
    assert loss.code == "X002"
    assert "the tape is missing 4 records" in loss.message


def test_a_websocket_that_goes_on_has_a_response_that_goes_on() -> None:
    exchange = socket(question(), *call(1), result(1), *call(2, ends=False))
    going = replace(exchange, end=None, open=True, stopped_ns=None)
    first, second = analyse(going).turns
    assert (first.exchange.open, second.exchange.open) == (False, True)
    assert codes(going) == []


def test_idle_records_stand_where_the_response_was_awaited() -> None:
    exchange = replace(socket(*TWO), idle_ns=(5, 25, 95, 10**9))
    first, second = analyse(exchange).turns
    assert first.exchange.idle_ns == (25,)
    assert second.exchange.idle_ns == (95,)


def test_no_other_dialect_is_looked_for_on_a_websocket() -> None:
    chunk = '{"object":"chat.completion.chunk","choices":[{"delta":{"content":"x"}}]}'
    for sent in (
        [(Side.SERVER, text(chunk))],
        [question(), (Side.SERVER, text(chunk))],
        [question()],
    ):
        exchange = socket(*sent, *CLOSE)
        exchange = replace(exchange, request=_to("/v1/x", exchange))
        assert analyse(exchange).reply.dialect == "unknown"
        assert analyse(exchange).turns == ()
        assert codes(exchange) == []


def test_a_request_for_a_stream_gets_one() -> None:
    exchange = socket(asks(input="Hello", stream=True), *call(1), *CLOSE)
    assert analyse(exchange).request.stream
    assert codes(exchange) == []


def test_the_digest_of_a_whole_websocket_repeats_nothing() -> None:
    one = digest(socket(*TWO))
    assert (one.known, one.whole, one.dialect) == (False, False, "openai-responses")


def test_each_response_has_a_digest_with_its_request() -> None:
    first, second = digests_of(analyse(socket(*TWO)))
    assert (first.previous, first.reply_id, first.results) == (None, "resp_1", ())
    assert (second.previous, second.reply_id, second.results) == ("resp_1", "resp_2", ("call_1",))
    for one in (first, second):
        assert (one.exchange, one.known, one.whole, one.lossy) == (1, True, True, False)
        assert one.end_ns is not None
        assert one.t_ns is not None
        assert one.t_ns < one.end_ns
    assert first.end_line is not None
    assert second.line == first.end_line + 1


def test_each_digest_of_a_websocket_that_lost_frames_is_lossy() -> None:
    exchange = socket(*TWO)
    lost = replace(exchange, frames=exchange.frames[:-5] + exchange.frames[-1:])
    assert [one.lossy for one in digests_of(analyse(lost))] == [True, True]


def test_digests_are_in_the_order_of_requests_also_across_websockets() -> None:
    one, other = digests_of(analyse(socket(*TWO)))
    between = replace(one, exchange=2, t_ns=one.end_ns, reply_id="resp_9")
    assert in_order([[one, other], [between]]) == [one, between, other]
    untimed = replace(between, t_ns=None)
    assert in_order([[one, other], [untimed]]) == [one, other, untimed]
    assert in_order([[between], [one]]) == [between, one]


USERS = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "Weather in Ghent?"}],
}
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "rain"}


def repeated(arguments: str = '{"city":"Ghent"}') -> dict[str, object]:
    """The call of response 1, as an item of a later request."""
    return {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "get_weather",
        "arguments": arguments,
    }


def on_tape(*sent: Sent) -> list[tuple[str, int | None]]:
    """Findings on the conversation of a WebSocket, with their lines, alike in `check` and live."""
    exchange = socket(*sent)
    exchange = replace(exchange, request=_to("/v1/responses", exchange))
    report = check_exchanges("socket.tape", [exchange], DEFAULTS)
    found = [each.finding for each in report.reported]
    live = LiveAnalyzer().analyse(None, exchange).findings
    assert {each.code for each in live} == {each.code for each in found}
    return [(each.code, each.line) for each in found]


def test_requests_that_continue_the_conversation_are_healthy() -> None:
    calling = [question(), *call(1), result(1), *call(2), result(2), *call(3), *CLOSE]
    assert on_tape(*calling) == []
    whole = [question(), *call(1), asks(input=[USERS, repeated(), RESULT]), *call(2), *CLOSE]
    assert on_tape(*whole) == []


def test_a_request_that_repeats_a_call_with_other_arguments_is_told_at_its_line() -> None:
    changed = asks(input=[USERS, repeated("{}"), RESULT])
    assert on_tape(question(), *call(1), changed, *call(2), *CLOSE) == [("C002", 13)]


def test_a_request_that_drops_a_call_is_told_at_its_line() -> None:
    more = {**USERS, "content": [{"type": "input_text", "text": "Go on."}]}
    without = asks(input=[USERS, {"role": "assistant", "content": "It rains."}, more])
    found = on_tape(question(), *call(1), without, *call(2), *CLOSE)
    assert ("C001", 13) in found


def test_a_call_without_its_result_that_the_provider_refuses_is_the_apps() -> None:
    message = "No tool output found for function call call_1."
    refused = says({"type": "error", "status": 400, "error": {"message": message, "code": "x"}})
    more = {**USERS, "content": [{"type": "input_text", "text": "Go on."}]}
    exchange = socket(question(), *call(1), asks(input=[USERS, repeated(), more]), *refused, *CLOSE)
    exchange = replace(exchange, request=_to("/v1/responses", exchange))
    assert [
        turn.exchange.response.status for turn in analyse(exchange).turns if turn.exchange.response
    ] == [200, 400]
    explanation = explain([exchange])
    assert explanation.verdict.blame is Blame.APP
    assert explanation.verdict.code == "C005"
    marked = [each for each in explanation.timeline if "C005" in each.codes]
    assert [(each.t_ns, each.what[:8]) for each in marked] == [(90, "requests")]


def test_an_error_within_a_response_is_no_refusal() -> None:
    begun = call(1, ends=False)
    failed = says({"type": "error", "status": 500, "error": {"message": "lost", "code": "x"}})
    (turn,) = analyse(socket(question(), *begun, *failed, *CLOSE)).turns
    assert turn.exchange.response is not None
    assert turn.exchange.response.status == 200


def test_why_names_the_later_request_on_the_same_websocket() -> None:
    exchange = socket(*TWO)
    explanation = explain([exchange], 1)
    assert explanation.verdict.summary == (
        "No defect found: 2 calls arrived complete, and later requests on the same WebSocket"
        " repeat what was delivered."
    )
    assert [(entry.t_ns, entry.what) for entry in explanation.timeline if entry.t_ns == 90] == [
        (90, "requests an answer from gpt-5: 1 message, 1 tool"),
        (90, 'repeats call 0 as delivered: get_weather {"city":"Ghent"}'),
        (90, "sends the result of call_1: rain"),
    ]


def test_why_names_the_mistake_that_a_request_on_a_websocket_shows() -> None:
    changed = {**repeated('{"city":"Bruges"}'), "id": "fc_2", "call_id": "call_2"}
    answer = {**RESULT, "call_id": "call_2"}
    cut = {**changed, "arguments": "{}"}
    exchange = socket(
        *[question(), *call(1), asks(input=[USERS, repeated(), RESULT])],
        *call(2, '{"city":"Bruges"}'),
        *[asks(input=[USERS, repeated(), RESULT, cut, answer]), *call(3), *CLOSE],
    )
    explanation = explain([exchange])
    assert explanation.verdict.code == "C002"
    assert [each.exact for each in explanation.suspects][:1] == [True]
    assert explanation.repetition is not None
    assert explanation.repetition.results == (("call_2", "rain"),)


def test_why_names_each_request_on_a_websocket_that_changes_a_call() -> None:
    first = asks(input=[USERS, repeated("{}"), RESULT])
    two = {**repeated("[]"), "id": "fc_2", "call_id": "call_2"}
    second = asks(input=[USERS, repeated("{}"), RESULT, two, {**RESULT, "call_id": "call_2"}])
    exchange = socket(question(), *call(1), first, *call(2), second, *call(3), *CLOSE)
    found = explain([exchange]).findings
    assert [(each.code, each.line) for each in found if each.code == "C002"] == [
        ("C002", 13),
        ("C002", 21),
    ]


def test_a_request_that_was_refused_and_asked_again_on_the_same_websocket_is_a_remark() -> None:
    slow = says({"type": "error", "status": 429, "error": {"message": "slow down", "code": "x"}})
    lost = says({"type": "error", "status": 400, "error": {"message": "not found", "code": "x"}})
    exchange = socket(question(), *slow, question(), *call(1), result(9), *lost, *CLOSE)
    exchange = replace(exchange, request=_to("/v1/responses", exchange))
    found = check_exchanges("socket.tape", [exchange], DEFAULTS).reported
    assert [(each.finding.severity, each.finding.line) for each in found] == [
        (Severity.INFO, 6),
        (Severity.ERROR, 16),
    ]
    assert "answered in #1" in found[0].finding.message
    assert explain([exchange]).verdict.code == "S005"


def test_a_request_on_another_websocket_continues_the_conversation() -> None:
    first = socket(question(), *call(1), reason=EndReason.UPSTREAM_CLOSED)
    second = socket(asks(input=[USERS, repeated("{}"), RESULT]), *call(2), *CLOSE)
    moved = replace(
        second,
        number=2,
        frames=tuple(each._replace(t_ns=each.t_ns + 1000) for each in second.frames),
    )
    report = check_exchanges("socket.tape", [first, moved], DEFAULTS)
    assert [(each.finding.code, each.finding.exchange) for each in report.reported] == [("C002", 2)]


def test_a_websocket_on_which_nothing_went_is_told_as_one() -> None:
    sent: list[Sent] = []
    assert analyse(socket(*sent)).stream.events == ()
    torn = socket((Side.SERVER, frame(1, b"ab", fin=False)))
    assert analyse(torn).stream.events == ()
