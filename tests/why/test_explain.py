from dataclasses import replace

import pytest

from deltatape.demo.demo import INCIDENTS
from deltatape.errors import UsageError
from deltatape.model.exchange import Source, Tap
from deltatape.model.explanation import EventSource, Explanation, VerdictKind
from deltatape.model.finding import Blame
from deltatape.model.tape_summary import LogEntry, LogStream, TapeContext
from deltatape.store.reader import open_tape
from deltatape.why.explain import came_from, explain
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import (
    FINISH_TEXT,
    TEXT,
    USER,
    asks,
    assistant,
    call,
    conversation,
    pasted,
    result,
    timed,
)
from helpers.watched import CALLS, watched

TWO = [*call("get"), *call("put", '{"b":2}', 1), FINISH]
BROKEN = asks(
    USER,
    assistant(("c2", "put", ""), ("x", "other", "{}")),
    result("c2", "Unexpected end of JSON input"),
)


@pytest.mark.slow
def test_the_story_of_a_lost_call() -> None:
    explanation = explain(conversation((asks(USER), TWO), (BROKEN, [TEXT, FINISH_TEXT])))
    assert (explanation.tape, explanation.exchange, explanation.timed) == ("x.tape", 1, True)
    assert explanation.verdict.blame is Blame.APP
    assert {finding.code for finding in explanation.findings} == {"C001", "C002", "C009"}
    repetition = explanation.repetition
    assert repetition
    assert [(each.index, each.repetition is None, each.differs) for each in repetition.calls] == [
        (0, True, True),
        (1, False, True),
    ]
    assert [call.name for call in repetition.extra] == ["other"]
    assert repetition.results == (("c2", "Unexpected end of JSON input"),)
    later = [each for each in explanation.timeline if each.exchange == 2]
    assert [each.what for each in later] == [
        "does not repeat call 0",
        "repeats call 1 differently: put (no arguments)",
        "repeats a call that was never delivered: other",
        "sends the result of c2: Unexpected end of JSON input",
    ]
    assert [each.codes for each in later] == [("C001",), ("C002",), (), ("C009",)]
    assert {each.source for each in later} == {EventSource.APP}


def test_the_request_and_what_arrived() -> None:
    tools = [{"type": "function", "function": {"name": "get"}}]
    request = asks(USER, tools=tools, tool_choice="auto")
    explanation = explain([timed((0.1, TEXT), (0.2, FINISH_TEXT), request=request)])
    assert (explanation.promise.model, explanation.promise.stream) == ("m", True)
    assert (explanation.promise.tools, explanation.promise.tool_choice) == (("get",), "auto")
    assert (explanation.arrival.text, explanation.arrival.finish_reason) == (5, "stop")
    assert (explanation.arrival.status, explanation.arrival.events, explanation.arrival.reads) == (
        200,
        2,
        2,
    )
    assert explanation.arrival.duration_ns == 200_000_000
    assert explanation.repetition is None


def test_the_worst_exchange_is_the_first_with_the_gravest_finding() -> None:
    bad = [calls(entry(0, "c1", name="get", arguments="[1]")), FINISH]
    healthy = [TEXT, FINISH_TEXT]
    tape = conversation((asks(USER), healthy), (asks(), bad), (asks(), bad))
    assert explain(tape).exchange == 2


@pytest.mark.slow
def test_a_reply_that_the_application_spoiled_is_the_worst_not_the_request_that_shows_it() -> None:
    tape = conversation((asks(USER), TWO), (BROKEN, [TEXT, FINISH_TEXT, FINISH]))
    assert explain(tape).exchange == 1


def test_without_findings_the_last_reply_is_shown() -> None:
    healthy = [TEXT, FINISH_TEXT]
    tape = conversation((asks(USER), healthy), (asks(), healthy), (asks(), []))
    assert explain(tape).exchange == 2
    assert explain([pasted(done=False, status=204)]).exchange == 1


def test_an_exchange_can_be_named() -> None:
    tape = conversation((asks(USER), TWO), (asks(), [TEXT, FINISH_TEXT]))
    explanation = explain(tape, 2)
    assert (explanation.exchange, explanation.repetition) == (2, None)


