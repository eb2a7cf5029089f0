import json
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.conversation import check_conversation
from deltatape.diagnose.check import check
from deltatape.diagnose.digest import digest
from deltatape.model.digest import Unanswered
from deltatape.model.exchange import EndReason, Exchange
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.rule_settings import DEFAULTS
from deltatape.model.tape_summary import LogEntry, LogStream, TapeSummary
from deltatape.rules import SeenSilence
from deltatape.rules.no_answer import unanswered_tool_call
from deltatape.store.reader import open_tape
from helpers import messages, responses
from helpers.app import done, output, text, told, ui
from helpers.chat import FINISH, URL, choice, sse
from helpers.exchanges import (
    FINISH_TEXT,
    TEXT,
    TEXT_REPLY,
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
    user,
)
from helpers.incidents import BROKEN, CUT, EMPTY, FIXED, STALL
from helpers.watched import CALLS, NS, watched_digests

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
    history = {"messages": [user("Hi")], **asked}
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
def test_an_empty_answer_in_a_form_that_is_asked_for_is_not_a_silence(
    form: dict[str, object],
) -> None:
    assert answer(**form) == []


@pytest.mark.parametrize(
    "form", [{}, {"response_format": {"type": "text"}}, {"text": {"format": {"type": "text"}}}]
)
def test_plain_text_that_is_empty_is_one(form: dict[str, object]) -> None:
    (finding,) = answer(**form)
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.UPSTREAM)


def test_a_request_that_is_not_an_object_prescribes_nothing() -> None:
    body = sse(ROLE, FINISH_TEXT)
    odd = Exchange.from_body(body, content_type="text/event-stream", url=URL, request=b"[]")
    assert found(odd, "D002")


CALLED = assistant(("c1", "get", "{}"))


