from dataclasses import replace

import pytest

from deltatape.diagnose.check import check
from deltatape.diagnose.digest import digest
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.model.exchange import EndReason, Exchange, Request
from deltatape.model.finding import Blame
from deltatape.model.reply import CallStatus
from deltatape.model.stream import Format
from deltatape.model.websocket import Side
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
    assert (first.first, second.first) == (0, 7)
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
    assert turn.first == 1
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
        [question(), *says({"type": "session.created"}), *call(1)],
        [question()],
    ):
        exchange = socket(*sent, *CLOSE)
        assert analyse(exchange).reply.dialect == "unknown"
        assert analyse(exchange).turns == ()
        assert codes(exchange) == []


def test_later_requests_are_not_compared_with_what_a_websocket_brought() -> None:
    one = digest(socket(*TWO))
    assert (one.known, one.whole, one.dialect) == (False, False, "openai-responses")


def test_a_websocket_on_which_nothing_went_is_told_as_one() -> None:
    sent: list[Sent] = []
    assert analyse(socket(*sent)).stream.events == ()
    torn = socket((Side.SERVER, frame(1, b"ab", fin=False)))
    assert analyse(torn).stream.events == ()
