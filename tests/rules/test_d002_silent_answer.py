import json
from dataclasses import replace

from deltatape.model.exchange import EndReason, Exchange
from deltatape.model.finding import Blame, Confidence, Severity
from helpers.app import done, text, told
from helpers.chat import FINISH, choice
from helpers.exchanges import FINISH_TEXT, TEXT, call, found, from_bytes, one, pasted, timed

ROLE = choice({"role": "assistant", "content": ""})


def lines(*each: object) -> Exchange:
    body = "".join(f"{json.dumps(one)}\n" for one in each)
    return from_bytes(body.encode(), content_type="application/x-ndjson")


def test_an_answer_that_says_nothing_is_reported() -> None:
    finding = one(timed((0.1, ROLE), (0.2, FINISH_TEXT)), "D002")
    assert finding.message == "the answer has no text and no call (finish reason 'stop', 2 events)"
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.PROVEN)


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
