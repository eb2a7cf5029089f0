import json
from dataclasses import replace

import pytest

from deltatape.diagnose.rebuild import analyse, rebuild
from deltatape.model.exchange import EndReason, Exchange, Framing, Source
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.rule_settings import DEFAULTS
from deltatape.rules.context import RuleContext
from deltatape.rules.endings import unended
from deltatape.rules.finish import FinishMeaning, finish_of, meaning
from helpers import gemini, messages, responses
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.contexts import context_of, findings_of
from helpers.exchanges import (
    FINISH_TEXT,
    TEXT,
    USER,
    asks,
    call,
    codes,
    found,
    from_bytes,
    one,
    pasted,
    timed,
)
from helpers.responses import added, created, done, ended, findings, function, message, say
from helpers.responses import call as function_call


def test_an_end_without_the_terminal_signal_is_a_finding_of_the_rule_that_asks() -> None:
    (claim,) = unended(context_of(timed((0.1, TEXT))), "a hint")
    assert (claim.hint, claim.severity) == ("a hint", Severity.ERROR)


def test_a_pasted_stream_whose_last_event_is_not_whole_may_have_lost_the_signal() -> None:
    torn = from_bytes(sse(TEXT, done=False) + b'data: {"choices":[]}')
    (claim,) = unended(context_of(torn), "a hint")
    assert claim.severity is Severity.WARNING
    (claim,) = unended(context_of(pasted(TEXT, done=False)), "a hint")
    assert claim.severity is Severity.ERROR


def test_a_body_that_could_not_be_decoded_may_hold_the_signal() -> None:
    coded = ((b"Content-Type", b"text/event-stream"), (b"Content-Encoding", b"gzip"))
    exchange = timed((0.1, b"no gzip"), headers=coded)
    assert codes(exchange) == ["W009"]


def test_an_end_as_it_should_be_is_none() -> None:
    assert not list(unended(context_of(pasted(TEXT, FINISH_TEXT)), "a hint"))


def test_a_body_that_ended_in_good_order_without_the_terminal_event_is_upstreams_fault() -> None:
    finding = one(timed((0.1, TEXT)), "S001")
    assert finding.message == "the stream ended without finish_reason and [DONE]"
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.PROVEN)
    assert finding.event == 0


@pytest.mark.parametrize("framed", ["{0}\n{0}\n", "[{0},\r\n{0}]"])
def test_every_format_of_streams_has_a_terminal_event(framed: str) -> None:
    body = framed.format(json.dumps(TEXT)).encode()
    finding = one(timed((0.1, body), headers=()), "S001")
    assert (finding.blame, finding.event) == (Blame.UPSTREAM, 1)


def test_a_broken_connection_looks_the_same_where_the_end_of_the_connection_ends_the_body() -> None:
    assert one(timed((0.1, TEXT), framing=Framing.CLOSE), "S001").blame is None


def test_a_pasted_stream_tells_nothing_of_the_transport() -> None:
    assert one(pasted(TEXT, done=False), "S001").blame is None


@pytest.mark.parametrize(
    ("reason", "fires"),
    [
        (EndReason.UPSTREAM_RESET, True),
        (EndReason.UPSTREAM_CLOSED, True),
        (EndReason.CLIENT_CLOSED, False),
        (EndReason.STOPPED, False),
        (None, False),
    ],
)
def test_only_an_end_that_upstream_made_counts(reason: EndReason | None, *, fires: bool) -> None:
    exchange = timed((0.1, TEXT))
    assert exchange.end
    end = replace(exchange.end, reason=reason) if reason else None
    findings = found(replace(exchange, end=end), "S001")
    assert [finding.blame for finding in findings] == ([Blame.TRANSPORT] if fires else [])


def test_an_error_instead_of_the_end_is_reported_by_another_rule() -> None:
    assert not found(pasted(TEXT, {"error": {"message": "overloaded"}}, done=False), "S001")


def test_the_sentinel_or_the_finish_reason_is_enough() -> None:
    assert not found(pasted(TEXT, FINISH_TEXT, done=False), "S001")
    assert not found(pasted(TEXT, done=True), "S001")