@pytest.mark.parametrize(
    ("history", "more", "why"),
    [
        ([CALLED, result("c1")], {"tool_choice": "none"}, "the request forbids calls"),
        ([assistant(text="The answer is")], {}, "the model adds nothing"),
        ([user("If all is well, reply with nothing.")], {}, "when to answer with nothing"),
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


def claude(*beside: dict[str, object], history: bool = True) -> Finding:
    """What is found on an empty answer of a Claude model, after a tool's result if `history`."""
    used = {"type": "tool_use", "id": "toolu_1", "name": "get", "input": {}}
    told = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sent"}
    more = [
        {"role": "assistant", "content": [{"type": "text", "text": "I mail it."}, used]},
        {"role": "user", "content": [told, *beside]},
    ]
    asked = [{"role": "user", "content": "Mail Ann."}, *(more if history else [])]
    body = messages.sse(messages.start(), messages.reason("end_turn"), messages.STOP)
    request = {**messages.request(), "messages": asked}
    exchange = Exchange.from_body(
        body, content_type="text/event-stream", url=messages.URL, request=request
    )
    return one(exchange, "D002")


def test_a_claude_model_may_count_its_turn_as_complete_after_a_tools_result() -> None:
    for beside in ((), ({"type": "text", "text": "Go on."},)):
        finding = claude(*beside)
        assert (finding.severity, finding.blame) == (Severity.WARNING, None)
        assert finding.message.endswith("may count its turn as complete, as Anthropic documents")
        assert finding.hint.startswith("put no text beside tool results")
    finding = claude(history=False)
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.UPSTREAM)


def test_a_stop_sequence_that_comes_first_is_a_fact() -> None:
    exchange = pasted(ROLE, choice({}, "stop_sequence"))
    assert (one(exchange, "D002").severity, one(exchange, "D002").blame) == (Severity.INFO, None)


def test_a_limit_is_nobodys_fault() -> None:
    assert one(pasted(ROLE, choice({}, "length")), "D002").blame is None


def test_a_response_that_was_cancelled_owes_no_answer() -> None:
    events = (responses.created(), responses.ended(status="cancelled"))
    assert "D002" not in responses.codes(*events)
    assert "D002" in responses.codes(responses.created(), responses.ended())


OTHER = user("Another matter.")


def unanswered(
    until_s: float, stop: str | None = "interrupted", code: int | None = None
) -> Finding:
    (finding,) = check_conversation(
        watched_digests(CALLS, until_s=until_s, stop=stop, exit_code=code)
    )
    return finding


def test_it_says_for_how_long_was_watched_and_what_ended_that() -> None:
    finding = unanswered(42.5, "child-exit", 0)
    assert (finding.code, finding.name) == ("D003", "unanswered-tool-call")
    assert finding.message == (
        "1 call (get) was delivered complete, and no request followed within 42.0 s;"
        " then the app exited with 0"
    )
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.POSSIBLE)
    assert finding.severity is Severity.WARNING
    assert finding.hint.startswith("if the app takes this call as its output, ignore this finding")
    assert (finding.exchange, finding.line, finding.t_ns) == (1, 150, NS // 2)
    assert finding.evidence == '{"a":1}'


@pytest.mark.parametrize(
    ("stop", "words"),
    [
        ("interrupted", "then the recorder stopped (interrupted)"),
        ("child-exit", "then the recorder stopped (child-exit)"),
        (None, "then the tape ends"),
    ],
)
def test_what_ended_the_watching_is_said(stop: str | None, words: str) -> None:
    assert unanswered(60, stop).message.endswith(words)


def test_what_still_goes_on_is_said_to_do_so() -> None:
    (reply,) = watched_digests(CALLS, until_s=60)
    watch = TapeSummary(until_ns=60 * NS, recording=True)
    (finding,) = check_conversation([replace(reply, watch=watch)])
    assert finding.message.endswith("within 59.5 s; the recording is still going on")


def test_an_unknown_end_of_the_application_is_possible_at_most() -> None:
    assert unanswered(60).confidence is Confidence.POSSIBLE
    assert unanswered(600).severity is Severity.WARNING


Step = tuple[dict[str, object], list[object]]


def answered(name: str) -> list[Step]:
    """Another conversation, in which a call of this tool is answered."""
    said = assistant(("c5", name, "{}"))
    return [
        (asks(OTHER), [*call(name, "{}", 4), FINISH]),
        (asks(OTHER, said, result("c5")), TEXT_REPLY),
    ]


def test_an_application_that_answers_this_tool_elsewhere_does_not_take_it_as_its_output() -> None:
    tape = watched_digests(CALLS, *answered("get"), until_s=90, stop="child-exit", exit_code=0)
    (finding,) = check_conversation(tape)
    assert (finding.confidence, finding.severity) == (Confidence.LIKELY, Severity.WARNING)
    assert finding.hint.startswith("check how the app handles a reply with calls")
    assert finding.message.endswith("; elsewhere on the tape it answers calls of the same tool")
    tape = watched_digests(CALLS, *answered("get"), until_s=400, stop="child-exit", exit_code=0)
    assert [each.severity for each in check_conversation(tape)] == [Severity.ERROR]


@pytest.mark.parametrize(
    ("line", "confidence"),
    [
        (b"Filtering out malformed tool call (missing id or name)", Confidence.LIKELY),
        (b"Unexpected end of JSON input", Confidence.POSSIBLE),
        (b"1 validation error for Config", Confidence.POSSIBLE),
        (b"done", Confidence.POSSIBLE),
    ],
)
def test_an_application_that_complains_of_the_call_was_to_answer_it(
    line: bytes, confidence: Confidence
) -> None:
    tape = watched_digests(CALLS, until_s=42, stop="child-exit", exit_code=0)
    printed = LogEntry(t_ns=round(0.7 * NS), stream=LogStream.STDERR, line=line)
    found = check_conversation(tape, logs=[printed])
    (finding,) = [each for each in found if each.code == "D003"]
    assert finding.confidence is confidence
    shown = f"; it printed {line.decode()!r}" in finding.message
    assert shown == (confidence is Confidence.LIKELY)


def test_whether_the_application_lived_on_must_be_known() -> None:
    (finding,) = check_conversation(watched_digests(CALLS, *answered("get"), until_s=90))
    assert finding.confidence is Confidence.POSSIBLE


def test_a_call_may_end_the_run_of_a_service_that_lives_on() -> None:
    others: list[Step] = [(asks(OTHER, user(f"{at}")), TEXT_REPLY) for at in range(6)]
    for more in (others, [*answered("put"), *others]):
        (finding,) = check_conversation(watched_digests(CALLS, *more, until_s=900))
        assert (finding.confidence, finding.severity) == (Confidence.POSSIBLE, Severity.WARNING)


def test_an_application_that_answers_no_calls_may_take_them_as_its_output() -> None:
    others = [(asks({**OTHER, "name": f"n{at}"}), [*call(index=at), FINISH]) for at in (4, 5)]
    for number, words in ((1, "1 later reply"), (2, "2 later replies")):
        tape = watched_digests(CALLS, *others[:number], until_s=900, stop="child-exit")
        (finding,) = check_conversation(tape)
        assert (finding.confidence, finding.severity) == (Confidence.POSSIBLE, Severity.WARNING)
        assert finding.message.endswith(f"; the same is true of {words}")
        assert finding.hint.startswith("the app answers no calls on this tape: if it uses calls")


@pytest.mark.parametrize(
    ("until_s", "stop", "code"),
    [
        (2.5, "interrupted", None),  # Ctrl-C
        (2.5, "child-exit", 0),  # a program that takes the call as its result
        (2.5, "child-exit", 130),  # Ctrl-C in the program
        (2.5, "child-exit", -2),
        (29.9, None, None),  # a crash of the recorder
    ],
)
def test_a_tape_that_was_not_watched_for_long_proves_nothing(
    until_s: float, stop: str | None, code: int | None
) -> None:
    assert not check_conversation(
        watched_digests(CALLS, until_s=until_s, stop=stop, exit_code=code)
    )


def test_an_application_that_failed_can_never_answer() -> None:
    finding = unanswered(0.7, "child-exit", 1)
    assert (finding.confidence, finding.severity) == (Confidence.POSSIBLE, Severity.WARNING)
    assert "no request followed before the app exited with 1, 0.2 s later" in finding.message


def test_several_calls_are_named_up_to_a_number() -> None:
    many = [each for index in range(5) for each in call(f"t{index}", "{}", index)]
    tape = watched_digests((asks(USER), [*many, FINISH]), until_s=60)
    (finding,) = check_conversation(tape)
    assert finding.message.startswith("5 calls (t0, t1, t2 and 2 more) were delivered complete,")


def test_what_is_not_known_is_not_judged() -> None:
    (reply,) = watched_digests(CALLS, until_s=60)
    silence = Unanswered(
        reply=replace(reply, watch=None), until_ns=60 * NS, alive_ns=None, others=0
    )
    assert not list(unanswered_tool_call(SeenSilence(silence, DEFAULTS)))


@pytest.mark.parametrize("tape", [BROKEN, FIXED, CUT, EMPTY, STALL], ids=lambda path: path.stem)
def test_the_recorded_incidents_hold_no_dead_zone(tape: Path) -> None:
    exchanges = list(open_tape(tape))
    unanswered = [finding for exchange in exchanges for finding in check(exchange)]
    unanswered += check_conversation(map(digest, exchanges))
    assert not {finding.code for finding in unanswered} & {"D003", "D004"}


def crashed(line: bytes, code: int = 1) -> list[Finding]:
    tape = watched_digests(CALLS, until_s=1, stop="child-exit", exit_code=code)
    printed = LogEntry(t_ns=round(0.7 * NS), stream=LogStream.STDERR, line=line)
    unanswered = check_conversation(tape, logs=[printed])
    return [each for each in unanswered if each.code == "D003"]


@pytest.mark.parametrize(
    "line",
    [
        b"json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
        b"\x1b[31mTypeError: x is not a function\x1b[0m",
        b"panic: runtime error: index out of range [1] with length 1",
    ],
)
def test_an_app_that_ended_by_an_exception_did_not_mean_to_stay_silent(line: bytes) -> None:
    (finding,) = crashed(line)
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LIKELY)
    assert "without a further request, the app printed '" in finding.message
    assert finding.message.endswith(" and exited with 1")
    assert finding.hint.startswith("the app exited with an error before it")
    (excluded,) = finding.excluded
    assert excluded.explanation == "the app uses calls as its output, or waits for a person"


def test_an_app_that_printed_no_exception_may_have_meant_it() -> None:
    (finding,) = crashed(b"nothing to do")
    assert (finding.confidence, finding.excluded) == (Confidence.POSSIBLE, ())
    assert not crashed(b"ValueError: x", code=0)
