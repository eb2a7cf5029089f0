from dataclasses import replace

import pytest

from deltatape.model.exchange import EndReason
from deltatape.model.finding import Blame, Confidence, Severity
from deltatape.rules.app_events import EventFlaw, flawed
from deltatape.rules.context import MOST_ALIKE
from helpers.app import available, call, done, output, result, text, told, ui
from helpers.chat import FINISH, calls, entry
from helpers.contexts import context_of
from helpers.exchanges import TEXT, found, one, pasted, timed


def test_flaws_become_findings_with_the_event_and_the_last_counts_the_others() -> None:
    context = context_of(told(text("a"), done()))
    place = context.stream.events[0].place
    flaws = [EventFlaw(message=f"flaw {n}", event=0, place=place) for n in range(MOST_ALIKE + 2)]
    findings = list(flawed(context, flaws, "a hint"))
    assert len(findings) == MOST_ALIKE
    assert findings[0].message == "flaw 0"
    assert findings[-1].message == "flaw 19 (and 2 more)"
    assert findings[0].evidence == '{"type": "text", "content": "a"}'
    assert (findings[0].blame, findings[0].confidence) == (Blame.UPSTREAM, Confidence.POSSIBLE)


def test_a_flaw_of_an_event_that_is_not_there_has_no_evidence() -> None:
    context = context_of(told(text("a"), done()))
    flaw = EventFlaw(message="m", event=99, place=context.stream.events[0].place)
    (finding,) = flawed(context, [flaw], "a hint")
    assert finding.evidence == ""


@pytest.mark.parametrize("name", [None, "", 5, {"a": 1}])
def test_a_call_without_a_name_is_an_error_of_the_application(name: object) -> None:
    finding = one(told(call(name), result(), done()), "A001")
    assert finding.message == "call 0 has no name: the app's page cannot tell which tool it calls"
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.APP)
    assert finding.evidence.startswith('{"type": "tool_call", "name": ')


def test_a_name_that_is_there_and_empty_is_proven_and_says_what_was_excluded() -> None:
    finding = one(timed((0.1, call(None, 10)), (0.2, result()), (0.3, done())), "A001")
    assert finding.confidence is Confidence.PROVEN
    (tried,) = finding.excluded
    assert tried.explanation == "the app's event format names the field differently"
    assert (
        tried.because == "the field 'name' of the event is empty, and the event has no other text"
    )


@pytest.mark.parametrize(
    "event",
    [
        {"type": "tool_call", "toolName": "get", "arguments": {"a": 1}},
        {"type": "tool_call", "id": "c1", "arguments": {"a": 1}},
        {"type": "tool_call", "name": None, "label": "get", "arguments": {"a": 1}},
        {"type": "tool_call", "function": {"name": "get"}, "arguments": {"a": 1}},
    ],
)
def test_a_contract_that_names_its_tools_elsewhere_is_only_possibly_wrong(
    event: dict[str, object],
) -> None:
    finding = one(told(event, result(), done()), "A001")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)


def test_the_same_holds_for_the_events_of_the_ai_sdk() -> None:
    assert one(ui(available(name=""), output()), "A001").blame is Blame.APP


def test_a_result_of_nobody_is_a_warning() -> None:
    finding = one(told(call(), result(None), done()), "A001")
    assert finding.severity is Severity.WARNING
    assert not found(told(call(id="c"), result(None, id="c"), done()), "A001")


def test_named_events_and_other_dialects_are_not_its_business() -> None:
    assert not found(told(call(), result(), done()), "A001")
    nameless = pasted(calls(entry(0, "c1", arguments="{}")), FINISH)
    assert not found(nameless, "A001")
    assert found(nameless, "T004")
    assert not found(told(call(None), result(), done()), "T004")


@pytest.mark.parametrize(
    ("arguments", "what", "severity"),
    [
        (10, "the number 10", Severity.ERROR),
        (1.5, "the number 1.5", Severity.ERROR),
        (True, "a boolean true", Severity.ERROR),
        ([1], "a list [1]", Severity.WARNING),
        ("Rome", "the string 'Rome'", Severity.WARNING),
        ("", "the string ''", Severity.WARNING),
        ('{"ci', """the string '{"ci', a fragment of JSON""", Severity.ERROR),
        ('{"city":"Rome"}', "a string that contains an object", Severity.WARNING),
    ],
)
def test_arguments_that_are_no_object_are_reported_as_what_they_are(
    arguments: object, what: str, severity: Severity
) -> None:
    finding = one(told(call("get", arguments), result(), done()), "A002")
    assert finding.message == f"the arguments of call 0 (get) are {what}, not an object"
    assert (finding.severity, finding.blame) == (severity, Blame.APP)
    sure = Confidence.LIKELY if severity is Severity.ERROR else Confidence.POSSIBLE
    assert finding.confidence is sure, "a contract may have text there, but no number"


