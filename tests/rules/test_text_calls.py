from dataclasses import replace

import pytest

from deltatape.diagnose.rebuild import analyse, rebuild
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Blame, Confidence, Severity
from deltatape.model.reply import TextCall
from deltatape.model.request_summary import RequestSummary
from deltatape.rules.text_calls import is_asked_for, name_and_arguments, where
from helpers.chat import FINISH, choice, request
from helpers.exchanges import call, found, one, pasted, system, timed, user

HERMES = '<tool_call>{"name": "get", "arguments": {"a": 1}}</tool_call>'
GENERIC = '<tool>{"tool_name": "get", "arguments": {}}</tool>'


def written(text: str) -> TextCall:
    (found,) = rebuild(pasted(choice({"content": text}, "stop"))).text_calls
    return found


def asked(*, prompt: str = "", tools: bool = False) -> RequestSummary:
    body = request(get={}) if tools else request()
    body["messages"] = [system(prompt)]
    return context_of(body)


def context_of(body: dict[str, object]) -> RequestSummary:
    return analyse(pasted(FINISH, request=body)).request


def test_the_generic_notation_is_asked_for_where_no_tools_are_declared() -> None:
    assert is_asked_for(asked(), written(GENERIC))
    assert not is_asked_for(asked(tools=True), written(GENERIC))


def test_another_notation_is_asked_for_if_its_tag_stands_in_the_messages() -> None:
    prompt = "Write <tool_call>{...}</tool_call> to call a tool."
    assert is_asked_for(asked(prompt=prompt), written(HERMES))
    assert not is_asked_for(asked(prompt=prompt, tools=True), written(HERMES))
    assert not is_asked_for(asked(prompt="Be brief."), written(HERMES))


def test_a_notation_without_a_tag_is_never_asked_for() -> None:
    whole = '{"name": "get", "arguments": {}}'
    reply = rebuild(pasted(choice({"content": whole}, "stop"), request=request(get={})))
    assert not is_asked_for(asked(prompt=whole), reply.text_calls[0])


def test_a_call_is_structured_too_if_name_and_arguments_are_the_same() -> None:
    def both(arguments: str) -> bool:
        chunks = [choice({"content": HERMES}), *call(arguments=arguments), FINISH]
        (answer,) = rebuild(pasted(*chunks)).choices
        (text,), (sent,) = answer.text_calls, answer.tool_calls
        return name_and_arguments(text.call) == name_and_arguments(sent)

    assert both('{ "a":1 }')
    assert not both('{"a":2}')
    assert not both("")


def test_a_message_names_the_call_its_channel_and_its_notation() -> None:
    assert where(written(HERMES)) == "call 0 (get) in the text (hermes)"


CALL = '<tool_call>{"name": "get", "arguments": {"a":1}}</tool_call>'
TOOLS = request(get={"type": "object"}, put={})


def test_a_call_of_an_offered_tool_that_is_only_text_is_an_error() -> None:
    finding = one(pasted(choice({"content": CALL}, "stop"), request=TOOLS), "T018")
    assert finding.severity is Severity.ERROR
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)
    assert finding.message.startswith("call 0 (get) in the text (hermes) names an offered tool,")
    assert finding.evidence == CALL


def is_fact(text: str, question: str = "What is the weather?") -> bool:
    """Whether the rule only makes a remark that accuses nobody."""
    asked = {**TOOLS, "messages": [user(question)]}
    finding = one(pasted(choice({"content": text}, "stop"), request=asked), "T018")
    return (finding.severity, finding.blame) == (Severity.INFO, None)


def test_prose_that_goes_on_behind_a_call_is_about_calls() -> None:
    assert is_fact(f"Hermes models write {CALL} when they want a tool to run.")


def test_words_between_two_calls_are_prose_for_the_first() -> None:
    asked = {**TOOLS, "messages": []}
    text = f"{CALL} is followed by {CALL}"
    found_on = found(pasted(choice({"content": text}, "stop"), request=asked), "T018")
    assert {each.severity for each in found_on} == {Severity.INFO, Severity.ERROR}
    neighbours = pasted(choice({"content": CALL + CALL}, "stop"), request=asked)
    assert {each.severity for each in found(neighbours, "T018")} == {Severity.ERROR}


def test_a_question_about_the_notation_may_be_answered_in_it() -> None:
    assert is_fact(CALL, "How do models use <tool_call> tags?")
    assert not is_fact(CALL)


@pytest.mark.parametrize(
    "question",
    [
        "Do not call anything: just show me how your raw call would look.",
        "What would the tool call be?",
    ],
)
def test_a_user_who_asks_for_calls_may_want_to_see_one(question: str) -> None:
    assert is_fact(f"It would look like this:\n{CALL}", question)
    assert not is_fact(f"I look it up:\n{CALL}", "Call Ann, please.")