def test_a_faithful_repetition_without_calls_is_shown() -> None:
    tape = conversation(
        (asks(USER), [TEXT, FINISH_TEXT]), (asks(USER, assistant(text="Hello"), USER), [])
    )
    explanation = explain(tape, 1)
    assert explanation.timeline[-1].what == "repeats the reply, which has no calls"
    faithful = asks(USER, assistant(("c1", "get", '{"a":1}')), result("c1"))
    explanation = explain(conversation((asks(USER), [*call(), FINISH]), (faithful, [])), 1)
    assert explanation.timeline[-2].what == 'repeats call 0 as delivered: get {"a":1}'
    assert not explanation.findings


def test_a_call_without_name_or_times_is_shown() -> None:
    tape = conversation(
        (asks(USER), [*call(), FINISH]), (asks(USER, assistant((None, None, "{}")), USER), [])
    )
    assert explain(tape).timeline[-1].what == "repeats call 0 differently: no name {}"


def test_stories_of_pasted_streams_have_no_times() -> None:
    first = pasted(*call(), FINISH, request=asks(USER))
    second = replace(
        pasted(request=asks(USER, assistant(("c1", "get", "")), result("c1"))), number=2
    )
    explanation = explain([first, second])
    assert explanation.exchange == 1
    assert {each.t_ns for each in explanation.timeline} == {None}
    assert explanation.arrival.duration_ns is None
    assert explanation.verdict.blame is Blame.APP


def test_there_must_be_something_to_tell() -> None:
    with pytest.raises(UsageError, match="no exchange on the tape"):
        explain([])
    with pytest.raises(UsageError, match="#7: no such exchange"):
        explain([pasted(TEXT)], 7)


def test_the_request_that_shows_the_mistake_tells_of_it_too() -> None:
    tape = conversation((asks(USER), TWO), (BROKEN, [TEXT, FINISH_TEXT]))
    explanation = explain(tape, 2)
    assert explanation.verdict.blame is Blame.APP
    assert explanation.verdict.summary.startswith(
        "The stream was correct; the mistake is in the app: call 1"
    )
    assert explanation.timeline[0].codes == ("C001", "C002", "C005", "C009")


def test_a_refused_request_is_blamed_on_what_the_application_put_into_it() -> None:
    first, second = conversation((asks(USER), TWO), (BROKEN, []))
    assert second.response
    refused = replace(second, response=replace(second.response, status=400))
    summary = explain([first, refused], 2).verdict.summary
    assert "call 1 (put, c2) of #1 was delivered with" in summary
    assert "This request was refused: the answer is HTTP 400" in summary


def test_a_request_that_goes_on_without_the_reply_blames_nobody() -> None:
    tape = conversation((asks(USER), TWO), (asks(USER, USER), [TEXT, FINISH_TEXT]))
    verdict = explain(tape, 1).verdict
    assert (verdict.kind, verdict.blame) == (VerdictKind.UNPROVABLE, None)
    assert "request #2 continues the same history without this reply" in verdict.summary


def test_the_story_of_a_dead_zone_shows_what_the_application_printed() -> None:
    tape = watched(conversation(CALLS), 42.5, stop="child-exit", exit_code=0)
    line = b"Filtering out malformed tool call (missing id or name)"
    printed = LogEntry(t_ns=600_000_000, stream=LogStream.STDERR, line=line)
    explanation = explain(tape, context=TapeContext(logs=(printed,)))
    assert [(each.source.value, each.what, each.codes) for each in explanation.timeline][-4:] == [
        ("recorder", "the transfer ended normally", ()),
        ("recorder", "watched for 42.0 s: no request of this conversation", ("D003",)),
        ("log", f"stderr: {line.decode()}", ("C009",)),
        ("recorder", "the app exited with 0; the recorder stopped", ()),
    ]
    assert explanation.verdict.code == "C009"
    assert explanation.start_ns == 0


def test_what_goes_on_and_is_in_order_so_far_is_shown_as_such() -> None:
    (exchange,) = conversation((asks(USER), [TEXT]))
    explanation = explain([replace(exchange, end=None, open=True)])
    assert explanation.verdict.summary == "Still in progress; no defect so far."


def test_the_applications_own_endpoint_is_not_judged_as_a_provider() -> None:
    provider, app = conversation((asks(USER), [*call(), FINISH]), (asks(USER, USER), [TEXT]))
    explanation = explain([provider, replace(app, tap=Tap.APP)], 1)
    assert "so the tape does not show what the app made of" in explanation.verdict.summary
    own = replace(timed((0.1, b"data: {}\n\n")), number=2, tap=Tap.APP)
    own = replace(own, request=replace(own.request, target=(b"/api/chat",)))
    explanation = explain([provider, own], 2)
    assert explanation.verdict.summary.startswith("No transport defect in the app's own answer")
    assert [each.exchange for each in explanation.timeline if "provider" in each.what] == [1, 1]


