import pytest

from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers import gemini, messages, responses
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.exchanges import FINISH_TEXT, TEXT, call, codes, found, one, pasted, timed

SECOND = calls(entry(1, "c2", name="put", arguments='{"b":2}'))


def of_messages(*frames: messages.Frame) -> Exchange:
    body = messages.sse(*frames)
    return Exchange.from_body(body, content_type="text/event-stream", url=messages.URL)


def told(finding: Finding) -> str:
    return finding.message.partition(";")[0]


def test_a_call_that_is_opened_after_the_finish_reason_is_an_error() -> None:
    finding = one(pasted(*call(), FINISH, SECOND), "S010")
    assert finding.message == (
        "call 1 (put) is opened after the finish reason 'tool_calls' of event 3, in event 4; a"
        " client that stops at the finish reason never gets it"
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
    assert told(finding) == (
        "call 0 (get) goes on after the finish reason 'tool_calls' of event 2, in event 3"
    )


def test_a_finish_reason_after_each_call_hides_the_second_one() -> None:
    finding = one(pasted(*call(), FINISH, SECOND, FINISH), "S010")
    assert "call 1 (put)" in finding.message


def test_text_after_the_finish_reason_is_a_warning() -> None:
    finding = one(pasted(*call(), FINISH, TEXT), "S010")
    assert finding.severity is Severity.WARNING
    assert told(finding) == "text comes after the finish reason 'tool_calls' of event 3, in event 4"


@pytest.mark.parametrize("last", [{"choices": []}, choice({"content": ""}), choice({}), FINISH])
def test_what_says_nothing_may_follow(last: object) -> None:
    assert not found(pasted(*call(), FINISH, last), "S010")


def test_a_finish_reason_on_every_event_says_nothing_of_what_follows() -> None:
    said = [choice({"content": "a"}, "stop")] * 5
    assert codes(pasted(*said)) == ["S004"]


def test_a_call_behind_the_sentinel_is_told_in_place_of_its_event() -> None:
    finding = one(pasted(*call(), FINISH, "[DONE]", SECOND), "S010")
    assert told(finding) == "a call comes after [DONE]"
    assert finding.severity is Severity.ERROR
    assert codes(pasted(TEXT, FINISH_TEXT, "[DONE]", TEXT)) == ["S006"]


def test_a_block_after_the_stop_reason_of_a_message() -> None:
    first = (messages.start(), messages.tool_block(), messages.piece("{}"), messages.stop())
    second = (messages.tool_block(1, "c2"), messages.piece("{}", 1), messages.stop(1))
    late = of_messages(*first, messages.reason("tool_use"), *second, messages.STOP)
    assert told(one(late, "S010")) == (
        "call 1 (get) is opened after the finish reason 'tool_use' of event 4, in event 5"
    )
    assert not found(of_messages(*first, *second, *messages.END), "S010")


def test_text_in_an_event_that_the_dialect_has_no_place_for_is_told_once() -> None:
    said = (messages.start(), messages.text_block(), messages.reason("end_turn"), messages.STOP)
    assert "S010" not in codes(of_messages(*said, messages.text("late")))


def test_a_call_after_the_end_of_a_response_is_told_in_place_of_its_events() -> None:
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
    assert finding.message.startswith("call 1 (put) is opened after the finish reason 'STOP'")


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