def test_what_is_not_an_event_stream_or_no_success_is_not_looked_at() -> None:
    whole = b'{"choices":[{"index":0,"message":{"content":"Hi"}}]}'
    assert not found(from_bytes(whole, content_type="application/json"), "S001")
    assert not found(pasted(TEXT, done=False, status=500), "S001")


def test_a_stream_of_an_unknown_dialect_has_no_terminal_event() -> None:
    exchange = replace(
        Exchange.from_body(b"data: 1\n\n", content_type="text/event-stream", url="http://x/y"),
        source=Source.MITM,
    )
    assert not found(exchange, "S001")
    assert not context_of(exchange).recognised


def test_a_finish_reason_without_the_dialects_end_is_a_warning() -> None:
    analysis = analyse(pasted(TEXT, choice({}, "stop"), done=False))
    context = RuleContext(
        exchange=analysis.exchange,
        stream=replace(analysis.stream, events=()),
        request=analysis.request,
        reply=replace(analysis.reply, terminated=False, terminator="message_stop"),
        settings=DEFAULTS,
    )
    (finding,) = findings_of("S001", context)
    assert finding.severity is Severity.WARNING
    assert "there was a finish reason" in finding.message


NAMED = {"type": "function", "function": {"name": "get"}}


@pytest.mark.parametrize("wanted", [None, "auto", "required"])
def test_calls_under_a_normal_end_are_reported(wanted: object) -> None:
    request = asks(USER, tool_choice=wanted)
    finding = one(pasted(*call(), FINISH_TEXT, request=request), "S002")
    assert finding.message == "the finish reason is 'stop', but the reply has 1 tool call"


def test_calls_without_any_finish_reason_are_reported() -> None:
    finding = one(pasted(*call()), "S002")
    assert finding.message == (
        "no finish reason came before the terminal event, and the reply has 1 tool call"
    )
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.UPSTREAM)
    assert not found(pasted(TEXT), "S002")
    assert codes(pasted(*call(), done=False)) == ["S001"]
    assert not found(replace(pasted(*call()), end=None, open=True), "S002")
    assert not found(pasted(*call(), {"error": {"message": "overloaded"}}), "S002")


def test_a_forced_tool_ends_with_stop_by_right() -> None:
    request = asks(USER, tool_choice=NAMED)
    assert not found(pasted(*call(), FINISH_TEXT, request=request), "S002")


def test_text_may_end_with_stop_and_calls_with_their_own_word() -> None:
    assert not found(pasted(choice({"content": "a"}), FINISH_TEXT), "S002")
    assert not found(pasted(*call(), choice({}, "tool_calls")), "S002")


def test_a_second_finish_reason_is_reported_by_another_rule() -> None:
    exchange = pasted(*call(), choice({}, "tool_calls"), FINISH_TEXT)
    assert not found(exchange, "S002")


def test_dialects_without_a_word_for_calls_are_not_looked_at() -> None:
    analysis = analyse(pasted(*call(), FINISH_TEXT))
    context = RuleContext(
        exchange=analysis.exchange,
        stream=analysis.stream,
        request=analysis.request,
        reply=replace(analysis.reply, tool_word=False),
        settings=DEFAULTS,
    )
    assert not list(findings_of("S002", context))


def test_promised_calls_that_never_came_are_reported_alone() -> None:
    exchange = pasted(TEXT, FINISH)
    assert one(exchange, "S003").evidence == "Hello"
    assert codes(exchange) == ["S003"]


def test_calls_that_came_and_none_that_were_promised_are_fine() -> None:
    assert not found(pasted(*call(), FINISH), "S003")
    assert not found(pasted(TEXT, FINISH_TEXT), "S003")


def test_a_client_that_left_there_would_have_missed_a_later_call() -> None:
    exchange = timed((0.1, TEXT), (0.2, FINISH), end_s=0.3)
    assert exchange.end
    left = replace(exchange, end=replace(exchange.end, reason=EndReason.CLIENT_CLOSED))
    assert one(left, "S003").message.endswith(
        "no tool call before it; the client disconnected here, so a later one would not"
        " be on the tape"
    )
    assert one(exchange, "S003").message.endswith("but the reply has no tool call")


def test_a_second_finish_reason_is_reported() -> None:
    finding = one(pasted(*call(), FINISH, FINISH_TEXT), "S004")
    assert "'tool_calls', then 'stop'" in finding.message