def test_missing_arguments_are_a_warning_whether_or_not_there_is_a_name() -> None:
    for name in ("get", None):
        event = {"type": "tool_call", "name": name, "arguments": None}
        finding = one(told(event, result(), done()), "A002")
        assert "are missing or null, not an object" in finding.message
        assert finding.severity is Severity.WARNING


def test_a_number_in_place_of_an_object_is_reported_without_a_name_too() -> None:
    finding = one(told(call(None, 10)), "A002")
    assert finding.message == "the arguments of call 0 are the number 10, not an object"


def test_what_is_not_json_or_free_text_or_never_whole_is_not_its_business() -> None:
    start = {"type": "tool-input-start", "toolCallId": "c1", "toolName": "get"}
    assert not found(told({"type": "start", "messageId": "m"}, start), "A002")
    assert not found(ui(available(value="*** Begin"), output()), "A002")
    broken = {**available(), "type": "tool-input-error", "input": '{"a": x', "errorText": "no"}
    assert not found(ui(broken), "A002")
    assert one(ui(available(value=7), output()), "A002").severity is Severity.ERROR


def test_objects_and_other_dialects_are_fine() -> None:
    assert not found(told(call(), result(), done()), "A002")
    assert not found(pasted(calls(entry(0, "c1", name="get", arguments="[1]")), FINISH), "A002")
    assert not found(told(call("get", [1]), result(), done()), "T006")


def test_a_stream_that_dies_with_its_call_is_an_error() -> None:
    finding = one(told(call("put"), result("put"), text("a"), call()), "A003")
    assert finding.message == "call 1 (get) never got a result"
    assert (finding.severity, finding.blame, finding.event) == (Severity.ERROR, Blame.APP, 3)
    assert finding.confidence is Confidence.LIKELY


def test_a_body_that_ends_with_its_only_call_may_leave_it_to_the_page() -> None:
    finding = one(told(text("a"), call()), "A003")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)


def test_a_call_that_is_left_beside_others_of_its_tool_with_results_is_an_error() -> None:
    finding = one(told(call(), result(), call(), done()), "A003")
    assert finding.message == "call 1 (get) never got a result"
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LIKELY)
    assert (
        finding.excluded[0].because == "another call of the same tool has its result in this stream"
    )


def test_a_tool_without_any_result_may_be_one_that_the_page_runs() -> None:
    finding = one(told(call(), call("put"), result(), done()), "A003")
    assert finding.message == "call 1 (put) never got a result"
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)


def test_a_stream_in_good_order_without_any_result_is_a_warning() -> None:
    assert one(told(call(), done()), "A003").severity is Severity.WARNING


def test_results_are_paired_by_id_else_by_name_else_in_order() -> None:
    by_id = (call(id="c1"), call(id="c2"), result(id="c2"), result(id="c1"), done())
    assert not found(told(*by_id), "A003")
    by_name = (call("get"), call("put"), result("put"), result("get"), done())
    assert not found(told(*by_name), "A003")
    assert not found(told(call("get"), call("put"), result(None), result(None), done()), "A003")
    assert not found(told(call(None), result("get"), done()), "A003")
    twice = (call(), call(), result(), result(), done())
    assert not found(told(*twice), "A003")


def test_a_result_for_another_id_or_before_its_call_is_none_and_is_named() -> None:
    finding = one(told(call(id="c1"), result(id="x9"), done()), "A003")
    assert finding.message.endswith("a result came for 'x9', which matches no call")
    assert "a result came for 'get'" in one(told(result(), call(), done()), "A003").message
    assert one(told(result(None), call(), done()), "A003").message.endswith("never got a result")


def test_an_error_or_a_cut_tells_enough() -> None:
    assert not found(told(call(), {"type": "error", "content": "no"}), "A003")
    cut = timed((0.1, text("a")), (0.2, call()))
    assert cut.end
    assert one(cut, "A003")
    reset = replace(cut.end, reason=EndReason.UPSTREAM_RESET)
    assert not found(replace(cut, end=reset), "A003")


def test_tools_of_the_page_have_no_results() -> None:
    assert not found(ui(available(), finish="tool-calls"), "A003")
    assert not found(ui(available(), finish=None), "A003")
    assert one(ui(available(), finish="stop"), "A003").severity is Severity.WARNING
    assert not found(ui(available(), output(), finish="stop"), "A003")