def test_findings_of_other_exchanges_are_known() -> None:
    bad = [calls(entry(0, "c1", name="get", arguments="[1]")), FINISH]
    tape = conversation((asks(USER), bad), (asks(), [TEXT, FINISH_TEXT]))
    assert [finding.code for finding in explain(tape, 2).elsewhere] == ["T006"]
    assert explain(tape, 1).elsewhere == ()


def test_no_response_at_all_is_a_story_too() -> None:
    explanation = explain([timed(framing=None)])
    assert explanation.arrival.status is None


def marked(explanation: Explanation) -> list[tuple[int, str, tuple[str, ...]]]:
    """The marked entries of later requests."""
    later = (each for each in explanation.timeline if each.exchange != explanation.exchange)
    return [(each.exchange, each.what, each.codes) for each in later if each.codes]


def test_an_error_text_in_a_message_of_its_own_is_a_line() -> None:
    tape = list(open_tape(INCIDENTS / "4-text-tool-calls" / "broken.tape"))
    assert marked(explain(tape, 1)) == [
        (2, "sends an error text: invalid character '>' after top-level value", ("C009",))
    ]


def test_a_later_request_that_shows_something_about_the_reply_is_a_line() -> None:
    tape = list(open_tape(INCIDENTS / "5-agent-loop" / "broken.tape"))
    assert marked(explain(tape, 3)) == [(4, "a later request of this conversation", ("C004",))]


def test_a_result_that_comes_twice_marks_the_result() -> None:
    twice = asks(USER, assistant(("c1", "get", '{"a":1}')), result("c1"), result("c1", "again"))
    explanation = explain(
        conversation((asks(USER), [*call(), FINISH]), (twice, [TEXT, FINISH_TEXT])), 1
    )
    assert [(number, codes) for number, _, codes in marked(explanation)] == [(2, ("C004",))]
    assert marked(explanation)[0][1].startswith("sends the result of c1")


def test_a_mark_about_a_result_stands_at_that_result() -> None:
    two = [*call("get", '{"city":"Lisbon"}'), *call("get", '{"city":"Porto"}', index=1), FINISH]
    said = assistant(("c1", "get", '{"city":"Lisbon"}'), ("c2", "get", '{"city":"Porto"}'))
    swapped = (result("c1", '{"city":"Porto","t":21}'), result("c2", '{"city":"Lisbon","t":9}'))
    explanation = explain(conversation((asks(USER), two), (asks(USER, said, *swapped), [])), 1)
    (marked,) = [each.what for each in explanation.timeline if "C015" in each.codes]
    assert marked.startswith("sends the result of c1")


(EXCHANGE,) = conversation((asks(USER), [TEXT]))


@pytest.mark.parametrize("name", [b"x-request-id", b"Request-ID", b"CF-Ray"])
def test_the_upstream_the_request_and_the_hour_are_shown(name: bytes) -> None:
    assert EXCHANGE.response
    named = replace(EXCHANGE.response, headers=((name, b"req_1"),))
    assert came_from(replace(EXCHANGE, response=named)) == (
        "https://api.openai.com, request id req_1, tape begun 2026-11-21T20:36:01Z"
    )


def test_unknown_facts_are_left_out() -> None:
    assert came_from(replace(EXCHANGE, response=None)) == (
        "https://api.openai.com, tape begun 2026-11-21T20:36:01Z"
    )
    bare = pasted(TEXT)
    assert came_from(replace(bare, request=replace(bare.request, upstream=""))) == ""


@pytest.mark.slow
def test_times_of_imported_exchanges_are_on_one_axis_unless_each_has_its_own() -> None:
    first, second = (
        replace(each, source=Source.IMPORT, end=None)
        for each in conversation((asks(USER), TWO), (BROKEN, [TEXT, FINISH_TEXT]))
    )
    times = {each.t_ns for each in explain([first, second], 1).timeline if each.exchange == 2}
    assert times == {second.request.t_ns}
    apart = replace(second, request=replace(second.request, t_ns=0))
    timeline = explain([first, apart], 1).timeline
    assert {each.t_ns for each in timeline if each.exchange == 2} == {None}
    assert timeline[0].exchange == 1
    assert all(each.t_ns is not None for each in timeline if each.exchange == 1)