def test_one_finish_reason_is_fine() -> None:
    assert not found(pasted(*call(), FINISH), "S004")


SPOKEN = (created(), added(message()), say("Hi"), done(message("Hi")))


def snapshots(*events: object) -> list[str]:
    return [one.severity for one in findings(*events) if one.code == "S008"]


def test_a_final_response_without_the_calls_that_came_is_a_warning() -> None:
    assert snapshots(created(), *function_call(), ended()) == ["warning"]


def test_without_any_call_it_is_one_too() -> None:
    assert snapshots(*SPOKEN, ended()) == ["warning"]


def test_a_final_response_that_lists_what_came_is_fine() -> None:
    assert snapshots(*SPOKEN, ended(message("Hi"))) == []
    assert snapshots(created(), *function_call(), ended(function('{"a":1}'))) == []
    assert snapshots(created(), ended()) == []


HALF = calls(entry(0, "c1", name="get", arguments='{"a":'))


def test_a_limit_in_the_arguments_is_an_error() -> None:
    stream = timed((0.1, HALF), (0.2, choice({}, "length")), (0.3, b"data: [DONE]\n\n"))
    finding = one(stream, "S009")
    assert finding.event == 1  # which has the finish reason
    assert finding.severity is Severity.ERROR
    assert finding.blame is None
    assert "in the arguments of call 0 (get)" in finding.message


def test_a_limit_in_the_text_is_a_warning() -> None:
    assert one(pasted(TEXT, choice({}, "length")), "S009").severity is Severity.WARNING


def test_a_filter_does_what_it_is_for_and_blames_nobody() -> None:
    finding = one(pasted(TEXT, choice({}, "content_filter")), "S009")
    assert finding.blame is None
    assert finding.message.startswith("a content filter of the provider cut the reply")
    assert finding.hint.startswith("change what the request asks for")


def test_a_normal_end_is_fine() -> None:
    assert not found(pasted(TEXT, FINISH_TEXT), "S009")


SECOND = calls(entry(1, "c2", name="put", arguments='{"b":2}'))


def of_messages(*frames: messages.Frame) -> Exchange:
    body = messages.sse(*frames)
    return Exchange.from_body(body, content_type="text/event-stream", url=messages.URL)


def late(finding: Finding) -> str:
    return finding.message.partition(";")[0]


def test_a_call_that_is_opened_after_the_finish_reason_is_an_error() -> None:
    finding = one(pasted(*call(), FINISH, SECOND), "S010")
    assert finding.message == (
        "call 1 (put) starts after the finish reason 'tool_calls' of event 3, in event"
        " 4; a client that stops reading at the finish reason never gets it"
    )
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.UPSTREAM)
    assert (finding.confidence, finding.event) == (Confidence.LIKELY, 4)


def test_it_is_proven_where_a_recorder_took_the_bytes() -> None:
    reads = [(0.1 * at, chunk) for at, chunk in enumerate((TEXT, FINISH, SECOND), 1)]
    finding = one(timed(*reads, end_s=1.0), "S010")
    assert finding.confidence is Confidence.PROVEN
    assert [each.explanation for each in finding.excluded] == [
        "the recorder mixed up the order",
        "the server repeats its finish reason on every event",
    ]


def test_arguments_that_go_on_after_the_finish_reason_are_an_error() -> None:
    opened, *pieces = call()
    finding = one(pasted(opened, pieces[0], FINISH, pieces[1]), "S010")
    assert late(finding) == (
        "call 0 (get) continues after the finish reason 'tool_calls' of event 2, in event 3"
    )


def test_a_finish_reason_after_each_call_hides_the_second_one() -> None:
    finding = one(pasted(*call(), FINISH, SECOND, FINISH), "S010")
    assert "call 1 (put)" in finding.message


def test_text_after_the_finish_reason_is_a_warning() -> None:
    finding = one(pasted(*call(), FINISH, TEXT), "S010")
    assert finding.severity is Severity.WARNING
    assert (
        late(finding) == "text arrives after the finish reason 'tool_calls' of event 3, in event 4"
    )


@pytest.mark.parametrize("last", [{"choices": []}, choice({"content": ""}), choice({}), FINISH])
def test_events_without_content_may_follow_the_end(last: object) -> None:
    assert not found(pasted(*call(), FINISH, last), "S010")


