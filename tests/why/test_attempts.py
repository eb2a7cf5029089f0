"""Attempts of one request: how they are linked and told, and what they make of a verdict."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.conversation.attempts import attempts_of, row_of, sentence, settled
from deltatape.diagnose.digest import digest
from deltatape.model.attempts import Attempts
from deltatape.model.exchange import EndReason, Exchange, Tap
from deltatape.model.explanation import VerdictKind
from deltatape.render.explanation import explanation_json
from deltatape.store.reader import open_tape
from deltatape.why.explain import explain
from deltatape.why.overview import overview
from helpers.chat import FINISH, choice
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, assistant, call, conversation, result
from helpers.watched import watched

ANSWER = [TEXT, FINISH_TEXT]
LIMIT: list[object] = [{"error": {"message": "Rate limit reached", "type": "requests"}}]
MS = 1_000_000
OTHER: dict[str, object] = {"role": "user", "content": "And the time?"}


def refused(exchange: Exchange, status: int = 429) -> Exchange:
    """`exchange` with an error answer."""
    assert exchange.response
    return replace(exchange, response=replace(exchange.response, status=status))


def cut(exchange: Exchange, reason: EndReason, events: int = 1) -> Exchange:
    """`exchange` broken off after some events."""
    assert exchange.end
    reads = exchange.reads[:events]
    size = sum(len(read.data) for read in reads)
    return replace(exchange, reads=reads, end=replace(exchange.end, reason=reason, bytes=size))


def rows(exchanges: Sequence[Exchange]) -> tuple[Attempts, ...]:
    return attempts_of([digest(each) for each in exchanges])


def retried() -> list[Exchange]:
    """A refused request, and the same ten seconds later, which is answered."""
    first, second = conversation((asks(USER), LIMIT), (asks(USER), ANSWER))
    return [refused(first), second]


def test_a_refused_request_that_is_asked_again_is_one_row_of_attempts() -> None:
    (row,) = rows(retried())
    assert (row.answered, [each.exchange for each in row.tries]) == (True, [1, 2])
    assert sentence(row) == "2 attempts: #1 status 429, sent again after 9.8 s and answered in #2"
    assert settled([row]) == {1}
    assert row_of([row], 2) is row
    assert row_of([row], 3) is None


def test_a_stream_that_broke_off_and_is_asked_for_without_streaming_is_shown_as_such() -> None:
    whole = {**asks(USER), "stream": False}
    first, second = conversation((asks(USER), [TEXT, TEXT]), (whole, ANSWER))
    (row,) = rows([cut(first, EndReason.UPSTREAM_RESET), second])
    assert sentence(row) == (
        "2 attempts: #1 the stream broke off, sent again without streaming after 9.7 s"
        " and answered in #2"
    )
    back = rows([cut(replace(second, number=1), EndReason.UPSTREAM_CLOSED), _later(first)])
    assert back[0].tries[1].changed == "as a stream"
    assert back[0].tries[0].outcome == "the answer broke off"


def _later(exchange: Exchange) -> Exchange:
    """`exchange` as the third of a conversation."""
    return replace(conversation(*[(asks(USER), ANSWER)] * 3)[2], number=exchange.number + 2)


def test_a_client_that_gave_up_is_shown_with_the_time_that_it_waited() -> None:
    first, second = conversation((asks(USER), [TEXT, TEXT]), (asks(USER), ANSWER))
    (row,) = rows([cut(first, EndReason.CLIENT_CLOSED), second])
    assert row.tries[0].outcome == "left by the client after 0.3 s"


def test_no_response_and_an_error_in_a_stream_are_outcomes_too() -> None:
    first, second, third = conversation(
        (asks(USER), ANSWER), (asks(USER), [*LIMIT]), (asks(USER), ANSWER)
    )
    silent = replace(cut(first, EndReason.REFUSED, 0), response=None)
    (row,) = rows([silent, second, third])
    outcomes = [each.outcome for each in row.tries]
    assert outcomes[0] == "no response"
    assert outcomes[1].startswith("error in the answer (Rate limit reached")
    assert outcomes[2] == "answered"


def test_of_many_attempts_the_first_and_the_last_are_shown() -> None:
    tape = [refused(each) for each in conversation(*[(asks(USER), LIMIT)] * 9)]
    (row,) = rows(tape)
    told = sentence(row)
    assert told.startswith("9 attempts, all failed: #1 status 429, sent again after 9.8 s: #2")
    assert ", 3 more failed attempts, " in told
    assert told.endswith("#9 status 429")


def test_what_is_asked_side_by_side_or_otherwise_is_not_an_attempt() -> None:
    first, second = retried()
    assert first.end
    beside = replace(first, end=replace(first.end, t_ns=second.request.t_ns + MS))
    assert rows([beside, second]) == ()
    answered = conversation((asks(USER), ANSWER), (asks(USER), ANSWER))
    assert rows(answered) == ()
    other = conversation((asks(USER), LIMIT), (asks(OTHER), ANSWER))
    assert rows([refused(other[0]), other[1]]) == ()
    assert rows([replace(each, tap=Tap.APP) for each in retried()]) == ()
    unknown = conversation((asks(), LIMIT), (asks(), ANSWER))
    assert rows([refused(unknown[0]), unknown[1]]) == ()


def test_what_the_recorder_did_not_see_to_its_end_is_not_known_to_have_failed() -> None:
    first, second = retried()
    assert rows([replace(first, end=None), second]) == ()


def test_a_request_goes_on_from_one_failed_attempt_only() -> None:
    tape = conversation(*[(asks(USER), LIMIT)] * 2, *[(asks(USER), ANSWER)] * 2)
    first, second = refused(tape[0]), refused(tape[1])
    start = replace(second.request, t_ns=first.request.t_ns)
    beside = replace(second, request=start)
    two = rows([first, beside, *tape[2:]])
    assert [[each.exchange for each in row.tries] for row in two] == [[1, 4], [2, 3]]


def test_an_attempt_that_still_goes_on_is_shown_as_such() -> None:
    first, second = retried()
    going = replace(second, end=None, open=True, reads=second.reads[:1])
    (row,) = rows([first, going])
    assert (row.answered, row.pending) == (False, True)
    assert sentence(row).endswith("sent again after 9.8 s in #2, which is still going on")
    assert row.tries[1].outcome == "still going on"


def test_without_times_attempts_are_in_order() -> None:
    first, second = (replace(digest(each), t_ns=None, end_ns=None) for each in retried())
    (row,) = attempts_of([first, second])
    assert sentence(row) == "2 attempts: #1 status 429, sent again and answered in #2"
    left = replace(first, status=200, left=True)
    assert attempts_of([left, second])[0].tries[0].outcome == "left by the client"


def test_attempts_that_are_asked_again_at_once_have_a_short_pause() -> None:
    first, second = retried()
    assert first.end
    close = replace(first, end=replace(first.end, t_ns=second.request.t_ns - 20 * MS))
    assert "sent again after 0.02 s" in sentence(rows([close, second])[0])


def test_a_tape_whose_only_errors_were_answered_later_is_healthy() -> None:
    explanation = explain(retried())
    assert (explanation.verdict.kind, explanation.exchange) == (VerdictKind.HEALTHY, 2)
    assert explanation.verdict.summary.startswith("The reply arrived complete.")
    assert (
        "Failed attempts were answered later (2 attempts: #1 status 429"
        in explanation.verdict.summary
    )
    seen = overview(retried())
    assert (seen.worst, seen.findings) == (None, 1)


def test_a_later_error_is_worse_than_an_attempt_that_was_answered() -> None:
    broken = (asks(OTHER), [choice({"content": "x"}), *LIMIT])
    third = conversation(*[(asks(USER), ANSWER)] * 2, broken)[2]
    explanation = explain([*retried(), third])
    assert (explanation.exchange, explanation.verdict.code) == (3, "S005")


def test_why_on_any_attempt_shows_all_of_them() -> None:
    first, second = explain(retried(), 1), explain(retried(), 2)
    assert (first.verdict.blame, first.verdict.code) == ("upstream", "S005")
    for explanation in (first, second):
        assert "2 attempts: #1 status 429, sent again after 9.8 s and answered in #2." in (
            explanation.verdict.summary
        )
        assert explanation.attempts == rows(retried())[0]
    told = [(each.exchange, each.what) for each in first.timeline if each.exchange == 2]
    assert told == [(2, "sent again after 9.8 s: answered")]
    earlier = [each.what for each in second.timeline if each.exchange == 1]
    assert earlier == ["first attempt: status 429"]


def test_six_attempts_and_the_exit_code_of_the_app() -> None:
    tape = [refused(each) for each in conversation(*[(asks(USER), LIMIT)] * 6)]
    explanation = explain(watched(tape, 52, stop="child-exit", exit_code=1))
    assert explanation.exchange == 1
    assert "6 attempts, all failed: #1 status 429" in explanation.verdict.summary
    assert explanation.verdict.summary.endswith("then the app exited with 1.")
    assert [(each.exchange, each.what) for each in explanation.timeline][-1] == (
        6,
        "the app exited with 1; the recorder stopped",
    )
    last = explain(watched(tape, 52, stop="child-exit", exit_code=1), 6)
    assert [each.what for each in last.timeline].count(
        "the app exited with 1; the recorder stopped"
    ) == 1


def test_a_storm_of_attempts_is_shown_once() -> None:
    fires = Path(__file__).parents[2] / "recordings" / "rules" / "C008" / "fires.tape"
    explanation = explain(list(open_tape(fires)), 5)
    assert explanation.attempts
    assert "5 attempts" in explanation.verdict.summary


def test_of_many_requests_that_failed_first_three_are_shown() -> None:
    tape: list[Exchange] = []
    turns = [(asks({"role": "user", "content": str(at // 2)}), ANSWER) for at in range(10)]
    for at, each in enumerate(conversation(*turns)):
        tape.append(refused(each) if at % 2 == 0 else each)
    assert "; 2 more requests likewise)." in explain(tape).verdict.summary


@pytest.mark.parametrize("reason", [EndReason.UPSTREAM_RESET, EndReason.CLIENT_CLOSED])
def test_a_call_that_broke_off_and_was_asked_for_again_blames_nobody(reason: EndReason) -> None:
    after = asks(USER, assistant(("c1", "get", '{"a":1}')), result("c1"))
    whole = [*call(), FINISH]
    first, second, third = conversation((asks(USER), whole), (asks(USER), whole), (after, ANSWER))
    explanation = explain([cut(first, reason, 2), second, third])
    assert explanation.verdict.kind is VerdictKind.HEALTHY
    assert explanation.verdict.blame is None


def test_a_program_reads_the_attempts() -> None:
    told = json.loads(explanation_json(explain(retried())))
    assert told["attempts"]["answered"] is True
    assert [each["exchange"] for each in told["attempts"]["tries"]] == [1, 2]