def test_a_tool_whose_results_are_never_told_is_possible_only_by_a_specification_too() -> None:
    silent = one(ui(available()), "A003")
    assert (silent.severity, silent.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    other = one(ui(available(), output(), available("c2", "put")), "A003")
    assert (other.severity, other.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    same = one(ui(available(), output(), available("c2")), "A003")
    assert (same.severity, same.confidence) == (Severity.ERROR, Confidence.LIKELY)


def test_a_stream_that_dies_in_a_call_is_an_error() -> None:
    finding = one(timed((0.1, call()), (0.2, result()), (0.3, call())), "A004")
    assert finding.message == "the stream ended without done or error"
    assert (finding.severity, finding.blame, finding.confidence) == (
        Severity.ERROR,
        Blame.APP,
        Confidence.LIKELY,
    )
    assert finding.excluded[0].because.endswith("which ends right after this call")


def test_a_stream_that_ends_with_its_text_may_have_no_last_event_by_contract() -> None:
    for last in (text("a"), call()):
        finding = one(timed((0.1, last)), "A004")
        assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)


def test_a_pasted_stream_may_have_lost_its_end() -> None:
    assert one(told(text("a")), "A004").blame is None


def test_more_of_the_answer_after_done_may_be_the_next_step() -> None:
    for more in (text("b"), call(), result()):
        finding = one(told(text("a"), done(), more), "A004")
        assert finding.message.endswith("the answer goes on after the event that ended it")
        assert (finding.severity, finding.event) == (Severity.WARNING, 2)
        assert finding.confidence is Confidence.POSSIBLE


def test_a_stream_that_ends_is_fine_and_other_dialects_are_another_rules_business() -> None:
    assert not found(told(text("a"), done()), "A004")
    assert not found(told(text("a"), {"type": "error", "content": "no"}), "A004")
    assert not found(ui(), "A004")
    assert not found(pasted(TEXT, done=False), "A004")
    assert not found(told(text("a")), "S001")


@pytest.mark.parametrize(
    ("event", "what"),
    [
        (done(), "a second event ends the stream"),
        ({"type": "error", "content": "late"}, "a second event ends the stream"),
        ({"type": "title", "title": "x"}, "an event of the type 'title' after the one that ended"),
    ],
)
def test_what_follows_the_end_is_a_warning(event: dict[str, object], what: str) -> None:
    finding = one(told(text("a"), done(), event), "A005")
    assert finding.message.startswith(what)
    assert (finding.severity, finding.blame, finding.event) == (Severity.WARNING, Blame.APP, 2)


def test_the_sentinel_may_follow() -> None:
    assert not found(told(text("a"), done(), "[DONE]"), "A005")
    assert not found(told({"type": "title", "title": "x"}, text("a"), done()), "A005")


@pytest.mark.parametrize(
    ("content", "relation"),
    [
        ("It is", "it is only the beginning of the streamed text"),
        ("13 °C.", "it is only the end of the streamed text"),
        ("It is 13 °C. Bye.", "it continues where the streamed text ends"),
        ("It was 13 °C.", "they differ from character 3 on"),
    ],
)
def test_another_text_is_a_warning_that_says_how_it_differs(content: str, relation: str) -> None:
    finding = one(told(text("It is "), text("13 °C."), done(content)), "A006")
    assert finding.message == (
        f"12 characters of text were streamed, but the last event has {len(content)}: {relation}"
    )
    assert (finding.severity, finding.blame, finding.event) == (Severity.WARNING, Blame.APP, 2)
    part = relation.startswith(("it is only the beginning", "it is only the end"))
    assert finding.confidence is (Confidence.LIKELY if part else Confidence.POSSIBLE)


def test_a_text_that_is_gone_is_a_warning_since_done_may_have_none_by_contract() -> None:
    finding = one(told(text("a"), done("")), "A006")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    assert finding.message.endswith("its text is empty")
    assert finding.evidence == '{"type": "done", "content": ""}'


def test_all_of_the_text_or_what_comes_after_the_last_tool_is_fine() -> None:
    frames = (text("Wait."), call(), result(), text(" It is 13."))
    assert not found(told(*frames, done("Wait. It is 13.")), "A006")
    assert not found(told(*frames, done("It is 13.\n")), "A006")
    assert found(told(*frames, done("Wait.")), "A006")
    assert not found(told(*frames, done()), "A006")
    assert not found(told(done("It is 13.")), "A006")
    assert not found(ui(), "A006")