def test_a_finish_reason_on_every_event_says_nothing_of_what_follows() -> None:
    said = [choice({"content": "a"}, "stop")] * 5
    assert codes(pasted(*said)) == ["S004"]


def test_a_call_behind_the_sentinel_is_reported_in_place_of_its_event() -> None:
    finding = one(pasted(*call(), FINISH, "[DONE]", SECOND), "S010")
    assert late(finding) == "a call comes after [DONE]"
    assert finding.severity is Severity.ERROR
    assert codes(pasted(TEXT, FINISH_TEXT, "[DONE]", TEXT)) == ["S006"]


def test_a_block_after_the_stop_reason_of_a_message() -> None:
    first = (messages.start(), messages.tool_block(), messages.piece("{}"), messages.stop())
    second = (messages.tool_block(1, "c2"), messages.piece("{}", 1), messages.stop(1))
    exchange = of_messages(*first, messages.reason("tool_use"), *second, messages.STOP)
    assert late(one(exchange, "S010")) == (
        "call 1 (get) starts after the finish reason 'tool_use' of event 4, in event 5"
    )
    assert not found(of_messages(*first, *second, *messages.END), "S010")


def test_text_in_an_event_that_the_dialect_has_no_place_for_is_reported_once() -> None:
    said = (messages.start(), messages.text_block(), messages.reason("end_turn"), messages.STOP)
    assert "S010" not in codes(of_messages(*said, messages.text("late")))


def test_a_call_after_the_end_of_a_response_is_reported_in_place_of_its_events() -> None:
    ended = responses.ended(responses.message("Hi"))
    seen = responses.findings(responses.created(), responses.say("Hi"), ended, *responses.call())
    (finding,) = [each for each in seen if each.code == "S010"]
    assert finding.message.startswith("the call 'get' comes after the end of the response")
    assert not [each for each in seen if "events after the end" in each.message]
    other = responses.findings(responses.created(), ended, responses.say("Hi"))
    assert [each.code for each in other if "events after the end" in each.message] == ["S006"]


def test_gemini_may_finish_on_several_events() -> None:
    first = gemini.candidate(gemini.call("get"), finish="STOP")
    second = gemini.candidate(gemini.call("put"), finish="STOP")
    late = gemini.candidate(gemini.call("put"))

    def exchange(*chunks: object) -> Exchange:
        body = gemini.sse(*chunks)
        return Exchange.from_body(body, content_type="text/event-stream", url=gemini.STREAM)

    assert not found(exchange(first, second), "S010")
    finding = one(exchange(first, late), "S010")
    assert finding.message.startswith("call 1 (put) starts after the finish reason 'STOP'")


def test_what_an_application_sends_its_page_is_the_business_of_its_own_rules() -> None:
    frames = (
        {"type": "start", "messageId": "m"},
        {"type": "finish", "finishReason": "stop"},
        {"type": "text-start", "id": "0"},
        {"type": "text-delta", "id": "0", "delta": "Hi"},
    )
    exchange = Exchange.from_body(
        sse(*frames), content_type="text/event-stream", url="http://127.0.0.1/api/chat"
    )
    assert rebuild(exchange).from_app
    assert "S010" not in codes(exchange)


def test_words_of_all_dialects_in_any_case_have_one_meaning() -> None:
    assert (
        meaning("tool_calls") is meaning("TOOL_CALL") is meaning("tool_use") is FinishMeaning.TOOLS
    )
    assert meaning("MAX_TOKENS") is FinishMeaning.LENGTH
    assert meaning("no such word") is meaning(None) is meaning("") is FinishMeaning.OTHER


def test_the_detail_of_a_finish_reason_tells_more_than_the_reason() -> None:
    choice = rebuild(pasted(FINISH)).choices[0]
    cut = replace(choice, finish_reason_raw="incomplete", finish_detail="content_filter")
    assert finish_of(cut) is FinishMeaning.FILTER
    assert finish_of(replace(cut, finish_detail=None)) is FinishMeaning.LENGTH
    assert finish_of(replace(choice, finish_detail="whatever")) is FinishMeaning.TOOLS


def test_a_message_that_waits_for_the_next_request_is_paused() -> None:
    assert meaning("pause_turn") is meaning("compaction") is FinishMeaning.PAUSE
