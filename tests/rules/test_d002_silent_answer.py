import json
from dataclasses import replace

import pytest

from deltatape.model.exchange import EndReason, Exchange
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers import responses
from helpers.app import done, output, text, told, ui
from helpers.chat import FINISH, URL, choice, sse
from helpers.exchanges import (
    FINISH_TEXT,
    TEXT,
    USER,
    asks,
    assistant,
    call,
    found,
    from_bytes,
    one,
    pasted,
    result,
    timed,
)

ROLE = choice({"role": "assistant", "content": ""})


def lines(*each: object) -> Exchange:
    body = "".join(f"{json.dumps(one)}\n" for one in each)
    return from_bytes(body.encode(), content_type="application/x-ndjson")


def test_an_answer_that_says_nothing_is_reported() -> None:
    finding = one(timed((0.1, ROLE), (0.2, FINISH_TEXT)), "D002")
    assert finding.message == "the answer has no text and no call (finish reason 'stop', 2 events)"
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LIKELY)


def test_reasoning_alone_is_said() -> None:
    exchange = pasted(choice({"reasoning_content": "hm"}), FINISH_TEXT)
    assert "only 2 characters of reasoning" in one(exchange, "D002").message


def test_a_limit_makes_it_a_warning() -> None:
    assert one(pasted(ROLE, choice({}, "length")), "D002").severity is Severity.WARNING


def test_text_refusals_calls_and_errors_are_answers() -> None:
    assert not found(pasted(TEXT, FINISH_TEXT), "D002")
    assert not found(pasted(choice({"refusal": "no"}), FINISH_TEXT), "D002")
    assert not found(pasted(*call(), FINISH), "D002")
    assert not found(pasted(ROLE, FINISH_TEXT, {"error": {"message": "x"}}), "D002")


def test_what_other_rules_tell_is_not_told_twice() -> None:
    assert not found(pasted(ROLE, FINISH), "D002")
    assert not found(pasted(ROLE, done=False), "D002")
    assert not found(pasted(ROLE, FINISH_TEXT, status=500), "D002")
    assert not found(from_bytes(b""), "D002")
    exchange = timed((0.1, ROLE), (0.2, FINISH_TEXT))
    assert exchange.end
    cut = replace(exchange, end=replace(exchange.end, reason=EndReason.UPSTREAM_RESET))
    assert not found(cut, "D002")


def test_an_image_is_an_answer() -> None:
    drawn = {"model": "m", "message": {"images": [""]}, "done": False}
    done = {"model": "m", "message": {"content": ""}, "done": True, "done_reason": "stop"}
    assert not found(lines(drawn, done), "D002")
    assert found(lines(done, done), "D002")


def test_loading_a_model_asks_for_no_answer() -> None:
    for reason in ("load", "unload"):
        done = {"model": "m", "response": "", "done": True, "done_reason": reason}
        assert not found(lines(done), "D002")


def test_an_application_that_tells_its_page_nothing_is_silent_too() -> None:
    finding = one(told({"type": "status"}, done()), "D002")
    assert finding.message == "the answer has no text and no call (2 events)"
    assert finding.blame is Blame.APP
    assert not found(told(text("a"), done()), "D002")


def test_an_app_may_tell_its_page_of_a_tool_alone_that_ran_on() -> None:
    assert found(ui(), "D002")
    assert not found(ui(output()), "D002")


def answer(**asked: object) -> list[Finding]:
    """What is found on an empty answer to a request with these members."""
    history = {"messages": [{"role": "user", "content": "Hi"}], **asked}
    return found(pasted(ROLE, FINISH_TEXT, request={"model": "m", **history}), "D002")


@pytest.mark.parametrize(
    "form",
    [
        {"response_format": {"type": "json_schema", "json_schema": {}}},
        {"text": {"format": {"type": "json_schema"}}},
        {"format": "json"},
        {"format": {"properties": {}}},
        {"guided_choice": ["", "x"]},
        {"output_config": {"format": {"type": "json_schema"}}},
        {"generationConfig": {"responseSchema": {"type": "STRING"}}},
    ],
)
def test_an_empty_answer_in_a_form_that_is_asked_for_is_no_silence(form: dict[str, object]) -> None:
    assert answer(**form) == []


@pytest.mark.parametrize(
    "form", [{}, {"response_format": {"type": "text"}}, {"text": {"format": {"type": "text"}}}]
)
def test_plain_text_that_is_empty_is_one(form: dict[str, object]) -> None:
    (finding,) = answer(**form)
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.UPSTREAM)


def test_a_request_that_is_no_object_prescribes_nothing() -> None:
    body = sse(ROLE, FINISH_TEXT)
    odd = Exchange.from_body(body, content_type="text/event-stream", url=URL, request=b"[]")
    assert found(odd, "D002")


CALLED = assistant(("c1", "get", "{}"))


@pytest.mark.parametrize(
    ("history", "more", "why"),
    [
        ([CALLED, result("c1")], {"tool_choice": "none"}, "the request forbids calls"),
        ([assistant(text="The answer is")], {}, "the model adds nothing"),
    ],
)
def test_where_nothing_may_be_asked_for_it_is_a_fact(
    history: list[dict[str, object]], more: dict[str, object], why: str
) -> None:
    (finding,) = answer(messages=[USER, *history], **more)
    assert (finding.severity, finding.blame) == (Severity.INFO, None)
    assert finding.message.endswith(why)


def test_after_a_tools_result_models_seldom_end_without_a_word() -> None:
    history = [USER, CALLED, result("c1")]
    exchange = timed((0.1, ROLE), (0.2, FINISH_TEXT), request=asks(*history))
    finding = one(exchange, "D002")
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LIKELY)


def test_a_stop_sequence_that_comes_first_is_a_fact() -> None:
    exchange = pasted(ROLE, choice({}, "stop_sequence"))
    assert (one(exchange, "D002").severity, one(exchange, "D002").blame) == (Severity.INFO, None)


def test_a_limit_is_nobodys_fault() -> None:
    assert one(pasted(ROLE, choice({}, "length")), "D002").blame is None


def test_a_response_that_was_cancelled_owes_no_answer() -> None:
    events = (responses.created(), responses.ended(status="cancelled"))
    assert "D002" not in responses.codes(*events)
    assert "D002" in responses.codes(responses.created(), responses.ended())