def test_special_tokens_and_further_calls_are_not_prose() -> None:
    assert not is_fact(f"I look it up. {CALL}<|im_end|>\n")
    assert not is_fact(f"{CALL} [/TOOL_CALLS]")


def test_the_second_of_two_calls_that_leaks_is_an_error() -> None:
    chunks = [*call(arguments='{"a":2}'), choice({"content": CALL}), FINISH]
    assert one(pasted(*chunks, request=TOOLS), "T018").severity is Severity.ERROR


def test_a_call_that_came_as_a_tool_call_too_is_a_warning() -> None:
    chunks = [choice({"content": CALL}), *call(), FINISH]
    finding = one(pasted(*chunks, request=TOOLS), "T018")
    assert finding.severity is Severity.WARNING
    assert "was also sent as a tool call" in finding.message


@pytest.mark.parametrize(
    ("asked", "blame", "why"),
    [
        (request(put={}), Blame.MODEL, "is none of the request's tools"),
        (request(), None, "came although the request offers no tools"),
        (None, None, "came although the request offers no tools"),
    ],
)
def test_a_call_of_a_tool_that_was_not_offered_is_a_warning(
    asked: dict[str, object] | None, blame: Blame | None, why: str
) -> None:
    finding = one(pasted(choice({"content": CALL}, "stop"), request=asked), "T018")
    assert (finding.severity, finding.blame) == (Severity.WARNING, blame)
    assert why in finding.message


def test_a_call_in_the_reasoning_is_information() -> None:
    exchange = pasted(choice({"reasoning_content": CALL}), choice({}, "stop"), request=TOOLS)
    finding = one(exchange, "T018")
    assert (finding.severity, finding.hint) == (Severity.INFO, "do not execute it")


def test_an_applications_own_protocol_and_an_open_call_are_no_matter_of_this_rule() -> None:
    generic = '<tool>{"tool_name": "get", "arguments": {}}</tool>'
    assert not found(pasted(choice({"content": generic}, "stop")), "T018")
    assert found(pasted(choice({"content": generic}, "stop"), request=TOOLS), "T018")
    assert not found(pasted(choice({"content": CALL[:30]}, "stop"), request=TOOLS), "T018")


CUT = CALL[:40]
OFFERED = request(get={"type": "object"})


def said(text: str, finish: str | None, channel: str = "content") -> Exchange:
    return pasted(choice({channel: text}), choice({}, finish), request=OFFERED)


@pytest.mark.parametrize(
    ("finish", "why", "blame", "confidence"),
    [
        ("length", "the provider cut the reply", None, Confidence.PROVEN),
        ("stop", "the reply nevertheless ended normally", Blame.UPSTREAM, Confidence.LIKELY),
        (None, "the stream ended without a finish reason", None, Confidence.LIKELY),
    ],
)
def test_a_call_that_is_cut_off_is_an_error_with_its_cause(
    finish: str | None, why: str, blame: Blame | None, confidence: Confidence
) -> None:
    finding = one(said(CUT, finish), "T019")
    assert finding.severity is Severity.ERROR
    assert (finding.blame, finding.confidence) == (blame, confidence)
    assert "is not closed: it is cut off" in finding.message
    assert why in finding.message


def test_a_cut_stream_is_a_cause() -> None:
    exchange = replace(timed((0.1, choice({"content": CUT})), request=OFFERED), end=None)
    assert "the connection broke" in one(exchange, "T019").message


def test_whole_arguments_without_a_closing_tag_are_a_warning() -> None:
    finding = one(said(CALL.removesuffix("</tool_call>"), "stop"), "T019")
    assert finding.severity is Severity.WARNING
    assert "its arguments are complete, but the closing tag is missing" in finding.message


def test_an_open_call_in_the_reasoning_is_information() -> None:
    assert one(said(CUT, "stop", "reasoning_content"), "T019").severity is Severity.INFO


def test_an_applications_own_protocol_is_reported_too() -> None:
    generic = pasted(choice({"content": '<tool>{"tool_name": "get", "arg'}, "stop"))
    assert one(generic, "T019").severity is Severity.ERROR


def test_closed_calls_and_talk_are_fine() -> None:
    assert not found(said(CALL, "stop"), "T019")
    assert not found(said("Use <tool_call> for that.", "stop"), "T019")


def test_a_notation_that_the_request_speaks_of_may_only_be_talked_about() -> None:
    question = user("How do models use <tool_call> tags?")
    asked = {**request(get={"type": "object"}), "messages": [question]}
    text = 'They begin with <tool_call>{"name": "get", "arguments": {'
    finding = one(pasted(choice({"content": text}, "stop"), request=asked), "T019")
    assert (finding.severity, finding.blame) == (Severity.INFO, None)
    assert finding.message.endswith("so this may only be an example")
